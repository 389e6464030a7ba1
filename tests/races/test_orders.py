"""That a number really chooses the order of tasks: or every other machine here tests one order."""

from __future__ import annotations

from itertools import permutations

import trio
from hypothesis import example, given
from hypothesis.stateful import rule

from orders import USUAL, orders
from parts import in_many_orders
from trio_machine import TrioMachine

RUNNERS = 4


class Race(TrioMachine):
    def __init__(self) -> None:
        self.seen: list[int] = []
        super().__init__()

    @rule()
    def race(self) -> None:
        """Everybody says three times that it runs."""

        async def run(number: int) -> None:
            for _ in range(3):
                self.seen.append(number)
                await trio.lowlevel.checkpoint()

        def start() -> None:
            for number in range(RUNNERS):
                self.nursery.start_soon(run, number)

        self.do_sync(start)


def raced(order: int | None) -> list[int]:
    """Who ran when, in a machine of its own that takes that order."""
    machine = Race()
    try:
        if order is not None:
            machine.tasks_run_in_the(order)
        machine.race()
        machine.race()
    finally:
        machine.teardown()
    return machine.seen


@given(order=orders)
@example(order=USUAL)
def test_an_order_repeats_whatever_ran_before(order: int) -> None:
    seen = raced(order)
    raced(order + 1)
    assert raced(order) == seen
    assert len(seen) == 2 * 3 * RUNNERS


def test_every_order_of_a_few_tasks_comes_up() -> None:
    first = {tuple(raced(order)[:RUNNERS]) for order in range(200)}
    assert first == {*permutations(range(RUNNERS))}


def test_a_race_in_many_orders_is_won_by_each_and_repeats() -> None:
    async def race(order: int) -> tuple[int, ...]:
        seen: list[int] = []

        async def run(number: int) -> None:
            seen.append(number)

        async with trio.open_nursery() as nursery:
            for number in range(RUNNERS):
                nursery.start_soon(run, number)
        return tuple(seen)

    results = in_many_orders(race)
    assert {*results} == {*permutations(range(RUNNERS))}
    assert in_many_orders(race) == results
