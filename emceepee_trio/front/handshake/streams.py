"""Streams to clients of the handshake era: logs with cursors.

Every server-to-client stream (the standalone GET stream, the answer of every POST) is an
append-only log; a connection is a reader of one log from a cursor. So replaying what a client
missed and following what is new are the same loop, no window lies between them, and a stream
outlives any number of connections. One of them is in `stream.py`; here are all of a session, and
how long what they hold is kept.
"""

from __future__ import annotations

import re
import secrets
from collections import OrderedDict
from collections.abc import Callable

import attrs
import trio

from ... import logs
from ...config.bounds import MAX_STREAM_BYTES, MAX_STREAM_MESSAGES
from ...journal import Journal
from ...model import facts
from ...session.events import Delivery
from ...waits.bell import Bell
from .line import Line
from .stream import Stream, StreamEntry, StreamReader

WRITER_PATIENCE = 30.0
"""Seconds that a writer waits for readers who are behind; then the slowest of them is dropped."""
FLOOD = 8
"""Times the messages and bytes that may be kept: with more said than that, writers do not wait.
A few answers may be larger than all that is kept otherwise."""
KEPT = 300.0
"""Seconds that the answers of a finished stream are kept for a client that comes back."""

_EVENT_ID = re.compile(r"(.+)\.(\d{1,15})", re.ASCII)


class UnknownStream(Exception):
    """The id names no stream of this session."""


