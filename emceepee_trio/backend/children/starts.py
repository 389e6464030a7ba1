"""How many programs start at once, and whose turn it is. There is one of these in a daemon.

To start, a program needs a core, and installers need all of it: twenty at once take longer, each,
than they have time. So a start takes a :class:`Place` before its program is run, and gives it back
when that has answered or ended; or when it does nothing for a while, since what hangs, or waits
for a network, needs no core. Knows neither programs nor sessions.

Owners take turns, whatever each of them wants started: the next place goes to who holds the
fewest and has been served the longest ago, and there to what somebody waits for. So nobody waits
for more than what starts already.
"""

from __future__ import annotations

import itertools
import os
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager

import attrs
import trio


def cores() -> int:
    """That this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@attrs.define(eq=False)
class Place:
    """One start, that waits for its turn or has it."""

    owner: str
    is_wanted: Callable[[], bool]
    """Whether somebody waits for it."""
    _starts: Starts
    granted: trio.Event = attrs.field(factory=trio.Event, init=False)

    def give_back(self) -> None:
        """It may be taken by another; once is enough."""
        self._starts.leave(self)


@attrs.define(eq=False)
class Starts:
    most: int = attrs.field(factory=cores)
    """At once."""
    _starting: set[Place] = attrs.field(factory=set, init=False)
    _waiting: dict[str, dict[Place, None]] = attrs.field(factory=dict, init=False)
    """By owner, in the order in which they came."""
    _turns: Iterator[int] = attrs.field(factory=lambda: itertools.count(1), init=False)
    _served: dict[str, int] = attrs.field(factory=dict, init=False)
    """The last turn of each owner that has a start here."""

    @contextmanager
    def place(self, owner: str, is_wanted: Callable[[], bool]) -> Generator[Place]:
        """Around one start, which begins once :attr:`Place.granted` is set."""
        place = Place(owner, is_wanted, self)
        self._waiting.setdefault(owner, {})[place] = None
        self._admit()
        try:
            yield place
        finally:
            place.give_back()

    @property
    def starting(self) -> int:
        return len(self._starting)

    def allow(self, most: int) -> None:
        """So many from now on; whoever starts goes on."""
        self.most = most
        self._admit()

    def leave(self, place: Place) -> None:
        self._starting.discard(place)
        self._no_longer_waits(place)
        if place.owner not in self._waiting and place.owner not in self._holders():
            self._served.pop(place.owner, None)
        self._admit()

    def _no_longer_waits(self, place: Place) -> None:
        theirs = self._waiting.get(place.owner, {})
        theirs.pop(place, None)
        if not theirs:
            self._waiting.pop(place.owner, None)

    def _holders(self) -> Counter[str]:
        return Counter(place.owner for place in self._starting)

    def _admit(self) -> None:
        while self._waiting and len(self._starting) < self.most:
            held = self._holders()
            owner = min(self._waiting, key=lambda each: (held[each], self._served.get(each, 0)))
            place = min(self._waiting[owner], key=lambda each: not each.is_wanted())
            self._no_longer_waits(place)
            self._starting.add(place)
            self._served[owner] = next(self._turns)
            place.granted.set()
