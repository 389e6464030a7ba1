"""Objects as people type them: JSON, ``KEY=VALUE``, ``KEY:=JSON``, ``KEY=@FILE``, ``@FILE``."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ...config.bounds import MIB
from .options import Usage

LONGEST = 16 * MIB
"""Characters of arguments in a file."""

_PAIR = re.compile(r"([^=:\s{}\[\]\"@-][^=:\s]*)(:?=)(.*)", re.DOTALL)


class Given:
    """An object, in the words of a command line."""

    def __init__(self) -> None:
        self.whole: dict[str, Any] = {}
        self.words: dict[str, str] = {}
        """Values whose type the schema of the tool tells."""

    @classmethod
    def of(cls, given: Sequence[str]) -> Given:
        self = cls()
        for word in given:
            if found := _PAIR.fullmatch(word):
                self._pair(*found.groups())
            elif word == "-":
                self._object(read(word), "standard input")
            elif word.startswith("@"):
                self._object(read(word[1:]), word[1:])
            elif re.match(r'\s*[{\["]', word) or len(given) == 1:
                self._object(word, "JSON")
            else:
                raise Usage(f"{word!r}: expected JSON, KEY=VALUE, @FILE or -")
        return self

    def _pair(self, key: str, joint: str, value: str) -> None:
        if key in self.whole or key in self.words:
            raise Usage(f"{key!r} is given twice")
        if joint == "=":
            self.words[key] = read(value[1:]) if value.startswith("@") else value
            return
        try:
            self.whole[key] = json.loads(value)
        except ValueError as error:
            raise Usage(f"{key}: JSON: {error}") from None

    def _object(self, text: str, what: str) -> None:
        try:
            found = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise Usage(f"{what}: {error}") from None
        if not isinstance(found, dict):
            raise Usage(f"{what}: expected an object with the tool's arguments")
        for key in found:
            if key in self.whole or key in self.words:
                raise Usage(f"{key!r} is given twice")
        self.whole |= found

    def typed(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        properties = schema.get("properties")
        known = properties if isinstance(properties, dict) else {}
        return {key: _typed(word, known.get(key)) for key, word in self.words.items()}


def read(name: str) -> str:
    try:
        if name == "-":
            return sys.stdin.read(LONGEST)
        with Path(name).open(encoding="utf-8") as file:
            return file.read(LONGEST)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "not UTF-8"
        raise Usage(f"cannot read {name}: {reason}") from None


_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "array": list,
    "object": dict,
    "null": type(None),
}


def _typed(word: str, schema: Any) -> Any:
    """*word*, or the JSON in it if the schema wants that; what fits nowhere the server refuses."""
    wanted = _types(schema)
    try:
        value = json.loads(word)
    except (ValueError, RecursionError):
        return word
    if not wanted:
        return word if isinstance(value, str) else value
    for name in wanted - {"string"}:
        fits = isinstance(value, _TYPES.get(name, ()))
        if fits and isinstance(value, bool) == (name == "boolean"):
            return value
    return word


def _types(schema: Any) -> set[str]:
    if not isinstance(schema, dict):
        return set()
    said = schema.get("type")
    found = {said} if isinstance(said, str) else set(said if isinstance(said, list) else ())
    for key in ("anyOf", "oneOf"):
        for choice in schema.get(key, ()) if isinstance(schema.get(key), list) else ():
            found |= _types(choice)
    return {name for name in found if isinstance(name, str)}
