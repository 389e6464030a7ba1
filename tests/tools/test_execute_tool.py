"""Calling tools: results, promotion, and every way in which a call can go wrong."""

from __future__ import annotations

import json
from typing import Any

import pytest

from emceepee_client import Open
from fake_backends import Journal, demo, raw
from like import TIMESTAMP, ULID, Like

NO_RESTART = {"restart": {"enabled": False}}
PROMOTED = (
    "Tool call exceeded timeout ({}ms). Promoted to task {}. "
    "Use get_task_result to retrieve the result when ready."
)


async def test_a_slow_call_is_promoted_and_finishes(
    connect_as_either: Open, its_era: tuple[str, ...], journal: Journal
) -> None:
    done = journal.path.parent / "done"
    async with connect_as_either({"raw": raw(*its_era, *journal.flags)}) as emceepee:
        await emceepee.connected("raw")
        answer = await emceepee.execute("raw", "slow", {"file": str(done)}, timeout_ms=50)
        assert answer.result["isError"] is False
        said, shown = answer.texts
        task_id = answer.task_id
        assert task_id == ULID
        assert said == PROMOTED.format(50, task_id)
        assert json.loads(shown) == {
            "proxy_task": {
                "task_id": task_id,
                "status": "working",
                "created_at": TIMESTAMP,
                "server": "raw",
                "tool": "slow",
            },
            "pending_on_server": {
                "tasks": [{"taskId": task_id, "toolName": "slow", "status": "working"}],
                "elicitations_for_server": [],
            },
        }
        created = await emceepee.event("task_created", taskId=task_id)
        assert created == {
            "id": ULID,
            "type": "task_created",
            "server": "raw",
            "createdAt": TIMESTAMP,
            "data": {"taskId": task_id, "toolName": "slow", "ttl": 600_000},
        }
        done.touch()
        completed = await emceepee.event("task_completed")
        assert completed["data"] == {"taskId": task_id, "toolName": "slow"}
        assert (await emceepee.call("get_task_result", task_id=task_id)).text == "the file is there"
        assert journal.of("notifications/cancelled") == []


async def test_a_promotion_shows_what_else_waits_on_that_server(connect: Open) -> None:
    async with connect({"raw": raw(), "other": raw()}) as emceepee:
        await emceepee.start_task("other", "never")
        asking = await emceepee.start_task("raw", "string_id_question")
        question = await emceepee.question()
        _, shown = (await emceepee.execute("raw", "never", timeout_ms=0)).texts
        pending = json.loads(shown)["pending_on_server"]
        assert [task["toolName"] for task in pending["tasks"]] == ["string_id_question", "never"]
        assert pending["tasks"][0]["taskId"] == asking
        (form,) = pending["elicitations_for_server"]
        assert form == {"requestId": question["requestId"], "server": "raw"}


async def test_the_patience_and_the_life_of_a_task_can_be_configured(connect: Open) -> None:
    settings = {"limits": {"execute_timeout_ms": 30, "task_ttl_ms": 77_000}}
    async with connect({"raw": raw()}, **settings) as emceepee:
        answer = await emceepee.execute("raw", "never")
        assert answer.texts[0] == PROMOTED.format(30, answer.task_id)
        task = (await emceepee.says("get_task", task_id=answer.task_id))["task"]
        assert task["ttl_ms"] == 77_000


async def test_the_life_of_a_task_is_brought_into_range_and_shown(connect: Open) -> None:
    async with connect({"raw": raw()}) as emceepee:
        for asked, used in ((1, 100), (-5, 100), (12_345, 12_345), (10**12, 1_800_000)):
            task_id = await emceepee.start_task("raw", "never", ttl_ms=asked)
            created = await emceepee.event("task_created", taskId=task_id)
            assert created["data"]["ttl"] == used
            task = (await emceepee.says("get_task", task_id=task_id))["task"]
            assert task["ttl_ms"] == used


