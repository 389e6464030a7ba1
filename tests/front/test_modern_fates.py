"""Clients of the modern era that vanish at any step of what they have asked for.

Nothing goes on for who is gone; what it was not told is told to the next, and what it sends again
runs once.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from asgi_client import Client, Exchange
from asgi_world import World, open_world, texts
from emceepee_trio.config import Config, ResultSettings, Server
from memory_peers import Peer, Peers
from parts import in_many_orders
from vanishing import Steps

ORDERS = 60
SERVER = Server("x", command="program", era="handshake")
HAPPENS = "notifications/vendor"


def short(peer: Peer, request_id: int) -> None:
    peer.answer(request_id, {"content": [{"type": "text", "text": "all is well"}]})


def long(peer: Peer, request_id: int) -> None:
    peer.answer(request_id, {"content": [{"type": "text", "text": "all is well " * 20_000}]})


def streamed(peer: Peer, request_id: int) -> None:
    token = peer.requests[request_id]["params"]["_meta"]["progressToken"]
    said = {"progressToken": token, "progress": 1}
    peer.say({"jsonrpc": "2.0", "method": "notifications/progress", "params": said})
    short(peer, request_id)


def wrong(peer: Peer, request_id: int) -> None:
    peer.refuse(request_id)


@asynccontextmanager
async def opened(peers: Peers) -> AsyncGenerator[tuple[World, Client]]:
    config = Config(servers=(SERVER,), results=ResultSettings(inline_bytes=0))
    with peers.in_place():
        async with open_world(config) as world:
            client = world.client()
            await client.modern_call("list_tools", server="x")
            yield world, client


def ask(client: Client) -> Exchange:
    return client.modern_tool("execute_tool", meta={"progressToken": "p"}, server="x", tool="t")


@pytest.mark.parametrize("is_foreign", [False, True])
@pytest.mark.parametrize("answers", [short, long, streamed, wrong])
def test_who_vanishes_at_any_step_of_a_call_has_it_by_asking_again(
    answers: Any, is_foreign: bool
) -> None:
    steps = Steps()

    async def race(order: int) -> bool:
        peers = Peers(on_call=answers)
        async with opened(peers) as (_, client):
            client.is_foreign = is_foreign
            exchange = ask(client)
            with steps.vanishing(order, exchange.drop):
                await wait_all_tasks_blocked()
            assert exchange.is_served
            had = b"".join([exchange.body, exchange.swallowed])
            was_written = b"all is well" in had or b"refused" in had
            said = json.dumps((await ask(client).answer())["result"])
            assert ("refused" if answers is wrong else "all is well") in said
            began = sum(len(peer.began) for peer in peers.all)
            assert began == 1 + was_written
            return was_written

    assert set(in_many_orders(race, ORDERS)) == {True, False}


def test_who_is_shown_one_server_and_vanishes_at_any_step_has_its_call_run_once() -> None:
    steps = Steps()

    async def race(order: int) -> bool:
        peers = Peers(on_call=short)
        async with opened(peers) as (_, client):
            client.path = "/servers/x/mcp"
            exchange = client.modern_tool("t")
            with steps.vanishing(order, exchange.drop):
                await wait_all_tasks_blocked()
            assert exchange.is_served
            was_written = b"all is well" in exchange.body + exchange.swallowed
            said = json.dumps((await client.modern_tool("t").answer())["result"])
            assert "all is well" in said
            assert sum(len(peer.began) for peer in peers.all) == 1 + was_written
            return was_written

    assert set(in_many_orders(race, ORDERS)) == {True, False}


def test_who_vanishes_as_something_happens_leaves_it_to_the_next() -> None:
    steps = Steps()

    async def race(order: int) -> bool:
        async with opened(Peers()) as (world, client):
            await client.modern_call("await_activity", timeout_ms=0)
            waiting = client.modern_tool("await_activity", timeout_ms=900_000)
            await wait_all_tasks_blocked()
            session = world.manager.get("local/main")
            assert session is not None
            with steps.vanishing(order, waiting.drop):
                session.notified("x", HAPPENS, {"n": 1})
                await wait_all_tasks_blocked()
            assert waiting.is_served
            assert session.presence.waiters == 0
            was_written = HAPPENS.encode() in waiting.body + waiting.swallowed
            found = await client.modern_call("await_activity", timeout_ms=0)
            assert len(found["events"]) == (not was_written)
            return was_written

    assert set(in_many_orders(race, ORDERS)) == {True, False}


def test_who_vanishes_while_it_listens_is_forgotten() -> None:
    steps = Steps()

    async def race(order: int) -> bool:
        async with opened(Peers()) as (world, client):
            wanted = {"toolsListChanged": True}
            session = world.manager.get("local/main")
            assert session is not None
            listening = client.modern("subscriptions/listen", notifications=wanted)
            with steps.vanishing(order, listening.drop):
                await wait_all_tasks_blocked()
            listening.drop()
            await trio.sleep(1)
            assert listening.is_served
            assert session.presence.waiters == session.presence.requests == 0
            return bool(listening.status)

    assert set(in_many_orders(race, ORDERS)) == {True, False}


def test_what_is_said_in_the_tick_of_the_answer_comes_before_it() -> None:
    async def race(_: int) -> None:
        async with open_world() as world:
            exchange = world.client().modern("test/speak", key="k")
            speaker = await world.speaker("k")
            await speaker.say("first")
            speaker.answer("done")
            assert texts((await exchange.complete()).messages) == ["first", "done"]

    in_many_orders(race, ORDERS)
