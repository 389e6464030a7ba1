"""Calls that outlive their request."""

from __future__ import annotations

import json
from typing import Any

import pytest
import trio

from emceepee_client import Answer, Open
from emceepee_trio.config.bounds import MAX_TASKS_SHOWN
from fake_backends import Journal, demo, raw
from like import TIMESTAMP, Like


def described(task_id: str, tool: str, status: str, **more: Any) -> dict[str, Any]:
    plain = {
        "task_id": task_id,
        "status": status,
        "created_at": TIMESTAMP,
        "last_updated_at": TIMESTAMP,
        "server": "raw",
        "tool": tool,
        "args": {},
        "ttl_ms": 600_000,
    }
    return plain | more


async def test_tasks_are_listed_oldest_first_and_by_what_they_are(
    connect_as_either: Open,
) -> None:
    async with connect_as_either({"raw": raw(), "other": raw()}) as emceepee:
        working = await emceepee.start_task("raw", "never", {"x": [1]}, ttl_ms=99_000)
        done = await emceepee.start_task("raw", "echo")
        failed = await emceepee.start_task("raw", "rpc_error")
        cancelled = await emceepee.start_task("raw", "never")
        other = await emceepee.start_task("other", "never")
        await emceepee.says("cancel_task", task_id=cancelled)
        for task_id in (done, failed):
            await emceepee.task_over(task_id)
        whole = {
            working: described(working, "never", "working", args={"x": [1]}, ttl_ms=99_000),
            done: described(done, "echo", "completed"),
            failed: described(failed, "rpc_error", "failed", error=Like(".*no such luck.*")),
            cancelled: described(cancelled, "never", "cancelled", error=Like(".* was cancelled")),
            other: described(other, "never", "working", server="other"),
        }

        async def ids(**wanted: Any) -> list[str]:
            said = await emceepee.says("list_tasks", **wanted)
            assert list(said) == ["tasks"]
            assert said["tasks"] == [whole[task["task_id"]] for task in said["tasks"]]
            return [task["task_id"] for task in said["tasks"]]

        assert await ids() == [working, other]
        assert await ids(include_completed=True) == list(whole)
        assert await ids(server="raw") == [working]
        assert await ids(server="raw", include_completed=True) == list(whole)[:-1]
        assert await ids(status="completed") == [done]
        assert await ids(status="failed") == [failed]
        assert await ids(status="cancelled", server="raw") == [cancelled]
        assert await ids(status="expired") == await ids(server="nobody") == []
        assert await emceepee.says("get_task", task_id=failed) == {
            "task": whole[failed],
            "pending_elicitations_for_server": [],
        }
        error = await emceepee.fails("list_tasks", status="lost")
        assert error["code"] == "TOOL_ERR_INVALID_ARGUMENTS"


async def test_a_result_that_is_an_error_completes_its_task(connect: Open) -> None:
    async with connect({"demo": demo()}) as emceepee:
        answer = await emceepee.execute("demo", "fail", {"message": "sorry"})
        assert answer.result["isError"] is True
        task_id = await emceepee.start_task("demo", "fail", {"message": "sorry"})
        assert (await emceepee.task_over(task_id))["status"] == "completed"
        again = await emceepee.call("get_task_result", task_id=task_id)
        assert again.result["isError"] is True
        assert again.text == answer.text == "sorry"


async def test_a_wait_for_a_result_may_end_first(connect: Open, journal: Journal) -> None:
    async with connect({"raw": raw(*journal.flags)}) as emceepee:
        task_id = await emceepee.start_task("raw", "never")
        for timeout in (0, 30):
            error = await emceepee.fails("get_task_result", task_id=task_id, timeout_ms=timeout)
            assert error == {
                "code": "TOOL_ERR_TIMEOUT",
                "message": Like(
                    f"task {task_id} is still working after {timeout} ms; it goes on.*"
                ),
                "details": {"task": described(task_id, "never", "working")},
            }
        for timeout in (-1, 3_600_001):
            error = await emceepee.fails("get_task_result", task_id=task_id, timeout_ms=timeout)
            assert error["code"] == "TOOL_ERR_INVALID_ARGUMENTS"
        assert (await emceepee.says("get_task", task_id=task_id))["task"]["status"] == "working"
        assert journal.of("notifications/cancelled") == []


async def test_a_wait_for_a_result_lasts_as_long_as_the_task(
    connect: Open, journal: Journal
) -> None:
    async with connect({"raw": raw(*journal.flags)}) as emceepee:
        await emceepee.connected("raw")
        task_id = await emceepee.start_task("raw", "slow", ttl_ms=400)
        error = await emceepee.fails("get_task_result", task_id=task_id)
        assert error == {
            "code": "TOOL_ERR_EXECUTION_FAILED",
            "message": Like(f"task {task_id} expired after 400 ms; .*"),
            "details": {"status": "expired"},
        }
        expired = await emceepee.event("task_expired")
        assert expired["data"] == {"taskId": task_id, "toolName": "slow", "ttl": 400}
        # Its server is told.
        (call,) = journal.of("tools/call")
        told = await journal.wait_for_method("notifications/cancelled")
        assert told["params"]["requestId"] == call["id"]
        await journal.wait_for_marker("slow cancelled")
        task = (await emceepee.says("get_task", task_id=task_id))["task"]
        assert task == described(
            task_id, "slow", "expired", ttl_ms=400, error=Like(".*expired after 400 ms.*")
        )
        said = await emceepee.says("cancel_task", task_id=task_id)
        assert said == {"success": False, "message": f"task {task_id} is expired already"}


