"""A server that is back: what is told, what is fetched again, and what is repeated."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest
import trio
import trio.testing

from emceepee_trio.backend.connections.client import Client
from emceepee_trio.backend.connections.witness import NotRun
from emceepee_trio.config import Reconnect, Retry
from emceepee_trio.model.events import Restarted, RestartFailed, Restarting, ServerReconnected
from emceepee_trio.model.states import BackendState
from fake_backends import Journal, raw
from http_server import QUIET, HttpServer, Reply, Request, open_http_server
from recording import Running, running

pytestmark = QUIET

GUARD = 60
SOON: dict[str, Any] = {
    "restart": Retry(base_delay_ms=10, max_delay_ms=20),
    "reconnect": Reconnect(base_delay_ms=10, max_delay_ms=20),
}


async def echo(client: Client) -> dict[str, Any]:
    return await client.request("tools/call", {"name": "echo", "arguments": {"a": 1}})


async def back(it: Running) -> ServerReconnected:
    return await it.host.wait_for(ServerReconnected)


# -- a program -----------------------------------------------------------------------------------


async def test_a_restart_is_told_in_order_with_what_it_cost() -> None:
    with trio.fail_after(GUARD):
        async with running(raw() | SOON) as it:
            with pytest.raises(Exception, match="Connection closed"):
                await it.call("exit", code=3)
            told = await back(it)
            assert it.host.story == [
                "process_started",
                "server_connected",
                "process_crashed",
                "server_disconnected",
                "restarting",
                "process_started",
                "restarted",
                "server_reconnected",
            ]
            assert (told.type, told.attempts) == ("restart", 1)
            fetched = (told.refreshed_tools, told.refreshed_resources, told.refreshed_prompts)
            assert fetched == (False, False, False)  # nobody had asked for any
            (planned,) = it.host.all(Restarting)
            assert (planned.attempt, planned.exit_code, planned.signal) == (1, 3, None)
            assert 0 <= planned.next_retry_ms <= 11
            (again,) = it.host.all(Restarted)
            assert it.backend.process is not None
            assert again == Restarted("it", it.backend.process.pid, 1)


async def test_the_last_try_is_told() -> None:
    """The first, and as many again as are asked for."""
    entry = {"command": "sh", "args": ["-c", "exit 4"], "era": "handshake"}
    retry = {"restart": Retry(base_delay_ms=10, max_delay_ms=10, max_attempts=2)}
    with trio.fail_after(GUARD):
        async with running(entry | retry) as it:
            failed = await it.host.wait_for(RestartFailed)
            assert it.backend.state is BackendState.ERROR
            tries = ["process_started", "process_crashed"]
            assert it.host.story == [
                *(*tries, "restarting"),
                *(*tries, "restarting"),
                *(*tries, "restart_failed"),
            ]
            assert (failed.attempt, failed.exit_code) == (3, 4)
            assert [told.attempt for told in it.host.all(Restarting)] == [1, 2]


async def test_what_cannot_work_is_told_at_once() -> None:
    with trio.fail_after(GUARD):
        async with running({"command": "no-such-command-anywhere"}) as it:
            assert await it.host.wait_for(RestartFailed) == RestartFailed("it", 1)
            assert it.host.story == ["restart_failed"]


async def test_what_was_subscribed_and_set_is_so_again_when_it_is_told(tmp_path: Any) -> None:
    journal = Journal(tmp_path / "journal")
    with trio.fail_after(GUARD):
        async with running(raw(*journal.flags) | SOON | {"era": "handshake"}) as it:
            await it.call("echo")
            it.backend.preferences.log_level = "debug"
            it.backend.preferences.subscriptions.add("raw://text")
            with pytest.raises(Exception, match="Connection closed"):
                await it.call("exit")
            await back(it)
            assert [e["params"] for e in journal.of("logging/setLevel")] == [{"level": "debug"}]
            assert [e["params"]["uri"] for e in journal.of("resources/subscribe")] == ["raw://text"]


# -- a url ---------------------------------------------------------------------------------------


async def test_a_request_to_a_session_that_is_gone_is_repeated_once_and_invisibly() -> None:
    with trio.fail_after(GUARD):
        async with (
            open_http_server(HttpServer()) as server,
            running({"url": server.url} | SOON) as it,
        ):
            await it.backend.ask(echo)
            server.sessions.clear()
            assert (await it.backend.ask(echo))["x-vendor"] == 1
            told = await back(it)
            assert told.type == "restart"
            assert it.host.story == [
                "server_connected",
                "server_disconnected",
                "server_reconnecting",
                "server_reconnected",
            ]
            statuses = [r.headers.get("mcp-session-id") for r in server.of("tools/call")]
            assert len(statuses) == 3
            assert statuses[0] == statuses[1] != statuses[2]


async def test_all_requests_to_a_session_that_is_gone_are_repeated() -> None:
    """The first one that is refused takes nothing from the others."""
    go = trio.Event()

    async def spoil(request: Request, reply: Reply) -> bool:
        is_early = len(server.of("tools/call")) < 3
        if request.method == "tools/call" and not server.sessions and is_early:
            await go.wait()
        return False

    server = HttpServer(spoil=spoil)
    answers = []

    async def call() -> None:
        answers.append(await it.backend.ask(echo))

    with trio.fail_after(GUARD):
        async with open_http_server(server), running({"url": server.url} | SOON) as it:
            client = await it.backend.connection()
            server.sessions.clear()
            async with trio.open_nursery() as nursery:
                for _ in range(3):
                    nursery.start_soon(call)
                await client.over.wait()
                go.set()
    assert [answer["x-vendor"] for answer in answers] == [1, 1, 1]
    assert len(server.of("initialize")) == 2


async def test_a_server_that_forgets_us_again_and_again_is_not_asked_for_ever() -> None:
    async def spoil(request: Request, reply: Reply) -> bool:
        if request.method == "tools/call":
            server.sessions.clear()
        return False

    server = HttpServer(spoil=spoil)
    with trio.fail_after(GUARD):
        async with open_http_server(server), running({"url": server.url} | SOON) as it:
            with pytest.raises(NotRun):
                await it.backend.ask(echo)
            assert len(server.of("tools/call")) == 2


@pytest.mark.parametrize("remembers", [True, False])
async def test_a_restart_is_told_from_a_network_that_blinked(remembers: bool) -> None:
    """By what has become of our session there."""
    server = HttpServer()
    with trio.fail_after(GUARD):
        async with trio.open_nursery() as nursery:
            await nursery.start(server.run)
            async with running({"url": server.url} | SOON) as it:
                await it.backend.connection()
                await server.stop()
                with pytest.raises(Exception, match="Connection closed"):
                    await it.call("echo")
                if not remembers:
                    server.sessions.clear()
                await nursery.start(server.run)
                told = await back(it)
                assert told.type == ("network_blip" if remembers else "restart")
                assert told.attempts >= 1
                # Nobody keeps a session there that nobody uses.
                await it.backend.ask(echo)
                assert len(server.sessions) == 1
            nursery.cancel_scope.cancel("test is over")


async def test_a_server_that_comes_back_again_and_again_leaves_nothing_of_what_was() -> None:
    with trio.fail_after(GUARD):
        async with open_http_server(HttpServer()) as server, running({"url": server.url}) as it:
            links = []
            for times in range(1, 7):
                await it.backend.reconnect()
                await it.host.connected(times)
                links.append(weakref.ref(it.backend.supervisor.life.current))
                await trio.testing.wait_all_tasks_blocked(0.01)
            gc.collect()
            # The connection that there is, and the one before.
            assert len([link for link in links if link() is not None]) <= 2


async def test_an_other_server_in_its_place_is_a_restart() -> None:
    async def spoil(request: Request, reply: Reply) -> bool:
        if request.method != "initialize":
            return False
        info = {"name": "it", "version": str(len(server.of("initialize")))}
        result = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": info}
        await reply.json({"jsonrpc": "2.0", "id": request.message["id"], "result": result})
        return True

    server = HttpServer(spoil=spoil)
    with trio.fail_after(GUARD):
        async with open_http_server(server), running({"url": server.url} | SOON) as it:
            await it.backend.connection()
            await it.backend.reconnect()
            assert (await back(it)).type == "restart"


@pytest.mark.parametrize("differs", [True, False])
async def test_lists_are_fetched_again_and_only_a_difference_is_told(differs: bool) -> None:
    async def spoil(request: Request, reply: Reply) -> bool:
        if request.method != "tools/list":
            return False
        name = f"tool-{len(server.of('initialize'))}" if differs else "tool"
        result = {"tools": [{"name": name}]}
        await reply.json({"jsonrpc": "2.0", "id": request.message["id"], "result": result})
        return True

    server = HttpServer(spoil=spoil)
    with trio.fail_after(GUARD):
        async with open_http_server(server), running({"url": server.url} | SOON) as it:
            await it.backend.ask(lambda client: it.backend.catalog.get("tools", client))
            server.sessions.clear()
            await it.backend.ask(echo)
            told = await back(it)
            assert told.refreshed_tools
            assert not told.refreshed_prompts  # nobody has ever asked for them
            assert len(server.of("tools/list")) == 2
            await it.backend.reconnect()
            await it.host.wait_for(ServerReconnected, 2)
            changed = ("notifications/tools/list_changed", None)
            # The second return has told of the first one's differences at the latest.
            assert it.host.notices[:1] == ([changed] if differs else [])


async def test_a_server_that_hangs_in_the_middle_of_its_return_is_told_of_all_the_same() -> None:
    """And before it is told that it is lost again."""

    async def spoil(request: Request, reply: Reply) -> bool:
        if request.method == "tools/list" and len(server.of("initialize")) == 2:
            server.sessions.clear()
            hangs.set()
            await trio.sleep_forever()
        return False

    server, hangs = HttpServer(spoil=spoil), trio.Event()
    with trio.fail_after(GUARD):
        async with open_http_server(server), running({"url": server.url} | SOON) as it:
            await it.backend.ask(lambda client: it.backend.catalog.get("tools", client))
            server.sessions.clear()
            await it.backend.ask(echo)
            await hangs.wait()
            await it.backend.ask(echo)
            await it.host.wait_for(ServerReconnected, 2)
            again = ["server_disconnected", "server_reconnecting", "server_reconnected"]
            assert it.host.story == ["server_connected", *again, *again]
            first, second = it.host.all(ServerReconnected)
            assert not first.refreshed_tools
            assert second.refreshed_tools
