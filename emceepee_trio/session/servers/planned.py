"""Servers that a session has had from its beginning, until each has connected for the first time.

That such a server starts and connects is what its client expects, and no event; unless there was
trouble before, or an answer has said that the server is not there yet. Knows no backend.
"""

from __future__ import annotations

import attrs

from ...model import events
from ...model.events import Happening

STARTS = (events.ProcessStarted, events.ProcessStopped, events.ServerConnected)
"""What a start is made of. A program that ends when it is asked what it speaks is started again."""
TROUBLE = (
    events.ProcessCrashed,
    events.Restarting,
    events.RestartFailed,
    events.ServerReconnecting,
    events.ServerAdded,
    events.ServerRemoved,
)
"""What is told of a server that has not connected yet, and ends the plan."""


@attrs.define(eq=False)
class Planned:
    _names: set[str] = attrs.field(factory=set, init=False)
    _looked_at: set[str] = attrs.field(factory=set, init=False)
    """Of those: an answer has shown that they are connecting."""

    def add(self, server: str) -> None:
        self._names.add(server)

    def discard(self, server: str) -> None:
        """What happens to it from now on is told."""
        self._names.discard(server)
        self._looked_at.discard(server)

    def look_at(self, server: str) -> None:
        """Who has seen it connecting may wait for it, although nothing will be told."""
        if server in self._names:
            self._looked_at.add(server)

    def hides(self, server: str, happening: Happening) -> bool:
        """Whether it happens as planned."""
        if server not in self._names:
            return False
        if isinstance(happening, TROUBLE):
            self.discard(server)
        return isinstance(happening, STARTS)

    def connected(self, server: str) -> bool:
        """It is done; whether somebody may wait for it."""
        is_awaited = server in self._looked_at
        self.discard(server)
        return is_awaited
