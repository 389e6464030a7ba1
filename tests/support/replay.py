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

    _bugs: list[AssertionError] = attrs.field(factory=list, init=False)
    """What was noted that could not be."""

    def reads(self, journal: Journal) -> None:
        journal.add(Reader("replay", self.read, ALL))

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
