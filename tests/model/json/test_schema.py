from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import attrs
import pytest
from hypothesis import given
from jsonschema import Draft202012Validator

from emceepee_trio.model.json.fields import Bounds, Doc, MaxLength, Pattern, frozen
from emceepee_trio.model.json.schema import json_schema
from emceepee_trio.model.json.strict import Invalid, structure
from emceepee_trio.tools import TOOLBOX
from strategies import objects


@frozen
class Inner:
    names: Annotated[tuple[str, ...], MaxLength(3)] = ()


@frozen
class Everything:
    text: Annotated[str, MaxLength(5), Pattern("^[a-z]*$"), Doc("A text.")]
    number: Annotated[int, Bounds(1, 9)] = 3
    share: Annotated[float, Bounds(0, 1)] = 0.5
    flag: bool = False
    word: Literal["one", "two"] = "one"
    maybe: Annotated[int | None, Bounds(0)] = None
    either: str | tuple[str, ...] = "x"
    anything: Any = None
    free: Mapping[str, Any] = attrs.field(factory=dict)
    texts: Mapping[str, str] = attrs.field(factory=dict)
    inner: Inner = attrs.field(factory=Inner)
    given: list[int] = attrs.field(factory=list)


def test_a_schema_says_what_the_class_says() -> None:
    assert json_schema(Everything) == {
        "type": "object",
        "properties": {
            "text": {
                "type": "string", "maxLength": 5, "pattern": "^[a-z]*$", "description": "A text."
            },
            "number": {"type": "integer", "minimum": 1, "maximum": 9, "default": 3},
            "share": {"type": "number", "minimum": 0, "maximum": 1, "default": 0.5},
            "flag": {"type": "boolean", "default": False},
            "word": {"type": "string", "enum": ["one", "two"], "default": "one"},
            "maybe": {"type": "integer", "minimum": 0},
            "either": {
                "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}],
                "default": "x",
            },
            "anything": {},
            "free": {"type": "object"},
            "texts": {"type": "object", "additionalProperties": {"type": "string"}},
            "inner": {
                "type": "object",
                "properties": {
                    "names": {"type": "array", "items": {"type": "string"}, "maxItems": 3}
                },
                "additionalProperties": False,
            },
            "given": {"type": "array", "items": {"type": "integer"}},
        },
        "required": ["text"],
        "additionalProperties": False,
    }  # fmt: skip


def fits(data: object) -> bool:
    try:
        structure(data, Everything)
    except Invalid:
        return False
    return True


@pytest.mark.parametrize(
    "data",
    [
        {"text": "a"},
        {"text": ""},
        {"text": "abcdef"},
        {"text": "A"},
        {"text": 1},
        {},
        {"text": "a", "unknown": 1},
        {"text": "a", "number": 0},
        {"text": "a", "number": 9},
        {"text": "a", "number": True},
        {"text": "a", "number": "3"},
        {"text": "a", "share": 1},
        {"text": "a", "share": 1.5},
        {"text": "a", "flag": 1},
        {"text": "a", "word": "two"},
        {"text": "a", "word": "three"},
        {"text": "a", "maybe": 0},
        {"text": "a", "maybe": -1},
        {"text": "a", "either": ["x"]},
        {"text": "a", "either": [1]},
        {"text": "a", "anything": {"x": None}},
        {"text": "a", "free": {"x": [1]}},
        {"text": "a", "texts": {"x": "y"}},
        {"text": "a", "texts": {"x": 1}},
        {"text": "a", "inner": {"names": ["a"]}},
        {"text": "a", "inner": {"names": ["a"] * 4}},
        {"text": "a", "inner": {"other": 1}},
        {"text": "a", "given": [1, 2]},
        {"text": "a", "given": [1, "2"]},
    ],
)
def test_the_schema_and_the_check_agree(data: object) -> None:
    validator = Draft202012Validator(json_schema(Everything))
    assert validator.is_valid(data) == fits(data)


@given(objects)
def test_what_the_check_takes_the_schema_takes(data: Mapping[str, Any]) -> None:
    validator = Draft202012Validator(json_schema(Everything))
    candidate = {"text": "a", **data}
    if fits(candidate):
        # Null is accepted where the class says so, but not advertised.
        advertised = {k: v for k, v in candidate.items() if k != "maybe" or v is not None}
        assert validator.is_valid(advertised)
    else:
        assert not validator.is_valid(candidate)


@pytest.mark.parametrize("tool", TOOLBOX.tools, ids=lambda tool: tool.name)
def test_the_schema_of_every_tool_is_a_schema(tool: Any) -> None:
    Draft202012Validator.check_schema(tool.schema)
    assert tool.schema["type"] == "object"
    # Whoever takes none says so; elsewhere an unknown one has no effect.
    assert ("additionalProperties" in tool.schema) is not bool(tool.schema["properties"])
    # No argument is repeated in a header, so calls of them have none to be compared with.
    assert "x-mcp-header" not in json.dumps(tool.schema)
