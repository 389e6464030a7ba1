"""JSON of a peer: how deep, how much and how large it may be, found out before it is parsed.

A bound on bytes bounds none of those: a short text can be nested deeper than Python can write it
again, hold millions of values, or a number that nothing can be reckoned with. What does not fit is
refused with a reason; whoever waits for it can be told, if the text says who that is
(:func:`outlines`).

Pure. A long text is gone through in steps, between which a caller lets others run
(`waits/slices.py`), and so is its parsing: it is cut after commas, and each part is completed with
the brackets that are open at its ends, parsed, and joined to what there is.
"""

from __future__ import annotations

import codecs
import re
import secrets
from collections.abc import Callable, Generator, Mapping
from typing import Any, TypeAlias, TypeVar

import attrs

from .long_text import LongText, Text, pieces_of_string

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
OUTLINES = 100
"""Messages of a list that are recognised although the list is not taken."""

Outline: TypeAlias = dict[str, str | int | None]
"""Of a message: its ``id``, its ``method``, whether it has a ``result`` or an ``error``."""

_OPENING, _LIST = b"[{", ord("[")
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_LONG_NUMBER = re.compile(rb"[0-9]{%d}" % (DIGITS + 1))
_TWO_DIGITS = re.compile(rb"[0-9]{2}")
_BEGINS_WITH_LIST = re.compile(rb"(?:\xef\xbb\xbf)?\s*+\[")
_MEMBER = re.compile(
    rb'"(id|method|result|error)"\s{0,100}+:\s{0,100}+'
    rb"(?:(-?\d{1,15}(?:\.\d{1,15})?(?:[eE][+-]?\d{1,2})?)(?=\s{0,100}[,}])"
    rb'|("[^"\\\x00-\x1f]{0,200}")|)'
)
_NAMES = re.compile(rb"[ \t\r\n]*+:")
"""What makes a string before it the name of a member."""
_LONGEST_MEMBER = 1024
"""Bytes, and more than such a match can have."""


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
    lowest: int
    """Of the brackets that were open when somebody last set this, how many still are."""


@attrs.define(eq=False)
class Gauge:
    """How deep one is in a text that is fed in parts, and how much there has been."""

    open: bytearray = attrs.field(factory=bytearray, init=False)
    """The brackets that are."""
    lowest: int = attrs.field(default=0, init=False)
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
                cut = Cut(position + comma - shift, bytes(self.open), self.lowest)
                self.lowest = len(self.open)
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


def read(
    text: bytes | bytearray,
    measure: Measure,
    loads: Callable[[str], Any],
    long: list[LongText] | None = None,
) -> Steps[Any]:
    """What *text* says; *loads* parses it. Strings in it that are long are added to *long*, and
    stay where they are.

    Raises:
        Unfit: it is not JSON, or too much of it.
    """
    if text.startswith(codecs.BOM_UTF8):
        text = text.removeprefix(codecs.BOM_UTF8)
    try:
        if _is_harmless(text, measure):
            return loads(text.decode())
        return (yield from _read_in_parts(text, measure, loads, long))
    except Unfit:
        raise
    except UnicodeDecodeError:
        raise Unfit("is not UTF-8") from None
    except (ValueError, RecursionError) as error:
        raise Unfit(f"is not JSON: {str(error)[:200]}") from None


def _is_harmless(text: bytes | bytearray, measure: Measure) -> bool:
    """Whether that can be said without a closer look, as of almost every message."""
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
    if not _is_harmless(said, measure):
        for start in range(0, len(said), SLICE):
            gauge.feed(said[start : start + SLICE])
            measure.check(gauge)


_BEGIN, _END, _LONG = (secrets.token_hex(12) for _ in range(3))
"""In a part, these stand for what came before it, what comes after it, and, with a number, for a
long string. No peer knows them."""


def _read_in_parts(
    text: bytes | bytearray,
    measure: Measure,
    loads: Callable[[str], Any],
    found: list[LongText] | None,
) -> Steps[Any]:
    gauge, seen = Gauge(), list[tuple[int, Cut | None, tuple[int, int] | None]]()
    # Nothing is made of what is too much: to free it would take long, too.
    for start in range(0, len(text), SLICE):
        if start:
            yield
        cut = gauge.feed(text[start : start + SLICE])
        measure.check(gauge)
        seen.append((start, cut, gauge.long))
    spine = _Spine(loads)
    part, begin = b"", 0  # what is not parsed yet: this, and what comes from there on
    for start, cut, long in seen:
        if long is not None:
            first, last = long
            yield
            if found is None or _NAMES.match(text, last + 1):
                name = yield from spine.keep(text, first, last)
            else:
                found.append((yield from LongText.found(text, first, last, SLICE)))
                name = spine.stands_for(found[-1])
            part, begin = part + text[begin:first] + name, last
        if cut is not None and start + SLICE < len(text):
            yield
            end = start + cut.position
            spine.grow(part + text[begin:end], cut)
            part, begin = b"", end
    if begin:
        yield
    return spine.end(part + text[begin:])


