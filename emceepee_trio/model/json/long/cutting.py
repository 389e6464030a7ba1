"""Where a long text is cut, so that it can be parsed in parts, and what in it is long. Pure.

It is cut after commas. What is long in it is a string, which has no place to cut it, or a value
that may stay where it is: the structured content of an answer, which is cut up by itself whenever
somebody goes through it. Nothing is parsed for that: it is found by its name, and its end by its
brackets.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator, Sequence

import attrs

from ..intake import SLICE, Cut, Gauge, Measure, Steps

LONG = 256 * 1024
"""Bytes of a value that can stay where it is: with fewer, what is made of it is little."""
LOOKED_AT = 20
"""Times that the name of such a value is looked at, wherever it stands."""

_MEMBER = re.compile(rb'"structuredContent"[ \t\r\n]{0,100}+:[ \t\r\n]{0,100}+[\[{]')
"""In JSON this is outside of strings, since it would be escaped in one."""
_LONGEST_MEMBER = 300
"""Bytes, and more than such a match can have."""
_AROUND = re.compile(rb"\[?\{{2,3}")
"""What is open around it: a message, of a list perhaps, its result, and that of a task in there."""
_NAMES = re.compile(rb"[ \t\r\n]*+:")
"""What makes a string before it the name of a member."""


@attrs.frozen
class LongPlace:
    """Of something long."""

    first: int
    last: int
    """Of a string, those of its inside."""
    is_name: bool = False
    """A string that is the name of a member."""
    is_value: bool = False
    """An object or a list."""


@attrs.frozen
class JsonPart:
    """Some of a text, which can be parsed once it is completed with the brackets that are open."""

    first: int
    last: int
    """After its comma, or the end of all."""
    before: bytes
    """The brackets that are open where it begins."""
    after: bytes | None
    """Those that are open where it ends; None at the end of all."""
    long: Sequence[LongPlace] = ()


@attrs.define(eq=False)
class Parts:
    """All parts of a text, one after the other; there may be very many."""

    _ends: array[int] = attrs.field(factory=lambda: array("Q"), init=False)
    _open: list[bytes | None] = attrs.field(factory=list, init=False)
    """At each end; they are few, and each is there once."""
    _known: dict[bytes, bytes] = attrs.field(factory=dict, init=False)
    _long: dict[int, Sequence[LongPlace]] = attrs.field(factory=dict, init=False)

    def add(self, end: int, after: bytes | None, long: Sequence[LongPlace]) -> None:
        if long:
            self._long[len(self._ends)] = long
        self._ends.append(end)
        self._open.append(after if after is None else self._known.setdefault(after, after))

    def take_back(self, count: int) -> None:
        """All but so many."""
        for n in range(count, len(self._ends)):
            self._long.pop(n, None)
        del self._ends[count:], self._open[count:]

    def __len__(self) -> int:
        return len(self._ends)

    def __iter__(self) -> Iterator[JsonPart]:
        first, before = 0, b""
        for n, (end, after) in enumerate(zip(self._ends, self._open, strict=True)):
            yield JsonPart(first, end, before, after, self._long.get(n, ()))
            first, before = end, after or b""


def cut_up(text: bytes | bytearray, measure: Measure, *, leaves_values: bool) -> Steps[Parts]:
    """The parts of a *text*.

    Raises:
        TooMuch: it is beyond the *measure*.
        ValueError: it is not JSON.
    """
    cutter = _Cutter(text, LOOKED_AT if leaves_values else 0)
    # Nothing is made of what is too much: to free it would take long, too.
    while cutter.at < len(text):
        if cutter.at:
            yield
        cutter.go_on()
        measure.check(cutter.gauge)
    return cutter.end()


def parts_of_value(text: bytes | bytearray, first: int, last: int) -> Iterator[JsonPart | None]:
    """Those of a value that is there; None where there is nothing yet to be parsed.

    They are not known beforehand, or there would be very much to keep of a very long one.
    """
    gauge, at = Gauge(), first
    begin, before, long = first, b"", tuple[LongPlace, ...]()
    while at < last:
        end = min(at + _piece(), last)
        cut = gauge.feed(text[at:end])
        if gauge.long is not None:
            long = (*long, _string(text, *(first + place for place in gauge.long)))
        if cut is None or end == last:
            yield None
        else:
            yield JsonPart(begin, at + cut.position, before, cut.open, long)
            begin, before, long = at + cut.position, cut.open, ()
        at = end
    yield JsonPart(begin, last, before, None, long)


def _piece() -> int:
    """Bytes of a value: what is made of a slice of short values takes many times its bytes."""
    return SLICE // 8 + 1


def _string(text: bytes | bytearray, first: int, last: int) -> LongPlace:
    return LongPlace(first, last, is_name=_NAMES.match(text, last + 1) is not None)


@attrs.frozen
class _Begun:
    """A value that may be long."""

    first: int
    level: int
    """With its own, how many brackets are open."""
    parts: int
    """Those before it."""
    long: Sequence[LongPlace]
    """Before it in the next part."""


@attrs.define(eq=False)
class _Cutter:
    text: bytes | bytearray
    names: int
    """That may still be looked at."""
    gauge: Gauge = attrs.field(factory=Gauge, init=False)
    at: int = attrs.field(default=0, init=False)
    """So far it has been gone through."""
    _parts: Parts = attrs.field(factory=Parts, init=False)
    _long: Sequence[LongPlace] = attrs.field(default=(), init=False)
    """In the next part."""
    _begun: _Begun | None = attrs.field(default=None, init=False)

    def go_on(self) -> None:
        """One slice, or up to where a value begins or ends that may be long."""
        begun, gauge = self._begun, self.gauge
        end = min(self.at + (SLICE if begun is None else _piece()), len(self.text))
        if begun is not None:
            end = self._go_on_within(begun, end)
        elif (member := self._member(end)) is None:
            self._note(end, gauge.feed(self.text[self.at : end]))
        elif member.start() > self.at:
            end = member.start()
            self._note(end, gauge.feed(self.text[self.at : end]))
        else:
            self.names -= 1
            end, is_there = member.end(), _AROUND.fullmatch(gauge.open) and not gauge.in_string
            self._note(end, gauge.feed(self.text[self.at : end]))
            if is_there:
                self._begun = _Begun(end - 1, len(gauge.open), len(self._parts), self._long)
        self.at = end

    def _go_on_within(self, begun: _Begun, end: int) -> int:
        """So far, or to where it ends."""
        before = self.gauge.fork()
        cut = self.gauge.feed(self.text[self.at : end])
        if is_over := self.gauge.lowest < begun.level:
            self.gauge, end = before, _end_of(before, self.text, self.at, end, begun.level)
            cut = before.feed(self.text[self.at : end])
        if end - begun.first <= LONG:  # so far it is parsed with all else
            self._note(end, cut)
        else:
            self._parts.take_back(begun.parts)
            self._long = (*begun.long, LongPlace(begun.first, end, is_value=True))
        if is_over:
            self._begun = None
        return end

    def _member(self, end: int) -> re.Match[bytes] | None:
        if not self.names:
            return None
        found = _MEMBER.search(self.text, self.at, min(end + _LONGEST_MEMBER, len(self.text)))
        return found if found is not None and found.start() < end else None

    def _note(self, end: int, cut: Cut | None) -> None:
        if self.gauge.long is not None:
            self._long = (*self._long, _string(self.text, *self.gauge.long))
        if cut is not None and end < len(self.text):
            self._end_part(self.at + cut.position, cut.open)

    def _end_part(self, last: int, after: bytes | None) -> None:
        self._parts.add(last, after, self._long)
        self._long = ()

    def end(self) -> Parts:
        """
        Raises:
            ValueError: it is not JSON.
        """
        if self._begun is not None and len(self.text) - self._begun.first > LONG:
            raise ValueError("a value does not end")
        self._end_part(len(self.text), None)
        return self._parts


def _end_of(gauge: Gauge, text: bytes | bytearray, first: int, last: int, level: int) -> int:
    """Where fewer brackets than *level* are open at last; *gauge* has come to *first*."""
    while last - first > 1:
        middle = (first + last) // 2
        ahead = gauge.fork()
        ahead.feed(text[first:middle])
        if ahead.lowest < level:
            last = middle
        else:
            gauge, first = ahead, middle
    return last
