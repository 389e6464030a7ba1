"""ULIDs that sort as they were made, also within one millisecond. Pure: time and chance come in.

48 bits of time, a 16-bit counter within the millisecond, and 64 fresh random bits. The counter
makes them sortable; the fresh bits make them impossible to guess (incrementing the last id, as
monotonic ULIDs usually do, is neither fresh nor secret).
"""

from __future__ import annotations

from collections.abc import Callable

import attrs
from ulid import ULID

COUNTER_END = 1 << 16
"""Ids that fit in one millisecond; the next one borrows the next millisecond."""


@attrs.define(eq=False)
class Ids:
    """Makes ids. One per process is enough: ids of all sessions may share it."""

    clock: Callable[[], float]
    """Wall-clock seconds."""
    fresh: Callable[[int], bytes]
    """That many unguessable bytes."""
    _millisecond: int = attrs.field(default=-1, init=False)
    _counter: int = attrs.field(default=0, init=False)

    def __call__(self) -> str:
        # A clock that steps back must not make ids that sort before older ones.
        now = max(int(self.clock() * 1000), self._millisecond)
        if now > self._millisecond:
            self._millisecond, self._counter = now, 0
        else:
            self._counter += 1
            if self._counter == COUNTER_END:
                self._millisecond, self._counter = now + 1, 0
        head = self._millisecond.to_bytes(6, "big") + self._counter.to_bytes(2, "big")
        return str(ULID.from_bytes(head + self.fresh(8)))
