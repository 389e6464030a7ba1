"""What we have of our own, as MCP lists it; the same in both eras."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import trio

from asgi_client import Client, Exchange
from asgi_world import World, open_world
from emceepee_trio.front.lists import SERVER_INFO
from emceepee_trio.tools import TOOLBOX

Json = dict[str, Any]
Ask = Callable[..., Exchange]

LISTS = [
    ("tools/list", "tools", [tool.to_json() for tool in TOOLBOX.tools]),
    ("prompts/list", "prompts", []),
    ("resources/templates/list", "resourceTemplates", []),
]


async def asking(world: World, era: str) -> Ask:
    client: Client = world.client()
    if era == "modern":
        return client.modern
    await client.initialize()
    return client.request


@pytest.mark.parametrize(("method", "key", "listed"), LISTS)
async def test_lists_are_the_same_in_both_eras(method: str, key: str, listed: list[Json]) -> None:
    with trio.fail_after(60):
        async with open_world() as world:
            ask = await asking(world, "handshake")
            assert (await ask(method).answer())["result"] == {key: listed}
            ask = await asking(world, "modern")
            result = (await ask(method).answer())["result"]
            assert result.pop("_meta") == {"io.modelcontextprotocol/serverInfo": SERVER_INFO}
            assert result.pop("ttlMs") > 0
            assert result.pop("cacheScope") == "private"
            assert result == {key: listed, "resultType": "complete"}


@pytest.mark.parametrize("era", ["handshake", "modern"])
async def test_our_resource_is_listed_and_read_and_no_other_exists(era: str) -> None:
    with trio.fail_after(60):
        async with open_world() as world:
            ask = await asking(world, era)
            (listed,) = (await ask("resources/list").answer())["result"]["resources"]
            assert listed["uri"] == "emceepee://diagrams"
            (read,) = (await ask("resources/read", uri=listed["uri"]).answer())["result"][
                "contents"
            ]
            assert read["uri"] == listed["uri"]
            assert read["text"].startswith('{"diagrams":[')
            error = (await ask("resources/read", uri="emceepee://other").answer())["error"]
            assert error["code"] == (-32602 if era == "modern" else -32002)
            assert error["data"] == {"uri": "emceepee://other"}


@pytest.mark.parametrize("era", ["handshake", "modern"])
async def test_a_prompt_is_got_with_a_tool(era: str) -> None:
    with trio.fail_after(60):
        async with open_world() as world:
            ask = await asking(world, era)
            error = (await ask("prompts/get", name="greet").answer())["error"]
            assert (error["code"], "the tool get_prompt" in error["message"]) == (-32602, True)


async def test_nothing_of_ours_is_said_to_change() -> None:
    with trio.fail_after(60):
        async with open_world() as world:
            hello = await world.client().initialize()
            found = await world.client().modern("server/discover").answer()
            for result in ((await hello.answer())["result"], found["result"]):
                offered = result["capabilities"]
                assert {"tools", "resources", "prompts"} <= offered.keys()
                assert not any(value for of in offered.values() for value in of.values())
