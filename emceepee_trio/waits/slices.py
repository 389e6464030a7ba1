"""Work that can be long, in steps between which others run.

However much of it there is, it takes turns: one step of all of it, then a few ticks of trio for
everybody else. A short request is a dozen ticks, and would have to wait for a step of each long
one at every tick.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeVar

import trio

T = TypeVar("T")

REST = 4
"""Ticks without such a step, after each. A step is about a millisecond, a tick of a daemon that is
not busy a few hundredths of that."""

_TURNS: trio.lowlevel.RunVar[trio.StrictFIFOLock] = trio.lowlevel.RunVar("turns")


async def in_slices(steps: Generator[None, None, T]) -> T:
    """The result of *steps*, with checkpoints after each but the last.

    None at all if there is only one, as for almost every message.
    """
    try:
        next(steps)
        turns = _turns()
        while True:
            async with turns:
                # Nobody else has a turn meanwhile, so this is a rest from all of them.
                for _ in range(REST):
                    await trio.lowlevel.checkpoint()
                next(steps)
    except StopIteration as end:
        result: T = end.value
        return result


def _turns() -> trio.StrictFIFOLock:
    try:
        return _TURNS.get()
    except LookupError:
        turns = trio.StrictFIFOLock()
        _TURNS.set(turns)
        return turns
