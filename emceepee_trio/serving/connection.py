"""One HTTP/1.1 connection, and a bound on everything its peer could make it wait for.

hypercorn's protocol (`http1.py`) turns bytes into requests and answers into bytes. Its `TCPServer`
is not used: its writes are shielded and unbounded, so that one reader who stops reading keeps it
for ever; its queue of body parts blocks an app that answers without reading them; and its idle
task is started and cancelled with every request. Here the socket is read by one task, under one
cancel scope whose deadline follows what is waited for. The apps of the requests run beside it.
"""

from __future__ import annotations

import enum
import math
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import attrs
import h11
import trio
from hypercorn.config import Config
from hypercorn.events import Closed, Event, RawData, Updated
from hypercorn.trio.worker_context import WorkerContext
from hypercorn.utils import parse_socket_addr

from .. import logs
from ..waits.firewall import Firewall
from .asgi import App, Message, Scope
from .http1 import Http1

SEND_PATIENCE = 30.0
"""Seconds that a piece of an answer may take to be sent; then its reader counts as gone."""
PIECE = 256 * 1024
"""Bytes. Longer answers are sent in pieces, so that a slow reader is not taken for a dead one."""
CHUNK = 64 * 1024
PARTS = 16
"""Parts of a body that may wait for the app; with more, the peer has to."""


class Phase(enum.Enum):
    """What the reading task waits for."""

    HEAD = "head"
    BODY = "body"
    ANSWER = "answer"
    """Ours, that is; only the end of the connection may be read meanwhile."""
    IDLE = "idle"
    """The next request, if there is one."""
    LAST_BYTES = "last_bytes"
    """The peer still sends, although it has been told off; a reset could take that from it."""


PATIENCE = {
    Phase.HEAD: 30.0,
    Phase.BODY: 30.0,
    Phase.ANSWER: math.inf,
    Phase.IDLE: 75.0,
    Phase.LAST_BYTES: 2.0,
}
"""Seconds each phase may take. When a head or a body is late, that is answered with 408."""


