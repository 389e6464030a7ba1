"""Streams to clients of the handshake era: logs with cursors.

Every server-to-client stream (the standalone GET stream, the answer of every POST) is an
append-only log; a connection is a reader of one log from a cursor. So replaying what a client
missed and following what is new are the same loop, no window lies between them, and a stream
outlives any number of connections. Knows neither HTTP nor JSON-RPC: entries are text.
"""

from __future__ import annotations

import secrets
from collections import deque
from collections.abc import Iterator

import attrs
import trio

from .. import logs
from ..config.bounds import MAX_STREAM_BYTES, MAX_STREAM_MESSAGES

WRITER_PATIENCE = 30.0
"""Seconds that a full log waits for a reader who is behind; then the reader is dropped."""
KEPT = 300.0
"""Seconds that the answers of a finished stream are kept for a client that comes back."""


class UnknownStream(Exception):
    """The id names no stream of this session."""


@attrs.define(eq=False)
class Entry:
    number: int
    data: str
    is_answer: bool


@attrs.define(eq=False)
class Stream:
    """One log. Numbers start at 1, so 0 is the cursor of somebody who has seen nothing."""

    id: str
    entries: deque[Entry] = attrs.field(factory=deque, init=False)
    last: int = attrs.field(default=0, init=False)
    taken: int = attrs.field(default=0, init=False)
    """The newest number that a connection has written."""
    finished_at: float | None = attrs.field(default=None, init=False)
    evicted: int = attrs.field(default=0, init=False)
    _generation: int = attrs.field(default=0, init=False)
    _live: bool = attrs.field(default=False, init=False)
    news: trio.Event = attrs.field(factory=trio.Event, init=False)

    @property
    def is_finished(self) -> bool:
        return self.finished_at is not None

    @property
    def has_reader(self) -> bool:
        return self._live

    def event_id(self, number: int) -> str:
        return f"{self.id}.{number}"

    def finish(self) -> None:
        """Nothing more will come."""
        if self.finished_at is None:
            self.finished_at = trio.current_time()
            self.wake()

    def wake(self) -> None:
        news, self.news = self.news, trio.Event()
        news.set()

    def open_reader(self, cursor: int | None) -> Reader:
        """Read from *cursor*, or (None) behind what has been taken; an older reader ends.

        The older one is not waited for: it may sit in a write that nothing can interrupt.
        """
        self._generation += 1
        self._live = True
        self.wake()
        return Reader(self, self.taken if cursor is None else cursor, self._generation)

    def drop_reader(self) -> None:
        self._generation += 1
        self._live = False
        self.wake()


@attrs.define(eq=False)
class Reader:
    """One connection's place in a log."""

    stream: Stream
    cursor: int
    _generation: int

    @property
    def is_current(self) -> bool:
        return self._generation == self.stream._generation

    async def next(self) -> Entry | None:
        """What comes after the cursor; None when there will be nothing more for this reader."""
        await trio.lowlevel.checkpoint()
        while self.is_current:
            entry = next((e for e in self.stream.entries if e.number > self.cursor), None)
            if entry is not None:
                return entry
            if self.stream.is_finished:
                return None
            # No checkpoint between the look and the wait.
            await self.stream.news.wait()
        return None

    def took(self, entry: Entry, streams: Streams) -> None:
        """*entry* is written."""
        self.cursor = entry.number
        self.stream.taken = max(self.stream.taken, entry.number)
        streams.made_progress()

    def close(self) -> None:
        if self.is_current:
            self.stream.drop_reader()


