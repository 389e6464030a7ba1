"""The parts of a long text parsed, each by itself, and joined. Pure.

A part is completed with the brackets that are open at its ends. What is long in it is not there
when it is parsed, but a name that stands for it, and is put back afterwards.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

import attrs

from ..intake import SLICE, Steps, Unfit
from .cutting import JsonPart, LongPlace
from .text import pieces_of_string

Loads: TypeAlias = Callable[[str], Any]

_BEGIN, _END, _LONG = (secrets.token_hex(12) for _ in range(3))
"""In a part, these stand for what came before it, what comes after it, and, with a number, for what
is long. No peer knows them."""
_LIST = ord("[")


def opening(before: bytes) -> str:
    """What a part is completed with at its beginning, where those brackets are open."""
    if not before:
        return ""
    outer = "".join("[" if bracket == _LIST else f'{{"{_BEGIN}":' for bracket in before[:-1])
    return outer + (f'["{_BEGIN}",' if before[-1] == _LIST else f'{{"{_BEGIN}":0,')


def _closing(after: bytes) -> str:
    mark = f'"{_END}"' if after[-1] == _LIST else f'"{_END}":"{_END}"'
    return mark + "".join("]" if bracket == _LIST else "}" for bracket in reversed(after))


def parsed(
    part: JsonPart,
    text: bytes | bytearray,
    loads: Loads,
    long: Callable[[LongPlace], Steps[Any]],
) -> Steps[Any]:
    """What *part* of *text* says, within what was open before it; *long* is what is at a place.

    Raises:
        ValueError: it is not JSON, or not UTF-8.
    """
    said, first, stand_ins = b"", part.first, dict[str, Any]()
    for place in part.long:
        yield
        name = f"{_LONG}{len(stand_ins)}"
        stand_ins[name] = yield from long(place)
        said += text[first : place.first] + (f'"{name}"' if place.is_value else name).encode()
        first = place.last
    if stand_ins:
        yield
    said = opening(part.before).encode() + said + text[first : part.last]
    if part.after is None:
        value = loads(said.decode())
    elif part.after:
        value = loads(said.decode() + _closing(part.after))
        _take_end(value, part.after)
    else:
        raise Unfit("is not JSON: there is more behind its end")
    return _put_back(value, stand_ins) if stand_ins else value


def _take_end(value: Any, after: bytes) -> None:
    for _ in after[1:]:
        value = _last(value)
    if _last(value) != _END:  # another value of the same name has taken its place
        raise Unfit("has a name twice in an object")
    value.pop() if type(value) is list else value.popitem()


def _put_back(value: Any, long: Mapping[str, Any]) -> Any:
    """What is long for what stands for it, which is on the way to the first leaf: before it in its
    part there is no comma."""
    if type(value) is str:
        return long.get(value, value)
    if type(value) is list:
        n = int(value[:1] == [_BEGIN])
        value[n : n + 1] = [_put_back(inner, long) for inner in value[n : n + 1]]
    elif type(value) is dict:
        keys = iter(value)
        key = next(keys, None)
        if key == _BEGIN and value[key] == 0:
            key = next(keys, None)
        if key is not None and key in long:
            pairs = [(long.get(name, name), inner) for name, inner in value.items()]
            value.clear()
            value.update(pairs)
            key = long[key]
        if key is not None:
            value[key] = _put_back(value[key], long)
    return value


def _last(value: Any) -> Any:
    if type(value) is list and value:
        return value[-1]
    if type(value) is dict and value:
        return value[next(reversed(value))]
    return None


def joined(
    parts: Iterable[JsonPart | None],
    text: bytes | bytearray,
    loads: Loads,
    long: Callable[[LongPlace], Steps[Any]],
) -> Steps[Any]:
    """What all of them say."""
    spine = Spine()
    for n, part in enumerate(parts):
        if n:
            yield
        if part is not None:
            value = yield from parsed(part, text, loads, long)
            spine.join(value, part.after or b"")
    return spine.whole


@attrs.define(eq=False)
class Spine:
    """What has been parsed so far, and what in it is open."""

    whole: Any = attrs.field(default=None, init=False)
    _open: list[Any] = attrs.field(factory=list, init=False)
    """Lists and objects, outermost first."""

    def join(self, value: Any, after: bytes) -> None:
        if not self._open:
            self.whole = value
        for holder in self._open:
            rest, value = taken_apart(value)
            if type(holder) is list:
                holder += rest
                continue
            if rest:  # the last of them stays that, though one of its name came before
                holder.pop(next(reversed(rest)), None)
            holder.update(rest)
        self._open = [self.whole] if after else []
        while len(self._open) < len(after):
            self._open.append(_last(self._open[-1]))


def taken_apart(value: Any) -> tuple[Any, Any]:
    """What a part adds to a list or object that was open before it, and to the next inner one."""
    if type(value) is list:
        return value[1:], value[0]
    first = value.pop(_BEGIN)
    return value, first


def string(text: bytes | bytearray, place: LongPlace, loads: Loads) -> Steps[str]:
    """A long one."""
    said = ""  # grows in its place: with a list of its pieces it would be there twice
    for _, piece in pieces_of_string(text, place.first, place.last, SLICE, loads):
        said += piece
        yield
    return said
