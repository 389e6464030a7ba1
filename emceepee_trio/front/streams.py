"""Streams to clients of the handshake era: logs with cursors.

Every server-to-client stream (the standalone GET stream, the answer of every POST) is an
append-only log; a connection is a reader of one log from a cursor. So replaying what a client
missed and following what is new are the same loop, no window lies between them, and a stream
outlives any number of connections. Knows neither HTTP nor JSON-RPC: entries are text.
"""

from __future__ import annotations

import math
import re
import secrets
from collections import deque
from collections.abc import Callable
from itertools import takewhile

import attrs
import trio

from .. import logs
from ..config.bounds import MAX_STREAM_BYTES, MAX_STREAM_MESSAGES

WRITER_PATIENCE = 30.0
"""Seconds that a writer waits for readers who are behind; then the slowest of them is dropped."""
KEPT = 300.0
"""Seconds that the answers of a finished stream are kept for a client that comes back."""

_EVENT_ID = re.compile(r"(.+)\.(\d{1,15})", re.ASCII)


class UnknownStream(Exception):
    """The id names no stream of this session."""


@attrs.define(eq=False)
class Entry:
    number: int
    data: str
    is_answer: bool
    age: int
    """Among all entries of the session; the lower, the older."""


@attrs.define(eq=False)
class Stream:
    """One log. Numbers start at 1, so 0 is the cursor of somebody who has seen nothing."""

    id: str
    _freed: Callable[[], None]
    """To be called when an entry may go that had to be kept before."""
    entries: deque[Entry] = attrs.field(factory=deque, init=False)
    last: int = attrs.field(default=0, init=False)
    taken: int = attrs.field(default=0, init=False)
    """The newest number that a connection has written, as far as the client has not denied it."""
    behind_since: float = attrs.field(default=0.0, init=False)
    """When there was something to read again, or the reader last took something."""
    finished_at: float = attrs.field(default=math.inf, init=False)
    _generation: int = attrs.field(default=0, init=False)
    _live: bool = attrs.field(default=False, init=False)
    news: trio.Event = attrs.field(factory=trio.Event, init=False)

    @property
    def is_finished(self) -> bool:
        return self.finished_at < math.inf

    @property
    def has_reader(self) -> bool:
        return self._live

    @property
    def is_read(self) -> bool:
        """Whether its oldest entry has been."""
        return bool(self.entries) and self.entries[0].number <= self.taken

    def event_id(self, number: int) -> str:
        return f"{self.id}.{number}"

    def wake(self) -> None:
        news, self.news = self.news, trio.Event()
        news.set()

    def open_reader(self) -> Reader:
        """Read on behind what has been taken; an older reader ends.

        The older one is not waited for: it may sit in a write that nothing can interrupt.
        """
        self._generation += 1
        self._live = True
        self.behind_since = trio.current_time()
        self.wake()
        return Reader(self, self.taken, self._generation)

    def drop_reader(self) -> None:
        self._generation += 1
        self._live = False
        self.wake()
        self._freed()

    def take(self, number: int) -> None:
        """A connection has written everything up to there."""
        self.taken = number
        self.behind_since = trio.current_time()
        self._freed()

    def rewind(self, cursor: int) -> int:
        """The client says that it has nothing behind *cursor*.

        Returns:
            How much of what it should have had is gone, and not counted as evicted before.
        """
        oldest = self.entries[0].number if self.entries else self.last + 1
        gone = max(0, min(self.taken, oldest - 1) - cursor)
        self.taken = max(cursor, oldest - 1)
        return gone


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

    def took(self, entry: Entry) -> None:
        """*entry* is written."""
        self.cursor = entry.number
        if self.is_current:  # else its successor writes it again, or has already
            self.stream.take(entry.number)

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
    """Messages that a client should have had and will not get."""
    _streams: dict[str, Stream] = attrs.field(factory=dict, init=False)
    _finished: dict[str, Stream] = attrs.field(factory=dict, init=False)
    """Those of them that are, the longest finished first."""
    _ages: int = attrs.field(default=0, init=False)
    _count: int = attrs.field(default=0, init=False)
    _bytes: int = attrs.field(default=0, init=False)
    _room: trio.Event = attrs.field(factory=trio.Event, init=False)

    def __attrs_post_init__(self) -> None:
        self.standalone = self.new()

    def new(self) -> Stream:
        self._forget_old()
        stream = Stream(secrets.token_urlsafe(9), self._freed)
        self._streams[stream.id] = stream
        return stream

    def finish(self, stream: Stream) -> None:
        """Nothing more will come."""
        if stream.is_finished:
            return
        stream.finished_at = trio.current_time()
        self._finished[stream.id] = stream
        if not stream.entries:
            self.discard(stream)
        stream.wake()

    def resume(self, last_event_id: str) -> Reader:
        """Read on behind the message with that id or, if it is gone, from the oldest one kept.

        Raises:
            UnknownStream: it names none of ours.
        """
        found = _EVENT_ID.fullmatch(last_event_id)
        stream = self._streams.get(found[1]) if found else None
        if found is None or stream is None or int(found[2]) > stream.last:
            raise UnknownStream(last_event_id)
        self._lost(stream.rewind(int(found[2])))
        return stream.open_reader()

    def add(self, stream: Stream, data: str, *, is_answer: bool = False) -> None:
        """Synchronous: messages are in the order in which they are said, whatever their writers do.

        So the bound is exceeded by what is added before :meth:`wait_for_room` returns.
        """
        if stream.id not in self._streams:
            return  # of a session that has ended
        if stream.taken == stream.last:
            stream.behind_since = trio.current_time()
        stream.last += 1
        self._ages += 1
        stream.entries.append(Entry(stream.last, data, is_answer, self._ages))
        self._count += 1
        self._bytes += len(data)
        stream.wake()

    async def wait_for_room(self) -> None:
        """What a writer does after :meth:`add`. No checkpoint if there is room, as usual."""
        if self._make_room():
            return
        with trio.move_on_after(WRITER_PATIENCE):
            while not self._make_room():
                await self._room.wait()
        while not self._make_room():
            self._drop_slowest_reader()

    def _freed(self) -> None:
        room, self._room = self._room, trio.Event()
        room.set()

    def _make_room(self) -> bool:
        """Evict down to the bounds, but for the newest, however large."""
        while self._count > self.keep or (self._bytes > self.keep_bytes and self._count > 1):
            stream = self._dispensable()
            if stream is None:
                return False
            self._evict(stream)
        return True

    def _dispensable(self) -> Stream | None:
        """The stream whose oldest entry is the next to go; none if all wait for live readers."""
        # Usually the first that has any: this is done for every message once the log is full.
        for stream in self._streams.values():
            if stream.is_read:
                return stream
        idle = [s for s in self._streams.values() if s.entries and not s.has_reader]
        return min(idle, key=lambda s: (s.entries[0].is_answer, s.entries[0].age), default=None)

    def _evict(self, stream: Stream) -> None:
        entry = stream.entries.popleft()
        self._count -= 1
        self._bytes -= len(entry.data)
        if entry.number > stream.taken:
            self._lost(1)
        if stream.is_finished and not stream.entries:
            self.discard(stream)

    def _lost(self, count: int) -> None:
        before, self.evicted = self.evicted, self.evicted + count
        if before.bit_length() != self.evicted.bit_length():  # as it doubles, not once for each
            logs.write("warn", "stream_eviction", session=self.session, evicted=self.evicted)

    def _drop_slowest_reader(self) -> None:
        behind = [s for s in self._streams.values() if s.has_reader and s.taken < s.last]
        logs.write("warn", "slow_reader_dropped", session=self.session)
        min(behind, key=lambda s: s.behind_since).drop_reader()

    def _forget_old(self) -> None:
        old = trio.current_time() - KEPT
        for stream in list(takewhile(lambda s: s.finished_at < old, self._finished.values())):
            self.discard(stream)

    def discard(self, stream: Stream) -> None:
        """Forget it. A reader it has still ends by itself."""
        if self._streams.pop(stream.id, None) is not None:
            self._finished.pop(stream.id, None)
            self._count -= len(stream.entries)
            self._bytes -= sum(len(entry.data) for entry in stream.entries)
            self._freed()

    def start_over(self) -> None:
        """The client has lost every stream: what it has not read goes on in the standalone one.

        But for answers: those stay where they belong, for whoever resumes that stream.
        """
        self.standalone.drop_reader()
        moving: list[Entry] = []
        for stream in [s for s in self._streams.values() if s is not self.standalone]:
            stream.drop_reader()
            unread = [e for e in stream.entries if e.number > stream.taken and not e.is_answer]
            for entry in unread:
                stream.entries.remove(entry)
            moving += unread
            self.finish(stream)
            if not stream.entries:
                self.discard(stream)
        for entry in sorted(moving, key=lambda entry: entry.age):
            self.standalone.last += 1
            self.standalone.entries.append(attrs.evolve(entry, number=self.standalone.last))
        self.standalone.wake()
