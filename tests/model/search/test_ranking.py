"""What fits a query best."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emceepee_trio.model.json.intake import Steps, finished
from emceepee_trio.model.search import index as indexing
from emceepee_trio.model.search.index import Entry, Index
from emceepee_trio.model.search.ranking import BREATH, Found, is_slip, rank, wide
from finding import index_of, names, ranked


def tool(server: str, name: str, description: str = "", **parameters: str) -> Entry:
    return Entry("tools", server, name, "", description, tuple(parameters.items()))


TOOLS = [
    tool("maps", "geocode_address", "Convert an address into coordinates", address="of a place"),
    tool("maps", "reverse_geocode", "Convert coordinates to an address", latitude="", longitude=""),
    tool("maps", "find_parking", "Parking near a point", radius="in metres"),
    tool("files", "read_file", "The content of a file", path="which one"),
    tool("files", "write_file", "Put content into a file", path="which one", content=""),
    tool("files", "delete_file", "Take a file away", path="which one"),
    tool("trains", "get-tickets", "查询12306余票信息", date="查询日期"),
    tool("charts", "generateBarChart", "A chart with bars", data="numbers"),
    tool("git", "git_commit", "Record changes", message="of the commit"),
]
INDEX = index_of(dict(enumerate(TOOLS)))


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("geocode addresses", "geocode_address"),
        ("draw a bar chart of these numbers", "generateBarChart"),
        ("remove this file", "delete_file"),
        ("余票", "get-tickets"),
        ("票", "get-tickets"),
        ("comit the changes", "git_commit"),
        ("where can I park near here", "find_parking"),
        ("open /srv/notes.txt", "read_file"),
        ("barchart", "generateBarChart"),
    ],
)
def test_the_one_that_is_meant_is_first(query: str, first: str) -> None:
    assert names(INDEX, query)[0] == first


@pytest.mark.parametrize(
    "query", ["read_file", "readFile", "READ FILE", "files.read_file", "files/read_file"]
)
def test_an_exact_name_is_first(query: str) -> None:
    many = {n: tool("other", f"tool{n}", "read the file read_file files") for n in range(10, 60)}
    assert names(index_of(dict(enumerate(TOOLS)) | many), query)[0] == "read_file"


def test_a_name_in_a_sentence_counts_more_than_words() -> None:
    assert names(INDEX, "after reading each file call git_commit with the file")[0] == "git_commit"


def test_a_name_as_it_is_spelled_is_before_the_others() -> None:
    two = index_of({0: tool("a", "read_file"), 1: tool("a", "ReadFile")})
    assert names(two, "ReadFile") == ["ReadFile", "read_file"]


def test_nothing_fits_what_nobody_says() -> None:
    for query in ("xyzzy", "", "the of", "(.*"):
        assert names(INDEX, query) == []


def test_only_what_is_wanted_is_found() -> None:
    found = ranked(INDEX, "file", wanted=lambda number: number == 5)
    assert found.numbers == [5]


def test_several_servers_come_before_the_fifth_of_one() -> None:
    entries = {n: tool("big", f"list_files_{n}") for n in range(10)}
    entries |= {10 + n: tool(f"small{n}", "show", "a list of files, long ago") for n in range(5)}
    index = index_of(entries)
    found = wide(index, ranked(index, "list files").numbers)
    servers = [index.entries[number].server for number in found]
    assert len(set(servers[: servers.index("big", 4) if servers[4] == "big" else 5])) > 1
    assert servers[:8].count("big") == 4
    assert sorted(found) == sorted(ranked(index, "list files").numbers)


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        ("calculate", "caculate", True),
        ("trend", "treend", True),
        ("cat", "act", True),
        ("cat", "dog", False),
        ("trend", "trreend", False),
    ],
)
def test_slips(a: str, b: str, *, same: bool) -> None:
    assert is_slip(a, b) is is_slip(b, a) is same


WORDS = st.sampled_from(["get", "file", "list_files", "readFile", "chart", "票务", "trends", "x1"])
ENTRIES = st.builds(
    Entry,
    st.sampled_from(indexing.KINDS),
    st.sampled_from(["one", "two", "three"]),
    WORDS,
    WORDS,
    st.lists(WORDS, max_size=6).map(" ".join),
    st.lists(st.tuples(WORDS, WORDS), max_size=3).map(tuple),
)
CHANGES = st.lists(st.tuples(st.integers(0, 12), st.none() | ENTRIES), max_size=40)


@given(CHANGES, st.lists(WORDS | st.sampled_from(["fil", "delete", "chrat"]), max_size=4))
def test_an_index_that_was_changed_is_as_one_made_from_scratch(
    changes: Sequence[tuple[int, Entry | None]], query: Sequence[str]
) -> None:
    index, there = Index(), dict[int, Entry]()
    for number, entry in changes:
        if number in there:
            index.remove(number)
            del there[number]
        if entry is not None:
            index.add(number, entry)
            there[number] = entry
    fresh = index_of(dict(sorted(there.items())))
    assert index.size == fresh.size
    for part in ("postings", "by_name", "by_server", "in_names", "entries"):
        assert getattr(index, part).keys() == getattr(fresh, part).keys()
    one, other = ranked(index, " ".join(query)), ranked(fresh, " ".join(query))
    assert (one.numbers, one.scores) == (other.numbers, other.scores)


@pytest.mark.parametrize("most", [100, 10_000])
def test_very_many_that_fit_alike_are_put_in_order_in_steps(most: int) -> None:
    index = Index()
    for number in range(10_000):
        index.add(number, Entry("tools", "server", "same"))
    taken = 0

    def counted() -> Steps[Found]:
        nonlocal taken
        steps = rank(index, "same", most)
        while True:
            try:
                yield next(steps)
            except StopIteration as end:
                found: Found = end.value
                return found
            taken += 1

    assert finished(counted()).numbers == list(range(most))
    assert taken > 10_000 // BREATH
