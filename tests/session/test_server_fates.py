"""Servers that go and are lost in the very tick of a call, of its answer, of an answer of ours.

Whatever wins, everybody is told the same: who called, the events, and the server itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import attrs
import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from connected import (
    World,
    dies,
    open_world,
    reconnects,
    reload_removes,
    reload_replaces,
    server,
    session_ends,
    tool_removes,
)
from emceepee_trio.config import Server
from emceepee_trio.config.treatment import Scope
from emceepee_trio.errors import NotFound, ToolError
from emceepee_trio.model.states import QuestionState, TaskState
from memory_peers import Peers
from parts import MOMENT, at_the_moment, hop, in_many_orders
from principals import data, told

RESULT: dict[str, Any] = {"content": [], "isError": False}
ORDERS = {"session": 100, "principal": 60}

LOSSES: Mapping[str, Callable[[World], None]] = {
    act.__name__: act
    for act in (reload_replaces, reload_removes, tool_removes, dies, reconnects, session_ends)
}
REASONS = {
    "reload_replaces": "server_removed",
    "reload_removes": "server_removed",
    "tool_removes": "server_removed",
    "dies": "server_disconnected",
    "reconnects": "server_reconnected",
    "session_ends": "server_removed",
}
"""Of questions that go with their server."""

each_loss = pytest.mark.parametrize("loss", LOSSES)
each_scope = pytest.mark.parametrize("scope", ["session", "principal"])
"""Whose the connection is: that of the session that calls, or that of all three."""


def of(scope: Scope) -> Server:
    return attrs.evolve(server(), scope=scope)


def lateness(order: int) -> tuple[int, int]:
    """Ticks by which either rival is late: what goes between them takes some, too."""
    return (order % 9, 0) if order % 2 else (0, order % 9)


@each_scope
@each_loss
def test_a_loss_and_the_beginning_of_a_call(loss: str, scope: Scope) -> None:
    """It runs once or not at all, and who called is told which."""

    async def race(order: int) -> str:
        peers = Peers(on_call=lambda peer, request_id: peer.answer(request_id, RESULT))
        got: list[Any] = []
        async with open_world(of(scope), peers=peers) as world, trio.open_nursery() as nursery:

            async def call(hops: int) -> None:
                await trio.sleep_until(MOMENT)
                await hop(hops)
                got.append(await world.call())

            early, later = lateness(order)
            nursery.start_soon(call, early)
            nursery.start_soon(at_the_moment, lambda: LOSSES[loss](world), later)
        (outcome,) = got
        ran = [peer for peer in peers.all if peer.began]
        assert sum(len(peer.began) for peer in ran) <= 1
        if outcome == RESULT:
            assert len(ran) == 1
            return f"ran on {peers.all.index(ran[0])}"
        details = outcome.details or {}
        if ran:
            # Never a promise that it did not run, where it did.
            assert details.get("may_have_run") is not False
            assert outcome.code in {"TOOL_ERR_SERVER_DISCONNECTED", "TOOL_ERR_SESSION_NOT_FOUND"}
            return "may have run"
        return str(outcome.code)

    assert len(set(in_many_orders(race, ORDERS[scope]))) > 1


@each_scope
@each_loss
def test_a_loss_and_the_answer_to_a_task(loss: str, scope: Scope) -> None:
    async def race(order: int) -> TaskState:
        async with open_world(of(scope)) as world:
            peer, session = world.peer, world.one
            assert not (await world.call(timeout_ms=0))["isError"]
            await wait_all_tasks_blocked()
            (request_id,) = peer.calls
            (task,) = session.calls.tasks()
            call = session.calls.get(task.task_id)

            early, later = lateness(order)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(at_the_moment, partial(peer.answer, request_id, RESULT), early)
                nursery.start_soon(at_the_moment, lambda: LOSSES[loss](world), later)
            await call.slot.wait()
            await trio.sleep(1)
            assert task.status in {TaskState.COMPLETED, TaskState.FAILED, TaskState.CANCELLED}
            assert (task.status is TaskState.CANCELLED) <= (loss == "session_ends")
            assert (task.status is TaskState.COMPLETED) == (call.slot.error is None)
            happened = [event for event in told(session) if event.startswith("task_")]
            assert happened == ["task_created", f"task_{task.status.value}"]
            if task.status is TaskState.FAILED:
                assert data(session, "task_failed")[0]["reason"] == "server_disconnected"
            return task.status

    assert len(set(in_many_orders(race, ORDERS[scope]))) == 2


@each_scope
def test_a_cancellation_and_the_answer_to_a_task(scope: Scope) -> None:
    """The server is told to stop exactly if its answer does not count."""

    async def race(order: int) -> bool:
        async with open_world(of(scope)) as world:
            peer, calls = world.peer, world.one.calls
            await world.call(timeout_ms=0)
            await wait_all_tasks_blocked()
            (request_id,) = peer.calls
            (task,) = calls.tasks()
            won: list[bool] = []
            early, later = lateness(order)
            answer = partial(peer.answer, request_id, RESULT)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(at_the_moment, answer, early)
                nursery.start_soon(
                    at_the_moment, lambda: won.append(calls.cancel(task.task_id)[0]), later
                )
            await trio.sleep(1)
            assert (task.status is TaskState.CANCELLED) == won[0]
            # An answer that was read already and came too late needs no stop.
            assert peer.cancelled in ([request_id], []) if won[0] else peer.cancelled == []
            return bool(peer.cancelled)

    assert set(in_many_orders(race, ORDERS[scope])) == {True, False}


@each_loss
def test_a_loss_and_the_answer_to_a_question(loss: str) -> None:
    """The client's answer counts, or the question is told to have expired; never both."""

    async def race(order: int) -> bool:
        counts: list[bool] = []
        async with open_world(server()) as world:
            peer, session = world.peer, world.one
            asked = {"message": "?", "requestedSchema": {"type": "object", "properties": {}}}
            peer.say({"jsonrpc": "2.0", "id": 7, "method": "elicitation/create", "params": asked})
            await wait_all_tasks_blocked()
            (question,) = session.questions.open("elicitation")

            def answer() -> None:
                try:
                    session.questions.answer(question, QuestionState.ACCEPTED, {"action": "accept"})
                except NotFound:
                    counts.append(False)
                else:
                    counts.append(True)

            early, later = lateness(order)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(at_the_moment, answer, early)
                nursery.start_soon(at_the_moment, lambda: LOSSES[loss](world), later)
            await trio.sleep(1)
            assert session.questions.open("elicitation") == []
            expired = data(session, "elicitation_expired")
            assert len(expired) == (counts == [False])
            if counts == [True]:
                assert question.state is QuestionState.ACCEPTED
                # It was put on its way; a connection that is closed at that moment takes it along.
                heard = [each.get("result") or each["error"]["message"] for each in peer.answers]
                assert heard in ([], ["Connection closed"], [{"action": "accept"}])
            else:
                assert question.state is QuestionState.REJECTED
                assert expired[0]["reason"] == REASONS[loss]
                assert all("error" in each for each in peer.answers)
        assert len(peer.answers) <= 1
        return counts[0]

    assert set(in_many_orders(race, ORDERS["session"])) == {True, False}


