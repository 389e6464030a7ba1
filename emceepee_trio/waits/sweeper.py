"""Forgetting what was kept long enough: one task, which sleeps until the next thing is due."""

from __future__ import annotations

import math
from typing import Protocol

import attrs
import trio

from .firewall import PAUSES, Firewall


class Sweepable(Protocol):
    """Something that keeps things for a while."""

    def next_due(self) -> float | None: ...

    def sweep(self) -> None: ...


@attrs.define(eq=False)
class Sweeper:
    keepers: tuple[Sweepable, ...] = ()
    _due: float = attrs.field(default=math.inf, init=False)
    _sooner: trio.Event = attrs.field(factory=trio.Event, init=False)

    def look(self, due: float) -> None:
        """Something is kept until *due*."""
        if due < self._due:
            self._sooner.set()

    async def run(self) -> None:
        while True:
            self._sooner = trio.Event()
            self._due = min(
                (at for keeper in self.keepers if (at := keeper.next_due()) is not None),
                default=math.inf,
            )
            with trio.move_on_at(self._due):
                await self._sooner.wait()
            crashed = False
            for keeper in self.keepers:
                with Firewall("sweep_crashed") as wall:
                    keeper.sweep()
                crashed |= wall.log_id is not None
            if crashed:  # what is due there stays due
                await trio.sleep(PAUSES[0])
