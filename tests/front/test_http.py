"""Requests that are refused, and how a POST is answered."""

from __future__ import annotations

from typing import Any

import attrs
import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from asgi_client import BATCHING, DONE, HELLO, LATEST, OLDEST, request
from asgi_world import open_world
from emceepee_trio.config import Config, Limits
from emceepee_trio.front.handshake.readers import QUICK
from emceepee_trio.web.wire import KEEP_ALIVE_EVERY

PING = request(1, "ping")


# -- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("headers", "body", "status", "code"),
    [
        ({"content_type": "text/plain"}, PING, 415, -32600),
        ({"content_type": None}, PING, 415, -32600),
        ({"accept": "application/json"}, PING, 406, -32600),
        ({"accept": None}, PING, 406, -32600),
        ({}, b"{", 400, -32700),
        ({}, b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":NaN}}', 400, -32700),
        ({}, b"\xff", 400, -32700),
        ({}, b"[" * 100_000, 400, -32700),
        ({}, [], 400, -32600),
        ({}, 5, 400, -32600),
        ({}, {"jsonrpc": "1.0", "id": 1, "method": "ping"}, 400, -32600),
        ({}, {"jsonrpc": "2.0", "id": None, "method": "ping"}, 400, -32600),
        ({}, {"jsonrpc": "2.0", "id": 1.5, "method": "ping"}, 400, -32600),
        ({}, {"jsonrpc": "2.0", "id": True, "method": "ping"}, 400, -32600),
        ({}, [PING], 400, -32600),
        ({"mcp_protocol_version": "1999-01-01"}, PING, 400, -32600),
        ({"mcp_session_id": None}, PING, 400, -32600),
        ({"mcp_session_id": ""}, PING, 404, -32600),
        ({"mcp_session_id": "unknown"}, PING, 404, -32600),
        ({"mcp_session_id": "local/main"}, PING, 404, -32600),
        ({}, b" " * 200_001, 413, -32600),
        ({"mcp_session_id": None}, request(1, "initialize"), 400, -32602),
        ({"mcp_session_id": None}, [request(1, "initialize", **HELLO)], 400, -32600),
    ],
)
async def test_a_bad_post_is_refused_and_costs_nothing(
    headers: dict[str, Any], body: Any, status: int, code: int
) -> None:
    with trio.fail_after(60):
        async with open_world(Config(limits=attrs.evolve(Limits(), body=200_000))) as world:
            client = await world.joined()
            refused = client.post(body, **headers)
            said, error = await refused.error()
            assert (said, error["code"]) == (status, code)
            assert error["message"]
            is_known = isinstance(body, dict) and type(body["id"]) is int
            is_read = status not in (406, 415)
            assert (await refused.answer())["id"] == (1 if is_known and is_read else None)
            assert (await client.request("ping").answer())["result"] == {}
            assert len(world.manager.sessions()) == 1


@pytest.mark.parametrize("method", ["PUT", "PATCH", "HEAD", "TRACE", "OPTIONS", "get"])
async def test_other_methods_are_not_allowed(method: str) -> None:
    with trio.fail_after(60):
        async with open_world() as world:
            client = await world.joined()
            refused = client.open(method, {})
            assert (await refused.error())[0] == 405
            assert refused.headers["allow"] == "GET, POST, DELETE, OPTIONS"


async def test_get_and_delete_are_refused_like_posts() -> None:
    with trio.fail_after(60):
        async with open_world() as world:
            client = await world.joined()
            assert (await client.get(accept="application/json").error())[0] == 406
            for send in (client.get, client.delete):
                assert (await send(mcp_session_id=None).error())[0] == 400
                assert (await send(mcp_session_id="unknown").error())[0] == 404
            assert (await client.get(mcp_protocol_version="1999-01-01").error())[0] == 400
            for nonsense in ("x", "", f"{client.session}.1", "1.1", "." * 1000):
                status, error = await client.get(nonsense).error()
                assert (status, error["code"]) == (400, -32600)


