"""JSON schemas of the classes that ``strict`` makes, from their annotations and metadata.

Every tool of ours carries one in every list, so they leave out whatever says nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

import attrs

from .fields import fields_of


def json_schema(cls: type) -> dict[str, Any]:
    """What *cls* takes. Null is accepted where a class says so, but not advertised."""
    fields = [a for a in fields_of(cls) if a.init]
    schema: dict[str, Any] = {"type": "object", "properties": {a.name: _field(a) for a in fields}}
    if required := [a.name for a in fields if a.default is attrs.NOTHING]:
        schema["required"] = required
    return schema | {"additionalProperties": False}


def _field(a: attrs.Attribute[Any]) -> dict[str, Any]:
    schema = _type(a.type, a.metadata)
    if doc := a.metadata.get("doc"):
        schema["description"] = doc
    if isinstance(a.default, str | int | float):
        schema["default"] = a.default
    elif isinstance(a.default, tuple) and a.default:
        schema["default"] = list(a.default)
    return schema


def _type(cls: Any, metadata: Mapping[str, Any]) -> dict[str, Any]:
    if cls in (Any, object):
        return {}
    if is_union(cls):
        each = [_type(arm, metadata) for arm in arms(cls)]
        return {"anyOf": each} if each[1:] else each[0]
    if is_literal(cls):
        return {"type": _NAMES[type(get_args(cls)[0])], "enum": list(get_args(cls))}
    if attrs.has(cls):
        return json_schema(cls)
    inner = {name: bound for name, bound in metadata.items() if name != "max_length"}
    schema: dict[str, Any]
    if is_list(cls):
        items = _type(item_type(cls), inner)
        schema = {"type": "array", "items": items, "maxItems": metadata.get("max_length")}
    elif is_mapping(cls):
        schema = {"type": "object", "additionalProperties": _type(item_type(cls), inner)}
    elif cls is str:
        limits = {"maxLength": metadata.get("max_length"), "pattern": metadata.get("pattern")}
        schema = {"type": "string", **limits}
    else:
        schema = {"type": _NAMES[cls]}
        if cls is not bool:
            schema |= {"minimum": metadata.get("low"), "maximum": metadata.get("high")}
    return {key: value for key, value in schema.items() if value not in (None, {})}


_NAMES = {str: "string", int: "integer", float: "number", bool: "boolean", NoneType: "null"}


def is_literal(cls: Any) -> bool:
    return get_origin(cls) is Literal


def is_list(cls: Any) -> bool:
    return (get_origin(cls) or cls) in (tuple, list, Sequence)


def is_mapping(cls: Any) -> bool:
    return (get_origin(cls) or cls) in (dict, Mapping)


def is_union(cls: Any) -> bool:
    return get_origin(cls) in (Union, UnionType)


def arms(cls: Any) -> list[Any]:
    """What a union can be beside null."""
    return [arm for arm in get_args(cls) if arm is not NoneType]


def item_type(cls: Any) -> Any:
    """Of ``tuple[X, ...]``, ``list[X]`` or ``Mapping[str, X]``: X, if it says so."""
    args = [arg for arg in get_args(cls) if arg is not Ellipsis]
    return args[-1] if args else Any
