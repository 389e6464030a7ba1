"""Waking everybody who waits for something to change, so that they look again.

A bell remembers nothing: whoever waits looks first, and there is no checkpoint between that look
and :meth:`Bell.wait`.
"""

from __future__ import annotations

import attrs
import trio


@attrs.define(eq=False)
class Bell:
    _waiting: trio.lowlevel.ParkingLot = attrs.field(factory=trio.lowlevel.ParkingLot, init=False)

    def ring(self) -> None:
        if self._waiting:  # usually nobody does, which is quicker to see than to wake nobody
            self._waiting.unpark_all()

    async def wait(self) -> None:
        """Until it rings the next time."""
        await self._waiting.park()
