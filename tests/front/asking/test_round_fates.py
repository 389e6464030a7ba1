"""Rounds whose answers are lost in the tick in which they are made: who comes again goes on.

What the transport was given before it saw that its client is gone counts as told.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import trio
from trio.testing import wait_all_tasks_blocked

from asgi_world import open_world
from emceepee_trio.config import Config, Server
from emceepee_trio.front.asking.interrupted import TOGETHER
from memory_peers import Peer, Peers
from parts import hop, in_many_orders
from rounds import FORM, Wanted, accepted
from sharers import result

TICKS = 20
"""In which an answer is on its way to who writes it."""


@asynccontextmanager
async def asked() -> AsyncGenerator[tuple[Peer, int, Wanted]]:
    """A call whose server has asked its client, which is told after a while."""
    peers = Peers()
    server = Server("x", url="http://x/", era="handshake")
    with peers.in_place():
        async with open_world(Config(servers=(server,))) as world:
            wanted = Wanted(world.client("ada"), "t", 60)
            wanted.send()
            await wait_all_tasks_blocked()
            (peer,) = peers.all
            (call,) = peer.calls
            params = {"message": "by whom?", "requestedSchema": FORM}
            question = {"jsonrpc": "2.0", "id": 1, "method": "elicitation/create"}
            peer.say(question | {"params": params}, call)
            await wait_all_tasks_blocked()
            yield peer, call, wanted


async def lose(wanted: Wanted, ticks: int) -> bool:
    """Whether nobody has what its client was to be told."""
    await hop(ticks)
    wanted.drop()
    await wait_all_tasks_blocked()
    had = len(wanted.states), len(wanted.results)
    wanted.read()
    return had == (len(wanted.states), len(wanted.results)) and wanted.may_run == 1


def test_who_was_asked_in_an_answer_that_was_lost_is_asked_again() -> None:
    async def race(order: int) -> bool:
        async with asked() as (peer, call, wanted):
            await trio.sleep(TOGETHER)
            if not await lose(wanted, 0):
                return False
            await trio.sleep(5)
            wanted.send()
            await trio.sleep(1)
            wanted.read()
            (key,) = wanted.asked
            wanted.again({key: accepted("client")})
            await wait_all_tasks_blocked()
            peer.answer(call, result("all is well"))
            await wait_all_tasks_blocked()
            wanted.read()
            assert "all is well" in wanted.said
            assert peer.began == ["t"]
            return True

    assert set(in_many_orders(race, 100)) == {True, False}


def test_who_has_lost_the_answer_to_a_retry_sends_it_again() -> None:
    async def race(order: int) -> bool:
        async with asked() as (peer, call, wanted):
            await trio.sleep(TOGETHER)
            await wait_all_tasks_blocked()
            wanted.read()
            (key,) = wanted.asked
            wanted.again({key: accepted("client")})
            await wait_all_tasks_blocked()
            peer.answer(call, result("all is well"))
            if not await lose(wanted, order % TICKS):
                return False
            await trio.sleep(5)
            wanted.again({key: accepted("client")})
            await wait_all_tasks_blocked()
            wanted.read()
            assert "all is well" in wanted.said
            assert peer.began == ["t"]
            return True

    assert set(in_many_orders(race, 100)) == {True, False}


def test_what_a_retry_came_to_and_nobody_fetches_is_kept_as_a_task() -> None:
    async def race(order: int) -> bool:
        async with asked() as (peer, call, wanted):
            await trio.sleep(TOGETHER)
            await wait_all_tasks_blocked()
            wanted.read()
            (key,) = wanted.asked
            wanted.again({key: accepted("client")})
            await wait_all_tasks_blocked()
            peer.answer(call, result("all is well"))
            if not await lose(wanted, order % TICKS):
                return False
            await trio.sleep(60)
            listed = await wanted.client.modern_call("list_tasks", include_completed=True)
            assert [task["tool"] for task in listed["tasks"]] == ["t"]
            return True

    assert set(in_many_orders(race, 100)) == {True, False}
