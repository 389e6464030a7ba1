"""Finding tools of many servers."""

from __future__ import annotations

from typing import Any

import pytest

from emceepee_client import Open
from fake_backends import Journal, demo, raw
from like import Like

NO_RESTART = {"restart": {"enabled": False}}


def names(said: dict[str, Any], server: str | None = None) -> list[str]:
    return [tool["name"] for tool in said["tools"] if server in (None, tool["server"])]


async def test_entries_are_what_the_server_said(
    connect_as_either: Open, its_era: tuple[str, ...]
) -> None:
    async with connect_as_either({"raw": raw(*its_era), "demo": demo()}) as emceepee:
        said = await emceepee.says("list_tools", tool="^(schema_mismatch|add)$")
        assert list(said) == ["tools", "detail"]
        assert said["detail"] == "full"
        first, second = said["tools"]
        assert first == {
            "server": "raw",
            "name": "schema_mismatch",
            "description": "Its outputSchema promises an integer.",
            "inputSchema": {"type": "object", "x-vendor": "schema"},
            "outputSchema": {
                "type": "object",
                "properties": {"n": {"type": "integer"}},
                "required": ["n"],
            },
            "x-vendor": {"cost": 1},
            "_meta": {"vendor/tool": "schema_mismatch"},
        }
        assert (second["server"], second["name"]) == ("demo", "add")
        assert second["annotations"]["readOnlyHint"] is True


async def test_patterns_are_searched_for(connect: Open) -> None:
    async with connect({"one": raw(), "two": raw(), "three": demo()}) as emceepee:
        assert names(await emceepee.says("list_tools", tool="^ec.o$")) == ["echo"] * 3
        said = await emceepee.says("list_tools", server="^t", tool="ech")
        assert [tool["server"] for tool in said["tools"]] == ["two", "three"]
        assert await emceepee.says("list_tools", server="nobody") == {
            "tools": [],
            "detail": "full",
        }


async def test_patterns_that_are_none_are_refused(connect: Open) -> None:
    async with connect({"raw": raw()}) as emceepee:
        await emceepee.connected("raw")
        for argument in "server", "tool":
            error = await emceepee.fails("list_tools", **{argument: "("})
            assert error == {
                "code": "TOOL_ERR_INVALID_ARGUMENTS",
                "message": Like(f"{argument}: not a regular expression: .*"),
            }
            error = await emceepee.fails("list_tools", **{argument: "x" * 201})
            assert error["code"] == "TOOL_ERR_INVALID_ARGUMENTS"
            assert "at most 200" in error["message"]
        error = await emceepee.fails("list_tools", detail="most")
        assert error["code"] == "TOOL_ERR_INVALID_ARGUMENTS"
        assert '"auto", "full", "summary"' in error["message"]


async def test_a_pattern_that_takes_for_ever_holds_nobody_up(connect: Open) -> None:
    name = "a" * 60
    servers = {name: raw() | {"start": "lazy"}}
    async with connect(servers) as emceepee:
        error = await emceepee.fails("list_tools", server="^(a|a|aa)+b$")
        assert error["code"] == "TOOL_ERR_INVALID_ARGUMENTS"
        assert "too long to match" in error["message"]


async def test_long_lists_come_as_a_summary_with_a_way_to_the_rest(connect: Open) -> None:
    async with connect({"raw": raw("--tools", 300, "--page", 7)}) as emceepee:
        said = await emceepee.says("list_tools")
        assert list(said) == ["tools", "hint", "detail"]
        assert said["detail"] == "summary"
        assert len(set(names(said))) == 300
        assert said["tools"][0] == {
            "server": "raw",
            "name": "echo",
            "description": "The text, and vendor fields wherever one can be.",
        }
        assert said["tools"][-1] == {
            "server": "raw",
            "name": "filler_0299",
            "description": "The tool filler_0299",
        }
        full = await emceepee.says("list_tools", detail="full")
        assert list(full) == ["tools", "detail"]
        assert full["detail"] == "full"
        assert names(full) == names(said)
        assert full["tools"][-1]["inputSchema"] == {"type": "object", "x-vendor": "schema"}
        few = await emceepee.says("list_tools", tool="filler_00")
        assert few["detail"] == "full"
        assert (await emceepee.says("list_tools", tool="^echo$", detail="summary"))[
            "detail"
        ] == "summary"
        assert (await emceepee.execute("raw", "filler_0299", {"text": "far"})).text == "far"


