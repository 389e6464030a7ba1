"""The other end of a backend's transport, in memory: says what its test wants.

:class:`Openings` puts such ends in the place of every transport.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import AsyncGenerator, Callable, Generator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Generic, Literal, TypeAlias, TypeVar
from unittest import mock

import anyio
import attrs
import trio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import ServerMessageMetadata, SessionMessage
from mcp_types import JSONRPCMessage, jsonrpc_message_adapter

from emceepee_trio.backend.children.process import Exit
from emceepee_trio.backend.connections import connect
from emceepee_trio.backend.connections.connect import Transport
from emceepee_trio.backend.http.transport import SESSION_GONE, HttpTransport
from emceepee_trio.config import Server
from emceepee_trio.model.json.intake import Measure
from play import MODERN, VERSION

Item = SessionMessage | Exception
Mood: TypeAlias = Literal["greets", "waits", "fails", "hangs"]
"""What opening a transport does, and whether its peer says hello by itself."""

NOBODY = 1 << 22
"""No kernel gives a process that id, or a higher one: whoever looks whether such a child works sees
nothing of this machine. Below that of id 1 are all of its processes."""
LISTEN, ACKNOWLEDGED = "subscriptions/listen", "notifications/subscriptions/acknowledged"


@attrs.define(eq=False)
class Child:
    """As much of a process as a backend looks at."""

    pid: int
    started_at: float = attrs.field(factory=time.time)
    exit: Exit | None = None
    failure: str | None = None
    patience: float = 0
    heard: int = 0
    settles: Callable[[SessionMessage], bool] = lambda _: False


@attrs.define(eq=False)
class Peer:
    """The other end of one transport."""

    child: Child | None
    http: HttpTransport | None
    says: MemoryObjectSendStream[Item]
    hears: MemoryObjectReceiveStream[SessionMessage]
    is_well: bool = True
    greets: bool = True
    is_modern: bool = False
    is_open: bool = True
    greeted: bool = False
    requests: dict[int, dict[str, Any]] = attrs.field(factory=dict)
    """Those without an answer, by id."""

    async def listen(self) -> None:
        async for item in self.hears:
            self.hear(item.message.model_dump(by_alias=True, exclude_unset=True))

    def hear(self, message: dict[str, Any]) -> None:
        if "id" not in message:
            return
        self.requests[message["id"]] = message
        method = message["method"]
        hello = "server/discover" if self.is_modern else "initialize"
        if method == hello and self.greets:
            self.greet(kindly=True)
        elif method == LISTEN:
            said = {"notifications": message["params"]["notifications"]}
            self.say({"jsonrpc": "2.0", "method": ACKNOWLEDGED, "params": said})
        # Else a question of its health, or a wish that is repeated.
        elif method not in {hello, "initialize", "tools/call"} and self.is_well:
            self.answer(message["id"], {})

    def say(self, message: dict[str, Any], about: int | None = None) -> bool:
        """Whether it could be said; *about*: in the answer to the request of that id."""
        parsed: JSONRPCMessage = jsonrpc_message_adapter.validate_python(message)
        of = None if about is None else ServerMessageMetadata(about)
        item = SessionMessage(parsed, of)
        # As a process does.
        is_read = self.says.statistics().tasks_waiting_receive > 0
        if self.child is None or not (is_read and self.child.settles(item)):
            self.says.send_nowait(item)
        return True

    def answer(self, request_id: int, result: dict[str, Any]) -> None:
        self.requests.pop(request_id, None)
        self.say({"jsonrpc": "2.0", "id": request_id, "result": result})

    def refuse(self, request_id: int, message: str = "refused") -> None:
        self.requests.pop(request_id, None)
        error = {"code": -32000, "message": message}
        self.say({"jsonrpc": "2.0", "id": request_id, "error": error})

    def greet(self, *, kindly: bool) -> None:
        (hello,) = self.of("server/discover" if self.is_modern else "initialize")
        if kindly and self.is_modern:
            self.greeted = True
            self.answer(hello, {"supportedVersions": [MODERN], "capabilities": {}})
        elif kindly:
            self.greeted = True
            info = {"name": "scripted", "version": "0"}
            result = {"protocolVersion": VERSION, "capabilities": {}, "serverInfo": info}
            self.answer(hello, result)
        else:
            self.refuse(hello)

    def end(self) -> None:
        """The process crashes, or the stream ends."""
        if self.child is not None:
            self.child.exit = Exit(1, None)
        self.says.close()

    async def forget(self) -> None:
        """The session that there was; each who calls is told that nothing ran, one by one."""
        assert self.http is not None
        assert self.http.on_over is not None
        self.http.session_gone = True
        self.http.on_over(SESSION_GONE)
        for request_id in [*self.requests]:
            await trio.lowlevel.checkpoint()
            self.http.not_run.add(request_id)
            self.refuse(request_id)

    def of(self, method: str) -> list[int]:
        return [i for i, r in self.requests.items() if r["method"] == method]

    @property
    def calls(self) -> dict[int, str]:
        """Keys of those without an answer."""
        return {i: self.requests[i]["params"]["name"] for i in self.of("tools/call")}


P = TypeVar("P", bound=Peer)


@asynccontextmanager
async def open_peer(
    server: Server, number: int | None, new: Callable[..., P], room: int = 1000
) -> AsyncGenerator[tuple[P, Transport]]:
    """A transport, and who listens at its other end: what *new* makes of the fields of a peer.

    *number*: of its process, if it is one; without a number it is neither that nor behind a URL.
    *room*: for so many messages that are not read yet, in either direction.
    """
    says, reads = anyio.create_memory_object_stream[Item](room)
    writes, hears = anyio.create_memory_object_stream[SessionMessage](room)
    child = http = None
    if number is None:
        pass
    elif server.transport == "stdio":
        child = Child(NOBODY + number)
    else:
        said, _ = trio.open_memory_channel[SessionMessage](0)
        http = HttpTransport(
            server, "s", Measure(1000, 1000), restricted=False, auth=None, said=said
        )
    peer = new(child, http, says, hears)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(peer.listen)
        try:
            yield peer, Transport(reads, writes, process=child, http=http)  # type: ignore[arg-type]  # a scripted one
        finally:
            peer.is_open = False
            if child is not None and child.exit is None:
                child.exit = Exit(0, None)
            for end in (says, reads, writes, hears):
                end.close()
            nursery.cancel_scope.cancel("closed")


@attrs.define(eq=False)
class Openings(Generic[P]):
    """Of all transports, in the order in which they are opened in :meth:`in_place`."""

    mood: Mood = "greets"
    """Of the next one."""
    all: list[P] = attrs.field(factory=list, init=False)
    _numbers: Iterator[int] = attrs.field(factory=lambda: itertools.count(1), init=False)

    def new(self, server: Server, session: str, number: int, *, greets: bool) -> Callable[..., P]:
        """What makes a peer of its fields."""
        raise NotImplementedError

    @contextmanager
    def in_place(self) -> Generator[None]:
        with mock.patch.object(connect, "_open_streams", self._open_streams):
            yield

    @asynccontextmanager
    async def _open_streams(
        self, server: Server, callbacks: object, shared: object, session: str, *_: object
    ) -> AsyncGenerator[Transport]:
        mood, self.mood = self.mood, "greets"
        if mood == "hangs":
            await trio.sleep_forever()
        if mood == "fails":
            raise OSError(11, "cannot be opened today")
        number = next(self._numbers)
        new = self.new(server, session, number, greets=mood == "greets")
        async with open_peer(server, number, new) as (peer, streams):
            self.all.append(peer)
            yield streams
