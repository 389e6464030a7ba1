"""What a reader of the journal can tell of sessions that it has never seen: from facts alone."""

from __future__ import annotations

from functools import singledispatchmethod

import attrs

from emceepee_trio.journal import Journal, Reader
from emceepee_trio.model import facts
from emceepee_trio.model.facts import Fact
from emceepee_trio.model.states import TaskState

ALL: tuple[type[Fact], ...] = tuple(
    kind
    for kind in vars(facts).values()
    if isinstance(kind, type) and issubclass(kind, Fact) and kind is not Fact
)


@attrs.define(eq=False)
class Replay:
    """Each by its session, and by its own id."""

    noted: list[Fact] = attrs.field(factory=list, init=False)
    sessions: set[str] = attrs.field(factory=set, init=False)
    in_flight: set[tuple[str, str]] = attrs.field(factory=set, init=False)
    working: set[tuple[str, str]] = attrs.field(factory=set, init=False)
    fates: dict[tuple[str, str], TaskState] = attrs.field(factory=dict, init=False)
    kept: set[tuple[str, str]] = attrs.field(factory=set, init=False)
    """Results."""
    questions: dict[tuple[str, str], facts.QuestionOpened] = attrs.field(factory=dict, init=False)

    trying: set[int] = attrs.field(factory=set, init=False)
    up: dict[int, tuple[str, str]] = attrs.field(factory=dict, init=False)
    """By their numbers: session, or what is noted in place of one, and server."""
    sharing: dict[str, str] = attrs.field(factory=dict, init=False)
    """Servers that sessions share, by what is noted in place of one."""
    leases: set[tuple[str, str]] = attrs.field(factory=set, init=False)
    """By what is noted in place of a session, and the sessions that have it."""
    unwell: set[int] = attrs.field(factory=set, init=False)
    children: dict[int, int] = attrs.field(factory=dict, init=False)
    """Pids, by their connections."""
    deliveries: set[int] = attrs.field(factory=set, init=False)
    """Those that nobody knows the end of."""
    streams: set[str] = attrs.field(factory=set, init=False)
    evicted: dict[str, int] = attrs.field(factory=dict, init=False)
    """Messages, by session."""
    _bugs: list[AssertionError] = attrs.field(factory=list, init=False)
    """What was noted that could not be."""

    def reads(self, journal: Journal) -> None:
        journal.add(Reader("replay", self.read, ALL))

    @property
    def is_empty(self) -> bool:
        """Nothing is under way any more."""
        under_way = (self.sessions, self.in_flight, self.working, self.questions)
        shared = (self.sharing, self.leases)
        return not any((*under_way, *shared, self.trying, self.up, self.children, self.deliveries))

    def connected(self) -> list[tuple[str, str]]:
        """To what each session that lives is."""
        found = [up for up in self.up.values() if up[0] in self.sessions]
        for of, server in self.up.values():
            found += [(each, server) for sharing, each in self.leases if sharing == of]
        return [each for each in found if each[0] in self.sessions]

    def check(self) -> None:
        if self._bugs:
            raise self._bugs[0]

    def read(self, fact: Fact) -> None:
        assert fact.session
        self.noted.append(fact)
        try:
            self._read(fact)
        except (AssertionError, KeyError) as bug:
            self._bugs.append(AssertionError(fact, bug))

    @singledispatchmethod
    def _read(self, fact: Fact) -> None:
        """One that changes nothing that is shown here."""

    @_read.register
    def _(self, fact: facts.SessionOpened) -> None:
        assert fact.session not in self.sessions
        self.sessions.add(fact.session)

    @_read.register
    def _(self, fact: facts.SessionEnded) -> None:
        self.sessions.remove(fact.session)

    @_read.register
    def _(self, fact: facts.CallBegun) -> None:
        self.in_flight.add((fact.session, fact.call))

    @_read.register
    def _(self, fact: facts.CallSent) -> None:
        assert (fact.session, fact.call) in self.in_flight | self.working

    @_read.register
    def _(self, fact: facts.CallPromoted) -> None:
        call = fact.session, fact.call
        if call in self.in_flight:
            self.in_flight.remove(call)
            self.working.add(call)
        else:
            assert call in self.fates  # it was over in that very tick

    @_read.register
    def _(self, fact: facts.CallSettled) -> None:
        call = fact.session, fact.call
        (self.working if fact.is_task else self.in_flight).remove(call)
        assert call not in self.fates
        self.fates[call] = fact.fate

    @_read.register
    def _(self, fact: facts.ResultKept) -> None:
        self.kept.add((fact.session, fact.call))

    @_read.register
    def _(self, fact: facts.ResultRead) -> None:
        assert (fact.session, fact.call) in self.kept

    @_read.register
    def _(self, fact: facts.ResultEvicted) -> None:
        self.kept.remove((fact.session, fact.call))

    @_read.register
    def _(self, fact: facts.QuestionOpened) -> None:
        self.questions[fact.session, fact.question] = fact

    @_read.register
    def _(self, fact: facts.QuestionTold) -> None:
        assert (fact.session, fact.question) in self.questions

    @_read.register
    def _(self, fact: facts.QuestionClosed) -> None:
        del self.questions[fact.session, fact.question]

    @_read.register
    def _(self, fact: facts.SharingBegun) -> None:
        assert fact.session not in self.sharing
        self.sharing[fact.session] = fact.server

    @_read.register
    def _(self, fact: facts.SharingSplit) -> None:
        assert self.sharing[fact.session] == fact.server

    @_read.register
    def _(self, fact: facts.SharingOver) -> None:
        assert self.sharing.pop(fact.session) == fact.server

    @_read.register
    def _(self, fact: facts.LeaseTaken) -> None:
        assert self.sharing[fact.sharing] == fact.server
        assert (fact.sharing, fact.session) not in self.leases
        self.leases.add((fact.sharing, fact.session))

    @_read.register
    def _(self, fact: facts.LeaseOver) -> None:
        self.leases.remove((fact.sharing, fact.session))

    @_read.register
    def _(self, fact: facts.ConnectionTrying) -> None:
        assert fact.connection not in self.trying
        self.trying.add(fact.connection)

    @_read.register
    def _(self, fact: facts.ConnectionUp) -> None:
        self.trying.remove(fact.connection)
        self.up[fact.connection] = fact.session, fact.server

    @_read.register
    def _(self, fact: facts.ConnectionDegraded) -> None:
        assert fact.connection in self.up
        self.unwell.add(fact.connection)

    @_read.register
    def _(self, fact: facts.ConnectionRestored) -> None:
        self.unwell.remove(fact.connection)

    @_read.register
    def _(self, fact: facts.ConnectionLost) -> None:
        assert self.up.pop(fact.connection) == (fact.session, fact.server)
        self.unwell.discard(fact.connection)

    @_read.register
    def _(self, fact: facts.ConnectionEnded) -> None:
        assert fact.connection not in self.up
        self.trying.discard(fact.connection)

    @_read.register
    def _(self, fact: facts.ChildStarted) -> None:
        assert fact.connection not in self.children
        self.children[fact.connection] = fact.pid

    @_read.register
    def _(self, fact: facts.ChildEnded) -> None:
        assert self.children.pop(fact.connection) == fact.pid

    @_read.register
    def _(self, fact: facts.DeliveryMade) -> None:
        assert fact.events or fact.lost
        assert fact.delivery not in self.deliveries
        self.deliveries.add(fact.delivery)

    @_read.register(facts.DeliveryHandedOver)
    @_read.register(facts.DeliveryGivenBack)
    @_read.register(facts.DeliveryLost)
    def _(
        self, fact: facts.DeliveryHandedOver | facts.DeliveryGivenBack | facts.DeliveryLost
    ) -> None:
        self.deliveries.remove(fact.delivery)

    @_read.register
    def _(self, fact: facts.StreamOpened) -> None:
        assert fact.stream not in self.streams
        self.streams.add(fact.stream)

    @_read.register
    def _(self, fact: facts.StreamResumed) -> None:
        assert fact.stream in self.streams

    @_read.register
    def _(self, fact: facts.StreamEvicted) -> None:
        assert fact.evicted == self.evicted.get(fact.session, 0) + fact.count
        self.evicted[fact.session] = fact.evicted
