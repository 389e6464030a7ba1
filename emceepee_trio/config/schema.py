"""A JSON Schema of configuration files, for editors: what is read, from the same classes.

The files of other programs pass it too, as far as they are about servers; what their own keys and
entries mean is theirs to say.
"""

from __future__ import annotations

from types import NoneType
from typing import Any, get_args

import attrs

from ..model.json.fields import fields_of
from ..model.json.schema import json_schema
from .limits import Limits
from .policy import Policy
from .reading.dialects import ALIASES, IGNORED, IGNORED_AT_TOP, SERVERS, SHARED, TYPES
from .server import Server
from .settings import Config, Defaults, Health, Http
from .treatment import Reconnect, Retry

_CLASSES = (Server, Defaults, Retry, Reconnect, Limits, Health, Http, Policy)
_OURS = ("mcpServers", "mcpClients")
_VARIABLE = {"type": "string", "pattern": r"\$\{"}
"""What stands for a string, whatever it has to be."""


def file_schema() -> dict[str, Any]:
    schema = _described(Config)
    named = {"type": "object", "additionalProperties": {"$ref": "#/$defs/Server"}}
    listed = {
        "type": "array",
        "items": {"allOf": [{"$ref": "#/$defs/Server"}, {"required": ["name"]}]},
    }
    theirs = {"type": "object", "additionalProperties": {"type": "object"}}
    properties = schema.pop("properties") | dict.fromkeys(SERVERS, theirs)
    properties |= dict.fromkeys(_OURS, named) | {"mcp": {"type": "object"}}
    properties["servers"] = {"description": "The servers.", "anyOf": [named, listed]}
    properties |= {key: {} for key in ("$schema", *sorted(IGNORED_AT_TOP))}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "emceepee",
        "type": "object",
        "properties": properties,
        # A file that another program has as well holds what that wants.
        "if": {"not": {"anyOf": [{"required": [key]} for key in SHARED]}},
        "then": {"propertyNames": {"enum": list(properties)}},
        "$defs": {cls.__name__: _described(cls) for cls in _CLASSES} | {"Server": _server()},
    }


def _server() -> dict[str, Any]:
    schema = _described(Server)
    properties = schema["properties"]
    properties["type"]["anyOf"].append({"enum": [*TYPES, "remote"]})
    properties |= {
        "timeout": {"type": "number", "description": "Seconds, or milliseconds from 3601 on."},
        **{key: {"type": "boolean"} for key in ("enabled", "isActive")},
    }
    # No key is as if it was not given.
    schema["properties"] = {
        key: {"anyOf": [inner, {"type": "null"}]} for key, inner in properties.items()
    }
    schema["properties"] |= {
        key: {"description": f"Ignored{f'; {remedy}' if remedy else ''}."}
        for key, remedy in IGNORED.items()
    }
    # As a key, where names are keys.
    del schema["required"]
    return schema


def _described(cls: type[attrs.AttrsInstance]) -> dict[str, Any]:
    """Of *cls*, with every spelling of its keys; other classes by reference."""
    schema = json_schema(cls)
    properties = schema["properties"]
    for a in fields_of(cls):
        if a.type in _CLASSES:
            doc = {"description": a.metadata["doc"]} if "doc" in a.metadata else {}
            properties[a.name] = {"$ref": f"#/$defs/{a.type.__name__}"} | doc
        else:
            nullable = NoneType in get_args(a.type)
            properties[a.name] = _with_variables(properties[a.name], nullable)
    for alias, name in ALIASES.items():
        if name in properties:
            where = "#" if cls is Config else f"#/$defs/{cls.__name__}"
            properties.setdefault(alias, {"$ref": f"{where}/properties/{name}"})
    return schema


def _with_variables(schema: dict[str, Any], nullable: bool) -> dict[str, Any]:
    """What it says, or a string with variables in it, which are filled in before anybody looks."""
    about = {key: schema.pop(key) for key in ("description", "default") if key in schema}
    if "items" in schema:
        schema["items"] = _with_variables(schema["items"], False)
    if isinstance(schema.get("additionalProperties"), dict):
        schema["additionalProperties"] = _with_variables(schema["additionalProperties"], False)
    if "pattern" in schema:
        schema["pattern"] = f"^({schema['pattern']})$"  # ours are for all of it
    choices = [schema]
    if schema.keys() & {"enum", "pattern", "maxLength"}:
        choices.append(_VARIABLE)
    if nullable:
        choices.append({"type": "null"})
    return about | (schema if not choices[1:] else {"anyOf": choices})
