from __future__ import annotations

import attrs
import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import MockClock, wait_all_tasks_blocked

from emceepee_trio.waits.sweeper import Sweeper


@attrs.define(eq=False)
class Shelf:
    """Keeps moments until they have come."""

    kept: list[float] = attrs.field(factory=list)
    forgotten: list[tuple[float, float]] = attrs.field(factory=list)
    """What, and when."""
    looks: int = 0

    def next_due(self) -> float | None:
        return min(self.kept, default=None)

    def sweep(self) -> None:
        self.looks += 1
        now = trio.current_time()
        self.forgotten += [(moment, now) for moment in self.kept if moment <= now]
        self.kept = [moment for moment in self.kept if moment > now]


async def test_each_thing_is_forgotten_when_it_is_due(autojump_clock: MockClock) -> None:
    shelves = Shelf([3.0, 9.0]), Shelf([5.0])
    async with trio.open_nursery() as nursery:
        nursery.start_soon(Sweeper(shelves).run)
        await trio.sleep(20)
        nursery.cancel_scope.cancel("end of the test")
    assert shelves[0].forgotten == [(3, 3), (9, 9)]
    assert shelves[1].forgotten == [(5, 5)]
    # It slept in between, and looked at everything only when something was due.
    assert shelves[0].looks == 3


async def test_what_is_due_sooner_wakes_it(autojump_clock: MockClock) -> None:
    shelf = Shelf([100.0])
    sweeper = Sweeper((shelf,))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(sweeper.run)
        await trio.sleep(1)
        shelf.kept.append(5.0)
        sweeper.look(5.0)
        await trio.sleep(5)
        nursery.cancel_scope.cancel("end of the test")
    assert shelf.forgotten == [(5, 5)]


async def test_what_is_due_later_does_not_wake_it(autojump_clock: MockClock) -> None:
    shelf = Shelf([5.0])
    sweeper = Sweeper((shelf,))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(sweeper.run)
        await wait_all_tasks_blocked()
        for _ in range(100):
            sweeper.look(7.0)
            await wait_all_tasks_blocked()
        assert shelf.looks == 0
        nursery.cancel_scope.cancel("end of the test")


async def test_with_nothing_kept_it_sleeps_until_there_is(autojump_clock: MockClock) -> None:
    shelf = Shelf()
    sweeper = Sweeper((shelf,))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(sweeper.run)
        await trio.sleep(1000)
        assert shelf.looks == 0
        shelf.kept.append(1005.0)
        sweeper.look(1005.0)
        await trio.sleep(10)
        nursery.cancel_scope.cancel("end of the test")
    assert shelf.forgotten == [(1005, 1005)]


async def test_what_was_kept_before_it_ran_is_seen(autojump_clock: MockClock) -> None:
    shelf = Shelf()
    sweeper = Sweeper((shelf,))
    shelf.kept.append(2.0)
    sweeper.look(2.0)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(sweeper.run)
        await trio.sleep(3)
        nursery.cancel_scope.cancel("end of the test")
    assert shelf.forgotten == [(2, 2)]


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20), st.integers(0, 1)), max_size=15))
def test_everything_is_forgotten_in_its_very_tick(things: list[tuple[int, int, int]]) -> None:
    """Things that are put down at some moment, to be kept for a while, on one of two shelves."""

    async def scenario() -> None:
        shelves = Shelf(), Shelf()
        sweeper = Sweeper(shelves)

        async def put(at: int, keep: int, shelf: int) -> None:
            await trio.sleep(at)
            shelves[shelf].kept.append(float(at + keep))
            sweeper.look(float(at + keep))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(sweeper.run)
            for thing in things:
                nursery.start_soon(put, *thing)
            await trio.sleep(50)
            nursery.cancel_scope.cancel("end of the test")
        forgotten = [moment for shelf in shelves for moment in shelf.forgotten]
        assert sorted(due for due, _ in forgotten) == sorted(float(a + k) for a, k, _ in things)
        assert all(due == now for due, now in forgotten)

    trio.run(scenario, clock=MockClock(autojump_threshold=0))
