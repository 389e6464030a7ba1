"""Lines and bytes of what is kept: as much as there is room for, and where the next part begins.

A part is cut between lines if there are whole ones in it, else between characters.
"""

from __future__ import annotations

from typing import Any

from ...errors import ExecutionFailed, InvalidArguments
from ...session.kept import Kept
from .ends import fitting

_LONG = "this line is too long to be shown; next goes on in it"
_LONGEST = 4
"""Bytes of a character."""


def span_of(name: str, first: int, last: int, least: int, most: int) -> tuple[int, int]:
    """Negative ones count from the end."""
    first = max(least, most + 1 + first) if first < 0 else first
    last = most + 1 + last if last < 0 else min(last, most)
    if not least <= first <= max(most, least) or last < first:
        raise InvalidArguments(f"{name}: expected a span within [{least}, {most}]")
    return first, last


def lines_of(kept: Kept, first: int, last: int, room: int) -> tuple[str, dict[str, Any]]:
    """Of these lines what there is *room* for, and what is said of it."""
    first, last = span_of("lines", first, last, 1, kept.lines)
    start, end = kept.start_of(first), kept.start_of(last + 1)
    said, stop = _part(kept, start, end, room)
    about: dict[str, Any] = {"lines": [first, last], "of": kept.lines}
    if stop == end:
        return said, about
    whole = said.rfind("\n") + 1
    if not whole:
        about["lines"] = [first, first]
        about["omitted"] = {"bytes": end - stop}
        return said, about | {"note": _LONG, "next": {"bytes": [stop, end]}}
    shown = first + said.count("\n") - 1
    about["lines"] = [first, shown]
    return said[:whole], about | {"more": last - shown, "next": {"lines": [shown + 1, last]}}


def bytes_of(kept: Kept, start: int, end: int, room: int) -> tuple[str, dict[str, Any]]:
    """The same of bytes; those of a character stay together."""
    start, end = span_of("bytes", start, end, 0, kept.size)
    for _ in range(_LONGEST - 1):
        start -= _is_within(kept, start)
        end += _is_within(kept, end)
    said, stop = _part(kept, start, end, room)
    about: dict[str, Any] = {"bytes": [start, stop], "of": kept.size}
    if stop < end:
        about |= {"more": end - stop, "next": {"bytes": [stop, end]}}
    return said, about


def _is_within(kept: Kept, at: int) -> bool:
    """Whether the byte there is of a character that begins before it."""
    return (kept.read(at, at + 1) or b" ")[0] & 0xC0 == 0x80


def _part(kept: Kept, start: int, end: int, room: int) -> tuple[str, int]:
    """What there is room for, and where that ends."""
    data = kept.read(start, min(end, start + room))
    for back in range(1, min(_LONGEST, len(data)) + 1):
        # A character that is not whole is of the next part.
        if data[-back] & 0xC0 == 0xC0:
            whole = 2 if data[-back] < 0xE0 else 3 if data[-back] < 0xF0 else 4
            data = data[: len(data) - back] if back < whole < len(data) + back else data
            break
        if data[-back] < 0x80:
            break
    said = fitting(decoded(kept, data), room)
    return said, start + len(said.encode("utf-8", "surrogatepass"))


def decoded(kept: Kept, data: bytes) -> str:
    """Some of its bytes as text.

    Raises:
        ExecutionFailed: they are none any more.
    """
    try:
        return data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        raise ExecutionFailed(
            f"result {kept.id} is no text any more, somebody has altered its file; grep still "
            "looks through it, or call again for a new one"
        ) from None
