"""A long value of a message, an object or a list, which stays there as it came.

What Python would make of it takes several times its bytes, if it is many short values. So its parts
are parsed once to see that they are JSON, and again by whoever needs them: one after the other, to
be written and left away, or joined, to be all of it. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs

from ..intake import SLICE, Steps, finished
from .cutting import LongPlace, parts_of_value
from .joining import Loads, joined, parsed, string
from .text import LongText


@attrs.define(eq=False, repr=False)
class LongValue:
    """Found by `reading.read`, which has looked through all of it."""

    _message: bytes | bytearray
    _first: int
    _last: int
    _loads: Loads
    _texts: dict[int, LongText] = attrs.field(factory=dict, init=False)
    """Long strings in it, by where they begin."""

    @classmethod
    def found(
        cls, message: bytes | bytearray, first: int, last: int, loads: Loads
    ) -> Steps[LongValue]:
        """Raises `ValueError`: it is not JSON, or not UTF-8."""
        value = cls(message, first, last, loads)
        for part in parts_of_value(message, first, last):
            if part is not None:
                yield from parsed(part, message, loads, value._look)
            yield
        return value

    def __len__(self) -> int:
        """Bytes, as they came."""
        return self._last - self._first

    def said(self) -> Steps[Any]:
        """All of it."""
        parts = parts_of_value(self._message, self._first, self._last)
        return (yield from joined(parts, self._message, self._loads, self._say))

    def parts(self) -> Iterator[tuple[bytes, Any, bytes | None]]:
        """What is open before each, what it says within that, and what is open after it.

        Long texts in it stay where they are.
        """
        for part in parts_of_value(self._message, self._first, self._last):
            if part is not None:
                value = finished(parsed(part, self._message, self._loads, self._leave))
                yield part.before, value, part.after

    def _look(self, place: LongPlace) -> Steps[Any]:
        if place.is_name:
            return (yield from string(self._message, place, self._loads))
        text = yield from LongText.found(self._message, place.first, place.last, SLICE)
        self._texts[place.first] = text
        return text

    def _say(self, place: LongPlace) -> Steps[str]:
        if place.is_name:
            return (yield from string(self._message, place, self._loads))
        return (yield from self._texts[place.first].said())

    def _leave(self, place: LongPlace) -> Steps[Any]:
        if place.is_name:
            return (yield from string(self._message, place, self._loads))
        return self._texts[place.first]

    def __repr__(self) -> str:
        return f"<LongValue of {len(self)} bytes>"
