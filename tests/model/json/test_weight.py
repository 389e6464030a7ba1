from __future__ import annotations

import json
import marshal
from collections.abc import Generator
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cpu_time import cpu_time, growth
from emceepee_trio.model.json.spelling import weighed
from emceepee_trio.model.json.weight import beginning, cut, weigh
from strategies import json_values


def written(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


@given(json_values, st.integers(0, 40))
@example({"": [None, None], "00000000": None, "a": None}, 15)
def test_a_beginning_is_that_of_the_whole(value: Any, length: int) -> None:
    assert beginning(value, length) == cut(written(value), length)


@given(json_values)
def test_a_value_weighs_about_what_it_is_long(value: Any) -> None:
    length = len(written(value).encode("utf-8", "surrogatepass"))
    assert length / 8 < weigh(value) <= 5 * length + 10


@pytest.mark.parametrize(
    ("value", "steps"),
    [
        ([], 0),
        ("x" * 10**6, 0),
        ([{}] * 30_000, 60),
        ({str(n): {"type": "string"} for n in range(30_000)}, 60),
        ({"a": ["x" * 10**5, {"b": list(range(10**5))}], "c": None}, 200),
    ],
)
def test_what_is_long_weighs_the_same_in_steps(value: Any, steps: int) -> None:
    taken, weight = list[None](), 0

    def weighing() -> Generator[None, None, None]:
        nonlocal weight
        weight = yield from weighed(value)

    taken += weighing()
    assert weight == weigh(value)
    assert len(taken) >= steps


@pytest.mark.parametrize(
    "value", ["x" * 10**7, [{}] * 300_000, {str(n): n for n in range(10**5)}, "é" * 10**6]
)
def test_neither_takes_long(value: object) -> None:
    assert cpu_time(lambda: weigh(value)) < 0.1
    assert cpu_time(lambda: beginning(value, 1000)) < 0.02


def test_a_long_string_is_not_copied_to_be_weighed() -> None:
    value = {"content": [{"type": "text", "text": "x" * 10**8}]}
    assert weigh(value) == len(marshal.dumps(value, 2))
    assert growth(lambda size: lambda: weigh({"text": "x" * size}), 10**6) < 2


def test_what_is_json_only_to_us_has_a_weight_too() -> None:
    class Text(str):
        __slots__ = ()

    assert weigh([Text("x" * 1000)]) > 1000
