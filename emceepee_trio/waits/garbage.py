"""Garbage that holds itself, looked for once there is enough of it.

Everybody waits for that look, and it goes over all that lives: so it comes when something is to be
had, once for all that have ended together, and less often the more there are. But what has ended
may be large, so where little lives a few are enough after a while.
"""

from __future__ import annotations

import gc

import attrs
import trio

MANY = 50
"""Things that have ended since the last look, for which one is worth while at once."""
SHARE = 4
"""One for so many that live, if that is more: a look costs as much as all of them are large."""
UNWINDS = 1.0
"""Seconds; until their tasks are gone, they are no garbage."""
PATIENCE = 60.0
"""Seconds until those are looked for that are fewer, but so large a share."""


@attrs.define(eq=False)
class Garbage:
    """Of things that come and end."""

    _living: int = attrs.field(default=0, init=False)
    _ended: int = attrs.field(default=0, init=False)
    _some: trio.Event = attrs.field(factory=trio.Event, init=False)
    _many: trio.Event = attrs.field(factory=trio.Event, init=False)

    def begun(self) -> None:
        self._living += 1

    def ended(self) -> None:
        self._living -= 1
        self._ended += 1
        if self._ended * SHARE >= self._living:
            self._some.set()
            if self._ended >= MANY:
                self._many.set()

    async def collect(self) -> None:
        while True:
            await self._some.wait()
            with trio.move_on_after(PATIENCE):
                await self._many.wait()
            await trio.sleep(UNWINDS)
            self._ended, self._some, self._many = 0, trio.Event(), trio.Event()
            gc.collect()
