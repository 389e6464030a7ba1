"""Patterns of clients in names of servers."""

from __future__ import annotations

import re
import time
from typing import Any, cast

import pytest
import trio
import trio.lowlevel

from emceepee_trio.errors import InvalidArguments
from emceepee_trio.tools.common.search import EFFORT, NAME, Search


class Stand:
    """In for a session, of which patterns are matched one after the other."""

    matching = trio.Lock()


SESSION = cast(Any, Stand())


@pytest.mark.parametrize(
    "pattern",
    [
        *("", ".*", "^ec.o$", "a|b", "^x", "o$", "[eh]+", "(?i)ECHO", "a{2}", "a{1,}", r"\{"),
        *("[{]", "[^{}]+", r"[]{]", r"[\]{]", r"h[^{]*b", r"\\?\{", r"[a]{2}", r"\(?x"),
    ],
)
async def test_they_are_searched_for(pattern: str) -> None:
    names = ["echo", "x", "", "aa", "ec\no", "{", "hello b"]
    found = await Search.of("tool", pattern).among(SESSION, names)
    assert found == [re.search(pattern, name) is not None for name in names]


STRAY = [
    *("(?:abc){e<=3}", "(?b)(?:a){i}", "(?:abc){1<=e<=3}", "a{x", r"[a]{e}", r"\\{e<=1}"),
    r"[\]]{e}",
]


@pytest.mark.parametrize("pattern", STRAY)
def test_what_is_only_alike_is_not_searched_for(pattern: str) -> None:
    with pytest.raises(InvalidArguments, match="tool: not a regular expression: a brace"):
        Search.of("tool", pattern)


@pytest.mark.parametrize("pattern", ["(?x)a # b", r"\\(?ix)a", "(?a)(?u)a", "(", "(?P<"])
def test_what_is_no_pattern_is_refused(pattern: str) -> None:
    with pytest.raises(InvalidArguments, match="tool: not a regular expression: "):
        Search.of("tool", pattern)


def test_words_need_no_thread() -> None:
    assert all(Search.of("tool", each).is_quick for each in ("", ".*", "^echo$", "a_b-c", "x.*"))
    assert not any(Search.of("tool", each).is_quick for each in (".*.*", "a+", "(a)", "a|b", "a.b"))


async def test_all_names_share_one_effort() -> None:
    """And it is not the loop that makes it."""
    names = ["a" * 11 + str(n) for n in range(1000)]
    before = time.thread_time()
    started = time.process_time()
    with pytest.raises(InvalidArguments, match="takes too long to match"):
        await Search.of("tool", "^(a|a|aa)+b$").among(SESSION, names)
    assert time.thread_time() - before < EFFORT / 2
    assert time.process_time() - started < 20 * EFFORT


async def test_others_run_meanwhile() -> None:
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            ticks += 1
            await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(tick)
        with pytest.raises(InvalidArguments):
            await Search.of("tool", "^(a|a|aa)+b$").among(SESSION, ["a" * 60])
        nursery.cancel_scope.cancel()
    assert ticks > 10


async def test_no_name_is_so_long_that_it_is_searched_to_its_end() -> None:
    names = ["x" * NAME + "y", "y"]
    assert await Search.of("tool", "y").among(SESSION, names) == [False, True]
