"""The facts of a session, replayed: what each of its rows was in, when that began and ended.

Theory of operation. What a call waits for follows from facts of others, too: one that is not sent
yet waits for its server, which may wait for its turn to start; one that is sent waits for a
question, while one of it is open. So whatever a fact changes is looked at anew, and a phase that
has changed begins another span.

Facts of what is not known (its beginning was dropped) change nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import attrs

from .. import facts
from ..facts import Fact
from .rows import UNDER_WAY, Kind, Phase, Row


@attrs.define(eq=False)
class _Call:
    """One that is not settled."""

    row: Row
    is_sent: bool = False
    is_queued: bool = False
    questions: set[str] = attrs.field(factory=set)
    """Those that are open."""


@attrs.define(eq=False)
class _Server:
    """Its connections, by their numbers."""

    trying: set[int] = attrs.field(factory=set)
    queued: set[int] = attrs.field(factory=set)
    """Of those."""
    up: set[int] = attrs.field(factory=set)
    was_up: bool = False


@attrs.define(eq=False)
class Timeline:
    """Of one session, as far as its facts are told."""

    principal: str = ""
    client: str = "unknown client"
    opened_at: float | None = None
    ended_at: float | None = None
    why_ended: str | None = None
    rows: dict[tuple[Kind, str], Row] = attrs.field(factory=dict, init=False)
    """In the order of their beginning."""
    concerned: dict[str, list[str]] = attrs.field(factory=lambda: defaultdict(list), init=False)
    """Calls that may have waited for a question, by its id."""
    _calls: dict[str, _Call] = attrs.field(factory=dict, init=False)
    _servers: dict[str, _Server] = attrs.field(factory=lambda: defaultdict(_Server), init=False)

    @classmethod
    def of(cls, noted: Iterable[Fact]) -> Timeline:
        timeline = cls()
        for fact in noted:
            timeline.tell(fact)
        return timeline

    def tell(self, fact: Fact) -> None:
        TOLD[type(fact)](self, fact)

    def get(self, kind: Kind, name: str | int) -> Row | None:
        return self.rows.get((kind, str(name)))

    # What facts have in common.

    def _begins(self, row: Row, fact: Fact) -> Row:
        self.rows[row.kind, row.id] = row
        row.facts.append(fact)
        return row

    def _known(self, kind: Kind, name: str | int, fact: Fact) -> Row | None:
        row = self.get(kind, name)
        if row is not None:
            row.facts.append(fact)
        return row

    def _look(self, call: _Call, at: float) -> None:
        call.row.enters(self._phase(call), at)

    def _phase(self, call: _Call) -> Phase:
        if call.is_sent:
            return "question" if call.questions else "server"
        server = self._servers[call.row.server]
        if call.is_queued or (server.queued and server.queued == server.trying):
            return "turn"
        if server.up:
            return "preparation"
        return "reconnection" if server.was_up else "connection"

    def _look_at_server(self, name: str, at: float) -> None:
        for call in self._calls.values():
            if call.row.server == name and not call.is_sent:
                self._look(call, at)

    # The session.

    def _session_opened(self, fact: facts.SessionOpened) -> None:
        self.principal, self.opened_at = fact.principal, fact.at

    def _session_named(self, fact: facts.SessionNamed) -> None:
        self.client = fact.client

    def _session_ended(self, fact: facts.SessionEnded) -> None:
        self.ended_at, self.why_ended = fact.at, fact.reason
        for row in self.rows.values():
            if row.kind == "timer":
                row.is_over("ended", fact.at)

    # Calls.

    def _call_begun(self, fact: facts.CallBegun) -> None:
        row = Row("call", fact.call, fact.server, fact.tool, fact.at, fact.within)
        call = self._calls[fact.call] = _Call(self._begins(row, fact))
        self._look(call, fact.at)

    def _call_moved(
        self, fact: facts.CallQueued | facts.CallSent | facts.CallReturned | facts.CallAsked
    ) -> None:
        self._known("call", fact.call, fact)
        if (call := self._calls.get(fact.call)) is None:
            return
        match fact:
            case facts.CallAsked():
                if self.get("question", fact.question) is None:
                    return
                self.concerned[fact.question].append(fact.call)
                call.questions.add(fact.question)
            case _:
                call.is_queued = isinstance(fact, facts.CallQueued)
                call.is_sent = isinstance(fact, facts.CallSent)
        self._look(call, fact.at)

    def _call_settled(self, fact: facts.CallSettled) -> None:
        if (row := self._known("call", fact.call, fact)) is not None:
            self._calls.pop(fact.call, None)
            row.is_over("error" if fact.is_error else fact.fate.value, fact.at)

    def _call_noted(
        self,
        fact: facts.CallPromoted | facts.ResultKept | facts.ResultRead | facts.ResultEvicted,
    ) -> None:
        self._known("call", fact.call, fact)

    def _result_told(self, fact: facts.ResultTold) -> None:
        if (row := self._known("call", fact.call, fact)) is not None:
            row.told_bytes += fact.size

    # Questions.

    def _question_opened(self, fact: facts.QuestionOpened) -> None:
        row = Row("question", fact.question, fact.server, fact.kind, fact.at)
        self._begins(row, fact).enters("tools", fact.at)

    def _question_moved(
        self, fact: facts.QuestionTold | facts.QuestionRelayed | facts.QuestionLeft
    ) -> None:
        row = self._known("question", fact.question, fact)
        if row is not None and not isinstance(fact, facts.QuestionTold):
            is_relayed = isinstance(fact, facts.QuestionRelayed)
            row.enters("client" if is_relayed else "tools", fact.at)

    def _question_closed(self, fact: facts.QuestionClosed) -> None:
        if (row := self._known("question", fact.question, fact)) is None:
            return
        row.is_over(fact.state.value, fact.at)
        for name in self.concerned.get(fact.question, ()):
            if (call := self._calls.get(name)) is not None:
                call.questions.discard(fact.question)
                self._look(call, fact.at)

    # Connections, and the programs behind them.

    def _connection_trying(self, fact: facts.ConnectionTrying) -> None:
        row = Row("connection", str(fact.connection), fact.server, "connection", fact.at)
        self._begins(row, fact).enters("trying", fact.at)
        self._servers[fact.server].trying.add(fact.connection)
        self._look_at_server(fact.server, fact.at)

    def _connection_moved(
        self,
        fact: facts.ConnectionQueued
        | facts.ConnectionStarting
        | facts.ConnectionUp
        | facts.ConnectionDegraded
        | facts.ConnectionRestored
        | facts.ConnectionLost
        | facts.ConnectionLeft
        | facts.ConnectionEnded,
    ) -> None:
        if (row := self._known("connection", fact.connection, fact)) is None:
            return
        server, number = self._servers[fact.server], fact.connection
        match fact:
            case facts.ConnectionQueued():
                server.queued.add(number)
                row.enters("turn", fact.at)
            case facts.ConnectionStarting():
                server.queued.discard(number)
                row.enters("trying", fact.at)
            case facts.ConnectionUp():
                server.trying.discard(number)
                server.queued.discard(number)
                server.up.add(number)
                server.was_up = True
                row.enters("up", fact.at)
            case facts.ConnectionDegraded():
                row.enters("unwell", fact.at)
            case facts.ConnectionRestored():
                row.enters("up", fact.at)
            case facts.ConnectionLost():
                server.up.discard(number)
                row.enters("closing", fact.at)
                row.outcome = "left" if fact.is_ours else "lost"
            case facts.ConnectionEnded() | facts.ConnectionLeft():
                for numbers in (server.trying, server.queued, server.up):
                    numbers.discard(number)
                unknown = "not made" if isinstance(fact, facts.ConnectionEnded) else "left"
                row.is_over(unknown if row.outcome == UNDER_WAY else row.outcome, fact.at)
        self._look_at_server(fact.server, fact.at)

    def _child_noted(self, fact: facts.ChildStarted | facts.ChildEnded) -> None:
        if (row := self._known("connection", fact.connection, fact)) is not None:
            row.name = f"program {fact.pid}"

    # Timers.

    def _timer_set(self, fact: facts.TimerSet) -> None:
        row = Row("timer", fact.timer, "", "interval" if fact.repeats else "timer", fact.at)
        self._begins(row, fact).enters("time", fact.at)

    def _timer_fired(self, fact: facts.TimerFired) -> None:
        self._known("timer", fact.timer, fact)

    def _timer_ended(self, fact: facts.TimerEnded) -> None:
        if (row := self._known("timer", fact.timer, fact)) is not None:
            row.is_over(fact.status, fact.at)


TOLD: Mapping[type[Fact], Callable[[Timeline, Any], None]] = {
    facts.SessionOpened: Timeline._session_opened,
    facts.SessionNamed: Timeline._session_named,
    facts.SessionEnded: Timeline._session_ended,
    facts.CallBegun: Timeline._call_begun,
    facts.CallQueued: Timeline._call_moved,
    facts.CallSent: Timeline._call_moved,
    facts.CallReturned: Timeline._call_moved,
    facts.CallAsked: Timeline._call_moved,
    facts.CallPromoted: Timeline._call_noted,
    facts.CallSettled: Timeline._call_settled,
    facts.ResultKept: Timeline._call_noted,
    facts.ResultRead: Timeline._call_noted,
    facts.ResultTold: Timeline._result_told,
    facts.ResultEvicted: Timeline._call_noted,
    facts.QuestionOpened: Timeline._question_opened,
    facts.QuestionTold: Timeline._question_moved,
    facts.QuestionRelayed: Timeline._question_moved,
    facts.QuestionLeft: Timeline._question_moved,
    facts.QuestionClosed: Timeline._question_closed,
    facts.ConnectionTrying: Timeline._connection_trying,
    facts.ConnectionQueued: Timeline._connection_moved,
    facts.ConnectionStarting: Timeline._connection_moved,
    facts.ConnectionUp: Timeline._connection_moved,
    facts.ConnectionDegraded: Timeline._connection_moved,
    facts.ConnectionRestored: Timeline._connection_moved,
    facts.ConnectionLost: Timeline._connection_moved,
    facts.ConnectionLeft: Timeline._connection_moved,
    facts.ConnectionEnded: Timeline._connection_moved,
    facts.ChildStarted: Timeline._child_noted,
    facts.ChildEnded: Timeline._child_noted,
    facts.TimerSet: Timeline._timer_set,
    facts.TimerFired: Timeline._timer_fired,
    facts.TimerEnded: Timeline._timer_ended,
}
"""What each kind of fact changes; deliveries and streams are in no row."""
