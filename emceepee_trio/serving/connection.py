"""One HTTP/1.1 connection, and a bound on everything its peer could make it wait for.

What is written is written at once, and waited for only where that does not fit. Knows how long
everything may take, no app, and nothing of what requests look like; that is in `requests.py`.
"""

from __future__ import annotations

import enum
import math
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import TypeAlias

import attrs
import trio

from .. import logs
from .answers import refusal
from .requests import BadRequest, RequestHead, Requests

SEND_PATIENCE = 30.0
"""Seconds that a piece of an answer may take to be sent; then its reader counts as gone."""
PIECE = 256 * 1024
"""Bytes. Longer answers are sent in pieces, so that a slow reader is not taken for a dead one."""
CHUNK = 64 * 1024
"""Bytes that are read at once; and that may come behind a request before it is answered."""

Address: TypeAlias = tuple[str, int]


class Phase(enum.Enum):
    """What the connection waits for."""

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
    """Lives as long as somebody serves it: see `exchange.py`."""

    socket: socket.socket
    """That of the peer; does not block."""
    end: Callable[[], float]
    """The time on trio's clock after which nothing is written; a drain brings it nearer."""
    look: Callable[[float], None]
    """Told of each time at which :meth:`sweep` is wanted."""
    requests: Requests = attrs.field(factory=Requests, init=False)
    phase: Phase = attrs.field(default=Phase.HEAD, init=False)
    due: float = attrs.field(default=math.inf, init=False)
    """When the phase is over, unless something happens first."""
    over: trio.Event = attrs.field(factory=trio.Event, init=False)
    """It is closed."""
    is_deaf: bool = attrs.field(default=False, init=False)
    """The peer says nothing more."""
    is_late: bool = attrs.field(default=False, init=False)
    """The peer has had its time."""
    is_last: bool = attrs.field(default=False, init=False)
    """No request is read behind the one under way."""
    _turn: trio.Lock = attrs.field(factory=trio.Lock, init=False)
    _writing: trio.CancelScope | None = attrs.field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        self._give_time()

    def addresses(self) -> tuple[Address | None, Address | None]:
        """Of the client and of us, if they have some; a client that is gone has none."""
        if self.socket.family == socket.AF_UNIX:
            return None, None
        try:
            client = self.socket.getpeername()[:2]
        except OSError:
            client = None
        return client, self.socket.getsockname()[:2]

    async def next(self) -> RequestHead | None:
        """The next request; None if there is none, or none that could be served."""
        try:
            while (request := self.requests.next()) is None:
                if self.requests.waiting:
                    self.enter(Phase.HEAD)
                if not await self.read():
                    if self.requests.waiting:
                        raise BadRequest(400 if self.is_deaf else 408)
                    return None
        except BadRequest as bad:
            await self.refuse(bad.status)
            return None
        self.enter(Phase.ANSWER)
        return request

    def enter(self, phase: Phase) -> None:
        if phase is not self.phase:
            self.phase, self.is_late = phase, False
            self._give_time()

    def _give_time(self) -> None:
        patience = PATIENCE[self.phase]
        self.due = math.inf
        if patience < math.inf:
            self.due = trio.current_time() + patience
            self.look(self.due)

    def sweep(self, now: float) -> None:
        """Have who waits for the peer give up, if it has had its time."""
        if self.due <= now:
            self.due, self.is_late = math.inf, True
            if not self.over.is_set():
                trio.lowlevel.notify_closing(self.socket)

    async def read(self) -> bool:
        """Whether more has come, in time and before the end."""
        data = await self._receive()
        if data:
            self.requests.feed(data)
        return bool(data)

    async def _receive(self) -> bytes:
        if self.is_deaf or self.is_late or self.over.is_set():
            return b""
        data = b""
        try:
            data = await self._recv()
        except (OSError, trio.ClosedResourceError):
            pass
        self.is_deaf = not data and not self.is_late
        return data

    def hear(self) -> None:
        """Take what has come by now. No checkpoint."""
        try:
            data = self.socket.recv(CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        self.requests.feed(data)
        self.is_deaf = not data

    async def _recv(self) -> bytes:
        while True:
            await trio.lowlevel.wait_readable(self.socket)
            try:
                return self.socket.recv(CHUNK)
            except BlockingIOError:
                pass  # the kernel has thought better of it

    async def refuse(self, status: int) -> None:
        """Say what is wrong, and nothing more."""
        self.is_last = True
        await self.write(refusal(status, is_head=self.requests.is_head))

    async def write(self, data: bytes) -> None:
        """All of it; a peer that does not read it is cut.

        No checkpoint if it fits into what the kernel keeps.
        """
        if not self._turn.locked() and not self.over.is_set():
            data = data[self._send(data) :]
        if data and not self.over.is_set():
            await self._write_slowly(memoryview(data))

    def _send(self, data: bytes | memoryview) -> int:
        try:
            return self.socket.send(data)
        except BlockingIOError:
            return 0
        except OSError:
            self.cut()
            return len(data)

    async def _write_slowly(self, data: memoryview) -> None:
        # Shielded, because half of an answer cannot be taken back; bounded, because of stalled
        # readers.
        with trio.CancelScope(shield=True) as scope:
            async with self._turn:
                self._writing = scope
                try:
                    for start in range(0, len(data), PIECE):
                        scope.deadline = min(trio.current_time() + SEND_PATIENCE, self.end())
                        piece = data[start : start + PIECE]
                        while piece and not self.over.is_set():
                            with suppress(trio.ClosedResourceError):  # or a body is late
                                await trio.lowlevel.wait_writable(self.socket)
                            piece = piece[self._send(piece) :]
                finally:
                    self._writing = None
        if scope.cancelled_caught:
            logs.often("info", "http_reader_stalled", sums={"count": 1})
            self.cut()

    async def hang_up(self) -> None:
        """Our side is done; the peer may be in the middle of something."""
        if self.is_deaf or self.over.is_set():
            return
        if self.requests.is_whole and not self.requests.waiting:
            return
        self.enter(Phase.LAST_BYTES)
        try:
            self.socket.shutdown(socket.SHUT_WR)
        except OSError:
            return
        while await self._receive():
            pass

    def cut(self) -> None:
        """Close it without another word. Synchronous."""
        if not self.over.is_set():
            self.over.set()
            trio.lowlevel.notify_closing(self.socket)
            self.socket.close()

    def drain(self) -> None:
        """From now on only what is under way is finished, until the end at most."""
        self.is_last = True
        if self.phase in (Phase.IDLE, Phase.HEAD):
            self.cut()
        if self._writing is not None:
            self._writing.deadline = min(self._writing.deadline, self.end())
