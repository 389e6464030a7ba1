"""The SSE transport of 2024-11-05: deprecated, still around, and lost in silence unless watched."""

from __future__ import annotations

import json
from typing import Any

import pytest
import trio
from mcp import MCPError

from emceepee_trio.config import Limits, Reconnect
from emceepee_trio.model.events import ServerDisconnected
from http_server import QUIET, HttpServer, Reply, Request, open_http_server
from recording import running

pytestmark = QUIET

GUARD = 60
LATER = {"reconnect": Reconnect(base_delay_ms=60_000)}


def text(result: dict[str, Any]) -> Any:
    return json.loads(result["content"][0]["text"])


def old(server: HttpServer) -> dict[str, Any]:
    return {"url": server.url.replace("mcp", "sse")}


async def test_the_old_transport_carries_calls_questions_and_progress() -> None:
    seen: list[Any] = []
    with trio.fail_after(GUARD):
        async with open_http_server(HttpServer()) as server, running(old(server)) as it:
            assert text(await it.call("echo", a="grüße")) == {"a": "grüße"}
            async with trio.open_nursery() as nursery:

                async def call() -> None:
                    assert text(await it.call("ask"))["result"] == {"action": "decline"}

                nursery.start_soon(call)
                (await it.host.question()).respond({"action": "decline"})
            client = await it.backend.connection()
            params = {"name": "progress", "arguments": {}}
            await client.request("tools/call", params, on_progress=seen.append)
            assert [said["progress"] for said in seen] == [0, 1, 2]
            # It is older than the question which era it is.
            assert not server.of("server/discover")


@pytest.mark.parametrize("how", ["500", "303", "stream", "stopped"])
async def test_the_old_transport_is_lost_at_once(how: str) -> None:
    async def spoil(request: Request, reply: Reply) -> bool:
        if request.method == "tools/call" and how.isdigit():
            await reply.whole(int(how), location="/elsewhere")
            return True
        return False

    with trio.fail_after(GUARD):
        async with (
            open_http_server(HttpServer(spoil=spoil)) as server,
            running(old(server) | LATER) as it,
            trio.open_nursery() as nursery,
        ):

            async def call() -> None:
                with pytest.raises(MCPError, match="Connection closed"):
                    await it.call("never")
                assert len(it.host.all(ServerDisconnected)) == 1

            nursery.start_soon(call)
            await server.wait_for("tools/call")
            if how == "stream":
                await server.listeners[0].hang_up()
            elif how == "stopped":
                await server.stop()
    (lost,) = it.host.all(ServerDisconnected)
    if how.isdigit():
        assert lost.reason == f"{server.url.replace('mcp', 'sse')} answered {how}"


async def test_the_old_transport_is_followed_where_it_stays_at_home() -> None:
    async def spoil(request: Request, reply: Reply) -> bool:
        if request.method == "tools/call" and request.path.startswith("/messages"):
            await reply.whole(307, location="/sse/messages")
            return True
        return False

    with trio.fail_after(GUARD):
        async with (
            open_http_server(HttpServer(spoil=spoil)) as server,
            running(old(server) | LATER) as it,
        ):
            assert text(await it.call("echo", a=1)) == {"a": 1}


async def test_the_old_transport_is_connected_again() -> None:
    entry = {"reconnect": Reconnect(base_delay_ms=10)}
    with trio.fail_after(GUARD):
        async with open_http_server(HttpServer()) as server, running(old(server) | entry) as it:
            await it.backend.connection()
            await server.listeners[0].hang_up()
            await it.host.connected(2)
            await it.call("echo")


async def test_the_old_transport_has_the_same_limit_and_says_so() -> None:
    limit = 2 * 1024 * 1024  # more than the SDK would take
    with trio.fail_after(GUARD):
        async with (
            open_http_server(HttpServer()) as server,
            running(old(server) | LATER, limits=Limits(message=limit)) as it,
        ):
            assert await it.call("big", size=limit - 1000)
            with pytest.raises(MCPError, match="Connection closed"):
                await it.call("big", size=limit)
            (lost,) = it.host.all(ServerDisconnected)
            assert lost.reason == f"message too long (limit {limit} bytes)"