@attrs.define(eq=False)
class _Spine:
    """What has been parsed so far: the lists and objects that are open, outermost first."""

    _loads: Callable[[str], Any]
    _values: list[Any] = attrs.field(factory=list, init=False)
    _brackets: bytes = attrs.field(default=b"", init=False)
    _long: dict[str, Text] = attrs.field(factory=dict, init=False)
    """Strings of the next part, by what stands for them there."""

    def keep(self, text: bytes | bytearray, first: int, last: int) -> Steps[bytes]:
        """Parse the inside of a long string; what stands for it."""
        said = ""  # grows in its place: with a list of its pieces it would be there twice
        for _, piece in pieces_of_string(text, first, last, SLICE, self._loads):
            said += piece
            yield
        return self.stands_for(said)

    def stands_for(self, said: Text) -> bytes:
        name = f"{_LONG}{len(self._long)}"
        self._long[name] = said
        return name.encode()

    def grow(self, part: bytes | bytearray, cut: Cut) -> None:
        """*part* ends with the comma."""
        if not cut.open:
            raise Unfit("is not JSON: there is more behind its end")
        mark = f'"{_END}"' if cut.open[-1] == _LIST else f'"{_END}":"{_END}"'
        closing = "".join("]" if bracket == _LIST else "}" for bracket in reversed(cut.open))
        self._join(part.decode() + mark + closing)
        del self._values[max(cut.lowest, 1) :]
        while len(self._values) < len(cut.open):
            self._values.append(_last(self._values[-1]))
        innermost = self._values[-1]
        if _last(innermost) != _END:  # another value of the same name has taken its place
            raise Unfit("has a name twice in an object")
        innermost.pop() if type(innermost) is list else innermost.popitem()
        self._brackets = cut.open

    def end(self, part: bytes | bytearray) -> Any:
        self._join(part.decode())
        return self._values[0]

    def _join(self, part: str) -> None:
        *outer, inner = map(chr, self._brackets) if self._brackets else ("",)
        begin = "".join("[" if bracket == "[" else f'{{"{_BEGIN}":' for bracket in outer)
        mark = {"": "", "[": f'["{_BEGIN}",', "{": f'{{"{_BEGIN}":0,'}[inner]
        parsed = self._loads(begin + mark + part)
        if self._long:
            parsed = _put_back(parsed, self._long)
            self._long.clear()
        if not self._values:
            self._values.append(parsed)
            return
        for value in self._values:
            if type(value) is list:
                value += parsed[1:]
                parsed = parsed[0]
            else:
                first = parsed.pop(_BEGIN)
                value.update(parsed)
                parsed = first


def _put_back(value: Any, long: Mapping[str, Text]) -> Any:
    """Long strings for what stands for them, which is on the way to the first leaf: before them in
    their part there is no comma."""
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
            cut = gauge.feed(text[seen : member.start()])
            lowest = min(lowest, gauge.lowest, gauge.lowest if cut is None else cut.lowest)
            seen = member.start()
            if len(gauge.open) != level or gauge.in_string:
                continue
            if lowest < level:
                found.append({})
                lowest = gauge.lowest = level
            found[-1].setdefault(member[1].decode(), _value_of(member))
        if len(found) > OUTLINES or (
            level == 1 and found and "id" in found[0] and len(found[0]) > 1
        ):
            break
        cut = gauge.feed(text[seen:end])
        lowest = min(lowest, gauge.lowest, gauge.lowest if cut is None else cut.lowest)
        seen = max(seen, end)
    return found[:OUTLINES]


def _value_of(member: re.Match[bytes]) -> str | int | None:
    if member[2] is not None:
        number = float(member[2])  # of so few digits it is exact; some write 1e+06
        return int(number) if number.is_integer() else None
    return member[3][1:-1].decode(errors="replace") if member[3] is not None else None


def finished(steps: Steps[T]) -> T:
    """Go through all steps at once; for what is known to be short."""
    try:
        while True:
            next(steps)
    except StopIteration as end:
        result: T = end.value
        return result
