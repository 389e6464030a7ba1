"""Places are given in turn, and none is ever lost."""

from __future__ import annotations

from collections import Counter

import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import MockClock, wait_all_tasks_blocked

from emceepee_trio.backend.sharing.places import FairPlaces
from orders import orders, take_order
from parts import hop


async def test_a_burst_of_one_delays_another_by_one() -> None:
    places, began = FairPlaces(2), list[str]()
    done = {name: trio.Event() for name in ("burst 0", "burst 1")}

    async def use(whose: str, name: str) -> None:
        async with places.one(whose):
            began.append(name)
            if name in done:
                await done[name].wait()

    async with trio.open_nursery() as nursery:
        for number in range(10):
            nursery.start_soon(use, "burst", f"burst {number}")
            await wait_all_tasks_blocked()
        nursery.start_soon(use, "other", "other")
        nursery.start_soon(use, "third", "third")
        await wait_all_tasks_blocked()
        assert began == ["burst 0", "burst 1"]
        done["burst 0"].set()
        await wait_all_tasks_blocked()
        done["burst 1"].set()
    # One of the burst had waited before they came; then they are in turn.
    assert began[2] == "burst 2"
    assert began.index("other") <= 4
    assert began.index("third") <= 5
    assert len(began) == 12


@given(
    orders,
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 5), st.booleans()), max_size=12),
    st.integers(1, 3),
)
def test_no_place_is_lost_whoever_gives_up_when(
    order: int, uses: list[tuple[str, int, bool]], most: int
) -> None:
    places, now, highest = FairPlaces(most), Counter[str](), 0

    async def use(whose: str, late: int, gives_up: bool) -> None:
        nonlocal highest
        with trio.CancelScope() as scope:
            if gives_up:
                scope.deadline = trio.current_time() + late
            await trio.sleep(late % 3)
            await hop(late)
            async with places.one(whose):
                now[whose] += 1
                highest = max(highest, now.total())
                try:
                    await trio.sleep(1)
                finally:
                    now[whose] -= 1

    async def scenario() -> None:
        with trio.fail_after(1000):
            async with trio.open_nursery() as nursery:
                for each in uses:
                    nursery.start_soon(use, *each)
            # All of them are free again.
            async with trio.open_nursery() as nursery:
                for number in range(most):
                    nursery.start_soon(use, str(number), 0, False)
                await wait_all_tasks_blocked()
                assert now.total() == most

    take_order(order)
    trio.run(scenario, clock=MockClock(autojump_threshold=0))
    assert highest <= most
