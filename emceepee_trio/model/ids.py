"""ULIDs that sort as they were made, also within one millisecond. Pure: time and chance come in.

48 bits of time, a 16-bit counter within the millisecond, and 64 fresh random bits. The counter
makes them sortable; the fresh bits make them impossible to guess (incrementing the last id, as
monotonic ULIDs usually do, is neither fresh nor secret).
"""

from __future__ import annotations

from collections.abc import Callable

import attrs

_DIGITS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
"""Of ULIDs: 5 bits each, in the order of ASCII, and none that looks like another."""
_PAIRS = tuple(high + low for high in _DIGITS for low in _DIGITS)
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
        made = self._millisecond << 80 | self._counter << 64 | int.from_bytes(self.fresh(8), "big")
        return "".join([_PAIRS[made >> bits & 0x3FF] for bits in range(120, -1, -10)])
