"""Telling browsers that something has changed, so that they ask for their page anew.

The journal rings for each fact of a session that a visitor may see, and a stream says so at most
every `Live.pause`, however much happens. What a page shows is in no stream: so a stream that is
slow, or that nobody reads, holds nothing.
"""

from __future__ import annotations

from collections.abc import Callable

import attrs
import trio

from ....errors import LimitReached
from ....journal import Journal, Reader
from ....model import facts
from ....model.facts import Fact
from ....model.timeline.replay import TOLD
from ....waits.feed import Feed

PAUSE = 0.5
"""Seconds between two changes that a stream tells of, the fewest."""
SHARE = 10
"""The pause is so many times as long as a page has taken, too: who looks at a daemon that has much
to show, or much to do, takes no larger part of it."""
LONGEST_PAUSE = 10.0
SILENCE = 15.0
"""Seconds after which it shows that it is still there."""
MAX_STREAMS = 64
"""Browsers that are told; others see what there is when they ask."""
MAX_STREAMS_OF_ONE = 16
"""Of those, the pages of one principal: nobody has all of them, but who runs the daemon."""

KINDS = (*TOLD, facts.Tallied)
"""What a page may show."""

CHANGED = b"event: changed\ndata:\n\n"
STILL_HERE = b":\n\n"


@attrs.define(eq=False)
class Live:
    journal: Journal
    principal_of: Callable[[str], str | None]
    """Of a session, or of a server that sessions share; None if it is gone."""
    ending: trio.Event
    """The daemon is about to stop: streams end."""
    pause: float = attrs.field(default=PAUSE, init=False)
    _streams: set[LiveStream] = attrs.field(factory=set, init=False)
    _log_streams: int = attrs.field(default=0, init=False)
    """How many of them want that."""
    _reader: Reader = attrs.field(init=False)
    _log_reader: Reader = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._reader = Reader("page", self._heard, KINDS)
        self._log_reader = Reader("page's logs", self._logged, (facts.LineLogged,))

    def changed(self, principal: str | None) -> None:
        """Something of theirs has, and is no fact; of everybody's, if it is nobody's own."""
        for stream in self._streams:
            if principal is None or stream.whose in (None, principal):
                stream.feed.publish(None)

    def took(self, seconds: float) -> None:
        """To make a page."""
        self.pause = min(max(PAUSE, SHARE * seconds), LONGEST_PAUSE)

    def _heard(self, fact: Fact) -> None:
        self.changed(self.principal_of(fact.session))

    def _logged(self, fact: facts.LineLogged) -> None:
        principal = self.principal_of(fact.session)
        for stream in self._streams:
            if stream.logs == fact.server and stream.whose in (None, principal):
                stream.feed.publish(None)

    def stream(self, whose: str | None, logs: str | None = None) -> LiveStream:
        """The body of an answer; *logs*: it is also told when that server has logged something.

        Raises:
            LimitReached: too many are told already.
        """
        if len(self._streams) >= MAX_STREAMS:
            raise LimitReached(f"{MAX_STREAMS} pages are told of changes already; reload this one")
        theirs = sum(stream.whose == whose for stream in self._streams)
        if whose is not None and theirs >= MAX_STREAMS_OF_ONE:
            raise LimitReached(f"{theirs} pages of {whose} are told of changes already; close one")
        return LiveStream(self, whose, logs)

    def join(self, stream: LiveStream) -> None:
        """The journal is read while there is one."""
        if not self._streams:
            self.journal.add(self._reader)
        self._streams.add(stream)
        if stream.logs is not None and not self._log_streams:
            self.journal.add(self._log_reader)
        self._log_streams += stream.logs is not None

    def leave(self, stream: LiveStream) -> None:
        if stream in self._streams:
            self._streams.remove(stream)
            if not self._streams:
                self.journal.remove(self._reader)
            self._log_streams -= stream.logs is not None
            if stream.logs is not None and not self._log_streams:
                self.journal.remove(self._log_reader)


@attrs.define(eq=False)
class LiveStream:
    """Server-sent events to one browser. No generator: what it waits in must not be left open."""

    live: Live
    whose: str | None
    logs: str | None = None
    feed: Feed[None] = attrs.field(factory=lambda: Feed[None](keep=1), init=False)
    _cursor: int | None = attrs.field(default=None, init=False)

    def __aiter__(self) -> LiveStream:
        return self

    async def __anext__(self) -> bytes:
        if self._cursor is None:
            # Whoever has just come may have missed what happened since its page was made.
            self.live.join(self)
            self._cursor = self.feed.last
            return CHANGED
        with trio.move_on_after(self.live.pause + SILENCE):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._end, nursery.cancel_scope)
                await trio.sleep(self.live.pause)
                await self.feed.wait_after(self._cursor)
                nursery.cancel_scope.cancel("something has changed")
        if self.live.ending.is_set():
            raise StopAsyncIteration
        if self.feed.last == self._cursor:
            return STILL_HERE
        self._cursor = self.feed.last
        return CHANGED

    async def _end(self, scope: trio.CancelScope) -> None:
        await self.live.ending.wait()
        scope.cancel("the daemon is about to stop")

    async def aclose(self) -> None:
        """Called by Quart, whatever became of the answer."""
        self.live.leave(self)
