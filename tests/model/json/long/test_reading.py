"""Parsing in parts changes nothing, and what is long can be left where it is."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from emceepee_trio.model.json.intake import DIGITS, SLICE, Measure, Unfit, finished
from emceepee_trio.model.json.long.partly import unfolded
from emceepee_trio.model.json.long.reading import read
from emceepee_trio.model.json.long.text import LongText
from emceepee_trio.model.json.long.value import LongValue
from emceepee_trio.model.json.spelling import pieces_of, spell
from emceepee_trio.model.json.weight import is_more_than
from emceepee_trio.model.wire import dumps
from texts import in_slices_of, texts

MIB = 1024 * 1024
MEASURE = Measure(16 * MIB, 1_000_000)


@pytest.mark.parametrize("size", [1, 3, 20])
@given(text=texts())
@example(text=b'{"a": [1, {"b": 2, "c": [3, 4]}, 5], "d": {"": 6, "e": "\\\\,\\",["}}')
def test_a_text_that_is_parsed_in_parts_says_the_same(size: int, text: bytes) -> None:
    with pytest.MonkeyPatch.context() as patch:
        in_slices_of(size, patch)
        assert finished(read(text, MEASURE, json.loads)) == json.loads(text)


CHARACTERS = st.sampled_from(
    [
        *(r"\n", r"\\", r"\"", r"\u00e9", r"\ud83e", r"\udd91", r"\ud83e\udd91", r"\ud83e\ud83e"),
        *("a", "ü", "🦑", "[", "]", "{", "}", ",", ":", "ud83e", " "),
    ]
)
STRINGS = st.lists(CHARACTERS, max_size=60).map(lambda inner: f'"{"".join(inner)}"')


@pytest.mark.parametrize("size", [14, 20, 50])
@given(strings=st.lists(STRINGS, min_size=12, max_size=12))
def test_long_strings_are_parsed_in_parts_too(size: int, strings: list[str]) -> None:
    a, b, c, d, e, f, g, h, i, j, k, m = strings
    text = f"[{a},[{{{b}: {c}, {d}:{e},{f}:{{{g}:[{h}]}}, {i}: [{j}] }}], {k}, [[{m}]]]".encode()
    whole = json.loads(text)
    with pytest.MonkeyPatch.context() as patch:
        in_slices_of(size, patch)
        assert said_of(text) in (whole, "has a name twice in an object")
        for string in strings:
            assert said_of(string.encode()) == json.loads(string)
            assert said_of(f" [ {string} ] ".encode()) == [json.loads(string)]
            assert said_of(f"[0, {{{string} : {string}}}, 1]".encode()) == [
                0,
                {json.loads(string): json.loads(string)},
                1,
            ]


@pytest.mark.parametrize("inside", ["x", r"\n", r"\u00e9", r"\ud83e\udd91", "é", r"\x", r"\u12g4"])
def test_no_string_is_parsed_at_once_that_is_long(inside: str) -> None:
    string = f'"{inside * 50_000}"'
    text = f'{{"jsonrpc": "2.0", "result": {{"content": [{{"text": {string}}}], {string}: 1}}}}'
    lengths: list[int] = []

    def loads(part: str) -> Any:
        lengths.append(len(part))
        return json.loads(part)

    try:
        found: object = finished(read(text.encode(), MEASURE, loads))
        assert found == json.loads(text)
    except Unfit:
        assert inside in (r"\x", r"\u12g4")
    assert max(lengths) < 2.1 * SLICE


@pytest.mark.parametrize("size", [14, 20, 50])
@given(strings=st.lists(STRINGS, min_size=4, max_size=4), part=st.slices(40))
def test_long_strings_can_be_left_where_they_are(
    size: int, strings: list[str], part: slice
) -> None:
    a, b, c, d = strings
    text = f'[{a}, {{"x": [{b}], {c} : {{"y":{d}}}}}]'.encode()
    whole, left = json.loads(text), list[LongText | LongValue]()
    first, last, _ = part.indices(40)
    with pytest.MonkeyPatch.context() as patch:
        in_slices_of(size, patch)
        value = finished(read(text, MEASURE, json.loads, left))
        found = [each for each in left if isinstance(each, LongText)]
        said = [finished(each.said()) for each in found]
        for each, right in zip(found, said, strict=True):
            assert (len(each), each[:], each[first:last]) == (len(right), right, right[first:last])
            assert each.size == len(right.encode("utf-8", "surrogatepass"))
            assert each[-first:] == right[-first:]
            assert is_more_than([each], 30) is is_more_than([right], 30)
            assert finished(spell([each])) == dumps([right])
        assert {*said} >= {
            json.loads(each) for each in (a, b, d) if len(each.encode()) > 3 * size + 30
        }
        assert said_of("".join(pieces_of(value)).encode("utf-8", "surrogatepass")) == whole
        assert finished(unfolded(value)) == whole


def test_what_is_no_json_is_none_where_it_is_left_either() -> None:
    for inside in (b"\\x", b"\xff", b"\\u12", b"\n"):
        text = b'["%b%b%b"]' % (b"x" * 40_000, inside, b"y" * 40_000)
        with pytest.raises(Unfit):
            finished(read(text, MEASURE, json.loads, []))


def said_of(text: bytes) -> object:
    try:
        return finished(read(text, MEASURE, json.loads))
    except Unfit as unfit:
        return str(unfit).replace("UTF-8", "JSON").split(":")[0]


@pytest.mark.parametrize("size", [1, 3, 20])
@given(text=texts(), place=st.integers(0, 400), junk=st.binary(min_size=0, max_size=3))
@example(text=b"[1, 2]", place=5, junk=b",")
@example(text=b"[1, 2]", place=6, junk=b", 3")
@example(text=b'{"a": 1}', place=7, junk=b",")
@example(text=b'{"' + b"1" * (DIGITS + 1) + b'": 1}', place=1, junk=b"")
def test_what_is_no_json_is_none_in_parts_either(
    size: int, text: bytes, place: int, junk: bytes
) -> None:
    broken = text[:place] + junk + text[place + 1 :]
    wanted: object = "is not JSON"
    with suppress(ValueError):
        wanted = json.loads(broken.decode())
    with pytest.MonkeyPatch.context() as patch:
        in_slices_of(size, patch)
        found = said_of(broken)
    if wanted == "is not JSON" and found == f"holds a number of more than {DIGITS} digits":
        return  # what was in a string is in none any more
    # Cut in between, nobody can tell which of two values of a name is open.
    assert repr(found) == repr(wanted) or found == "has a name twice in an object"


def test_long_texts_are_gone_through_in_steps() -> None:
    rows = [{"id": n, "name": f"n{n}", "tags": ["a", {"b": None}]} for n in range(5000)]
    text = json.dumps({"id": 1, "result": {"rows": rows}}).encode()
    lengths: list[int] = []

    def loads(part: str) -> Any:
        lengths.append(len(part))
        return json.loads(part)

    assert sum(1 for _ in read(text, MEASURE, loads)) > len(text) / SLICE
    assert finished(read(text, MEASURE, loads)) == json.loads(text)
    assert max(lengths) < 2.1 * SLICE


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b"", "is not JSON: "),
        (b"{", "is not JSON: "),
        (b"[1] 2", "is not JSON: Extra data"),
        (b'"caf\xe9"', "is not UTF-8"),
        (b"[" + b"0," * 40_000 + b'"\xe9"]', "is not UTF-8"),
        (b"0, " * 40_000, "is not JSON: there is more behind its end"),
    ],
)
def test_what_is_no_json_is_said_to_be_none(text: bytes, why: str) -> None:
    with pytest.raises(Unfit, match=why):
        finished(read(text, MEASURE, json.loads))


def test_a_byte_order_mark_is_none_of_it() -> None:
    assert finished(read(b"\xef\xbb\xbf{}", MEASURE, json.loads)) == {}
