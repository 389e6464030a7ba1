"""The endpoint under a stock ASGI server, over real sockets, with clients that are not ours."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import attrs
import pytest
import trio
from hypercorn.config import Config as HypercornConfig
from hypercorn.trio import serve
from mcp import Client

from asgi_client import BOTH, DONE, HELLO, LATEST, request
from asgi_world import World, open_world
from http_server import QUIET
from raw_http import Peer


@asynccontextmanager
async def open_server() -> AsyncGenerator[tuple[World, int]]:
    """An endpoint and its port."""
    config = HypercornConfig()
    config.bind, config.errorlog = ["127.0.0.1:0"], None
    stop = trio.Event()
    with trio.fail_after(60):
        async with open_world() as world, trio.open_nursery() as nursery:

            async def app(scope: Any, receive: Any, send: Any) -> None:
                assert scope["type"] == "http"
                await world.endpoint(scope, receive, send, "local")

            serving = partial(serve, app, config, shutdown_trigger=stop.wait, mode="asgi")
            (url,) = await nursery.start(serving)
            yield world, int(url.rpartition(":")[2])
            stop.set()


@QUIET
@pytest.mark.parametrize(("mode", "version"), [("legacy", LATEST), ("auto", "2026-07-28")])
async def test_the_sdk_speaks_with_us_in_either_era(mode: Any, version: str) -> None:
    async with open_server() as (world, port):
        async with Client(f"http://127.0.0.1:{port}/mcp", mode=mode) as client:
            assert client.protocol_version == version
            assert len((await client.list_tools()).tools) >= 35
            result = await client.call_tool("set_timer", {"duration_ms": 100, "message": "ü\u2028"})
            assert not result.is_error
            seen = await client.call_tool("await_activity", {"timeout_ms": 60_000})
            assert json.loads(seen.content[0].text)["triggers"]  # type: ignore[union-attr]  # fails if it is no text
        # The handshake client has deleted its session; the workspace stays.
        assert len(world.manager.sessions()) == (1 if mode == "auto" else 0)


@attrs.define(eq=False)
class Socket:
    """A handshake client that writes its requests by hand, each on a connection of its own."""

    port: int
    headers: str = ""

    async def join(self) -> None:
        async with self.ask(request(1, "initialize", protocolVersion=LATEST, **HELLO)) as peer:
            session = (await peer.answer()).headers["mcp-session-id"]
        self.headers = f"Mcp-Session-Id: {session}\n"
        async with self.ask(DONE) as peer:
            assert (await peer.answer()).status == 202

    @asynccontextmanager
    async def ask(
        self, message: object = None, method: str = "POST", more: str = ""
    ) -> AsyncGenerator[Peer]:
        """The connection is cut at the end."""
        body = "" if message is None else json.dumps(message)
        async with await trio.open_tcp_stream("127.0.0.1", self.port) as stream:
            peer = Peer(stream)
            await peer.send(
                f"{method} /mcp HTTP/1.1\nHost: x\nAccept: {BOTH}\n{self.headers}{more}"
                f"Content-Type: application/json\nContent-Length: {len(body)}\n\n{body}"
            )
            yield peer


async def event(peer: Peer) -> tuple[str, str]:
    """Id and data of the next one."""
    await peer.until(b"\nid: ")
    event_id = await peer.until(b"\n")
    await peer.until(b"data: ")
    return event_id.decode().strip(), (await peer.until(b"\n")).decode().strip()


async def test_a_connection_that_is_cut_is_resumed() -> None:
    async with open_server() as (world, port):
        client = Socket(port)
        await client.join()
        async with client.ask(request(2, "test/speak", key="k")) as peer:
            speaker = await world.speaker("k")
            await speaker.say("one")
            assert (await event(peer))[1] == ""
            last_event_id, one = await event(peer)
        assert json.loads(one)["params"]["message"] == "one"
        await speaker.say("two")
        speaker.answer("three")
        async with client.ask(method="GET", more=f"Last-Event-ID: {last_event_id}\n") as peer:
            assert await event(peer) == (last_event_id, "")
            _, two = await event(peer)
            _, three = await event(peer)
            await peer.until(b"0\r\n\r\n")  # it ends as a response should
        assert json.loads(two)["params"]["message"] == "two"
        assert json.loads(three) == {"jsonrpc": "2.0", "id": 2, "result": {"text": "three"}}


async def test_a_listener_that_is_cut_is_noticed() -> None:
    async with open_server() as (world, port):
        client = Socket(port)
        await client.join()
        (session,) = world.manager.sessions()
        async with client.ask(method="GET") as peer:
            await event(peer)
            assert session.has_work
        while session.has_work:  # noqa: ASYNC110 - the server says nowhere that it has noticed
            await trio.sleep(0.01)
        async with client.ask(method="DELETE") as peer:
            assert (await peer.answer()).status == 200
        async with client.ask(request(3, "ping")) as peer:
            answer = await peer.answer()
        assert (answer.status, json.loads(answer.body)["id"]) == (404, 3)
