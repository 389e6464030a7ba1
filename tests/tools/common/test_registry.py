"""The list of our tools, and how their arguments are checked."""

from __future__ import annotations

import json
from typing import Any

from jsonschema import Draft202012Validator

from emceepee_client import Open, refusal
from fake_backends import raw
from like import Like

NAMES = [
    *("add_server", "remove_server", "reconnect_server", "list_servers", "get_server_status"),
    *("list_tools", "codemode_search", "execute_tool", "call_read", "read_result"),
    *("list_resources", "list_resource_templates", "read_resource"),
    *("subscribe_resource", "unsubscribe_resource"),
    *("list_prompts", "get_prompt", "complete"),
    *("get_notifications", "get_logs", "set_log_level", "get_roots", "set_roots"),
    *("get_sampling_requests", "respond_to_sampling", "cancel_sampling_request"),
    *("get_elicitations", "respond_to_elicitation", "cancel_elicitation_request"),
    *("list_tasks", "get_task", "get_task_result", "cancel_task"),
    "await_activity",
    *("set_timer", "list_timers", "get_timer", "delete_timer"),
    "codemode_execute",
]

BUDGET = 15_000
"""Bytes: what every model pays for us in every conversation."""


async def test_the_list_is_the_same_for_everyone(connect_as_either: Open) -> None:
    async with connect_as_either({"raw": raw("--tools", 300)}) as emceepee:
        first = await emceepee.request("tools/list")
        await emceepee.connected("raw")
        assert await emceepee.request("tools/list") == first
        tools = first["tools"]
        assert [tool["name"] for tool in tools] == NAMES
        assert len(json.dumps(tools, separators=(",", ":"), ensure_ascii=False)) <= BUDGET
        if emceepee.era == "modern":
            assert first["cacheScope"] == "private"
            assert first["ttlMs"] > 0
        typed = await emceepee.client.list_tools()
        assert [tool.name for tool in typed.tools] == NAMES


async def test_every_tool_is_described_annotated_and_strict(connect: Open) -> None:
    async with connect() as emceepee:
        for tool in (await emceepee.request("tools/list"))["tools"]:
            assert tool.keys() - {"_meta"} == {
                *("name", "description", "inputSchema", "annotations"),
            }
            assert tool["description"].endswith(".")
            assert tool["annotations"]
            assert tool["annotations"].keys() <= {
                *("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"),
            }
            schema = tool["inputSchema"]
            Draft202012Validator.check_schema(schema)
            assert schema["type"] == "object"
            # Of others than these it says nothing: they are taken, have no effect, and are told.
            assert schema.get("additionalProperties", False) is False
            assert set(schema.get("required", ())) <= set(schema["properties"])


async def test_annotations_say_what_a_tool_does(connect: Open) -> None:
    async with connect() as emceepee:
        tools = (await emceepee.request("tools/list"))["tools"]
        marked = {tool["name"]: tool["annotations"] for tool in tools}
        reading = {name for name, marks in marked.items() if marks.get("readOnlyHint")}
        ending = {name for name, marks in marked.items() if marks.get("destructiveHint")}
        assert {"list_servers", "list_tools", "read_resource", "get_task_result"} <= reading
        assert {"execute_tool", "add_server", "set_timer", "respond_to_sampling"}.isdisjoint(
            reading
        )
        # What is gone once it was read, is no mere reading.
        assert {"await_activity", "get_notifications", "get_logs"}.isdisjoint(reading)
        assert ending == {
            *("remove_server", "cancel_task", "delete_timer", "set_roots"),
            *("cancel_sampling_request", "cancel_elicitation_request"),
        }


async def test_every_tool_names_arguments_it_does_not_know(connect: Open) -> None:
    async with connect() as emceepee:
        tools = (await emceepee.request("tools/list"))["tools"]
        for tool in tools:
            schema = tool["inputSchema"]
            if missing := [f"{name}: missing" for name in schema.get("required", ())]:
                error = await emceepee.fails(tool["name"], no_such_argument=1)
                assert error["code"] == "TOOL_ERR_INVALID_ARGUMENTS"
                known = ", ".join(schema["properties"])
                assert error["message"] == Like(f"{tool['name']}: .*; it takes {known}")
                problems = error["details"]["problems"]
                assert problems[0] == Like('unknown key "no_such_argument".*')
                assert problems[1:] == missing
                continue
            harmless = {"timeout_ms": 0, "query": "something"}
            given = {name: harmless[name] for name in harmless.keys() & schema["properties"].keys()}
            answer = await emceepee.call(tool["name"], no_such_argument=1, **given)
            assert answer.json is not None
            assert answer.note == Like('ignored: unknown key "no_such_argument".*')


