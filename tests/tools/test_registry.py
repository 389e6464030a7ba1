"""The list of our tools, and how their arguments are checked."""

from __future__ import annotations

import json

from jsonschema import Draft202012Validator

from emceepee_client import Open, refusal
from fake_backends import raw
from like import Like

NAMES = [
    *("add_server", "remove_server", "reconnect_server", "list_servers", "get_server_status"),
    *("list_tools", "execute_tool"),
    *("list_resources", "list_resource_templates", "read_resource"),
    *("subscribe_resource", "unsubscribe_resource"),
    *("list_prompts", "get_prompt", "complete"),
    *("get_notifications", "get_logs", "set_log_level", "get_roots", "set_roots"),
    *("get_sampling_requests", "respond_to_sampling", "cancel_sampling_request"),
    *("get_elicitations", "respond_to_elicitation", "cancel_elicitation_request"),
    *("list_tasks", "get_task", "get_task_result", "cancel_task"),
    "await_activity",
    *("set_timer", "list_timers", "get_timer", "delete_timer"),
]

BUDGET = 14_200
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
            assert tool.keys() == {"name", "description", "inputSchema", "annotations"}
            assert tool["description"].endswith(".")
            assert tool["annotations"]
            assert tool["annotations"].keys() <= {
                *("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"),
            }
            schema = tool["inputSchema"]
            Draft202012Validator.check_schema(schema)
            assert schema["type"] == "object"
            assert schema["additionalProperties"] is False
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
            *("remove_server", "cancel_task", "delete_timer"),
            *("cancel_sampling_request", "cancel_elicitation_request"),
        }


async def test_every_tool_names_arguments_it_does_not_know(connect: Open) -> None:
    async with connect() as emceepee:
        tools = (await emceepee.request("tools/list"))["tools"]
        for tool in tools:
            error = await emceepee.fails(tool["name"], no_such_argument=1)
            assert error["code"] == "TOOL_ERR_INVALID_ARGUMENTS"
            assert error["message"] == Like(f"{tool['name']}: .*")
            problems = error["details"]["problems"]
            assert problems[0] == Like('unknown key "no_such_argument".*')
            missing = [f"{name}: missing" for name in tool["inputSchema"].get("required", ())]
            assert problems[1:] == missing


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
