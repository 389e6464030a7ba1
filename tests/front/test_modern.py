"""The era in which every POST is self-contained."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from asgi_client import MODERN, Exchange, modern_headers, request, stamp
from asgi_world import open_world
from emceepee_trio.config import Config, Limits, ResultSettings, Server
from emceepee_trio.web.wire import KEEP_ALIVE_EVERY
from fake_backends import Journal, raw
from memory_peers import Peer, Peers

META = "io.modelcontextprotocol/"


async def test_discover_tells_what_is_served() -> None:
    with trio.fail_after(60):
        async with open_world() as world:
            exchange = await world.client().modern("server/discover").complete()
            assert exchange.status == 200
            assert exchange.headers["content-type"] == "application/json"
            assert "mcp-session-id" not in exchange.headers
            result = (await exchange.answer())["result"]
            assert result["resultType"] == "complete"
            assert MODERN in result["supportedVersions"]
            assert result["_meta"][f"{META}serverInfo"]["name"] == "emceepee"


@pytest.mark.parametrize(
    ("method", "params", "kind"),
    [
        ("tools/list", {}, "tools"),
        ("resources/list", {}, "resources"),
        ("prompts/list", {}, "prompts"),
        ("resources/read", {"uri": "emceepee://diagrams"}, "contents"),
    ],
)
async def test_lists_say_how_long_they_hold(method: str, params: Any, kind: str) -> None:
    with trio.fail_after(60):
        async with open_world() as world:
            result = (await world.client().modern(method, **params).answer())["result"]
            assert isinstance(result[kind], list)
            assert result["ttlMs"] > 0
            assert result["cacheScope"] == "private"


async def test_a_list_that_is_known_is_the_same_as_one_that_is_made() -> None:
    with trio.fail_after(60):
        async with open_world() as world:
            client = world.client()
            known = (await client.modern("tools/list").answer())["result"]
            # What a server does not know of a request it does not mind, but looks at.
            made = (await client.modern("tools/list", padding="x").answer())["result"]
            assert list(known.items()) == list(made.items())


LIST: dict[str, Any] = modern_headers("tools/list", {})
STAMPED: dict[str, Any] = {"_meta": stamp()}


@pytest.mark.parametrize(
    ("headers", "message", "status", "code"),
    [
        ({}, request(1, "tools/list"), 400, -32602),
        ({}, request(1, "tools/list", _meta={f"{META}protocolVersion": MODERN}), 400, -32602),
        ({"mcp_method": None}, request(1, "tools/list", **STAMPED), 400, -32020),
        ({"mcp_method": "tools/call"}, request(1, "tools/list", **STAMPED), 400, -32020),
        ({"mcp_protocol_version": None}, request(1, "tools/list", **STAMPED), 400, -32020),
        (
            {"mcp_protocol_version": "2025-11-25"},
            request(1, "tools/list", **STAMPED),
            400,
            -32020,
        ),
        (
            {"mcp_method": "tools/call", "mcp_name": "get_task"},
            request(1, "tools/call", name="list_tasks", **STAMPED),
            400,
            -32020,
        ),
        (
            {"mcp_protocol_version": "2099-01-01"},
            request(1, "tools/list", _meta=stamp("2099-01-01")),
            400,
            -32022,
        ),
        ({"mcp_method": "no/such"}, request(1, "no/such", **STAMPED), 404, -32601),
        ({"mcp_method": "initialize"}, request(1, "initialize", **STAMPED), 404, -32601),
        ({}, {"jsonrpc": "2.0", "id": None, "method": "tools/list"}, 400, -32600),
        ({}, [request(1, "tools/list", **STAMPED)], 400, -32600),
        ({}, {"jsonrpc": "2.0", "id": 1, "result": {}}, 400, -32600),
        ({}, 5, 400, -32600),
        ({}, b"{", 400, -32700),
        ({"accept": "application/json"}, request(1, "tools/list", **STAMPED), 406, -32600),
        ({"content_type": "text/plain"}, request(1, "tools/list", **STAMPED), 415, -32600),
    ],
)
async def test_a_bad_request_is_told_so_with_its_status(
    headers: dict[str, Any], message: Any, status: int, code: int
) -> None:
    with trio.fail_after(60):
        async with open_world() as world:
            client = world.client()
            said, error = await client.post(message, **(LIST | headers)).error()
            assert (said, error["code"]) == (status, code)
            if code == -32022:
                assert error["data"] == {"supported": [MODERN], "requested": "2099-01-01"}
            assert "result" in await client.modern("tools/list").answer()


async def test_a_header_that_decides_may_not_come_twice() -> None:
    with trio.fail_after(60):
        async with open_world() as world:
            client = world.client()
            exchange = Exchange(client.modern("tools/list").scope)
            exchange.scope["headers"].append((b"mcp-method", b"tools/list"))
            exchange.put(json.dumps(request(1, "tools/list", **STAMPED)).encode())
            await world.endpoint(exchange.scope, exchange.receive, exchange.send, "local")
            status, error = await exchange.error()
            assert (status, error["code"]) == (400, -32020)


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT"])
async def test_there_is_nothing_but_post(method: str) -> None:
    with trio.fail_after(60):
        async with open_world() as world:
            refused = world.client().open(method, {"mcp-protocol-version": MODERN})
            assert (await refused.error())[0] == 405
            assert refused.headers["allow"] == "POST, OPTIONS"


async def test_notifications_are_taken_if_their_version_is_served() -> None:
    message = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
    with trio.fail_after(60):
        async with open_world() as world:
            client = world.client()
            taken = await client.post(message, mcp_protocol_version=MODERN).complete()
            assert (taken.status, bytes(taken.body)) == (202, b"")


# -- how it is answered ---------------------------------------------------------------------------


async def test_the_answer_is_json_however_slow_until_something_is_said_first(
    autojump_clock: MockClock,
) -> None:
    async with open_world() as world:
        client = world.client()
        plain, chatty = (client.modern("test/speak", key=key) for key in ("plain", "chatty"))
        one, two = await world.speaker("plain"), await world.speaker("chatty")
        await trio.sleep(KEEP_ALIVE_EVERY - 1)
        assert (plain.status, chatty.status) == (0, 0)
        await two.say("news")
        await chatty.message()
        assert chatty.is_stream
        one.answer("done")
        two.answer("done")
        assert not (await plain.complete()).is_stream
        assert [set(m) for m in (await chatty.complete()).messages] == [
            {"jsonrpc", "method", "params"},
            {"jsonrpc", "id", "result"},
        ]
        assert all(e.id is None and e.retry is None and e.data for e in chatty.events)


async def test_after_a_long_silence_it_is_a_stream_of_comments(autojump_clock: MockClock) -> None:
    async with open_world() as world:
        exchange = world.client().modern("test/speak", key="k")
        speaker = await world.speaker("k")
        await trio.sleep(KEEP_ALIVE_EVERY + 1)
        assert exchange.is_stream
        await trio.sleep(KEEP_ALIVE_EVERY * 3)
        assert exchange.comments == 3
        speaker.answer("done")
        assert [m["result"]["text"] for m in (await exchange.complete()).messages] == ["done"]


async def test_who_asked_for_progress_gets_it_before_the_answer(
    autojump_clock: MockClock,
) -> None:
    async with open_world() as world:
        waiting = world.client().modern_tool(
            "await_activity", meta={"progressToken": "p"}, timeout_ms=35_000
        )
        *progress, answer = (await waiting.complete()).messages
        assert [m["method"] for m in progress] == ["notifications/progress"] * 3
        assert {m["params"]["progressToken"] for m in progress} == {"p"}
        assert "result" in answer


async def test_a_slow_reader_gets_the_newest_and_the_answer(autojump_clock: MockClock) -> None:
    async with open_world() as world:
        exchange = world.client().modern("test/speak", key="k")
        speaker = await world.speaker("k")
        await speaker.say("first")
        await exchange.message()
        exchange.stop_reading()
        for n in range(1000):
            await speaker.say(str(n))
        speaker.answer("done")
        await wait_all_tasks_blocked()
        exchange.read_on()
        *said, answer = (await exchange.complete()).messages
        texts = [message["params"]["message"] for message in said]
        assert texts[0] == "first"
        assert texts[-1] == "999"
        assert 200 < len(texts) < 1000
        assert answer["result"]["text"] == "done"


async def test_who_closes_a_wait_leaves_its_events_to_the_next(autojump_clock: MockClock) -> None:
    async with open_world() as world:
        client = world.client()
        for _ in range(50):  # trio shuffles what is due in one tick
            waiting = client.modern_tool("await_activity", timeout_ms=900_000)
            await wait_all_tasks_blocked()
            session = world.manager.get("local/main")
            assert session is not None
            waiting.drop()
            session.notified("files", "notifications/vendor", {"n": 1})
            await wait_all_tasks_blocked()
            assert session.presence.waiters == 0
            found = await client.modern_call("await_activity", timeout_ms=0)
            assert len(found["events"]) == 1


@pytest.mark.parametrize("steps", [20, 40, 60, 80])
async def test_who_goes_while_a_long_answer_is_made_has_it_by_asking_again(steps: int) -> None:
    """Its call has run, so it does not run again; a step makes 64 kB of the answer."""

    called = trio.Event()

    def answered(peer: Peer, request_id: int) -> None:
        called.set()
        peer.answer(request_id, {"content": [{"type": "text", "text": "x" * 10_000_000}]})

    servers = (Server("x", command="program", era="handshake"),)
    config = Config(servers=servers, results=ResultSettings(inline_bytes=0))
    peers = Peers(on_call=answered)

    def began() -> int:
        return sum(len(peer.began) for peer in peers.all)

    with peers.in_place():
        async with open_world(config) as world:
            client = world.client()
            asked: dict[str, Any] = {"server": "x", "tool": "dig", "args": {}}
            exchange = client.modern_tool("execute_tool", **asked)
            await called.wait()
            for _ in range(steps):
                await trio.lowlevel.checkpoint()
            assert not exchange.messages
            exchange.drop()
            await wait_all_tasks_blocked()
            again = await client.modern_tool("execute_tool", **asked).answer()
            assert len(again["result"]["content"][0]["text"]) == 10_000_000
            assert began() == 1


async def test_closing_the_response_cancels_the_call(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal")
    server = Server(name="raw", **raw(*journal.flags))
    args: dict[str, Any] = {"server": "raw", "tool": "slow", "args": {}}
    with trio.fail_after(60):
        async with open_world(Config(servers=(server,), limits=Limits(reissue_ms=0))) as world:
            client = world.client()
            exchange = client.modern_tool("execute_tool", **args)
            await journal.wait_for_marker("slow started")
            exchange.drop()
            await journal.wait_for_marker("slow cancelled")
            promoted = client.modern_tool("execute_tool", **args, timeout_ms=0)
            await journal.wait_for_marker("slow started", 2)
            await promoted.complete()
            waiting = client.modern_tool("get_task_result", task_id=_task_id(promoted))
            await wait_all_tasks_blocked()
            waiting.drop()
            await wait_all_tasks_blocked()
            (task,) = (await client.modern_call("list_tasks"))["tasks"]
            assert task["status"] == "working"


def _task_id(exchange: Exchange) -> str:
    shown = exchange.messages[-1]["result"]["content"][1]["text"]
    return str(json.loads(shown)["proxy_task"]["task_id"])


# -- listening ------------------------------------------------------------------------------------


async def test_listening_is_acknowledged_with_what_we_deliver_and_ends_at_drain(
    autojump_clock: MockClock,
) -> None:
    async with open_world() as world:
        client = world.client()
        wanted = {
            "toolsListChanged": True,
            "promptsListChanged": True,
            "resourcesListChanged": True,
            # Ours never changes; of whom the other is, nobody can tell.
            "resourceSubscriptions": ["emceepee://diagrams", "a://b"],
        }
        exchange = client.modern("subscriptions/listen", id="L", notifications=wanted)
        first = await exchange.message()
        assert first["method"] == "notifications/subscriptions/acknowledged"
        assert first["params"]["notifications"] == {}
        session = world.manager.get("local/main")
        assert session is not None
        session.notified("files", "notifications/resources/updated", {"uri": "a://b"})
        await trio.sleep(100)
        assert not exchange.is_complete
        waiting = client.modern_tool("await_activity", timeout_ms=900_000)
        await wait_all_tasks_blocked()
        world.endpoint.drain()
        await exchange.complete()
        _, cancelled, answer = exchange.messages
        subscription = {"io.modelcontextprotocol/subscriptionId": "L"}
        metas = [first["params"]["_meta"], cancelled["params"]["_meta"], answer["result"]["_meta"]]
        assert all(meta.items() >= subscription.items() for meta in metas)
        assert cancelled["method"] == "notifications/cancelled"
        assert cancelled["params"]["requestId"] == "L"
        assert (answer["id"], answer["result"]["resultType"]) == ("L", "complete")
        await waiting.complete()
        assert "result" in await client.modern("tools/list").answer()
        assert (await client.modern("tools/list", query="session=new").error())[0] == 503