async def test_what_nobody_knows_is_left_out_and_named(connect_as_either: Open) -> None:
    async with connect_as_either({"raw": raw()}) as emceepee:
        echo: dict[str, Any] = {"server": "raw", "tool": "echo", "args": {"text": "hi"}}
        answer = await emceepee.call("execute_tool", **echo, wait_for_previous=False, timout_ms=1)
        assert answer.text == "hi"
        assert answer.note == (
            'ignored: unknown key "wait_for_previous"; '
            'unknown key "timout_ms", did you mean "timeout_ms"?'
        )
        # Also with an error of the call itself, and where news are the answer.
        answer = await emceepee.call("execute_tool", **echo | {"server": "row"}, why="so")
        assert answer.error["code"] == "TOOL_ERR_SERVER_NOT_FOUND"
        assert answer.note == 'ignored: unknown key "why"'
        answer = await emceepee.call("await_activity", timeout_ms=0, until="now")
        assert "triggers" in answer.json
        assert answer.note == 'ignored: unknown key "until"'
        # What one call is told of is told to no other.
        assert (await emceepee.call("execute_tool", **echo)).note == ""
        roots = [{"uri": "file:///a", "nam": "A"}]
        answer = await emceepee.call("set_roots", roots=roots)
        assert answer.json == {"roots": [{"uri": "file:///a"}]}
        assert answer.note == 'ignored: roots[0]: unknown key "nam", did you mean "name"?'


async def test_what_is_loosely_typed_is_taken(connect: Open) -> None:
    async with connect({"raw": raw()}) as emceepee:
        echo = {"server": "raw", "tool": "echo"}
        for loose in (
            {"timeout_ms": 5000.0, "ttl_ms": "60000"},
            {"timeout_ms": "5000.0", "ttl_ms": None},
            {"timeout_ms": None, "args": None},
            {"args": "{}"},
        ):
            assert (await emceepee.call("execute_tool", **echo | loose)).text == ""
        task = await emceepee.call("execute_tool", **echo | {"tool": "never", "timeout_ms": "0"})
        assert (await emceepee.says("get_task", task_id=task.task_id))["task"]["ttl_ms"] == 600_000
        said = await emceepee.says("list_tasks", include_completed="true", status=None, server=None)
        assert len(said["tasks"]) == 1
        timer = (await emceepee.says("set_timer", duration_ms="9000", message="m", interval=None))[
            "timer"
        ]
        assert (timer["duration_ms"], timer["interval"]) == (9000, False)
        assert (await emceepee.says("get_logs", sources=None, limit=5.0, level=None))["logs"] == []
        error = await emceepee.fails("execute_tool", **echo, timeout_ms=0.5)
        assert "timeout_ms: expected an integer, got 0.5" in error["message"]
        error = await emceepee.fails("execute_tool", server="raw", tool=None)
        assert "tool: expected a string, got null" in error["message"]


async def test_an_unknown_tool_of_ours_is_a_protocol_error(connect_as_either: Open) -> None:
    async with connect_as_either() as emceepee:
        error = await refusal(emceepee, "tools/call", {"name": "list_server", "arguments": {}})
        assert error["code"] == -32602
        assert error["message"] == Like("Unknown tool: list_server.*list_servers.*")
        for params in ({}, {"name": 7}, {"name": "list_servers", "arguments": [1]}):
            error = await refusal(emceepee, "tools/call", params)
            assert error["code"] == -32602
        none = await emceepee.request("tools/call", {"name": "list_servers"})
        assert none["isError"] is False
        assert (await emceepee.call("list_servers")).json == {"servers": []}


async def test_the_sdks_own_models_take_what_tools_answer(connect_as_either: Open) -> None:
    async with connect_as_either({"raw": raw()}) as emceepee:
        result = await emceepee.client.call_tool("list_servers", {})
        assert not result.is_error
        failed = await emceepee.client.call_tool("get_task", {"task_id": "none"})
        assert failed.is_error
        arguments = {"server": "raw", "tool": "echo", "args": {"text": "typed"}}
        echoed = await emceepee.client.call_tool("execute_tool", arguments)
        assert echoed.content[0].model_dump()["text"] == "typed"
