"""Garbage is looked for when there is enough, and once for all that ends together."""

from __future__ import annotations

import gc

import pytest
import trio
from trio.testing import MockClock

from emceepee_trio.waits.garbage import MANY, PATIENCE, SHARE, UNWINDS, Garbage


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """When there was one."""
    when: list[float] = []
    monkeypatch.setattr(gc, "collect", lambda: when.append(trio.current_time()))
    return when


@pytest.mark.parametrize("living", [0, 1000])
async def test_a_look_comes_for_a_share_of_those_that_live(
    living: int, looks: list[float], autojump_clock: MockClock
) -> None:
    garbage, least = Garbage(), max(MANY, living // SHARE)
    for _ in range(living + 2 * least):
        garbage.begun()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(garbage.collect)
        for _ in range(least - 1):
            garbage.ended()
        await trio.sleep(10 * UNWINDS)
        assert looks == []
        for _ in range(least):
            garbage.ended()
        await trio.sleep(10 * UNWINDS)
        assert len(looks) == 1
        nursery.cancel_scope.cancel()


async def test_of_all_that_end_together_there_is_one_look_and_not_before_they_are_gone(
    looks: list[float], autojump_clock: MockClock
) -> None:
    garbage = Garbage()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(garbage.collect)
        began = trio.current_time()
        for _ in range(20 * MANY):
            garbage.begun()
        for _ in range(20 * MANY):
            garbage.ended()
        await trio.sleep(100 * UNWINDS)
        assert looks == [began + UNWINDS]
        for _ in range(MANY):
            garbage.ended()
        await trio.sleep(100 * UNWINDS)
        assert len(looks) == 2
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("living", [0, SHARE, SHARE + 1])
async def test_a_few_of_few_are_looked_for_after_a_while(
    living: int, looks: list[float], autojump_clock: MockClock
) -> None:
    garbage = Garbage()
    for _ in range(living + 1):
        garbage.begun()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(garbage.collect)
        began = trio.current_time()
        garbage.ended()
        await trio.sleep(100 * PATIENCE)
        assert looks == ([began + PATIENCE + UNWINDS] if living <= SHARE else [])
        nursery.cancel_scope.cancel()


async def test_what_holds_itself_is_freed(autojump_clock: MockClock) -> None:
    freed: list[int] = []

    class Thing:
        def __init__(self, number: int) -> None:
            self.number, self.itself = number, self

        def __del__(self) -> None:
            freed.append(self.number)

    gc.disable()
    try:
        garbage = Garbage()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(garbage.collect)
            for number in range(MANY):
                Thing(number)
                garbage.ended()
            assert freed == []
            await trio.sleep(2 * UNWINDS)
            nursery.cancel_scope.cancel()
    finally:
        gc.enable()
    assert sorted(freed) == list(range(MANY))
