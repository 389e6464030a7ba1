"""Looking at servers, removing and reconnecting them."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from emceepee_client import Emceepee, Open, is_running
from fake_backends import HERE, Journal, demo, raw, until
from like import FOOTPRINT, TIMESTAMP, ULID, Between, Like

TARGET = f"{sys.executable} {HERE / 'raw_server.py'}"
CAPABILITIES = {
    "tools": {"listChanged": True},
    "resources": {"subscribe": True, "listChanged": True},
    "prompts": {"listChanged": True},
    "logging": {},
    "completions": {},
    "experimental": {"vendor/thing": {"x": 1}},
}
SERVER_INFO = {"name": "raw", "version": "0", "title": "Raw server", "x-vendor": 1}
NO_RESTART = {"restart": {"enabled": False}}


WELL = {"consecutive_failures": 0, "checked_at": TIMESTAMP}


def described(name: str, status: str, **more: Any) -> dict[str, Any]:
    plain = {
        "name": name,
        "transport": "stdio",
        "target": TARGET,
        "status": status,
        "health": {"consecutive_failures": 0},
        "has_instructions": False,
        "working_tasks": 0,
        "pending_requests": 0,
    }
    return plain | more


def connected(name: str, **more: Any) -> dict[str, Any]:
    said = {
        "health": WELL,
        "connected_at": TIMESTAMP,
        "protocol_version": "2025-11-25",
        "server_info": SERVER_INFO,
        "capabilities": CAPABILITIES,
        "has_instructions": True,
    }
    return described(name, "connected", **said) | more


async def listed(emceepee: Emceepee) -> dict[str, Any]:
    servers = (await emceepee.says("list_servers", detail="full"))["servers"]
    return {server["name"]: server for server in servers}


async def test_servers_are_listed_with_everything_known_of_them(connect_as_either: Open) -> None:
    async with connect_as_either({"raw": raw(), "new": raw("--discover", "modern")}) as emceepee:
        await emceepee.connected("raw", "new")
        said = await emceepee.says("list_servers", detail="full")
        assert list(said) == ["servers"]
        flags = {"target": f"{TARGET} --discover modern", "protocol_version": "2026-07-28"}
        assert said["servers"] == [connected("raw"), connected("new", **flags)]


async def test_a_list_of_servers_is_short_and_says_what_they_are_for(
    connect_as_either: Open,
) -> None:
    servers = {
        "raw": raw(),
        "told": raw() | {"description": " What  it\nis for. "},
        "off": raw() | {"disabled": True, "description": "Later."},
        "gone": {"command": "no-such-program"},
    }
    async with connect_as_either(servers) as emceepee:
        await emceepee.connected("raw", "told")
        await emceepee.start_task("raw", "never")
        raw_, told, off, gone = (await emceepee.says("list_servers"))["servers"]
        assert raw_ == {
            "name": "raw",
            "description": "Raw server",
            "status": "connected",
            "working_tasks": 1,
        }
        assert told == {"name": "told", "description": "What it is for.", "status": "connected"}
        assert off == {"name": "off", "description": "Later.", "status": "disabled"}
        assert gone == {"name": "gone", "status": "error", "last_error": Like(".*not found.*")}
        whole = (await listed(emceepee))["told"]
        assert whole["description"] == " What  it\nis for. "
        said = await emceepee.says("add_server", name="new", description="New.", **raw())
        assert said["status"] == "connected"
        assert (await emceepee.says("list_servers"))["servers"][-1]["description"] == "New."


async def test_a_server_without_its_variables_is_listed_with_the_reason(connect: Open) -> None:
    lacking = raw() | {"env": {"TOKEN": "${NOT_SET_ANYWHERE}"}}
    async with connect({"lacking": lacking, "raw": raw()}) as emceepee:
        assert (await emceepee.execute("raw", "echo", {"text": "here"})).texts == ["here"]
        said = (await listed(emceepee))["lacking"]
        why = "disabled: environment variable NOT_SET_ANYWHERE is not set (env.TOKEN)"
        assert (said["status"], said["last_error"]) == ("disabled", why)
        error = await emceepee.fails("execute_tool", server="lacking", tool="echo")
        assert error["code"] == "TOOL_ERR_CONNECT_FAILED"
        assert why in error["message"]


async def test_servers_that_are_not_connected_say_why_and_what_is_next(connect: Open) -> None:
    slowly = {"restart": {"base_delay_ms": 3_600_000, "max_delay_ms": 3_600_000}}
    servers = {
        "off": raw() | {"disabled": True},
        "lazy": raw() | {"start": "lazy"},
        "hanging": raw("--silent"),
        "dying": raw("--exit-at-once", 3) | slowly,
        "missing": {"command": "no-such-program"},
    }
    async with connect(servers) as emceepee:
        # A call to a server fails when its try does.
        for name in ("dying", "missing"):
            error = await emceepee.fails("list_resources", server=name)
            assert error["code"] == "TOOL_ERR_CONNECT_FAILED"
        found = await listed(emceepee)
    assert found["off"] == described("off", "disabled")
    assert found["lazy"] == described("lazy", "not_connected")
    assert found["hanging"] == described("hanging", "connecting", target=f"{TARGET} --silent")
    why = "process exited (code 3) before it answered; it said: raw: cannot start, the .* missing"
    assert found["dying"] == described(
        "dying",
        "reconnecting",
        target=f"{TARGET} --exit-at-once 3",
        last_error=Like(why.replace("(", r"\(").replace(")", r"\)")),
        reconnect_attempt=Between(1),
        next_retry_ms=Between(1, 4_000_000),
    )
    assert found["missing"] == described(
        "missing",
        "error",
        target="no-such-program",
        last_error=Like(".*'no-such-program'.* PATH.*"),
    )


async def test_a_servers_status_tells_what_it_is_busy_with(connect: Open) -> None:
    async with connect({"raw": raw()}, context="off") as emceepee:
        pid = await emceepee.pid("raw")
        task = await emceepee.start_task("raw", "never")
        asking = await emceepee.start_task("raw", "two_questions")
        # On pipes nobody knows whose question it is: one that comes now would be of the next call.
        await emceepee.event("sampling_request")
        await emceepee.execute("raw", "stderr", {"line": "said", "n": 2})
        status = await emceepee.status("raw")
        assert list(status) == [
            *("server", "instructions", "tasks", "elicitations", "sampling_requests"),
            *("calls_in_flight", "recent_events", "process", "told", "stderr_tail"),
        ]
        assert status["server"] == connected("raw", working_tasks=2, pending_requests=2)
        assert status["instructions"] == "Raw instructions."
        assert status["tasks"] == [
            {"taskId": task, "toolName": "never", "status": "working"},
            {"taskId": asking, "toolName": "two_questions", "status": "working"},
        ]
        (form,) = status["elicitations"]
        assert form == {
            "requestId": ULID,
            "server": "raw",
            "message": "name?",
            "mode": "form",
            "requestedSchema": {
                "type": "object",
                "properties": {"name": {"type": "string"}},
                "required": ["name"],
            },
        }
        assert status["sampling_requests"] == [{"requestId": ULID, "server": "raw"}]
        assert status["calls_in_flight"] == [
            {"tool": "never", "started_at": TIMESTAMP, "waiting_on": "elicitation"},
            {"tool": "two_questions", "started_at": TIMESTAMP, "waiting_on": "elicitation"},
        ]
        assert status["process"] == {"pid": pid, "started_at": TIMESTAMP, **FOOTPRINT}
        assert status["stderr_tail"] == ["said 0", "said 1"]
        recent = [event["type"] for event in status["recent_events"]]
        assert sorted(recent) == [
            *("elicitation_request", "sampling_request"),
            *("task_created", "task_created"),
        ]


async def test_looking_at_a_status_takes_nothing_away(connect: Open) -> None:
    async with connect({"raw": raw()}, context="off") as emceepee:
        await emceepee.execute("raw", "stderr", {"n": 1})
        await emceepee.execute("raw", "notify_many", {"n": 1, "k": 0})
        first = await emceepee.status("raw")
        again = await emceepee.status("raw")
        # Memory is what it is at each look.
        assert again["process"].pop("resident_bytes") > 0 < first["process"].pop("resident_bytes")
        assert again == first
        (group,) = (await emceepee.says("await_activity"))["events"]
        assert group["events"] == first["recent_events"] != []
        assert len((await emceepee.says("get_logs"))["logs"]) == 1


async def test_what_calls_wait_for_is_told(connect: Open) -> None:
    async with connect({"hanging": raw("--silent"), "raw": raw()}) as emceepee:
        await emceepee.start_task("hanging", "echo")
        await emceepee.start_task("raw", "never")
        await emceepee.connected("raw")
        await emceepee.execute("raw", "echo")
        for server, tool, what in (
            ("hanging", "echo", "connection"),
            ("raw", "never", "answer"),
        ):
            (call,) = (await emceepee.status(server))["calls_in_flight"]
            assert call == {"tool": tool, "started_at": TIMESTAMP, "waiting_on": what}
        await emceepee.start_task("raw", "sample_question")
        await emceepee.event("sampling_request")
        calls = (await emceepee.status("raw"))["calls_in_flight"]
        assert [call["waiting_on"] for call in calls] == ["sampling", "sampling"]


async def test_a_status_remembers_how_the_process_ended(connect: Open) -> None:
    async with connect({"raw": raw() | NO_RESTART, "shot": raw() | NO_RESTART}) as emceepee:
        await emceepee.connected("raw", "shot")
        pid, shot = await emceepee.pid("raw"), await emceepee.pid("shot")
        await emceepee.fails("execute_tool", server="raw", tool="exit", args={"code": 9})
        status = await emceepee.status("raw")
        assert status["process"] == {"pid": pid, "started_at": TIMESTAMP, "exit_code": 9}
        assert status["stderr_tail"] == ["leaving in the middle of a call"]
        assert status["server"] == described(
            "raw", "error", last_error="process exited with code 9", health=WELL
        )
        assert status.keys().isdisjoint({"instructions"})
        kill = {"command": "kill", "args": ["-9", str(shot)]}
        await emceepee.fails("add_server", name="kill", **kill)
        await emceepee.event("process_crashed", name="shot")
        process = (await emceepee.status("shot"))["process"]
        assert process == {"pid": shot, "started_at": TIMESTAMP, "signal": "SIGKILL"}


async def test_a_removal_is_told_in_order_and_leaves_nothing(connect: Open) -> None:
    async with connect({"raw": raw(), "other": raw()}) as emceepee:
        await emceepee.connected("raw", "other")
        pid, other = await emceepee.pid("raw"), await emceepee.pid("other")
        answer = await emceepee.call("remove_server", name="raw")
        assert answer.json == {"removed": "raw"}
        assert [(event["type"], event["server"], event["data"]) for event in answer.events] == [
            # A child that sees the end of its input may say why it ends, or just end.
            ("process_stopped", "raw", {"name": "raw", "pid": pid, "exitCode": 0}),
            (
                "server_disconnected",
                "raw",
                {"name": "raw", "reason": "removed", "wasIntentional": True},
            ),
            ("server_removed", "raw", {"name": "raw", "target": TARGET, "removedBy": "tests"}),
        ]
        assert not is_running(pid)
        assert is_running(other)
        assert list(await listed(emceepee)) == ["other"]
        error = await emceepee.fails("remove_server", name="raw")
        assert error["code"] == "TOOL_ERR_SERVER_NOT_FOUND"


async def test_a_removal_fails_tasks_and_withdraws_questions(connect: Open) -> None:
    async with connect({"raw": raw()}) as emceepee:
        done = await emceepee.start_task("raw", "echo", {"text": "kept"})
        await emceepee.task_over(done)
        task = await emceepee.start_task("raw", "string_id_question")
        question = await emceepee.question()
        answer = await emceepee.call("remove_server", name="raw")
        expired = await emceepee.event("elicitation_expired")
        assert expired["data"] == {
            "requestId": question["requestId"],
            "reason": "server_removed",
        }
        assert answer.pending == {}
        assert (await emceepee.task_over(task))["status"] == "failed"
        error = await emceepee.fails("get_task_result", task_id=task)
        assert error["code"] == "TOOL_ERR_SERVER_DISCONNECTED"
        assert (await emceepee.call("get_task_result", task_id=done)).text == "kept"


async def test_a_server_that_hangs_can_be_removed(connect: Open) -> None:
    async with connect({"hanging": raw("--silent")}) as emceepee:
        pid = await emceepee.pid("hanging")
        task = await emceepee.start_task("hanging", "echo")
        assert await emceepee.says("remove_server", name="hanging") == {"removed": "hanging"}
        assert not is_running(pid)
        assert (await emceepee.task_over(task))["status"] == "failed"
        assert await listed(emceepee) == {}


@pytest.mark.parametrize("flags", [(), ("--discover", "modern")])
async def test_a_server_is_reconnected(
    connect: Open, flags: tuple[str, ...], journal: Journal
) -> None:
    async with connect({"raw": raw(*flags, *journal.flags)}) as emceepee:
        old = await emceepee.pid("raw")
        await emceepee.connected("raw")
        task = await emceepee.start_task("raw", "never")
        await journal.wait_for_marker("never started")
        said = await emceepee.says("reconnect_server", name="raw")
        assert said == {"server": "raw", "status": "connected"}
        new = await emceepee.pid("raw")
        assert new != old
        assert not is_running(old)
        assert (await emceepee.task_over(task))["status"] == "failed"
        assert (await emceepee.execute("raw", "echo", {"text": "again"})).text == "again"
        lost = await emceepee.event("server_disconnected")
        assert lost["data"] == {"name": "raw", "reason": "reconnect", "wasIntentional": True}


async def test_a_server_that_has_given_up_is_reconnected(connect: Open) -> None:
    async with connect({"raw": raw() | NO_RESTART}) as emceepee:
        await emceepee.fails("execute_tool", server="raw", tool="exit")
        assert (await listed(emceepee))["raw"]["status"] == "error"
        said = await emceepee.says("reconnect_server", name="raw")
        assert said == {"server": "raw", "status": "connected"}


async def test_reconnecting_to_what_no_longer_starts_is_an_error(
    connect: Open, journal: Journal
) -> None:
    servers = {"raw": raw(*journal.flags) | {"cwd": str(journal.path.parent / "folder")}}
    (journal.path.parent / "folder").mkdir()
    async with connect(servers) as emceepee:
        await emceepee.connected("raw")
        await until((journal.path.parent / "folder").exists)
        (journal.path.parent / "folder").rmdir()
        error = await emceepee.fails("reconnect_server", name="raw")
        assert error["code"] == "TOOL_ERR_CONNECT_FAILED"
        assert "folder" in error["message"]


async def test_tools_for_one_server_want_one_that_exists(connect: Open) -> None:
    wanted: dict[str, dict[str, Any]] = {
        "remove_server": {},
        "reconnect_server": {},
        "get_server_status": {},
        "execute_tool": {"tool": "echo"},
        "list_resources": {},
        "list_resource_templates": {},
        "read_resource": {"uri": "raw://text"},
        "subscribe_resource": {"uri": "raw://text"},
        "unsubscribe_resource": {"uri": "raw://text"},
        "list_prompts": {},
        "get_prompt": {"name": "plain"},
        "complete": {"ref": {"prompt": "greet"}, "argument": {"name": "who", "value": ""}},
        "set_log_level": {"level": "info"},
    }
    async with connect({"raw": raw() | {"start": "lazy"}, "demo": demo() | {"start": "lazy"}}) as e:
        for tool, arguments in wanted.items():
            key = "name" if tool in {"remove_server", "reconnect_server"} else "server"
            assert await e.fails(tool, **{key: "ra", **arguments}) == {
                "code": "TOOL_ERR_SERVER_NOT_FOUND",
                "message": Like("no server 'ra'; there are: demo, raw[.;] .*"),
            }, tool


async def test_we_are_told_apart_from_servers(connect: Open) -> None:
    """Our own name stands wherever servers are listed."""
    wanted: dict[str, dict[str, Any]] = {
        "remove_server": {"name": "emceepee"},
        "reconnect_server": {"name": "emceepee"},
        "get_server_status": {"server": "emceepee"},
        "execute_tool": {"server": "emceepee", "tool": "list_servers"},
        "set_log_level": {"server": "emceepee", "level": "info"},
    }
    async with connect() as e:
        for tool, arguments in wanted.items():
            assert await e.fails(tool, **arguments) == {
                "code": "TOOL_ERR_SERVER_NOT_FOUND",
                "message": Like("server 'emceepee' is this proxy itself: .* list_resources .*"),
            }, tool
        assert "resources" in await e.says("list_resources", server="emceepee")
