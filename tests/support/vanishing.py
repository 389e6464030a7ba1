"""Clients that vanish at any step of what is done for them, however many those are.

A step is a task that is woken: whoever vanishes with it is seen to be gone in the same tick, before
it or behind it. A first run, in which nobody vanishes, counts them.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager

import attrs
import trio


@attrs.define(eq=False)
class _Vanishing(trio.abc.Instrument):
    vanish: Callable[[], object]
    at: int
    woken: int = attrs.field(default=0, init=False)

    def task_scheduled(self, task: trio.lowlevel.Task) -> None:
        self.woken += 1
        if self.woken == self.at:
            self.vanish()


@attrs.define(eq=False)
class Steps:
    """Those of one race, which is run again and again."""

    count: int = attrs.field(default=0, init=False)
    """Unknown before the first run is over."""

    @contextmanager
    def vanishing(self, order: int, vanish: Callable[[], object]) -> Generator[None]:
        """*vanish* at one of the steps of the block: at another in the next order."""
        vanishing = _Vanishing(vanish, order % self.count + 1 if self.count else 0)
        trio.lowlevel.add_instrument(vanishing)
        try:
            yield
        finally:
            trio.lowlevel.remove_instrument(vanishing)
        self.count = self.count or vanishing.woken
