"""What is searched of an entry that a server has listed, whatever that has in it."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Any

from .index import MAX_PARAMETERS, Entry, Kind
from .signatures import arguments_of


def entry_of(kind: Kind, server: str, said: Mapping[str, Any]) -> Entry:
    """Of one of *server*."""
    name, title, description = (_text(said.get(key)) for key in ("name", "title", "description"))
    parameters: list[tuple[str, str]] = []
    if kind == "tools":
        for argument, schema, _ in islice(arguments_of(said), MAX_PARAMETERS):
            about = schema.get("description") if isinstance(schema, Mapping) else ""
            parameters.append((argument, _text(about)))
    elif kind == "prompts":
        given = said.get("arguments")
        for each in given[:MAX_PARAMETERS] if isinstance(given, list) else ():
            if isinstance(each, Mapping):
                parameters.append((_text(each.get("name")), _text(each.get("description"))))
    elif kind != "servers":
        uri = _text(said.get("uri")) or _text(said.get("uriTemplate"))
        name = name or uri
        parameters.append((uri, ""))
    return Entry(kind, server, name, title, description, tuple(parameters))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
