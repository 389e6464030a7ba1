from __future__ import annotations

import gc
import json
import weakref
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, Literal

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpu_time import LINEAR, cpu_time, growth
from effort import effort
from emceepee_trio.model.json.fields import Bounds, Doc, MaxLength, Most, Pattern, Secret, frozen
from emceepee_trio.model.json.problems import SHOWN, Expanded, did_you_mean, join, show
from emceepee_trio.model.json.strict import MISTAKES, Invalid, Problem, json_schema, structure

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@frozen
class Point:
    x: int
    y: float = 0.0


@frozen
class Everything:
    name: Annotated[str, Pattern("[a-z]+", "small letters"), Doc("What it is called.")]
    timeout_ms: Annotated[int, Bounds(0, 900_000)] = 5
    share: Annotated[float, Bounds(0)] = 0.5
    deep: bool = False
    level: Literal["stdio", "http", "sse"] = "http"
    limit: Annotated[int | None, Bounds(high=10)] = None
    words: Annotated[tuple[str, ...], MaxLength(3), Pattern("[a-z]*")] = ()
    env: Annotated[Mapping[str, str], Secret()] = attrs.field(factory=dict)
    args: Mapping[str, Any] | None = None
    content: str | tuple[Mapping[str, Any], ...] = ""
    mixed: Literal["auto"] | int = "auto"
    version: Literal[1, 2] = 1
    any: Any = None
    points: tuple[Point, ...] = ()
    note: Annotated[str, MaxLength(5)] = ""
    command_line: Annotated[tuple[str, ...] | None, Secret()] = None

    def problems(self) -> Iterator[Problem]:
        if self.deep and not self.points:
            yield Problem("points", "none, though it is deep")
            yield Problem("env.FOO", "because of that")
            yield Problem("", "odd on the whole")


def problems(data: object, **options: Any) -> list[str]:
    with pytest.raises(Invalid) as caught:
        structure(data, Everything, **options)
    assert str(caught.value) == "\n".join(map(str, caught.value.problems))
    return [str(problem) for problem in caught.value.problems]


def made(**data: object) -> Everything:
    return structure({"name": "a", **data}, Everything)


def test_what_is_right_becomes_an_instance() -> None:
    assert made(
        timeout_ms=0,
        share=2,
        limit=None,
        words=["a", "b"],
        env={"A": "b"},
        args={"q": [1, {"z": None}]},
        content=[{"type": "text"}],
        mixed=3,
        any=[1],
        points=[{"x": 1, "y": 2}],
    ) == Everything(
        "a",
        timeout_ms=0,
        share=2.0,
        words=("a", "b"),
        env={"A": "b"},
        args={"q": [1, {"z": None}]},
        content=({"type": "text"},),
        mixed=3,
        any=[1],
        points=(Point(1, 2.0),),
    )


def test_what_is_not_given_has_its_default() -> None:
    assert made() == Everything("a")


def test_an_integer_becomes_the_number_that_was_asked_for() -> None:
    assert type(made(share=1).share) is float


