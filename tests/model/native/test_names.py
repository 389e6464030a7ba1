from __future__ import annotations

import itertools
import random
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from emceepee_trio.config.server import NAME
from emceepee_trio.model.native.names import native_name, plain_name
from real_tools import REAL, servers

MOST = 45
LIMIT = 49
"""Of what is longer, clients that put ``mcp__emceepee__`` before it make no name any more."""

server_names = st.from_regex(NAME, fullmatch=True)
likely = st.text(st.sampled_from("ab_.-é "), max_size=6)
tool_names = st.one_of(likely, st.text(max_size=60))
likely_servers = st.text(st.sampled_from("ab_.-"), min_size=1, max_size=5).map(lambda s: f"a{s}")


@pytest.mark.parametrize(
    ("server", "tool", "native"),
    [
        ("git", "log", "git__log"),
        ("my-git_2", "get-log_x", "my-git_2__get-log_x"),
        ("a", "_b", "a___b"),
        ("a", "b__c", "a__b__c"),
        ("a", "x" * 42, "a__" + "x" * 42),
    ],
)
def test_a_name_is_that_of_the_server_and_that_of_the_tool(
    server: str, tool: str, native: str
) -> None:
    assert native_name(server, tool, MOST) == native
    assert plain_name(server, native, MOST) == tool


@pytest.mark.parametrize(
    ("server", "tool", "beginning"),
    [
        ("git.hub", "log", "git_hub__log_"),
        ("git", "log files", "git__log_files_"),
        ("git", "größe", "git__gr__e_"),
        ("git", "\ud800\0", "git_____"),
        ("a_", "b", "a___b_"),
        ("a__b", "c", "a__b__c_"),
        ("a", "x" * 43, "a__" + "x" * 35 + "_"),
        ("s" * 64, "tool", "s" * 38 + "_"),
    ],
)
def test_what_is_altered_or_cut_ends_with_a_hash(server: str, tool: str, beginning: str) -> None:
    native = native_name(server, tool, MOST)
    assert re.fullmatch(re.escape(beginning) + "[0-9a-f]{6}", native)
    assert len(native) <= MOST
    assert plain_name(server, native, MOST) != tool


def test_names_stay_what_they_are() -> None:
    """A client has them in its lists of what is allowed, and people have them in theirs."""
    assert native_name("git.hub", "log", MOST) == "git_hub__log_73d78d"
    assert native_name("git", "x" * 60, MOST) == "git__" + "x" * 33 + "_39cc5c"


@example("a", "x" * 43, MOST)
@example("s" * 64, "x", 16)
@given(server_names, tool_names, st.integers(16, 128))
def test_everybody_takes_a_name(server: str, tool: str, most: int) -> None:
    native = native_name(server, tool, most)
    assert re.fullmatch("[A-Za-z0-9_-]+", native)
    assert len(native) <= most
    assert plain_name(server, native, most) in (tool, None) or native[-7] == "_"


@example({("a_", "b"), ("a", "_b")})
@example({("a__b", "c"), ("a", "b__c")})
@given(st.sets(st.tuples(likely_servers, likely), min_size=2))
def test_no_two_are_called_alike_though_they_look_it(tools: set[tuple[str, str]]) -> None:
    # Names that happen to end like a hash are another matter.
    natives = {native_name(server, tool, MOST) for server, tool in tools}
    assert len(natives) == len(tools)


@pytest.mark.parametrize("number", [30, len(REAL)])
def test_of_many_servers_no_name_is_too_long_or_given_twice(number: int) -> None:
    there = [(server, tool) for server, tools in servers(number).items() for tool in tools]
    natives = [native_name(server, tool, MOST) for server, tool in there]
    assert len({*natives}) == len(there) == 527
    assert max(map(len, natives)) <= MOST <= LIMIT


def test_no_name_depends_on_what_else_there_is_or_came_before() -> None:
    """In 1000 orders of adding and removing servers."""
    there = servers(30)
    first = {
        server: [native_name(server, tool, MOST) for tool in tools]
        for server, tools in there.items()
    }
    chance = random.Random(11)
    present: dict[str, list[str]] = {}
    for name in itertools.islice(iter(lambda: chance.choice(list(there)), None), 1000):
        if name in present:
            del present[name]
        else:
            present[name] = [native_name(name, tool, MOST) for tool in there[name]]
        assert all(first[server] == natives for server, natives in present.items())