async def test_nobody_waits_long_for_a_server_that_hangs(connect: Open) -> None:
    servers = {"raw": raw(), "hanging": raw("--silent")}
    async with connect(servers, limits={"list_patience_ms": 500}) as emceepee:
        await emceepee.connected("raw")
        for tool, key in (
            ("list_tools", "tools"),
            ("list_resources", "resources"),
            ("list_resource_templates", "resource_templates"),
            ("list_prompts", "prompts"),
        ):
            said = await emceepee.says(tool)
            assert list(said)[:2] == [key, "errors"]
            assert {entry["server"] for entry in said[key]} - {"emceepee"} == {"raw"}
            assert said["errors"] == [
                {"server": "hanging", "error": Like("connecting: no answer yet after 500 ms")}
            ]
        # Whoever does not ask for it does not wait for it either.
        assert "errors" not in await emceepee.says("list_tools", server="raw")


async def test_the_lists_of_a_lost_server_are_shown_as_old(connect: Open) -> None:
    async with connect({"raw": raw() | NO_RESTART, "off": raw() | {"disabled": True}}) as emceepee:
        before = await emceepee.says("list_tools", tool="^echo$")
        await emceepee.fails("execute_tool", server="raw", tool="exit")
        said = await emceepee.says("list_tools", tool="^echo$")
        assert said["tools"] == [
            {"server": "raw", "stale": True} | {k: v for k, v in tool.items() if k != "server"}
            for tool in before["tools"]
        ]
        assert said["errors"] == [
            {"server": "raw", "error": "error: process exited with code 7"},
            {"server": "off", "error": "disabled: not connected"},
        ]


async def test_a_changed_list_is_fetched_again_and_no_other(
    connect: Open, journal: Journal, its_era: tuple[str, ...]
) -> None:
    async with connect({"raw": raw(*its_era, *journal.flags)}) as emceepee:
        for _ in range(3):
            await emceepee.says("list_tools")
        assert len(journal.of("tools/list")) == 1
        await emceepee.execute("raw", "notify_many")
        await emceepee.event("notification", method="notifications/tools/list_changed")
        await emceepee.says("list_tools")
        await emceepee.says("list_tools")
        assert len(journal.of("tools/list")) == 2


async def test_a_list_that_goes_round_in_circles_is_an_error(connect: Open) -> None:
    async with connect({"liar": raw("--same-cursor"), "raw": raw()}) as emceepee:
        said = await emceepee.says("list_tools", tool="^echo$")
        assert [tool["server"] for tool in said["tools"]] == ["raw"]
        (error,) = said["errors"]
        assert error == {"server": "liar", "error": Like("server 'liar' pages its tools in .*")}
        # Its tools work all the same.
        assert (await emceepee.execute("liar", "echo", {"text": "still"})).text == "still"


@pytest.mark.parametrize("flags", [("silent",), ("die",)])
async def test_a_server_that_takes_the_probe_badly_is_served(
    connect: Open, flags: tuple[str]
) -> None:
    async with connect({"raw": raw("--discover", *flags)}) as emceepee:
        assert (await emceepee.execute("raw", "echo", {"text": "hello"})).text == "hello"
        (server,) = (await emceepee.says("list_servers"))["servers"]
        assert (server["status"], server["protocol_version"]) == ("connected", "2025-11-25")
        assert "server_disconnected" not in [event["type"] for event in emceepee.events]
