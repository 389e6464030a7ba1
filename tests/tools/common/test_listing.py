"""Lists in answers come in pages, each within one bound."""

from __future__ import annotations

import json
from typing import Any

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from emceepee_trio.config.bounds import MAX_LIST_BYTES, MAX_PAGE_BYTES
from emceepee_trio.errors import InvalidArguments
from emceepee_trio.model.json.fields import frozen
from emceepee_trio.model.json.intake import finished
from emceepee_trio.model.wire import dumps
from emceepee_trio.tools.common.asking import MAX_ERRORS
from emceepee_trio.tools.common.listing import (
    Cursor,
    Group,
    abridged,
    by_age,
    errors_within,
    listed,
    page,
)
from emceepee_trio.tools.common.registry import Request
from strategies import objects


@frozen
class Asked:
    cursor: str | None = None
    server: str | None = None


def request(*, shortens: bool = True) -> Request:
    return Request(None, None, shortens=shortens)  # type: ignore[arg-type]  # not looked at


def text_of(reply: Any) -> str:
    (block,) = reply.result["content"]
    return str(block["text"])


@given(st.lists(objects, max_size=5), st.dictionaries(st.sampled_from(["hint", "errors"]), objects))
def test_it_is_what_would_be_written_at_once(
    entries: list[dict[str, Any]], more: dict[str, Any]
) -> None:
    groups = [Group("a", entries, len(entries))]
    reply, _ = trio.run(listed, request(shortens=False), "found", groups, Asked(), more)
    assert text_of(reply) == dumps({"found": entries} | more)


sizes = st.lists(st.integers(1, 9000), max_size=30)


@given(st.lists(sizes, max_size=5), st.integers(0, 4000))
def test_pages_have_each_entry_once_and_none_is_longer_than_the_bound(
    groups: list[list[int]], beside: int
) -> None:
    def those_of(number: int, sizes: list[int]) -> Group:
        entries = [{"n": f"{number}.{at}", "x": "é" * (size // 2)} for at, size in enumerate(sizes)]
        return Group(f"server-{number}", entries, len(entries))

    asked, seen = Asked(), list[str]()
    said = {"errors": "x" * beside}
    everything = [f"{n}.{at}" for n, each in enumerate(groups) for at in range(len(each))]
    while True:
        there = [those_of(number, sizes) for number, sizes in enumerate(groups)]
        reply, _ = trio.run(listed, request(), "found", there, asked, said)
        assert len(text_of(reply).encode()) <= MAX_PAGE_BYTES
        found = json.loads(text_of(reply))
        seen += [entry["n"] for entry in found["found"]]
        assert found.get("more", 0) == len(everything) - len(seen)
        if "cursor" not in found:
            break
        assert list(found) == ["found", "more", "cursor", "errors"]
        assert found["found"]
        asked = Asked(found["cursor"])
    assert seen == everything


async def test_a_cursor_is_of_one_list_and_of_what_is_there() -> None:
    entries = [{"n": n, "x": "x" * 5000} for n in range(9)]
    groups = [Group("a", entries[:4], 4), Group("b", entries[4:], 5)]
    reply, _ = await listed(request(), "found", groups, Asked())
    cursor = json.loads(text_of(reply))["cursor"]
    reply, _ = await listed(request(), "found", groups, Asked(cursor))
    assert [entry["n"] for entry in json.loads(text_of(reply))["found"]] == [3, 4, 5]
    for asked, key in (
        (Asked(cursor, "a"), "found"),
        (Asked(cursor), "others"),
        (Asked("nonsense"), "found"),
    ):
        with pytest.raises(InvalidArguments, match="cursor"):
            await listed(request(), key, groups, asked)
    with pytest.raises(InvalidArguments, match="'a' is not in the list now"):
        await listed(request(), "found", groups[1:], Asked(cursor))


async def test_what_ends_between_two_pages_takes_none_of_the_others_with_it() -> None:
    tasks = [Group(f"id{n}", [{"n": n, "x": "x" * 6000}]) for n in range(9)]
    reply, _ = await by_age(request(), "tasks", tasks[::-1], Asked())
    first = json.loads(text_of(reply))
    assert [entry["n"] for entry in first["tasks"]] == [0, 1]
    reply, _ = await by_age(request(), "tasks", tasks, Asked(first["cursor"]))
    assert [entry["n"] for entry in json.loads(text_of(reply))["tasks"]] == [2, 3]
    left = [tasks[1], *tasks[3:]]  # the one that the next page was to begin with has gone
    reply, _ = await by_age(request(), "tasks", left, Asked(first["cursor"]))
    second = json.loads(text_of(reply))
    assert [entry["n"] for entry in second["tasks"]] == [3, 4]
    assert (first["more"], second["more"]) == (7, 4)
    reply, _ = await by_age(request(), "tasks", [], Asked(first["cursor"]))
    assert json.loads(text_of(reply)) == {"tasks": []}


async def test_an_entry_that_is_too_large_is_only_named() -> None:
    large = {"server": "s", "name": "n", "inputSchema": "x" * MAX_PAGE_BYTES}
    groups = [Group("large", [large]), Group("small", [{"name": "small"}])]
    reply, found = await listed(request(), "tools", groups, Asked())
    said = json.loads(text_of(reply))["tools"]
    assert said == [{"server": "s", "name": "n", "too_large": True}, {"name": "small"}]
    assert found.short == {"large"}
    assert finished(abridged({"name": "x" * 10_000}, 100)) == ('{"too_large":true}', False)
    # Whoever is no model gets it whole.
    reply, _ = await listed(request(shortens=False), "tools", groups, Asked())
    assert json.loads(text_of(reply))["tools"][0] == large


def test_errors_of_many_servers_are_cut_alike() -> None:
    few = [{"server": "a", "error": "no" * 500}]
    assert errors_within(few, MAX_ERRORS) == few
    many = [{"server": f"s{n}", "error": "no" * 4000} for n in range(20)]
    said = errors_within(many, MAX_ERRORS)
    assert [each["server"] for each in said] == [each["server"] for each in many]
    assert len({len(each["error"]) for each in said}) == 1
    assert len(dumps(said).encode()) <= MAX_ERRORS
    assert len(dumps(errors_within(many * 100, MAX_ERRORS)).encode()) <= 2 * MAX_ERRORS


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
        groups = [Group("s", entries, len(entries))]
        written = await page(groups, Cursor(), MAX_LIST_BYTES)
        nursery.cancel_scope.cancel()
    assert written.next is not None
    assert written.more == len(entries) - written.next.at
    assert ticks > 5


async def test_a_long_entry_is_written_in_turns_and_no_further_than_there_is_room() -> None:
    entry = {"name": "n", "properties": {f"p{n}": {"type": "string"} for n in range(20_000)}}
    steps = sum(1 for _ in abridged(entry, MAX_LIST_BYTES))
    assert steps > 10
    assert finished(abridged(entry, MAX_LIST_BYTES)) == (dumps(entry), True)
    huge = {"name": "n", "x": [entry] * 100}
    assert finished(abridged(huge, MAX_LIST_BYTES)) == ('{"name":"n","too_large":true}', False)
    assert sum(1 for _ in abridged(huge, MAX_LIST_BYTES)) < 4 * steps
