"""Changes of a modern backend: followed from the start, and as subscriptions come and go."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing
from mcp import MCPError

from emceepee_trio.backend.connections import listening as module
from emceepee_trio.backend.connections.witness import Unanswered
from emceepee_trio.config import Limits, Retry
from emceepee_trio.model.events import ServerDisconnected
from fake_backends import Journal, raw
from http_server import QUIET, HttpServer, Reply, Request, open_http_server
from recording import Running, running

pytestmark = QUIET

GUARD = 60
LISTS = {"toolsListChanged": True, "promptsListChanged": True, "resourcesListChanged": True}
MODERN = raw("--discover", "modern")
LATER = {"restart": Retry(base_delay_ms=60_000)}


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path / "journal")


async def follow(it: Running, *uris: str) -> Any:
    await it.backend.connection()
    it.backend.preferences.subscriptions.update(uris)
    return await it.backend.follow_changes()


def asked(journal: Journal) -> list[Any]:
    return [r["params"]["notifications"] for r in journal.of("subscriptions/listen")]


async def test_all_lists_are_followed_from_the_start(journal: Journal) -> None:
    with trio.fail_after(GUARD):
        async with running(raw("--discover", "modern", *journal.flags)) as it:
            assert await follow(it) == LISTS
            before = await it.backend.catalog.get("tools", await it.backend.connection())
            await it.call("notify_many", n=0)
            await it.host.until(lambda: len(it.host.notices) == 3)
            after = await it.backend.catalog.get("tools", await it.backend.connection())
            assert after is not before
    assert asked(journal) == [LISTS]
    methods = [method for method, _ in it.host.notices]
    assert methods == [f"notifications/{k}/list_changed" for k in ("tools", "resources", "prompts")]


async def test_a_resource_more_means_another_request_and_the_old_one_is_let_go(
    journal: Journal,
) -> None:
    uri = "raw://text"
    with trio.fail_after(GUARD):
        async with running(raw("--discover", "modern", *journal.flags)) as it:
            await follow(it)
            agreed = await follow(it, uri)
            assert agreed == LISTS | {"resourceSubscriptions": [uri]}
            first = journal.of("subscriptions/listen")[0]["id"]
            gone = await journal.wait_for_method("notifications/cancelled")
            assert gone["params"]["requestId"] == first
            await it.call("notify_many", n=0, k=0, updates=2, uri=uri)
            await it.call("notify_many", n=0, k=0, updates=2, uri="raw://other")
            await it.call("echo")
            updates = [p for m, p in it.host.notices if m == "notifications/resources/updated"]
            assert [update and update["uri"] for update in updates] == [uri, uri]
            it.backend.preferences.subscriptions.clear()
            assert await it.backend.follow_changes() == LISTS
    assert asked(journal) == [LISTS, LISTS | {"resourceSubscriptions": [uri]}, LISTS]


async def test_many_who_subscribe_at_once_are_all_followed(journal: Journal) -> None:
    uris = [f"raw://item/{n}" for n in range(10)]
    agreed: list[Any] = []
    with trio.fail_after(GUARD):
        async with running(raw("--discover", "modern", *journal.flags)) as it:
            await follow(it)

            async def one(uri: str) -> None:
                found = await follow(it, uri)
                assert uri in found["resourceSubscriptions"]
                agreed.append(found)

            async with trio.open_nursery() as nursery:
                for uri in uris:
                    nursery.start_soon(one, uri)
                    await trio.lowlevel.checkpoint()
    assert len(agreed) == 10
    assert asked(journal)[-1]["resourceSubscriptions"] == uris
    assert len(asked(journal)) <= 12


async def test_subscriptions_are_followed_again_after_a_loss(journal: Journal) -> None:
    entry = raw("--discover", "modern", *journal.flags) | {"restart": Retry(base_delay_ms=10)}
    with trio.fail_after(GUARD):
        async with running(entry) as it:
            await follow(it, "raw://text")
            with pytest.raises(MCPError):
                await it.call("exit")
            await it.host.connected(2)
            agreed = await it.backend.follow_changes()
    assert agreed["resourceSubscriptions"] == ["raw://text"]
    assert asked(journal)[-1] == agreed


async def test_after_a_bug_of_ours_it_is_listened_to_again(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(uris: frozenset[str]) -> Any:
        monkeypatch.setattr(module, "_Stream", stream)
        raise RuntimeError("planted")

    stream = module._Stream
    with trio.fail_after(GUARD):
        async with running(raw("--discover", "modern", *journal.flags)) as it:
            assert await follow(it) == LISTS
            monkeypatch.setattr(module, "_Stream", fails)
            with pytest.raises(MCPError):
                await follow(it, "raw://text")
            await journal.wait_for_method("subscriptions/listen", 2)
            agreed = await it.backend.follow_changes()
    assert agreed["resourceSubscriptions"] == ["raw://text"]


@pytest.mark.parametrize("when", ["silent", "waiting"])
async def test_who_waits_for_an_agreement_hears_of_the_end(when: str) -> None:
    """Of the request that is not acknowledged, or of the one that comes after it."""

    async def spoil(request: Request, reply: Reply) -> bool:
        if request.method == "subscriptions/listen":
            await reply.events()
            await trio.sleep_forever()
        return False

    with trio.fail_after(GUARD):
        async with (
            open_http_server(HttpServer("modern", spoil=spoil)) as server,
            running({"url": server.url}) as it,
            trio.open_nursery() as nursery,
        ):
            await it.backend.connection()

            async def wait() -> None:
                with pytest.raises(MCPError) as caught:
                    await follow(it, *(["raw://text"] if when == "waiting" else []))
                assert isinstance(caught.value, Unanswered)

            await server.wait_for("subscriptions/listen")
            nursery.start_soon(wait)
            await trio.testing.wait_all_tasks_blocked()
            it.backend.leave("removed", 1)


async def test_a_backend_that_does_not_say_is_not_waited_for_for_ever() -> None:
    async def spoil(request: Request, reply: Reply) -> bool:
        if request.method == "subscriptions/listen":
            await reply.events()
            await trio.sleep_forever()
        return False

    with trio.fail_after(GUARD):
        async with (
            open_http_server(HttpServer("modern", spoil=spoil)) as server,
            running({"url": server.url}, limits=Limits(execute_timeout_ms=50)) as it,
        ):
            with pytest.raises(TimeoutError, match="did not acknowledge"):
                await follow(it)
            await it.call("echo")


async def test_a_backend_that_does_not_do_that_is_asked_once_for_each_wish() -> None:
    async def spoil(request: Request, reply: Reply) -> bool:
        if request.method != "subscriptions/listen":
            return False
        error = {"code": -32601, "message": "Method not found"}
        await reply.json({"jsonrpc": "2.0", "id": request.message["id"], "error": error})
        return True

    with trio.fail_after(GUARD):
        async with (
            open_http_server(HttpServer("modern", spoil=spoil)) as server,
            running({"url": server.url}) as it,
        ):
            for _ in range(2):
                with pytest.raises(MCPError, match="Method not found"):
                    await follow(it)
            assert len(server.of("subscriptions/listen")) == 1
            assert it.backend.client is not None


@pytest.mark.parametrize("how", ["answer", "break"])
async def test_a_stream_that_ends_is_asked_for_again_and_every_list_with_it(
    how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "AGAIN", 0.01)
    with trio.fail_after(GUARD):
        async with (
            open_http_server(HttpServer("modern")) as server,
            running({"url": server.url}) as it,
        ):
            client = await it.backend.connection()
            stream = await server.wait_for_listener()
            listed = await it.backend.catalog.get("tools", client)
            if how == "answer":
                request = server.of("subscriptions/listen")[0].message
                result = {"resultType": "complete"}
                await stream.event({"jsonrpc": "2.0", "id": request["id"], "result": result})
            else:
                await stream.end()
                await stream.hang_up()
            await server.wait_for_listener(2)
            assert await it.backend.catalog.get("tools", client) is not listed
            told = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
            await server.listeners[1].event(told)
            await it.host.until(lambda: it.host.notices)
            assert not it.host.all(ServerDisconnected)


async def test_what_is_acknowledged_in_an_odd_shape_is_nothing() -> None:
    async def spoil(request: Request, reply: Reply) -> bool:
        if request.method == "subscriptions/listen":
            await reply.events()
            method = "notifications/subscriptions/acknowledged"
            told = {"jsonrpc": "2.0", "method": method, "params": {"notifications": ["x"]}}
            await reply.event(told)
            await trio.sleep_forever()
        return False

    with trio.fail_after(GUARD):
        async with (
            open_http_server(HttpServer("modern", spoil=spoil)) as server,
            running({"url": server.url}) as it,
        ):
            assert await follow(it) == {}


async def test_a_handshake_backend_is_subscribed_to_again_one_by_one() -> None:
    """One resource that is gone does not take the others with it."""

    async def spoil(request: Request, reply: Reply) -> bool:
        if request.method != "resources/subscribe":
            return False
        message: dict[str, Any] = {"jsonrpc": "2.0", "id": request.message["id"], "result": {}}
        if request.message["params"]["uri"] == "x://a":
            del message["result"]
            message["error"] = {"code": -32002, "message": "gone"}
        await reply.json(message)
        return True

    with trio.fail_after(GUARD):
        async with open_http_server(HttpServer(spoil=spoil)) as server:
            async with running({"url": server.url}) as it:
                await it.backend.connection()
                await trio.testing.wait_all_tasks_blocked()  # there was nothing to restore
                it.backend.preferences.subscriptions.update(("x://a", "x://b", "x://c"))
                it.backend.preferences.log_level = "error"
                await it.backend.reconnect()
                await server.wait_for("resources/subscribe", 3)
            (level,) = server.of("logging/setLevel")
            assert level.message["params"] == {"level": "error"}
            told = [r.message["params"]["uri"] for r in server.of("resources/subscribe")]
            assert told == ["x://a", "x://b", "x://c"]
            assert it.host.story[-1] == "server_disconnected"  # by us, at the end
            assert it.host.all(ServerDisconnected)[-1].was_intentional


async def test_the_log_level_goes_with_every_request_also_of_the_next_connection(
    journal: Journal,
) -> None:
    level = "io.modelcontextprotocol/logLevel"
    entry = raw("--discover", "modern", *journal.flags)
    with trio.fail_after(GUARD):
        async with running(entry) as it:
            await it.call("echo")
            (await it.backend.connection()).log_level = it.backend.preferences.log_level = "error"
            await it.call("echo")
            await it.backend.reconnect()
            await it.call("echo")
    levels = [call["params"]["_meta"][level] for call in journal.of("tools/call")]
    assert levels == ["info", "error", "error"]
