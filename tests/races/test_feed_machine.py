"""A feed against lists: whatever order, a reader that waits has seen everything."""

from __future__ import annotations

import attrs
import trio
from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule

from emceepee_trio.waits.feed import Feed
from trio_machine import TrioMachine

KEEP = 20


@attrs.define(eq=False)
class Reader:
    cursor: int
    seen: list[int] = attrs.field(factory=list)
    scope: trio.CancelScope = attrs.field(factory=trio.CancelScope)
    gone: bool = False
    expected: list[int] = attrs.field(factory=list)
    wakes: int = 0

    async def run(self, feed: Feed[int]) -> None:
        with self.scope:
            while not feed.is_closed:
                await feed.wait_after(self.cursor)
                self.wakes += 1
                self.seen += feed.after(self.cursor)
                self.cursor = feed.last
        self.gone = True


class Feeds(TrioMachine):
    def __init__(self) -> None:
        self.feed: Feed[int] = Feed(KEEP)
        self.readers: list[Reader] = []
        self.published = 0
        self.closed = False
        super().__init__()

    @rule(behind=st.integers(0, KEEP))
    def join(self, behind: int) -> None:
        cursor = max(0, self.published - behind)
        reader = Reader(cursor)
        if not self.closed:
            reader.expected = list(range(cursor + 1, self.published + 1))
        self.readers.append(reader)
        self.do_sync(lambda: self.nursery.start_soon(reader.run, self.feed))

    @rule(count=st.integers(1, KEEP))
    def publish(self, count: int) -> None:
        def act() -> None:
            for number in range(self.published + 1, self.published + count + 1):
                self.feed.publish(number)

        self.do_sync(act)
        new = range(self.published + 1, self.published + count + 1)
        self.published += count
        for reader in self.readers:
            if not reader.gone:
                reader.expected += new

    @rule()
    def nudge(self) -> None:
        before = [reader.wakes for reader in self.readers]
        self.do_sync(self.feed.nudge)
        woken = [not reader.gone for reader in self.readers]
        after = [reader.wakes for reader in self.readers]
        assert after == [n + is_woken for n, is_woken in zip(before, woken, strict=True)]

    @precondition(lambda self: any(not reader.gone for reader in self.readers))
    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        reader = data.draw(st.sampled_from([r for r in self.readers if not r.gone]))
        self.do_sync(reader.scope.cancel)
        assert reader.gone

    @precondition(lambda self: self.published > 10)
    @rule()
    def close(self) -> None:
        self.do_sync(self.feed.close)
        self.closed = True

    @invariant()
    def readers_have_seen_everything_once_and_in_order(self) -> None:
        for reader in self.readers:
            assert reader.seen == reader.expected

    @invariant()
    def nobody_is_held_by_a_closed_feed(self) -> None:
        assert all(reader.gone for reader in self.readers) or not self.closed


TestFeeds = Feeds.TestCase
