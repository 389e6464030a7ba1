"""Finding whatever servers have, by words, in few tokens."""

from __future__ import annotations

import json
from typing import Any

import pytest
import trio

from emceepee_client import Emceepee, Open
from emceepee_trio.model.search.answer import MORE_ROOM, ROOM
from emceepee_trio.model.search.tokens import tokens
from fake_backends import Journal, demo, raw
from like import Like

NO_RESTART = {"restart": {"enabled": False}}


async def finds(emceepee: Emceepee, query: str = "", **asked: Any) -> Any:
    if query:
        asked["query"] = query
    said = await emceepee.says("codemode_search", **asked)
    text = json.dumps(said, separators=(",", ":"), ensure_ascii=False)
    assert tokens(text) <= (MORE_ROOM if {"limit", "schemas", "stubs"} & asked.keys() else ROOM)
    assert len(text.encode()) <= 16 * 1024
    lines = said["found"]
    assert len(set(lines)) == len(lines)
    return said


async def test_what_is_meant_is_found_with_how_it_is_called(connect: Open) -> None:
    async with connect({"raw": raw(), "demo": demo()}) as emceepee:
        said = await finds(emceepee, "add two numbers", kinds=["tools"])
        assert said["found"][0] == Like(r"demo\.add\(a: \w+, b: \w+\) .*")
        assert said["schemas"]["demo.add"]["required"] == ["a", "b"]
        assert "errors" not in said
        # Exact names are first, whatever else is said of others.
        for query in ("list_roots", "demo.list_roots", "LIST ROOTS"):
            assert (await finds(emceepee, query))["found"][0].startswith("demo.list_roots(")
        of_raw = await finds(emceepee, "echo", server="raw")
        assert of_raw["found"]
        assert all(" demo" not in line and "demo." not in line for line in of_raw["found"])
        (line,) = (await finds(emceepee, "add numbers", limit=1))["found"]
        assert line.startswith("demo.add(")


FEW, MOST, LINES, BEST = 5, 8, 20, 3


async def test_the_answer_is_wide_and_thin(connect: Open) -> None:
    """Lines of the best, schemas that are small, and the names of whatever else the best have."""
    servers = {f"s{n}": demo() for n in range(FEW)}
    async with connect(servers) as emceepee:
        query = "add two numbers"
        said = await finds(emceepee, query)
        assert len(said["found"]) == LINES
        assert [line.partition("(")[0] for line in said["found"][:FEW]] == [
            f"s{n}.add" for n in range(FEW)
        ]
        assert 0 < len(said["schemas"]) <= FEW
        for server in list(servers)[:BEST]:
            listed = (await emceepee.says("list_tools", server=server))["tools"][0]["tools"]
            lines = [line.partition("(")[0] for line in said["found"]]
            named = {line.removeprefix(f"{server}.") for line in lines if line.startswith(server)}
            assert named | {*said["more"][server].split()} == {tool["name"] for tool in listed}
        more = await finds(emceepee, query, schemas=MOST)
        assert list(more["schemas"]) == [f"s{n}.add" for n in range(FEW)]
        assert "schemas" not in await finds(emceepee, query, schemas=0)


async def test_every_kind_is_found(connect: Open) -> None:
    async with connect({"raw": raw(), "demo": demo() | {"description": "cephalopods"}}) as emceepee:
        for kind, lists, key in (
            ("resources", "list_resources", "resources"),
            ("templates", "list_resource_templates", "resource_templates"),
            ("prompts", "list_prompts", "prompts"),
        ):
            every = (await emceepee.says(lists))[key]
            one = next(each for each in every if each["server"] != "emceepee")
            said = await finds(emceepee, one["name"], kinds=[kind])
            assert said["found"][0].startswith(f"{kind[:-1]} {one['server']}"), said
        assert (await finds(emceepee, "cephalopod"))["found"][0].startswith(
            "server demo cephalopods"
        )


async def test_several_queries_are_answered_together_without_repeats(connect: Open) -> None:
    async with connect({"raw": raw(), "demo": demo()}) as emceepee:
        said = await finds(emceepee, queries=["add numbers", "xyzzy", "list roots", "add"])
        assert said["found"][0].startswith("demo.add(")
        assert said["found"][1].startswith("demo.list_roots(")
        assert said["nothing_for"] == ["xyzzy"]
        error = await emceepee.fails("codemode_search")
        assert error["code"] == "TOOL_ERR_INVALID_ARGUMENTS"


async def test_patterns_are_searched_for_and_stop_no_other(connect: Open) -> None:
    async with connect({"raw": raw(), "demo": demo()}) as emceepee:
        said = await finds(emceepee, "^ec.o$", mode="regex", kinds=["tools"])
        assert {line.partition("(")[0] for line in said["found"]} >= {"raw.echo"}
        bad = "(a|a|aa)+(a|a|aa)+(a|a|aa)+!!$"
        said = await finds(emceepee, queries=["(", bad, "^add$"], mode="regex", kinds=["tools"])
        assert [line.partition("(")[0] for line in said["found"]] == ["demo.add"]
        assert said["errors"][0] == {"query": "(", "error": Like("query: not a regular .*")}


