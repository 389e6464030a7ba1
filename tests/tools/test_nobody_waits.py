"""What is much for one client keeps no other waiting, by the time that a processor spends on it."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from asgi_client import Client, Json
from asgi_world import open_world
from emceepee_trio.config import parse
from fake_backends import raw
from play import coded
from stalls import steps_measured

pytestmark = pytest.mark.once

MOST = 0.020
"""Seconds of one step, with which nobody notices it."""
SIZE = 20_000_000

LONG = f"""\
SIZE = {SIZE}
ROWS = [{{"id": n, "name": f"row {{n}}"}} for n in range(SIZE // 40)]
WIDE = [{{"id": n, "name": "x" * 1000}} for n in range(SIZE // 1000)]
LONG = {{
    "lines": {{"content": [text("a line of text\\n" * (SIZE // 15))]}},
    "rows": {{"content": [text(json.dumps(ROWS))]}},
    "blocks": {{"content": [text(str(n)) for n in range(100_000)] * 2}},
    "structured": {{"content": [], "structuredContent": {{"rows": WIDE}}}},
}}
perform(Play(tools=LONG, results=results_of(LONG)))
"""


@asynccontextmanager
async def opened(**servers: Json) -> AsyncGenerator[Client]:
    settings: dict[str, Any] = {"mcpServers": servers, "limits": {"message": 3 * SIZE}}
    config = parse(settings, folder=Path("/"), environ={}).config
    async with open_world(config) as world:
        client = await world.joined()
        await client.call("list_tools")
        yield client


SEARCHES: dict[str, dict[str, Any]] = {
    "words": {"query": "filler tool text"},
    "a name": {"query": "filler_0500"},
    "a pattern": {"query": "^filler_.*9$", "mode": "regex"},
    "one that explodes": {"query": "(f|fi|i|l|e|r|_|0)+(f|fi|l|_|0)+!$", "mode": "regex"},
}


async def test_a_search_among_thousands_of_tools() -> None:
    async with opened(raw=raw("--tools", 5000, "--page", 1000)) as client:
        for name, asked in SEARCHES.items():
            with steps_measured() as longest:
                said = await client.call("codemode_search", kinds=["tools"], **asked)
                await client.call("list_tools", query=asked["query"])
            assert longest() < MOST, name
            assert json.loads(said["content"][0]["text"])["found"] or "!" in asked["query"]


ODD = """
MARKS = "e" + "\\u0301" * 4000
MANY = [f"a{n}" for n in range(300_000)]
SCHEMA = {"type": "object", "properties": {"a": {"type": MANY}}, "required": MANY}
SAID = {"title": MARKS, "description": MARKS, "uri": [0] * 100_000}
TOOLS = [{"name": f"odd {n}", **SAID} for n in range(3)]
TOOLS[0]["inputSchema"] = SCHEMA
usual = results_of(["lines", "rows", "structured", "blocks"])
usual["tools/list"]["tools"][:0] = TOOLS
perform(Play(results=usual))
"""


async def test_a_search_among_tools_with_what_no_tool_has() -> None:
    async with opened(odd=coded(ODD)) as client:
        for tool, asked in SEARCHES.items():
            with steps_measured() as longest:
                await client.call("codemode_search", **asked)
                await client.call("codemode_search", query="odd", stubs=True, schemas=3)
            assert longest() < MOST, tool


async def test_a_result_that_is_very_long() -> None:
    async with opened(long=coded(LONG)) as client:
        for tool in ("lines", "rows", "structured", "blocks"):
            with steps_measured() as longest:
                said = await client.call("execute_tool", server="long", tool=tool)
            assert longest() < MOST, tool
            preview = json.loads(said["content"][0]["text"])
            assert preview["bytes"] > SIZE / 20
            with steps_measured() as longest:
                await client.call("read_result", id=preview["result"], grep="9")
                await client.call("read_result", id=preview["result"], bytes=[SIZE // 30, SIZE])
            assert longest() < MOST, tool
