"""What calls and questions note: what it is of, and how much; never what was said."""

from __future__ import annotations

from typing import Any

import attrs
import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from mcp import MCPError
from trio.testing import MockClock, wait_all_tasks_blocked

from emceepee_trio.config import Limits
from emceepee_trio.errors import ExecutionFailed, ToolError
from emceepee_trio.journal import Journal
from emceepee_trio.model import facts
from emceepee_trio.model.states import QuestionState, TaskState
from emceepee_trio.session.calls.asked import heard
from emceepee_trio.session.questions.question import Question
from emceepee_trio.session.questions.questions import Questions
from emceepee_trio.session.timers import Timers
from parts import Peer, Told, new_ids, open_calls, wall
from replay import Replay
from strategies import json_values


def noon() -> float:
    return 12.0


async def test_a_call_from_its_beginning_to_its_result(autojump_clock: MockClock) -> None:
    journal, replay, peer = Journal(noon), Replay(), Peer()
    replay.reads(journal)
    async with open_calls(journal) as world:
        call = await world.promoted(peer)
        size = call.args_bytes
        await trio.sleep(2)
        peer.answer.set({"content": []})
        await wait_all_tasks_blocked()
        world.calls.finished.read(call)
        kept = call.size
        await trio.sleep(world.calls.limits.finished_task_ms / 1000 + 1)
    replay.check()
    of, it = (12.0, "s", call.id), (12.0, "s", call.id, "files", "dig")
    assert replay.noted == [
        facts.CallBegun(*it, True, size, None),
        facts.CallPromoted(*it, 60000),
        facts.CallSettled(*it, TaskState.COMPLETED, True, 2000, None),
        facts.ResultKept(*of, kept),
        facts.ResultRead(*of),
        facts.ResultEvicted(*of),
    ]


async def test_a_call_that_fails_says_with_which_code(autojump_clock: MockClock) -> None:
    journal, replay, peer = Journal(noon), Replay(), Peer()
    replay.reads(journal)
    async with open_calls(journal) as world:
        call = world.begin(peer)
        peer.answer.fail(ExecutionFailed("it says why"))
        await trio.sleep(1)
        assert replay.noted[1:] == [
            facts.CallSettled(
                12.0, "s", call.id, "files", "dig", TaskState.FAILED, False, 0, ExecutionFailed.code
            )
        ]


def of(replay: Replay, *kinds: type[facts.Fact]) -> list[facts.Fact]:
    return [fact for fact in replay.noted if isinstance(fact, kinds)]


async def test_a_call_that_was_not_run_waits_for_a_connection_again(
    autojump_clock: MockClock,
) -> None:
    journal, replay, peer = Journal(noon), Replay(), Peer()
    replay.reads(journal)
    async with open_calls(journal) as world:
        call = world.begin(peer)
        world.calls.queued(call)
        world.calls.sent(call)
        world.calls.returned(call)
        assert call.waiting_on == "connection"
        kinds = facts.CallQueued, facts.CallSent, facts.CallReturned
        assert of(replay, *kinds) == [kind(12.0, "s", call.id) for kind in kinds]


async def test_what_a_script_calls_is_within_its_call(autojump_clock: MockClock) -> None:
    journal, replay = Journal(noon), Replay()
    replay.reads(journal)
    async with open_calls(journal) as world:
        script = world.begin(Peer())
        world.begin(Peer(), within=script)
        begun = [f.within for f in replay.noted if isinstance(f, facts.CallBegun)]
        assert begun == [None, script.id]


