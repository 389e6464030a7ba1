"""Calls of tools on standard input: in the order of the wire, each answered once, or by nobody."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from asgi_client import stamp
from emceepee_client import Answer
from emceepee_lines import open_lines, request
from fake_backends import Journal, raw

INVALID_REQUEST = -32600
MANY = 60


def call(request_id: Any, tool: str, **args: Any) -> dict[str, Any]:
    arguments = {"server": "x", "tool": tool, "args": args}
    return request(request_id, "tools/call", {"name": "execute_tool", "arguments": arguments})


async def test_calls_reach_a_server_in_the_order_of_the_wire(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal")
    async with open_lines(tmp_path, {"x": raw(*journal.flags)}) as lines:
        await lines.initialize()
        await lines.execute("x", "echo", {"text": "is there"})
        await lines.send(*(call(n, "echo", text=str(n)) for n in range(MANY)))
        answers = [await lines.receive() or {} for _ in range(MANY)]
        assert sorted(answer["id"] for answer in answers) == list(range(MANY))
        heard = [each["params"]["arguments"]["text"] for each in journal.of("tools/call")[1:]]
        assert heard == [str(n) for n in range(MANY)]


async def test_two_calls_of_one_id_have_an_answer_each(tmp_path: Path) -> None:
    async with open_lines(tmp_path, {"x": raw()}) as lines:
        await lines.initialize()
        await lines.execute("x", "echo", {"text": "is there"})
        await lines.send(call(1, "echo", text="one"), call(1, "echo", text="two"))
        texts = [Answer.of((await lines.answer(1))["result"]).text for _ in range(2)]
        assert sorted(texts) == ["one", "two"]
        assert (await lines.execute("x", "echo", {"text": "three"})).text == "three"


async def test_a_call_that_was_cancelled_is_not_answered_and_the_next_is(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal")
    async with open_lines(tmp_path, {"x": raw(*journal.flags)}) as lines:
        await lines.initialize()
        await lines.send(call("unwanted", "never"))
        await journal.wait_for_marker("never started")
        gone = {"jsonrpc": "2.0", "method": "notifications/cancelled"}
        await lines.send(gone | {"params": {"requestId": "unwanted"}})
        await journal.wait_for(lambda each: each.get("method") == "notifications/cancelled")
        assert (await lines.execute("x", "echo", {"text": "wanted"})).text == "wanted"
        await lines.end()
        assert [each for each in lines.other if each.get("id") == "unwanted"] == []


async def test_a_call_of_the_other_era_is_refused(tmp_path: Path) -> None:
    async with open_lines(tmp_path, {"x": raw()}) as lines:
        await lines.initialize()
        params = {"name": "list_servers", "arguments": {}, "_meta": stamp()}
        refused = await lines.request("modern", "tools/call", params)
        assert refused["error"]["code"] == INVALID_REQUEST
