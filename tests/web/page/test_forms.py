from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from werkzeug.datastructures import MultiDict

from emceepee_trio.model.forms import mismatches
from emceepee_trio.model.json.intake import finished
from emceepee_trio.web.page.filled import content_of
from emceepee_trio.web.page.forms import FEW, Field, fields_of
from strategies import json_values

Json = dict[str, Any]


def one(said: Json, *, required: bool = False, **known: Any) -> Field:
    schema = {"type": "object", "properties": {"x": said}}
    (field,) = fields_of(schema | ({"required": ["x"]} if required else {}), known or None)
    return field


def untouched(fields: list[Field]) -> MultiDict[str, str]:
    """What a browser sends of a form in which nobody has changed anything."""
    sent: list[tuple[str, str]] = []
    for field in fields:
        if field.kind in ("choice", "choices", "yes_no"):
            chosen = [option.value for option in field.options if option.is_chosen]
            sent += [(field.name, value) for value in chosen]
            if field.is_list and not chosen:
                sent.append((field.name, ""))
        else:
            sent.append((field.name, field.value.replace("\n", "\r\n")))
    return MultiDict(sent)


def filled(said: Json, *values: str, required: bool = False) -> Any:
    field = one(said, required=required)
    found = content_of([field], MultiDict([(field.name, value) for value in values]))
    return found.get("x", "left out")


@pytest.mark.parametrize(
    ("said", "kind", "input_type"),
    [
        ({"type": "string"}, "text", "text"),
        ({"type": "string", "format": "email"}, "text", "email"),
        ({"type": "string", "format": "uri"}, "text", "url"),
        ({"type": "string", "format": "date"}, "text", "date"),
        ({"type": "string", "format": "date-time"}, "text", "datetime-local"),
        ({"type": "string", "format": "regex"}, "text", "text"),
        ({"type": "string", "maxLength": 1000}, "long", "text"),
        ({"type": "integer"}, "number", "number"),
        ({"type": "number"}, "number", "number"),
        ({"type": "boolean"}, "yes_no", "text"),
        ({"type": "string", "enum": ["a"]}, "choice", "text"),
        ({"type": "string", "oneOf": [{"const": "a", "title": "A"}]}, "choice", "text"),
        ({"type": "array", "items": {"enum": ["a"]}}, "choices", "text"),
        ({"type": "array", "items": {"anyOf": [{"const": "a"}]}}, "choices", "text"),
        ({"type": "array", "items": {"type": "string"}}, "json", "text"),
        ({"type": "object"}, "json", "text"),
        ({}, "json", "text"),
    ],
)
def test_each_type_has_its_field(said: Json, kind: str, input_type: str) -> None:
    field = one(said)
    assert (field.kind, field.input_type) == (kind, input_type)


def test_few_choices_are_all_shown_and_many_are_a_list() -> None:
    assert not one({"enum": list(range(FEW))}).is_list
    assert one({"enum": list(range(FEW + 1))}).is_list


def test_choices_have_their_titles_and_stand_for_their_values() -> None:
    named = {"type": "string", "enum": ["p1", "p2"], "enumNames": ["Cats", "Dogs"]}
    assert [option.title for option in one(named).options] == ["Cats", "Dogs"]
    assert filled(named, "1") == "p2"
    # Of unequal length nobody can say which is whose.
    assert [o.title for o in one({"enum": ["a"], "enumNames": []}).options] == ["a"]
    mixed = {"oneOf": [{"const": 1, "title": "One"}, {"const": None}, {"const": True}]}
    assert [o.title for o in one(mixed).options] == ["One", "null", "true"]
    assert [filled(mixed, str(n)) for n in range(3)] == [1, None, True]
    assert [o.is_chosen for o in one(mixed | {"default": True}).options] == [False, False, True]
    several = {"type": "array", "items": {"enum": ["a", "b", "c"]}}
    assert filled(several, "0", "2") == ["a", "c"]


def test_what_was_not_offered_is_handed_on_to_be_refused() -> None:
    for wrong in ("7", "-1", "x", "²"):
        assert filled({"enum": ["a"]}, wrong) == wrong