@pytest.mark.parametrize(
    ("given_", "said"),
    [
        ({"timeout_ms": "5"}, 'timeout_ms: expected an integer, got "5"'),
        ({"timeout_ms": 5.0}, "timeout_ms: expected an integer, got 5.0"),
        ({"timeout_ms": True}, "timeout_ms: expected an integer, got true"),
        ({"timeout_ms": None}, "timeout_ms: expected an integer, got null"),
        ({"limit": "x"}, 'limit: expected an integer, got "x"'),
        (
            {"timeout_ms": 1_000_000},
            "timeout_ms: out of range, expected 0 to 900000, got 1000000",
        ),
        ({"share": -1}, "share: out of range, expected at least 0, got -1.0"),
        ({"limit": 11}, "limit: out of range, expected at most 10, got 11"),
        ({"share": True}, "share: expected a number, got true"),
        ({"share": float("nan")}, "share: expected a number, got NaN"),
        ({"share": 10**400}, f"share: expected a number, got 1{'0' * 59}…"),
        ({"share": 10**5000}, "share: expected a number, got an integer"),
        ({"deep": "yes"}, 'deep: expected true or false, got "yes"'),
        ({"version": True}, "version: expected one of 1, 2, got true"),
        ({"deep": 1}, "deep: expected true or false, got 1"),
        ({"level": "x"}, 'level: expected one of "stdio", "http", "sse", got "x"'),
        ({"name": 5}, "name: expected a string, got 5"),
        ({"name": "A"}, 'name: expected small letters, got "A"'),
        ({"note": "123456"}, "note: too long: 6 characters, at most 5"),
        ({"note": "\ud800"}, r'note: expected a string of valid Unicode, got "\ud800"'),
        ({"words": "a"}, 'words: expected a list, got "a"'),
        ({"words": ["a", "b", 3]}, "words[2]: expected a string, got 3"),
        ({"words": ["a"] * 4}, "words: too many: 4, at most 3"),
        ({"words": ["A"]}, 'words[0]: expected to match [a-z]*, got "A"'),
        ({"env": ["s3cret"]}, "env: expected an object, got a list"),
        ({"env": {"FOO": 7}}, "env.FOO: expected a string, got an integer"),
        ({"env": {"a b": None}}, 'env["a b"]: expected a string, got null'),
        ({"command_line": "--token=s3cret"}, "command_line: expected a list, got a string"),
        ({"args": [1]}, "args: expected an object, got [1]"),
        ({"content": 5}, "content: expected a string or a list, got 5"),
        ({"content": [5]}, "content[0]: expected an object, got 5"),
        ({"mixed": "x"}, 'mixed: expected "auto" or an integer, got "x"'),
        ({"points": [{}]}, "points[0].x: missing"),
        ({"points": [{"x": 1, "z": 2}]}, 'points[0]: unknown key "z"'),
        ({"timeuot_ms": 1}, 'unknown key "timeuot_ms", did you mean "timeout_ms"?'),
        ({"Deep": True}, 'unknown key "Deep", did you mean "deep"?'),
    ],
)
def test_a_problem_says_what_was_expected_where(given_: dict[str, object], said: str) -> None:
    assert problems({"name": "a"} | given_) == [said]


def test_every_problem_is_told_at_once_under_the_path_of_the_whole() -> None:
    assert problems(
        {"colour": "x", "level": "x", "points": [1, {"x": "1"}]}, path="servers[2]"
    ) == [
        'servers[2]: unknown key "colour"',
        "servers[2].name: missing",
        'servers[2].level: expected one of "stdio", "http", "sse", got "x"',
        "servers[2].points[0]: expected an object, got 1",
        'servers[2].points[1].x: expected an integer, got "1"',
    ]


def test_what_is_no_object_at_all_is_one_problem() -> None:
    assert problems([1]) == ["expected an object, got [1]"]


def test_the_class_itself_is_asked_once_its_fields_are_right() -> None:
    assert problems({"name": "a", "deep": True}) == [
        "points: none, though it is deep",
        "env.FOO: because of that",
        "odd on the whole",
    ]
    assert problems({"name": 1, "deep": True}) == ["name: expected a string, got 1"]


def test_aliases_are_other_names_and_problems_use_the_one_that_was_written() -> None:
    aliases = {"timeoutMs": "timeout_ms", "abscissa": "x", "name": "note", "nameless": "nothing"}
    data = {"name": "a", "timeoutMs": 7, "points": [{"abscissa": 1}]}
    assert structure(data, Everything, aliases=aliases) == Everything(
        "a", timeout_ms=7, points=(Point(1),)
    )
    assert problems({"name": "a", "timeoutMs": -1, "nameless": 1}, aliases=aliases) == [
        'unknown key "nameless", did you mean "name"?',
        "timeoutMs: out of range, expected 0 to 900000, got -1",
    ]
    assert problems({"name": "a", "timeout_ms": 1, "timeoutMs": 2}, aliases=aliases) == [
        "timeoutMs: given twice, also as timeout_ms"
    ]


def test_secrets_are_in_no_repr() -> None:
    assert "s3cret" not in repr(made(env={"A": "s3cret"}))


