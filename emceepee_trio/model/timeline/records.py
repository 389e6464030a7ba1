"""The facts that are kept: of each session, and for a while of those that have just ended.

What is noted of a connection that sessions share is kept with each of them, for as long as it has
it; with who comes later, beginning with the connections that there are by then.

To tell one costs an append, because whoever notes it is in the middle of something; all that can be
known of them is worked out when somebody looks. There is room for so many of one session, and for
so many of all. Who has none left is thinned to half of that, so that it costs little for each.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator
from typing import Any

import attrs

from ..facts import (
    CallBegun,
    ConnectionDegraded,
    ConnectionEnded,
    ConnectionLeft,
    ConnectionRestored,
    Fact,
    LeaseOver,
    LeaseTaken,
    QuestionOpened,
    SessionEnded,
    SessionOpened,
    SharingBegun,
    SharingOver,
    Tallied,
    TimerSet,
)
from ..json.intake import Steps
from .replay import TOLD, Timeline
from .thinning import heft, heft_of, thinned

MAX_ENDED = 100
"""Sessions that have ended and are still shown; the oldest is forgotten."""
ENDED = 900.0
"""Seconds for which one is."""
MAX_TALLIED = 1000
"""Servers of a session of which it is kept what they cost; the others are counted together."""
OTHERS = ""
"""No server is called that."""
STEP = 500
"""Facts that are looked at before others have their turn."""
WORK = (CallBegun, QuestionOpened, TimerSet)
"""What a session has done that has done anything."""


@attrs.define(eq=False)
class Record:
    """Of one session."""

    id: str
    principal: str
    opened_at: float
    noted: list[Fact] = attrs.field(factory=list)
    heft: int = 0
    dropped: int = 0
    """Facts there was no room for."""
    ended_at: float | None = None
    told: dict[str, tuple[int, int]] = attrs.field(factory=dict, init=False)
    """By server: bytes of definitions and of results that its client's model had to read."""

    @property
    def has_worked(self) -> bool:
        return self.dropped > 0 or any(isinstance(fact, WORK) for fact in self.noted)

    @property
    def timeline(self) -> Timeline:
        return Timeline.of(self.noted)

    def replayed(self) -> Steps[Timeline]:
        """The same, in steps."""
        timeline = Timeline()
        for number, fact in enumerate(tuple(self.noted), 1):
            timeline.tell(fact)
            if number % STEP == 0:
                yield
        return timeline


@attrs.define(eq=False)
class _Shared:
    """A server that sessions have together."""

    sessions: dict[str, None] = attrs.field(factory=dict)
    """Their ids."""
    connections: dict[int, list[Fact]] = attrs.field(factory=dict)
    """Those that there are, by their numbers."""

    def tell(self, fact: Any) -> None:
        if isinstance(fact, ConnectionEnded):
            self.connections.pop(fact.connection, None)
            return
        noted = self.connections.setdefault(fact.connection, [])
        if isinstance(fact, ConnectionRestored):  # else there is no end of them
            noted[:] = [each for each in noted if not isinstance(each, HEALTH)]
        noted.append(fact)


HEALTH = (ConnectionDegraded, ConnectionRestored)


