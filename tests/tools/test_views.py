"""Which of our tools a client is shown, over every way to us."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import trio

from asgi_client import Json
from asgi_world import open_world
from emceepee_lines import open_pipes
from emceepee_trio.config import Config, Http
from emceepee_trio.config.settings import Token
from emceepee_trio.front.faces.views import FACES
from emceepee_trio.tools import BESIDE, TOOLBOX, VIEWS
from emceepee_trio.views import VIEWS as NAMES
from served import serve

LOADED, HINT = "anthropic/alwaysLoad", "anthropic/searchHint"
SIZES = {"tools": 15_000, "core": 5_000, "code": 3_500}
LOOP = ("await_activity", "get_task_result", "respond_to_elicitation", "respond_to_sampling")
FEW = {
    "core": {"list_servers", "search", "execute_tool", "read_result", *LOOP},
    "code": {"codemode_search", "codemode_execute", *LOOP},
}
CUT = 2048
"""Clients cut longer descriptions and instructions."""


def shown(view: str) -> list[Json]:
    return [tool.to_json() for tool in VIEWS[view].tools]


def test_each_name_of_a_view_is_known_everywhere() -> None:
    assert tuple(FACES) == tuple(NAMES)


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_costs_no_more_than_it_may(view: str) -> None:
    listed = json.dumps({"tools": shown(view)}, separators=(",", ":"), ensure_ascii=False)
    assert len(listed.encode()) <= SIZES[view]
    assert all(len(tool["description"].encode()) < CUT for tool in shown(view))


def test_each_view_has_what_its_loop_needs_and_no_more() -> None:
    for view, names in FEW.items():
        assert sorted(tool["name"] for tool in shown(view)) == sorted(names)
    assert {*FEW} | {"tools"} == {*VIEWS}


def test_what_the_loop_needs_is_there_from_the_start() -> None:
    def loaded(view: str) -> set[str]:
        return {tool["name"] for tool in shown(view) if tool.get("_meta", {}).get(LOADED) is True}

    needed = {"list_tools", "execute_tool", "await_activity", "get_task_result"}
    assert needed < loaded("tools")
    assert len(loaded("tools")) < 10
    for view in set(VIEWS) - {"tools"}:
        assert loaded(view) == {tool["name"] for tool in shown(view)}
    hints = [tool["_meta"].get(HINT) for tool in shown("tools") if "_meta" in tool]
    assert all(hint and len(hint) < 60 for hint in hints)


@pytest.mark.parametrize("era", ["handshake", "modern"])
@pytest.mark.parametrize("view", VIEWS)
async def test_a_url_says_which_view(era: str, view: str) -> None:
    query = f"view={view}"
    with trio.fail_after(60):
        async with open_world() as world:
            client = world.client()
            if era == "modern":
                hello = client.modern("server/discover", query=query)
                listed = client.modern("tools/list", query=query)
                called = client.modern("tools/call", query=query, name="list_timers", arguments={})
            else:
                hello = await client.initialize(query=query)
                listed, called = client.request("tools/list"), client.tool("list_timers")
            assert (await listed.answer())["result"]["tools"] == shown(view)
            said = (await hello.answer())["result"]["instructions"]
            assert len(said.encode()) <= CUT
            # No view lists all, and none forbids.
            assert (await called.answer())["result"]["isError"] is False
            names = {tool.name for tool in TOOLBOX.tools} - {tool["name"] for tool in shown(view)}
            assert [name for name in names if f"{name} " in said] == []


@pytest.mark.parametrize("query", ["view=cor", "view=", "view=core&view=tools"])
async def test_a_view_that_there_is_not_is_refused_with_those_there_are(query: str) -> None:
    with trio.fail_after(60):
        async with open_world() as world:
            modern = world.client().modern("tools/list", query=query)
            for refused in (await world.client().initialize(query=query), modern):
                status, error = await refused.error()
                assert (status, error["code"]) == (400, -32602)
                assert f"there are {', '.join(FACES)}" in error["message"]


@pytest.mark.parametrize("era", ["handshake", "modern"])
async def test_the_holder_of_a_token_may_have_a_view_of_his_own(era: str) -> None:
    tokens: dict[str, str | Token] = {
        "ann": Token("s3cret-of-ann", view="core"),
        "bob": "s3cret-of-bob",
    }
    config = Config(http=Http(tokens=tokens))
    with trio.fail_after(60):
        async with open_world(config) as world:
            for principal, query, view in (
                ("ann", "", "core"),
                ("ann", "view=code", "code"),
                ("ann", "view=tools", "tools"),
                ("bob", "", "tools"),
            ):
                client = world.client(principal)
                if era == "modern":
                    listed = client.modern("tools/list", query=query)
                else:
                    await (await client.initialize(query=query)).answer()
                    listed = client.request("tools/list")
                assert (await listed.answer())["result"]["tools"] == shown(view)


async def test_another_view_may_join_the_same_session() -> None:
    with trio.fail_after(60):
        async with open_world() as world:
            client = await world.joined()
            await client.call("set_timer", duration_ms=60_000, message="mine")
            await client.initialize(query="view=core", mcp_session_id=client.session)
            listed = (await client.request("tools/list").answer())["result"]["tools"]
            assert listed == shown("core")
            (said,) = (await client.call("list_timers"))["content"]
            assert "mine" in said["text"]


async def test_the_command_line_says_which_view_here_and_on_a_daemon(tmp_path: Path) -> None:
    with serve(tmp_path) as daemon:
        there = ("--connect", daemon.url, "--state-dir", str(tmp_path))
        for name, where in (("here", ()), ("there", there)):
            log = tmp_path / f"{name}.log"
            async with open_pipes(log, "stdio", "--view", "core", *where) as lines:
                await lines.initialize()
                answer = await lines.request(2, "tools/list")
                assert answer["result"]["tools"] == shown("core")
        async with open_pipes(
            tmp_path / "native.log", "stdio", "--view", "native", *there
        ) as lines:
            await lines.initialize()
            answer = await lines.request(2, "tools/list")
            assert answer["result"]["tools"] == [tool.to_json() for tool in BESIDE.tools]
