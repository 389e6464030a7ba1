"""Clients that stop waiting, and clients that change their minds."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio
from mcp.shared.exceptions import MCPError

from emceepee_client import Emceepee, Era, open_emceepee
from fake_backends import Journal, raw
from like import Like

ID = 7_000


@pytest.fixture(params=["handshake", "modern"])
def era(request: pytest.FixtureRequest) -> Era:
    era: Era = request.param
    return era


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path / "journal.jsonl")


async def cancel(emceepee: Emceepee, request_id: Any = ID, **reason: Any) -> None:
    params = {"requestId": request_id, **reason}
    await emceepee.client.session._dispatcher.notify("notifications/cancelled", params)


@asynccontextmanager
async def calling(
    emceepee: Emceepee, tool: str, begun: Callable[[], Awaitable[object]], /, **arguments: Any
) -> AsyncGenerator[None]:
    """A call that is under way in the block; nobody waits for its answer behind it."""
    options = {"request_id": ID, "cancel_on_abandon": False}
    async with trio.open_nursery() as nursery:
        nursery.start_soon(emceepee.call_with, options, tool, arguments)
        await begun()
        yield
        nursery.cancel_scope.cancel()


REASONS = [
    "timed out after 0.3s",
    "McpError: MCP error -32001: Request timed out",
    "Timeout",
    "the tool call TIME OUT was reached",
]


async def test_a_client_that_gave_up_finds_its_result_later(
    tmp_path: Path, era: Era, journal: Journal
) -> None:
    file = tmp_path / "done"
    async with open_emceepee(tmp_path, {"raw": raw(*journal.flags)}, era=era) as emceepee:
        for n, reason in enumerate(REASONS, 1):
            started = partial(journal.wait_for_marker, "slow started", n)
            call = {"server": "raw", "tool": "slow", "args": {"file": str(file)}}
            async with calling(emceepee, "execute_tool", started, **call):
                await cancel(emceepee, reason=reason)
            created = [e for e in emceepee.events if e["type"] == "task_created"]
            while len(created) < n:
                await emceepee.call("await_activity")
                created = [e for e in emceepee.events if e["type"] == "task_created"]
        tasks = (await emceepee.says("list_tasks"))["tasks"]
        assert [task["task_id"] for task in tasks] == [e["data"]["taskId"] for e in created]
        assert journal.of("notifications/cancelled") == []
        file.touch()
        for task in tasks:
            answer = await emceepee.call("get_task_result", task_id=task["task_id"])
            assert answer.text == "the file is there"


async def test_so_does_the_sdks_own_timeout(tmp_path: Path, era: Era, journal: Journal) -> None:
    file = tmp_path / "done"
    async with open_emceepee(tmp_path, {"raw": raw(*journal.flags)}, era=era) as emceepee:
        call = {"server": "raw", "tool": "slow", "args": {"file": str(file)}}
        with pytest.raises(MCPError, match="timed out"):
            await emceepee.call_with({"timeout": 0.5}, "execute_tool", call)
        created = await emceepee.event("task_created")
        file.touch()
        answer = await emceepee.call("get_task_result", task_id=created["data"]["taskId"])
        assert answer.text == "the file is there"


@pytest.mark.parametrize("reason", [{}, {"reason": "caller cancelled"}, {"reason": "the time is"}])
async def test_a_client_that_changed_its_mind_stops_the_call(
    tmp_path: Path, era: Era, journal: Journal, reason: dict[str, str]
) -> None:
    async with open_emceepee(tmp_path, {"raw": raw(*journal.flags)}, era=era) as emceepee:
        started = partial(journal.wait_for_marker, "slow started")
        async with calling(emceepee, "execute_tool", started, server="raw", tool="slow"):
            await cancel(emceepee, **reason)
            await journal.wait_for_marker("slow cancelled")
        (call,) = journal.of("tools/call")
        (told,) = journal.of("notifications/cancelled")
        assert told["params"]["requestId"] == call["id"]
        assert (await emceepee.says("list_tasks", include_completed=True)) == {"tasks": []}
        assert (await emceepee.status("raw"))["calls_in_flight"] == []
        assert "task_created" not in [event["type"] for event in emceepee.events]


async def test_a_call_is_cancelled_with_the_request_that_is_not_answered(
    tmp_path: Path, journal: Journal
) -> None:
    """The SDK's own way to abandon a call, for any reason."""
    async with open_emceepee(tmp_path, {"raw": raw(*journal.flags)}) as emceepee:
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(emceepee.execute, "raw", "slow")
                await journal.wait_for_marker("slow started")
                scope.cancel()
        await journal.wait_for_marker("slow cancelled")