@attrs.define(eq=False, repr=False)
class Streams:
    """All streams of one session, and the bound on what they hold together."""

    session_id: str
    keep: int = MAX_STREAM_MESSAGES
    keep_bytes: int = MAX_STREAM_BYTES
    on_kept: Callable[[float], None] = lambda due: None
    """Told when :meth:`sweep` is wanted: when events that were not read go back."""
    journal: Journal = attrs.field(factory=Journal)
    standalone: Stream = attrs.field(init=False)
    """What belongs to no request."""
    evicted: int = attrs.field(default=0, init=False)
    """Messages that a client should have had and will not get."""
    _streams: dict[str, Stream] = attrs.field(factory=dict, init=False)
    _finished: OrderedDict[str, Stream] = attrs.field(factory=OrderedDict, init=False)
    """Those of them that are, the longest finished first."""
    _unsettled: OrderedDict[str, Stream] = attrs.field(factory=OrderedDict, init=False)
    """Of these, those that were when they were finished."""
    _line: Line = attrs.field(init=False)
    _prefix: str = attrs.field(factory=lambda: secrets.token_urlsafe(9), init=False)
    """Of the ids of all of them."""
    _made: int = attrs.field(default=0, init=False)
    _ages: int = attrs.field(default=0, init=False)
    _count: int = attrs.field(default=0, init=False)
    _bytes: int = attrs.field(default=0, init=False)
    _room: Bell = attrs.field(factory=Bell, init=False)

    def __attrs_post_init__(self) -> None:
        self._line = Line(self._streams)
        self.standalone = self.new()

    def new(self) -> Stream:
        self.sweep()
        self._made += 1
        stream = Stream(f"{self._prefix}{self._made}", self._freed)
        self._streams[stream.id] = stream
        self.journal.note(facts.StreamOpened, self.session_id, stream.id)
        return stream

    def finish(self, stream: Stream) -> None:
        """Nothing more will come."""
        if stream.is_finished:
            return
        stream.finished_at = trio.current_time()
        self._finished[stream.id] = stream
        if not stream.entries:
            self.discard(stream)
        elif stream.is_unsettled:
            self._unsettled[stream.id] = stream
            self.on_kept(stream.finished_at + KEPT)
        stream.news.ring()

    def abandon(self, stream: Stream) -> None:
        """Its reader is gone, and its client cannot come back if it has no id of it."""
        if not stream.is_known:
            stream.is_abandoned = True
            self._unload(stream)

    def resume(self, last_event_id: str) -> StreamReader:
        """Read on behind the message with that id or, if it is gone, from the oldest one kept.

        Raises:
            UnknownStream: it names none of ours.
        """
        found = _EVENT_ID.fullmatch(last_event_id)
        stream = self._streams.get(found[1]) if found else None
        if found is None or stream is None or int(found[2]) > stream.last:
            raise UnknownStream(last_event_id)
        self.journal.note(facts.StreamResumed, self.session_id, stream.id)
        self._lost(stream.rewind(int(found[2])))
        self._line.join(stream)
        return stream.open_reader()

    def add(
        self,
        stream: Stream,
        data: str,
        *,
        is_answer: bool = False,
        delivery: Delivery | None = None,
        asks: str | None = None,
    ) -> None:
        """Synchronous: messages are in the order in which they are said, whatever their writers do.

        So the bound is exceeded by what is added before :meth:`wait_for_room` returns.
        """
        if stream.id not in self._streams:  # of a session that has ended
            if delivery is not None:
                delivery.give_back()
            return
        if stream.taken == stream.last:
            stream.behind_since = trio.current_time()
        stream.last += 1
        self._ages += 1
        entry = StreamEntry(stream.last, data, is_answer, self._ages, delivery, asks)
        stream.entries.append(entry)
        if delivery is not None:
            stream.telling[entry.number] = entry
        self._line.join(stream)
        self._count += 1
        self._bytes += len(data)
        if stream.is_abandoned:
            self._unload(stream)
        stream.news.ring()

    def unread_requests(self) -> set[str]:
        """Ids of our own that are yet to be read in the standalone stream."""
        unread = (e for e in self.standalone.entries if e.number > self.standalone.taken)
        return {entry.asks for entry in unread if entry.asks is not None}

    async def wait_for_room(self) -> None:
        """What a writer does after :meth:`add`. No checkpoint if there is room, as usual."""
        if self.make_room():
            return
        with trio.move_on_after(WRITER_PATIENCE):
            while not self.make_room() and not self._is_flooded:
                await self._room.wait()
        while not self.make_room():
            self._drop_slowest_reader()

    @property
    def _is_flooded(self) -> bool:
        """Those who wait have said so much that nobody waits any longer."""
        return self._count > FLOOD * self.keep or self._bytes > FLOOD * self.keep_bytes

    def _freed(self, stream: Stream) -> None:
        self._line.join(stream)
        self._room.ring()

    def make_room(self) -> bool:
        """Evict down to the bounds, but for the newest, however large: what a writer does who
        cannot wait. Whether that is done."""
        while self._count > self.keep or (self._bytes > self.keep_bytes and self._count > 1):
            stream = self._line.pop()
            if stream is None:  # all wait for live readers
                return False
            self._evict(stream)
        return True

    def _evict(self, stream: Stream) -> None:
        entry = stream.entries.popleft()
        self._count -= 1
        self._bytes -= len(entry.data)
        stream.telling.pop(entry.number, None)
        if entry.delivery is not None:
            entry.delivery.give_back()
        if entry.number > stream.taken:
            stream.lose(entry.number)
            self._lost(1)
        if stream.is_finished and not stream.entries:
            self.discard(stream)
        self._line.join(stream)

    def _lost(self, count: int) -> None:
        if count:
            self.evicted += count
            self.journal.note(facts.StreamEvicted, self.session_id, count, self.evicted)

    def _drop_slowest_reader(self) -> None:
        behind = [s for s in self._streams.values() if s.has_reader and s.taken < s.last]
        logs.write("warn", "slow_reader_dropped", session=self.session_id)
        min(behind, key=lambda s: s.behind_since).drop_reader()

    def next_due(self) -> float | None:
        """When events go back, unless they are read before."""
        while self._unsettled:
            stream = next(iter(self._unsettled.values()))
            if stream.is_unsettled:
                return stream.finished_at + KEPT
            del self._unsettled[stream.id]
        return None

    def sweep(self) -> None:
        """Forget what was kept long enough."""
        now = trio.current_time()
        while self._finished and next(iter(self._finished.values())).finished_at + KEPT <= now:
            self.discard(self._finished.popitem(last=False)[1])

    def _unload(self, stream: Stream) -> None:
        """What was not handed over goes back; what is left of its entries stays."""
        for entry in stream.telling.values():
            delivery, entry.delivery = entry.delivery, None
            if delivery is None:
                continue
            rest = delivery.without()
            self._bytes += len(rest or "") - len(entry.data)
            if rest is not None:
                entry.data = rest
            else:
                stream.entries.remove(entry)
                self._count -= 1
            delivery.give_back()

    def discard(self, stream: Stream) -> None:
        """Forget it. A reader it has still ends by itself."""
        if self._streams.pop(stream.id, None) is not None:
            self._finished.pop(stream.id, None)
            self._unsettled.pop(stream.id, None)
            self._line.leave(stream)
            self._unload(stream)  # that reader may not have got to it
            self._count -= len(stream.entries)
            self._bytes -= sum(len(entry.data) for entry in stream.entries)
            self._freed(stream)

    def start_over(self) -> None:
        """The client has lost every stream: what it has not read goes on in the standalone one.

        But for answers: those stay where they belong, for whoever resumes that stream; the events
        that they tell of go back.
        """
        self.standalone.drop_reader()
        moving: list[StreamEntry] = []
        for stream in [s for s in self._streams.values() if s is not self.standalone]:
            stream.drop_reader()
            self._unload(stream)
            unread = [e for e in stream.entries if e.number > stream.taken and not e.is_answer]
            if unread:  # all of it in a row: an answer is the last thing that is said
                stream.moved = range(unread[0].number, unread[-1].number + 1)
            for entry in unread:
                stream.entries.remove(entry)
            moving += unread
            self.finish(stream)
            if not stream.entries:
                self.discard(stream)
        for entry in sorted(moving, key=lambda entry: entry.age):
            self.standalone.last += 1
            self.standalone.entries.append(attrs.evolve(entry, number=self.standalone.last))
        self._line.join(self.standalone)
        self.standalone.news.ring()
