"""Saying what is wrong with JSON: the place, the words, and how much of a value is shown."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from types import NoneType
from typing import Any

import attrs

SHOWN = 60
"""Characters of a value that a problem shows."""


@attrs.frozen
class Problem:
    """One thing that is wrong, and where."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


class Invalid(Exception):
    """The data is not what was asked for."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = list(problems)


class Expanded(str):
    """A string made from another one; problems show it as it was written."""

    __slots__ = ("written",)
    written: str

    @classmethod
    def of(cls, value: str, written: str) -> Expanded:
        self = cls(value)
        self.written = written
        return self


def join(path: str, key: str | int) -> str:
    """*path* and one more step: ``a.b``, ``a[2]``, or ``a["odd key"]``."""
    if isinstance(key, int):
        return f"{path}[{key}]"
    if not re.fullmatch(r"[\w$-]{1,60}", key, re.ASCII):
        return f"{path}[{show(key)}]"
    return f"{path}.{key}" if path else key


def show(value: object) -> str:
    """*value* as compact JSON, cut, and safe to print on a terminal."""
    try:
        text = json.dumps(_as_written(value), ensure_ascii=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError):
        return kind(value)
    if len(text) > SHOWN:
        text = text[:SHOWN] + "…"
    return "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in text)


def _as_written(value: object) -> object:
    """*value* before anything in it was made from something else."""
    match value:
        case Expanded():
            return value.written
        case Mapping():
            return {key: _as_written(inner) for key, inner in value.items()}
        case list() | tuple():
            return [_as_written(inner) for inner in value]
    return value


_KINDS: dict[Any, str] = {
    NoneType: "null",
    bool: "a boolean",
    int: "an integer",
    float: "a number",
    str: "a string",
    Mapping: "an object",
    list | tuple: "a list",
}


def kind(value: object) -> str:
    """What sort of JSON *value* is; all that is said of a secret."""
    return next((name for cls, name in _KINDS.items() if isinstance(value, cls)), "something else")


def bounds(low: float | None, high: float | None) -> str:
    """``0 to 900000``, ``at least 0``, ``at most 5``, or nothing."""
    if low is not None and high is not None:
        return f"{low} to {high}"
    return f"at least {low}" if low is not None else f"at most {high}" if high is not None else ""


def did_you_mean(word: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    """``, did you mean "x"?``, or nothing."""
    spellings = {re.sub("[_-]", "", candidate).lower(): candidate for candidate in known}
    plain = re.sub("[_-]", "", word[:100]).lower()
    close = get_close_matches(plain, spellings, n=1, cutoff=cutoff)
    return f', did you mean "{spellings[close[0]]}"?' if close else ""
