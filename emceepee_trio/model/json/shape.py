"""What a JSON value looks like, in a line: ``array of 1,204 objects with keys id, name``. Pure.

A long value is seen in parts, as `Looks`. Of a text that is too long to be parsed for that, its
beginning is, and `Elements` counts the rest as it goes by.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any

import attrs

from .intake import Gauge, Unfit
from .long.joining import taken_apart
from .long.text import LongText
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
    looks = Looks()
    looks.see(b"", value)
    if count is not None:
        looks.count = count
    return looks.said()


@attrs.define(eq=False)
class Looks:
    """What a value looks like that is seen in parts."""

    count: int = attrs.field(default=0, init=False)
    """Of what it holds, if it holds something."""
    _level: int = 0
    """In how many others it is; `_ROW` for any object in an array."""
    _keys: dict[str, Looks | None] = attrs.field(factory=dict)
    """Those that are named; of an array, those of all objects in it."""
    _kind: str = attrs.field(default="null", init=False)
    _kinds: set[str] = attrs.field(factory=set, init=False)
    """Of what an array holds."""
    _last: Looks | None = attrs.field(default=None, init=False)
    """What it holds that may go on, if something is said of that."""

    def see(self, before: bytes, part: Any) -> None:
        """All of it, or a part, of which that was open before."""
        if not before:
            self._kind = _kind(part)
            self._add(part)
            return
        rest, inner = taken_apart(part)
        if self._last is not None and before[1:]:
            self._last.see(before[1:], inner)
        self._add(rest)

    def _add(self, value: Any) -> None:
        if not value or not isinstance(value, dict | list):
            return
        if isinstance(value, list):
            looked_at = value[: max(LOOKED_AT - self.count, 0)]
            for inner in looked_at:
                self._kinds.add(_kind(inner))
                if isinstance(inner, dict):
                    self._keys |= dict.fromkeys(inner)
            is_row = len(looked_at) == len(value) and isinstance(value[-1], dict)
            self._last = Looks(_ROW, self._keys) if is_row else None
            self.count += len(value)
            return
        self.count += sum(key not in self._keys for key in value)
        few = len(value) if self._level == _ROW else max(KEYS - len(self._keys), 0)
        for key in islice(value, few):
            self._keys[key] = self._inner(value[key])
        self._last = self._keys.get(next(reversed(value)))

    def _inner(self, value: Any) -> Looks | None:
        if self._level or not isinstance(value, dict | list):
            return None
        looks = Looks(1)
        looks.see(b"", value)
        return looks

    def said(self) -> str:
        return cut(self._said(), LONGEST)

    def _said(self) -> str:
        if self._kind not in ("object", "array"):
            return self._kind
        if not self.count:
            return f"empty {self._kind}"
        if self._kind == "object":
            keys = [
                f"{cut(key, _KEY)} ({inner._said()})" if inner is not None else cut(key, _KEY)
                for key, inner in self._keys.items()
            ]
            return f"object {_with_keys(keys, self.count)}"
        what = min(self._kinds) if len(self._kinds) == 1 else "value"
        said = f"array of {self.count:,} {what}{'' if self.count == 1 else 's'}"
        return f"{said} {_with_keys(self._keys, len(self._keys))}" if what == "object" else said


_ROW = 2


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