@attrs.define(eq=False)
class Streams:
    """All streams of one session, and the bound on what they hold together."""

    session: str
    keep: int = MAX_STREAM_MESSAGES
    keep_bytes: int = MAX_STREAM_BYTES
    standalone: Stream = attrs.field(init=False)
    """What belongs to no request."""
    evicted: int = attrs.field(default=0, init=False)
    _streams: dict[str, Stream] = attrs.field(factory=dict, init=False)
    _count: int = attrs.field(default=0, init=False)
    _bytes: int = attrs.field(default=0, init=False)
    _appending: trio.Lock = attrs.field(factory=trio.Lock, init=False)
    _progress: trio.Event = attrs.field(factory=trio.Event, init=False)

    def __attrs_post_init__(self) -> None:
        self.standalone = self.new()

    def new(self) -> Stream:
        self._forget_old()
        stream = Stream(secrets.token_urlsafe(9))
        self._streams[stream.id] = stream
        return stream

    def find(self, event_id: str) -> tuple[Stream, int]:
        """The stream and cursor that a `Last-Event-ID` names.

        Raises:
            UnknownStream: it names none of ours.
        """
        name, dot, number = event_id.rpartition(".")
        stream = self._streams.get(name)
        if stream is None or not dot or not number.isascii() or not number.isdigit():
            raise UnknownStream(event_id)
        cursor = int(number)
        if cursor > stream.last:
            raise UnknownStream(event_id)
        return stream, cursor

    async def append(self, stream: Stream, data: str, *, is_answer: bool = False) -> None:
        """Add to a log, waiting for readers that are behind if all of it is full."""
        async with self._appending:  # first come, first in the log
            with trio.move_on_after(WRITER_PATIENCE):
                while not self._make_room(len(data)):
                    await self._progress.wait()
            if not self._make_room(len(data)):
                self._drop_slow_readers()
                self._make_room(len(data))
            stream.last += 1
            stream.entries.append(Entry(stream.last, data, is_answer))
            self._count += 1
            self._bytes += len(data)
            stream.wake()

    def made_progress(self) -> None:
        progress, self._progress = self._progress, trio.Event()
        progress.set()

    def _make_room(self, size: int) -> bool:
        while self._count >= self.keep or (self._bytes + size > self.keep_bytes and self._count):
            stream = next(self._evictable(), None)
            if stream is None:
                return False
            self._evict(stream)
        return True

    def _evictable(self) -> Iterator[Stream]:
        """Streams whose oldest entry may go, the most dispensable first."""
        filled = [stream for stream in self._streams.values() if stream.entries]
        yield from (s for s in filled if s.entries[0].number <= s.taken)
        idle = [stream for stream in filled if not stream.has_reader]
        yield from (s for s in idle if not s.entries[0].is_answer)
        yield from idle

    def _evict(self, stream: Stream) -> None:
        entry = stream.entries.popleft()
        self._count -= 1
        self._bytes -= len(entry.data)
        if entry.number > stream.taken:
            stream.evicted += 1
            self.evicted += 1
            logs.write("warn", "stream_eviction", session=self.session, evicted=self.evicted)

    def _drop_slow_readers(self) -> None:
        for stream in self._streams.values():
            if stream.has_reader and stream.taken < stream.last:
                logs.write("warn", "slow_reader_dropped", session=self.session)
                stream.drop_reader()

    def _forget_old(self) -> None:
        old = trio.current_time() - KEPT
        for stream in list(self._streams.values()):
            finished = stream.finished_at
            if finished is not None and (finished < old or not stream.entries):
                self._remove(stream)

    def _remove(self, stream: Stream) -> None:
        del self._streams[stream.id]
        self._count -= len(stream.entries)
        self._bytes -= sum(len(entry.data) for entry in stream.entries)

    def move_unread(self, stream: Stream) -> None:
        """What nobody has read of *stream*, but answers, goes on in the standalone stream."""
        unread = [e for e in stream.entries if e.number > stream.taken and not e.is_answer]
        for entry in unread:
            stream.entries.remove(entry)
            self.standalone.last += 1
            self.standalone.entries.append(Entry(self.standalone.last, entry.data, False))
        stream.finish()
        if unread:
            self.standalone.wake()
