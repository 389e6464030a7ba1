"""A program that nobody used for so long is stopped in the very tick of something else."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import attrs
import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from connected import World, dies, open_world, reconnects, server, session_ends, tool_removes
from emceepee_trio.model.states import BackendState
from emceepee_trio.session.session import Session
from memory_peers import Peer, Peers
from parts import MOMENT, at_the_moment, hop, in_many_orders, mock_clock
from principals import data, told

RESULT: dict[str, Any] = {"content": [], "isError": False}
ENDS = ("process_stopped", "process_crashed")
STOPPING = attrs.evolve(server(), idle_stop_ms=round(MOMENT * 1000))


def lateness(order: int) -> int:
    return order % 9


async def in_its_tick(act: Callable[[], object], order: int) -> None:
    """Some ticks behind that moment, or as many ahead of it."""
    if order % 2:
        await at_the_moment(act, lateness(order))
    else:
        await trio.sleep_until(MOMENT - 1)
        act()
        await hop(lateness(order))
        mock_clock().jump(1)


def stops(world: World) -> list[str | None]:
    """The reasons of the ends of processes of the first session, as it was told."""
    return [stopped.get("reason") for stopped in data(world.one, "process_stopped")]


def state(session: Session) -> BackendState:
    return session.backends["x"].state


def answers(peer: Peer, request_id: int) -> None:
    peer.answer(request_id, RESULT)


def test_it_and_the_beginning_of_a_call() -> None:
    """The call runs once, on the program that there was or on the next one."""

    async def race(order: int) -> int:
        peers = Peers(on_call=answers)
        got: list[Any] = []
        async with open_world(STOPPING, peers=peers) as world:
            before = len(peers.all)

            async def call() -> None:
                got.append(await world.call())

            async with trio.open_nursery() as nursery:
                await in_its_tick(partial(nursery.start_soon, call), order)
            assert got == [RESULT]
            assert sum(len(peer.began) for peer in peers.all) == 1
            restarts = len(peers.all) - before
            await trio.sleep(1)
            assert stops(world) == ["idle"] * restarts
            assert "server_disconnected" not in told(world.one)
            assert "process_crashed" not in told(world.one)
            # That it is there again is as planned.
            assert "server_connected" not in told(world.one)
            # Nobody needs it any more.
            await trio.sleep(2 * MOMENT)
            assert not peers.open()
            states = {session.backends["x"].state for session in world.manager.sessions()}
            assert states == {BackendState.IDLE}
            return restarts

    assert set(in_many_orders(race)) == {0, 1}


def test_it_and_the_answer_to_a_call() -> None:
    """What is under way is waited for; from its end on the time is counted anew."""

    async def race(order: int) -> None:
        peers = Peers()
        got: list[Any] = []
        async with open_world(STOPPING, peers=peers) as world, trio.open_nursery() as nursery:

            async def call() -> None:
                got.append(await world.call())

            nursery.start_soon(call)
            await wait_all_tasks_blocked()
            (request_id,) = peers.all[0].calls
            answer = partial(peers.all[0].answer, request_id, RESULT)
            nursery.start_soon(at_the_moment, answer, lateness(order))
            await trio.sleep_until(2 * MOMENT - 1)
            assert got == [RESULT]
            assert state(world.one) == BackendState.CONNECTED
            assert state(world.two) == BackendState.IDLE
            await trio.sleep_until(2 * MOMENT + 1)
            assert state(world.one) == BackendState.IDLE

    in_many_orders(race)


@pytest.mark.parametrize("rival", [dies, reconnects, session_ends, tool_removes])
def test_it_and_another_end(rival: Any) -> None:
    """One end is told, and nothing is left over."""

    async def race(order: int) -> tuple[str | None, ...]:
        peers = Peers()
        async with open_world(STOPPING, peers=peers) as world:
            await in_its_tick(lambda: rival(world), order)
            await trio.sleep(5)
            backend = world.one.backends.get("x")
            ends = [
                each for each in told(world.one) if each in {"process_stopped", "process_crashed"}
            ]
            assert len(ends) == 1
            if rival in {dies, reconnects}:
                assert backend is not None
                is_open = bool(peers.open(lambda peer: peer is not world.peer))
                assert is_open == (backend.state is BackendState.CONNECTED)
            else:
                assert backend is None
            await trio.sleep(4 * MOMENT)
            assert not peers.open()
            return (*ends, *stops(world))

    assert len(set(in_many_orders(race, 100))) == 2  # either is the first to end it


def test_a_question_is_a_use() -> None:
    async def race(order: int) -> None:
        peers = Peers()
        async with open_world(STOPPING, peers=peers) as world:
            await trio.sleep_until(MOMENT - 1)
            asked = {"message": "name?", "requestedSchema": {"type": "object", "properties": {}}}
            question = {"jsonrpc": "2.0", "id": 1, "method": "elicitation/create", "params": asked}
            world.peer.say(question)
            await trio.sleep_until(5 * MOMENT)
            assert state(world.one) == BackendState.CONNECTED
            (opened,) = world.one.questions.open("elicitation")
            world.one.questions.cancel(opened, "no")
            await trio.sleep(MOMENT - 1)
            assert state(world.one) == BackendState.CONNECTED
            await trio.sleep(2)
            assert state(world.one) == BackendState.IDLE

    in_many_orders(race, 5)