async def test_numbers_out_of_range_are_refused_with_the_range(
    connect: Open, journal: Journal
) -> None:
    async with connect({"raw": raw(*journal.flags)}) as emceepee:
        for timeout in (-1, 3_600_001):
            error = await emceepee.fails(
                "execute_tool", server="raw", tool="echo", timeout_ms=timeout
            )
            assert error["code"] == "TOOL_ERR_INVALID_ARGUMENTS"
            assert error["details"] == {
                "problems": [Like(rf"timeout_ms: out of range, expected 0 to 3600000, .*{timeout}")]
            }
        await emceepee.execute("raw", "echo", timeout_ms=3_600_000)
        assert len(journal.of("tools/call")) == 1


async def test_arguments_that_do_not_fit_are_named(connect: Open, journal: Journal) -> None:
    good: dict[str, Any] = {"server": "raw", "tool": "echo"}
    bad: list[tuple[dict[str, Any], list[str]]] = [
        ({}, ["server: missing", "tool: missing"]),
        ({"server": "raw", "tool": 7}, ["tool: expected a string, got 7"]),
        ({"tool": "echo", "srever": "raw"}, ['unknown key "srever".*server.*', "server: missing"]),
        (good | {"args": [1]}, [r"args: expected an object, got \[1\]"]),
        (good | {"args": "{oops"}, ["args: expected an object, .*"]),
        (good | {"args": "[1]"}, ["args: expected an object, .*"]),
        (good | {"timeout_ms": "soon"}, ['timeout_ms: expected an integer, got "soon"']),
        (good | {"timeout_ms": True}, ["timeout_ms: expected an integer, got true"]),
        (good | {"ttl_ms": 1.5}, ["ttl_ms: expected an integer, got 1.5"]),
    ]
    async with connect({"raw": raw(*journal.flags)}) as emceepee:
        for arguments, problems in bad:
            error = await emceepee.fails("execute_tool", **arguments)
            assert error == {
                "code": "TOOL_ERR_INVALID_ARGUMENTS",
                "message": Like(
                    "execute_tool: .*; it takes server, tool, args, timeout_ms, ttl_ms"
                ),
                "details": {"problems": [Like(problem) for problem in problems]},
            }, arguments
        # What a model writes by mistake, and what stands for a default.
        text = await emceepee.call("execute_tool", **good, args='{"text": "as a string"}')
        assert text.text == "as a string"
        none = await emceepee.call("execute_tool", **good, timeout_ms=None, ttl_ms=None)
        assert none.text == ""
        assert len(journal.of("tools/call")) == 2


async def test_a_tool_that_is_not_there_is_named_whatever_the_server_says(
    connect: Open, its_era: tuple[str, ...]
) -> None:
    """raw answers with a JSON-RPC error, demo with isError."""
    async with connect({"raw": raw(*its_era), "demo": demo()}) as emceepee:
        error = await emceepee.fails("execute_tool", server="raw", tool="ecko")
        assert error == {
            "code": "TOOL_ERR_NOT_FOUND",
            "message": Like("server 'raw' has no tool 'ecko'.*echo.*; list_tools .*"),
            "details": {"code": -32602, "message": "unknown tool: ecko"},
        }
        error = await emceepee.fails("execute_tool", server="demo", tool="ecko")
        assert error["code"] == "TOOL_ERR_NOT_FOUND"
        assert "server 'demo' has no tool 'ecko'" in error["message"]
        # The error of a promoted call is the same.
        task_id = await emceepee.start_task("raw", "ecko")
        error = await emceepee.fails("get_task_result", task_id=task_id)
        assert error["code"] == "TOOL_ERR_NOT_FOUND"


