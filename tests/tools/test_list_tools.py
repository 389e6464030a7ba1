"""Finding tools of many servers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from emceepee_client import Emceepee, Open
from emceepee_trio.config.bounds import MAX_PAGE_BYTES
from fake_backends import Journal, app, demo, raw
from like import Like

NO_RESTART = {"restart": {"enabled": False}}


def names(said: dict[str, Any], server: str | None = None) -> list[str]:
    groups = [group for group in said["tools"] if server in (None, group["server"])]
    assert all(group.keys() <= {"server", "stale", "tools"} for group in groups)
    return [tool["name"] for group in groups for tool in group["tools"]]


def servers(said: dict[str, Any]) -> list[str]:
    return [group["server"] for group in said["tools"]]


async def pages(emceepee: Emceepee, **asked: Any) -> list[Any]:
    """All of them, each of a bounded size."""
    found = [await emceepee.says("list_tools", **asked)]
    while "cursor" in found[-1]:
        assert len(json.dumps(found[-1], separators=(",", ":"))) <= MAX_PAGE_BYTES + 500
        found.append(await emceepee.says("list_tools", **asked, cursor=found[-1]["cursor"]))
    assert "more" not in found[-1]
    return found


async def test_a_tool_that_is_for_an_app_alone_is_not_found_and_can_be_called(
    connect: Open,
) -> None:
    async with connect({"apps": app(), "demo": demo()}) as emceepee:
        said = await emceepee.says("list_tools")
        assert "chart" in names(said, "apps")
        assert "refresh" not in names(said, "apps")
        assert (await emceepee.says("list_tools", query="refresh"))["tools"] == []
        for asked in ({"query": "refresh"}, {"query": "refresh", "mode": "regex"}):
            assert "refresh" not in json.dumps(await emceepee.says("codemode_search", **asked))
        assert "refresh" in (await emceepee.execute("apps", "refresh")).text


async def test_entries_are_what_the_server_said(
    connect_as_either: Open, its_era: tuple[str, ...]
) -> None:
    async with connect_as_either({"raw": raw(*its_era), "demo": demo()}) as emceepee:
        said = await emceepee.says("list_tools", tool="^(schema_mismatch|add)$")
        assert list(said) == ["tools", "detail"]
        assert said["detail"] == "full"
        of_raw, of_demo = said["tools"]
        assert (of_raw["server"], of_demo["server"]) == ("raw", "demo")
        (first,), (second,) = of_raw["tools"], of_demo["tools"]
        assert first == {
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
        assert second["name"] == "add"
        assert second["annotations"]["readOnlyHint"] is True


async def test_patterns_are_searched_for(connect: Open) -> None:
    async with connect({"one": raw(), "two": raw(), "three": demo()}) as emceepee:
        assert names(await emceepee.says("list_tools", tool="^ec.o$")) == ["echo"] * 3
        said = await emceepee.says("list_tools", server="^t", tool="ech")
        assert servers(said) == ["two", "three"]


async def test_a_server_that_is_named_exactly_is_that_one(connect: Open) -> None:
    async with connect({"git": raw(), "github": raw(), "a.b": raw(), "axb": raw()}) as emceepee:
        assert servers(await emceepee.says("list_tools", server="git")) == ["git"]
        assert servers(await emceepee.says("list_tools", server="a.b")) == ["a.b"]
        assert servers(await emceepee.says("list_tools", server="gi")) == ["git", "github"]
        assert servers(await emceepee.says("list_tools", server="^a.b$")) == ["a.b", "axb"]
        for names in (["github", "a.b"], '["a.b", "github"]'):
            said = await emceepee.says("list_tools", server=names)
            assert servers(said) == ["github", "a.b"]
        assert (await emceepee.says("list_tools", server=[]))["tools"] == []


async def test_what_does_not_exist_is_said(connect: Open) -> None:
    async with connect({"git": raw(), "time": raw()}) as emceepee:
        said = await emceepee.says("list_tools", server="nope")
        assert said["tools"] == []
        assert said["errors"] == [
            {"server": "nope", "error": "no server 'nope'; there are: git, time"}
        ]
        said = await emceepee.says("list_tools", server=["git", "tiem"], tool="^echo$")
        assert (servers(said), names(said)) == (["git"], ["echo"])
        assert said["errors"] == [
            {"server": "tiem", "error": Like("no server 'tiem', did you mean \"time\".*")}
        ]
        assert "^x" in str((await emceepee.says("list_tools", server="^x"))["errors"])
        said = await emceepee.says("list_tools", tool="ECHO")
        assert said == {
            "tools": [],
            "hint": Like("no tool matches 'ECHO', did you mean \"echo\".*"),
            "detail": "full",
        }


async def test_words_are_looked_for_in_names_and_descriptions(connect: Open) -> None:
    async with connect({"raw": raw(), "demo": demo()}) as emceepee:
        everything = await emceepee.says("list_tools", detail="full", server="demo")
        said = await emceepee.says("list_tools", query="ROOTS")
        assert "list_roots" in names(said, "demo")
        by_description = await emceepee.says("list_tools", query="roots declares", server="demo")
        assert names(by_description) == ["list_roots"]
        assert len(names(by_description)) < len(names(everything))
        said = await emceepee.says("list_tools", query="roots nonsense")
        assert said["tools"] == []
        assert "words" in said["hint"]
        both = await emceepee.says("list_tools", query="the", tool="^echo$", server="raw")
        assert names(both) == ["echo"]
        # Of no letter is a pattern made.
        assert (await emceepee.says("list_tools", query="(.*"))["tools"] == []


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
        first, *others = await pages(emceepee)
        assert others
        assert list(first) == ["tools", "hint", "detail", "more", "cursor"]
        assert {page["detail"] for page in (first, *others)} == {"summary"}
        found = [name for page in (first, *others) for name in names(page)]
        assert len(found) == len(set(found)) == 300
        assert first["more"] == len(found) - len(names(first))
        assert first["tools"][0]["tools"][0] == {
            "name": "echo",
            "description": "The text, and vendor fields wherever one can be.",
        }
        assert others[-1]["tools"][0]["tools"][-1] == {
            "name": "filler_0299",
            "description": "The tool filler_0299",
        }
        full = await pages(emceepee, detail="full")
        assert list(full[0]) == ["tools", "detail", "more", "cursor"]
        assert {page["detail"] for page in full} == {"full"}
        assert [name for page in full for name in names(page)] == found
        last = full[-1]["tools"][0]["tools"][-1]
        assert last["inputSchema"] == {"type": "object", "x-vendor": "schema"}
        few = await emceepee.says("list_tools", tool="filler_00")
        assert few["detail"] == "full"
        assert (await emceepee.says("list_tools", tool="^echo$", detail="summary"))[
            "detail"
        ] == "summary"
        assert (await emceepee.execute("raw", "filler_0299", {"text": "far"})).text == "far"


async def test_a_cursor_is_of_one_search(connect: Open) -> None:
    async with connect({"raw": raw("--tools", 300), "two": raw("--tools", 200)}) as emceepee:
        every = await pages(emceepee, detail="full", tool="filler")
        found = [name for page in every for name in names(page)]
        assert {found.count(f"filler_{n:04d}") for n in range(100, 200)} == {2}
        assert [server for page in every for server in servers(page)].count("two") > 1
        first = every[0]
        for other in ({}, {"tool": "filler_"}, {"tool": "filler", "query": "x"}):
            error = await emceepee.fails("list_tools", cursor=first["cursor"], **other)
            assert error["code"] == "TOOL_ERR_INVALID_ARGUMENTS"
            assert "cursor" in error["message"]
        error = await emceepee.fails("list_tools", cursor="12")
        assert error["code"] == "TOOL_ERR_INVALID_ARGUMENTS"
        # Whatever else was asked for, the pages go on as they began.
        again = await emceepee.says("list_tools", cursor=first["cursor"], tool="filler")
        assert again == every[1]
        await emceepee.says("remove_server", name="raw")
        error = await emceepee.fails("list_tools", cursor=first["cursor"], tool="filler")
        assert "no server 'raw'" in error["message"]


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
        (of_raw,) = before["tools"]
        assert said["tools"] == [{"server": "raw", "stale": True, "tools": of_raw["tools"]}]
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
        assert servers(said) == ["raw"]
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
        (server,) = (await emceepee.says("list_servers", detail="full"))["servers"]
        assert (server["status"], server["protocol_version"]) == ("connected", "2025-11-25")
        assert "server_disconnected" not in [event["type"] for event in emceepee.events]
