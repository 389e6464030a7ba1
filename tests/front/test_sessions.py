"""Sessions over HTTP: how they begin, how they end, and that none sees another."""

from __future__ import annotations

import json

import attrs
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from asgi_client import DONE, LATEST, OLDEST, Client, Exchange
from asgi_world import open_world
from emceepee_trio.config import Config, Limits, Server
from memory_peers import scripted


def limits(**values: int) -> Config:
    return Config(limits=attrs.evolve(Limits(), **values))


async def test_the_version_asked_for_is_spoken_or_else_the_latest() -> None:
    with trio.fail_after(60):
        async with open_world() as world:
            for asked, said in [(OLDEST, OLDEST), (LATEST, LATEST), ("2099-01-01", LATEST)]:
                client = world.client()
                answer = await (await client.initialize(asked)).answer()
                assert answer["result"]["protocolVersion"] == said


async def test_every_handshake_makes_a_session_that_cannot_be_guessed_nor_chosen() -> None:
    with trio.fail_after(60):
        async with open_world() as world:
            sessions = {(await world.joined()).session for _ in range(20)}
            assert len(sessions) == 20
            assert all(len(str(session)) >= 32 for session in sessions)
            client = world.client()
            chosen = await client.initialize(mcp_session_id="my-own-choice")
            assert (await chosen.error())[0] == 404
            assert len(world.manager.sessions()) == 20


async def test_a_deleted_session_is_unknown_and_what_was_open_ends(
    autojump_clock: MockClock,
) -> None:
    async with open_world() as world:
        client, other = await world.joined(), await world.joined()
        listening, elsewhere = client.get(), other.get()
        exchange = client.request("test/speak", key="k")
        await world.speaker("k")
        await exchange.until(lambda: exchange.events)
        assert (await client.delete().complete()).status == 200
        await listening.complete()
        assert (await exchange.answer())["error"]["code"] == -32000
        for late in (client.request("ping"), client.get(), client.delete(), client.post(DONE)):
            assert (await late.error())[0] == 404
        await trio.sleep(1)
        assert not elsewhere.is_complete
        assert client.session not in world.endpoint.handshake.clients


async def _ends_after(client: Client, seconds: float) -> bool:
    """Whether the session is there until just before, and gone after."""
    start = trio.current_time()
    await trio.sleep_until(start + seconds - 0.5)
    there = client.endpoint.manager.get(str(client.session)) is not None
    await trio.sleep_until(start + seconds + 0.5)
    return there and client.endpoint.manager.get(str(client.session)) is None


async def test_a_session_that_only_began_ends_after_two_minutes(autojump_clock: MockClock) -> None:
    async with open_world() as world:
        client = await world.joined()
        assert await _ends_after(client, 120)
        assert (await client.request("ping").error())[0] == 404


async def test_a_used_session_ends_when_it_was_idle_long_enough(autojump_clock: MockClock) -> None:
    async with open_world() as world:
        client = await world.joined()
        await client.request("tools/list").complete()
        assert await _ends_after(client, 5 * 60)


async def test_a_session_with_a_reader_or_a_request_is_not_idle(autojump_clock: MockClock) -> None:
    async with open_world(limits(session_idle_ms=10_000)) as world:
        listener, waiting, dropped = [await world.joined() for _ in range(3)]
        listening = listener.get()
        waiting.request("test/speak", key="k")
        gone = dropped.request("test/speak", key="g")
        await gone.until(lambda: gone.events)
        gone.drop()
        await trio.sleep(1000)
        for client in (listener, waiting, dropped):
            assert world.manager.get(str(client.session)) is not None
        # A request goes on without its connection, so its session does.
        (await world.speaker("g")).answer("late")
        assert await _ends_after(dropped, 10)
        listening.drop()
        assert await _ends_after(listener, 10)


