"""Who waits for a message that is not taken, found in a text that is not parsed. Pure."""

from __future__ import annotations

import re
from typing import TypeAlias

from ..intake import SLICE, Gauge, Steps

OUTLINES = 100
"""Messages of a list that are recognised although the list is not taken."""

Outline: TypeAlias = dict[str, str | int | None]
"""Of a message: its ``id``, its ``method``, whether it has a ``result`` or an ``error``."""

_BEGINS_WITH_LIST = re.compile(rb"(?:\xef\xbb\xbf)?\s*+\[")
_MEMBER = re.compile(
    rb'"(id|method|result|error)"\s{0,100}+:\s{0,100}+'
    rb"(?:(-?(?:0|[1-9]\d{0,14})(?:\.\d{1,15})?(?:[eE][+-]?\d{1,2})?)(?=\s{0,100}[,}])"
    rb'|("[^"\\\x00-\x1f]{0,200}")|)'
)
_LONGEST_MEMBER = 1024
"""Bytes, and more than such a match can have."""


def outlines(text: bytes | bytearray) -> Steps[list[Outline]]:
    """What the JSON-RPC messages of a text are that is not parsed: of one, or of a list of them.

    What cannot be read, or is long, is None.
    """
    level = 2 if _BEGINS_WITH_LIST.match(text) else 1
    found: list[Outline] = []
    gauge, seen, lowest = Gauge(), 0, 0
    for start in range(0, len(text), SLICE):
        if start:
            yield
        end = start + SLICE
        for member in _MEMBER.finditer(text, start, end + _LONGEST_MEMBER):
            if member.start() >= end:
                break
            gauge.feed(text[seen : member.start()])
            lowest = min(lowest, gauge.lowest)
            seen = member.start()
            if len(gauge.open) != level or gauge.in_string:
                continue
            if lowest < level:
                found.append({})
                lowest = level
            found[-1].setdefault(member[1].decode(), _value_of(member))
        if len(found) > OUTLINES or (
            level == 1 and found and "id" in found[0] and len(found[0]) > 1
        ):
            break
        gauge.feed(text[seen:end])
        lowest = min(lowest, gauge.lowest)
        seen = max(seen, end)
    return found[:OUTLINES]


def _value_of(member: re.Match[bytes]) -> str | int | None:
    if member[2] is not None:
        number = float(member[2])  # of so few digits it is exact; some write 1e+06
        return int(number) if number.is_integer() else None
    return member[3][1:-1].decode(errors="replace") if member[3] is not None else None