async def test_where_there_is_no_room_for_a_task_the_call_is_stopped(
    tmp_path: Path, journal: Journal
) -> None:
    settings: dict[str, Any] = {"limits": {"tasks": 1}}
    async with open_emceepee(tmp_path, {"raw": raw(*journal.flags)}, **settings) as emceepee:
        await emceepee.start_task("raw", "never")
        started = partial(journal.wait_for_marker, "slow started")
        async with calling(emceepee, "execute_tool", started, server="raw", tool="slow"):
            await cancel(emceepee, reason="timed out")
            await journal.wait_for_marker("slow cancelled")
        assert len((await emceepee.says("list_tasks"))["tasks"]) == 1


async def test_a_call_may_be_given_up_while_its_server_connects(
    tmp_path: Path, journal: Journal
) -> None:
    ready = tmp_path / "ready"
    servers = {"raw": raw("--start-when", ready, *journal.flags)}
    async with open_emceepee(tmp_path, servers) as emceepee:
        call = {"server": "raw", "tool": "echo", "args": {"text": "late"}}
        async with calling(emceepee, "execute_tool", emceepee.sent, **call):
            await cancel(emceepee, reason="timed out")
        created = await emceepee.event("task_created")
        ready.touch()
        answer = await emceepee.call("get_task_result", task_id=created["data"]["taskId"])
        assert answer.text == "late"


async def test_a_wait_that_is_cancelled_takes_no_events(tmp_path: Path, era: Era) -> None:
    async with open_emceepee(tmp_path, era=era) as emceepee:
        async with calling(emceepee, "await_activity", emceepee.sent):
            await cancel(emceepee, reason="no longer")
        await emceepee.says("set_timer", duration_ms=100, message="for the next")
        said = await emceepee.says("await_activity")
        assert said["triggers"] == [
            {"type": "event", "server": "emceepee", "eventType": "timer_expired"}
        ]
        assert len(said["events"]) == 1


async def test_the_result_of_a_task_is_not_lost_with_a_wait(
    tmp_path: Path, journal: Journal
) -> None:
    file = tmp_path / "done"
    async with open_emceepee(tmp_path, {"raw": raw(*journal.flags)}) as emceepee:
        task_id = await emceepee.start_task("raw", "slow", {"file": str(file)})
        for reason in ("timed out", "no longer"):
            async with calling(emceepee, "get_task_result", emceepee.sent, task_id=task_id):
                await cancel(emceepee, reason=reason)
        file.touch()
        answer = await emceepee.call("get_task_result", task_id=task_id)
        assert answer.text == "the file is there"
        assert journal.of("notifications/cancelled") == []


async def test_cancellations_of_nothing_are_ignored(tmp_path: Path, era: Era) -> None:
    async with open_emceepee(tmp_path, {"raw": raw()}, era=era) as emceepee:
        for request_id in (999, "999", None, True, 1.5, [1], {"a": 1}):
            for reason in ({}, {"reason": None}, {"reason": 5}, {"reason": "timed out"}):
                await cancel(emceepee, request_id, **reason)
        await emceepee.client.session._dispatcher.notify("notifications/cancelled", None)
        answer = await emceepee.execute("raw", "echo", {"text": "fine"})
        assert answer.text == "fine"
        assert (await emceepee.says("list_tasks"))["tasks"] == []


async def test_an_answered_call_cannot_be_cancelled(tmp_path: Path, journal: Journal) -> None:
    async with open_emceepee(tmp_path, {"raw": raw(*journal.flags)}) as emceepee:
        call = {"server": "raw", "tool": "never", "timeout_ms": 0}
        answer = await emceepee.call_with({"request_id": ID}, "execute_tool", call)
        await cancel(emceepee, reason="too late")
        await emceepee.sent()
        task = (await emceepee.says("get_task", task_id=answer.task_id))["task"]
        assert task["status"] == "working"
        await emceepee.execute("raw", "echo")
        assert journal.of("notifications/cancelled") == []
        assert task["task_id"] == Like("[0-9A-Z]{26}")
