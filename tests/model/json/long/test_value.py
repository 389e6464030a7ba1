"""What an answer has as values can stay in its message, and nothing else is different."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from emceepee_trio.model.json.intake import DEPTH, SLICE, Measure, Unfit, finished
from emceepee_trio.model.json.long.cutting import LONG, LOOKED_AT
from emceepee_trio.model.json.long.partly import unfolded
from emceepee_trio.model.json.long.reading import Left, read
from emceepee_trio.model.json.long.value import LongValue
from emceepee_trio.model.json.shape import Looks, shape
from emceepee_trio.model.json.spelling import pieces_of_long
from emceepee_trio.model.json.weight import is_more_than
from emceepee_trio.model.wire import dumps, loads
from texts import in_slices_of, texts

MEASURE = Measure(2**30, 2**30)
ROWS = [{"id": n, "name": f"n{n}", "tags": ["a", {"b": None}]} for n in range(10_000)]

AROUND: list[Callable[[bytes], bytes]] = [
    lambda value: b'{"id": 1, "result": {"content": [1, {}], "structuredContent": ' + value + b"}}",
    lambda value: b'{"result":{"structuredContent":' + value + b',"x":[2]},"id":1}',
    lambda value: b'[{"result": {"structuredContent"  :  ' + value + b'}, "y": 2}, {"id": 2}]',
    lambda value: b'{"result": {"result": {"structuredContent":' + value + b', "x": "y"}}}',
    lambda value: b'{"structuredContent":1,"result":{"structuredContent":' + value + b"}}",
    lambda value: b'{"result":{"structuredContent":0,"a":1,"structuredContent":' + value + b"}}",
    lambda value: b'{"result":{"structuredContent":' + value + b',"structuredContent":[3]}}',
    lambda value: (
        b'{"result":{"structuredContent":' + value + b',"structuredContent":' + value + b"}}"
    ),
    lambda value: b'{"error": {"data": {"structuredContent":' + value + b"}}}",
]


@contextmanager
def slices(size: int, long: int) -> Generator[None]:
    """What stays where it is is cut up again by whoever goes through it."""
    with pytest.MonkeyPatch.context() as patch:
        in_slices_of(size, patch, long)
        yield


def left_in(text: bytes) -> tuple[Any, list[LongValue]]:
    """What it says, and the values that stay where they are."""
    left: Left = []
    value = finished(read(text, MEASURE, loads, left))
    return value, [each for each in left if isinstance(each, LongValue)]


def said_of(text: bytes, size: int, long: int) -> object:
    try:
        with slices(size, long):
            return finished(unfolded(left_in(text)[0]))
    except Unfit as unfit:
        return str(unfit).replace("UTF-8", "JSON").split(":")[0]


@pytest.mark.parametrize("size", [1, 5, 20, 60])
@given(inner=texts(), around=st.sampled_from(AROUND), long=st.integers(0, 60))
@example(
    inner=b'{"a": "' + b"x" * 100 + b'", "b": [{"' + b"y" * 90 + b'": 1}]}',
    around=AROUND[0],
    long=0,
)
@example(inner=b'[{"a": [1, 2], "b": [2, 3]}, {"": {"": [[], {}]}}]', around=AROUND[1], long=0)
def test_it_says_what_it_would_say_elsewhere(
    size: int, inner: bytes, around: Callable[[bytes], bytes], long: int
) -> None:
    text = around(inner)
    with slices(size, long):
        value, left = left_in(text)
        assert bool(left) >= (inner[:1] in b"{[" and len(inner) > long and len(text) > size)
        for each in left:
            said = finished(each.said())
            assert said in (json.loads(inner), [3])
            looks = Looks()
            pieces = pieces_of_long(each, looks.see)
            assert json.loads("".join(pieces).encode("utf-8", "surrogatepass")) == said
            assert looks.said() == shape(said)
            if not _has_half_a_pair(said):  # a piece with one is in ASCII, and not all
                assert "".join(pieces_of_long(each)) == dumps(said)
        assert finished(unfolded(value)) == json.loads(text)


def _has_half_a_pair(value: Any) -> bool:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    return False


@pytest.mark.parametrize("size", [1, 5, 20, 60])
@given(
    inner=texts(),
    around=st.sampled_from(AROUND),
    place=st.integers(0, 400),
    junk=st.binary(min_size=0, max_size=3) | st.sampled_from([b"]", b"}", b"{", b"[", b",", b'"']),
)
@example(inner=b'{"a": [1, 2], "b": 3}', around=AROUND[1], place=38, junk=b"}")
@example(inner=b'{"a": [1, 2}, "b": 3}', around=AROUND[1], place=400, junk=b"")
@example(inner=b'{"a": [1, 2]], "b": 3}', around=AROUND[1], place=400, junk=b"")
def test_what_is_refused_elsewhere_is_refused_there(
    size: int, inner: bytes, around: Callable[[bytes], bytes], place: int, junk: bytes
) -> None:
    text = around(inner)
    broken = text[:place] + junk + text[place + 1 :]
    plain, left = said_of(broken, size, 2**62), said_of(broken, size, 0)
    # Which of two values of a name is open nobody can tell, if it is cut in between; it is not cut
    # at the same places.
    assert repr(left) == repr(plain) or "has a name twice in an object" in (plain, left)


@pytest.mark.parametrize("size", [10, 50])
@given(names=st.lists(st.sampled_from("abc"), min_size=1, max_size=12), data=st.data())
def test_a_name_twice_is_the_same_in_parts(
    size: int, names: list[str], data: st.DataObject
) -> None:
    inner = st.sampled_from(["1", "[1, 2, 3]", '{"a": 1, "b": [2, 3]}'])
    value = ", ".join(f'"{name}": {data.draw(inner)}' for name in names)
    text = AROUND[0](f"{{{value}}}".encode())
    plain, left = said_of(text, size, 2**62), said_of(text, size, 0)
    assert plain == left or "has a name twice in an object" in (plain, left)
    for said in (plain, left):
        assert said in (json.loads(text), "has a name twice in an object")
    if isinstance(left, dict):
        with slices(size, 0):
            (held,) = left_in(text)[1]
            assert json.loads("".join(pieces_of_long(held))) == finished(held.said())


def test_it_takes_no_step_that_is_long() -> None:
    text = AROUND[0](json.dumps({"rows": ROWS, "x": "y" * 400_000, "z" * 60_000: 1}).encode())
    lengths: list[int] = []

    def counted(part: str) -> Any:
        lengths.append(len(part))
        return json.loads(part)

    left: Left = []
    steps = sum(1 for _ in read(text, MEASURE, counted, left))
    value = left[-1]
    assert isinstance(value, LongValue)
    assert steps > 2 * len(text) / SLICE
    steps = sum(1 for _ in value.said())
    assert steps > len(text) / SLICE - 1
    assert max(lengths) < 2.1 * SLICE
    assert max(map(len, pieces_of_long(value))) < 4 * SLICE


def test_it_is_treated_as_what_it_is() -> None:
    text = AROUND[0](json.dumps({"rows": ROWS, "tail": "x" * 100_000}).encode())
    left: Left = []
    value = finished(read(text, MEASURE, loads, left))
    (held,) = (each for each in left if isinstance(each, LongValue))
    assert value["result"]["structuredContent"] is held
    assert is_more_than(value, len(held))
    assert not is_more_than(held, len(held))
    assert repr(held) == f"<LongValue of {len(held)} bytes>"


@pytest.mark.parametrize(
    "text",
    [
        b'{"x": {"y": ' + AROUND[0](b"[" + b"1," * LONG + b"1]") + b"}}",
        b'{"result": {"content": "' + b"x" * LONG + b'", "structuredContent": {"a": [1, 2]}}}',
        b'{"result": {"content": [{"structuredContent": [' + b"1," * LONG + b"1]}]}}",
        b'{"result": [' + b'{"structuredContent": []},' * LOOKED_AT + b"[]],"
        b'"x": {"structuredContent": [' + b"1," * LONG + b"1]}}",
    ],
    ids=["elsewhere", "short", "deeper", "beyond the last look"],
)
def test_it_is_nothing_else_that_stays(text: bytes) -> None:
    left: Left = []
    value = finished(unfolded(finished(read(text, MEASURE, loads, left))))
    assert not any(isinstance(each, LongValue) for each in left)
    assert value == json.loads(text)


def test_it_is_bounded_like_all_else() -> None:
    deep = b"[" * DEPTH + b"]" * DEPTH
    for inner, why in (
        (b"[" + b"1," * LONG + deep + b"]", "is nested deeper"),
        (b"[" + b"1," * LONG + b"1" * 400 + b"]", "holds a number"),
        (b"[" + b"1," * 2 * LONG + b"1]", "holds more than 400000 values"),
    ):
        with pytest.raises(Unfit, match=why):
            finished(read(AROUND[0](inner), Measure(2**30, 400_000), loads, []))


def test_one_that_does_not_end_is_refused_without_a_long_step() -> None:
    text = AROUND[0](json.dumps({"rows": ROWS}).encode())[:-4]
    lengths: list[int] = []

    def counted(part: str) -> Any:
        lengths.append(len(part))
        return json.loads(part)

    with pytest.raises(Unfit, match="a value does not end"):
        finished(read(text, MEASURE, counted, []))
    assert max(lengths, default=0) < 2.1 * SLICE


def test_nothing_of_it_is_there_but_the_message() -> None:
    text = AROUND[0](json.dumps({"rows": ROWS * 7}).encode())
    assert len(text) > 3_000_000
    left: Left = []
    tracemalloc.start()
    try:
        finished(read(text, MEASURE, loads, left))
        _, highest_read = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        assert isinstance(left[-1], LongValue)
        assert sum(map(len, pieces_of_long(left[-1], Looks().see))) > 3_000_000
        _, highest_written = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert max(highest_read, highest_written) < 2 * 64 * 1024
