"""Changes to TOML that somebody else has written: comments, order, white space stay as they are."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

import tomlkit
from tomlkit.items import InlineTable, Table

from ..json.edits import NoObject


def put(text: str, path: Sequence[str], entries: Mapping[str, Mapping[str, Any]]) -> str:
    """With all these *entries* in the table at *path*; what is missing on the way is made.

    Raises:
        NoObject: something else is in the way.
    """
    for key, value in entries.items():
        text = _put(text, path, key, value)
    return text


def _put(text: str, path: Sequence[str], key: str, value: Mapping[str, Any]) -> str:
    if (longer := _appended(text, path, key, value)) is not None:
        return longer
    said: Any = tomllib.loads(text)
    for name in path:
        said = said.get(name) if isinstance(said, dict) else None
    if isinstance(said, dict) and said.get(key) == value:
        return text
    document = tomlkit.parse(text)
    here: Any = document
    for name in path:
        if name not in here:
            here[name] = tomlkit.inline_table() if _is_inline(here) else tomlkit.table(True)
        here = here[name]
        if not isinstance(here, Mapping):
            raise NoObject(f"{name} is no table")
    here[key] = _table(value, inline=_is_inline(here))
    return document.as_string()


def take(text: str, path: Sequence[str], key: str) -> str:
    """Without *key* of the table at *path*; as it is if there is no such key."""
    wanted = tomllib.loads(text)
    here: Any = wanted
    for name in path:
        here = here.get(name, {}) if isinstance(here, Mapping) else {}
    if here.pop(key, None) is None:
        return text
    # As it was added. Where that is less or more than the entry, by the library, which puts tables
    # of one family together that were not, and takes comments behind a table for its own.
    header = re.escape(f"[{_dotted(path, key)}]")
    shorter = re.sub(rf"(?m)(?:^\r?\n)?^{header}\r?\n(?:[^\s#\[].*(?:\n|\Z))*", "", text, count=1)
    try:
        if _without_empty(tomllib.loads(shorter), path) == _without_empty(wanted, path):
            return shorter
    except tomllib.TOMLDecodeError:
        pass
    document = tomlkit.parse(text)
    here = document
    for name in path:
        here = here[name]
    del here[key]
    return document.as_string()


def _without_empty(data: dict[str, Any], path: Sequence[str]) -> dict[str, Any]:
    """A table that nobody has begun is none; one that is empty may as well not be there."""
    if path and data.get(path[0]) == {}:
        return {name: inner for name, inner in data.items() if name != path[0]}
    return data


def _dotted(path: Sequence[str], key: str) -> str:
    return ".".join(tomlkit.key(name).as_string() for name in (*path, key))


def _appended(text: str, path: Sequence[str], key: str, value: Mapping[str, Any]) -> str | None:
    """With a table of its own behind all else, if that can be; nothing else is touched then."""
    wanted = tomllib.loads(text)
    inner = wanted
    for name in path:
        inner = inner.setdefault(name, {})
        if not isinstance(inner, dict):
            return None
    if key in inner:
        return None
    inner[key] = value
    newline = "\r\n" if "\r\n" in text else "\n"
    lines = [
        f"[{_dotted(path, key)}]",
        *_table(value, inline=False).as_string().strip().split("\n"),
    ]
    gap = newline * (1 if text.endswith("\n") else 2) if text else ""
    longer = text + gap + "".join(line + newline for line in lines)
    try:
        return longer if tomllib.loads(longer) == wanted else None
    except tomllib.TOMLDecodeError:
        return None  # it is a table that cannot be added to


def _is_inline(table: Any) -> bool:
    return isinstance(table, InlineTable)


def _table(value: Mapping[str, Any], *, inline: bool) -> Table | InlineTable:
    made: Table | InlineTable = tomlkit.inline_table() if inline else tomlkit.table()
    for key, inner in value.items():
        # What is in an entry is short, and a table in it would be a header of its own.
        made[key] = _table(inner, inline=True) if isinstance(inner, Mapping) else inner
    return made
