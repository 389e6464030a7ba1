from __future__ import annotations

import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import wait_all_tasks_blocked

from emceepee_trio.waits.feed import Feed
from parts import hop, in_many_orders


async def test_a_reader_gets_what_comes_after_its_cursor() -> None:
    feed: Feed[str] = Feed(10)
    assert feed.last == 0
    feed.publish("a")
    cursor = feed.last
    feed.publish("b")
    feed.publish("c")
    assert feed.after(cursor) == ["b", "c"]
    assert feed.after(0) == ["a", "b", "c"]
    assert feed.after(feed.last) == []


async def test_reading_takes_nothing_from_others() -> None:
    feed: Feed[str] = Feed(10)
    seen: list[str] = []

    async def reader(name: str) -> None:
        cursor = 0
        while cursor < 3:
            await feed.wait_after(cursor)
            seen.extend(name + item for item in feed.after(cursor))
            cursor = feed.last

    async with trio.open_nursery() as nursery:
        nursery.start_soon(reader, "1")
        nursery.start_soon(reader, "2")
        await wait_all_tasks_blocked()
        feed.publish("a")
        feed.publish("b")
        await wait_all_tasks_blocked()
        feed.publish("c")
    assert sorted(seen) == ["1a", "1b", "1c", "2a", "2b", "2c"]


async def test_who_is_behind_does_not_wait() -> None:
    feed: Feed[int] = Feed(10)
    feed.publish(1)
    with trio.fail_after(60):
        await feed.wait_after(0)


async def test_waiting_is_a_checkpoint_even_if_there_is_news() -> None:
    feed: Feed[int] = Feed(10)
    feed.publish(1)
    with trio.CancelScope() as scope:
        scope.cancel("already")
        await feed.wait_after(0)
    assert scope.cancelled_caught


async def test_only_the_newest_are_kept() -> None:
    feed: Feed[int] = Feed(3)
    for number in range(100):
        feed.publish(number)
    assert feed.after(0) == [97, 98, 99]
    assert feed.last == 100
    assert len(feed._items) == 3


async def test_closing_lets_everybody_go_who_waits_or_will_wait() -> None:
    feed: Feed[int] = Feed(3)
    gone: list[int] = []

    async def reader(number: int) -> None:
        await feed.wait_after(feed.last)
        gone.append(number)

    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            for number in range(3):
                nursery.start_soon(reader, number)
            await wait_all_tasks_blocked()
            assert not feed.is_closed
            feed.close()
            assert feed.is_closed
            await wait_all_tasks_blocked()
            assert len(gone) == 3
            nursery.start_soon(reader, 3)
    assert sorted(gone) == [0, 1, 2, 3]


async def test_who_publishes_into_a_closed_feed_holds_nobody() -> None:
    feed: Feed[int] = Feed(3)
    feed.close()
    feed.publish(1)
    with trio.fail_after(60):
        await feed.wait_after(feed.last)
    assert feed.after(0) == [1]


@given(
    pauses=st.lists(st.integers(0, 3), min_size=1, max_size=20),
    readers=st.lists(st.integers(0, 3), min_size=1, max_size=4),
)
def test_no_wake_up_is_lost_whoever_runs_first(pauses: list[int], readers: list[int]) -> None:
    """Readers that are busy for some ticks after each wake-up; nothing comes to their rescue."""

    async def race(_: int) -> None:
        feed: Feed[int] = Feed(100)
        seen: list[list[int]] = [[] for _ in readers]

        async def read(index: int, busy: int) -> None:
            cursor = 0
            while True:
                await feed.wait_after(cursor)
                seen[index] += feed.after(cursor)
                cursor = feed.last
                await hop(busy)

        async def publish() -> None:
            for number, pause in enumerate(pauses):
                feed.publish(number)
                await hop(pause)

        async with trio.open_nursery() as nursery:
            for index, busy in enumerate(readers):
                nursery.start_soon(read, index, busy)
            await publish()
            await wait_all_tasks_blocked()
            nursery.cancel_scope.cancel("all has been said")
        assert seen == [list(range(len(pauses)))] * len(readers)

    in_many_orders(race, orders=3)
