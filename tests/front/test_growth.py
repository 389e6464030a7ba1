"""What is kept makes no request dearer, however much it is.

Counted, not timed: see `effort.py`, which does not see what C does in one call.
"""

from __future__ import annotations

import gc
import json
import secrets
from collections.abc import Callable
from typing import Any, cast

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from asgi_client import Client, Exchange
from asgi_world import World, open_world
from deliveries_model import happen
from effort import efforts
from emceepee_trio.backend.connections.callbacks import LogLine
from emceepee_trio.config import Config, Limits, Server
from memory_peers import Peer, Peers

FEW, MANY = 10, 10_000
ROUNDS = 10
"""Of which the least counts: the order of tasks is drawn anew in each tick."""
TICKS = 300
"""Steps of a few ticks of trio, more or less: what looks at all that is kept takes thousands."""
EACH = FEW // ROUNDS
"""Taken in each round, so that there are as many to take in the last one."""
WORKING = 2

LIMITS = Limits(
    events=100_000,
    results=100_000,
    tasks=100_000,
    notifications=100_000,
    logs=100_000,
    results_bytes=1 << 30,
    events_bytes=1 << 30,
)

REQUESTS: dict[str, Callable[[Client], Exchange]] = {
    "ping": lambda client: client.request("ping"),
    "tools/list": lambda client: client.request("tools/list"),
    "execute_tool": lambda client: client.tool("execute_tool", server="x", tool="dig", args={}),
    "a call that becomes a task": lambda client: client.tool(
        "execute_tool", server="x", tool="wait", args={}, timeout_ms=0
    ),
    "await_activity": lambda client: client.tool("await_activity", timeout_ms=0),
    "get_notifications": lambda client: client.tool("get_notifications", limit=EACH),
}


def answered(peer: Peer, request_id: int) -> None:
    if peer.began[-1] == "dig":
        peer.answer(request_id, {"content": []})


async def keep(client: Client, count: int) -> None:
    """So much of everything that a session keeps."""
    own, session = client.own, client.own.session
    own.streams.keep = 2 * MANY
    reader = own.streams.standalone.open_reader()
    for number in range(count):
        own.streams.add(own.streams.standalone, f"{number}")
        reader.took(own.streams.standalone.entries[-1])
    reader.close()
    for number in range(count):
        stream = own.streams.new()
        own.streams.add(stream, f"{number}", is_answer=True)  # which nobody reads
        own.streams.finish(stream)
        session.logged(LogLine("x", "stderr", "info", f"{number}"))
    for number in range(count // 4):
        call = session.calls.begin("x", "wait", {}, _for_ever, patience=0, ttl=1800)
        session.calls.promote(call)
        if number >= WORKING:  # and there are three events of it
            session.calls.cancel(call.id)
    happen(client, *range(count))
    await wait_all_tasks_blocked()
    while session.events.has_pending:
        session.events.take().commit()


async def _for_ever(_: object) -> dict[str, object]:
    await trio.sleep_forever()
    raise AssertionError


async def least(world: World, client: Client, ask: Callable[[Client], Exchange]) -> int:
    """The steps of one such request."""
    counts = []
    for _ in range(ROUNDS):
        await wait_all_tasks_blocked()
        with efforts() as steps:
            answer = await ask(client).answer()
        assert "error" not in answer, answer
        counts.append(steps.count)
    return min(counts)


async def test_a_request_costs_the_same_whatever_is_kept(mock_clock: MockClock) -> None:
    config = Config(servers=(Server("x", command="program", era="handshake"),), limits=LIMITS)
    with Peers(on_call=answered).in_place():
        async with open_world(config) as world:
            poor, rich = await world.joined(), await world.joined()
            await keep(poor, FEW)
            await keep(rich, MANY)
            for client in (poor, rich):
                await client.call("execute_tool", server="x", tool="dig")
            costs = {
                name: (await least(world, poor, ask), await least(world, rich, ask))
                for name, ask in REQUESTS.items()
            }
            mock_clock.autojump_threshold = 0  # the end may take its time
    dearer = {name: (few, many) for name, (few, many) in costs.items() if many > 1.05 * few + TICKS}
    assert dearer == {}


def kept_with(marker: str) -> int:
    """How many lists begin with that."""
    objects = [each for each in gc.get_objects() if type(each) is list]
    return sum(1 for each in objects if each and each[0] == marker)


@pytest.mark.parametrize("tool", ["add_server", "no such tool", "execute_tool"])
async def test_what_a_refused_call_asked_is_no_garbage(tool: str) -> None:
    """Who has to free it otherwise is a collection, for which all sessions wait."""
    async with open_world(Config()) as world:
        client = await world.joined()
        gc.collect()
        gc.disable()
        try:
            asked = {"name": "x", "args": [secrets.token_hex(8)], "server": "nobody", "tool": "t"}
            answer = await client.request(
                "tools/call", name=tool, arguments={**asked, "allowed_tools": 5}
            ).answer()
            assert "error" in answer or answer["result"]["isError"], answer
            await wait_all_tasks_blocked()
            assert kept_with(asked.pop("args")[0]) == 0  # the one here has been taken out
        finally:
            gc.enable()


async def test_what_is_too_much_is_no_garbage_either() -> None:
    async with open_world(Config(limits=Limits(body_values=10_000))) as world:
        client = await world.joined()
        gc.collect()
        gc.disable()
        try:
            asked = {"args": [secrets.token_hex(8), *map(str, range(20_000))]}
            await client.request("ping", **asked).error()
            await wait_all_tasks_blocked()
            assert kept_with(asked.pop("args")[0]) == 0
        finally:
            gc.enable()


async def test_what_a_question_was_answered_is_no_garbage() -> None:
    async with open_world(Config()) as world:
        client = await world.joined()
        schema = {"type": "object", "properties": {"a": {"type": "array"}}}
        params = {"message": "?", "requestedSchema": schema}
        answers = list[Any]()

        async def ask() -> None:
            answers.append(await client.own.session.ask("x", "elicitation", params, cast(Any, str)))

        gc.collect()
        gc.disable()
        try:
            world.nursery.start_soon(ask)
            await wait_all_tasks_blocked()
            shown = (await client.call("get_elicitations"))["content"][0]["text"]
            (question,) = json.loads(shown)["elicitations"]
            content = {"a": [secrets.token_hex(8)]}
            named = {"request_id": question["requestId"], "action": "accept"}
            await client.call("respond_to_elicitation", **named, content=content)
            await wait_all_tasks_blocked()
            assert answers.pop()["content"] == content
            assert kept_with(content.pop("a")[0]) == 0
        finally:
            gc.enable()
