"""Numbered items with a bounded memory, and readers who miss no wake-up.

A cursor is the number of the last item a reader has seen. It belongs to the reader, so any
number of readers wait without taking anything from each other.
"""

from __future__ import annotations

from collections import deque
from itertools import takewhile
from typing import Generic, TypeVar

import attrs
import trio

from .bell import Bell

T = TypeVar("T")


@attrs.define(eq=False)
class Feed(Generic[T]):
    keep: int
    """Items remembered. A reader that slept through more sees only the newest ones."""
    _items: deque[tuple[int, T]] = attrs.field(factory=deque, init=False)
    _last: int = attrs.field(default=0, init=False)
    _news: Bell = attrs.field(factory=Bell, init=False)
    _nudges: int = attrs.field(default=0, init=False)
    is_closed: bool = attrs.field(default=False, init=False)

    @property
    def last(self) -> int:
        """The cursor of a reader who wants only what comes from now on."""
        return self._last

    def publish(self, item: T) -> None:
        """Append and wake everybody. Synchronous: a publisher never waits for a reader."""
        self._last += 1
        self._items.append((self._last, item))
        if len(self._items) > self.keep:
            self._items.popleft()
        self._news.ring()

    def nudge(self) -> None:
        """Wake everybody who waits, although there is nothing new here."""
        self._nudges += 1
        self._news.ring()

    def after(self, cursor: int) -> list[T]:
        """What a reader at *cursor* has not seen."""
        newest_first = takewhile(lambda numbered: numbered[0] > cursor, reversed(self._items))
        return [item for _, item in newest_first][::-1]

    async def wait_after(self, cursor: int) -> None:
        """Park until there is something after *cursor*, or a nudge, or the feed is closed."""
        nudges = self._nudges  # before the checkpoint: one in there counts
        await trio.lowlevel.checkpoint()
        while self._last <= cursor and nudges == self._nudges and not self.is_closed:
            # No checkpoint between the test and the wait: a publish in between would wake nobody.
            await self._news.wait()

    def close(self) -> None:
        """Let every reader go: they wait in tasks that the feed's owner does not own."""
        self.is_closed = True
        self._news.ring()
