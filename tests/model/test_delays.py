from __future__ import annotations

from itertools import islice, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emceepee_trio.model.delays import backoff

chances = st.floats(0, 1, exclude_max=True)


@given(
    base=st.floats(0.01, 3600),
    longest=st.floats(0.01, 86400),
    multiplier=st.floats(1, 100),
    jitter=st.floats(0, 1),
    drawn=st.lists(chances, min_size=30, max_size=30),
)
def test_every_delay_is_near_its_plan_and_none_is_too_long(
    base: float, longest: float, multiplier: float, jitter: float, drawn: list[float]
) -> None:
    delays = backoff(
        base, longest, multiplier=multiplier, jitter=jitter, chance=iter(drawn).__next__
    )
    for n, delay in enumerate(islice(delays, len(drawn))):
        planned = min(longest, base * multiplier**n)
        assert 0 <= delay <= longest
        assert planned * (1 - jitter) <= delay * (1 + 1e-9)
        assert delay <= planned * (1 + jitter) * (1 + 1e-9)


@given(st.floats(0.01, 10), st.floats(10, 1000), st.floats(1.1, 5))
def test_without_jitter_delays_grow_to_the_longest_and_stay(
    base: float, longest: float, multiplier: float
) -> None:
    delays = list(
        islice(backoff(base, longest, multiplier=multiplier, jitter=0, chance=lambda: 0.9), 200)
    )
    assert delays[0] == base
    assert all(a < b or a == b == longest for a, b in pairwise(delays))
    assert delays[-1] == longest


def test_the_defaults_double() -> None:
    delays = backoff(1, 60, chance=lambda: 0.5)
    assert list(islice(delays, 8)) == [1, 2, 4, 8, 16, 32, 60, 60]


@pytest.mark.parametrize(("chance", "expected"), [(0.0, 9.0), (0.5, 10.0), (0.999999, 11.0)])
def test_jitter_moves_a_delay_in_both_directions(chance: float, expected: float) -> None:
    (delay,) = islice(backoff(10, 60, jitter=0.1, chance=lambda: chance), 1)
    assert delay == pytest.approx(expected, abs=0.001)


def test_jitter_draws_anew_for_each_delay_and_does_not_add_up() -> None:
    chances = iter([0.0, 0.999999, 0.5])
    first, second, third = islice(backoff(10, 1000, jitter=0.5, chance=chances.__next__), 3)
    assert (first, second, third) == pytest.approx((5, 30, 40), abs=0.01)
