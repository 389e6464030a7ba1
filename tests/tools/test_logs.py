"""What is logged of a session, as whoever reads the log finds it."""

from __future__ import annotations

from typing import Any

import trio

from emceepee_client import Emceepee, Open, log_lines
from fake_backends import raw
from like import Between

SECRET = "s3cr3t-v4lue"
SESSION = {"session": "default"}
RAW = SESSION | {"server": "raw"}


def logged(emceepee: Emceepee, *events: str) -> list[dict[str, Any]]:
    """The lines of these events, without their times."""
    lines = log_lines(emceepee.stderr)
    return [
        {key: line[key] for key in line if key != "timestamp"}
        for line in lines
        if line["event"] in events
    ]


async def test_a_call_is_logged_from_its_start_to_its_end(connect: Open) -> None:
    async with connect({"raw": raw()}) as emceepee:
        await emceepee.execute("raw", "echo", {"text": SECRET})
        await emceepee.execute("raw", "where")
        await emceepee.fails("execute_tool", server="raw", tool="rpc_error", args={"x": SECRET})
    called = RAW | {"event": "tool_execution_start", "level": "debug"}
    done = {
        **RAW,
        "event": "tool_execution_complete",
        "level": "debug",
        "duration_ms": Between(0, 60_000),
    }
    assert logged(
        emceepee,
        "tool_execution_start",
        "tool_execution_complete",
        "tool_execution_failed",
    ) == [
        called | {"tool": "echo", "has_args": True},
        done | {"tool": "echo"},
        called | {"tool": "where", "has_args": False},
        done | {"tool": "where"},
        called | {"tool": "rpc_error", "has_args": True},
        {
            **RAW,
            "event": "tool_execution_failed",
            "level": "warn",
            "tool": "rpc_error",
            "code": "TOOL_ERR_EXECUTION_FAILED",
        },
    ]
    assert SECRET not in emceepee.stderr.read_text("utf-8")


async def test_a_task_is_logged_from_its_start_to_its_end(connect: Open) -> None:
    async with connect({"raw": raw()}) as emceepee:
        task = await emceepee.start_task("raw", "echo", {"text": SECRET})
        await emceepee.task_over(task)
    of_task = RAW | {"tool": "echo"}
    assert logged(
        emceepee,
        "tool_execution_start",
        "tool_execution_timeout",
        "tool_execution_complete",
        "task_completed",
    ) == [
        of_task | {"event": "tool_execution_start", "level": "debug", "has_args": True},
        of_task | {"event": "tool_execution_timeout", "level": "info", "task_id": task},
        of_task | {"event": "task_completed", "level": "info", "task_id": task},
        {
            **of_task,
            "event": "tool_execution_complete",
            "level": "debug",
            "duration_ms": Between(0, 60_000),
        },
    ]
    assert SECRET not in emceepee.stderr.read_text("utf-8")


async def test_questions_are_logged_with_the_time_that_the_answer_took(connect: Open) -> None:
    limits = {"question_timeout_ms": 1000}
    async with connect({"raw": raw()}) as emceepee:
        await emceepee.start_task("raw", "string_id_question")
        answered = (await emceepee.question())["requestId"]
        await emceepee.says(
            "respond_to_elicitation",
            request_id=answered,
            action="accept",
            content={"name": SECRET},
        )
        await emceepee.start_task("raw", "sample_question")
        cancelled = (await emceepee.question())["requestId"]
        await emceepee.says("cancel_sampling_request", request_id=cancelled, reason=SECRET)
    info = RAW | {"level": "info"}
    first, second = info | {"request_id": answered}, info | {"request_id": cancelled}
    assert logged(
        emceepee,
        *("elicitation_received", "elicitation_responded"),
        *("sampling_received", "sampling_cancelled"),
    ) == [
        first | {"event": "elicitation_received"},
        first | {"event": "elicitation_responded", "duration_ms": Between(0, 60_000)},
        second | {"event": "sampling_received"},
        second | {"event": "sampling_cancelled"},
    ]
    assert SECRET not in emceepee.stderr.read_text("utf-8")
    async with connect({"raw": raw()}, limits=limits) as emceepee:
        await emceepee.start_task("raw", "string_id_question")
        asked = await emceepee.event("elicitation_request")
        await emceepee.event("elicitation_expired")
    late = RAW | {"level": "warn", "request_id": asked["data"]["requestId"]}
    assert logged(emceepee, "elicitation_timeout") == [late | {"event": "elicitation_timeout"}]


async def test_events_that_nobody_fetched_in_time_are_logged_when_they_go(connect: Open) -> None:
    limits = {"events": 10}
    async with connect({"raw": raw()}, limits=limits, context="off") as emceepee:
        await emceepee.execute("raw", "notify_many", {"n": 20})
        with trio.fail_after(60):
            await emceepee.sent()
    lost = logged(emceepee, "event_store_eviction")
    evicted = sum(line.pop("evicted_count") for line in lost)
    assert evicted >= 10
    line = {**RAW, "event": "event_store_eviction", "level": "warn", "reason": "limits.events"}
    assert line in lost
    # One when it began, and the rest at the end: here of two servers, ours and this one.
    assert len(lost) <= 4


async def test_the_end_of_the_daemon_says_what_there_was(connect: Open) -> None:
    async with connect({"one": raw(), "two": raw()}) as emceepee:
        await emceepee.connected("one", "two")
    assert logged(emceepee, "registry_shutdown_start", "registry_shutdown_complete") == [
        {
            "event": "registry_shutdown_start",
            "level": "info",
            "session_count": 1,
            "server_count": 2,
        },
        {"event": "registry_shutdown_complete", "level": "info"},
    ]
