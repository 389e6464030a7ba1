from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emceepee_trio.model.json.jsonc import SyntaxProblem, loads, repeated_keys


def test_comments_and_trailing_commas_are_accepted() -> None:
    text = """// first
    {"a": [1, 2, /* two */ ], // "b": 1
     "c": {"d": null,}, /* , } */ }
    """
    assert loads(text) == {"a": [1, 2], "c": {"d": None}}


def test_what_looks_like_them_inside_a_string_stays() -> None:
    data = {"url": "http://h/*x*/", 'q"//': ",]", "b\\": "//"}
    assert loads(json.dumps(data)) == data


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "line 1, column 1: expecting value"),
        ('{\n  "a": 1\n  "b": 2\n}', "line 3, column 3: expecting ',' delimiter"),
        (
            '{ // note\n "a": /* b */ x}',
            "line 2, column 15: expecting value",
        ),
        ("[,]", "line 1, column 2: expecting value"),
        ("[1,,]", "line 1, column 4: expecting value"),
        ('{"a": 1,,}', "line 1, column 9: expecting property name enclosed in double quotes"),
        ('{"a"', "line 1, column 5: expecting ':' delimiter"),
        ('{"a": "b', "line 1, column 7: unterminated string starting at"),
        ("{} {}", "line 1, column 4: extra data"),
        ("[1] /* open", "line 1, column 5: extra data"),
        ("[NaN]", "NaN is not JSON"),
        ("[-Infinity]", "-Infinity is not JSON"),
        ("[" * 100_000, "nested deeper than 200 levels"),
    ],
)
def test_a_mistake_is_told_with_its_place(text: str, said: str) -> None:
    with pytest.raises(SyntaxProblem) as caught:
        loads(text)
    assert str(caught.value).startswith(said)


def test_a_number_beyond_reason_is_a_mistake() -> None:
    with pytest.raises(SyntaxProblem, match="digits"):
        loads("9" * 10_000)


def test_keys_that_stand_twice_are_remembered() -> None:
    data = loads('{"a": 1, "b": {"c": 1, "c": 2, "c": 3}, "a": 2}')
    assert isinstance(data, dict)
    assert repeated_keys(data) == ("a",)
    assert repeated_keys(data["b"]) == ("c",)
    assert repeated_keys({}) == ()


@given(st.text(alphabet='"\\/*,[]{}:1a \n', max_size=40))
def test_any_text_is_read_or_a_mistake(text: str) -> None:
    try:
        strict = json.loads(text)
    except ValueError:
        try:
            loads(text)
        except SyntaxProblem:
            pass
    else:
        assert loads(text) == strict
