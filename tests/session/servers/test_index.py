"""What a session can find, kept up with what its servers say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from emceepee_trio.model.json.intake import finished
from emceepee_trio.model.search.index import Kind
from emceepee_trio.session.servers.index import SessionIndex
from finding import ranked

WORDS = ["get", "file", "list_files", "readFile", "chart", "票务", "trends"]
ENTRY: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {"name": st.sampled_from(WORDS) | st.none()},
    optional={
        "description": st.lists(st.sampled_from(WORDS), max_size=4).map(" ".join) | st.integers(),
        "inputSchema": st.fixed_dictionaries(
            {"properties": st.dictionaries(st.sampled_from(WORDS), st.just({}), max_size=2)}
        ),
        "arguments": st.lists(st.fixed_dictionaries({"name": st.sampled_from(WORDS)}), max_size=2),
        "uri": st.sampled_from(["file:///chart", "file:///get"]),
    },
)
KINDS: list[Kind] = ["tools", "prompts", "resources"]
LISTS = st.dictionaries(
    st.tuples(st.sampled_from(["one", "two", "three"]), st.sampled_from(KINDS)),
    st.lists(ENTRY, max_size=6),
    max_size=4,
)
Lists = Mapping[tuple[str, Kind], Sequence[Mapping[str, Any]]]


def bring(kept: SessionIndex, lists: Lists) -> None:
    finished(kept.keep_only({server for server, _ in lists}))
    for server in {server for server, _ in lists}:
        for kind in KINDS:
            finished(kept.update(server, kind, lists.get((server, kind), [])))


def fits(kept: SessionIndex, query: str) -> list[tuple[float, str, str, str, str]]:
    found = ranked(kept.index, query)
    entries = [(found.scores[n], kept.index.entries[n], kept.said[n]) for n in found.numbers]
    told = [(score, e.server, e.kind, e.name, repr(said)) for score, e, said in entries]
    # Two of one name that fit alike are in the order in which they came.
    return sorted(told, key=lambda each: (-each[0], each[1:]))


@given(st.lists(LISTS, min_size=1, max_size=5), st.lists(st.sampled_from(WORDS), max_size=3))
def test_after_any_changes_it_is_as_one_made_from_scratch(
    history: Sequence[Lists], query: Sequence[str]
) -> None:
    kept, fresh = SessionIndex(), SessionIndex()
    for lists in history:
        bring(kept, lists)
    bring(fresh, history[-1])
    assert fits(kept, " ".join(query)) == fits(fresh, " ".join(query))
    for (server, kind), entries in history[-1].items():
        assert [kept.said[n] for n in kept.numbers(server, kind)] == entries


def test_only_what_has_changed_is_made_anew() -> None:
    kept = SessionIndex()
    before = [{"name": "one"}, {"name": "two"}, {"name": "three"}]
    finished(kept.update("s", "tools", before))
    first = list(kept.numbers("s", "tools"))
    finished(kept.update("s", "tools", [{"name": "three"}, {"name": "one"}, {"name": "four"}]))
    after = kept.numbers("s", "tools")
    assert after[:2] == [first[2], first[0]]
    assert after[2] not in first
    assert ranked(kept.index, "two").numbers == []


def test_a_change_that_was_interrupted_is_made_by_the_next() -> None:
    kept = SessionIndex()
    finished(kept.update("s", "tools", [{"name": f"old{n}"} for n in range(30)]))
    new = [{"name": f"new{n}"} for n in range(30)]
    steps = kept.update("s", "tools", new)
    for _ in range(5):
        next(steps)
    steps.close()
    finished(kept.update("s", "tools", new))
    assert [kept.said[n] for n in kept.numbers("s", "tools")] == new
    assert len(kept.index.entries) == 30


def test_what_is_removed_is_found_no_more() -> None:
    kept = SessionIndex()
    for server in ("one", "two", "three"):
        finished(kept.update(server, "tools", [{"name": "squid"}]))
    finished(kept.keep_only(["two"]))
    assert [entry.server for entry in kept.index.entries.values()] == ["two"]
    finished(kept.update("one", "tools", [{"name": "squid"}]))
    assert len(ranked(kept.index, "squid").numbers) == 2
