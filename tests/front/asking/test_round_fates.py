"""Rounds whose answers are lost at any step of their making: who comes again goes on.

What the transport was given before it saw that its client is gone counts as told.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import attrs
import trio
from trio.testing import wait_all_tasks_blocked

from asgi_world import open_world
from emceepee_trio.config import Config, Server
from emceepee_trio.front.asking.puts import TOGETHER
from memory_peers import Peer, Peers
from parts import in_many_orders
from rounds import FORM, Wanted, accepted
from sharers import result
from vanishing import Steps


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


@asynccontextmanager
async def retried() -> AsyncGenerator[tuple[Peer, int, Wanted]]:
    """The same, once the client has answered."""
    async with asked() as (peer, call, wanted):
        await trio.sleep(TOGETHER)
        await wait_all_tasks_blocked()
        wanted.read()
        answer(wanted)
        await wait_all_tasks_blocked()
        yield peer, call, wanted
        assert peer.began == ["t"]


def answer(wanted: Wanted) -> None:
    (key,) = wanted.asked
    wanted.again({key: accepted("client")})


@attrs.define
class Loss:
    is_one: bool = False
    """Nobody has what the client was to be told."""


@asynccontextmanager
async def losing(wanted: Wanted, steps: Steps, order: int) -> AsyncGenerator[Loss]:
    """The client vanishes at a step of what happens in the block, and of what follows."""
    had, loss = (len(wanted.states), len(wanted.results)), Loss()
    with steps.vanishing(order, wanted.drop):
        yield loss
        await wait_all_tasks_blocked()
    wanted.read()
    loss.is_one = had == (len(wanted.states), len(wanted.results)) and wanted.may_run == 1


def test_who_was_asked_in_an_answer_that_was_lost_is_asked_again() -> None:
    steps = Steps()

    async def race(order: int) -> bool:
        async with asked() as (peer, call, wanted):
            async with losing(wanted, steps, order) as loss:
                await trio.sleep(TOGETHER)
            if not loss.is_one:
                return False
            await trio.sleep(5)
            wanted.send()
            await trio.sleep(1)
            wanted.read()
            answer(wanted)
            await wait_all_tasks_blocked()
            peer.answer(call, result("all is well"))
            await wait_all_tasks_blocked()
            wanted.read()
            assert "all is well" in wanted.said
            assert peer.began == ["t"]
            return True

    assert set(in_many_orders(race, 100)) == {True, False}


def test_who_has_lost_the_answer_to_a_retry_sends_it_again() -> None:
    steps = Steps()

    async def race(order: int) -> bool:
        async with retried() as (peer, call, wanted):
            async with losing(wanted, steps, order) as loss:
                peer.answer(call, result("all is well"))
            if not loss.is_one:
                return False
            await trio.sleep(5)
            answer(wanted)
            await wait_all_tasks_blocked()
            wanted.read()
            assert "all is well" in wanted.said
            return True

    assert set(in_many_orders(race, 100)) == {True, False}


def test_what_a_retry_came_to_and_nobody_fetches_is_kept_as_a_task() -> None:
    steps = Steps()

    async def race(order: int) -> bool:
        async with retried() as (peer, call, wanted):
            async with losing(wanted, steps, order) as loss:
                peer.answer(call, result("all is well"))
            if not loss.is_one:
                return False
            await trio.sleep(60)
            listed = await wanted.client.modern_call("list_tasks", include_completed=True)
            assert [task["tool"] for task in listed["tasks"]] == ["t"]
            return True

    assert set(in_many_orders(race, 100)) == {True, False}
