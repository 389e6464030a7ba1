"""Backoff with jitter, as a pure sequence of seconds."""

from __future__ import annotations

from collections.abc import Callable, Iterator


def backoff(
    base: float,
    longest: float,
    *,
    multiplier: float = 2.0,
    jitter: float = 0.1,
    chance: Callable[[], float],
) -> Iterator[float]:
    """Yield ever longer delays, for ever.

    The n-th delay is ``base * multiplier**n``, at most *longest*, moved by up to *jitter* of
    itself in either direction, and again at most *longest*. *chance* yields numbers in [0, 1).
    """
    delay = min(base, longest)
    while True:
        yield min(longest, delay * (1.0 + jitter * (2.0 * chance() - 1.0)))
        delay = min(longest, delay * multiplier)
