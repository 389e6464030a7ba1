"""JSON that is nearly right: members missing, doubled, renamed and of other types, at any depth.

Also what no value of Python spells, and bytes that are no JSON any more. Knows nothing of what the
JSON means: who fuzzes brings good messages along.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import attrs
from hypothesis import Phase, settings
from hypothesis import strategies as st

from strategies import json_values

Path: TypeAlias = tuple[str | int, ...]
Change: TypeAlias = Callable[[Any], Any]

MORE = settings(max_examples=2 * settings().max_examples)
"""For tests that take a millisecond or two each."""
AS_IT_IS = settings(phases=[Phase.explicit, Phase.reuse, Phase.generate])
"""For those whose examples are simple, and try dozens of things each: simpler ones take minutes."""
HALF = settings(AS_IT_IS, max_examples=max(5, settings().max_examples // 2))

LONG = 150_000
"""Characters of what is too long, where the bounds are :data:`SMALL`."""
SMALL = 100_000


@attrs.frozen
class Verbatim:
    """A value that stands in the text as it is here."""

    text: str


@attrs.frozen
class Members:
    """An object whose keys may repeat."""

    pairs: tuple[tuple[str, Any], ...]


def spelled(value: Any) -> str:
    """The text of a value, in ASCII."""
    match value:
        case Verbatim(text):
            return text
        case Members(pairs):
            return "{" + ", ".join(f"{json.dumps(k)}: {spelled(v)}" for k, v in pairs) + "}"
        case dict():
            return spelled(Members(tuple(value.items())))
        case list():
            return "[" + ", ".join(map(spelled, value)) + "]"
    return json.dumps(value)


def nested(depth: int, start: str = "[", end: str = "]") -> Verbatim:
    return Verbatim(start * depth + "1" + end * depth)


DEPTHS = st.sampled_from([20, 200, 260, 500, 900, 2000, 100_000]) | st.integers(100, 1100)
"""Around where serializers end, and parsers: what they read just so is too deep for those who are
called from deeper below."""

SCALARS = [None, True, False, 0, -1, 1, 2, 1.5, -0.0, 2**31, 2**53 + 1, 2**64, 10**30, 1e300]
STRINGS = [
    *("", " ", "0", "1", "true", "null", "x", "\x00", "\n", "\r\n", "\x7f", "\x85", "\u2028"),
    *("ü", "\U0001f600", "\ufeff", "\ufffe", "..", "__proto__", "%s", "${HOME}", "a" * 300),
    *("x" * 70_000, "x" * LONG, "[]", "{}", "[" * 2000, "\ud800", "\udfffx", "good", "echo"),
]
CONTAINERS: list[Any] = [[], {}, [[]], [{}], {"": ""}, {"": None}, [None], [0] * 2000]
BEYOND = ["NaN", "Infinity", "-Infinity", "1e999", "-1e999", "1E400", "1e-999", "9" * 400]
"""What Python reads, and others do not or differently."""
BROKEN = [
    *("9" * 4300, "9" * 5000, "1." + "9" * 5000, "01", "+1", "0x1", ".5", '"\\x"', '"\t"', "'x'"),
    *('"\\ud800"', '"\\udc00\\ud800"', '"\\u0000"', '{"a": 1, "a": 2}', '{"a": 1,}', "[1,]"),
    *("{1: 2}", "nul", "x", ""),
]
NUMBERS = [
    *("0", "-0", "-1", "0.1", "0.30000000000000004", "1e-999", "5e-324", "1.5", "1000000.0"),
    *("2147483648", "9007199254740993", "18446744073709551616", "1e300", "1e308", "1e309"),
    *(
        "1e999",
        "-1e999",
        "1" + "0" * 400,
        "-1" + "0" * 400,
        "9" * 4300,
        "9" * 5000,
        "1." + "9" * 400,
    ),
]
"""Where a number is expected, of any magnitude and in any form."""

numbers: st.SearchStrategy[Any] = st.builds(Verbatim, st.sampled_from(NUMBERS))
deep: st.SearchStrategy[Any] = st.builds(nested, DEPTHS) | st.builds(
    nested, DEPTHS, st.just('{"a":'), st.just("}")
)
NO_TEXT = "\ue000"
"""Stands for bytes that are no text, see :func:`encoded`."""

readable: st.SearchStrategy[Any] = st.one_of(
    st.sampled_from(SCALARS),
    st.sampled_from(STRINGS),
    st.sampled_from(CONTAINERS),
    st.builds(Verbatim, st.sampled_from(BEYOND)),
    st.just(Verbatim(f'"{NO_TEXT}"')),
    numbers,
    deep,
    json_values,
)
"""Where it begins and where it ends can be told."""
values = readable | st.builds(Verbatim, st.sampled_from(BROKEN)) | json_values

KEYS = [
    *("", "id", "jsonrpc", "method", "params", "result", "error", "_meta", "name", "arguments"),
    *("code", "message", "data", "\ud800", "\x00", "__proto__", "x" * 70_000, "progressToken"),
    *("cursor", "type", "content", "isError", "structuredContent", "nextCursor", "resultType"),
]
keys = st.sampled_from(KEYS) | st.text(max_size=5)


def places(value: Any, path: Path = ()) -> Iterator[Path]:
    """The path of every value in *value*, its own first."""
    yield path
    if isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(inner, (*path, key))


def at(value: Any, path: Path) -> Any:
    for key in path:
        value = value[key]
    return value


def changed(value: Any, path: Path, change: Change) -> Any:
    """*value* with something else at *path*."""
    if not path:
        return change(value)
    copy = value.copy()
    copy[path[0]] = changed(copy[path[0]], path[1:], change)
    return copy


@st.composite
def _within(draw: st.DrawFn, value: Any, path: Path, values: st.SearchStrategy[Any]) -> Any:
    """*value* with one member more, less, twice, or under another name at *path*."""
    inner = at(value, path)
    own = list(inner) if isinstance(inner, dict) else list(range(len(inner)))
    how = draw(st.sampled_from(["drop", "rename", "double", "add"] if own else ["add"]))
    new: Any
    if isinstance(inner, list):
        new = [*inner, draw(values)]
        if how != "add":
            at_key = draw(st.sampled_from(own))
            new = [*inner[:at_key], *([inner[at_key]] * (how == "double")), *inner[at_key:]]
            new = new if how == "double" else inner[:at_key] + inner[at_key + 1 :]
    elif how == "add":
        new = {**inner, draw(keys): draw(values)}
    else:
        key = draw(st.sampled_from(own))
        pairs = tuple(inner.items())
        if how == "drop":
            new = {k: v for k, v in pairs if k != key}
        elif how == "rename":
            name = draw(keys | st.sampled_from([key.upper(), key + " ", key.swapcase(), "_" + key]))
            new = {name if k == key else k: v for k, v in pairs}
        else:
            again = (key, draw(values))
            new = Members(draw(st.sampled_from([(*pairs, again), (again, *pairs)])))
    return changed(value, path, lambda _: new)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


@st.composite
def _once(draw: st.DrawFn, value: Any, values: st.SearchStrategy[Any]) -> Any:
    """*value* with one mistake."""
    everywhere = list(places(value))
    # Most values stand near the root, where a mistake hides all that is below it.
    lower = [path for path in everywhere if len(path) > 1]
    # How first, and where second: of some kinds of value there are few among many others.
    how = draw(st.sampled_from(HOW))
    if how == "number":
        counted = [path for path in everywhere if _is_number(at(value, path))]
        if counted:
            new = draw(numbers)
            return changed(value, draw(st.sampled_from(counted)), lambda _: new)
        how = "put"
    is_deep = draw(st.integers(0, 2)) > 0
    path = draw(st.sampled_from(lower if lower and is_deep else everywhere))
    if how == "deep":
        below = draw(deep)
        return changed(value, path, lambda _: below)
    if how == "within" and isinstance(at(value, path), dict | list):
        return draw(_within(value, path, values))
    if how == "wrap":
        wrap = draw(st.sampled_from([lambda v: [v], lambda v: {"value": v}, lambda v: [v, v]]))
        return changed(value, path, wrap)
    if how == "transplant":
        other = at(value, draw(st.sampled_from(everywhere)))
        return changed(value, path, lambda _: other)
    put = draw(values)
    return changed(value, path, lambda _: put)


HOW = ["put", "put", "within", "within", "wrap", "transplant", "number", "number", "deep"]


@st.composite
def mutants(
    draw: st.DrawFn,
    originals: st.SearchStrategy[Any],
    most: int = 2,
    values: st.SearchStrategy[Any] = values,
) -> Any:
    """One of *originals* with some mistakes, or with none, which has to go on working."""
    value = draw(originals)
    for _ in range(draw(st.integers(0, most))):
        value = draw(_once(value, values))
    return value


BYTES = [
    *(b"\xff", b"\xc3(", b"\xed\xa0\x80", b"\x00", b"\n", b"\r\n", b"\r", b"\xef\xbb\xbf", b"\x1b"),
    *(b"{", b"}", b"[", b"]", b'"', b",", b"\\", b"\\u", b" ", b"\xf4\x90\x80\x80", b"/*x*/", b"-"),
]


WRONG_TEXT = [b"\xff", b"\xe9t\xe9", b"\xc3(", b"\xed\xa0\x80", b"\x00", b"\xf4\x90\x80\x80"]
"""Not UTF-8, or nothing that may stand in JSON: Latin-1, surrogates, a NUL."""


@st.composite
def encoded(draw: st.DrawFn, text: str) -> bytes:
    wrong = draw(st.sampled_from(WRONG_TEXT)) if NO_TEXT in text else b""
    return text.encode().replace(NO_TEXT.encode(), wrong)


@st.composite
def garbled(draw: st.DrawFn, text: str) -> bytes:
    """The bytes of *text*, cut, with others among them, or in another encoding."""
    how = draw(st.sampled_from(["cut", "insert", "insert", "remove", "encode"]))
    data = text.encode()
    start = draw(st.integers(0, min(len(data), 400)))
    if how == "cut":
        return data[:start]
    if how == "insert":
        return data[:start] + draw(st.sampled_from(BYTES)) + data[start:]
    if how == "remove":
        return data[:start] + data[start + draw(st.integers(1, 20)) :]
    return text.encode(draw(st.sampled_from(["utf-16", "utf-16-le", "utf-32", "utf-8-sig"])))


class Body(bytes):
    """Bytes that can be shown however many they are; the blob of a failure has all of them."""

    def __repr__(self) -> str:
        whole = super().__repr__()
        return whole if len(whole) < 2000 else f"{whole[:500]} … {len(self)} bytes … {whole[-200:]}"


@st.composite
def bodies(draw: st.DrawFn, originals: st.SearchStrategy[Any], most: int = 2) -> bytes:
    """Bytes that are nearly the JSON of one of *originals*."""
    text = spelled(draw(mutants(originals, most)))
    return Body(draw(garbled(text)) if draw(st.integers(0, 7)) == 7 else draw(encoded(text)))
