"""Lists in answers have an end."""

from __future__ import annotations

import json
from typing import Any

import trio
from hypothesis import given
from hypothesis import strategies as st

from emceepee_trio.config.bounds import MAX_LIST_BYTES
from emceepee_trio.model.json.intake import finished
from emceepee_trio.model.wire import dumps
from emceepee_trio.tools.common.listing import abridged, list_reply, write
from strategies import objects


def said(reply: Any) -> Any:
    (block,) = reply.result["content"]
    return json.loads(block["text"])


@given(st.lists(objects, max_size=5), st.dictionaries(st.sampled_from(["hint", "errors"]), objects))
def test_it_is_what_would_be_written_at_once(
    entries: list[dict[str, Any]], more: dict[str, Any]
) -> None:
    reply = trio.run(list_reply, "found", entries, more)
    assert reply.result["content"][0]["text"] == dumps({"found": entries} | more)


async def test_what_has_no_room_is_counted() -> None:
    entries = [{"n": n, "x": "é" * 50_000} for n in range(30)]
    found = said(await list_reply("found", entries, {"hint": "x"}))
    assert list(found) == ["found", "more", "hint"]
    assert [entry["n"] for entry in found["found"]] == list(range(10))
    assert found["more"] == 20


async def test_an_entry_that_is_too_large_is_only_named() -> None:
    large = {"server": "s", "name": "n", "inputSchema": "x" * MAX_LIST_BYTES}
    found = said(await list_reply("tools", [large, {"name": "small"}]))
    assert found == {"tools": [{"server": "s", "name": "n", "too_large": True}, {"name": "small"}]}
    assert finished(abridged({"name": "x" * 10_000}, 100)) == '{"too_large":true}'


async def test_a_long_list_is_written_in_turns() -> None:
    entries = [{"name": f"tool {n}", "x": [{}] * 20} for n in range(20_000)]
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            ticks += 1
            await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(tick)
        written = await write(entries)
        nursery.cancel_scope.cancel()
    assert written.more == len(entries) - len(written.entries)
    assert ticks > 5


async def test_a_long_entry_is_written_in_turns_and_no_further_than_there_is_room() -> None:
    entry = {"name": "n", "properties": {f"p{n}": {"type": "string"} for n in range(20_000)}}
    steps = sum(1 for _ in abridged(entry))
    assert steps > 10
    assert finished(abridged(entry)) == dumps(entry)
    huge = {"name": "n", "x": [entry] * 100}
    assert finished(abridged(huge)) == '{"name":"n","too_large":true}'
    assert sum(1 for _ in abridged(huge)) < 4 * steps
