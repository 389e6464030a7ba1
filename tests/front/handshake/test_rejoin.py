"""Clients that lost their streams and join their session again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from asgi_client import BATCHING, DONE, HELLO, LATEST, Client, Event, request
from asgi_world import listening, open_world, speaking, texts
from emceepee_trio.config import Config, Server
from fake_backends import raw


@pytest.mark.parametrize("header", ["mcp_session_id", "x_mcp_reconnect_session"])
async def test_who_names_a_living_session_joins_it_again(header: str) -> None:
    with trio.fail_after(60):
        async with open_world() as world:
            client = await world.joined()
            await client.call("set_timer", duration_ms=60_000, message="mine")
            session = str(client.session)
            again = world.client()
            joined = await again.initialize(LATEST, **{header: session})
            assert joined.headers["mcp-session-id"] == session
            assert (await joined.answer())["result"]["serverInfo"]["name"] == "emceepee"
            assert "mine" in json.dumps(await again.call("list_timers"))
            assert len(world.manager.sessions()) == 1


@pytest.mark.parametrize("header", ["mcp_session_id", "x_mcp_reconnect_session"])
async def test_an_unknown_or_foreign_session_cannot_be_joined(header: str) -> None:
    with trio.fail_after(60):
        async with open_world() as world:
            client, thief = await world.joined(principal="ann"), world.client("bob")
            for named in ("unknown", "", str(client.session)):
                assert (await (await thief.initialize(LATEST, **{header: named})).error())[0] == 404
            assert (await client.request("ping").answer())["result"] == {}


async def test_the_header_for_joining_again_names_no_session_for_anything_else() -> None:
    with trio.fail_after(60):
        async with open_world() as world:
            client, other = await world.joined(), await world.joined()
            name: dict[str, Any] = {"x_mcp_reconnect_session": other.session}
            listed = await client.post(request(9, "ping"), **name).complete()
            assert listed.headers["mcp-session-id"] == client.session
            refused = client.post(request(9, "ping"), mcp_session_id=None, **name)
            assert (await refused.error())[0] == 400


async def test_joining_again_speaks_the_version_it_asked_for(autojump_clock: MockClock) -> None:
    async with open_world() as world:
        client = await world.joined(BATCHING)
        assert not (await listening(client)).events
        await client.rejoin(LATEST)
        assert (await listening(client)).primed
        assert (await client.post([DONE]).error())[0] == 400


async def test_unread_messages_move_to_the_standalone_stream_once_and_in_order(
    autojump_clock: MockClock,
) -> None:
    async with open_world() as world:
        client = await world.joined()
        ghost = await listening(client)
        one, first = await speaking(world, client, "1")
        two, second = await speaking(world, client, "2")
        await first.say("read")
        await one.message()
        for exchange in (ghost, one, two):
            exchange.stop_reading(ghost=exchange is ghost)
        await second.say("a")
        await first.say("b")
        await second.say("c")
        await first.say("d", standalone=True)
        second.answer("e")
        await wait_all_tasks_blocked()
        await client.rejoin()
        stream = await listening(client)
        assert texts(stream.messages) == ["d", "a", "b", "c"]
        for exchange in (ghost, one, two):
            exchange.drop()
        # The answer has stayed where it belongs.
        answered = await client.get(two.events[0].id).complete()
        assert texts(answered.messages) == ["e"]
        assert await _late(client, one.events[0]) == ["read"]
        assert await _late(client, two.events[-1]) == ["e"]
        assert await _late(client, ghost.events[0]) == ["d", "a", "b", "c"]
        assert texts(stream.messages) == ["d", "a", "b", "c"]


async def _late(client: Client, event: Event) -> list[str]:
    """What there still is behind an old id, if anything."""
    exchange = client.get(event.id)
    if await exchange.begun() != 200:
        return []
    await wait_all_tasks_blocked()
    exchange.drop()
    return texts(exchange.messages)


async def test_old_and_new_requests_with_one_id_are_not_confused(
    autojump_clock: MockClock,
) -> None:
    async with open_world() as world:
        client = await world.joined()
        old = client.request("test/speak", id=1, key="old")
        speaker = await world.speaker("old")
        await client.rejoin()
        new = client.request("test/speak", id=1, key="new")
        fresh = await world.speaker("new")
        speaker.answer("old")
        assert (await old.complete()).messages == []
        client.cancel(99)
        fresh.answer("new")
        assert texts((await new.complete()).messages) == ["new"]


async def test_waits_end_when_their_client_joins_again_and_events_are_given_back(
    autojump_clock: MockClock,
) -> None:
    async with open_world() as world:
        client = await world.joined()
        waits = [client.tool("await_activity", timeout_ms=900_000) for _ in range(3)]
        await waits[0].until(lambda: waits[0].events)
        started = trio.current_time()
        # In the tick in which there is something to tell.
        session = client.own.session
        again = client.post(
            request(1, "initialize", protocolVersion=LATEST, **HELLO), mcp_session_id=session.id
        )
        session.notified("files", "notifications/vendor", {"n": 1})
        await again.complete()
        for wait in waits:
            await wait.complete()
        assert trio.current_time() - started < 1
        # Told once: to a wait that was answered before, or else now.
        told = [json.dumps(wait.messages) for wait in waits]
        for wait in waits:
            resumed = client.get(wait.events[-1].id)
            told.append(json.dumps((await resumed.complete()).messages))
        told.append(json.dumps(await client.call("await_activity", timeout_ms=0)))
        assert sum(text.count("notifications/vendor") for text in told) == 1
        assert session.presence.waiters == 0


async def test_calls_in_flight_become_tasks_at_once(tmp_path: Path) -> None:
    go = tmp_path / "go"
    server = Server(name="raw", **raw())
    with trio.fail_after(60):
        async with open_world(Config(servers=(server,))) as world:
            client = await world.joined()
            assert "isError" not in await _execute(client, "echo")
            call = client.tool("execute_tool", server="raw", tool="slow", args={"file": str(go)})
            await call.until(lambda: call.events)
            assert client.own.session.calls.tasks() == []
            await client.rejoin()
            (task,) = client.own.session.calls.tasks()
            await call.complete()
            assert call.messages == []
            go.touch()
            found = await client.call("get_task_result", task_id=task.task_id)
            assert "the file is there" in json.dumps(found)


async def test_a_call_whose_request_has_just_come_becomes_a_task_too() -> None:
    server = Server(name="raw", **raw())
    with trio.fail_after(60):
        async with open_world(Config(servers=(server,))) as world:
            client = await world.joined()
            for _ in range(20):
                calls = [
                    client.tool("execute_tool", server="raw", tool="echo", args={"n": n})
                    for n in range(3)
                ]
                joining = request(0, "initialize", protocolVersion=LATEST, **HELLO)
                again = client.post(joining, mcp_session_id=client.session)
                await again.complete()
                client.post(DONE)
                for call in calls:
                    await call.complete()
                answered = sum(len(call.messages) for call in calls)
                promoted = len(client.own.session.calls.tasks())
                # Each was answered, or is a task, or came to the new connection, which is open.
                assert answered + promoted == 3
                client.own.session.calls._calls.clear()
                client.own.session.calls.finished._calls.clear()


async def _execute(client: Client, tool: str, **args: Any) -> Any:
    return await client.call("execute_tool", server="raw", tool=tool, args=args)
