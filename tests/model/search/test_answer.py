"""As much as there is room for, and never more."""

from __future__ import annotations

import keyword
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emceepee_trio.model.json.intake import finished
from emceepee_trio.model.search.answer import ROOM, Findings, Hit
from emceepee_trio.model.search.index import KINDS
from emceepee_trio.model.search.signatures import stub, typed
from emceepee_trio.model.search.tokens import tokens
from emceepee_trio.model.wire import dumps

Json = dict[str, Any]


def schema(properties: Json, *required: str) -> Json:
    return {"inputSchema": {"properties": properties, "required": list(required)}}


COMMIT = {"name": "commit", "description": "Record changes. And more."} | schema(
    {"files": {"type": "array", "items": {"type": "string"}}, "message": {"type": "string"}},
    "message",
)


def test_a_tool_is_one_line() -> None:
    (*_, line) = Hit("tools", "git", COMMIT).lines()
    assert line == "git.commit(message: str, files?: str[]) Record changes"
    assert stub("git", COMMIT) == "servers.git.commit(message: str, files: list[str] | None = None)"


@pytest.mark.parametrize(
    ("said", "short", "python"),
    [
        ({"type": "integer"}, "int", "int"),
        ({"type": ["string", "null"]}, "str", "str"),
        ({"anyOf": [{"type": "number"}, {"type": "null"}]}, "float", "float"),
        ({"enum": ["a", "b"]}, "a|b", "Literal['a', 'b']"),
        ({"type": "array"}, "any[]", "list[Any]"),
        ({"type": "object"}, "obj", "dict"),
        ({"type": 7}, "any", "Any"),
        (True, "any", "Any"),
    ],
)
def test_types(said: Any, short: str, python: str) -> None:
    tool = {"name": "t"} | schema({"x": said}, "x")
    assert typed(tool) == f"(x: {short})"
    assert stub("s", tool) == f"servers.s.t(x: {python})"


@pytest.mark.parametrize("name", ["get-it", "class", "_x", "2d", ""])
def test_what_has_no_name_in_python_is_called_by_its_own(name: str) -> None:
    assert not name.isidentifier() or keyword.iskeyword(name) or name.startswith("_")
    tool = {"name": name} | schema({"x": {"type": "string"}, "y": {}}, "x")
    assert stub("s", tool) == f'call_tool("s", "{name}", {{"x": str, "y": Any | absent}})'


def test_names_of_others_follow_and_small_schemas_if_there_is_room() -> None:
    findings = Findings(ROOM)
    hits = [Hit("tools", "git", COMMIT | {"name": f"commit{n}"}) for n in range(3)]
    finished(findings.fill(hits, [("git", "add"), ("git", "log"), ("hg", "push")]))
    said = findings.to_json()
    assert said["more"] == {"git": "add log", "hg": "push"}
    assert list(said["schemas"]) == ["git.commit0", "git.commit1", "git.commit2"]


def test_names_have_room_before_schemas() -> None:
    findings = Findings(ROOM)
    hits = [Hit("tools", "git", COMMIT)] * 21
    finished(findings.fill(hits, [("git", f"tool_{n}") for n in range(1000)]))
    said = findings.to_json()
    assert len(said["found"]) == 20
    assert "schemas" not in said
    assert len(said["more"]["git"].split()) > 20
    assert ROOM - 20 < tokens(dumps(said)) <= ROOM


TEXT = st.text(max_size=300) | st.sampled_from(["word " * 1000, "x" * 5000, "\ud800"])
ANY = st.recursive(
    st.none() | st.integers() | TEXT | st.booleans(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
PROPERTIES = st.dictionaries(TEXT, ANY | st.fixed_dictionaries({"type": ANY, "enum": ANY}))
ENTRIES = st.fixed_dictionaries(
    {},
    optional={
        **dict.fromkeys(("name", "title", "description", "uri", "uriTemplate", "arguments"), ANY),
        "inputSchema": ANY | st.fixed_dictionaries({"properties": PROPERTIES, "required": ANY}),
    },
)
HITS = st.builds(Hit, st.sampled_from(KINDS), st.text("ab-", min_size=1), ENTRIES)


@given(st.lists(HITS, max_size=30), st.lists(st.tuples(TEXT, TEXT)), st.booleans())
def test_whatever_servers_say_there_is_never_more_than_the_room(
    hits: Sequence[Hit], others: Sequence[tuple[str, str]], stubs: bool
) -> None:
    findings = Findings(ROOM)
    finished(findings.fill(hits, others, stubs=stubs))
    text = dumps(findings.to_json())
    assert tokens(text) <= ROOM
    assert len(text.encode("utf-8", "surrogatepass")) <= 6 * ROOM
