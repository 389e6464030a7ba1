"""A long string of a message, which stays there as it came.

Beside the bytes in which it came, a string of Python would be the same once more, and up to four
times that if one of its characters is not Latin. So it is looked through once, and read in pieces
by whoever needs them. Its length and its parts are as those of a string; all of it is `said` in
steps. Pure.
"""

from __future__ import annotations

import json
import re
from array import array
from bisect import bisect_right
from collections.abc import Callable, Generator, Iterator
from typing import Any, TypeAlias

import attrs

_WHOLE = re.compile(
    rb"(?:[^\\]++|\\[^u]|\\u(?![dD][89abAB])[0-9a-fA-F]{4}|\\u[dD][89abAB][0-9a-fA-F]{2}"
    rb"(?:\\u[dD][c-fC-F][0-9a-fA-F]{2}|(?=.{6})(?!\\u[dD][c-fC-F])))*+",
    re.DOTALL,
)
"""Of the inside of a string, whole characters."""
_PAIR = 12
"""Bytes of a character in two escapes."""


def pieces_of_string(
    message: bytes | bytearray,
    first: int,
    last: int,
    most: int,
    loads: Callable[[str], Any] = json.loads,
) -> Iterator[tuple[int, str]]:
    """What the inside of a string says, which is there from *first* to before *last*; and where
    each piece of it ends, of about *most* bytes.

    Raises:
        ValueError: it is not JSON, or not UTF-8.
    """
    while first < last:
        end = min(first + most + _PAIR, last)
        if end < last:
            # Neither in an escape nor between those of a pair, nor in a character.
            end = max(m.end() if (m := _WHOLE.match(message, first, end)) else 0, first + 1)
            while first + 1 < end and message[end] & 0xC0 == 0x80:
                end -= 1
        yield end, loads(f'"{message[first:end].decode()}"')
        first = end


@attrs.define(eq=False, repr=False)
class LongText:
    """Found by `reading.read`, which has looked through all of it."""

    _message: bytes | bytearray
    size: int = attrs.field(default=0, init=False)
    """Bytes of what it says."""
    _ends: array[int] = attrs.field(factory=lambda: array("Q"), init=False)
    """Where its pieces end in the message; first, where it begins."""
    _starts: array[int] = attrs.field(factory=lambda: array("Q", [0]), init=False)
    """Characters before each piece; last, all."""

    @classmethod
    def found(
        cls, message: bytes | bytearray, first: int, last: int, piece: int
    ) -> Generator[None, None, LongText]:
        """Raises `ValueError`: it is not JSON, or not UTF-8."""
        text = cls(message)
        text._ends.append(first)
        for end, said in pieces_of_string(message, first, last, piece):
            text._ends.append(end)
            text._starts.append(len(text) + len(said))
            text.size += len(said) if said.isascii() else len(said.encode("utf-8", "surrogatepass"))
            yield
        return text

    def __len__(self) -> int:
        return self._starts[-1]

    def isascii(self) -> bool:
        return self.size == len(self)

    def __getitem__(self, part: slice) -> str:
        start, stop, step = part.indices(len(self))
        assert step == 1
        found: list[str] = []
        n = bisect_right(self._starts, start) - 1
        while start < stop:
            before = self._starts[n]
            said = self._piece(n)[start - before : stop - before]
            found.append(said)
            start, n = start + len(said), n + 1
        return "".join(found)

    def _piece(self, n: int) -> str:
        said: str = json.loads(f'"{self._message[self._ends[n] : self._ends[n + 1]].decode()}"')
        return said

    def said(self) -> Generator[None, None, str]:
        """All of it."""
        said = ""  # grows in its place: with a list of its pieces it would be there twice
        for n in range(len(self._ends) - 1):
            said += self._piece(n)
            yield
        return said

    def __repr__(self) -> str:
        return f"<LongText of {len(self)} characters>"


Text: TypeAlias = str | LongText
