"""Programs that are killed, whatever they are doing."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest
import trio

from emceepee_client import Emceepee, Json, Open, is_running
from fake_backends import Journal, raw
from like import Like
from telling import COMEBACK, data, drain, kinds, life

SOON: dict[str, Any] = {"restart": {"base_delay_ms": 10, "max_delay_ms": 20}}
LATER: dict[str, Any] = {"restart": {"base_delay_ms": 3_600_000, "max_delay_ms": 3_600_000}}
"""Whoever is told of a crash before the next try is told at once: a test does not last an hour."""

LOST = {
    "code": "TOOL_ERR_SERVER_DISCONNECTED",
    "message": Like("server 'raw' was lost before it answered tools/call; .*"),
    "details": {"may_have_run": True},
}


async def kill(emceepee: Emceepee, server: str = "raw") -> int:
    """Its pid."""
    await emceepee.connected(server)
    pid = await emceepee.pid(server)
    os.kill(pid, signal.SIGKILL)
    return pid


async def back(emceepee: Emceepee) -> Any:
    return (await emceepee.event("server_reconnected", name="raw"))["data"]


async def test_who_hears_of_it_when_it_is_over_hears_of_one_incident(connect: Open) -> None:
    async with connect({"raw": raw() | SOON}, context="off") as emceepee:
        await emceepee.connected("raw")
        await emceepee.execute("raw", "notify_many", {"n": 1, "k": 0})
        before = (await emceepee.event("notification"))["id"]
        await kill(emceepee)
        recent: list[Json] = []
        while not recent or recent[-1]["type"] != "server_reconnected":
            recent = (await emceepee.status("raw"))["recent_events"]
        parts = [event for event in recent if event["id"] > before]
        assert [part["type"] for part in parts] == COMEBACK
        said = await emceepee.says("await_activity", timeout_ms=0)
        ((told,),) = [group["events"] for group in said["events"]]
        assert told["data"].pop("incident") == {
            "firstEventId": parts[0]["id"],
            "since": parts[0]["createdAt"],
            "reason": "process was killed by SIGKILL",
            "events": dict.fromkeys(COMEBACK[:-1], 1),
        }
        assert told == parts[-1]
        assert said["lastEventId"] == told["id"]
        # Whoever asks again goes on after any of them.
        for n, cursor in enumerate([before, *(part["id"] for part in parts[:-1])]):
            again = await emceepee.says("await_activity", timeout_ms=0, last_event_id=cursor)
            assert again["events"] == [{"server": "raw", "events": parts[n:]}]
        emceepee.events.clear()  # which are told twice, as asked for


async def test_one_that_does_nothing(connect: Open) -> None:
    async with connect({"raw": raw() | SOON}) as emceepee:
        pid = await kill(emceepee)
        told = await back(emceepee)
        assert (await emceepee.execute("raw", "echo", {"text": "back"})).text == "back"
        new = (await emceepee.status("raw"))["process"]["pid"]
        assert new != pid
        assert not is_running(pid)
        await drain(emceepee)
        assert kinds(emceepee, "raw") == COMEBACK
        why = {"name": "raw", "reason": "process was killed by SIGKILL", "wasIntentional": False}
        assert data(emceepee, "raw", "server_disconnected") == [why]
        (planned,) = data(emceepee, "raw", "restarting")
        assert 0 <= planned.pop("nextRetryMs") <= 11
        assert planned == {"name": "raw", "attempt": 1, "pid": pid, "signal": "SIGKILL"}
        crash = {"name": "raw", "pid": pid, "signal": "SIGKILL"}
        assert data(emceepee, "raw", "process_crashed") == [crash]
        assert data(emceepee, "raw", "restarted") == [{"name": "raw", "pid": new, "attempt": 1}]
        assert (told["type"], told["attempts"]) == ("restart", 1)
        for what in ("Tasks", "Elicitations", "Sampling"):
            assert told[f"invalidated{what}"] == 0


async def test_one_in_the_middle_of_a_call(connect: Open, journal: Journal) -> None:
    """Who waits is told at once, and why with it."""
    async with connect({"raw": raw(*journal.flags) | LATER}) as emceepee:
        pid = await emceepee.pid("raw")
        await emceepee.connected("raw")
        answers = []

        async def call() -> None:
            answers.append(await emceepee.execute("raw", "never"))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(call)
            await journal.wait_for_marker("never started")
            os.kill(pid, signal.SIGKILL)
        (answer,) = answers
        assert answer.error == LOST
        told = [event["type"] for event in answer.events]
        assert told[:2] == ["process_crashed", "server_disconnected"]
        await emceepee.event("restarting")
        await drain(emceepee)
        assert kinds(emceepee, "raw") == COMEBACK[:3]
        server = (await emceepee.status("raw"))["server"]
        assert (server["status"], server["pending_requests"]) == ("reconnecting", 0)
        assert (await emceepee.status("raw"))["calls_in_flight"] == []
        assert len(journal.of("tools/call")) == 1


async def test_one_with_tasks_and_questions(connect: Open) -> None:
    """They fail with the reason, once each; what was finished stays, and what others ask."""
    async with connect({"raw": raw() | SOON, "other": raw()}) as emceepee:
        await emceepee.connected("raw", "other")
        finished = await emceepee.start_task("raw", "echo", {"text": "kept"})
        await emceepee.event("task_completed", taskId=finished)
        silent = await emceepee.start_task("raw", "never")
        asking = await emceepee.start_task("raw", "two_questions")
        form = (await emceepee.event("elicitation_request"))["data"]["requestId"]
        sample = (await emceepee.event("sampling_request"))["data"]["requestId"]
        await emceepee.start_task("other", "string_id_question")
        while not data(emceepee, "other", "elicitation_request"):
            await emceepee.call("await_activity")
        await kill(emceepee)
        told = await back(emceepee)
        await drain(emceepee)
        assert life(emceepee, "raw") == COMEBACK
        assert told["invalidatedTasks"] == 2
        assert told["invalidatedElicitations"] == told["invalidatedSampling"] == 1
        failed = data(emceepee, "raw", "task_failed")
        why = {"error": LOST["message"], "reason": "server_disconnected"}
        assert sorted(failed, key=lambda task: str(task["taskId"])) == [
            {"taskId": silent, "toolName": "never", **why},
            {"taskId": asking, "toolName": "two_questions", **why},
        ]
        story = kinds(emceepee, "raw")
        assert (
            story.index("process_crashed")
            < story.index("server_disconnected")
            < story.index("task_failed")
        )
        expired = {"reason": "server_disconnected"}
        forms, samples = (
            data(emceepee, "raw", f"{k}_expired") for k in ("elicitation", "sampling")
        )
        assert forms == [{"requestId": form, **expired}]
        assert samples == [{"requestId": sample, **expired}]
        # All that is told of the loss is told before the return.
        assert kinds(emceepee, "raw")[-1] == "server_reconnected"
        for task in (silent, asking):
            assert await emceepee.fails("get_task_result", task_id=task) == LOST
        late = await emceepee.fails("respond_to_elicitation", request_id=form, action="decline")
        assert (late["code"], late["details"]) == ("TOOL_ERR_NOT_FOUND", {"status": "rejected"})
        said = {"content": "Paris", "model": "m"}
        late = await emceepee.fails("respond_to_sampling", request_id=sample, **said)
        assert (late["code"], late["details"]) == ("TOOL_ERR_NOT_FOUND", {"status": "rejected"})
        answer = await emceepee.call("get_task_result", task_id=finished)
        assert answer.text == "kept"
        assert answer.pending == {}
        (left,) = (await emceepee.says("list_tasks", status="working"))["tasks"]
        assert left["server"] == "other"
        assert (await emceepee.question())["server"] == "other"


async def test_one_that_is_asked_of_in_the_modern_era(connect: Open) -> None:
    """There a question is a part of its call."""
    async with connect({"raw": raw("--discover", "modern") | SOON}) as emceepee:
        await emceepee.connected("raw")
        asking = await emceepee.start_task("raw", "string_id_question")
        question = (await emceepee.event("elicitation_request"))["data"]["requestId"]
        await kill(emceepee)
        told = await back(emceepee)
        await drain(emceepee)
        assert life(emceepee, "raw") == COMEBACK
        assert (told["invalidatedTasks"], told["invalidatedElicitations"]) == (1, 1)
        (expired,) = data(emceepee, "raw", "elicitation_expired")
        assert expired == {"requestId": question, "reason": "server_disconnected"}
        assert await emceepee.fails("get_task_result", task_id=asking) == LOST


async def test_one_before_it_has_said_hello(
    connect: Open, journal: Journal, tmp_path: Path
) -> None:
    ready = tmp_path / "ready"
    entry = raw("--start-when", ready, *journal.flags) | LATER | {"era": "handshake"}
    async with connect({"raw": entry}) as emceepee:
        answers = []

        async def call() -> None:
            answers.append(await emceepee.execute("raw", "echo"))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(call)
            pid = (await journal.wait_for(lambda entry: "started" in entry))["started"]
            os.kill(pid, signal.SIGKILL)
        (answer,) = answers
        assert answer.error["code"] == "TOOL_ERR_CONNECT_FAILED"
        assert answer.error["details"]["signal"] == "SIGKILL"
        assert "process exited (SIGKILL) before it answered" in answer.error["message"]
        ready.touch()
        assert (await emceepee.execute("raw", "echo", {"text": "now"})).text == "now"
        await drain(emceepee)
        # It was never connected, so it is not connected again.
        assert kinds(emceepee, "raw") == [
            "process_crashed",
            "restarting",
            "process_started",
            "restarted",
            "server_connected",
        ]


@pytest.mark.parametrize("era", ["handshake", "auto"])
async def test_one_that_is_killed_until_nobody_starts_it_any_more(
    connect: Open, era: str, journal: Journal
) -> None:
    """Before it has said hello, every time. Who calls starts it once more."""
    restart = {"base_delay_ms": 10, "max_delay_ms": 10, "max_attempts": 2}
    entry = raw("--silent", *journal.flags) | {"era": era, "restart": restart}
    async with connect({"raw": entry}) as emceepee:
        async with trio.open_nursery() as nursery:

            async def kill_them() -> None:
                n = 0
                while True:
                    n += 1
                    one = await journal.wait_for(lambda entry: "started" in entry, n)
                    os.kill(one["started"], signal.SIGKILL)

            nursery.start_soon(kill_them)
            failed = await emceepee.event("restart_failed")
            nursery.cancel_scope.cancel("it has failed")
        assert failed["data"]["attempt"] == 3
        assert failed["data"]["signal"] == "SIGKILL"
        assert (await emceepee.status("raw"))["server"]["status"] == "error"
        await drain(emceepee)
        crashes = [kind for kind in kinds(emceepee, "raw") if kind != "process_stopped"]
        tries = ["process_started", "process_crashed"]
        if era == "handshake":
            plans = ("restarting", "restarting", "restart_failed")
            assert crashes == [kind for plan in plans for kind in (*tries, plan)][1:]
        assert crashes.count("restarting") == 2
        assert crashes.count("restart_failed") == 1


async def test_one_that_is_killed_again_and_again_while_it_is_connected(connect: Open) -> None:
    """The last time is told; who calls starts it once more, and it is as good as ever."""
    restart = {"base_delay_ms": 10, "max_delay_ms": 10, "max_attempts": 2}
    async with connect({"raw": raw() | {"restart": restart}}) as emceepee:
        pids = []
        for times in range(3):
            while len(data(emceepee, "raw", "server_reconnected")) < times:
                await emceepee.call("await_activity")
            pids.append(await kill(emceepee))
        failed = await emceepee.event("restart_failed")
        assert failed["data"] == {"name": "raw", "attempt": 3, "pid": pids[-1], "signal": "SIGKILL"}
        assert (await emceepee.status("raw"))["server"]["status"] == "error"
        assert (await emceepee.execute("raw", "echo", {"text": "again"})).text == "again"
        await back(emceepee)
        while len(data(emceepee, "raw", "server_reconnected")) < 3:
            await emceepee.call("await_activity")
        assert kinds(emceepee, "raw") == [
            *COMEBACK,
            *COMEBACK,
            *COMEBACK[:2],
            "restart_failed",
            "process_started",
            "server_reconnected",
        ]
        assert len(set(pids)) == 3
        assert not any(map(is_running, pids))
