"""What is equal to a value that cannot be known: so that shapes can be written down as they are."""

from __future__ import annotations

import math
import re

import attrs


@attrs.frozen(eq=False, repr=False)
class Like:
    """Equal to every string that its pattern matches as a whole."""

    pattern: str

    def __eq__(self, other: object) -> bool:
        return isinstance(other, str) and re.fullmatch(self.pattern, other, re.DOTALL) is not None

    def __hash__(self) -> int:
        return hash(self.pattern)

    def __repr__(self) -> str:
        return f"Like({self.pattern!r})"


@attrs.frozen(eq=False)
class Between:
    """Equal to every number in there."""

    low: float
    high: float = math.inf

    def __eq__(self, other: object) -> bool:
        number = isinstance(other, int | float) and not isinstance(other, bool)
        return number and self.low <= other <= self.high  # type: ignore[operator]  # a number by now

    def __hash__(self) -> int:
        return hash((self.low, self.high))


ULID = Like("[0-9A-HJKMNP-TV-Z]{26}")
TIMESTAMP = Like(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
PID = Between(2)
FOOTPRINT = {"processes": Between(1), "resident_bytes": Between(1)}
"""Of a program that runs."""