@attrs.define(eq=False)
class Connection:
    """Lives as long as :meth:`run`."""

    stream: trio.SocketStream
    app: App
    config: Config
    context: WorkerContext
    end: Callable[[], float]
    """The time on trio's clock after which nothing is written; a drain brings it nearer."""
    phase: Phase = attrs.field(default=Phase.HEAD, init=False)
    is_over: bool = attrs.field(default=False, init=False)
    """Nothing is written any more, and what is read is thrown away."""
    _protocol: Http1 = attrs.field(init=False)
    _requests: trio.Nursery = attrs.field(init=False)
    _reading: trio.CancelScope = attrs.field(init=False)
    _writing: trio.CancelScope | None = attrs.field(default=None, init=False)
    _turn: trio.Lock = attrs.field(factory=trio.Lock, init=False)

    def __attrs_post_init__(self) -> None:
        self._reading = trio.CancelScope(deadline=trio.current_time() + PATIENCE[self.phase])

    @property
    def due(self) -> float:
        """When it is closed, unless something happens first."""
        return self._reading.deadline

    async def run(self) -> None:
        try:
            with Firewall("connection_crashed"):
                async with trio.open_nursery() as self._requests:
                    self._protocol = self._new_protocol()
                    with self._reading:
                        await self._read()
                    if not self.is_over:
                        await self._late()
                    await self._protocol.handle(Closed())
        finally:
            self.cut()

    def _new_protocol(self) -> Http1:
        sock = self.stream.socket
        try:
            peer = parse_socket_addr(sock.family, sock.getpeername())
        except OSError:
            peer = None  # it is gone already, as reading will tell
        return Http1(self, peer, parse_socket_addr(sock.family, sock.getsockname()))

    async def _read(self) -> None:
        try:
            while data := await self.stream.receive_some(CHUNK):
                if not self.is_over:
                    await self._protocol.handle(RawData(bytes(data)))
                    self._look()
            if not self.is_over:
                await self._protocol.handle(RawData(b""))
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass

    def _look(self) -> None:
        """What is to come next, now that everything read has been handled."""
        http = self._protocol.connection
        if http.their_state is h11.SEND_BODY:
            self._enter(Phase.BODY)
        elif http.their_state is h11.IDLE:
            if self.phase is not Phase.HEAD and http.trailing_data[0]:
                self._enter(Phase.HEAD)
        elif self.phase is Phase.BODY:
            self._enter(Phase.ANSWER)

    def _enter(self, phase: Phase) -> None:
        if phase is not self.phase and self.phase is not Phase.LAST_BYTES:
            self.phase = phase
            self._reading.deadline = trio.current_time() + PATIENCE[phase]

    async def _late(self) -> None:
        """The peer took too long; it is told so if it had begun with something."""
        begun = self.phase is Phase.HEAD and self._protocol.connection.trailing_data[0]
        if self._reading.cancelled_caught and (begun or self.phase is Phase.BODY):
            await self._protocol.refuse(408)

    # What the protocol above calls.

    async def send(self, event: Event) -> None:
        match event:
            case RawData(data=data):
                await self._write(data)
            case Closed():
                await self._hang_up()
            case Updated(idle=idle):
                self._enter(Phase.IDLE if idle else Phase.ANSWER)

    async def _write(self, data: bytes) -> None:
        # Shielded, because half of an answer cannot be taken back; bounded, because of stalled
        # readers. All of it, because the protocol believes that what it gave us has been sent.
        with trio.CancelScope(shield=True) as writing:
            try:
                self._turn.acquire_nowait()
            except trio.WouldBlock:
                await self._turn.acquire()
            self._writing = writing
            try:
                for start in range(0, len(data), PIECE):
                    now = trio.current_time()
                    writing.deadline = min(now + SEND_PATIENCE, self.end())
                    await self.stream.send_all(data[start : start + PIECE])
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                self.cut()
            finally:
                self._writing = None
                self._turn.release()
        if writing.cancelled_caught:
            logs.often("info", "http_reader_stalled", sums={"count": 1})
            self.cut()
        if self.is_over:
            await self._protocol.handle(Closed())

    async def _hang_up(self) -> None:
        """Our side is done; the peer may be in the middle of something."""
        if self.is_over:
            return
        self.is_over = True
        if self._protocol.connection.their_state in (h11.SEND_BODY, h11.ERROR):
            self._enter(Phase.LAST_BYTES)
            try:
                self.stream.socket.shutdown(socket.SHUT_WR)
            except OSError:
                self.cut()
        else:
            self.cut()
        await self._protocol.handle(Closed())

    def cut(self) -> None:
        """Close it without another word. Synchronous."""
        self.is_over = True
        self.stream.socket.close()
        self._reading.cancel("closed")

    def drain(self) -> None:
        """From now on only what is under way is finished, until the end at most."""
        if self.phase in (Phase.IDLE, Phase.HEAD):
            self.cut()
        if self._writing is not None:
            self._writing.deadline = min(self._writing.deadline, self.end())

    async def spawn_app(
        self, app: object, config: Config, scope: Scope, send: Callable[[Any], Awaitable[None]]
    ) -> Callable[[Message], Awaitable[None]]:
        """A request has come; what is returned takes its body. As of a hypercorn TaskGroup."""
        inbox = _Inbox()
        self._requests.start_soon(self._serve, scope, inbox, send)
        return inbox.put

    async def _serve(
        self, scope: Scope, inbox: _Inbox, send: Callable[[Any], Awaitable[None]]
    ) -> None:
        with inbox.reads:
            await self.app(scope, inbox.receive, send)
        await send(None)


class _Inbox:
    """The body of a request, on its way to the app that may or may not read it.

    As a rule all of it is there at once. Then neither side waits, which saves four task switches.
    """

    def __init__(self) -> None:
        self.writes, self.reads = trio.open_memory_channel[Message](PARTS)

    async def put(self, message: Message) -> None:
        """Waits for the app, but never to tell it of the end."""
        if message["type"] == "http.disconnect":
            self.writes.close()
            return
        try:
            self.writes.send_nowait(message)
        except trio.WouldBlock:
            with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
                await self.writes.send(message)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass  # it has answered already

    async def receive(self) -> Message:
        try:
            return self.reads.receive_nowait()
        except trio.WouldBlock:
            pass
        except trio.EndOfChannel:
            return await self._end()
        try:
            return await self.reads.receive()
        except trio.EndOfChannel:
            return {"type": "http.disconnect"}

    async def _end(self) -> Message:
        # An app may ask for ever.
        await trio.lowlevel.checkpoint()
        return {"type": "http.disconnect"}
