"""The start of a program: how long it may take, what it costs others, and what is said of it.

Owns nothing: the place that it holds and the scope that ends it belong to the link. A program that
does something is waited for; one that does nothing has the time of any try. Either gives its place
to others before its time is over, the idle one sooner.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import trio

from .pulse import Pulse
from .starts import Place, Starts

if TYPE_CHECKING:
    from ..link import Link

FIRST = 120.0
"""Seconds for a start that still works, of a program that has not worked before: it installs."""
QUIET = (2.0, 10.0)
"""Seconds of doing nothing, the fewest and the most, after which that ends; else as many as a try
may take."""
IDLE = 5.0
"""Seconds of doing nothing after which others have its place."""
HELD = 60.0
"""Seconds after which they have it anyway, half of what the longest start has: installers that are
begun one after the other end sooner than all at once, but whoever waits is not to wait for one that
never ends."""
LOOK = 0.5
"""Seconds between two looks, if there is time for two."""
STILL = 5.0
"""Seconds, if a try may take longer, after which it is *still* starting."""
SAID = 200
"""Characters of the last line that it wrote."""


@attrs.define(eq=False)
class Start:
    _link: Link
    _scope: trio.CancelScope
    """Whose deadline is that of the try."""
    _place: Place
    _starts: Starts
    _patience: float
    _longest: float
    """If it works all the time."""
    _wanted_at: float = attrs.field(factory=trio.current_time, init=False)
    """On trio's clock, as are others."""
    _began: float = attrs.field(default=0.0, init=False)
    _worked: float = attrs.field(default=0.0, init=False)
    """When it last did something."""
    _pulse: Pulse = attrs.field(factory=Pulse, init=False)

    def begin(self) -> None:
        """It has its turn."""
        self._began = self._worked = trio.current_time()
        self._scope.deadline = self._began + self._patience

    async def watch(self) -> None:
        """Until it is connected."""
        longest = max(self._longest, self._patience)
        quiet = min(max(self._patience, QUIET[0]), QUIET[1])
        while True:
            ends = max(self._patience, self._worked + quiet - self._began)
            self._scope.deadline = self._began + min(ends, longest)
            with trio.move_on_after(min(LOOK, self._patience / 4)):
                await self._link.settled.wait()
            # No checkpoint from here on: from then on the scope has no deadline of ours.
            if self._link.settled.is_set():
                return
            process, now = self._link.process, trio.current_time()
            if process is not None and self._pulse.beats(process.pid, process.heard):
                self._worked = now
            if now >= min(self._worked + IDLE, self._began + HELD):
                self._place.give_back()

    def end(self) -> None:
        """It is connected."""
        self._place.give_back()

    @property
    def worked_for(self) -> float | None:
        """Seconds, if it has worked for longer than a try may take, until its time was over."""
        took = trio.current_time() - self._began
        return took if took >= self._longest > self._patience else None

    @property
    def takes_long(self) -> bool:
        """So that somebody should be told."""
        return trio.current_time() - self._wanted_at >= min(STILL, self._patience)

    @property
    def waits_for_turn(self) -> bool:
        return not self._place.granted.is_set()

    def describe(self) -> str:
        if self.waits_for_turn:
            most = self._starts.most
            return f"still starting: waits for its turn, {most} at once may do so (limits.starting)"
        took = trio.current_time() - self._began
        said = next((line.strip() for line in reversed(self._link.callbacks.stderr) if line), "")
        told = f"; it said: {said[:SAID]}" if said else ""
        return f"still starting, for {took:.0f} s now{told}"
