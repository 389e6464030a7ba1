"""Places at a server that takes few requests at once, fairly between those who want them.

Whoever has waited longest of the next one in turn gets the place that becomes free: a hundred
requests of one delay the first of another by one. Knows neither requests nor servers.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import attrs
import trio


@attrs.define(eq=False)
class FairPlaces:
    _most: int
    _taken: int = attrs.field(default=0, init=False)
    _waiting: OrderedDict[object, deque[trio.Event]] = attrs.field(factory=OrderedDict, init=False)
    """By whose turn comes next; nobody waits while there is a place."""

    @asynccontextmanager
    async def one(self, whose: object) -> AsyncGenerator[None]:
        """A place for *whose*, for as long as the block lasts."""
        if self._taken < self._most:
            self._taken += 1
        else:
            await self._wait(whose)
        try:
            yield
        finally:
            self._free()

    async def _wait(self, whose: object) -> None:
        mine = trio.Event()
        self._waiting.setdefault(whose, deque()).append(mine)
        try:
            await mine.wait()
        except trio.Cancelled:
            if mine.is_set():  # in this very tick: somebody else has use for it
                self._free()
            else:
                self._waiting[whose].remove(mine)
                if not self._waiting[whose]:
                    del self._waiting[whose]
            raise

    def _free(self) -> None:
        """The place goes to the next one, and was never free in between."""
        if not self._waiting:
            self._taken -= 1
            return
        whose, queue = self._waiting.popitem(last=False)
        queue.popleft().set()
        if queue:
            self._waiting[whose] = queue  # behind all others