async def test_at_the_limit_the_longest_idle_session_makes_room_or_else_none_is_opened(
    autojump_clock: MockClock,
) -> None:
    async with open_world(limits(sessions=3)) as world:
        oldest, busy, idle = [await world.joined() for _ in range(3)]
        listening = busy.get()
        await trio.sleep(1)
        await oldest.request("ping").complete()
        newest = await world.joined()
        alive = [
            world.manager.get(str(c.session)) is not None for c in (oldest, busy, idle, newest)
        ]
        assert alive == [True, True, False, True]
        for client in (oldest, newest):
            await client.get().begun()
        refused = world.client()
        status, error = await (await refused.initialize()).error()
        assert status == 503
        assert "limits.sessions" in error["message"]
        listening.drop()
        await wait_all_tasks_blocked()
        await world.joined()


async def test_clients_that_begin_at_once_get_a_session_of_their_own_each() -> None:
    found: list[Client] = []
    with trio.fail_after(60):
        async with open_world() as world, trio.open_nursery() as nursery:

            async def begin() -> None:
                found.append(await world.joined())

            for _ in range(50):
                nursery.start_soon(begin)
    assert len({client.session for client in found}) == 50


async def test_fifty_clients_at_once_with_the_same_ids_get_their_own_secrets(
    autojump_clock: MockClock,
) -> None:
    async with open_world() as world:
        clients = [await world.joined(principal=f"p{n % 7}") for n in range(50)]
        posts: list[tuple[str, Exchange]] = []
        for n, client in enumerate(clients):
            key = f"secret of {n}"
            posts.append((key, client.request("test/speak", id=1, key=key)))
        listening = [client.get() for client in clients]

        async def talk(key: str) -> None:
            speaker = await world.speaker(key)
            await speaker.say(key)
            await speaker.say(key, standalone=True)
            speaker.answer(key)

        async with trio.open_nursery() as nursery:
            for key, _ in posts:
                nursery.start_soon(talk, key)
        for (key, exchange), stream in zip(posts, listening, strict=True):
            await exchange.complete()
            said = json.dumps([exchange.messages, [await stream.message()]])
            assert said.count(key) == 3
            assert said.count("secret") == 3
            assert len(stream.messages) == 1


# -- drain ----------------------------------------------------------------------------------------


async def test_at_drain_streams_and_waits_return_and_what_is_answered_goes_on(
    autojump_clock: MockClock,
) -> None:
    async with open_world() as world:
        client = await world.joined()
        listening = client.get()
        waiting = client.tool("await_activity", timeout_ms=900_000)
        exchange = client.request("test/speak", key="k")
        speaker = await world.speaker("k")
        await trio.sleep(1)
        started = trio.current_time()
        world.endpoint.drain()
        await listening.complete()
        error = json.loads((await waiting.answer())["result"]["content"][0]["text"])["error"]
        assert error == {
            "code": "TOOL_ERR_TIMEOUT",  # for its session has not ended
            "message": "nothing more is waited for: the daemon is stopping; call again when it is "
            "back",
        }
        assert trio.current_time() == started
        assert (await client.get().error())[0] == 503
        assert (await (await world.client().initialize()).error())[0] == 503
        assert (await client.request("ping").answer())["result"] == {}
        speaker.answer("last words")
        assert (await exchange.answer())["result"]["text"] == "last words"
        assert (await client.delete().complete()).status == 200


# -- the end of a session under a request ---------------------------------------------------------


async def test_what_is_under_way_when_its_session_ends_is_told_so(
    autojump_clock: MockClock,
) -> None:
    servers = (Server("a", command="program", era="handshake"),)
    with scripted():
        async with open_world(Config(servers=servers)) as world:
            client = await world.joined()
            promoted = await client.call("execute_tool", server="a", tool="never", timeout_ms=0)
            task = json.loads(promoted["content"][1]["text"])["proxy_task"]["task_id"]
            waiting = [
                client.tool("execute_tool", server="a", tool="never"),
                client.tool("get_task_result", task_id=task),
            ]
            await trio.sleep(1)
            started = trio.current_time()
            assert (await client.delete().complete()).status == 200
            for exchange in waiting:
                result = (await exchange.answer())["result"]
                assert result["isError"] is True
                error = json.loads(result["content"][0]["text"])["error"]
                assert error["code"] == "TOOL_ERR_SESSION_NOT_FOUND"
            assert trio.current_time() == started
