from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any

import attrs
import pytest
from hypothesis import given

from cpu_time import LINEAR, growth
from emceepee_trio.model.json.fields import Bounds, Most, frozen
from emceepee_trio.model.json.lenient import NAMED, lenient
from emceepee_trio.model.json.problems import Invalid
from emceepee_trio.model.json.strict import structure
from strategies import json_values


@frozen
class Point:
    x: int
    y: float = 0.0

    @staticmethod
    def meant(given: Mapping[str, Any]) -> dict[str, Any]:
        return {"x" if key == "abscissa" else key: value for key, value in given.items()}


@frozen
class Everything:
    name: str
    timeout_ms: Annotated[int, Bounds(0, 900_000)] = 5
    share: float = 0.5
    deep: bool = False
    limit: int | None = 3
    words: Annotated[tuple[str, ...], Most(3)] = ()
    args: Mapping[str, Any] | None = None
    content: str | tuple[Mapping[str, Any], ...] = ""
    any: Any = 7
    points: Annotated[tuple[Point, ...], Most(2)] = ()
    point: Point | None = None
    by_name: Mapping[str, Any] = attrs.field(factory=dict)


def read(data: Any) -> Everything:
    value, ignored = lenient({"name": "a"} | data, Everything)
    assert ignored == []
    return structure(value, Everything)


def refused(data: Any) -> list[str]:
    value, ignored = lenient({"name": "a"} | data, Everything)
    assert ignored == []
    with pytest.raises(Invalid) as caught:
        structure(value, Everything)
    return [str(problem) for problem in caught.value.problems]


@pytest.mark.parametrize(
    ("loose", "meant"),
    [
        ({"timeout_ms": 5000.0}, Everything("a", timeout_ms=5000)),
        ({"timeout_ms": "5000"}, Everything("a", timeout_ms=5000)),
        ({"timeout_ms": "5000.0"}, Everything("a", timeout_ms=5000)),
        ({"timeout_ms": None}, Everything("a")),
        ({"share": "0.25"}, Everything("a", share=0.25)),
        ({"share": None, "deep": None, "words": None, "points": None}, Everything("a")),
        ({"deep": "true"}, Everything("a", deep=True)),
        ({"limit": None}, Everything("a", limit=None)),
        ({"limit": "4"}, Everything("a", limit=4)),
        ({"any": None}, Everything("a")),
        ({"any": "5"}, Everything("a", any="5")),
        ({"words": '["b"]', "args": '{"q": "1"}'}, Everything("a", words=("b",), args={"q": "1"})),
        ({"content": "[]"}, Everything("a", content="[]")),
        ({"args": {"n": 5.0, "m": None}}, Everything("a", args={"n": 5.0, "m": None})),
        ({"points": [{"x": "1", "y": None}]}, Everything("a", points=(Point(1),))),
        ({"points": '[{"x": 1.0}]'}, Everything("a", points=(Point(1),))),
        ({"point": '{"abscissa": "2"}'}, Everything("a", point=Point(2))),
        ({"by_name": None}, Everything("a")),
    ],
)
def test_what_is_meant_is_taken(loose: Any, meant: Everything) -> None:
    assert read(loose) == meant


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"timeout_ms": 0.5}, "timeout_ms: expected an integer, got 0.5"),
        ({"timeout_ms": "0.5"}, "timeout_ms: expected an integer, got 0.5"),
        ({"timeout_ms": "5s"}, 'timeout_ms: expected an integer, got "5s"'),
        ({"timeout_ms": ""}, 'timeout_ms: expected an integer, got ""'),
        ({"timeout_ms": True}, "timeout_ms: expected an integer, got true"),
        ({"timeout_ms": "-1"}, "timeout_ms: out of range, expected 0 to 900000, got -1"),
        ({"timeout_ms": 1e300}, "timeout_ms: out of range, expected 0 to 900000, got 1"),
        ({"deep": "yes"}, 'deep: expected true or false, got "yes"'),
        ({"deep": 1}, "deep: expected true or false, got 1"),
        ({"name": None}, "name: expected a string, got null"),
        ({"name": 5}, "name: expected a string, got 5"),
        ({"args": "{"}, 'args: expected an object, got "{"'),
        ({"args": "[1]"}, 'args: expected an object, got "[1]"'),
        ({"points": [{"y": 1}]}, "points[0].x: missing"),
        ({"points": [{"x": None}]}, "points[0].x: expected an integer, got null"),
        ({"points": [{}] * 3}, "points: too many: 3, at most 2"),
        ({"words": '["a", "a", "a", "a"]'}, "words: too many: 4, at most 3"),
    ],
)
def test_nothing_is_guessed_beyond_that(wrong: Any, said: str) -> None:
    (problem,) = refused(wrong)
    assert problem.startswith(said)


def test_strangers_are_left_out_and_named() -> None:
    data = {"name": "a", "nmae": 1, "points": [{"x": 1, "z": 2}], "by_name": {"free": 1}}
    value, ignored = lenient(data, Everything)
    assert value == {"name": "a", "points": [{"x": 1}], "by_name": {"free": 1}}
    assert list(map(str, ignored)) == [
        'unknown key "nmae", did you mean "name"?',
        'points[0]: unknown key "z"',
    ]


def test_other_spellings_are_known() -> None:
    data = {"name": "a", "timeoutMs": "7"}
    value, ignored = lenient(data, Everything, aliases={"timeoutMs": "timeout_ms"})
    assert (value, ignored) == ({"name": "a", "timeoutMs": 7}, [])


def test_strangers_are_counted_where_there_are_too_many() -> None:
    _, ignored = lenient({f"no{n}": n for n in range(1000)}, Everything)
    assert len(ignored) == NAMED + 1
    assert str(ignored[-1]) == f"and {1000 - NAMED} more unknown keys"


@given(json_values)
def test_anything_is_read(data: Any) -> None:
    lenient(data, Everything)
    for name in attrs.fields_dict(Everything):
        lenient({name: data}, Everything)


@pytest.mark.parametrize(
    "data",
    [
        lambda n: {f"nome{i}": i for i in range(n)},
        lambda n: {"words": ["x"] * n, "args": {str(i): i for i in range(n)}},
        lambda n: {"args": '{"x": ' + "[0," * 100 + "0" * n},
        lambda n: {"points": [{"x": "1"}] * n, "timeout_ms": "1" * n},
    ],
    ids=["unknown", "free", "spelled", "items"],
)
def test_it_takes_a_time_in_proportion(data: Callable[[int], object]) -> None:
    def make(size: int) -> Callable[[], object]:
        given = data(size)
        return lambda: lenient(given, Everything)

    assert growth(make, 20_000) < LINEAR
