"""Long work of one task, in slices, so that it makes nobody wait.

The first slice is everybody's own. Whoever needs more takes turns with the others who do, one slice
each, and between any two of these all that is short has its turn: what a hundred requests need that
are long delays a short one no more than what one of them needs.

Work is measured in CPU time of the thread, so a busy machine makes no slice shorter.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from types import TracebackType
from typing import Self, TypeVar

import attrs
import trio

T = TypeVar("T")

SLICE = 0.0005
"""Seconds of CPU that one task may take in a row. A short request takes a dozen steps, and may wait
for a slice at each of them."""

_LONG: trio.lowlevel.RunVar[trio.Lock] = trio.lowlevel.RunVar("long work")


def _of_all() -> trio.Lock:
    try:
        return _LONG.get()
    except LookupError:
        _LONG.set(trio.Lock())
        return _LONG.get()


@attrs.define(eq=False)
class Turns:
    """The slices of one piece of work; entered by its task, around nothing that waits.

    ::

        async with Turns() as turns:
            for item in items:
                ...
                if turns.is_over:
                    await turns.next()
    """

    _end: float = attrs.field(default=0.0, init=False)
    _held: trio.Lock | None = attrs.field(default=None, init=False)

    async def __aenter__(self) -> Self:
        self._end = time.thread_time() + SLICE
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._let_go()

    @property
    def is_over(self) -> bool:
        return time.thread_time() >= self._end

    async def next(self) -> None:
        """Let all others run, and wait for a turn."""
        self._let_go()
        lock = _of_all()
        # Hands itself to who has waited longest, and is a checkpoint though nobody has.
        await lock.acquire()
        self._held = lock
        self._end = time.thread_time() + SLICE

    async def through(self, steps: Generator[None, None, T]) -> T:
        """The result of *steps*, which are shorter than a slice or little longer."""
        while True:
            try:
                next(steps)
            except StopIteration as end:
                result: T = end.value
                return result
            if self.is_over:
                await self.next()

    def _let_go(self) -> None:
        if self._held is not None:
            self._held.release()
            self._held = None
