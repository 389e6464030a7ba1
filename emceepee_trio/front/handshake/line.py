"""Which stream of a session is the next to lose its oldest entry, without a look at all of them."""

from __future__ import annotations

import heapq
from collections.abc import Mapping

import attrs

from .stream import Stream, Turn

HOLES = 4
"""Turns remembered for each stream, also those that are not true any more."""


@attrs.define(eq=False, repr=False)
class Line:
    """Those that have something to lose, by their turns as far as they are known.

    A stream whose turn may come sooner than it is known has to be shown (:meth:`join`). That it
    comes later, or not at all, is seen when it would have come.
    """

    _streams: Mapping[str, Stream]
    _turns: list[Turn] = attrs.field(factory=list, init=False)
    """A heap, with holes: what is not in the other one, either, does not count."""
    _known: dict[str, Turn] = attrs.field(factory=dict, init=False)

    def join(self, stream: Stream) -> None:
        if stream.id not in self._streams or (turn := stream.turn) is None:
            return
        known = self._known.get(stream.id)
        if known is None or turn < known:
            self._known[stream.id] = turn
            heapq.heappush(self._turns, turn)
            if len(self._turns) > HOLES * len(self._streams):
                self._turns = sorted(self._known.values())

    def leave(self, stream: Stream) -> None:
        """It is forgotten."""
        self._known.pop(stream.id, None)

    def pop(self) -> Stream | None:
        """Whose turn it is, if anybody's; it has to join again."""
        while self._turns:
            turn = heapq.heappop(self._turns)
            if self._known.get(turn.stream) == turn:
                del self._known[turn.stream]
                stream = self._streams[turn.stream]
                if stream.turn == turn:
                    return stream
                self.join(stream)
        return None
