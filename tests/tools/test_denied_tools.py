"""Tools of a server that nobody may call, whatever way is tried."""

from __future__ import annotations

from typing import Any

from emceepee_client import Open
from fake_backends import Journal, raw

DENIED = {"denied_tools": ["big", "uni*", "greet", "raw://text"]}


async def test_a_denied_tool_is_as_if_missing(
    connect_as_either: Open, journal: Journal, its_era: tuple[str, ...]
) -> None:
    async with connect_as_either({"raw": raw(*its_era, *journal.flags) | DENIED}) as emceepee:
        (of_raw,) = (await emceepee.says("list_tools"))["tools"]
        names = [tool["name"] for tool in of_raw["tools"]]
        assert "echo" in names
        assert not [name for name in names if name == "big" or name.startswith("uni")]
        assert (await emceepee.says("list_tools", query="big", tool="big"))["tools"] == []
        assert (await emceepee.execute("raw", "echo", {"text": "yes"})).text == "yes"
        missing = await emceepee.fails("execute_tool", server="raw", tool="gib")
        for name in ("big", "unicode", "uniform", "uni" + "x" * 490):
            for how in ({}, {"timeout_ms": 0}):
                hidden = await emceepee.fails("execute_tool", server="raw", tool=name, **how)
                assert hidden["code"] == missing["code"] == "TOOL_ERR_NOT_FOUND"
                assert f"has no tool {name!r}" in hidden["message"]
        called = [call["params"]["name"] for call in journal.of("tools/call")]
        assert set(called) <= {"echo", "gib"}


async def test_it_is_not_reached_by_what_is_called_the_same(
    connect: Open, journal: Journal
) -> None:
    servers = {"raw": raw(*journal.flags) | DENIED, "all": raw() | {"denied_tools": ["*"]}}
    async with connect(servers) as emceepee:
        prompts = (await emceepee.says("list_prompts", server="raw"))["prompts"]
        assert "greet" not in [prompt["name"] for prompt in prompts]
        asked: list[tuple[str, dict[str, Any]]] = [
            ("get_prompt", {"name": "greet"}),
            ("complete", {"ref": {"prompt": "greet"}, "argument": {"name": "who", "value": ""}}),
            ("read_resource", {"uri": "raw://text"}),
            ("read_resource", {"uri": "tool://x/big"}),
            ("subscribe_resource", {"uri": "raw://text"}),
        ]
        for tool, arguments in asked:
            error = await emceepee.fails(tool, server="raw", **arguments)
            assert error["code"] == "TOOL_ERR_NOT_FOUND", tool
        assert not [
            e for e in journal.entries() if e.get("method") in ("prompts/get", "resources/read")
        ]
        uris = [
            resource["uri"]
            for resource in (await emceepee.says("list_resources", server="raw"))["resources"]
        ]
        assert uris
        assert "raw://text" not in uris
        # All tools may be denied, and the rest be meant to be there.
        assert (await emceepee.says("list_tools", server="all"))["tools"] == []
        assert (await emceepee.says("list_prompts", server="all"))["prompts"]
        assert (await emceepee.call("get_prompt", server="all", name="greet")).json


async def test_it_may_be_denied_though_it_is_allowed(connect: Open) -> None:
    async with connect() as emceepee:
        server = raw() | {"allowed_tools": ["echo", "b*"], "denied_tools": ["big"]}
        said = await emceepee.says("add_server", name="new", **server)
        assert "echo" in said["tools"]
        assert "big" not in said["tools"]


async def test_other_programs_spellings_deny(connect: Open) -> None:
    servers = {
        "cline": raw() | {"disabledTools": ["echo"]},
        "gemini": raw() | {"excludeTools": ["echo"]},
        "codex": raw() | {"disabled_tools": ["echo"]},
    }
    async with connect(servers) as emceepee:
        assert (await emceepee.says("list_tools", tool="^echo$"))["tools"] == []
        for name in servers:
            error = await emceepee.fails("execute_tool", server=name, tool="echo")
            assert error["code"] == "TOOL_ERR_NOT_FOUND"
