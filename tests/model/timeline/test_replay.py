"""What a call waits for, from facts alone: its turn, a connection, its server, a question."""

from __future__ import annotations

from collections.abc import Callable

import attrs
import pytest

from emceepee_trio.model import facts
from emceepee_trio.model.facts import Fact
from emceepee_trio.model.states import QuestionState, TaskState
from emceepee_trio.model.timeline.replay import TOLD, Timeline
from emceepee_trio.model.timeline.rows import PHASES, Row
from emceepee_trio.model.timeline.words import SAYS, fact_json, row_json
from replay import ALL

S = "session"


def begun(at: float, call: str = "c", server: str = "git") -> Fact:
    return facts.CallBegun(at, S, call, server, "log", True, 9, None)


def sent(at: float, call: str = "c") -> Fact:
    return facts.CallSent(at, S, call)


def settled(at: float, call: str = "c", fate: TaskState = TaskState.COMPLETED) -> Fact:
    return facts.CallSettled(at, S, call, "git", "log", fate, False, 0, None)


def opened(at: float, question: str = "q", call: str | None = "c") -> Fact:
    return facts.QuestionOpened(at, S, question, "elicitation", "git", call, 7)


def asked(at: float, question: str = "q", call: str = "c") -> Fact:
    return facts.CallAsked(at, S, call, question)


def closed(at: float, question: str = "q") -> Fact:
    state = QuestionState.ACCEPTED
    return facts.QuestionClosed(at, S, question, "elicitation", "git", state, "answered", 0)


def link(
    kind: Callable[..., Fact], at: float, number: int = 1, *more: object, server: str = "git"
) -> Fact:
    return kind(at, S, server, number, *more)


UP = (link(facts.ConnectionTrying, 0), link(facts.ConnectionUp, 0))


def the(kind: str, *noted: Fact) -> Row:
    (row,) = [row for row in Timeline.of(noted).rows.values() if row.kind == kind]
    return row


def phases(row: Row) -> list[tuple[str, float, float | None]]:
    return [(span.phase, span.begins, span.ends) for span in row.spans]


def test_a_call_from_its_beginning_to_its_result() -> None:
    row = the("call", *UP, begun(1), sent(2), settled(5))
    assert phases(row) == [("preparation", 1, 2), ("server", 2, 5)]
    assert (row.server, row.name, row.ends, row.outcome) == ("git", "log", 5, "completed")
    assert row.phase is None


def test_a_result_of_which_its_server_says_that_it_is_an_error_is_none_that_is_good() -> None:
    fate = TaskState.COMPLETED
    end = facts.CallSettled(2, S, "c", "git", "log", fate, False, 0, None, is_error=True)
    assert the("call", *UP, begun(0), sent(1), end).outcome == "error"


def test_a_call_that_is_under_way_says_what_it_waits_for() -> None:
    assert the("call", *UP, begun(1), sent(2)).phase == "server"


def test_what_takes_no_time_is_no_span() -> None:
    assert phases(the("call", *UP, begun(1), sent(1), settled(1))) == []


def test_a_call_waits_for_the_first_connection_and_for_a_new_one() -> None:
    first = [begun(0), link(facts.ConnectionTrying, 1), link(facts.ConnectionUp, 3), sent(3)]
    assert phases(the("call", *first)) == [("connection", 0, 3), ("server", 3, None)]
    lost = [link(facts.ConnectionLost, 4, 1, False), link(facts.ConnectionEnded, 4)]
    again = [*UP, *lost, begun(5), link(facts.ConnectionTrying, 6, 2)]
    assert phases(the("call", *again)) == [("reconnection", 5, None)]


def test_a_call_waits_for_the_turn_of_its_server_to_start() -> None:
    row = the(
        "call",
        begun(0),
        link(facts.ConnectionTrying, 0),
        link(facts.ConnectionQueued, 0),
        link(facts.ConnectionStarting, 4),
        link(facts.ConnectionUp, 6),
        sent(6),
    )
    assert phases(row) == [("turn", 0, 4), ("connection", 4, 6), ("server", 6, None)]


def test_a_script_waits_for_its_turn() -> None:
    row = the("call", begun(0, server="emceepee"), facts.CallQueued(0, S, "c"), sent(3))
    assert phases(row) == [("turn", 0, 3), ("server", 3, None)]


def test_a_call_that_was_not_run_waits_for_a_connection_again() -> None:
    row = the(
        "call",
        *UP,
        begun(1),
        sent(1),
        facts.CallReturned(2, S, "c"),
        link(facts.ConnectionLost, 2, 1, False),
        link(facts.ConnectionTrying, 3, 2),
        link(facts.ConnectionUp, 5, 2),
        sent(5),
    )
    assert phases(row) == [("server", 1, 2), ("reconnection", 2, 5), ("server", 5, None)]


def test_a_call_waits_for_its_question_until_that_is_closed() -> None:
    row = the("call", *UP, begun(0), sent(0), opened(1), asked(1), closed(4), settled(6))
    assert phases(row) == [("server", 0, 1), ("question", 1, 4), ("server", 4, 6)]


def test_a_call_waits_for_the_last_of_its_questions() -> None:
    two = [opened(1, "p"), asked(1, "p"), opened(2), asked(2), closed(3, "p")]
    assert the("call", *UP, begun(0), sent(0), *two).phase == "question"
    assert the("call", *UP, begun(0), sent(0), *two, closed(4)).phase == "server"


