"""Changes to TOML that somebody else has written: comments, order, white space stay as they are."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

import tomlkit
from tomlkit.items import InlineTable, Table

from ..json.edits import NoObject


def put(text: str, path: Sequence[str], key: str, value: Mapping[str, Any]) -> str:
    """With that *value* at *key* of the table at *path*; what is missing on the way is made.

    Raises:
        NoObject: something else is in the way.
    """
    plain = text.replace("\r\n", "\n")
    if (longer := _appended(plain, path, key, value)) is not None:
        return longer.replace("\n", "\r\n") if "\r\n" in text else longer
    document = tomlkit.parse(plain)
    here: Any = document
    for name in path:
        if name not in here:
            here[name] = tomlkit.inline_table() if _is_inline(here) else tomlkit.table(True)
        here = here[name]
        if not isinstance(here, Mapping):
            raise NoObject(f"{name} is no table")
    here[key] = _table(value, inline=_is_inline(here))
    return _as(text, document.as_string())


def take(text: str, path: Sequence[str], key: str) -> str:
    """Without *key* of the table at *path*; as it is if there is no such key."""
    plain = text.replace("\r\n", "\n")
    wanted = tomllib.loads(plain)
    here: Any = wanted
    for name in path:
        here = here.get(name, {}) if isinstance(here, Mapping) else {}
    if here.pop(key, None) is None:
        return text
    # As it was added, from its header to the next; where that would be more or less, by the
    # library, which puts tables of one family together that were not.
    header = re.escape(f"[{_dotted(path, key)}]")
    shorter = re.sub(rf"(?ms)^\n?{header}.*?(?=^\n?\[|\Z)", "", plain, count=1)
    try:
        if tomllib.loads(shorter) == wanted:
            return _as(text, shorter)
    except tomllib.TOMLDecodeError:
        pass
    document = tomlkit.parse(plain)
    here = document
    for name in path:
        here = here[name]
    del here[key]
    return _as(text, document.as_string())


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
    gap = "" if not text or text.endswith("\n\n") else "\n" if text.endswith("\n") else "\n\n"
    longer = (
        f"{text}{gap}[{_dotted(path, key)}]\n{_table(value, inline=False).as_string().rstrip()}\n"
    )
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
    if not inline:
        made.add(tomlkit.nl())
    return made


def _as(before: str, after: str) -> str:
    """With the line ends of *before*, and no more of them at its end."""
    if not before.endswith("\n\n"):
        after = after.rstrip("\n") + "\n" if after.strip() else after
    return after.replace("\n", "\r\n") if "\r\n" in before else after