async def test_nothing_that_fits_is_said_with_what_was_looked_at(connect: Open) -> None:
    async with connect({"demo": demo()}) as emceepee:
        said = await finds(emceepee, "rootlister", kinds=["tools", "prompts"])
        assert said["found"] == []
        assert said["hint"] == Like(r"nothing fits; looked at \d+ tools, \d+ prompts of 1 servers")
        assert "demo.list_roots" in said["closest"]


async def test_what_cannot_be_reached_is_named_and_the_rest_is_found(connect: Open) -> None:
    servers = {"demo": demo(), "hanging": raw("--silent"), "off": raw() | {"disabled": True}}
    async with connect(servers, limits={"list_patience_ms": 500}) as emceepee:
        await emceepee.connected("demo")
        said = await finds(emceepee, "add numbers")
        assert said["found"][0].startswith("demo.add(")
        assert [error["server"] for error in said["errors"]] == ["hanging", "off"]
        assert "no answer yet" in said["errors"][0]["error"]


async def test_a_lost_server_is_found_as_it_was(connect: Open) -> None:
    async with connect({"raw": raw() | NO_RESTART}) as emceepee:
        before = await finds(emceepee, "echo", kinds=["tools"])
        await emceepee.fails("execute_tool", server="raw", tool="exit")
        said = await finds(emceepee, "echo", kinds=["tools"])
        assert said["found"] == before["found"]
        assert said["errors"][0]["server"] == "raw"


async def test_what_is_not_allowed_is_not_found(connect: Open) -> None:
    servers = {
        "few": demo() | {"allowed_tools": ["echo"]},
        "less": demo() | {"denied_tools": ["add"]},
    }
    async with connect(servers) as emceepee:
        for asked in ({"query": "add"}, {"query": "^add$", "mode": "regex"}, {"query": "add "}):
            said = await finds(emceepee, **asked)
            assert ".add(" not in json.dumps(said)
            assert "add" not in " ".join(said.get("more", {}).values()).split()


async def test_a_changed_list_is_found_as_it_is_now(connect: Open, journal: Journal) -> None:
    async with connect({"raw": raw("--tools", 60, *journal.flags)}) as emceepee:
        for _ in range(2):
            assert (await finds(emceepee, "filler_0059"))["found"][0].startswith("raw.filler_0059(")
        assert len(journal.of("tools/list")) == 1
        await emceepee.says("remove_server", name="raw")
        assert (await finds(emceepee, "filler_0059"))["found"] == []
        await emceepee.says("add_server", name="raw", **raw("--tools", 50))
        found = (await finds(emceepee, "filler_0059"))["found"]
        assert not [line for line in found if line.startswith("raw.filler_0059(")]
        assert (await finds(emceepee, "filler_0049"))["found"][0].startswith("raw.filler_0049(")


async def test_stubs_are_what_a_script_writes(connect: Open) -> None:
    async with connect({"demo": demo(), "my-demo": demo()}) as emceepee:
        said = await finds(emceepee, "add numbers", stubs=True, kinds=["tools"])
        stubs = [line.partition("  #")[0] for line in said["found"]]
        assert stubs[0] == Like(r"servers\.demo\.add\(a: \w+, b: \w+\)")
        assert any(stub.startswith('call_tool("my-demo", "add", {"a":') for stub in stubs)


async def test_lists_are_ranked_alike(connect: Open) -> None:
    async with connect({"raw": raw(), "demo": demo()}) as emceepee:
        said = await emceepee.says("list_tools", query="listing root")
        assert said["tools"][0]["tools"][0]["name"] == "list_roots"


@pytest.mark.parametrize("count", [5000])
async def test_many_tools_and_an_exploding_pattern_hold_nobody_up(
    connect: Open, count: int
) -> None:
    """The daemon writes every step that took long, and then the test fails."""
    async with connect({"raw": raw("--tools", count, "--page", 1000)}) as emceepee:
        done: list[str] = []

        async def search(name: str, **asked: Any) -> None:
            await emceepee.call("codemode_search", **asked)
            done.append(name)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(lambda: search("words", query="filler tool text"))
            nursery.start_soon(
                lambda: search("regex", query="(f|fi|i|l|e|r|_|0)+(f|fi|l|_|0)+!$", mode="regex")
            )
            nursery.start_soon(lambda: search("list", query="filler_0500"))
            assert (await emceepee.execute("raw", "echo", {"text": "still"})).text == "still"
        assert sorted(done) == ["list", "regex", "words"]
