"""Work that can be long, in steps between which others run."""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeVar

import trio

T = TypeVar("T")


async def in_slices(steps: Generator[None, None, T]) -> T:
    """The result of *steps*, with a checkpoint after each but the last.

    None at all if there is only one, as for almost every message.
    """
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result
        await trio.lowlevel.checkpoint()