async def test_an_error_of_the_server_keeps_its_code_message_and_data(
    connect_as_either: Open, its_era: tuple[str, ...]
) -> None:
    async with connect_as_either({"raw": raw(*its_era)}) as emceepee:
        for code, data in ((-32099, {"why": ["because"]}), (-32602, [1, None]), (42, "text")):
            args = {"code": code, "message": "no such luck", "data": data}
            error = await emceepee.fails("execute_tool", server="raw", tool="rpc_error", args=args)
            assert error == {
                "code": "TOOL_ERR_EXECUTION_FAILED",
                "message": Like("server 'raw' answered tools/call with an error: no such luck.*"),
                "details": {"code": code, "message": "no such luck", "data": data},
            }


async def test_a_server_may_call_its_own_failure_a_closed_connection(connect: Open) -> None:
    async with connect({"raw": raw()}) as emceepee:
        args = {"code": -32000, "message": "upstream is gone"}
        error = await emceepee.fails("execute_tool", server="raw", tool="rpc_error", args=args)
        assert error["code"] == "TOOL_ERR_EXECUTION_FAILED"
        assert (await emceepee.execute("raw", "echo", {"text": "here"})).text == "here"
        assert "server_disconnected" not in [event["type"] for event in emceepee.events]


async def test_a_call_has_a_hard_end_if_its_server_has_one(connect: Open, journal: Journal) -> None:
    servers = {"raw": raw(*journal.flags) | {"call_timeout_ms": 300}}
    async with connect(servers) as emceepee:
        await emceepee.connected("raw")
        error = await emceepee.fails("execute_tool", server="raw", tool="slow")
        assert error == {
            "code": "TOOL_ERR_TIMEOUT",
            "message": Like(r"raw/slow did not answer within call_timeout_ms \(300\).*"),
        }
        await journal.wait_for_marker("slow cancelled")
        task_id = await emceepee.start_task("raw", "slow")
        failed = await emceepee.event("task_failed", taskId=task_id)
        assert failed["data"] == {
            "taskId": task_id,
            "toolName": "slow",
            "error": Like(".*call_timeout_ms.*"),
        }
        error = await emceepee.fails("get_task_result", task_id=task_id)
        assert error["code"] == "TOOL_ERR_TIMEOUT"
        await journal.wait_for_marker("slow cancelled", 2)


async def test_a_call_waits_for_its_server_to_connect(connect: Open, journal: Journal) -> None:
    ready = journal.path.parent / "ready"
    async with connect({"raw": raw("--start-when", ready, *journal.flags)}) as emceepee:
        answer = await emceepee.execute("raw", "echo", {"text": "x"}, timeout_ms=20)
        assert answer.texts[0] == PROMOTED.format(20, answer.task_id)
        assert journal.of("tools/call") == []
        ready.touch()
        assert (await emceepee.call("get_task_result", task_id=answer.task_id)).text == "x"


async def test_a_task_that_waits_for_its_server_to_connect_can_be_cancelled(
    connect: Open, journal: Journal
) -> None:
    ready = journal.path.parent / "ready"
    async with connect({"raw": raw("--start-when", ready, *journal.flags)}) as emceepee:
        task_id = await emceepee.start_task("raw", "never")
        assert (await emceepee.says("cancel_task", task_id=task_id))["success"] is True
        ready.touch()
        await emceepee.execute("raw", "echo")
        assert [call["params"]["name"] for call in journal.of("tools/call")] == ["echo"]
        assert journal.of("notifications/cancelled") == []


@pytest.mark.parametrize("as_a_task", [False, True])
async def test_a_call_to_a_disabled_server_fails(connect: Open, as_a_task: bool) -> None:
    async with connect({"off": raw() | {"disabled": True}}) as emceepee:
        if as_a_task:
            task_id = await emceepee.start_task("off", "echo")
            error = await emceepee.fails("get_task_result", task_id=task_id)
        else:
            error = await emceepee.fails("execute_tool", server="off", tool="echo")
        assert error["code"] == "TOOL_ERR_CONNECT_FAILED"
        assert "disabled" in error["message"]
