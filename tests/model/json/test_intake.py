"""What is found out about a text before it is parsed, and that parsing in parts changes nothing."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from emceepee_trio.model.json import intake
from emceepee_trio.model.json.intake import (
    DEPTH,
    DIGITS,
    Gauge,
    Measure,
    TooMuch,
    Unfit,
    check_text,
    finished,
    outlines,
    read,
)
from emceepee_trio.model.json.long_text import LongText, unfolded
from emceepee_trio.model.json.spelling import pieces_of, spell
from emceepee_trio.model.json.weight import is_more_than
from emceepee_trio.model.wire import dumps

MIB = 1024 * 1024
MEASURE = Measure(16 * MIB, 1_000_000)

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(),
    st.sampled_from(
        ["\\", '"', '\\"', "[", "]", "{", "}", ",", ":", "\ud83d", "ü" * 20, "1" * 400]
    ),
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | scalars.map(str), inner),
    max_leaves=20,
)


@st.composite
def texts(draw: st.DrawFn) -> bytes:
    value = draw(values)
    indent = draw(st.sampled_from([None, 0, 3]))
    text = json.dumps(value, ensure_ascii=draw(st.booleans()), indent=indent)
    return text.encode(errors="replace")


def depth(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return isinstance(value, dict | list) + max(map(depth, inner), default=0)


def size(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + sum(map(size, inner))


def parts_of(text: bytes, cuts: list[int]) -> list[bytes]:
    ends = sorted({min(cut, len(text)) for cut in cuts} | {len(text)})
    return [text[a:b] for a, b in zip([0, *ends], ends, strict=False)]


@given(texts(), st.lists(st.integers(0, 400)))
def test_the_gauge_agrees_with_the_parser_however_a_text_is_cut(
    text: bytes, cuts: list[int]
) -> None:
    gauge, whole, highest = Gauge(), Gauge(), 0
    for part in parts_of(text, cuts):
        gauge.feed(part)
        highest = max(highest, len(gauge.open))
    whole.feed(text)
    value = json.loads(text)
    assert not gauge.open
    assert not gauge.in_string
    assert not gauge.is_too_deep
    assert gauge.values == whole.values
    assert size(value) - 1 <= gauge.values <= 2 * size(value) - 1
    assert gauge.has_long_number is whole.has_long_number is False
    assert highest <= depth(value)


@given(texts(), st.integers(0, 400))
def test_a_text_may_be_cut_where_the_gauge_says(text: bytes, end: int) -> None:
    gauge = Gauge()
    cut = gauge.feed(text[:end])
    if cut is not None:
        assert text[cut.position - 1 : cut.position] == b","
        closing = bytes(b"]"[0] if b == b"["[0] else b"}"[0] for b in reversed(cut.open))
        assert cut.open
        json.loads(text[: cut.position - 1] + closing)


@pytest.mark.parametrize("size", [1, 3, 20])
@given(text=texts())
@example(text=b'{"a": [1, {"b": 2, "c": [3, 4]}, 5], "d": {"": 6, "e": "\\\\,\\",["}}')
def test_a_text_that_is_parsed_in_parts_says_the_same(size: int, text: bytes) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(intake, "SLICE", size)
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
        patch.setattr(intake, "SLICE", size)
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
    assert max(lengths) < 2.1 * intake.SLICE


@pytest.mark.parametrize("size", [14, 20, 50])
@given(strings=st.lists(STRINGS, min_size=4, max_size=4), part=st.slices(40))
def test_long_strings_can_be_left_where_they_are(
    size: int, strings: list[str], part: slice
) -> None:
    a, b, c, d = strings
    text = f'[{a}, {{"x": [{b}], {c} : {{"y":{d}}}}}]'.encode()
    whole, found = json.loads(text), list[LongText]()
    first, last, _ = part.indices(40)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(intake, "SLICE", size)
        value = finished(read(text, MEASURE, json.loads, found))
        said = [finished(each.said()) for each in found]
        for left, right in zip(found, said, strict=True):
            assert (len(left), left[:], left[first:last]) == (len(right), right, right[first:last])
            assert left.size == len(right.encode("utf-8", "surrogatepass"))
            assert left[-first:] == right[-first:]
            assert is_more_than([left], 30) is is_more_than([right], 30)
            assert finished(spell([left])) == dumps([right])
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
        patch.setattr(intake, "SLICE", size)
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

    assert sum(1 for _ in read(text, MEASURE, loads)) > len(text) / intake.SLICE
    assert finished(read(text, MEASURE, loads)) == json.loads(text)
    assert max(lengths) < 2.1 * intake.SLICE


def nested(levels: int, kind: str) -> str:
    start, end = {"lists": ("[", "]"), "objects": ('{"a":', "}")}[kind]
    return start * levels + "1" + end * levels


@pytest.mark.parametrize("kind", ["lists", "objects"])
@pytest.mark.parametrize("around", [0, 50_000])
@pytest.mark.parametrize("in_front", [True, False])
def test_what_is_deep_is_refused_wherever_it_stands(kind: str, around: int, in_front: bool) -> None:
    for levels in (DEPTH - 1, DEPTH, 2 * DEPTH, 100_000):
        both = [nested(levels, kind), json.dumps("[" * around)]
        text = f"[{', '.join(both if in_front else reversed(both))}]".encode()
        if levels < DEPTH:
            assert finished(read(text, MEASURE, json.loads)) == json.loads(text)
        else:
            with pytest.raises(TooMuch, match="is nested deeper than 200 levels"):
                finished(read(text, MEASURE, json.loads))


@pytest.mark.parametrize("wide", ["[],", '{"a":[{}]},'])
def test_what_is_wide_is_not_deep(wide: str) -> None:
    text = f"[{wide * 20_000}0]".encode()
    assert finished(read(text, MEASURE, json.loads)) == json.loads(text)


@pytest.mark.parametrize("many", ["{}", "[]", "1", '"a"', '{"a":1}'])
def test_there_is_a_bound_on_how_many_values_there_are(many: str) -> None:
    few = Measure(MIB, 10_000)
    assert finished(read(f"[{','.join([many] * 3000)}]".encode(), few, json.loads))
    with pytest.raises(TooMuch, match=r"holds more than 10000 values \(limits.values\)"):
        finished(read(f"[{','.join([many] * 20_000)}]".encode(), few, json.loads))


@pytest.mark.parametrize("around", ["", " " * 40_000])
@pytest.mark.parametrize("number", ["{}", "-{}", "{}.5", "0.{}", "1e{}"])
def test_there_is_a_bound_on_how_long_a_number_is(number: str, around: str) -> None:
    for digits in (DIGITS, DIGITS + 1, 4300, 5000, 100_000):
        text = f"[{around}{number.format('1' * digits)}{around}]".encode()
        if digits <= DIGITS:
            assert finished(read(text, MEASURE, json.loads))
        else:
            with pytest.raises(TooMuch, match="holds a number of more than 308 digits"):
                finished(read(text, MEASURE, json.loads))
    said = json.dumps("1" * 5000 + "[" * 5000).encode()
    assert finished(read(said, MEASURE, json.loads)) == json.loads(said)


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


def test_a_text_that_is_parsed_elsewhere_can_be_looked_at() -> None:
    check_text("[1, 2]", 10)
    check_text("[" + "[]," * 400 + '"\ud83d"]', 1000)
    for text in ("[" * 201, "[" + "1," * 20, "1" * 309):
        with pytest.raises(TooMuch):
            check_text(text, 10)


DEEP = b"[" * 5000 + b"]" * 5000
FIVE = {"id": 5, "result": None}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (b'{"jsonrpc": "2.0", "id": 5, "result": ' + DEEP + b"}", [FIVE]),
        (b'{"result": ' + DEEP + b', "jsonrpc": "2.0", "id" : 5}', [FIVE]),
        (b'{"result": {"x": "caf\xe9"}, "id": 5.0}', [FIVE]),
        (b'{"result": {"x": "caf\xe9"}, "id": 5e0}', [FIVE]),
        (b'{"result": {"x": "caf\xe9"}, "id": 0.5E+1}', [FIVE]),
        (b'{"result": {"content": [}, "id": 5}', [{"result": None}]),
        (b'{"id": 5, "result": {"content": [}, "id": 6}', [FIVE]),
        (
            b'{"result": {"id": 6, "x": "\\"id\\":7"}, "id": "five"}',
            [{"id": "five", "result": None}],
        ),
        (b'{"result": "\\\\", "id": 5, "x": ' + DEEP, [FIVE]),
        (b'{"id": 1.5, "error": {"code": 1, ' + DEEP, [{"id": None, "error": None}]),
        (b'{"id": ' + b"1" * 5000 + b', "error": {}}', [{"id": None, "error": None}]),
        (b'{"method": "m", "params": ' + DEEP + b"}", [{"method": "m"}]),
        (b'{"x": "' + b"y" * 100_000 + b'", "id": 5, "result": {}', [FIVE]),
        (
            b'[{"id": 5, "result": {}}, {"method": "n", "params": '
            + DEEP
            + b'}, 7, {"x": 1, "error": {}}]',
            [FIVE, {"method": "n"}, {"error": None}],
        ),
        (b'\xef\xbb\xbf[{"id": 5, "result": ' + DEEP + b"}]", [FIVE]),
        (b' \n[{"id": 5, "result": ' + DEEP + b"}]", [FIVE]),
        (b"[[" + b'{"id": 5, "result": {}}]]', []),
        (DEEP, []),
        (b"", []),
        (b"{", []),
        (b"\xff" * 100, []),
    ],
)
def test_who_waits_for_what_is_not_taken_is_found(text: bytes, found: list[Any]) -> None:
    assert finished(outlines(text)) == found


def test_not_all_of_a_long_list_are_found() -> None:
    text = b"[" + b",".join(b'{"id": %d, "result": {}}' % n for n in range(10_000)) + b"]"
    assert finished(outlines(text)) == [{"id": n, "result": None} for n in range(100)]
