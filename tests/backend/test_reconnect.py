"""reconnect_server: a new connection, for a child after its end, for a url beside the old one."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from mcp import MCPError

from emceepee_trio.backend.connections.client import Client
from emceepee_trio.config import Reconnect, Retry
from emceepee_trio.errors import ConnectFailed, ServerDisconnected, ToolError
from emceepee_trio.model.events import ProcessStarted
from emceepee_trio.model.events import ServerDisconnected as Lost
from emceepee_trio.model.states import BackendState
from fake_backends import raw, until
from http_server import QUIET, HttpServer, Reply, Request, open_http_server
from recording import running

pytestmark = QUIET

GUARD = 60
LATER = {"restart": Retry(base_delay_ms=3_600_000, max_delay_ms=3_600_000)}


async def test_a_child_is_ended_before_the_next_one_starts() -> None:
    with trio.fail_after(GUARD):
        async with running(raw()) as it:
            old = await it.backend.connection()
            new = await it.backend.reconnect()
            assert new is it.backend.client is not old
            await it.host.connected(2)
            assert it.host.story == [
                "process_started",
                "server_connected",
                "process_stopped",
                "server_disconnected",
                "process_started",
                "server_reconnected",
            ]
            assert it.host.all(Lost) == [Lost("it", "reconnect", True)]
            assert it.backend.retries.attempt == 0


async def test_callers_and_others_who_reconnect_meanwhile_get_the_same_new_child() -> None:
    with trio.fail_after(GUARD):
        async with running(raw()) as it, trio.open_nursery() as nursery:
            await it.backend.connection()
            found: list[Client] = []

            async def reconnect() -> None:
                found.append(await it.backend.reconnect())

            for _ in range(3):
                nursery.start_soon(reconnect)
            await it.host.wait_for(Lost)
            found.append(await it.backend.connection())
        assert len(found) == 4
        assert len({*found}) == 1
    assert len(it.host.all(ProcessStarted)) == 2


async def test_a_server_that_cannot_be_reached_is_tried_now() -> None:
    with trio.fail_after(GUARD):
        async with running(raw("--exit-at-once", 3) | LATER) as it:
            with pytest.raises(ConnectFailed):
                await it.backend.connection()
            with pytest.raises(ConnectFailed):
                await it.backend.reconnect()
            assert it.backend.retries.attempt == 2


async def test_a_url_is_connected_anew_before_the_old_connection_goes() -> None:
    async def spoil(request: Request, reply: Reply) -> bool:
        if request.method == "initialize" and it.backend.client is not None:
            assert (await it.call("echo"))["x-vendor"] == 1  # by the old one
        return False

    server = HttpServer(spoil=spoil)
    with trio.fail_after(GUARD):
        entry: dict[str, Any] = {"reconnect": Reconnect(base_delay_ms=60_000)}
        async with open_http_server(server), running(entry | {"url": server.url}) as it:
            old = await it.backend.connection()
            new = await it.backend.reconnect()
            assert new is it.backend.client is not old
            await it.host.connected(2)
            assert it.host.story == [
                "server_connected",
                "server_disconnected",
                "server_reconnected",
            ]
            assert it.host.all(Lost)[0].was_intentional
            await server.wait_for("DELETE")
            await it.call("echo")
            assert len(server.sessions) == 1
            # The new one is watched as the old one was.
            server.sessions.clear()
            with pytest.raises(MCPError):
                await it.call("echo")
            assert it.backend.state is BackendState.RECONNECTING
            await it.call("echo")


async def test_the_old_connection_goes_on_if_the_new_one_fails() -> None:
    refuse = trio.Event()

    async def spoil(request: Request, reply: Reply) -> bool:
        if request.method == "initialize" and refuse.is_set():
            await reply.whole(500)
            return True
        return False

    with trio.fail_after(GUARD):
        async with (
            open_http_server(HttpServer(spoil=spoil)) as server,
            running({"url": server.url}) as it,
        ):
            old = await it.backend.connection()
            refuse.set()
            with pytest.raises(ConnectFailed, match=r"500.*the connection that there was goes on"):
                await it.backend.reconnect()
            assert it.backend.client is old
            assert it.backend.state is BackendState.CONNECTED
            assert it.backend.last_error is None
            await it.call("echo")
            assert it.host.story == ["server_connected"]
            with pytest.raises(ConnectFailed, match="500"):  # and not the same one again
                await it.backend.reconnect()
            assert len(server.of("initialize")) == 3


@pytest.mark.parametrize("then", ["connects", "fails", "removed"])
async def test_the_old_connection_is_lost_while_the_new_one_is_made(then: str) -> None:
    """The try that is under way is the next one; there is no second beside it."""
    asked, go = trio.Event(), trio.Event()

    async def spoil(request: Request, reply: Reply) -> bool:
        if request.method == "initialize" and server.sessions and not asked.is_set():
            asked.set()
            await go.wait()
            if then == "fails":
                await reply.whole(500)
            return then == "fails"
        return False

    server = HttpServer(spoil=spoil)
    entry: dict[str, Any] = {
        "reconnect": Reconnect(base_delay_ms=3_600_000, max_delay_ms=3_600_000)
    }
    result: list[Client | ToolError] = []

    async def reconnect() -> None:
        try:
            result.append(await it.backend.reconnect())
        except ToolError as error:
            result.append(error)

    with trio.fail_after(GUARD):
        async with open_http_server(server), running({"url": server.url} | entry) as it:
            await it.backend.connection()
            async with trio.open_nursery() as nursery:
                nursery.start_soon(reconnect)
                await asked.wait()
                server.sessions.clear()
                with pytest.raises(MCPError, match="Connection closed"):
                    await it.call("echo")
                assert it.backend.state is BackendState.CONNECTING
                if then == "removed":
                    it.backend.leave("removed", 1)
                    await it.backend.ended.wait()
                go.set()
            (found,) = result
            if then == "connects":
                assert found is it.backend.client
                await it.call("echo")
                assert len(server.of("initialize")) == 2
            elif then == "fails":
                assert isinstance(found, ConnectFailed)
                await until(lambda: it.backend.state is BackendState.RECONNECTING)
                await it.call("echo")
            else:
                assert isinstance(found, ServerDisconnected)
    assert it.host.story[:2] == ["server_connected", "server_disconnected"]
    assert it.host.story.count("server_reconnected") == (0 if then == "removed" else 1)


async def test_a_server_that_is_removed_while_it_is_connected_anew() -> None:
    async def spoil(request: Request, reply: Reply) -> bool:
        if request.method == "initialize" and server.sessions:
            await trio.sleep_forever()
        return False

    server = HttpServer(spoil=spoil)
    with trio.fail_after(GUARD):
        async with open_http_server(server), running({"url": server.url}) as it:
            await it.backend.connection()
            async with trio.open_nursery() as nursery:

                async def reconnect() -> None:
                    with pytest.raises(ServerDisconnected):
                        await it.backend.reconnect()

                nursery.start_soon(reconnect)
                await server.wait_for("initialize", 2)
                it.backend.leave("removed", 1)
            await it.backend.ended.wait()
    assert it.host.story == ["server_connected", "server_disconnected"]
