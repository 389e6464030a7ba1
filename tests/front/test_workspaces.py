"""Sessions of the modern era: workspaces, by name and principal."""

from __future__ import annotations

import os

import attrs
import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from asgi_world import open_world
from emceepee_trio.config import Config, Limits


async def test_a_workspace_belongs_to_its_name_and_principal() -> None:
    with trio.fail_after(60):
        async with open_world() as world:
            ann, bob = world.client("ann"), world.client("bob")
            await ann.modern_call("set_timer", duration_ms=60_000, message="of ann in main")
            await ann.modern_call(
                "set_timer", query="session=b", duration_ms=60_000, message="in b"
            )
            found = [
                [
                    timer["message"]
                    for timer in (await who.modern_call("list_timers", query=q))["timers"]
                ]
                for who, q in [
                    (ann, ""),
                    (ann, "session=main"),
                    (ann, "session=b"),
                    (ann, "session=c&x=y"),
                    (bob, ""),
                    (bob, "session=b"),
                ]
            ]
            assert found == [["of ann in main"], ["of ann in main"], ["in b"], [], [], []]


@pytest.mark.parametrize(
    "query",
    [
        "session=",
        "session=a/b",
        "session=-a",
        "session=a%20b",
        "session=" + "a" * 65,
        "session=%ff",
    ],
)
async def test_a_bad_name_of_a_workspace_is_refused(query: str) -> None:
    with trio.fail_after(60):
        async with open_world() as world:
            refused = world.client().modern("tools/list", query=query, id=3)
            status, error = await refused.error()
            assert (status, error["code"]) == (400, -32602)
            assert (await refused.answer())["id"] == 3
            both = world.client().modern("tools/list", query="session=a&session=b")
            assert (await both.error())[0] == 400
            assert world.manager.sessions() == []


async def test_a_workspace_ends_when_it_is_idle_and_is_made_again(
    autojump_clock: MockClock,
) -> None:
    async with open_world() as world:
        client = world.client()
        await client.modern_call("list_tasks")
        session = world.manager.get("local/main")
        assert session is not None
        await trio.sleep(5 * 60 - 1)
        assert world.manager.get("local/main") is session
        await trio.sleep(2)
        assert world.manager.get("local/main") is None
        await client.modern_call("list_tasks")
        assert world.manager.get("local/main") not in (None, session)


async def test_at_the_limit_no_workspace_is_made_while_all_are_busy(
    autojump_clock: MockClock,
) -> None:
    config = Config(limits=attrs.evolve(Limits(), sessions=1))
    async with open_world(config) as world:
        client = world.client()
        busy = client.modern("test/speak", key="k")
        speaker = await world.speaker("k")
        assert (await client.modern("tools/list", query="session=b").error())[0] == 503
        speaker.answer("done")
        await busy.complete()
        await wait_all_tasks_blocked()
        assert "result" in await client.modern("tools/list", query="session=b").answer()


async def test_a_session_that_ends_under_a_request_answers_it(autojump_clock: MockClock) -> None:
    async with open_world() as world:
        waiting = world.client().modern_tool("await_activity", timeout_ms=900_000)
        await wait_all_tasks_blocked()
        session = world.manager.get("local/main")
        assert session is not None
        world.manager.end(session, "test")
        assert (await waiting.answer())["result"]["isError"] is True
        assert await world.client().modern_call("list_tasks") == {"tasks": []}


async def test_fifty_clients_at_once_get_their_own_secrets(autojump_clock: MockClock) -> None:
    async with open_world() as world:
        keys = [os.urandom(8).hex() for _ in range(50)]
        clients = [world.client(f"p{n % 7}") for n in range(50)]
        exchanges = [
            client.modern("test/speak", query=f"session=w{n % 10}", id=1, key=key)
            for n, (client, key) in enumerate(zip(clients, keys, strict=True))
        ]

        async def talk(key: str) -> None:
            speaker = await world.speaker(key)
            await speaker.say(key)
            await speaker.say("never seen", standalone=True)  # there is no such stream
            speaker.answer(key)

        async with trio.open_nursery() as nursery:
            for key in keys:
                nursery.start_soon(talk, key)
        for key, exchange in zip(keys, exchanges, strict=True):
            said, answer = (await exchange.complete()).messages
            assert (said["params"]["message"], answer["result"]["text"]) == (key, key)


async def test_several_clients_in_one_workspace_are_noticed_and_told() -> None:
    with trio.fail_after(60):
        async with open_world() as world:
            ann = world.client("ann")
            meta = "io.modelcontextprotocol/clientInfo"
            await ann.modern("tools/list").complete()
            await ann.modern("tools/list").complete()
            assert (await ann.modern_call("await_activity", timeout_ms=1))["events"] == []
            other = {meta: {"name": "codex", "version": "1"}}
            await ann.modern("tools/list", meta=other).complete()
            (by,) = (await ann.modern_call("await_activity", timeout_ms=1))["events"]
            (told,) = by["events"]
            assert told["type"] == "session_shared"
            assert told["data"]["clients"] == ["asgi 0", "codex 1"]
            assert "--connect" in told["data"]["advice"]
            await ann.modern("tools/list", meta=other).complete()
            assert (await ann.modern_call("await_activity", timeout_ms=1))["events"] == []


async def test_two_windows_of_one_client_are_noticed_by_their_ids() -> None:
    with trio.fail_after(60):
        async with open_world() as world:
            ann = world.client("ann")
            waits = {"timeout_ms": 60_000}
            one = ann.modern("tools/call", id=1, name="await_activity", arguments=waits)
            await wait_all_tasks_blocked()
            await ann.modern("tools/list", id=2).complete()
            assert not one.is_complete
            await ann.modern("tools/list", id=1).complete()
            (told,) = (await one.message())["result"]["content"]
            assert '"session_shared"' in told["text"]


async def test_a_workspace_is_ended_by_its_url() -> None:
    with trio.fail_after(60):
        async with open_world() as world:
            ann, bob = world.client("ann"), world.client("bob")
            await ann.modern_call("set_timer", query="session=w", duration_ms=60_000, message="w")
            assert (await bob.open("DELETE", {}, query="session=w").complete()).status == 404
            assert (await ann.open("DELETE", {}, query="session=w").complete()).status == 200
            assert (await ann.modern_call("list_timers", query="session=w"))["timers"] == []