@pytest.mark.parametrize("says_of_which", [True, False])
async def test_each_call_that_may_wait_for_a_question_is_named(
    says_of_which: bool, autojump_clock: MockClock
) -> None:
    """One that its server names, and the script that made it; or all that its server has."""
    journal, replay = Journal(noon), Replay()
    replay.reads(journal)
    async with open_calls(journal) as world:
        script = world.begin(Peer())
        calls = [world.begin(Peer(), within=script), world.begin(Peer()), world.begin(Peer())]
        await wait_all_tasks_blocked()
        calls[2].waiting_on = "connection"
        which = calls[0].id if says_of_which else None
        question = Question("q", "elicitation", "files", "now", {}, which)
        with heard(world.calls, question):
            named = [f.call for f in replay.noted if isinstance(f, facts.CallAsked)]
        theirs = [calls[0]] if says_of_which else [script, calls[0], calls[1]]
        assert named == [call.id for call in (*theirs, script)]


async def test_a_timer_that_is_set_fires_and_ends(autojump_clock: MockClock) -> None:
    journal, replay = Journal(noon), Replay()
    replay.reads(journal)
    async with trio.open_nursery() as nursery:
        timers = Timers(nursery, Told(), new_ids(), wall, "s", journal)
        once, again = (timers.set(1000, SECRET, interval=each) for each in (False, True))
        await trio.sleep(2.5)
        timers.delete(again.timer_id)
        timers.delete(again.timer_id)
        nursery.cancel_scope.cancel("end of the test")
    first, second = (12.0, "s", once.timer_id), (12.0, "s", again.timer_id)
    assert sorted(replay.noted, key=str) == sorted(
        [
            facts.TimerSet(*first, 1000, False),
            facts.TimerSet(*second, 1000, True),
            facts.TimerFired(*first),
            facts.TimerEnded(*first, "fired"),
            *[facts.TimerFired(*second)] * 2,
            facts.TimerEnded(*second, "deleted"),
        ],
        key=str,
    )


SECRET = "hunter2-secret"


def with_secret(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    places = [
        lambda value: {"x": value, "y": SECRET},
        lambda value: {SECRET: value},
        lambda value: {"list": [value, f"a{SECRET}b"]},
    ]
    return st.builds(lambda place, value: place(value), st.sampled_from(places), values)


@given(
    args=with_secret(json_values),
    said=with_secret(json_values),
    fails=st.booleans(),
    is_task=st.booleans(),
)
def test_nothing_that_was_said_is_in_a_fact(
    args: Any, said: Any, fails: bool, is_task: bool
) -> None:
    journal, replay = Journal(noon), Replay()
    replay.reads(journal)
    trio.run(say_all, journal, args, said, fails, is_task, clock=MockClock(autojump_threshold=0))
    replay.check()
    kinds = {type(fact) for fact in replay.noted}
    assert {facts.CallBegun, facts.CallSettled} <= kinds
    assert {facts.QuestionOpened, facts.QuestionClosed, facts.QuestionTold} <= kinds
    for fact in replay.noted:
        assert SECRET not in repr(fact)


async def say_all(journal: Journal, args: Any, said: Any, fails: bool, is_task: bool) -> None:
    """A call, its result, and questions with that and answers of that, to their end."""
    peer = Peer()
    async with open_calls(journal) as world:
        patience = 0.0 if is_task else 5.0
        call = world.calls.begin("files", "dig", args, peer.send, patience=patience, ttl=60)
        if is_task:
            world.calls.promote(call)
        world.calls.sent(call)
        if fails:
            peer.answer.fail(ExecutionFailed(SECRET, said))
        else:
            peer.answer.set(said)
        try:
            await world.calls.wait(call, patience)
        except ToolError:
            assert fails
        await wait_all_tasks_blocked()
    limits = attrs.evolve(Limits(), question_timeout_ms=1000)
    questions = Questions(limits, Told(), new_ids(), wall, "s", journal=journal)

    async def ask() -> None:
        try:
            await questions.ask("files", "elicitation", args, lambda: SECRET)
        except MCPError:
            assert fails

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask)
        await wait_all_tasks_blocked()
        if not fails:
            (question,) = questions.open("elicitation")
            questions.answer(question, QuestionState.ACCEPTED, said)
