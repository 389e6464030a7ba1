"""How much work something is: in CPU time of this thread, which a busy machine does not change."""

from __future__ import annotations

import time
from collections.abc import Callable


def cpu_time(act: Callable[[], object]) -> float:
    """Seconds of CPU that *act* takes, the least of a few tries."""
    tries = []
    for _ in range(3):
        started = time.thread_time()
        act()
        tries.append(time.thread_time() - started)
    return min(tries)


def growth(make: Callable[[int], Callable[[], object]], size: int) -> float:
    """How many times longer four times as much takes: 4 if it is linear, 16 if quadratic."""
    return cpu_time(make(4 * size)) / max(cpu_time(make(size)), 1e-4)


LINEAR = 9.0
"""Between the two."""
