"""Garbage that holds itself, looked for once there is enough of it.

Everybody waits for that look, and it goes over all that lives: so it comes when something is to be
had, once for all that have ended together, and less often the more there are.
"""

from __future__ import annotations

import gc

import attrs
import trio

LEAST = 50
"""Things that have ended since the last look."""
SHARE = 4
"""One for so many that live, if that is more: a look costs as much as all of them are large."""
UNWINDS = 1.0
"""Seconds; until their tasks are gone, they are no garbage."""


@attrs.define(eq=False)
class Garbage:
    """Of things that come and end."""

    _living: int = attrs.field(default=0, init=False)
    _ended: int = attrs.field(default=0, init=False)
    _enough: trio.Event = attrs.field(factory=trio.Event, init=False)

    def begun(self) -> None:
        self._living += 1

    def ended(self) -> None:
        self._living -= 1
        self._ended += 1
        if self._ended >= max(LEAST, self._living // SHARE):
            self._enough.set()

    async def collect(self) -> None:
        while True:
            await self._enough.wait()
            await trio.sleep(UNWINDS)
            self._ended, self._enough = 0, trio.Event()
            gc.collect()
