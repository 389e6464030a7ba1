from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from emceepee_trio.config.bounds import MAX_TIMERS
from emceepee_trio.errors import LimitReached, NotFound, SessionGone
from emceepee_trio.model.events import TimerExpired
from emceepee_trio.model.wire import timestamp
from emceepee_trio.session.timers import ENDED, Timers
from parts import Told, new_ids, wall


@asynccontextmanager
async def open_timers() -> AsyncGenerator[tuple[Timers, Told]]:
    told = Told()
    async with trio.open_nursery() as nursery:
        yield Timers(nursery, told, new_ids(), wall, "s"), told
        nursery.cancel_scope.cancel("end of the test")


async def test_a_timer_fires_once(autojump_clock: MockClock) -> None:
    async with open_timers() as (timers, told):
        timer = timers.set(5000, "tea", interval=False)
        assert timer.to_json() == {
            "timer_id": timer.timer_id,
            "message": "tea",
            "duration_ms": 5000,
            "interval": False,
            "status": "active",
            "created_at": timestamp(wall()),
            "fires_at": timestamp(wall() + 5),
            "fire_count": 0,
        }
        await trio.sleep(4.9)
        assert told.said == []
        await trio.sleep(60)
        assert told.said == [("emceepee", TimerExpired(timer.timer_id, "tea", 1))]
        assert (timer.status, timer.fire_count) == ("fired", 1)


async def test_an_interval_fires_again_and_again_until_it_is_deleted(
    autojump_clock: MockClock,
) -> None:
    async with open_timers() as (timers, told):
        timer = timers.set(1000, "look", interval=True)
        await trio.sleep(3.5)
        assert [said.fire_count for said in told.of(TimerExpired)] == [1, 2, 3]
        assert timer.status == "active"
        assert timer.fires_at == timestamp(wall() + 0.5)
        assert timers.delete(timer.timer_id).to_json()["status"] == "deleted"
        await trio.sleep(10)
        assert len(told.said) == 3


async def test_an_interval_does_not_drift(mock_clock: MockClock) -> None:
    """Each firing is noticed late here, which moves none of the others."""
    async with open_timers() as (timers, told):
        timer = timers.set(1000, "look", interval=True)
        await wait_all_tasks_blocked()
        seen = []
        for _ in range(16):
            mock_clock.jump(0.375)
            await wait_all_tasks_blocked()
            seen.append(timer.fire_count)
        # Fired in the first look at or after 1.0, 2.0, … 6.0 seconds.
        assert [seen.index(count) for count in range(1, 7)] == [2, 5, 7, 10, 13, 15]
        assert len(told.said) == 6


async def test_after_a_long_stop_an_interval_does_not_catch_up_all_at_once(
    mock_clock: MockClock,
) -> None:
    async with open_timers() as (timers, _):
        timer = timers.set(1000, "look", interval=True)
        await wait_all_tasks_blocked()
        mock_clock.jump(1000)
        await wait_all_tasks_blocked()
        assert timer.fire_count <= 2
        before = timer.fire_count
        mock_clock.jump(1)
        await wait_all_tasks_blocked()
        assert timer.fire_count == before + 1


async def test_a_deleted_timer_does_not_fire(autojump_clock: MockClock) -> None:
    async with open_timers() as (timers, told):
        timer = timers.set(1000, "tea", interval=False)
        await wait_all_tasks_blocked()
        assert timers.delete(timer.timer_id) is timer
        assert timers.delete(timer.timer_id).status == "deleted"
        await wait_all_tasks_blocked()
        assert len(timers.nursery.child_tasks) == 0  # at once
        await trio.sleep(5)
        assert told.said == []


async def test_a_timer_that_has_fired_stays_what_it_was(autojump_clock: MockClock) -> None:
    async with open_timers() as (timers, _):
        timer = timers.set(1000, "tea", interval=False)
        await trio.sleep(2)
        assert timers.delete(timer.timer_id).status == "fired"


async def test_unknown_timers_are_not_found(autojump_clock: MockClock) -> None:
    async with open_timers() as (timers, _):
        for act in (timers.get, timers.delete):
            with pytest.raises(NotFound, match="list_timers shows"):
                act("nonsense")


async def test_inactive_timers_are_listed_if_asked_for(autojump_clock: MockClock) -> None:
    async with open_timers() as (timers, _):
        fired = timers.set(1000, "a", interval=False)
        deleted = timers.set(9000, "b", interval=False)
        active = timers.set(9000, "c", interval=False)
        timers.delete(deleted.timer_id)
        await trio.sleep(2)
        assert timers.list(include_inactive=False) == [active]
        assert timers.list(include_inactive=True) == [fired, deleted, active]


async def test_one_timer_too_many_is_refused(autojump_clock: MockClock) -> None:
    async with open_timers() as (timers, _):
        made = [timers.set(60_000, "x", interval=False) for _ in range(MAX_TIMERS)]
        with pytest.raises(LimitReached, match=f"{MAX_TIMERS} timers"):
            timers.set(60_000, "x", interval=False)
        assert len(timers.list(include_inactive=True)) == MAX_TIMERS
        timers.delete(made[0].timer_id)
        timers.set(60_000, "x", interval=False)


async def test_of_ended_timers_only_the_last_are_remembered(autojump_clock: MockClock) -> None:
    async with open_timers() as (timers, _):
        ids = []
        for _ in range(3 * ENDED):
            timer = timers.set(1000, "x", interval=False)
            timers.delete(timer.timer_id)
            ids.append(timer.timer_id)
        assert len(timers._timers) <= ENDED + 1
        assert timers.get(ids[-1]).status == "deleted"
        with pytest.raises(NotFound):
            timers.get(ids[0])


async def test_timers_end_with_their_session(autojump_clock: MockClock) -> None:
    async with open_timers() as (timers, told):
        timers.set(1000, "x", interval=True)
        timers.nursery.cancel_scope.cancel("ends")
        with pytest.raises(SessionGone):
            timers.set(1000, "x", interval=False)
    await trio.sleep(5)
    assert told.said == []
    with pytest.raises(SessionGone):
        timers.set(1000, "x", interval=False)
