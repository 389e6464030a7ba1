"""Server-sent events, as they come in chunks of bytes. Knows no HTTP and not what events say."""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from collections.abc import Awaitable, Callable, Iterator

import attrs
import trio

from ...config.bounds import MAX_RETRY_MS

BREATH = 100
"""Lines that are gone through in one step."""
LONGEST_ID = 1024
"""Bytes. The server is sent it again in a header; one without an id cannot be resumed at."""

_LINE_END = re.compile(rb"\r\n|\n|\r")
_ID = re.compile(rb"[!-~][ -~]{0,%d}" % (LONGEST_ID - 1))
_RETRY = re.compile(rb"[0-9]{1,9}")


class TooLong(Exception):
    """A line, or the lines of an event."""


@attrs.frozen
class ServerSentEvent:
    kind: str = "message"
    data: bytes | bytearray = b""
    id: bytes = b""
    """By which its server knows where to go on after it, if it has one."""
    retry_ms: int | None = None
    """When, if it says so."""


@attrs.define(eq=False)
class EventStream:
    """Cuts chunks into events of at most *limit* bytes."""

    _limit: int
    _line: bytearray = attrs.field(factory=bytearray, init=False)
    _is_first: bool = attrs.field(default=True, init=False)
    """Of the lines, which may have a mark of byte order in front of it."""
    _after_cr: bool = attrs.field(default=False, init=False)
    """The last chunk ended there: a line feed that comes now is part of the same end."""
    _kind: str = attrs.field(default="", init=False)
    _data: bytearray | None = attrs.field(default=None, init=False)
    _id: bytes = attrs.field(default=b"", init=False)
    _retry_ms: int | None = attrs.field(default=None, init=False)
    _size: int = attrs.field(default=0, init=False)

    def feed(self, chunk: bytes) -> Iterator[ServerSentEvent | None]:
        """The events that end in *chunk*; ``None`` ends a step.

        Raises:
            TooLong: there is more than fits.
        """
        if chunk:
            whole, after_cr = chunk, self._after_cr
            self._after_cr = whole.endswith(b"\r")
            chunk = whole.removeprefix(b"\n") if after_cr else whole
        *ends, beginning = _LINE_END.split(chunk)
        for n, end in enumerate(ends, 1):
            self._line += end
            line, self._line = self._line, bytearray()
            if self._is_first:
                self._is_first = False
                if line.startswith(BOM_UTF8):
                    del line[: len(BOM_UTF8)]
            if not line:
                if (event := self._take_event()) is not None:
                    yield event
            else:
                self._take_line(line)
            if n % BREATH == 0:
                yield None
        self._line += beginning
        self._check_size(len(self._line))

    def _check_size(self, more: int) -> None:
        if self._size + more > self._limit:
            raise TooLong

    def _take_event(self) -> ServerSentEvent | None:
        data, where, when = self._data, self._id, self._retry_ms
        event = ServerSentEvent(self._kind or "message", b"" if data is None else data, where, when)
        is_one = data is not None or bool(where) or when is not None
        self._kind, self._data, self._size = "", None, 0
        self._id, self._retry_ms = b"", None
        return event if is_one else None

    def _take_line(self, line: bytearray) -> None:
        if line.startswith(b"data:"):
            self._check_size(len(line))
            self._size += len(line)
            del line[: 6 if line.startswith(b"data: ") else 5]  # it may be too long for a copy
            self._add(line)
        else:
            self._take_other(bytes(line))

    def _add(self, line: bytearray) -> None:
        """Put to what there is at once: there may be millions of them."""
        if self._data is None:
            self._data = line
        else:
            self._data += b"\n"
            self._data += line

    def _take_other(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._check_size(len(line))
            self._size += len(line)
            self._add(bytearray())
        elif name == b"event":
            self._kind = value[:100].decode(errors="replace")
        elif name == b"id" and _ID.fullmatch(value):
            self._id = value
        elif name == b"retry" and _RETRY.fullmatch(value):
            self._retry_ms = min(int(value), MAX_RETRY_MS)


@attrs.define(eq=False)
class BodyEvents:
    """Of a body that is a stream of them."""

    _next_chunk: Callable[[], Awaitable[bytes]]
    """Of which the last is empty."""
    _stream: EventStream
    _ready: Iterator[ServerSentEvent | None] = attrs.field(factory=lambda: iter(()), init=False)
    """Of the last chunk, that are not handed on yet."""

    async def next(self) -> ServerSentEvent | None:
        """The next one; None if there is no other.

        Raises:
            TooLong: there is more than fits.
        """
        while True:
            for event in self._ready:
                if event is not None:
                    return event
                await trio.lowlevel.checkpoint()
            if not (chunk := await self._next_chunk()):
                return None
            self._ready = self._stream.feed(chunk)