@attrs.define(eq=False)
class Records:
    """Of all sessions that live, or have just ended."""

    most: int
    """The heft of one."""
    most_in_all: int
    heft: int = attrs.field(default=0, init=False)
    dropped: int = attrs.field(default=0, init=False)
    idle: int = attrs.field(default=0, init=False)
    """Sessions that have ended and done nothing, which are only counted."""
    _records: dict[str, Record] = attrs.field(factory=dict, init=False)
    _turns: OrderedDict[str, None] = attrs.field(factory=OrderedDict, init=False)
    """Who is looked at next, if there are too many in all."""
    _ended: OrderedDict[str, Record] = attrs.field(factory=OrderedDict, init=False)
    """Oldest first."""
    _shared: dict[str, _Shared] = attrs.field(factory=dict, init=False)
    """By the ids that are noted in place of a session's."""

    def readers(self) -> Iterator[tuple[Callable[[Any], None], Collection[type[Fact]]]]:
        """What is to be called with which kinds of facts."""
        if self.most:
            yield self.opened, (SessionOpened,)
            yield self.ended, (SessionEnded,)
            yield self.begun, (CallBegun,)
            yield self.tallied, (Tallied,)
            yield self.sharing, (SharingBegun, SharingOver)
            yield self.lease_taken, (LeaseTaken,)
            yield self.lease_over, (LeaseOver,)
            yield self.tell, TOLD.keys() - {SessionOpened, SessionEnded, CallBegun}

    def tell(self, fact: Fact) -> None:
        shared = self._shared.get(fact.session)
        if shared is None:
            self._keep(fact.session, fact)
            return
        for session in shared.sessions:
            self._keep(session, fact)
        shared.tell(fact)

    def _keep(self, session: str, fact: Fact) -> None:
        record = self._records.get(session)
        if record is not None:  # else it has been forgotten
            record.noted.append(fact)
            record.heft += 1
            self.heft += 1
            if record.heft > self.most or self.heft > self.most_in_all:
                self._make_room(record)

    def sharing(self, fact: SharingBegun | SharingOver) -> None:
        if isinstance(fact, SharingBegun):
            self._shared[fact.session] = _Shared()
        else:
            self._shared.pop(fact.session, None)

    def lease_taken(self, fact: LeaseTaken) -> None:
        if (shared := self._shared.get(fact.sharing)) is not None:
            shared.sessions[fact.session] = None
            for noted in shared.connections.values():
                for each in noted:
                    self._keep(fact.session, each)

    def lease_over(self, fact: LeaseOver) -> None:
        shared = self._shared.get(fact.sharing)
        if shared is not None and fact.session in shared.sessions:
            del shared.sessions[fact.session]
            for number in shared.connections:
                left = ConnectionLeft(fact.at, fact.session, fact.server, number)
                self._keep(fact.session, left)

    def begun(self, fact: CallBegun) -> None:
        """The name of its tool is as long as its client likes."""
        record = self._records.get(fact.session)
        if record is not None:
            more = heft(fact) - 1
            record.heft += more
            self.heft += more
            self.tell(fact)

    def tallied(self, fact: Tallied) -> None:
        """Only what it comes to is kept."""
        if (record := self._records.get(fact.session)) is not None:
            known = fact.server in record.told or len(record.told) < MAX_TALLIED
            name = fact.server if known else OTHERS
            definitions, results = record.told.get(name, (0, 0))
            record.told[name] = definitions + fact.definitions, results + fact.results

    def opened(self, fact: SessionOpened) -> None:
        self.forget(fact.at)
        if (before := self._records.get(fact.session)) is not None:  # named by its clients
            self._remove(before)
        self._records[fact.session] = Record(fact.session, fact.principal, fact.at)
        self._turns[fact.session] = None
        self.tell(fact)

    def ended(self, fact: SessionEnded) -> None:
        self.tell(fact)
        self.forget(fact.at)
        if (record := self._records.get(fact.session)) is None:
            return
        record.ended_at = fact.at
        if record.has_worked:
            self._ended[record.id] = record
            if len(self._ended) > MAX_ENDED:
                self._remove(next(iter(self._ended.values())))
        else:
            self.idle += 1
            self._remove(record)

    def forget(self, now: float) -> None:
        """Those that ended long ago."""
        while self._ended:
            oldest = next(iter(self._ended.values()))
            if oldest.ended_at is None or oldest.ended_at + ENDED > now:
                break
            self._remove(oldest)

    def get(self, session_id: str) -> Record | None:
        return self._records.get(session_id)

    def __iter__(self) -> Iterator[Record]:
        """Those that live in the order of their beginning, then those that have ended."""
        yield from (record for record in self._records.values() if record.ended_at is None)
        yield from self._ended.values()

    def _remove(self, record: Record) -> None:
        del self._records[record.id]
        self._turns.pop(record.id, None)
        self._ended.pop(record.id, None)
        self.heft -= record.heft

    def _make_room(self, record: Record) -> None:
        if record.heft > self.most:
            self._thin(record, self.most // 2)
        while self.heft > self.most_in_all and self._ended:
            self._remove(next(iter(self._ended.values())))
        for _ in range(2 * len(self._turns)):  # what sessions are called stays, however many
            if self.heft <= self.most_in_all:
                break
            # In turns, but who has less than others keeps it.
            turn = self._records[next(iter(self._turns))]
            self._turns.move_to_end(turn.id)
            if turn.heft * len(self._turns) >= self.heft:
                self._thin(turn, turn.heft // 2)

    def _thin(self, record: Record, most: int) -> None:
        kept = thinned(record.noted, most)
        count, weight = len(record.noted) - len(kept), heft_of(kept)
        self.heft += weight - record.heft
        record.dropped += count
        self.dropped += count
        record.noted, record.heft = kept, weight