async def test_a_cancelled_task_is_stopped_at_its_server(
    connect: Open, journal: Journal, its_era: tuple[str, ...]
) -> None:
    async with connect({"raw": raw(*its_era, *journal.flags)}) as emceepee:
        await emceepee.connected("raw")
        task_id = await emceepee.start_task("raw", "slow")
        await journal.wait_for_marker("slow started")
        said = await emceepee.says("cancel_task", task_id=task_id)
        assert said == {
            "success": True,
            "message": f"task {task_id} is cancelled, server 'raw' is told to stop",
        }
        cancelled = await emceepee.event("task_cancelled")
        assert cancelled["data"] == {"taskId": task_id, "toolName": "slow"}
        (call,) = journal.of("tools/call")
        told = await journal.wait_for_method("notifications/cancelled")
        assert told["params"]["requestId"] == call["id"]
        await journal.wait_for_marker("slow cancelled")
        again = await emceepee.says("cancel_task", task_id=task_id)
        assert again == {"success": False, "message": f"task {task_id} is cancelled already"}
        error = await emceepee.fails("get_task_result", task_id=task_id)
        assert error == {
            "code": "TOOL_ERR_EXECUTION_FAILED",
            "message": f"task {task_id} was cancelled",
            "details": {"status": "cancelled"},
        }
        assert len(journal.of("notifications/cancelled")) == 1


async def test_who_waits_for_a_task_hears_of_its_cancellation(connect: Open) -> None:
    answers: list[Answer] = []
    async with connect({"raw": raw()}) as emceepee, trio.open_nursery() as nursery:
        task_id = await emceepee.start_task("raw", "never")

        async def wait() -> None:
            answers.append(await emceepee.call("get_task_result", task_id=task_id))

        for _ in range(3):
            nursery.start_soon(wait)
        await emceepee.sent()
        await emceepee.says("cancel_task", task_id=task_id)
    assert [answer.error["details"] for answer in answers] == [{"status": "cancelled"}] * 3


async def test_a_finished_task_cannot_be_cancelled(connect: Open) -> None:
    async with connect({"raw": raw()}) as emceepee:
        done = await emceepee.start_task("raw", "echo", {"text": "kept"})
        failed = await emceepee.start_task("raw", "rpc_error")
        for task_id, status in ((done, "completed"), (failed, "failed")):
            assert (await emceepee.task_over(task_id))["status"] == status
            said = await emceepee.says("cancel_task", task_id=task_id)
            assert said == {"success": False, "message": f"task {task_id} is {status} already"}
        assert (await emceepee.call("get_task_result", task_id=done)).text == "kept"


async def test_progress_of_a_task_is_its_status_message(
    connect: Open, its_era: tuple[str, ...]
) -> None:
    """demo reports progress only if it is asked to, which we always do."""
    async with connect({"raw": raw(*its_era)}) as emceepee:
        answer = await emceepee.execute("raw", "progress", {"n": 4})
        assert answer.text == "progressed 4 times"
        task_id = await emceepee.start_task("raw", "progress", {"n": 4})
        task = await emceepee.task_over(task_id)
        assert task["status_message"] == "step 4"


async def test_finished_tasks_are_forgotten_after_a_while(connect: Open) -> None:
    settings = {"limits": {"finished_task_ms": 1000}}
    async with connect({"raw": raw()}, **settings) as emceepee:
        await emceepee.connected("raw")
        task_id = await emceepee.start_task("raw", "echo")
        expired = await emceepee.start_task("raw", "never", ttl_ms=100)
        for task in (task_id, expired):
            await emceepee.task_over(task)
        await emceepee.says("set_timer", duration_ms=1500, message="later")
        await emceepee.event("timer_expired")
        for task in (task_id, expired):
            error = await emceepee.fails("get_task_result", task_id=task)
            assert error["code"] == "TOOL_ERR_NOT_FOUND"
            assert "kept 1 s" in error["message"]


async def test_only_so_many_results_are_kept(connect: Open) -> None:
    async with connect({"raw": raw()}, limits={"results": 2}) as emceepee:
        tasks = []
        for _ in range(4):
            tasks.append(await emceepee.start_task("raw", "echo"))
            await emceepee.task_over(tasks[-1])
        left = (await emceepee.says("list_tasks", include_completed=True))["tasks"]
        assert [task["task_id"] for task in left] == tasks[2:]
        error = await emceepee.fails("get_task_result", task_id=tasks[0])
        assert error["code"] == "TOOL_ERR_NOT_FOUND"


