"""What is found out about a text before it is parsed."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emceepee_trio.model.json.intake import (
    DEPTH,
    DIGITS,
    Gauge,
    Measure,
    TooMuch,
    check_text,
    finished,
)
from emceepee_trio.model.json.long.reading import read
from texts import texts

MIB = 1024 * 1024
MEASURE = Measure(16 * MIB, 1_000_000)


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


def test_a_text_that_is_parsed_elsewhere_can_be_looked_at() -> None:
    check_text("[1, 2]", 10)
    check_text("[" + "[]," * 400 + '"\ud83d"]', 1000)
    for text in ("[" * 201, "[" + "1," * 20, "1" * 309):
        with pytest.raises(TooMuch):
            check_text(text, 10)
