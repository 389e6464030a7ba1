"""JSON in a line."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emceepee_trio.model.json.shape import LONGEST, Elements, first_of, shape
from emceepee_trio.model.json.weight import is_more_than

KEYS = "a, b, c, d, e, f, g, h, i, j, k, l"


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ([{"id": 1, "name": "x"}] * 1204, "array of 1,204 objects with keys id, name"),
        ([{"a": 1}, {"b": 2}], "array of 2 objects with keys a, b"),
        ([1, 2.5], "array of 2 numbers"),
        (["x"], "array of 1 string"),
        ([1, "x", None], "array of 3 values"),
        ([[1], [2]], "array of 2 arrays"),
        ([], "empty array"),
        ({}, "empty object"),
        ({"a": [1], "b": 2}, "object with keys a (array of 1 number), b"),
        (dict.fromkeys("abcdefghijklm"), f"object with keys {KEYS} and 1 more"),
        ("x", "string"),
        (True, "boolean"),
        (None, "null"),
    ],
)  # fmt: skip
def test_it_says_what_there_is(value: Any, said: str) -> None:
    assert shape(value) == said


def test_it_is_a_line() -> None:
    assert len(shape([{"k" * 1000 + str(n): n} for n in range(100)])) <= LONGEST + 1


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.just('\\"],{'),
    lambda inner: (
        st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=4), inner, max_size=5)
    ),
    max_leaves=20,
)


@given(st.lists(json_values, min_size=1) | st.dictionaries(st.text(), json_values, min_size=1),
       st.integers(1, 9))  # fmt: skip
def test_elements_are_counted_as_they_go_by(value: Any, piece: int) -> None:
    data = json.dumps(value).encode()
    elements = Elements()
    for start in range(0, len(data), piece):
        elements.feed(data[start : start + piece])
    assert elements.count == len(value)


def test_of_a_long_text_the_beginning_is_looked_at() -> None:
    rows = json.dumps([{"id": n, "tags": ["x"]} for n in range(5000)]).encode()
    found = first_of(rows[:1000], json.loads)
    assert shape(found, 5000) == "array of 5,000 objects with keys id, tags"


@given(json_values, st.integers(0, 100))
def test_what_is_more_is_found_without_writing_it(value: Any, most: int) -> None:
    size = len(json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass"))
    if not is_more_than(value, most):
        assert size < 8 * most + 20