@pytest.mark.parametrize("transport", ["stdio", "http"])
@pytest.mark.parametrize("loss", ["removes", "dies", "ends"])
def test_a_loss_and_the_wish_for_a_new_connection(loss: str, transport: str) -> None:
    """Who wishes gets one that works, or hears why not; no second one stays beside it."""

    async def race(order: int) -> str:
        entry = server() if transport == "stdio" else Server("x", url="http://x/", era="handshake")
        async with open_world(entry) as world:
            backend, got = world.one.backends["x"], []

            async def reconnect(hops: int) -> None:
                await trio.sleep_until(MOMENT)
                await hop(hops)
                try:
                    client = await backend.reconnect()
                except ToolError as error:
                    got.append(error.code)
                else:
                    got.append("connected" if client is backend.client else "lost again")

            def lose() -> None:
                {"removes": tool_removes, "dies": dies, "ends": session_ends}[loss](world)

            early, later = (order % 9, 0) if order % 2 else (0, order % 48)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(reconnect, early)
                nursery.start_soon(at_the_moment, lose, later)
            await trio.sleep(100)
            world.check_servers()
            assert backend.ended.is_set() == (loss != "dies")
        (outcome,) = got
        if loss == "dies":
            assert outcome == "connected"
        return str(outcome)

    found = {*in_many_orders(race, ORDERS["session"])}
    assert found <= {"connected", "lost again", "TOOL_ERR_SERVER_DISCONNECTED"}
    assert loss == "dies" or len(found) > 1
