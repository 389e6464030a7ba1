"""Servers that come, go and are lost in the very tick of a call, of its answer, of our answer.

Whatever wins, everybody is told the same: who called, the events, and the server itself.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any

import attrs
import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from emceepee_trio.config import Config, Server
from emceepee_trio.errors import NotFound, ToolError
from emceepee_trio.model.states import QuestionState, TaskState
from emceepee_trio.session.manager import SessionManager, open_sessions
from emceepee_trio.session.session import Session
from emceepee_trio.tools.registry import TOOLS, Request
from parts import MOMENT, at_the_moment, hop, in_many_orders
from peers import Peer, Peers
from principals import data, told

RESULT: dict[str, Any] = {"content": [], "isError": False}
ORDERS = 100


def server(version: str = "1", name: str = "x") -> Server:
    return Server(name, command="program", args=(version,), era="handshake")


@attrs.define(eq=False)
class World:
    """Three sessions of one principal, all connected to a server "x" unless there is none."""

    manager: SessionManager
    peers: Peers
    one: Session
    two: Session
    onlooker: Session

    @property
    def peer(self) -> Peer:
        """Of the first session, which was the first to connect."""
        return self.peers.all[0]

    async def call(self, tool: str = "dig", **arguments: Any) -> Any:
        """The result, or the error."""
        request = Request(self.one, self.manager)
        asked = {"server": "x", "tool": tool, **arguments}
        try:
            reply = await TOOLS.get("execute_tool").call(request, asked)
        except ToolError as error:
            return error
        return reply.result

    def check_servers(self) -> None:
        """Each session has just the servers that it should have, and no connection is left over."""
        visible = self.manager.registry.visible("ada")
        sessions = self.manager.sessions()
        for session in sessions:
            assert {n: b.server for n, b in session.backends.items()} == visible
            assert {*session.backends.values()} == session._running
        assert len(self.peers.open()) == len(visible) * len(sessions)


@asynccontextmanager
async def open_world(*servers: Server, peers: Peers | None = None) -> AsyncGenerator[World]:
    peers = peers or Peers()
    with peers.in_place():
        async with open_sessions(Config(servers=servers)) as manager:
            sessions = []
            for name in ("one", "two", "onlooker"):
                session = await manager.ensure(name, "ada")
                for backend in session.backends.values():
                    await backend.connection()
                sessions.append(session)
            yield World(manager, peers, *sessions)


def reload_replaces(world: World) -> None:
    world.manager.reload(Config(servers=(server("2"),)))


def reload_removes(world: World) -> None:
    world.manager.reload(Config())


def tool_removes(world: World) -> None:
    world.two.inner.start_soon(world.manager.remove_server, world.two, "x")


def dies(world: World) -> None:
    world.peer.end()


def reconnects(world: World) -> None:
    async def reconnect() -> None:
        with suppress(ToolError):  # the world ends, perhaps before it is connected
            await world.one.backends["x"].reconnect()

    world.one.outer.start_soon(reconnect)


def session_ends(world: World) -> None:
    world.manager.end(world.one, "DELETE")


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


def lateness(order: int) -> tuple[int, int]:
    """Ticks by which either rival is late: what goes between them takes some, too."""
    return (order % 9, 0) if order % 2 else (0, order % 9)


@each_loss
def test_a_loss_and_the_beginning_of_a_call(loss: str) -> None:
    """It runs once or not at all, and who called is told which."""

    async def race(order: int) -> str:
        peers = Peers(on_call=lambda peer, request_id: peer.answer(request_id, RESULT))
        got: list[Any] = []
        async with open_world(server(), peers=peers) as world, trio.open_nursery() as nursery:

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

    assert len(set(in_many_orders(race, ORDERS))) > 1


@each_loss
def test_a_loss_and_the_answer_to_a_task(loss: str) -> None:
    async def race(order: int) -> TaskState:
        async with open_world(server()) as world:
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

    assert len(set(in_many_orders(race, ORDERS))) == 2


def test_a_cancellation_and_the_answer_to_a_task() -> None:
    """The server is told to stop exactly if its answer does not count."""

    async def race(order: int) -> bool:
        async with open_world(server()) as world:
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

    assert set(in_many_orders(race, ORDERS)) == {True, False}


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

    assert set(in_many_orders(race, ORDERS)) == {True, False}


def removes(world: World) -> None:
    async def remove() -> None:
        with suppress(ToolError):  # there is none, yet or any more
            await world.manager.remove_server(world.two, "x")

    world.two.inner.start_soon(remove)


def adds(world: World, version: str = "1", name: str = "x") -> None:
    async def add() -> None:
        with suppress(ToolError):  # as a rival wants it
            await world.manager.add_server(world.two, server(version, name), keep_on_failure=False)

    world.two.inner.start_soon(add)


RIVALS: Mapping[str, Callable[[World], None]] = {
    "it is removed": removes,
    "it is added, too": adds,
    "another one of that name is added": lambda world: adds(world, "2"),
    "another one is added": lambda world: adds(world, name="y"),
    "another one of that name is configured": reload_replaces,
    "everything is read again": reload_removes,
    "its session ends": session_ends,
    "another session ends": lambda world: world.manager.end(world.two, "DELETE"),
}


COME_AND_GO = ("server_added", "server_removed")


@pytest.mark.parametrize("rival", RIVALS)
@pytest.mark.parametrize("known", [False, True])
def test_a_server_that_is_added_and(rival: str, known: bool) -> None:
    """Whatever comes in between, it is there for all sessions in the end or for none."""

    async def race(order: int) -> None:
        async with open_world() as world:
            if known:
                await world.manager.add_server(world.one, server(), keep_on_failure=False)
            got: list[Any] = []

            async def add(hops: int) -> None:
                await trio.sleep_until(MOMENT)
                await hop(hops)
                new = server("3" if known else "1")
                try:
                    client, _ = await world.manager.add_server(
                        world.one, new, keep_on_failure=False
                    )
                except ToolError as error:
                    got.append(error)
                else:
                    got.append(client)

            early, later = (order % 9, 0) if order % 2 else (0, order % 48)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(add, early)
                nursery.start_soon(at_the_moment, lambda: RIVALS[rival](world), later)
            await trio.sleep(60)
            assert len(got) == 1
            world.check_servers()
            # Who only looks on hears of every coming and going, in turn.
            for name in ("x", "y"):
                heard = [e for e in told(world.onlooker, name) if e in COME_AND_GO]
                assert heard == [COME_AND_GO[n % 2] for n in range(len(heard))]
                assert len(heard) % 2 == (name in world.onlooker.backends)

    in_many_orders(race, ORDERS // 2)


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

    found = {*in_many_orders(race, ORDERS)}
    assert found <= {"connected", "lost again", "TOOL_ERR_SERVER_DISCONNECTED"}
    assert loss == "dies" or len(found) > 1
