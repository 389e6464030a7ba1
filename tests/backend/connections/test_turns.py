"""Long work in slices."""

from __future__ import annotations

import time

import trio
from trio.testing import wait_all_tasks_blocked

from emceepee_trio.backend.connections.turns import SLICE, Turns


def work(seconds: float) -> None:
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


async def test_others_run_between_two_slices_and_long_works_take_turns() -> None:
    done: list[str] = []

    async def long(name: str) -> None:
        async with Turns() as turns:
            for _ in range(4):
                work(SLICE * 1.1)
                done.append(name)
                assert turns.is_over
                await turns.next()
                assert not turns.is_over

    async def short() -> None:
        while done.count("a") < 4:
            done.append("-")
            await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(long, "a")
        nursery.start_soon(long, "b")
        nursery.start_soon(short)
    said = "".join(done)
    works = said.replace("-", "")
    # Each had a first slice of its own; from then on neither goes before the other.
    assert all(abs(works[:n].count("a") - works[:n].count("b")) <= 2 for n in range(len(works)))
    later = said[said.rindex("-", 0, 4) :]
    assert "aa" not in later
    assert "bb" not in later[: later.rindex("a")]


async def test_a_short_work_takes_no_turn() -> None:
    async with trio.open_nursery() as nursery, Turns() as first:
        await first.next()

        async def other() -> None:
            async with Turns() as turns:
                assert not turns.is_over
            nursery.cancel_scope.cancel()

        nursery.start_soon(other)
        await wait_all_tasks_blocked()
        await trio.sleep_forever()


async def test_whoever_is_cancelled_leaves_the_turn_to_others() -> None:
    async with Turns() as held:
        await held.next()
        async with trio.open_nursery() as nursery:

            async def wait() -> None:
                async with Turns() as turns:
                    await turns.next()

            nursery.start_soon(wait)
            await wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
    with trio.fail_after(5):
        async with Turns() as turns:
            await turns.next()
            await turns.next()
