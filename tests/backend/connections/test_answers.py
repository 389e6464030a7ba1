"""What counts as an answer: the same over every transport, however the server spells it."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

import pytest
import trio
from mcp import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_REQUEST

from emceepee_trio.config import Limits
from emceepee_trio.errors import ConnectFailed
from emceepee_trio.model.events import ServerDisconnected
from http_server import QUIET, HttpServer, Reply, Request, open_http_server
from mistakes import nested, spelled
from recording import Running, running

pytestmark = QUIET

GUARD = 60
VALUES = Limits(values=10_000)
NOBODYS = "the server sent something that is no answer to this request"

Way: TypeAlias = Callable[[Request, Reply, HttpServer, bytes], Awaitable[None]]


async def as_json(request: Request, reply: Reply, server: HttpServer, text: bytes) -> None:
    await reply.whole(200, text, "Application/JSON; charset=utf-8")


async def as_event(request: Request, reply: Reply, server: HttpServer, text: bytes) -> None:
    """In a stream that does not end by itself."""
    await reply.start(200, "Text/Event-Stream")
    await reply.data(b"event: message\ndata: " + text + b"\n\n")
    await trio.sleep_forever()


async def as_old_event(request: Request, reply: Reply, server: HttpServer, text: bytes) -> None:
    await reply.whole(202)
    await server.listeners[-1].data(b"event: message\ndata: " + text + b"\n\n")


WAYS = [as_json, as_event, as_old_event]
all_ways = pytest.mark.parametrize("way", WAYS)


def answering(way: Way, text: bytes) -> HttpServer:
    """Calls of ``spoiled`` are answered with *text*, in which ID stands for their id."""

    async def spoil(request: Request, reply: Reply) -> bool:
        message = request.message
        if message.get("params", {}).get("name") != "spoiled":
            return False
        await way(request, reply, server, text.replace(b"ID", b"%d" % message["id"]))
        return True

    server = HttpServer(spoil=spoil)
    return server


def entry(server: HttpServer, way: Way) -> dict[str, Any]:
    url = server.url.replace("mcp", "sse") if way is as_old_event else server.url
    return {"url": url}


async def is_well(it: Running) -> None:
    answer = await it.call("echo", a=1)
    assert json.loads(answer["content"][0]["text"]) == {"a": 1}
    assert not it.host.all(ServerDisconnected)


DEEP = {levels: spelled(nested(levels)).encode() for levels in (198, 199, 230, 500, 970, 100_000)}
ANSWER = b'{"jsonrpc": "2.0", "id": ID, "result": {"x": %b}}'


@all_ways
@pytest.mark.parametrize("spelling", [b"ID", b'"ID"', b"ID.0"])
@pytest.mark.parametrize(
    "value", [b'"cut \\ud83e"', DEEP[198], b"[NaN, 1e999]", b'{"id": 5, "method": "m"}']
)
async def test_an_answer_is_taken_as_it_is(way: Way, spelling: bytes, value: bytes) -> None:
    """Whatever else in it looks like an id."""
    with trio.fail_after(GUARD):
        server = answering(way, (ANSWER % value).replace(b"ID", spelling))
        async with open_http_server(server), running(entry(server, way)) as it:
            result = await it.call("spoiled")
            wanted = json.loads(value, parse_constant=lambda name: None)
            assert result == {"x": wanted}
            await is_well(it)


UNFIT = [
    (DEEP[199], "is nested deeper than 200 levels"),
    (DEEP[230], "is nested deeper than 200 levels"),
    (DEEP[970], "is nested deeper than 200 levels"),
    (DEEP[100_000], "is nested deeper than 200 levels"),
    (b"[" * 100_000, "is nested deeper than 200 levels"),
    (b"9" * 400, "holds a number of more than 308 digits"),
    (b"9" * 5000, "holds a number of more than 308 digits"),
    (b"[" + b"{}," * 6000 + b"0]", "holds more than 10000 values (limits.values)"),
    (b'"caf\xe9"', "is not UTF-8"),
    (b"[1,]", "is not JSON: "),
]


@all_ways
@pytest.mark.parametrize(("value", "why"), UNFIT)
async def test_an_answer_that_is_not_taken_fails_its_call_alone(
    way: Way, value: bytes, why: str
) -> None:
    with trio.fail_after(GUARD):
        server = answering(way, ANSWER % value)
        async with open_http_server(server), running(entry(server, way), limits=VALUES) as it:
            with pytest.raises(MCPError) as caught:
                await it.call("spoiled")
            assert caught.value.error.code == INTERNAL_ERROR
            assert caught.value.error.message.startswith(f"the server's message {why}")
            await is_well(it)


@pytest.mark.parametrize("way", [as_json, as_event])
@pytest.mark.parametrize(
    "text",
    [
        b'{"jsonrpc": "2.0", "id": 5, "result": {}}',
        b'{"jsonrpc": "2.0", "id": 5, "result": {"id": ID}, "x": {"id": ID}}',
        b'{"jsonrpc": "2.0", "id": "x", "error": {"code": 1, "message": "m"}}',
        b'[{"jsonrpc": "2.0", "id": 5, "result": {}}]',
    ],
)
async def test_an_answer_to_somebody_else_is_none(way: Way, text: bytes) -> None:
    with trio.fail_after(GUARD):
        server = answering(way, text)
        async with open_http_server(server), running(entry(server, way)) as it:
            with pytest.raises(MCPError, match=NOBODYS) as caught:
                await it.call("spoiled")
            assert caught.value.error.code == INVALID_REQUEST
            await is_well(it)


async def test_a_question_with_the_id_of_the_call_is_no_answer() -> None:
    with trio.fail_after(GUARD):
        server = answering(as_json, b'{"jsonrpc": "2.0", "id": ID, "method": "ping"}')
        async with open_http_server(server), running({"url": server.url}) as it:
            with pytest.raises(MCPError, match=NOBODYS):
                await it.call("spoiled")
            await is_well(it)


@all_ways
async def test_a_question_that_is_not_taken_is_refused(way: Way) -> None:
    question = b'{"jsonrpc": "2.0", "id": "q", "method": "ping", "params": {"x": %b}}' % DEEP[500]
    answer = b'{"jsonrpc": "2.0", "id": ID, "result": {"x": 1}}'
    text = b"\n".join([question, b"", b"data: " + answer])
    if way is as_json:
        text = b"[" + answer + b',{"jsonrpc": "2.0", "id": "q", "method": 7}]'
    with trio.fail_after(GUARD):
        server = answering(way, text)
        async with open_http_server(server), running(entry(server, way)) as it:
            assert await it.call("spoiled") == {"x": 1}
            while not (found := [r.message for r in server.requests if r.message.get("id") == "q"]):
                await server.wait_for("POST", len(server.of("POST")) + 1)
            assert found[0]["error"]["code"] == INVALID_REQUEST
            await is_well(it)


@pytest.mark.parametrize("way", [as_event, as_old_event])
async def test_a_notification_that_is_not_taken_is_told_of_in_the_log(way: Way) -> None:
    told = b'{"jsonrpc": "2.0", "method": "notifications/x", "params": {"x": %b}}' % DEEP[500]
    answer = b'{"jsonrpc": "2.0", "id": ID, "result": {"x": 1}}'
    with trio.fail_after(GUARD):
        server = answering(way, told + b"\n\ndata: " + answer)
        async with open_http_server(server), running(entry(server, way)) as it:
            assert await it.call("spoiled") == {"x": 1}
            (line,) = it.host.logs
            assert "is nested deeper than 200 levels: notifications/x" in str(line)


@pytest.mark.parametrize(
    ("era", "method"),
    [
        ("handshake", "initialize"),
        ("handshake", "tools/list"),
        ("modern", "server/discover"),
        ("modern", "tools/list"),
    ],
)
async def test_what_is_said_while_connecting_is_bounded_too(era: Any, method: str) -> None:
    async def spoil(request: Request, reply: Reply) -> bool:
        if request.method != method:
            return False
        answer = ANSWER.replace(b"ID", b"%d" % request.message["id"]) % DEEP[970]
        await reply.whole(200, answer, "application/json")
        return True

    with trio.fail_after(GUARD):
        async with (
            open_http_server(HttpServer(era, spoil=spoil)) as server,
            running({"url": server.url, "era": era}) as it,
        ):
            with pytest.raises((MCPError, ConnectFailed), match="nested deeper than 200 levels"):
                await (await it.backend.connection()).request("tools/list")