async def test_a_session_is_unknown_to_every_other_principal() -> None:
    with trio.fail_after(60):
        async with open_world() as world:
            client, thief = await world.joined(principal="ann"), world.client("bob")
            thief.session = client.session
            for exchange in (
                thief.request("ping"),
                thief.get(),
                thief.delete(),
                thief.cancel(1),
                thief.post(request(1, "initialize", protocolVersion=LATEST, **HELLO)),
            ):
                assert (await exchange.error())[0] == 404
            assert (await client.request("ping").answer())["result"] == {}


async def test_a_client_that_vanishes_before_its_body_is_complete_costs_nothing() -> None:
    with trio.fail_after(60):
        async with open_world() as world:
            client = await world.joined()
            exchange = client.open(
                "POST", {"content-type": "application/json", "accept": "*/*"}, None
            )
            exchange.put(b'{"jsonrpc"', more=True)
            await wait_all_tasks_blocked()
            exchange.drop()
            assert (await client.request("ping").answer())["result"] == {}
            assert exchange.status == 0


# -- how a POST is answered -----------------------------------------------------------------------


async def test_a_quick_answer_is_json_and_leaves_no_stream() -> None:
    with trio.fail_after(60):
        async with open_world() as world:
            client = await world.joined()
            exchange = await client.request("ping", id="a").complete()
            assert exchange.status == 200
            assert exchange.headers["content-type"] == "application/json"
            assert exchange.headers["mcp-session-id"] == client.session
            assert int(exchange.headers["content-length"]) == len(exchange.body)
            assert exchange.messages == [{"jsonrpc": "2.0", "id": "a", "result": {}}]
            assert list(client.own.streams._streams.values()) == [client.own.streams.standalone]


@pytest.mark.parametrize("version", [LATEST, "2025-06-18", BATCHING, OLDEST])
async def test_a_slow_answer_is_a_stream_primed_for_those_who_know_that(
    version: str, autojump_clock: MockClock
) -> None:
    async with open_world() as world:
        client = await world.joined(version)
        exchange = client.request("test/speak", id=7, key="k")
        speaker = await world.speaker("k")
        await trio.sleep(QUICK + 1)
        assert exchange.is_stream
        await speaker.say("one")
        speaker.answer("two")
        await exchange.complete()
        assert exchange.primed is (version == LATEST)
        *_, notification, answer = exchange.events
        assert notification.json["params"]["message"] == "one"
        assert answer.json == {"jsonrpc": "2.0", "id": 7, "result": {"text": "two"}}
        ids = [event.id for event in exchange.events]
        stream = str(ids[-1]).rpartition(".")[0]
        assert ids == [f"{stream}.{n}" for n in range(3 - len(ids), 3)]
        assert [event.retry for event in exchange.events if event.retry] == [1000] * exchange.primed


async def test_an_answer_that_is_not_alone_is_a_stream_however_quick(
    autojump_clock: MockClock,
) -> None:
    async with open_world() as world:
        client = await world.joined()
        exchange = client.request("test/speak", key="k")
        speaker = await world.speaker("k")
        await speaker.say("one")
        speaker.answer("two")
        await exchange.complete()
        assert exchange.is_stream
        assert len(exchange.messages) == 2


async def test_silence_is_filled_with_comments(autojump_clock: MockClock) -> None:
    async with open_world() as world:
        client = await world.joined()
        exchange, listening = client.request("test/speak", key="k"), client.get()
        speaker = await world.speaker("k")
        await trio.sleep(KEEP_ALIVE_EVERY * 3.5)
        assert (exchange.comments, listening.comments) == (3, 3)
        speaker.answer("done")
        assert len((await exchange.complete()).messages) == 1


