"""call_read: execute_tool of what only reads."""

from __future__ import annotations

from emceepee_client import Open
from fake_backends import Journal, demo, raw
from like import ULID


async def test_what_says_that_it_reads_is_called_as_by_execute_tool(
    connect_as_either: Open,
) -> None:
    async with connect_as_either({"demo": demo()}) as emceepee:
        asked = {"server": "demo", "tool": "add", "args": {"a": 2, "b": 3}}
        read = await emceepee.call("call_read", **asked)
        assert read.result == (await emceepee.call("execute_tool", **asked)).result
        assert read.result["isError"] is False
        slow = await emceepee.call("call_read", server="demo", tool="slow", timeout_ms=0)
        assert slow.task_id == ULID


async def test_nothing_else_reaches_its_server(
    connect_as_either: Open, its_era: tuple[str, ...], journal: Journal
) -> None:
    servers = {"raw": raw(*its_era, *journal.flags), "demo": demo()}
    async with connect_as_either(servers) as emceepee:
        said = await emceepee.call("call_read", server="raw", tool="echo", timeout_ms=0)
        await emceepee.event("task_failed", taskId=said.task_id)
        for server, tool in (("raw", "echo"), ("demo", "ask_name")):
            refused = await emceepee.call("call_read", server=server, tool=tool)
            assert refused.error["code"] == "TOOL_ERR_DENIED"
            assert "execute_tool calls it" in refused.error["message"]
        unknown = await emceepee.call("call_read", server="raw", tool="nothing")
        assert unknown.error["code"] == "TOOL_ERR_NOT_FOUND"
        assert journal.of("tools/call") == []
