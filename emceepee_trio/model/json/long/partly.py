"""What a server has answered, where something in it is long and still in its message. Pure."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from .text import LongText
from .value import LongValue

FEW = 1000
"""Values that are looked at in one step."""


class Partly(dict[str, Any]):
    """What a server has answered, where there are long texts or values in it."""

    def copy(self) -> Partly:
        return Partly(self)


def unfolded(value: Any) -> Generator[None, None, Any]:
    """*value* with strings for the long texts in it, and what they say for long values. It is
    changed in its place."""
    if type(value) is LongText or type(value) is LongValue:
        return (yield from value.said())
    holders, n = [value] if isinstance(value, dict | list) else [], 0
    while holders:
        holder = holders.pop()
        # No name is added to it, so it may be gone through meanwhile.
        for key, inner in holder.items() if isinstance(holder, dict) else enumerate(holder):
            kind = type(inner)
            if kind is LongText or kind is LongValue:
                holder[key] = yield from inner.said()
            elif kind is dict or kind is list:
                holders.append(inner)
            n += 1
            if n % FEW == 0:
                yield
    return value
