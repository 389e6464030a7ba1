"""Backends over transports in memory, whose other ends do what a test wants, when it wants it."""

from __future__ import annotations

import itertools
import time
from collections.abc import AsyncGenerator, Callable, Generator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any, Literal, TypeAlias
from unittest import mock

import anyio
import attrs
import trio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCMessage, jsonrpc_message_adapter

from emceepee_trio.backend import connect
from emceepee_trio.backend.connect import Streams
from emceepee_trio.backend.http import SESSION_GONE, HttpTransport
from emceepee_trio.backend.process import Exit
from emceepee_trio.config import Server

Item: TypeAlias = SessionMessage | Exception
Mood: TypeAlias = Literal["greets", "waits", "fails", "hangs"]
"""What opening a transport does, and whether its peer says hello by itself."""


@attrs.define(eq=False)
class Child:
    """As much of a process as a backend looks at."""

    pid: int
    started_at: float = attrs.field(factory=time.time)
    exit: Exit | None = None
    failure: str | None = None
    patience: float = 0


@attrs.define(eq=False)
class Peer:
    """The other end of one transport."""

    server: Server
    child: Child | None
    http: HttpTransport | None
    says: MemoryObjectSendStream[Item]
    hears: MemoryObjectReceiveStream[SessionMessage]
    is_well: bool
    greets: bool
    is_open: bool = True
    greeted: bool = False
    requests: dict[int, dict[str, Any]] = attrs.field(factory=dict)
    """Those without an answer, by id."""
    began: list[str] = attrs.field(factory=list)
    """Tools of all calls that ever came."""
    cancelled: list[int] = attrs.field(factory=list)
    """Requests that nobody of ours waits for any more."""
    answers: list[dict[str, Any]] = attrs.field(factory=list)
    """To questions of ours."""
    on_call: Callable[[Peer, int], object] = lambda peer, request_id: None

    async def listen(self) -> None:
        async for item in self.hears:
            message = item.message.model_dump(by_alias=True, exclude_unset=True)
            if "method" not in message:
                self.answers.append(message)
            elif "id" in message:
                self._asked(message)
            elif message["method"] == "notifications/cancelled":
                self.cancelled.append(message["params"]["requestId"])

    def _asked(self, message: dict[str, Any]) -> None:
        request_id = message["id"]
        self.requests[request_id] = message
        if message["method"] == "initialize":
            if self.greets:
                self.greet(kindly=True)
        elif message["method"] == "tools/call":
            self.began.append(message["params"]["name"])
            self.on_call(self, request_id)
        elif self.is_well:  # a question of its health, or a wish that is repeated
            self.answer(request_id, {})

    def say(self, message: dict[str, Any]) -> None:
        """Heard by nobody, if nobody listens any more."""
        parsed: JSONRPCMessage = jsonrpc_message_adapter.validate_python(message)
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            self.says.send_nowait(SessionMessage(parsed))

    def answer(self, request_id: int, result: dict[str, Any]) -> None:
        self.requests.pop(request_id, None)
        self.say({"jsonrpc": "2.0", "id": request_id, "result": result})

    def refuse(self, request_id: int) -> None:
        self.requests.pop(request_id, None)
        error = {"code": -32000, "message": "refused"}
        self.say({"jsonrpc": "2.0", "id": request_id, "error": error})

    def greet(self, *, kindly: bool) -> None:
        (hello,) = self.of("initialize")
        if kindly:
            self.greeted = True
            info = {"name": "scripted", "version": "0"}
            version = "2025-11-25"
            result = {"protocolVersion": version, "capabilities": {}, "serverInfo": info}
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
        """Tools of those without an answer."""
        return {i: self.requests[i]["params"]["name"] for i in self.of("tools/call")}


@attrs.define(eq=False)
class Peers:
    """Of all transports that are opened in :meth:`in_place`, in the order of their opening."""

    mood: Mood = "greets"
    """Of the next one."""
    is_well: bool = True
    on_call: Callable[[Peer, int], object] = lambda peer, request_id: None
    all: list[Peer] = attrs.field(factory=list, init=False)
    _pids: Iterator[int] = attrs.field(factory=lambda: itertools.count(1), init=False)

    def open(self, fits: Callable[[Peer], object] = lambda _: True) -> list[Peer]:
        return [peer for peer in self.all if peer.is_open and fits(peer)]

    @contextmanager
    def in_place(self) -> Generator[None]:
        with mock.patch.object(connect, "_open_streams", self._open_streams):
            yield

    @asynccontextmanager
    async def _open_streams(self, server: Server, *_: object) -> AsyncGenerator[Streams]:
        mood, self.mood = self.mood, "greets"
        if mood == "hangs":
            await trio.sleep_forever()
        if mood == "fails":
            raise OSError(11, "cannot be opened today")
        says, reads = anyio.create_memory_object_stream[Item](1000)
        writes, hears = anyio.create_memory_object_stream[SessionMessage](1000)
        child = http = None
        if server.transport == "stdio":
            child = Child(next(self._pids))
        else:
            http = HttpTransport(server, "s", 1000, restricted=False)
        greets = mood == "greets"
        peer = Peer(server, child, http, says, hears, self.is_well, greets, on_call=self.on_call)
        self.all.append(peer)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(peer.listen)
            try:
                yield Streams(reads, writes, process=child, http=http)  # type: ignore[arg-type]  # a scripted one
            finally:
                peer.is_open = False
                if child is not None and child.exit is None:
                    child.exit = Exit(0, None)
                for end in (says, reads, writes, hears):
                    end.close()
                nursery.cancel_scope.cancel("closed")
