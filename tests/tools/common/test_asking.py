"""Servers that cannot be reached, and what is said about it."""

from __future__ import annotations

from typing import Any

import pytest

from emceepee_client import Open, is_running
from fake_backends import Journal, raw
from like import Between, Like

NO_RESTART = {"restart": {"enabled": False}}

UNREACHABLE: dict[str, tuple[dict[str, Any], str, dict[str, Any]]] = {
    "missing command": (
        {"command": "no-such-program", "args": ["--port", "1"]},
        r".*'no-such-program'.* PATH.*/.*",
        {"command": "no-such-program", "path": Like(".*/.*")},
    ),
    "exits at once": (
        raw("--exit-at-once", 3) | NO_RESTART,
        r"server 'bad': process exited \(code 3\) before .*said: raw: .*; correct it, then call .*",
        {"code": 3, "stderr": ["raw: cannot start, the configuration is missing"]},
    ),
    "never answers": (
        raw("--silent") | NO_RESTART | {"connect_timeout_ms": 400},
        r"server 'bad': no answer within 400 ms; correct it, then call reconnect_server",
        {},
    ),
    "prints garbage": (
        raw("--garbage") | NO_RESTART | {"connect_timeout_ms": 400},
        r"server 'bad': no answer within 400 ms; .*",
        {},
    ),
    "speaks another version": (
        raw("--version", "1999-01-01") | NO_RESTART,
        r"server 'bad': .*'1999-01-01'; we speak .*2025-11-25.*",
        {},
    ),
    "is tried again": (
        raw("--exit-at-once", 3),
        r"server 'bad': process exited .*; next try in \d+\.\d s, await_activity tells when .*",
        {
            "code": 3,
            "stderr": ["raw: cannot start, the configuration is missing"],
            "next_retry_ms": Between(0, 60_000),
        },
    ),
}


@pytest.mark.parametrize("fault", UNREACHABLE)
async def test_what_is_wrong_with_a_server_is_said(connect: Open, fault: str) -> None:
    server, message, details = UNREACHABLE[fault]
    async with connect({"bad": server, "good": raw()}) as emceepee:
        error = await emceepee.fails("execute_tool", server="bad", tool="echo")
        assert error["code"] == "TOOL_ERR_CONNECT_FAILED"
        assert error["message"] == Like(message)
        assert error.get("details", {}) == details
        assert (await emceepee.execute("good", "echo", {"text": "fine"})).text == "fine"


async def test_noise_in_front_of_the_protocol_is_kept(connect: Open) -> None:
    servers = {"bad": raw("--garbage") | NO_RESTART | {"connect_timeout_ms": 400}}
    async with connect(servers) as emceepee:
        await emceepee.fails("execute_tool", server="bad", tool="echo")
        logs = (await emceepee.says("get_logs", server="bad"))["logs"]
        assert [(entry["source"], entry["data"]) for entry in logs] == [
            ("stdout", "Welcome to the raw server!"),
            ("stdout", "listening on stdio..."),
            ("stdout", "{not json"),
        ]


async def test_a_promoted_call_fails_with_the_try_it_waits_for(connect: Open) -> None:
    servers = {"bad": raw("--silent") | NO_RESTART | {"connect_timeout_ms": 600}}
    async with connect(servers) as emceepee:
        task_id = await emceepee.start_task("bad", "echo")
        pid = await emceepee.pid("bad")
        failed = await emceepee.event("task_failed", taskId=task_id)
        assert "no answer within 600 ms" in failed["data"]["error"]
        error = await emceepee.fails("get_task_result", task_id=task_id)
        assert error["code"] == "TOOL_ERR_CONNECT_FAILED"
        assert not is_running(pid)


async def test_a_call_asks_for_the_next_try_now(connect: Open, journal: Journal) -> None:
    """Whoever waits for a pause to pass may as well call."""
    retry = {"restart": {"base_delay_ms": 3_600_000, "max_delay_ms": 3_600_000}}
    folder = journal.path.parent / "folder"
    async with connect({"raw": raw() | retry | {"cwd": str(folder)}}) as emceepee:
        error = await emceepee.fails("execute_tool", server="raw", tool="echo")
        assert error["code"] == "TOOL_ERR_CONNECT_FAILED"
        folder.mkdir()
        assert (await emceepee.execute("raw", "echo", {"text": "now"})).text == "now"


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("list_resources", {}),
        ("list_prompts", {}),
        ("read_resource", {"uri": "raw://text"}),
        ("get_prompt", {"name": "plain"}),
        ("set_log_level", {"level": "info"}),
        ("subscribe_resource", {"uri": "raw://text"}),
        ("reconnect_server", {}),
    ],
)
async def test_every_tool_for_one_server_says_that_it_cannot_be_reached(
    connect: Open, tool: str, arguments: dict[str, Any]
) -> None:
    async with connect({"bad": raw("--exit-at-once", 3) | NO_RESTART}) as emceepee:
        key = "name" if tool == "reconnect_server" else "server"
        error = await emceepee.fails(tool, **{key: "bad"}, **arguments)
        assert error["code"] == "TOOL_ERR_CONNECT_FAILED"
        assert error["details"]["code"] == 3


async def test_a_request_that_is_no_tool_call_ends_with_its_patience(connect: Open) -> None:
    """Nothing else could be promoted."""
    settings = {"limits": {"execute_timeout_ms": 400}}
    async with connect({"hanging": raw("--silent")}, **settings) as emceepee:
        error = await emceepee.fails("read_resource", server="hanging", uri="raw://text")
        assert error == {
            "code": "TOOL_ERR_TIMEOUT",
            "message": Like(r"server 'hanging' did not answer .* within 400 ms .*"),
        }


async def test_whose_an_entry_is_and_whether_it_is_old_is_ours_to_say(connect: Open) -> None:
    lists = {
        "list_tools": "tools",
        "list_resources": "resources",
        "list_resource_templates": "resource_templates",
        "list_prompts": "prompts",
    }

    async def labels(*servers: str) -> set[tuple[object, object]]:
        found = set()
        for tool, key in lists.items():
            for server in servers:
                said = await emceepee.says(tool, **({"server": server} if server else {}))
                entries = [e for e in said[key] if e["server"] != "emceepee"]
                assert entries
                found |= {(entry["server"], entry.get("stale")) for entry in entries}
        return found

    liar = raw("--claim", "innocent") | NO_RESTART
    async with connect({"liar": liar}) as emceepee:
        assert await labels("liar", "") == {("liar", None)}
        said = await emceepee.says("list_tools", detail="summary")
        assert {group["server"] for group in said["tools"]} == {"liar"}
        assert not [tool for group in said["tools"] for tool in group["tools"] if "server" in tool]
        await emceepee.fails("execute_tool", server="liar", tool="exit")
        assert await labels("") == {("liar", True)}
