"""Lists: whole, as they came, fetched once, and never stale without being marked so."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import outcome
import pytest
import trio
from mcp import MCPError
from trio.testing import wait_all_tasks_blocked

from emceepee_trio.backend.catalogue import catalog as module
from emceepee_trio.backend.catalogue.catalog import Catalog, Entries, List
from emceepee_trio.config import Retry
from emceepee_trio.errors import ExecutionFailed
from fake_backends import Journal, raw
from http_server import QUIET, HttpServer, Reply, Request, open_http_server
from recording import Running, running

pytestmark = QUIET

GUARD = 60
LATER = {"restart": Retry(base_delay_ms=60_000)}
both_eras = pytest.mark.parametrize("discover", ["error", "modern"])


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path / "journal")


async def fetch(it: Running, name: List) -> Entries:
    return await it.backend.catalog.get(name, await it.backend.connection())


@both_eras
@pytest.mark.parametrize(
    ("name", "flag"),
    [
        ("tools", "--tools"),
        ("resources", "--resources"),
        ("resource_templates", "--templates"),
        ("prompts", "--prompts"),
    ],
)
async def test_a_list_is_all_of_its_pages(discover: str, name: List, flag: str) -> None:
    with trio.fail_after(GUARD):
        async with running(raw("--discover", discover, flag, 60, "--page", 7)) as it:
            entries = await fetch(it, name)
    assert len(entries) == 60
    assert entries[0]["x-vendor"]
    key = {"resources": "uri", "resource_templates": "uriTemplate"}.get(name, "name")
    assert len({entry[key] for entry in entries}) == 60


async def test_a_list_is_fetched_once_until_it_changes(journal: Journal) -> None:
    with trio.fail_after(GUARD):
        async with running(raw(*journal.flags)) as it:
            first = await fetch(it, "tools")
            assert await fetch(it, "tools") is first
            assert len(journal.of("tools/list")) == 1
            await it.call("notify_many")  # each list_changed once
            assert await fetch(it, "tools") == first
            await fetch(it, "tools")
            assert len(journal.of("tools/list")) == 2
            assert it.host.notices[1][0] == "notifications/tools/list_changed"


async def test_a_change_of_resources_is_one_of_their_templates_too(journal: Journal) -> None:
    with trio.fail_after(GUARD):
        async with running(raw(*journal.flags)) as it:
            await fetch(it, "resource_templates")
            await it.call("notify_many")
            await fetch(it, "resource_templates")
    assert len(journal.of("resources/templates/list")) == 2


async def test_after_a_loss_the_old_list_is_kept_and_the_next_one_fetched(journal: Journal) -> None:
    with trio.fail_after(GUARD):
        async with running(raw(*journal.flags) | LATER) as it:
            old = await fetch(it, "tools")
            with pytest.raises(MCPError):
                await it.call("exit")
            assert it.backend.catalog.kept("tools") is old
            assert it.backend.catalog.kept("prompts") is None
            new = await fetch(it, "tools")
            assert new == old
            assert new is not old
            await it.host.connected(2)  # what was known before has been asked for by then
            assert await fetch(it, "tools") is new
    assert len(journal.of("tools/list")) == 2


@pytest.mark.parametrize("answers_late", [False, True])
async def test_pages_older_than_a_change_are_not_taken_for_new(answers_late: bool) -> None:
    """Told that the list has changed while its old state was on its way."""
    asked, go = trio.Event(), trio.Event()
    versions = iter("abc")

    async def spoil(request: Request, reply: Reply) -> bool:
        if request.method != "tools/list":
            return False
        answer = {"tools": [{"name": next(versions)}]}
        if not asked.is_set():
            asked.set()
            await go.wait()
        await reply.json({"jsonrpc": "2.0", "id": request.message["id"], "result": answer})
        return True

    found: list[Entries] = []
    with trio.fail_after(GUARD):
        async with (
            open_http_server(HttpServer(spoil=spoil)) as server,
            running({"url": server.url}) as it,
        ):

            async def early() -> None:
                found.append(await fetch(it, "tools"))

            async with trio.open_nursery() as nursery:
                nursery.start_soon(early)
                await asked.wait()
                it.backend.catalog.stale("tools")
                if answers_late:  # somebody else has the new ones before the old ones come
                    assert await fetch(it, "tools") == [{"name": "b"}]
                go.set()
            assert found == [[{"name": "a"}]]
            assert await fetch(it, "tools") == [{"name": "b"}]
            assert it.backend.catalog.kept("tools") == [{"name": "b"}]
            await fetch(it, "tools")
            assert len(server.of("tools/list")) == 2


async def test_those_who_ask_at_once_share_one_fetch() -> None:
    asked, go = trio.Event(), trio.Event()

    async def spoil(request: Request, reply: Reply) -> bool:
        if request.method == "tools/list":
            asked.set()
            await go.wait()
        return False

    async def wait_for_tools(task_status: trio.TaskStatus[trio.CancelScope]) -> None:
        with trio.CancelScope() as scope:
            task_status.started(scope)
            found.append(await fetch(it, "tools"))

    found: list[Entries] = []
    with trio.fail_after(GUARD):
        async with (
            open_http_server(HttpServer(spoil=spoil)) as server,
            running({"url": server.url}) as it,
        ):
            await it.backend.connection()
            async with trio.open_nursery() as nursery:
                first = await nursery.start(wait_for_tools)
                await asked.wait()
                for _ in range(3):
                    await nursery.start(wait_for_tools)
                await wait_all_tasks_blocked()
                assert len(server.of("tools/list")) == 1
                first.cancel()  # who gives up leaves it to those who wait
                await wait_all_tasks_blocked()
                go.set()
            assert len(found) == 3
            assert found[0] is found[1] is found[2]
            assert len(server.of("tools/list")) == 2


async def test_those_who_ask_at_once_share_one_refusal() -> None:
    error = {"code": 1, "message": "out of order"}
    refused = 0
    asked, go = trio.Event(), trio.Event()

    async def wait_for_tools() -> None:
        nonlocal refused
        with pytest.raises(MCPError, match="out of order"):
            await fetch(it, "tools")
        refused += 1

    async def spoil(request: Request, reply: Reply) -> bool:
        if request.method != "tools/list":
            return False
        asked.set()
        await go.wait()
        await reply.json({"jsonrpc": "2.0", "id": request.message["id"], "error": error})
        return True

    with trio.fail_after(GUARD):
        async with (
            open_http_server(HttpServer(spoil=spoil)) as server,
            running({"url": server.url}) as it,
        ):
            await it.backend.connection()
            async with trio.open_nursery() as nursery:
                for _ in range(3):
                    nursery.start_soon(wait_for_tools)
                await asked.wait()
                await wait_all_tasks_blocked()
                go.set()
            assert refused == 3
            assert len(server.of("tools/list")) == 1


@pytest.mark.parametrize(
    ("ttl", "asked"),
    [
        *((0, 2), (60_000, 1), (0.0, 2), (10**300, 1), (1e300, 1)),
        *((-1, 1), ("x", 1), (None, 1), (True, 1), (False, 1), ([0], 1)),
        *((math.nan, 1), (math.inf, 1), (-math.inf, 1)),
    ],
)
async def test_a_list_holds_for_as_long_as_its_server_says(ttl: object, asked: int) -> None:
    async def spoil(request: Request, reply: Reply) -> bool:
        if request.method != "tools/list":
            return False
        result = {"tools": [{"name": "x"}], "ttlMs": ttl}
        await reply.json({"jsonrpc": "2.0", "id": request.message["id"], "result": result})
        return True

    with trio.fail_after(GUARD):
        async with (
            open_http_server(HttpServer(spoil=spoil)) as server,
            running({"url": server.url}) as it,
        ):
            for _ in range(2):
                assert await fetch(it, "tools") == [{"name": "x"}]
            assert len(server.of("tools/list")) == asked


async def test_what_is_not_allowed_is_as_if_missing() -> None:
    entry = raw() | {"allowed_tools": ("ech*", "[bg]ig", "exact?")}
    with trio.fail_after(GUARD):
        async with running(entry) as it:
            assert {tool["name"] for tool in await fetch(it, "tools")} == {"echo", "big"}
    catalog = it.backend.catalog
    assert catalog.allows("echo_more")
    assert not catalog.allows("Echo")
    assert not catalog.allows("exact")
    assert Catalog("it", None).allows("anything")
    assert not Catalog("it", ()).allows("anything")


async def test_a_capability_that_is_missing_is_not_asked_for(journal: Journal) -> None:
    flags = ("--no-capability", "prompts", "--no-capability", "resources")
    with trio.fail_after(GUARD):
        async with running(raw(*flags, *journal.flags)) as it:
            assert await fetch(it, "prompts") == []
            assert await fetch(it, "resources") == []
            assert await fetch(it, "resource_templates") == []
    assert not [e for e in journal.entries() if str(e.get("method")).endswith("/list")]


# -- lies ----------------------------------------------------------------------------------------


async def test_pages_that_name_each_other_are_an_error_and_nothing_else() -> None:
    with trio.fail_after(GUARD):
        async with running(raw("--same-cursor")) as it:
            with pytest.raises(ExecutionFailed, match="pages its tools in a circle") as caught:
                await fetch(it, "tools")
            assert caught.value.details == {"nextCursor": "for ever"}
            await it.call("echo")


async def listed(*pages: Any, error: Any = None, name: List = "tools") -> Entries:
    """The list of a backend that answers these pages, the last one again and again."""
    sent = 0

    async def spoil(request: Request, reply: Reply) -> bool:
        nonlocal sent
        if request.method == "initialize":
            everything: dict[str, Any] = {"tools": {}, "resources": {}, "prompts": {}}
            version = request.message["params"]["protocolVersion"]
            result = {"protocolVersion": version, "capabilities": everything, "serverInfo": {}}
            answer = {"jsonrpc": "2.0", "id": request.message["id"], "result": result}
            server.sessions.add("it")
            await reply.json(answer, mcp_session_id="it")
            return True
        if not request.method.endswith("/list"):
            return False
        answer = {"jsonrpc": "2.0", "id": request.message["id"]}
        if error is not None:
            answer["error"] = error
        else:
            answer["result"] = pages[min(sent, len(pages) - 1)]
            if callable(answer["result"]):
                answer["result"] = answer["result"](sent)
        sent += 1
        await reply.json(answer)
        return True

    server = HttpServer(spoil=spoil)
    with trio.fail_after(GUARD):
        async with open_http_server(server), running({"url": server.url}) as it:
            result = await outcome.acapture(fetch, it, name)
    return result.unwrap()  # as it is, not in the groups of the nurseries


@pytest.mark.parametrize("items", [None, 5, True, "tools", {"a": {}}, [1, None, "x", [], {}]])
async def test_what_is_no_list_of_entries_is_left_out(items: Any) -> None:
    assert await listed({"tools": items}) in ([], [{}])


async def test_entries_need_no_name() -> None:
    assert await listed({"tools": [{"name": 1}, {"title": "x"}]}) == [{"name": 1}, {"title": "x"}]


@pytest.mark.parametrize("cursor", [None, "", 7, ["x"], False])
async def test_what_is_no_cursor_is_the_end(cursor: Any) -> None:
    assert await listed({"tools": [{"name": "a"}], "nextCursor": cursor}) == [{"name": "a"}]


async def test_a_list_without_an_end_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PAGES", 5)
    with pytest.raises(ExecutionFailed, match="does not come to an end of its tools"):
        await listed(lambda n: {"tools": [{}], "nextCursor": str(n)})


async def test_cursors_count_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SIZE", 10_000)
    pages: list[int] = []

    def page(n: int) -> dict[str, Any]:
        pages.append(n)
        return {"tools": [], "nextCursor": f"{n}{'x' * 4000}"}

    with pytest.raises(ExecutionFailed, match="does not come to an end of its tools"):
        await listed(page)
    assert len(pages) < 10


async def test_pages_that_grow_without_an_end_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SIZE", 10_000)
    with pytest.raises(ExecutionFailed, match="does not come to an end of its tools"):
        await listed(lambda n: {"tools": [{"x": "x" * 6000}], "nextCursor": str(n)})


async def test_a_backend_without_templates_may_say_so_with_an_error() -> None:
    missing = {"code": -32601, "message": "Method not found"}
    assert await listed(error=missing, name="resource_templates") == []
    for name in ("resources", "prompts"):
        with pytest.raises(MCPError, match="Method not found"):
            await listed(error=missing, name=name)
    with pytest.raises(MCPError, match="out of order"):
        await listed(error={"code": 1, "message": "out of order"}, name="resource_templates")