def test_a_string_made_from_another_is_shown_as_it_was_written() -> None:
    name = Expanded.of("S3CRET", "${NAME}")
    assert problems({"name": name}) == ['name: expected small letters, got "${NAME}"']
    assert made(name=Expanded.of("good", "${NAME}")).name == "good"


def test_values_are_shown_short_and_without_control_characters() -> None:
    assert show({"a": [1, None]}) == '{"a":[1,null]}'
    assert show("é\x1b[31m\u202e\n") == r'"é\u001b[31m\u202e\n"'
    assert show("x" * 100) == '"' + "x" * 59 + "…"
    assert show(object()) == "something else"


def test_paths_stay_one_line_whatever_the_keys() -> None:
    assert join(join(join("", "a"), 2), "b-c") == "a[2].b-c"
    assert join("a", "b.c") == 'a["b.c"]'
    assert join("", "new\nline") == r'["new\nline"]'
    assert len(join("", "k" * 1000)) < 100


def test_a_hint_is_given_for_close_words_only() -> None:
    assert did_you_mean("maxAttemps", ["max_attempts", "jitter"]) == (
        ', did you mean "max_attempts"?'
    )
    assert did_you_mean("colour", ["max_attempts", "jitter"]) == ""


@given(json_values)
def test_any_json_is_either_made_or_invalid(data: object) -> None:
    said: list[Problem] | None = None
    try:
        structure(data, Everything)
    except Invalid as exc:
        said = exc.problems
    assert said is None or (said and all("\n" not in str(problem) for problem in said))


def test_a_schema_says_what_the_class_takes_and_nothing_else() -> None:
    point = {
        "type": "object",
        "properties": {"x": {"type": "integer"}, "y": {"type": "number", "default": 0.0}},
        "required": ["x"],
        "additionalProperties": False,
    }
    assert json_schema(Everything) == {
        "type": "object",
        "properties": {
            "name": {"type": "string", "pattern": "[a-z]+", "description": "What it is called."},
            "timeout_ms": {"type": "integer", "minimum": 0, "maximum": 900_000, "default": 5},
            "share": {"type": "number", "minimum": 0, "default": 0.5},
            "deep": {"type": "boolean", "default": False},
            "level": {"type": "string", "enum": ["stdio", "http", "sse"], "default": "http"},
            "limit": {"type": "integer", "maximum": 10},
            "words": {
                "type": "array",
                "items": {"type": "string", "pattern": "[a-z]*"},
                "maxItems": 3,
            },
            "env": {"type": "object", "additionalProperties": {"type": "string"}},
            "args": {"type": "object"},
            "content": {
                "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "object"}}],
                "default": "",
            },
            "mixed": {
                "anyOf": [{"type": "string", "enum": ["auto"]}, {"type": "integer"}],
                "default": "auto",
            },
            "version": {"type": "integer", "enum": [1, 2], "default": 1},
            "any": {},
            "points": {"type": "array", "items": point},
            "note": {"type": "string", "maxLength": 5, "default": ""},
            "command_line": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["name"],
        "additionalProperties": False,
    }


def test_a_schema_of_nothing_is_an_object_without_properties() -> None:
    @attrs.frozen
    class Nothing:
        pass

    assert json_schema(Nothing) == {
        "type": "object",
        "properties": {},
        "additionalProperties": False,
    }


def test_unknown_keys_are_counted_where_there_are_too_many() -> None:
    said = problems({"name": "a", **{f"no{n}": n for n in range(1000)}})
    assert len(said) == MISTAKES + 1
    assert said[-1] == f"and {1000 - MISTAKES} more unknown keys"


def test_what_a_stranger_says_is_not_looked_at() -> None:
    @frozen
    class Form:
        content: Annotated[Mapping[str, Any], Doc("its own affair")]

    def answer(size: int) -> Callable[[], object]:
        return lambda: structure({"content": {"a": [0] * size}}, Form)

    answer(1)()  # what is made once
    assert effort(answer(10_000)) == effort(answer(10))


def test_a_list_is_not_looked_at_to_its_end_if_everything_is_wrong_in_it() -> None:
    said = problems({"name": "a", "points": [5] * 1000})
    assert len(said) == MISTAKES + 1
    assert said[0] == "points[0]: expected an object, got 5"
    assert said[-1] == f"points: and {1000 - MISTAKES} more, not looked at"
    assert len(problems({"name": "a", "points": [5] * MISTAKES})) == MISTAKES


@frozen
class Bounded:
    word: Annotated[str, Most(most_characters=5)] = ""
    words: Annotated[tuple[str, ...] | None, Most(3, 5)] = None
    env: Annotated[Mapping[str, str], Most(2, 5), Secret()] = attrs.field(factory=dict)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({"word": "x" * 6}, "word: too long: 6 characters, at most 5"),
        ({"words": ["a"] * 4}, "words: too many: 4, at most 3"),
        ({"words": [5] * 4}, "words: too many: 4, at most 3"),
        ({"words": ["a", "x" * 6]}, "words[1]: too long: 6 characters, at most 5"),
        ({"env": dict.fromkeys("abc", "x")}, "env: too many: 3, at most 2"),
        ({"env": {"a": "x" * 6}}, "env.a: too long: 6 characters, at most 5"),
        ({"env": {"x" * 6: "a"}}, "env.xxxxxx: too long: 6 characters, at most 5"),
    ],
)
def test_what_is_more_than_anybody_means_is_refused_unseen(data: object, said: str) -> None:
    with pytest.raises(Invalid) as caught:
        structure(data, Bounded)
    assert [str(problem) for problem in caught.value.problems] == [said]