async def test_only_so_many_bytes_of_results_are_kept(connect: Open) -> None:
    settings = {"limits": {"results_bytes": 200_000}, "results": {"inline_bytes": 0}}
    async with connect({"raw": raw()}, **settings) as emceepee:
        tasks = []
        for size in (80_000, 80_000, 80_000, 300_000):
            tasks.append(await emceepee.start_task("raw", "big", {"size": size}))
            await emceepee.task_over(tasks[-1])
            left = (await emceepee.says("list_tasks", status="completed"))["tasks"]
            assert [task["task_id"] for task in left] == {1: tasks, 2: tasks, 3: tasks[1:]}.get(
                len(tasks),
                tasks[3:],  # alone it stays, however large
            )


async def test_of_many_tasks_an_answer_names_the_newest(connect: Open) -> None:
    async with connect({"raw": raw()}, context="off") as emceepee:
        tasks = [await emceepee.start_task("raw", "never") for _ in range(MAX_TASKS_SHOWN + 2)]
        _, shown = (await emceepee.execute("raw", "never", timeout_ms=0)).texts
        pending = json.loads(shown)["pending_on_server"]
        last = json.loads(shown)["proxy_task"]["task_id"]
        newest = [*tasks[3:], last]
        assert [task["taskId"] for task in pending["tasks"]] == newest
        assert pending["more"] == 3
        (waiting,) = (await emceepee.says("await_activity"))["pending_server"]
        assert [task["taskId"] for task in waiting["working_tasks"]] == newest
        assert (waiting["server"], waiting["more"]) == ("raw", 3)
        status = await emceepee.status("raw")
        assert [task["taskId"] for task in status["tasks"]] == newest
        assert (status["server"]["working_tasks"], status["more"]) == (len(tasks) + 1, 3)
        assert len((await emceepee.says("list_tasks"))["tasks"]) == len(tasks) + 1


async def test_there_is_a_limit_of_working_tasks(connect: Open, journal: Journal) -> None:
    async with connect({"raw": raw(*journal.flags)}, limits={"tasks": 1}) as emceepee:
        await emceepee.connected("raw")
        first = await emceepee.start_task("raw", "slow")
        await journal.wait_for_marker("slow started")
        refused = {
            "code": "TOOL_ERR_LIMIT",
            "message": Like(r"1 tasks are working in this session \(limits\.tasks\); .*"),
        }
        # At once a task: refused, and never sent.
        error = await emceepee.fails("execute_tool", server="raw", tool="never", timeout_ms=0)
        assert error == refused
        # A task after a while: sent, and cancelled when there is no place for it.
        error = await emceepee.fails("execute_tool", server="raw", tool="slow", timeout_ms=200)
        assert error == refused
        await journal.wait_for_marker("slow cancelled")
        # No task: as ever.
        assert (await emceepee.execute("raw", "echo", {"text": "quick"})).text == "quick"
        called = [call["params"]["name"] for call in journal.of("tools/call")]
        assert called == ["slow", "slow", "echo"]
        await emceepee.says("cancel_task", task_id=first)
        await emceepee.start_task("raw", "never")


async def test_there_is_a_limit_of_calls_in_flight(connect: Open, journal: Journal) -> None:
    async with connect({"raw": raw(*journal.flags)}, limits={"calls": 2}) as emceepee:
        await emceepee.connected("raw")
        file = journal.path.parent / "done"
        async with trio.open_nursery() as nursery:
            for _ in range(2):
                nursery.start_soon(emceepee.execute, "raw", "slow", {"file": str(file)})
            await journal.wait_for_marker("slow started", 2)
            error = await emceepee.fails("execute_tool", server="raw", tool="echo")
            assert error == {
                "code": "TOOL_ERR_LIMIT",
                "message": Like(r"2 calls are in flight in this session \(limits\.calls\); .*"),
            }
            file.touch()
        assert (await emceepee.execute("raw", "echo", {"text": "free"})).text == "free"
        # Tasks are counted apart.
        for _ in range(3):
            await emceepee.start_task("raw", "never")


@pytest.mark.parametrize("tool", ["get_task", "get_task_result", "cancel_task"])
async def test_a_task_that_is_not_there_is_an_error(connect: Open, tool: str) -> None:
    async with connect() as emceepee:
        for task_id in ("", "nonsense", "01ARZ3NDEKTSV4RRFFQ69G5FAV"):
            error = await emceepee.fails(tool, task_id=task_id)
            assert error == {
                "code": "TOOL_ERR_NOT_FOUND",
                "message": Like(f"no task '{task_id}'; .* list_tasks shows what there is"),
            }
        for arguments, problem in (
            ({}, "task_id: missing"),
            ({"task_id": 7}, "task_id: expected a string, got 7"),
            ({"taskId": "x"}, 'unknown key "taskId".*task_id.*'),
            ({"taskId": "x"}, "task_id: missing"),
        ):
            error = await emceepee.fails(tool, **arguments)
            assert Like(problem) in error["details"]["problems"]
