"""Values of peers in messages of ours: all of the short ones, little of the long ones."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from emceepee_trio.model.text.brief import brief
from strategies import json_values


@given(json_values)
def test_whatever_it_is_it_is_short(value: Any) -> None:
    assert len(brief({"x": value, "y": [value] * 10}, 200)) < 50_000


@pytest.mark.parametrize("value", [1, 1.5, None, "a", [], {}, {"a": [None], "b": 1}])
def test_what_is_short_is_shown_as_it_is(value: Any) -> None:
    assert brief(value) == repr(value)


def test_of_what_is_long_a_little_is_shown() -> None:
    many = {f"{n}": n for n in range(10)}
    assert brief(many) == "{'0': 0, '1': 1, '2': 2, '3': 3, ...}"
    assert brief("x" * 100, 20).count("x") < 20
    deep: Any = []
    for _ in range(100):
        deep = [deep]
    assert brief(deep) == "[[[[[[[...]]]]]]]"
    with_keys = dict.fromkeys(("a", 1, None, 2.5), 1)  # which no sort could order
    assert brief(with_keys) == repr(with_keys)
