"""Saying what is wrong with JSON: the place, the words, and how much of a value is shown."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from types import NoneType
from typing import Any

import attrs

SHOWN = 60
"""Characters of a value that a problem shows."""

TOLD = 21
"""Problems of one call that are told; the others are counted. One of them may be such a count."""

WORD = 40
KNOWN = 1000
COMPARED = 50
"""Of what somebody may have meant: characters of each, how many are looked at, and how many of
these are compared, which takes long."""


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
        beginning = _beginning(value, [SHOWN + 1])
        text = json.dumps(beginning, ensure_ascii=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError):
        return kind(value)
    if len(text) > SHOWN:
        text = text[:SHOWN] + "…"
    return "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in text)


def _beginning(value: object, room: list[int]) -> object:
    """So much of *value*, before anything in it was made from something else, as has *room*."""
    room[0] -= 1
    match value:
        case str():
            written = value.written if isinstance(value, Expanded) else value
            cut = written[: max(room[0], 0)]
            room[0] -= len(cut)
            return cut
        case Mapping():
            pairs = itertools.takewhile(lambda _: room[0] > 0, value.items())
            return {_beginning(key, room): _beginning(inner, room) for key, inner in pairs}
        case list() | tuple():
            items = itertools.takewhile(lambda _: room[0] > 0, value)
            return [_beginning(inner, room) for inner in items]
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
    """``, did you mean "x"?``, or nothing; where very much is known, not all is compared."""
    plain = _plain(word)
    if not plain:
        return ""
    spellings: dict[str, str] = {}
    for candidate in itertools.islice(known, KNOWN):
        spelling = _plain(candidate)
        # What can be as close as that by its length alone.
        if 2 * min(len(plain), len(spelling)) >= cutoff * (len(plain) + len(spelling)):
            spellings[spelling] = candidate
        if len(spellings) == COMPARED:
            break
    close = get_close_matches(plain, spellings, n=1, cutoff=cutoff)
    return f', did you mean "{spellings[close[0]]}"?' if close else ""


def _plain(word: str) -> str:
    return word[:WORD].translate(_JOINTS).lower()


_JOINTS = dict.fromkeys(map(ord, "_-"))


def listed(problems: Sequence[Problem]) -> list[str]:
    """As they are told to who made them: not more than anybody reads."""
    said = [str(problem) for problem in problems[:TOLD]]
    more = len(problems) - TOLD
    return [*said, f"and {more} more"] if more > 0 else said
