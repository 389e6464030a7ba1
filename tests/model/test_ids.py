from __future__ import annotations

import re
import secrets
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from ulid import ULID

from emceepee_trio.model.ids import COUNTER_END, Ids

times = st.lists(
    st.integers(0, 4_000_000_000_000).map(lambda ms: ms / 1000), min_size=1, max_size=50
)
"""A wall clock that stands still, jumps and steps back."""


def clock_of(seconds: list[float]) -> Ids:
    return Ids(iter(seconds).__next__, secrets.token_bytes)


@given(times, st.integers(1, 5))
def test_ids_sort_as_they_were_made_whatever_the_clock_does(
    moments: list[float], repeated: int
) -> None:
    seconds = [moment for moment in moments for _ in range(repeated)]
    ids = clock_of(seconds)
    made = [ids() for _ in seconds]
    assert made == sorted(made)
    assert len(set(made)) == len(made)


def test_an_id_is_a_ulid_of_its_moment() -> None:
    made = Ids(lambda: 1_700_000_000.123, secrets.token_bytes)()
    assert re.fullmatch(r"[0-7][0-9A-HJKMNP-TV-Z]{25}", made)
    assert ULID.from_str(made).milliseconds == 1_700_000_000_123


def test_each_id_has_64_fresh_bits_also_within_a_millisecond() -> None:
    asked: list[int] = []

    def fresh(count: int) -> bytes:
        asked.append(count)
        return bytes([len(asked)] * count)

    ids = Ids(lambda: 1.0, fresh)
    tails = [ULID.from_str(ids()).bytes[8:] for _ in range(3)]
    assert asked == [8, 8, 8]
    assert tails == [bytes([n] * 8) for n in (1, 2, 3)]


def test_one_id_does_not_tell_the_next() -> None:
    ids = Ids(lambda: 1.0, secrets.token_bytes)
    made = [int(ULID.from_str(ids())) for _ in range(100)]
    assert all(abs(b - a) > 1 << 32 for a, b in pairwise(made))


def test_a_full_millisecond_borrows_the_next() -> None:
    now = [1.0]
    ids = Ids(lambda: now[0], bytes)
    made = [ids() for _ in range(COUNTER_END + 2)]
    assert ULID.from_str(made[COUNTER_END - 1]).milliseconds == 1000
    assert ULID.from_str(made[COUNTER_END]).milliseconds == 1001
    # The clock arrives in the borrowed millisecond, which is not new any more.
    now[0] = 1.001
    made.append(ids())
    assert made == sorted(set(made))


def test_a_full_millisecond_is_followed_by_the_next_also_when_the_clock_has_stepped_back() -> None:
    now = [1.0]
    ids = Ids(lambda: now[0], bytes)
    first = ids()
    now[0] = 0.5
    made = [first, *(ids() for _ in range(COUNTER_END + 2))]
    assert made == sorted(set(made))


def test_the_counter_starts_again_with_each_millisecond() -> None:
    ids = clock_of([1.0, 1.0, 2.0])
    counters = [int.from_bytes(ULID.from_str(ids()).bytes[6:8], "big") for _ in range(3)]
    assert counters == [0, 1, 0]
