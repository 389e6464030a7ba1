"""Events in responses of the handshake era: told once, or given back if nobody can read them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from asgi_client import LATEST, Client, Exchange
from asgi_world import World, open_world
from deliveries_model import happen, told
from emceepee_trio.config import Config, Limits, Server
from emceepee_trio.front.handshake.readers import QUICK
from emceepee_trio.front.handshake.streams import KEPT
from fake_backends import raw

UNPRIMED = "2025-06-18"
LONG = 900_000
"""Milliseconds."""


PATIENT = Config(limits=Limits(answer_ms=LONG))
"""For who waits until something is given back."""


async def wait_dropped(client: Client) -> Exchange:
    """A wait for activity whose connection is gone half a second later."""
    waiting = client.tool("await_activity", timeout_ms=LONG)
    await trio.sleep(0.5)
    waiting.drop()
    await wait_all_tasks_blocked()
    return waiting


async def polled(client: Client) -> list[int]:
    """What a response tells now."""
    return told([await client.tool("list_timers").answer()])


async def test_what_an_answer_tells_that_nobody_can_come_back_for_is_told_by_the_next(
    autojump_clock: MockClock,
) -> None:
    async with open_world() as world:
        client = await world.joined(UNPRIMED)
        await wait_dropped(client)
        happen(client, 1)
        await wait_all_tasks_blocked()
        assert await polled(client) == [1]
        assert await polled(client) == []


async def test_a_wait_gets_what_an_answer_without_a_reader_gives_back(
    autojump_clock: MockClock,
) -> None:
    async with open_world() as world:
        client = await world.joined(UNPRIMED)
        for _ in range(50):  # trio shuffles what is due in one tick
            await wait_dropped(client)
            waiting = client.tool("await_activity", timeout_ms=LONG)
            await trio.sleep(1)
            happen(client, 1)
            first = told([await waiting.answer()])
            # Or it has looked while the other had it, and says only that there was something.
            assert first + await polled(client) == [1]


@pytest.mark.parametrize("version", [UNPRIMED, LATEST])
async def test_who_vanishes_before_a_quick_answer_leaves_its_events(
    version: str, autojump_clock: MockClock
) -> None:
    async with open_world() as world:
        client = await world.joined(version)
        waiting = client.tool("await_activity", timeout_ms=LONG)
        await trio.sleep(QUICK / 2)
        waiting.drop()
        await wait_all_tasks_blocked()
        happen(client, 1)
        await trio.sleep(1)
        assert waiting.messages == []
        assert await polled(client) == [1]


async def test_who_vanishes_in_the_tick_of_a_quick_answer_gets_it_or_leaves_its_events(
    autojump_clock: MockClock,
) -> None:
    async with open_world() as world:
        client = await world.joined()
        for n in range(50):
            happen(client, n)
            exchange = client.tool("list_timers")
            exchange.drop()
            await trio.sleep(1)
            assert exchange.messages == []
            assert await polled(client) == [n]


async def test_a_stream_whose_id_is_known_keeps_its_events_for_who_comes_back(
    autojump_clock: MockClock,
) -> None:
    async with open_world() as world:
        client = await world.joined(UNPRIMED)
        params = {"name": "await_activity", "arguments": {"timeout_ms": LONG}}
        waiting = client.request("tools/call", **params, _meta={"progressToken": "p"})
        await waiting.message()  # progress, with an id
        waiting.drop()
        await wait_all_tasks_blocked()
        happen(client, 1)
        await wait_all_tasks_blocked()
        assert await polled(client) == []
        resumed = await client.get(waiting.events[-1].id).complete()
        assert told(resumed.messages) == [1]
        assert await polled(client) == []
        await trio.sleep(2 * KEPT)
        assert await polled(client) == []


async def test_who_does_not_come_back_is_told_in_five_minutes_by_another_response(
    autojump_clock: MockClock,
) -> None:
    async with open_world(PATIENT) as world:
        client = await world.joined()
        gone = await wait_dropped(client)
        assert gone.primed
        happen(client, 1)
        await wait_all_tasks_blocked()
        happen(client, 2)
        assert await polled(client) == [2]
        waiting = client.tool("await_activity", timeout_ms=LONG)
        started = trio.current_time()
        answer = await waiting.answer()
        assert trio.current_time() - started == pytest.approx(KEPT)
        assert told([answer]) == [1]
        assert (await client.get(gone.events[0].id).error())[0] == 400
        assert await polled(client) == []


async def test_an_answer_that_is_evicted_gives_its_events_back(autojump_clock: MockClock) -> None:
    async with open_world() as world:
        client = await world.joined()
        client.own.streams.keep = 3
        await wait_dropped(client)
        happen(client, 1)
        await wait_all_tasks_blocked()
        for _ in range(10):
            await client.own.streams.wait_for_room()
            client.own.streams.add(client.own.streams.new(), "{}", is_answer=True)
        await client.own.streams.wait_for_room()
        assert await polled(client) == [1]


async def test_joining_again_gives_back_what_was_not_read_but_keeps_results(
    autojump_clock: MockClock,
) -> None:
    async with open_world() as world:
        client = await world.joined()
        waited = await wait_dropped(client)
        happen(client, 1)
        await wait_all_tasks_blocked()
        happen(client, 2)
        called = client.tool("set_timer", duration_ms=LONG, message="x")
        called.stop_reading(ghost=True)
        await wait_all_tasks_blocked()
        await client.rejoin()
        assert await polled(client) == [1]
        called.drop()
        resumed = client.get(waited.events[0].id)
        assert (await resumed.error())[0] == 400
        # What was being written when it joined again is the transport's.
        assert await polled(client) == []


async def test_a_result_that_was_not_read_stays_without_its_events(
    tmp_path: Path,
) -> None:
    go = tmp_path / "go"
    server = Server(name="raw", **raw())
    with trio.fail_after(60):
        async with open_world(Config(servers=(server,))) as world:
            client = await world.joined()
            await until_connected(client)
            args = {"file": str(go)}
            call = client.tool("execute_tool", server="raw", tool="slow", args=args)
            await call.until(lambda: call.primed)
            call.drop()
            happen(client, 1)
            go.touch()
            (stream,) = [
                s for s in client.own.streams._streams.values() if s.id in str(call.events[0].id)
            ]
            while not stream.is_finished:
                await stream.news.wait()
            assert await polled(client) == []
            await client.rejoin()
            assert await polled(client) == [1]
            resumed = await client.get(call.events[0].id).complete()
            assert "the file is there" in json.dumps(resumed.messages)
            assert told(resumed.messages) == []


async def until_connected(client: Client) -> None:
    asked: dict[str, Any] = {"server": "raw", "tool": "echo", "args": {}}
    assert "isError" not in await client.call("execute_tool", **asked)
    while await polled_any(client):
        pass


async def polled_any(client: Client) -> bool:
    said = json.dumps(await client.call("list_timers"))
    return "events_since_last_response" in said


async def test_an_answer_that_became_an_error_gives_its_events_back(
    autojump_clock: MockClock,
) -> None:
    async with open_world() as world:
        client = await world.joined()
        happen(client, 1)
        assert "error" in await client.tool("no_such_tool").answer()
        assert await polled(client) == [1]


async def test_a_cursor_does_not_pass_over_what_came_back(autojump_clock: MockClock) -> None:
    """Who follows events by their ids alone misses none, and gets none twice."""
    async with open_world(PATIENT) as world:
        client = await world.joined()
        await wait_dropped(client)
        happen(client, 1)
        await wait_all_tasks_blocked()
        happen(client, 2)
        seen, cursor = await follow(world, client, None)
        assert seen == [2]
        seen, cursor = await follow(world, client, cursor)
        assert seen == [1]
        happen(client, 3)
        seen, _ = await follow(world, client, cursor)
        assert seen == [3]


async def follow(world: World, client: Client, cursor: str | None) -> tuple[list[int], str]:
    since = {} if cursor is None else {"last_event_id": cursor}
    answer = await client.tool("await_activity", timeout_ms=LONG, **since).answer()
    said = json.loads(answer["result"]["content"][0]["text"])
    return told([answer]), said["lastEventId"]
