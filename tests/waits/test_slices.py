"""Long work takes turns, and everybody else has more of them."""

from __future__ import annotations

from collections.abc import Generator

import pytest
import trio

from emceepee_trio.waits.slices import REST, in_slices

MANY = 20


def steps(count: int, seen: list[str], name: str = "step") -> Generator[None, None, str]:
    for n in range(count):
        seen.append(name)
        if n < count - 1:
            yield
    return name


async def test_what_is_done_in_one_step_waits_for_nobody() -> None:
    seen: list[str] = []
    with trio.CancelScope() as scope:
        scope.cancel()
        # Which it would notice at a checkpoint.
        assert await in_slices(steps(1, seen, "short")) == "short"
    assert not scope.cancelled_caught


@pytest.mark.parametrize("works", [1, MANY])
async def test_others_have_their_ticks_however_much_of_it_there_is(works: int) -> None:
    seen: list[str] = []
    over = trio.Event()

    async def other() -> None:
        while not over.is_set():
            seen.append("tick")
            await trio.lowlevel.checkpoint()

    async def work(n: int) -> None:
        # What is begun at once is not held up, as it may be short.
        await in_slices(steps(5, seen, f"work {n}"))

    async with trio.open_nursery() as others:
        others.start_soon(other)
        async with trio.open_nursery() as nursery:
            for n in range(works):
                nursery.start_soon(work, n)
        over.set()
    said = " ".join("." if each == "tick" else "x" for each in seen).replace(" ", "")
    begun = [seen.index(f"work {n}") for n in range(works)]
    later = said[max(begun) + 1 :]
    # Of REST ticks the other task sees all but the one in which it comes before the step.
    rests = [len(ticks) for ticks in later.split("x")[1:-1]]
    assert len(rests) >= 3
    assert min(rests) >= REST - 1
    assert seen.count("tick") >= works * 4 * (REST - 1)


async def test_they_take_turns() -> None:
    seen: list[str] = []
    async with trio.open_nursery() as nursery:
        for n in range(3):
            nursery.start_soon(in_slices, steps(10, seen, f"work {n}"))
    # Whoever has waited for the longest is the next, so that nobody is ever two steps ahead.
    for until in range(len(seen)):
        done = [seen[:until].count(f"work {n}") for n in range(3)]
        assert max(done) - min(done) <= 2


async def test_who_is_cancelled_leaves_its_turn_to_the_next() -> None:
    seen: list[str] = []
    async with trio.open_nursery() as nursery:
        with trio.CancelScope() as scope:
            nursery.start_soon(in_slices, steps(3, seen, "other"))

            def endless() -> Generator[None, None, None]:
                for n in range(1000):
                    if n == 3:
                        scope.cancel()
                    yield

            await in_slices(endless())
    assert scope.cancelled_caught
    assert seen.count("other") == 3
    assert await in_slices(steps(3, [], "whole")) == "whole"


async def test_what_fails_leaves_it_too() -> None:
    def failing() -> Generator[None, None, None]:
        yield
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await in_slices(failing())
    assert await in_slices(steps(3, [], "whole")) == "whole"
