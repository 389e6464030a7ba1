"""One stream to a client of the handshake era: a log, its readers, and what its entries tell of.

Knows neither HTTP nor JSON-RPC: entries are text, and may have a delivery, which is handed over
with them or goes back. `streams.py` keeps all of a session within bounds.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

import attrs
import trio

from ...session.events import Delivery
from ...waits.bell import Bell

READ, UNREAD, ANSWER = range(3)
"""Of entries, in the order in which they make room for others."""


@attrs.define(eq=False)
class StreamEntry:
    number: int
    data: str
    is_answer: bool
    age: int
    """Among all entries of the session; the lower, the older."""
    delivery: Delivery | None = None
    """Events that it tells of, as long as they may go back."""
    asks: str | None = None
    """The id of the request of ours that it is."""

    def hand_over(self) -> bool:
        """A connection writes it, now. Whether that settles what becomes of events."""
        delivery, self.delivery = self.delivery, None
        if delivery is None:
            return False
        delivery.commit()
        return True


class Turn(NamedTuple):
    """When a stream's oldest entry makes room; the lowest is the first."""

    rank: int
    age: int
    stream: str


@attrs.define(eq=False)
class Stream:
    """One log. Numbers start at 1, so 0 is the cursor of somebody who has seen nothing."""

    id: str
    _freed: Callable[[Stream], None] = attrs.field(repr=False)
    """To be called when an entry may go that had to be kept before."""
    entries: deque[StreamEntry] = attrs.field(factory=deque, init=False)
    telling: dict[int, StreamEntry] = attrs.field(factory=dict, init=False)
    """Those that tell of events, by their numbers: few, as only answers do."""
    last: int = attrs.field(default=0, init=False)
    taken: int = attrs.field(default=0, init=False)
    """The newest number that a connection has written, as far as the client has not denied it."""
    behind_since: float = attrs.field(default=0.0, init=False)
    """When there was something to read again, or the reader last took something."""
    finished_at: float = attrs.field(default=math.inf, init=False)
    is_known: bool = attrs.field(default=False, init=False)
    """A connection has written an id of it, so that its client can come back for the rest."""
    is_open: bool = attrs.field(default=False, init=False)
    """Its client gets it as a stream, however soon there is an answer."""
    _is_paused: bool = attrs.field(default=False, init=False)
    """Whoever reads it is to come again for the rest, once it can."""
    is_abandoned: bool = attrs.field(default=False, init=False)
    """Its only reader is gone, and no other can come."""
    moved: range = attrs.field(default=range(0), init=False)
    """Numbers of what went on in another stream."""
    lost: range = attrs.field(default=range(0), init=False)
    """Numbers that count as evicted: the last that did, and those before it without a gap."""
    _generation: int = attrs.field(default=0, init=False)
    _live: bool = attrs.field(default=False, init=False)
    news: Bell = attrs.field(factory=Bell, init=False)

    @property
    def is_finished(self) -> bool:
        return self.finished_at < math.inf

    @property
    def has_reader(self) -> bool:
        return self._live

    @property
    def turn(self) -> Turn | None:
        """That of its oldest entry, unless a reader is about to read it."""
        if not self.entries:
            return None
        oldest = self.entries[0]
        if oldest.number <= self.taken:
            return Turn(READ, oldest.age, self.id)
        if self.has_reader:
            return None
        return Turn(ANSWER if oldest.is_answer else UNREAD, oldest.age, self.id)

    @property
    def is_unsettled(self) -> bool:
        """Whether there are events that may go back."""
        return any(entry.delivery is not None for entry in self.telling.values())

    def after(self, number: int) -> StreamEntry | None:
        """The first entry behind that one."""
        if not self.entries or self.entries[-1].number <= number:
            return None
        return self.entries[bisect_right(self.entries, number, key=_number)]

    def event_id(self, number: int) -> str:
        return f"{self.id}.{number}"

    def open_reader(self) -> StreamReader:
        """Read on behind what has been taken; an older reader ends.

        The older one is not waited for: it may sit in a write that nothing can interrupt.
        """
        self._generation += 1
        self._live = True
        self.behind_since = trio.current_time()
        self.news.ring()
        return StreamReader(self, self.taken, self._generation)

    def open(self) -> None:
        """Have it read as a stream."""
        self.is_open = True
        self.news.ring()

    def pause(self) -> None:
        """Have its reader leave, and come again."""
        self.open()
        self._is_paused = True
        if self.is_known:
            self.known()

    def known(self) -> None:
        """Its client has an id of it."""
        self.is_known = True
        if self._is_paused:
            self._is_paused = False
            self.drop_reader()

    def drop_reader(self) -> None:
        self._generation += 1
        self._live = False
        self.news.ring()
        self._freed(self)

    def take(self, number: int) -> None:
        """A connection has written everything up to there."""
        self.taken = number
        self.is_known = True
        self.behind_since = trio.current_time()
        self._freed(self)

    def rewind(self, cursor: int) -> int:
        """The client says that it has nothing behind *cursor*.

        Returns:
            How much of what it should have had is gone, and not counted as evicted before.
        """
        oldest = self.entries[0].number if self.entries else self.last + 1
        gone = range(cursor + 1, min(self.taken, oldest - 1) + 1)
        known = _common(gone, self.moved) + _common(gone, self.lost)
        known -= _common(gone, self.moved, self.lost)
        self.taken = max(cursor, oldest - 1)
        self._lose(range(cursor + 1, oldest))
        return len(gone) - known

    def lose(self, number: int) -> None:
        """It is evicted, and was not read."""
        self._lose(range(number, number + 1))

    def _lose(self, numbers: range) -> None:
        if not numbers:
            return
        is_further = not self.lost or self.lost.stop < numbers.start
        first = numbers.start if is_further else min(self.lost.start, numbers.start)
        self.lost = range(first, numbers.stop)


def _common(*ranges: range) -> int:
    """How many numbers are in all of them."""
    return max(0, min(each.stop for each in ranges) - max(each.start for each in ranges))


def _number(entry: StreamEntry) -> int:
    return entry.number


@attrs.define(eq=False)
class StreamReader:
    """One connection's place in a log."""

    stream: Stream
    cursor: int
    _generation: int

    @property
    def is_current(self) -> bool:
        return self._generation == self.stream._generation

    async def next(self) -> StreamEntry | None:
        """What comes after the cursor; None when there will be nothing more for this reader."""
        await trio.lowlevel.checkpoint()
        while self.is_current:
            if (entry := self.stream.after(self.cursor)) is not None:
                return entry
            if self.stream.is_finished:
                return None
            # No checkpoint between the look and the wait.
            await self.stream.news.wait()
        return None

    def took(self, entry: StreamEntry) -> None:
        """*entry* is written."""
        self.cursor = entry.number
        if self.is_current:  # else its successor writes it again, or has already
            self.stream.take(entry.number)

    def close(self) -> None:
        if self.is_current:
            self.stream.drop_reader()
