from __future__ import annotations

import socket
import time
from collections.abc import Mapping
from typing import Any, NoReturn

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emceepee_trio.model.forms import PATTERNS, UnusableForm, filled, mismatches
from strategies import json_values, objects

FORM = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 2},
        "age": {"type": "integer", "minimum": 0},
        "color": {"type": "string", "enum": ["red", "blue"], "default": "red"},
        "sure": {"type": "boolean", "default": False},
        "many": {"type": "array", "items": {"anyOf": [{"const": "a"}, {"const": "b"}]}},
    },
    "required": ["name", "age"],
}


def test_defaults_are_filled_in_but_not_over_what_is_there() -> None:
    assert filled(FORM, {"name": "Ada", "color": "blue"}) == {
        "name": "Ada", "color": "blue", "sure": False
    }  # fmt: skip


def test_filling_in_leaves_what_was_given_alone() -> None:
    content = {"name": "Ada"}
    filled(FORM, content)
    assert content == {"name": "Ada"}


@pytest.mark.parametrize(
    "content",
    [
        {"name": "Ada", "age": 36},
        {"name": "Ada", "age": 0, "color": "blue", "sure": True, "many": ["a", "b"]},
        {"name": "Ada", "age": 1, "other": "is not forbidden"},
    ],
)
def test_what_fits_has_no_mismatches(content: Mapping[str, Any]) -> None:
    assert mismatches(FORM, content) == []


def test_every_mismatch_is_listed_with_its_path() -> None:
    found = mismatches(FORM, {"name": "A", "color": "green", "sure": "yes", "many": ["a", "c"]})
    assert len(found) == 5
    for said in (
        "'age' is a required property",
        "name: 'A' is too short",
        "color: 'green' is not one of ['red', 'blue']",
        "sure: 'yes' is not of type 'boolean'",
        "many.1: 'c' is not valid under any of the given schemas",
    ):
        assert said in found


def test_a_pattern_is_searched_for_in_texts_only() -> None:
    form = {"properties": {"code": {"pattern": "^[A-Z]{3}$"}}}
    assert mismatches(form, {"code": "ABC"}) == []
    assert mismatches(form, {"code": "abc"}) == ["code: 'abc' does not match '^[A-Z]{3}$'"]
    assert mismatches(form, {"code": 7}) == []


def test_a_form_may_forbid_what_it_does_not_name() -> None:
    closed = {**FORM, "additionalProperties": False}
    (said,) = mismatches(closed, {"name": "Ada", "age": 1, "other": 1})
    assert "'other' was unexpected" in said


@pytest.mark.parametrize(
    "schema",
    [
        {"type": 5},
        {"type": "objekt"},
        {"required": "name"},
        {"enum": 3},
        {"properties": {"a": {"minimum": "x"}}},
        {"properties": {"a": {"pattern": "("}}},
        {"properties": {"a": {"pattern": 3}}},
        {"properties": {"a": 3}},
        {"items": "x"},
    ],
)
def test_what_is_no_schema_is_unusable(schema: Mapping[str, Any]) -> None:
    with pytest.raises(UnusableForm):
        mismatches(schema, {"a": 1})


keywords = st.sampled_from(
    ["type", "properties", "required", "items", "enum", "anyOf", "pattern", "minimum", "$ref",
     "multipleOf", "default", "additionalProperties", "patternProperties", "$schema", "$id"]
)  # fmt: skip
schemas = st.dictionaries(
    keywords,
    st.recursive(
        json_values, lambda inner: st.dictionaries(keywords | st.just("a"), inner, max_size=3)
    ),
    max_size=5,
)


@given(schemas, objects)
def test_no_schema_and_no_content_raise_anything_else(
    schema: Mapping[str, Any], content: Mapping[str, Any]
) -> None:
    try:
        found = mismatches(schema, filled(schema, content))
    except UnusableForm:
        return
    assert all(isinstance(said, str) for said in found)


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"a": {"$ref": "http://127.0.0.1:9/schema"}}},
        {"$ref": "http://127.0.0.1:9/schema"},
        {"$schema": "http://127.0.0.1:9/meta", "properties": {}},
        {"$id": "http://127.0.0.1:9/", "properties": {"a": {"$ref": "other"}}},
        {"allOf": [{"$dynamicRef": "http://127.0.0.1:9/schema"}]},
    ],
)
@pytest.mark.filterwarnings("error")
def test_nothing_is_fetched_for_a_form(
    schema: Mapping[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*args: object, **kwargs: object) -> NoReturn:
        raise AssertionError("a form opened a socket")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "create_connection", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    assert mismatches(schema, {"a": 1}) == []


def test_what_refers_to_itself_is_not_followed() -> None:
    again = {"$ref": "#"}
    assert mismatches({"properties": {"a": again}, "allOf": [again, again]}, {"a": {}}) == []


def test_references_cannot_multiply_the_work() -> None:
    doubled = {
        f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(40)
    }  # fmt: skip
    schema = {"$defs": {**doubled, "d40": {"type": "integer"}}, "$ref": "#/$defs/d0"}
    assert mismatches(schema, {"a": 1}) == []  # were it followed, this would take years


# Backtracks for ever on a text that almost matches.
SLOW = "(a|aa)+$"
ALMOST = "a" * 60 + "!"


def test_a_pattern_that_would_take_for_ever_counts_as_fitting() -> None:
    started = time.monotonic()
    assert mismatches({"properties": {"a": {"pattern": SLOW}}}, {"a": ALMOST}) == []
    assert time.monotonic() - started < 30


def test_many_slow_patterns_are_not_all_tried() -> None:
    started = time.monotonic()
    names = [f"a{n}" for n in range(20 * PATTERNS)]
    schema = {"properties": {name: {"pattern": SLOW} for name in names}}
    assert mismatches(schema, dict.fromkeys(names, ALMOST)) == []
    assert time.monotonic() - started < 30
