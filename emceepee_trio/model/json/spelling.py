"""JSON that is written in steps, because it is long, or weighed.

It says what :func:`.wire.dumps` says, and :func:`.weight.weigh`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import islice, repeat
from typing import Any

from ..wire import dumps
from .intake import Steps
from .long.joining import opening
from .long.text import LongText
from .long.value import LongValue
from .weight import weigh

VALUES = 2000
"""Values that are written in one step, if there are no strings."""
CHARACTERS = 64 * 1024
"""Characters of strings that are, if there is but one."""
FEW = 500
"""Values that are weighed in one step, unless they are long themselves."""


def weight(value: Any) -> int:
    """How much there is to write; looks at no more of it than one step writes."""
    values, found = [value], 0
    for inner in values:
        kind = type(inner)
        if kind is str:
            found += len(inner)
        elif kind is dict or kind is list:
            values += inner.values() if kind is dict else inner
            if len(values) > VALUES:
                break
        elif kind is LongText:
            found += CHARACTERS + len(inner)  # never at once
    return found + len(values) * (CHARACTERS // VALUES)


def is_long(value: Any) -> bool:
    """Whether it is more than one step writes."""
    return weight(value) > CHARACTERS


def weighed(value: Any) -> Steps[int]:
    """What it weighs."""
    if type(value) is str or not is_long(value):
        return weigh(value)
    yield
    is_object = type(value) is dict
    rest = iter(value.items() if is_object else value)
    found = empty = weigh({} if is_object else [])
    while few := list(islice(rest, FEW)):
        some = dict(few) if is_object else few
        if not is_long(some):
            found += weigh(some) - empty
        else:
            if is_object:
                found += sum(weigh(key) for key, _ in few)
            for each in few:
                found += yield from weighed(each[1] if is_object else each)
        yield
    return found


def spell(value: Any) -> Steps[str]:
    """The JSON of *value*, in one step if it is no longer than that."""
    said = yield from spell_up_to(value, math.inf)
    assert said is not None
    return said


def spell_up_to(value: Any, most: float) -> Steps[str | None]:
    """The same, but nothing if it has many more characters than *most*."""
    if not is_long(value):
        return dumps(value)
    yield
    parts: list[str] = []
    seen = size = 0
    for _ in _spell(value, parts):
        size += sum(map(len, parts[seen:]))
        seen = len(parts)
        if size > most:
            return None
        yield
    return "".join(parts)


def pieces_of(value: Any) -> Iterator[str]:
    """The same in pieces, none of which is much longer than one step writes."""
    if not is_long(value):
        yield dumps(value)
        return
    parts: list[str] = []
    for _ in _spell(value, parts):
        yield "".join(parts)
        parts.clear()
    yield "".join(parts)


def pieces_of_long(
    value: LongValue, seen: Callable[[bytes, Any], object] = lambda before, said: None
) -> Iterator[str]:
    """Those of a value that is still in its message; *seen* is shown each part of it, and what was
    open before that."""
    for before, said, after in value.parts():
        first, last = len(opening(before)), len(after or b"")
        held = ""
        for piece in pieces_of(said):
            held += piece
            if len(held) > first + last:
                yield held[first : len(held) - last]
                held, first = held[len(held) - last :], 0
        if after is not None:
            yield ","
        seen(before, said)


def _spell(value: Any, parts: list[str]) -> Steps[None]:
    if type(value) is str or type(value) is LongText:
        pieces = range(0, len(value), CHARACTERS)
        parts.append('"')
        for start in pieces:
            parts.append(dumps(value[start : start + CHARACTERS])[1:-1])
            yield
        parts.append('"')
        return
    is_list = type(value) is list
    few: list[tuple[Any, Any]] = []
    found, comma = 0, "[" if is_list else "{"

    def write_few() -> None:
        nonlocal few, found, comma
        if few:
            said = dumps([inner for _, inner in few] if is_list else dict(few))
            parts.extend((comma, said[1:-1]))
            few, found, comma = [], 0, ","

    pairs = zip(repeat(""), value) if is_list else value.items()
    for key, inner in pairs:
        size = weight(inner)
        if found + size + len(key) > CHARACTERS:
            write_few()
            yield
        if size > CHARACTERS:
            parts.append(comma if is_list else f"{comma}{dumps(key)}:")
            comma = ","
            yield from _spell(inner, parts)
        elif size + len(key) > CHARACTERS:
            parts.append((comma if is_list else f"{comma}{dumps(key)}:") + dumps(inner))
            comma = ","
        else:
            few.append((key, inner))
            found += size + len(key)
    write_few()
    parts.append("]" if is_list else "}")