@pytest.mark.parametrize(
    ("said", "value", "content"),
    [
        ({"type": "integer"}, "42", 42),
        ({"type": "number"}, " 4.5 ", 4.5),
        ({"type": "number"}, "1e3", 1000.0),
        ({"type": "integer"}, "many", "many"),
        ({"type": "integer"}, "NaN", "NaN"),
        ({"type": "integer"}, "", "left out"),
        ({"type": "string"}, "a\r\nb", "a\nb"),
        ({"type": "string"}, "", "left out"),
        ({"type": "string", "default": "x"}, "", ""),
        ({"type": "string", "format": "date"}, "2026-11-20", "2026-11-20"),
        ({"type": "boolean"}, "0", True),
        ({"type": "boolean"}, "1", False),
        ({"type": "boolean"}, "", "left out"),
        ({"type": "array", "items": {"enum": ["a"]}}, "", [""]),
        ({}, '{"a": [1]}', {"a": [1]}),
        ({}, "{", "{"),
        ({}, "", "left out"),
    ],
)
def test_what_was_filled_in_is_read(said: Json, value: str, content: Any) -> None:
    assert filled(said, value) == content


def test_what_was_left_out() -> None:
    assert filled({"type": "string"}) == "left out"
    assert filled({"type": "string"}, "", required=True) == ""
    several = {"type": "array", "items": {"enum": ["a"]}}
    assert filled(several) == "left out"
    assert filled(several, required=True) == []
    # Somebody has taken the mark away from what was marked.
    assert filled(several | {"default": ["a"]}) == []


def test_a_moment_is_told_with_its_time_zone() -> None:
    said = filled({"type": "string", "format": "date-time"}, "2026-11-20T10:00")
    assert said.startswith("2026-11-20T10:00:00")
    assert len(said) > len("2026-11-20T10:00:00")
    assert filled({"type": "string", "format": "date-time"}, "soon") == "soon"


def test_what_somebody_has_sent_before_is_there_again() -> None:
    field = one({"type": "string", "default": "old", "minLength": 2}, x="n")
    assert field.value == "n"
    assert one({"type": "string", "default": "old"}, y="n").value == ""
    assert [o.is_chosen for o in one({"enum": ["a", "b"], "default": "a"}, x="b").options] == [
        False,
        True,
    ]


WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\r"), max_size=20)
STRINGS = st.fixed_dictionaries({"type": st.just("string")}, optional={"default": WORDS})
NUMBERS = st.fixed_dictionaries(
    {"type": st.sampled_from(["integer", "number"])}, optional={"default": st.integers()}
)
FLAGS = st.fixed_dictionaries({"type": st.just("boolean")}, optional={"default": st.booleans()})


@st.composite
def choices(draw: st.DrawFn) -> Json:
    values = draw(st.lists(WORDS, min_size=1, max_size=8, unique=True))
    arms = [{"const": value, "title": f"the {value}"} for value in values]
    one_of: Json = draw(st.sampled_from([{"enum": values}, {"oneOf": arms}]))
    if draw(st.booleans()):
        default = {"default": draw(st.sampled_from(values))} if draw(st.booleans()) else {}
        return {"type": "string", **one_of, **default}
    items = {"anyOf": arms} if "oneOf" in one_of else one_of
    some = draw(st.lists(st.sampled_from(values), unique=True, min_size=1))
    some.sort(key=values.index)
    return {"type": "array", "items": items, **draw(st.sampled_from([{}, {"default": some}]))}


@given(st.dictionaries(WORDS, st.one_of(STRINGS, NUMBERS, FLAGS, choices()), max_size=6))
def test_a_form_that_nobody_has_touched_says_its_defaults(properties: Mapping[str, Json]) -> None:
    schema = {"type": "object", "properties": dict(properties)}
    fields = fields_of(schema)
    content = content_of(fields, untouched(fields))
    defaults = {key: said["default"] for key, said in properties.items() if "default" in said}
    # A text that was to be empty may as well be left out.
    empty = {key for key, said in properties.items() if said == {"type": "string", "default": ""}}
    assert content == {key: value for key, value in defaults.items() if key not in empty}
    assert finished(mismatches(schema, content)) == []
    # And so it does once more, shown with what was sent.
    again = fields_of(schema, content)
    assert content_of(again, untouched(again)) == content


@given(json_values, st.dictionaries(st.sampled_from(["f0", "f1", "rest"]), st.text(max_size=9)))
def test_any_schema_makes_a_form(schema: Any, sent: dict[str, str]) -> None:
    for said in (schema, {"properties": schema}, {"properties": {"x": schema, "y": schema}}):
        fields = fields_of(said)
        assert isinstance(content_of(fields, MultiDict(sent)), dict)
