from __future__ import annotations

import traceback

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import wait_all_tasks_blocked

from emceepee_trio.waits.slot import Slot
from parts import hop, in_many_orders


class Failed(Exception):
    pass


async def test_the_first_writer_wins() -> None:
    slot: Slot[str] = Slot()
    assert not slot.is_settled
    assert slot.set("first")
    assert not slot.set("second")
    assert not slot.fail(Failed())
    assert slot.is_settled
    assert slot.peek() == "first"
    assert slot.error is None


async def test_an_error_is_a_result_like_any_other() -> None:
    slot: Slot[str] = Slot()
    error = Failed("why")
    assert slot.fail(error)
    assert not slot.set("too late")
    assert slot.error is error
    with pytest.raises(Failed, match="why"):
        slot.peek()
    with pytest.raises(Failed, match="why"):
        await slot.wait_result()
    await slot.wait()  # does not raise


async def test_looking_into_an_empty_slot_is_a_bug() -> None:
    slot: Slot[None] = Slot()
    with pytest.raises(RuntimeError, match="not settled"):
        slot.peek()
    assert slot.set(None)
    assert slot.peek() is None


async def test_everybody_may_read() -> None:
    slot: Slot[int] = Slot()
    seen: list[int] = []

    async def read() -> None:
        seen.append(await slot.wait_result())

    async with trio.open_nursery() as nursery:
        for _ in range(10):
            nursery.start_soon(read)
        await wait_all_tasks_blocked()
        assert not seen
        slot.set(7)
        nursery.start_soon(read)
    assert seen == [7] * 11


async def test_a_reader_who_leaves_takes_nothing_along() -> None:
    slot: Slot[int] = Slot()
    with trio.CancelScope() as scope:
        scope.cancel("leaves")
        await slot.wait_result()
    assert scope.cancelled_caught
    assert slot.set(1)
    assert await slot.wait_result() == 1


async def test_tracebacks_do_not_pile_up() -> None:
    slot: Slot[int] = Slot()
    slot.fail(Failed())
    depths = set()
    for _ in range(50):
        with pytest.raises(Failed) as caught:
            slot.peek()
        depths.add(len(traceback.extract_tb(caught.value.__traceback__)))
    assert len(depths) == 1


@given(st.lists(st.booleans(), min_size=1, max_size=10))
def test_of_any_number_of_writers_one_wins_and_all_readers_agree(writers: list[bool]) -> None:
    async def race(_: int) -> None:
        slot: Slot[int] = Slot()
        won: list[int] = []
        read: list[int] = []

        async def write(number: int, succeeds: bool) -> None:
            await trio.sleep(5)
            if slot.set(number) if succeeds else slot.fail(Failed(number)):
                won.append(number)

        async def reader(hops: int) -> None:
            await trio.sleep(5)
            await hop(hops)
            try:
                read.append(await slot.wait_result())
            except Failed as failed:
                read.append(failed.args[0])

        async with trio.open_nursery() as nursery:
            for number, succeeds in enumerate(writers):
                nursery.start_soon(write, number, succeeds)
                nursery.start_soon(reader, number % 3)
        assert len(won) == 1
        assert read == won * len(writers)

    in_many_orders(race, orders=5)
