"""What a JSON value looks like, in a line: ``array of 1,204 objects with keys id, name``. Pure.

Of a text that is too long to be parsed for that, its beginning is, and `Elements` counts the rest
as it goes by.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

import attrs

from .intake import Gauge, Unfit
from .long_text import LongText
from .weight import cut

KEYS = 12
"""Keys of an object that are named."""
LOOKED_AT = 100
"""Elements of an array whose keys are gathered."""
LONGEST = 400
"""Characters of the whole line."""
_KEY = 40

_KINDS: tuple[tuple[type | tuple[type, ...], str], ...] = (
    (dict, "object"),
    (list, "array"),
    ((str, LongText), "string"),
    (bool, "boolean"),
    ((int, float), "number"),
)


def shape(value: Any, count: int | None = None) -> str:
    """*count* is how many there are of which *value* has only the first."""
    return cut(_shape(value, count, 0), LONGEST)


def _shape(value: Any, count: int | None, level: int) -> str:
    if isinstance(value, dict):
        return _object(value, count, level)
    if not isinstance(value, list):
        return _kind(value)
    if not value:
        return "empty array"
    kinds = {_kind(inner) for inner in value[:LOOKED_AT]}
    what = kinds.pop() if len(kinds) == 1 else "value"
    number = len(value) if count is None else count
    said = f"array of {number:,} {what}{'' if number == 1 else 's'}"
    if what != "object":
        return said
    keys = {key: None for inner in value[:LOOKED_AT] for key in inner}
    return f"{said} {_with_keys(keys, len(keys))}"


def _object(value: dict[str, Any], count: int | None, level: int) -> str:
    if not value:
        return "empty object"
    said = [
        f"{cut(key, _KEY)} ({_shape(inner, None, level + 1)})"
        if level == 0 and isinstance(inner, dict | list)
        else cut(key, _KEY)
        for key, inner in list(value.items())[:KEYS]
    ]
    return f"object {_with_keys(said, count or len(value))}"


def _with_keys(said: Iterable[str], number: int) -> str:
    shown = [cut(key, 2 * LONGEST) for key in list(said)[:KEYS]]
    more = number - len(shown)
    return f"with keys {', '.join(shown)}{f' and {more:,} more' if more > 0 else ''}"


def _kind(value: Any) -> str:
    return next((name for kind, name in _KINDS if isinstance(value, kind)), "null")


@attrs.define(eq=False)
class Elements:
    """Counts what an array, or an object, holds; its text is fed in parts."""

    _depth: int = attrs.field(default=-1, init=False)
    """Before it begins."""
    _commas: int = attrs.field(default=0, init=False)
    _in_string: bool = attrs.field(default=False, init=False)
    _escape: bytes = attrs.field(default=b"", init=False)

    @property
    def count(self) -> int | None:
        """None if the text was not of one, whole."""
        return self._commas + 1 if self._depth == 0 and not self._in_string else None

    def feed(self, part: bytes) -> None:
        if self._depth < 0:
            part = part.lstrip()
            if not part:
                return
            self._depth, part = 1, part[1:]  # without its bracket, so that no pair holds all of it
        text = self._escape + part
        if b"\\" in text:
            text = text.replace(b"\\\\", b"__").replace(b'\\"', b"__")
        self._escape = b"\\" if text.endswith(b"\\") else b""
        pieces = text.split(b'"')
        outside = b"".join(pieces[int(self._in_string) :: 2]).translate(None, _OTHERS)
        if len(pieces) % 2 == 0:
            self._in_string = not self._in_string
        before = None
        while before != outside:
            before, outside = outside, _PAIR.sub(b"", outside)
        for run in _RUN.findall(outside):
            if run[0] in b"[{":
                self._depth += len(run)
            elif run[0] in b"]}":
                self._depth -= len(run)
            elif self._depth == 1:
                self._commas += len(run)


_OTHERS = bytes(set(range(256)) - set(b"[]{},"))
_PAIR = re.compile(rb"[\[{],*[\]}]")
_RUN = re.compile(rb",+|[\[{]+|[\]}]+")


def first_of(beginning: bytes, loads: Callable[[str], Any]) -> Any:
    """As much of a value as its *beginning* has, without what is cut in it.

    Raises:
        Unfit: it is not the beginning of JSON.
    """
    gauge = Gauge()
    cut_at = gauge.feed(beginning)
    if cut_at is None or not cut_at.open:
        raise Unfit("has no whole value at its beginning")
    closing = "".join("]" if each == ord("[") else "}" for each in reversed(cut_at.open))
    try:
        return loads(beginning[: cut_at.position - 1].decode() + closing)
    except (ValueError, RecursionError) as error:
        raise Unfit(f"is not JSON: {error}") from None