def test_such_a_bound_is_no_part_of_a_schema() -> None:
    assert json_schema(Bounded)["properties"]["word"] == {"type": "string", "default": ""}


@pytest.mark.parametrize(
    "data",
    [
        lambda n: {"name": "a", **{f"nome{i}": i for i in range(n)}},
        lambda n: {"name": 5, "args": {str(i): i for i in range(n)}},
        lambda n: {"name": "a", "points": [{"x": "y"}] * n},
        lambda n: {"name": 5 * ["x" * n]},
        lambda n: {"name": "a", "deep": [[[{}]]] * n},
        lambda n: {"name": "a", "any": "é" * n, "note": "é" * n},
    ],
    ids=["unknown", "free", "wrong", "long", "deep", "text"],
)
def test_what_is_wrong_is_found_in_a_time_in_proportion(data: Callable[[int], object]) -> None:
    def act(given: object) -> None:
        with pytest.raises(Invalid):
            structure(given, Everything)

    def make(size: int) -> Callable[[], object]:
        given = data(size)
        return lambda: act(given)

    assert growth(make, 20_000) < LINEAR


def test_what_was_refused_is_kept_by_nobody() -> None:
    """A message can be large, and the collector comes when it likes: late, for all of them."""

    class Words(list[object]):
        """One that can be watched."""

    gc.collect()
    gc.disable()
    try:
        words = Words([5])
        watched = weakref.ref(words)
        with pytest.raises(Invalid):
            structure({"name": "a", "words": words}, Everything)
        del words
        assert watched() is None
    finally:
        gc.enable()


def written(value: object) -> str:
    """The whole of it first, and cut then."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    text = text if len(text) <= SHOWN else text[:SHOWN] + "…"
    return "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in text)


@given(json_values | st.lists(json_values))
def test_a_value_is_shown_as_if_it_were_written_out_and_cut(value: object) -> None:
    assert show(value) == written(value)


@pytest.mark.parametrize("value", [["x" * 10**7], {"x" * 10**7: 1}, [[[1] * 1000]] * 1000])
def test_a_large_value_is_not_written_out_to_show_its_beginning(value: object) -> None:
    assert show(value) == written(value)
    assert cpu_time(lambda: show(value)) < 0.005


def test_of_very_many_names_only_some_are_compared() -> None:
    def make(size: int) -> Callable[[], object]:
        known = [f"{'ab' * 10}{n}" for n in range(size)]
        return lambda: did_you_mean("ba" * 10_000, known)

    assert growth(make, 2000) < 2
    assert (
        did_you_mean("echo", ["x" * 50, "ecko"] + ["far_away"] * 5000) == ', did you mean "ecko"?'
    )
