"""An event that happens in the very tick in which who waits for it leaves, in many orders.

It is told once: by the response that was about to end, or by the next one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from asgi_client import Client, Exchange
from asgi_world import World, open_world
from deliveries_model import handed, happen, told
from emceepee_trio.config import Config, Limits
from parts import MOMENT, at_the_moment, hop, in_many_orders, just_before, late, mock_clock

ORDERS = 150


def said(exchange: Exchange) -> Any:
    """What a wait has to tell, None if it was not answered."""
    for message in exchange.messages:
        if "result" in message:
            return json.loads(message["result"]["content"][0]["text"])
    return None


async def polled(client: Client) -> list[int]:
    return told([await client.tool("list_timers").answer()])


def test_an_event_and_the_end_of_the_wait_for_it() -> None:
    async def race(order: int) -> str:
        async with open_world() as world:
            client = await world.joined()
            timeout_ms = round((MOMENT - trio.current_time()) * 1000)
            waiting = client.tool("await_activity", timeout_ms=timeout_ms)
            rival = just_before if order % 2 else lambda _, *rest: at_the_moment(*rest)
            world.nursery.start_soon(rival, mock_clock(), lambda: happen(client, 1), late(order))
            await waiting.answer()
            got = said(waiting)
            (trigger,) = got["triggers"]
            # Whoever is told of it has it, too.
            assert trigger["type"] in {"event", "timeout", "immediate"}
            assert (told(waiting.messages) == [1]) == (trigger["type"] != "timeout")
            await trio.sleep_until(MOMENT + 1)
            assert told(waiting.messages) + await polled(client) == [1]
            return str(trigger["type"])

    assert {"event", "timeout"} <= {*in_many_orders(race)}


def cancels(world: World, client: Client, waiting: Exchange) -> None:
    client.cancel(2)


def drops(world: World, client: Client, waiting: Exchange) -> None:
    waiting.drop()


def drains(world: World, client: Client, waiting: Exchange) -> None:
    world.endpoint.drain()


def rejoins(world: World, client: Client, waiting: Exchange) -> None:
    world.nursery.start_soon(client.rejoin)


def polls(world: World, client: Client, waiting: Exchange) -> None:
    world.nursery.start_soon(client.tool("list_tasks").complete)


def somebody_waits(world: World, client: Client, waiting: Exchange) -> None:
    client.tool("await_activity", timeout_ms=900_000)


LEAVING: Mapping[str, Callable[[World, Client, Exchange], None]] = {
    act.__name__: act for act in (cancels, drops, drains, rejoins)
}


@pytest.mark.parametrize("version", ["2025-06-18", "2025-11-25"])
@pytest.mark.parametrize("quick", [False, True])
@pytest.mark.parametrize("leaves", LEAVING)
def test_an_event_and_a_client_that_leaves(leaves: str, quick: bool, version: str) -> None:
    """A wait is answered in one piece if that goes quickly, else in a stream; by a server that can
    be asked whether its client is gone, or by one that tells it when it likes."""

    async def race(order: int) -> bool:
        async with open_world() as world:
            client = await world.joined(version)
            client.is_foreign = order % 5 < 2
            if quick:
                await trio.sleep_until(MOMENT - 0.001)
            waiting = client.request(
                "tools/call", id=2, name="await_activity", arguments={"timeout_ms": 900_000}
            )
            early, later = (order % 7, 0) if order % 2 else (0, order % 13)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(at_the_moment, lambda: happen(client, 1), early)
                act = lambda: LEAVING[leaves](world, client, waiting)  # noqa: E731
                nursery.start_soon(at_the_moment, act, later)
            await trio.sleep(1)
            await wait_all_tasks_blocked()
            first = told(handed(waiting))  # also what the server could not know to be lost
            rest = await polled(client)
            if not first + rest and waiting.primed:
                # A stream that can be resumed keeps its answer for who comes back to it.
                rest = told((await client.get(waiting.events[0].id).complete()).messages)
            assert first + rest == [1]
            return bool(first)

    found = {*in_many_orders(race, ORDERS)}
    assert len(found) == 2 or leaves == "drains"


def test_an_event_and_the_beginning_of_a_wait_for_it() -> None:
    async def race(order: int) -> str:
        async with open_world() as world:
            client = await world.joined()
            await trio.sleep_until(MOMENT)
            waiting = client.tool("await_activity", timeout_ms=900_000)
            await hop(order % 40)
            happen(client, 1)
            await trio.sleep(1)
            assert told(waiting.messages) == [1]
            (trigger,) = said(waiting)["triggers"]
            return str(trigger["type"])

    assert {*in_many_orders(race)} == {"event", "immediate"}


def test_an_event_and_two_who_wait() -> None:
    """Both are woken; one of them has it."""

    async def race(order: int) -> None:
        async with open_world() as world:
            client = await world.joined()
            waits = []

            def wait() -> None:
                waits.append(client.tool("await_activity", timeout_ms=900_000))

            wait()
            async with trio.open_nursery() as nursery:
                nursery.start_soon(at_the_moment, wait, order % 5)
                nursery.start_soon(at_the_moment, lambda: happen(client, 1), order // 5 % 5)
            await trio.sleep(1)
            happen(client, 2)  # for one that had nothing to be woken by
            for waiting in waits:
                await waiting.complete()
            messages = [message for waiting in waits for message in waiting.messages]
            assert sorted(told(messages) + await polled(client)) == [1, 2]
            assert all(said(waiting)["triggers"] for waiting in waits)

    in_many_orders(race)


def test_a_drain_and_the_answer_to_a_request() -> None:
    """What is answered is answered, whenever the daemon stops."""

    async def race(order: int) -> int:
        async with open_world() as world:
            client = await world.joined()
            exchange = client.request("test/speak", key="k")
            speaker = await world.speaker("k")
            async with trio.open_nursery() as nursery:
                nursery.start_soon(at_the_moment, lambda: speaker.answer("done"), late(order))
                nursery.start_soon(at_the_moment, world.endpoint.drain, late(order // 3))
            assert (await exchange.answer())["result"]["text"] == "done"
            return (await client.request("ping").complete()).status

    assert {*in_many_orders(race)} == {200}


def test_a_drain_and_a_new_client() -> None:
    """It gets a session in which it can work, or is told that there will be none."""

    async def race(order: int) -> int:
        async with open_world() as world:
            client, statuses = world.client(), []

            async def join(hops: int) -> None:
                await trio.sleep_until(MOMENT)
                await hop(hops)
                exchange = await client.initialize()
                statuses.append(exchange.status)

            async with trio.open_nursery() as nursery:
                nursery.start_soon(join, late(order))
                nursery.start_soon(at_the_moment, world.endpoint.drain, order // 3 % 4)
            (status,) = statuses
            if status == 200:
                assert (await client.request("ping").answer())["result"] == {}
            assert len(world.manager.sessions()) == (status == 200)
            return status

    assert {*in_many_orders(race)} == {200, 503}


def test_a_request_in_the_idle_tick_of_its_session() -> None:
    """It is answered by a session that lives, or told to begin another one."""
    idle = Config(limits=Limits(session_idle_ms=round(MOMENT * 1000)))

    async def race(order: int) -> int:
        async with open_world(idle) as world:
            client = await world.joined()
            await client.call("list_timers")
            session = client.own.session
            await trio.sleep_until(session.presence.idle_since + MOMENT - 1)
            exchange = client.tool("list_timers")
            await hop(order % 9)
            mock_clock().jump(1)
            await exchange.complete()
            alive = world.manager.get(session.id) is session
            assert (exchange.status == 200) == alive
            return exchange.status

    assert {*in_many_orders(race)} == {200, 404}
