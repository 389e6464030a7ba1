"""The one thread in which patterns of peers are matched, which can take as long as they may.

One at a time: two of them would leave the others nothing of a machine with two cores.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import trio

T = TypeVar("T")

_LIMITER: trio.lowlevel.RunVar[trio.CapacityLimiter] = trio.lowlevel.RunVar("matching")


async def in_thread(match: Callable[[], T]) -> T:
    """What *match* returns; it has to come to an end by itself, and not to hold the interpreter."""
    try:
        limiter = _LIMITER.get()
    except LookupError:
        limiter = trio.CapacityLimiter(1)
        _LIMITER.set(limiter)
    return await trio.to_thread.run_sync(match, limiter=limiter)
