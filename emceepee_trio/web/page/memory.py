"""What programs have in memory, as it was a moment ago: nobody waits long to be told."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial
from typing import Any

import attrs
import trio

from ...backend.children.footprint import Footprint, look
from ...waits.disk import on_disk

FRESH = 2.0
"""Seconds for which what was seen is good enough."""
AGAIN = 0.25
"""The same if there are others, of which nothing is known."""
PATIENCE = 0.05
"""Seconds that a page waits for it; who was not told in time is told the next time."""
LIVE = 10.0
"""Seconds for which what was seen will do for a page that is asked for again and again."""


@attrs.frozen
class Sizes:
    """Of programs, by their pids; of some nothing is known yet."""

    _of: Mapping[int, Footprint]

    def resident(self, pid: int) -> int:
        return self._of[pid].resident if pid in self._of else 0

    def total(self, pids: Collection[int]) -> int:
        return sum(map(self.resident, pids))

    def to_json(self, pid: int) -> dict[str, Any]:
        found = self._of.get(pid)
        return {"processes": None, "resident_bytes": None} if found is None else found.to_json()


@attrs.define(eq=False)
class Sizing:
    _seen: Mapping[int, Footprint] = attrs.field(factory=dict, init=False)
    _at: float = attrs.field(default=-FRESH, init=False)
    """When somebody looked last, or began to."""

    async def of(self, pids: Collection[int]) -> Sizes:
        age = trio.current_time() - self._at
        if age >= FRESH or (age >= AGAIN and not self._seen.keys() >= set(pids)):
            self._at = trio.current_time()
            with trio.move_on_after(PATIENCE if age >= LIVE else PATIENCE / 10):
                # Also what others have asked for, who ask again.
                await on_disk(partial(self._look, frozenset({*pids, *self._seen})))
        return Sizes(self._seen)

    def _look(self, pids: frozenset[int]) -> None:
        """In a thread, which ends what it has begun."""
        self._seen = look(pids)
