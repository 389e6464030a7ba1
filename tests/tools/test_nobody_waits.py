"""What is much for one client keeps no other waiting, by the time that a processor spends on it."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from asgi_client import Client, Json
from asgi_world import open_world
from emceepee_trio.config import parse
from fake_backends import raw
from stalls import steps_measured

pytestmark = pytest.mark.once

MOST = 0.020
"""Seconds of one step, with which nobody notices it."""
SIZE = 20_000_000

LONG = """\
import json, sys

ROWS = [{"id": n, "name": f"row {n}"} for n in range(SIZE // 40)]

def said(tool):
    if tool == "lines":
        return {"content": [{"type": "text", "text": "a line of text\\n" * (SIZE // 15)}]}
    if tool == "rows":
        return {"content": [{"type": "text", "text": json.dumps(ROWS)}]}
    if tool == "blocks":
        blocks = [{"type": "text", "text": str(n)} for n in range(100_000)] * 2
        return {"content": blocks}
    wide = [{"id": n, "name": "x" * 1000} for n in range(SIZE // 1000)]
    return {"content": [], "structuredContent": {"rows": wide}}

for line in sys.stdin:
    request = json.loads(line)
    method = request.get("method")
    if method == "initialize":
        info = {"name": "long", "version": "1"}
        result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}}
        result["serverInfo"] = info
    elif method == "tools/list":
        schema = {"type": "object"}
        names = "lines", "rows", "structured", "blocks"
        result = {"tools": [{"name": name, "inputSchema": schema} for name in names]}
    elif method == "tools/call":
        result = said(request["params"]["name"])
    else:
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)
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
"""


async def test_a_search_among_tools_with_what_no_tool_has() -> None:
    program = LONG.replace("SIZE", "100").replace("ROWS =", f"{ODD}\nROWS =", 1)
    program = program.replace('result = {"tools": [', 'result = {"tools": TOOLS + [')
    async with opened(odd={"command": sys.executable, "args": ["-c", program]}) as client:
        for tool, asked in SEARCHES.items():
            with steps_measured() as longest:
                await client.call("codemode_search", **asked)
                await client.call("codemode_search", query="odd", stubs=True, schemas=3)
            assert longest() < MOST, tool


async def test_a_result_that_is_very_long() -> None:
    program = LONG.replace("SIZE", str(SIZE))
    async with opened(long={"command": sys.executable, "args": ["-c", program]}) as client:
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
