"""JSON of a peer: how deep, how much and how large it may be, found out before it is parsed.

A bound on bytes bounds none of those: a short text can be nested deeper than Python can write it
again, hold millions of values, or a number that nothing can be reckoned with. What does not fit is
refused with a reason.

Pure. A long text is gone through in steps, between which a caller lets others run
(`waits/slices.py`); how it is parsed then is in `long`.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from copy import copy
from typing import TypeAlias, TypeVar

import attrs

T = TypeVar("T")

Steps: TypeAlias = Generator[None, None, T]
"""Work in short steps; a step ends with each ``yield``."""

DEPTH = 200
"""Levels of lists and objects; a text that is nested deeper is refused. Serializers end at 250,
and what peers say goes into objects of ours."""
DIGITS = 308
"""Of one number, in a row: with more of them it may be more than a float can hold."""
SLICE = 32 * 1024
"""Bytes that are gone through, or parsed, in one step; twice as many at the most."""
PAIRINGS = 4
"""Times that what is opened and closed at once is left out before the rest is gone through."""

_OPENING = b"[{"
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_LONG_NUMBER = re.compile(rb"[0-9]{%d}" % (DIGITS + 1))
_TWO_DIGITS = re.compile(rb"[0-9]{2}")


class Unfit(ValueError):
    """What a peer sent is not taken; says why, in words that go on after "it"."""


class TooMuch(Unfit):
    """It is beyond a bound. It may be JSON."""


@attrs.frozen
class Measure:
    """What one message of a peer may be."""

    size: int
    """``limits.message`` or ``limits.body``, in bytes."""
    values: int
    setting: str = "limits.values"
    """Which says how many values."""

    def check(self, gauge: Gauge) -> None:
        if gauge.is_too_deep:
            raise TooMuch(f"is nested deeper than {DEPTH} levels")
        if gauge.values > self.values:
            raise TooMuch(f"holds more than {self.values} values ({self.setting})")
        if gauge.has_long_number:
            raise TooMuch(f"holds a number of more than {DIGITS} digits")


@attrs.frozen
class Cut:
    """A place after a comma, outside of strings."""

    position: int
    """In the part that was fed last."""
    open: bytes
    """The brackets that are open there."""


@attrs.define(eq=False)
class Gauge:
    """How deep one is in a text that is fed in parts, and how much there has been."""

    open: bytearray = attrs.field(factory=bytearray, init=False)
    """The brackets that are."""
    lowest: int = attrs.field(default=0, init=False)
    """The fewest that were at once in the part that was fed last."""
    is_too_deep: bool = attrs.field(default=False, init=False)
    has_long_number: bool = attrs.field(default=False, init=False)
    values: int = attrs.field(default=0, init=False)
    """Commas and opening brackets: so a list or an object counts twice, but for the first."""
    in_string: bool = attrs.field(default=False, init=False)
    long: tuple[int, int] | None = attrs.field(default=None, init=False)
    """Where a string began and ended that has ended in the last part, if it is a long one."""
    _fed: int = attrs.field(default=0, init=False)
    _began: int = attrs.field(default=0, init=False)
    """Where the string did that is open."""
    _escape: bytes = attrs.field(default=b"", init=False)
    """A backslash at the end of the last part: what follows belongs to it."""
    _digits: bytes = attrs.field(default=b"", init=False)
    """At the end of the last part: the number may go on."""

    def feed(self, part: bytes | bytearray) -> Cut | None:
        """Go through one more part; the last place where it could be cut."""
        self.lowest = len(self.open)
        text = self._escape + part
        if b"\\" in text:
            text = text.replace(b"\\\\", b"__").replace(b'\\"', b"__")
        shift, self._escape = len(self._escape), b"\\" if text.endswith(b"\\") else b""
        pieces = text.split(b'"')
        first, position, cut = int(self.in_string), len(text), None
        base, self.long = self._fed - shift, None
        self._fed += len(part)
        if self.in_string and len(pieces) > 1 and base + len(pieces[0]) - self._began > SLICE:
            self.long = self._began, base + len(pieces[0])
        for n in reversed(range(len(pieces))):
            position -= len(pieces[n])
            if n % 2 == first and (comma := pieces[n].rfind(b",") + 1):
                self._go_through(b"".join([*pieces[first:n:2], pieces[n][:comma]]))
                cut = Cut(position + comma - shift, bytes(self.open))
                pieces[n], first = pieces[n][comma:], n
                break
            position -= 1
        end = len(pieces[-1])
        self._go_through(b"".join(pieces[first::2]))
        if len(pieces) > 1:
            self._began = base + len(text) - end
        if len(pieces) % 2 == 0:
            self.in_string = not self.in_string
        return cut

    def fork(self) -> Gauge:
        """Another one, which is as far and may go on by itself."""
        other = copy(self)
        other.open = self.open[:]
        return other

    def _go_through(self, outside: bytes) -> None:
        """What is no string."""
        numbers = self._digits + outside
        self.has_long_number = self.has_long_number or _has_long_number(numbers)
        self._digits = numbers[len(numbers.rstrip(b"0123456789")) :][-DIGITS:]
        brackets = outside.translate(None, _NO_BRACKETS)
        self.values += outside.count(b",") + brackets.count(b"[") + brackets.count(b"{")
        left, before = brackets, bytes(self.open)
        for _ in range(PAIRINGS):
            left = left.replace(b"[]", b"").replace(b"{}", b"")
        if self._follow(left) + 2 * PAIRINGS > DEPTH and len(left) < len(brackets):
            self.open[:] = before
            self._follow(brackets)

    def _follow(self, brackets: bytes) -> int:
        """One by one; how many are open at most."""
        is_open, lowest, highest = self.open, self.lowest, len(self.open)
        for bracket in brackets:
            if bracket in _OPENING:
                is_open.append(bracket)
                highest = max(highest, len(is_open))
            elif is_open:
                is_open.pop()
                lowest = min(lowest, len(is_open))
        self.lowest = lowest
        self.is_too_deep = self.is_too_deep or highest > DEPTH
        return highest


def is_harmless(text: bytes | bytearray, measure: Measure) -> bool:
    """Whether it is within all bounds without a closer look, as almost every message is."""
    return (
        len(text) <= min(SLICE, measure.values)
        and text.count(b"[") + text.count(b"{") <= DEPTH
        and not _has_long_number(text)
    )


def _has_long_number(text: bytes | bytearray) -> bool:
    # Two of these are in it, if there is one.
    samples = text[:: DIGITS // 2]
    return bool(_TWO_DIGITS.search(samples)) and bool(_LONG_NUMBER.search(text))


def check_text(text: str, values: int) -> None:
    """Look at a text that is parsed elsewhere, all at once.

    Raises:
        TooMuch: it is.
    """
    said, measure, gauge = text.encode(errors="replace"), Measure(0, values), Gauge()
    if not is_harmless(said, measure):
        for start in range(0, len(said), SLICE):
            gauge.feed(said[start : start + SLICE])
            measure.check(gauge)


def finished(steps: Steps[T]) -> T:
    """Go through all steps at once; for what is known to be short."""
    try:
        while True:
            next(steps)
    except StopIteration as end:
        result: T = end.value
        return result