async def test_notifications_and_responses_are_taken_with_202() -> None:
    with trio.fail_after(60):
        async with open_world() as world:
            client = await world.joined()
            response = {"jsonrpc": "2.0", "id": "ours", "result": {}}
            failure = {"jsonrpc": "2.0", "id": "ours", "error": {"code": 1, "message": "no"}}
            for message in (DONE, response, failure):
                exchange = await client.post(message).complete()
                assert (exchange.status, bytes(exchange.body)) == (202, b"")


@pytest.mark.parametrize("id", [0, -1, "", "7", "ü", 2**60])
async def test_an_answer_carries_the_id_that_was_asked_with(id: Any) -> None:
    with trio.fail_after(60):
        async with open_world() as world:
            client = await world.joined()
            answer = await client.request("ping", id=id).answer()
            assert answer["id"] == id
            assert type(answer["id"]) is type(id)


async def test_an_id_in_flight_is_refused_and_free_again_when_it_is_answered() -> None:
    with trio.fail_after(60):
        async with open_world() as world:
            client = await world.joined()
            first = client.request("test/speak", id=5, key="k")
            speaker = await world.speaker("k")
            for twice in (5, "5"):
                assert (await client.request("ping", id=twice).error())[0] == 400
            speaker.answer("done")
            assert (await first.answer())["result"]["text"] == "done"
            assert (await client.request("ping", id=5).answer())["result"] == {}


async def test_a_cancelled_request_is_not_answered_and_its_stream_ends(
    autojump_clock: MockClock,
) -> None:
    async with open_world() as world:
        client, other = await world.joined(), await world.joined()
        mine, theirs = (c.request("test/speak", id=5, key=c.session) for c in (client, other))
        await world.speaker(str(client.session))
        (await world.speaker(str(other.session))).answer("still here")
        for nobodys in (6, True, None, [5], {"a": 1}):
            assert (await client.cancel(nobodys).complete()).status == 202
        assert (await client.cancel(5).complete()).status == 202
        assert (await mine.complete()).messages == []
        assert (await theirs.answer())["result"]["text"] == "still here"


async def test_a_batch_is_answered_together_in_the_one_version_that_has_them() -> None:
    with trio.fail_after(60):
        async with open_world() as world:
            client = await world.joined(BATCHING)
            batch = [DONE, request("a", "ping"), request(2, "tools/list")]
            exchange = await client.post(batch).complete()
            assert {message["id"] for message in exchange.messages} == {"a", 2}
            assert (await client.post([DONE, DONE]).complete()).status == 202
            assert (await client.post([PING, PING]).error())[0] == 400
            assert (await client.post([PING, {"jsonrpc": "2.0"}]).error())[0] == 400
            invalid = client.post([{"jsonrpc": "2.0", "id": None, "method": "ping"}])
            assert (await invalid.error())[0] == 400
            assert (await client.post([PING]).answer())["result"] == {}


async def test_of_a_batch_one_may_be_cancelled(autojump_clock: MockClock) -> None:
    async with open_world() as world:
        client = await world.joined(BATCHING)
        exchange = client.post([request(n, "test/speak", key=str(n)) for n in (1, 2)])
        await world.speaker("1")
        client.cancel(1)
        (await world.speaker("2")).answer("two")
        assert [message["id"] for message in (await exchange.complete()).messages] == [2]


@pytest.mark.parametrize("name", ["list_timers", "no_such_tool"])
async def test_a_call_that_is_cancelled_before_it_begins_has_no_answer(
    name: str, autojump_clock: MockClock
) -> None:
    async with open_world() as world:
        client = await world.joined(BATCHING)
        call = request(1, "tools/call", name=name, arguments={})
        gone = {
            "jsonrpc": "2.0",
            "method": "notifications/cancelled",
            "params": {"requestId": 1, "reason": "not wanted"},
        }
        exchange = client.post([call, gone, request(2, "ping")])
        assert [message["id"] for message in (await exchange.complete()).messages] == [2]
