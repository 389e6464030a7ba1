"""A form in a terminal, with what somebody types."""

from __future__ import annotations

import sys
from tempfile import TemporaryFile

import pytest

from emceepee_trio.commands.under_way.asking import LeftOpen, form, typed

SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "title": "Name"},
        "age": {"type": "integer", "minimum": 1},
        "color": {
            "oneOf": [{"const": "#f00", "title": "Red"}, {"const": "#00f", "title": "Blue"}],
            "default": "#00f",
        },
        "pets": {"type": "array", "items": {"type": "string", "enum": ["cat", "dog", "newt"]}},
        "really": {"type": "boolean"},
    },
    "required": ["name", "really"],
}


def filled(monkeypatch: pytest.MonkeyPatch, *lines: str) -> dict[str, object]:
    with TemporaryFile("w+") as typed_in:
        typed_in.writelines(f"{line}\n" for line in lines)
        typed_in.seek(0)
        monkeypatch.setattr(sys, "stdin", typed_in)
        return form(SCHEMA)


def test_each_kind_is_what_its_schema_wants(monkeypatch: pytest.MonkeyPatch) -> None:
    assert filled(monkeypatch, "Ada", "36", "red", "1, newt", "y") == {
        "name": "Ada",
        "age": 36,
        "color": "#f00",
        "pets": ["cat", "newt"],
        "really": True,
    }


def test_what_is_left_out_is_its_default_or_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    said = filled(monkeypatch, "", "Ada", "", "", "", "maybe", "no")
    assert said == {"name": "Ada", "color": "#00f", "really": False}


def test_the_end_of_input_answers_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(LeftOpen):
        filled(monkeypatch, "Ada")


def test_words_of_a_command_line_are_read_as_the_form_is() -> None:
    words = {"name": "12", "age": "36", "color": "Blue", "pets": "cat,dog", "really": "no"}
    assert typed(SCHEMA, words | {"more": "1"}) == {
        "name": "12",
        "age": 36,
        "color": "#00f",
        "pets": ["cat", "dog"],
        "really": False,
        "more": 1,
    }