def test_calls_of_another_server_do_not_wait_for_this_one() -> None:
    row = the("call", *UP, begun(1, server="files"), link(facts.ConnectionTrying, 2, 2))
    assert row.phase == "connection"


def test_a_question_is_with_the_client_or_with_the_tools() -> None:
    relayed, left = facts.QuestionRelayed(2, S, "q"), facts.QuestionLeft(5, S, "q")
    row = the("question", opened(1), relayed, left, closed(6))
    assert phases(row) == [("tools", 1, 2), ("client", 2, 5), ("tools", 5, 6)]
    assert row.outcome == "accepted"


def test_a_connection_is_tried_up_unwell_and_lost() -> None:
    row = the(
        "connection",
        link(facts.ConnectionTrying, 0),
        link(facts.ChildStarted, 1, 1, 4711),
        link(facts.ConnectionUp, 2),
        link(facts.ConnectionDegraded, 3),
        link(facts.ConnectionRestored, 4),
        link(facts.ConnectionLost, 5, 1, False),
        link(facts.ConnectionEnded, 6),
    )
    assert phases(row) == [
        ("trying", 0, 2),
        ("up", 2, 3),
        ("unwell", 3, 4),
        ("up", 4, 5),
        ("closing", 5, 6),
    ]
    assert (row.name, row.outcome, row.ends) == ("program 4711", "lost", 6)


def test_how_a_connection_ends() -> None:
    tried = [link(facts.ConnectionTrying, 0)]
    up = [*tried, link(facts.ConnectionUp, 1)]
    end = link(facts.ConnectionEnded, 3)
    assert the("connection", *tried, end).outcome == "not made"
    assert the("connection", *up, link(facts.ConnectionLost, 2, 1, True), end).outcome == "left"


def test_timers_end_with_their_session() -> None:
    set_ = facts.TimerSet(0, S, "t", 1000, True)
    fired = facts.TimerFired(1, S, "t")
    row = the("timer", set_, fired, facts.SessionEnded(1.5, S, "idle"))
    assert (row.name, row.outcome, row.ends, row.facts) == (
        "interval",
        "ended",
        1.5,
        [set_, fired],
    )
    assert the("timer", set_, facts.TimerEnded(2, S, "t", "deleted")).outcome == "deleted"


def test_what_a_session_is_called_and_why_it_ended() -> None:
    it = Timeline.of(
        [
            facts.SessionOpened(1, S, "ci"),
            facts.SessionNamed(2, S, "claude-code"),
            facts.SessionEnded(9, S, "idle"),
        ]
    )
    assert (it.principal, it.client, it.opened_at) == ("ci", "claude-code", 1)
    assert (it.ended_at, it.why_ended) == (9, "idle")


def test_a_row_has_the_facts_that_are_of_it() -> None:
    noted = [begun(0), begun(0, "d"), sent(1, "d"), sent(2), settled(3)]
    told = [facts.ResultTold(4, S, "c", 300), facts.ResultTold(5, S, "c", 20)]
    row = Timeline.of([*noted, *told]).rows["call", "c"]
    assert row.facts == [noted[0], *noted[3:], *told]
    assert row.told_bytes == 320


@pytest.mark.parametrize("kind", sorted(TOLD.keys() - {facts.SessionOpened}, key=str))
def test_what_nobody_knows_the_beginning_of_changes_nothing(kind: type[Fact]) -> None:
    begins = {facts.CallBegun, facts.QuestionOpened, facts.ConnectionTrying, facts.TimerSet}
    if kind not in begins:
        timeline = Timeline.of([some(kind)])
        assert timeline.rows == {}


def some(kind: type[Fact]) -> Fact:
    """One, with something in each place."""
    values = {
        "float": 1.0,
        "str": "x",
        "str | None": None,
        "int": 1,
        "int | None": 0,
        "bool": True,
        "int | str | None": None,
        "Kind": "elicitation",
        "Closing": "answered",
        "TimerStatus": "fired",
        "TaskState": TaskState.COMPLETED,
        "QuestionState": QuestionState.ACCEPTED,
    }
    make: Callable[..., Fact] = kind
    return make(*[values[str(field.type)] for field in attrs.fields(kind)])


def test_every_fact_of_what_has_a_row_is_in_it() -> None:
    shown = ("Session", "Call", "Result", "Question", "Connection", "Child", "Timer")
    assert TOLD.keys() == {kind for kind in ALL if kind.__name__.startswith(shown)}
    sessions = {facts.SessionOpened, facts.SessionNamed, facts.SessionEnded}
    assert SAYS.keys() == TOLD.keys() - sessions


@pytest.mark.parametrize("kind", sorted(SAYS, key=str))
def test_every_fact_says_something(kind: type[Fact]) -> None:
    fact = some(kind)
    assert SAYS[kind](fact)
    assert fact_json(fact)["at"] == "1970-01-01T00:00:01.000Z"
    assert "session" not in fact_json(fact)


def test_a_row_as_json_says_what_it_waits_for_and_since_when() -> None:
    row = the("call", *UP, begun(1), sent(2))
    said = row_json(row, now=4.5)
    assert said["waits_for"] == "server"
    assert said["waits_since"] == "1970-01-01T00:00:02.000Z"
    assert said["duration_ms"] == 3500
    assert said["spans"] == [
        {"phase": "preparation", "after_ms": 0, "duration_ms": 1000},
        {"phase": "server", "after_ms": 1000, "duration_ms": 2500},
    ]
    assert [fact["fact"] for fact in said["facts"]] == ["call_begun", "call_sent"]
    assert set(PHASES) >= {span["phase"] for span in said["spans"]}
