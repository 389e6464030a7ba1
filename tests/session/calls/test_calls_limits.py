from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from effort import effort
from emceepee_trio.errors import ExecutionFailed, LimitReached, NotFound
from emceepee_trio.model.states import CallState, TaskState
from emceepee_trio.session.calls.call import Call
from parts import Peer, World, open_calls


async def finished(world: World, result: dict[str, Any] | None = None) -> Call:
    peer = Peer()
    call = await world.promoted(peer)
    peer.answer.set({} if result is None else result)
    await call.slot.wait()
    await wait_all_tasks_blocked()
    return call


def kept(world: World) -> list[str]:
    return [task.task_id for task in world.calls.tasks()]


async def test_one_call_too_many_in_flight_is_refused_unsent(autojump_clock: MockClock) -> None:
    async with open_calls(calls=2) as world:
        first, second, third = Peer(), Peer(), Peer()
        call = world.begin(first)
        world.begin(second)
        with pytest.raises(LimitReached, match=r"2 calls .*limits\.calls"):
            world.begin(third)
        await wait_all_tasks_blocked()
        assert third.call is None
        first.answer.set({})
        await world.calls.wait(call, 5)
        world.begin(third)
        await wait_all_tasks_blocked()
        assert third.call is not None


async def test_tasks_are_not_in_flight(autojump_clock: MockClock) -> None:
    async with open_calls(calls=1) as world:
        for _ in range(3):
            await world.promoted(Peer())
        another = Peer()
        world.begin(another)
        await wait_all_tasks_blocked()
        assert another.call is not None


async def test_at_the_limit_of_tasks_a_patience_of_zero_is_refused_unsent(
    autojump_clock: MockClock,
) -> None:
    async with open_calls(tasks=1) as world:
        call = await world.promoted(Peer())
        refused = Peer()
        with pytest.raises(LimitReached, match=r"1 tasks .*limits\.tasks"):
            world.begin(refused, patience=0)
        await wait_all_tasks_blocked()
        assert refused.call is None
        world.calls.cancel(call.id)
        await world.promoted(Peer())  # a finished one takes no room


async def test_at_the_limit_of_tasks_a_call_whose_wait_ends_is_cancelled(
    autojump_clock: MockClock,
) -> None:
    async with open_calls(tasks=1) as world:
        await world.promoted(Peer())
        peer = Peer()
        call = world.begin(peer, patience=5)
        with pytest.raises(LimitReached):
            await world.calls.wait(call, 5)
        assert trio.current_time() == 5
        await wait_all_tasks_blocked()
        assert peer.cancelled
        assert (call.state, call.task) == (CallState.CANCELLED, None)
        assert world.told.types == ["task_created"]
        assert len(world.calls._calls) == 1


async def test_at_the_limit_of_tasks_a_client_that_gives_up_loses_its_call(
    autojump_clock: MockClock,
) -> None:
    async with open_calls(tasks=1) as world:
        await world.promoted(Peer())
        peer = Peer()
        call = world.begin(peer)
        with pytest.raises(LimitReached):
            world.calls.promote(call)
        with pytest.raises(ExecutionFailed, match="too many working tasks"):
            await world.calls.wait(call, 5)
        await wait_all_tasks_blocked()
        assert peer.cancelled


async def test_finished_tasks_are_kept_for_a_while(autojump_clock: MockClock) -> None:
    async with open_calls(finished_task_ms=10_000) as world:
        call = await finished(world)
        await trio.sleep(9.9)
        assert world.calls.get(call.id) is call
        await trio.sleep(0.2)
        with pytest.raises(NotFound, match="kept 10 s"):
            world.calls.get(call.id)
        assert world.calls._calls == {}


@pytest.mark.parametrize("how", ["completed", "failed", "cancelled", "expired"])
async def test_every_finished_task_is_kept_as_long(how: str, autojump_clock: MockClock) -> None:
    async with open_calls(finished_task_ms=10_000) as world:
        peer = Peer()
        call = await world.promoted(peer, ttl=5)
        match how:
            case "completed":
                peer.answer.set({})
            case "failed":
                peer.answer.fail(ExecutionFailed("no"))
            case "cancelled":
                world.calls.cancel(call.id)
        await call.slot.wait()
        over = trio.current_time()
        assert over == (5 if how == "expired" else 0)
        await trio.sleep(9)
        assert call.task is not None
        assert world.calls.get(call.id).task is call.task
        assert call.task.status is TaskState(how)
        await trio.sleep(2)
        assert kept(world) == []


async def test_the_sweeper_wakes_for_each_in_its_time(autojump_clock: MockClock) -> None:
    async with open_calls(finished_task_ms=10_000) as world:
        first = await finished(world)
        await trio.sleep(4)
        second = await finished(world)
        await trio.sleep(7)
        assert kept(world) == [second.id]
        assert first.id != second.id
        await trio.sleep(4)
        assert kept(world) == []


async def test_working_tasks_are_not_swept(autojump_clock: MockClock) -> None:
    async with open_calls(finished_task_ms=1000) as world:
        call = await world.promoted(Peer(), ttl=1000)
        await finished(world)
        await trio.sleep(500)
        assert kept(world) == [call.id]


async def test_beyond_the_number_of_results_the_oldest_go(autojump_clock: MockClock) -> None:
    async with open_calls(results=2) as world:
        working = await world.promoted(Peer())
        calls = [await finished(world) for _ in range(4)]
        assert kept(world) == [working.id, calls[2].id, calls[3].id]


async def test_the_oldest_result_is_the_one_that_finished_first(autojump_clock: MockClock) -> None:
    async with open_calls(results=2) as world:
        slow = Peer()
        begun_first = await world.promoted(slow)
        quick = await finished(world)
        await trio.sleep(1)
        slow.answer.set({})
        await begun_first.slot.wait()
        await trio.sleep(1)
        last = await finished(world)
        assert set(kept(world)) == {begun_first.id, last.id}
        assert quick.id not in kept(world)


@pytest.mark.parametrize("letter", ["x", "本"])
async def test_beyond_the_bytes_of_results_the_oldest_go(
    letter: str, autojump_clock: MockClock
) -> None:
    async with open_calls(results_bytes=100_000) as world:
        large = {"content": letter * (40_000 // len(letter.encode()))}
        calls = [await finished(world, large) for _ in range(4)]
        assert kept(world) == [call.id for call in calls[2:]]


async def test_the_newest_result_is_kept_however_large(autojump_clock: MockClock) -> None:
    async with open_calls(results_bytes=100_000) as world:
        await finished(world)
        call = await finished(world, {"content": "x" * 200_000})
        assert kept(world) == [call.id]
        small = await finished(world)
        assert kept(world) == [small.id]


async def test_what_was_asked_for_and_errors_count_too(autojump_clock: MockClock) -> None:
    async with open_calls(results_bytes=100_000) as world:
        ids = []
        for _ in range(4):
            peer = Peer()
            args = {"text": "x" * 20_000}
            call = world.calls.begin("files", "dig", args, peer.send, patience=0, ttl=60)
            await world.calls.wait(call, 0)
            peer.answer.fail(ExecutionFailed("y" * 20_000))
            await call.slot.wait()
            ids.append(call.id)
        assert kept(world) == ids[2:]


async def test_nothing_remains_of_many_calls_but_what_is_kept(autojump_clock: MockClock) -> None:
    async with open_calls(results=5) as world:
        for _ in range(200):
            await finished(world)
            peer = Peer()
            call = world.begin(peer)
            peer.answer.set({})
            await world.calls.wait(call, 5)
        await wait_all_tasks_blocked()
        assert len(world.calls._calls) == 5
        assert len(world.nursery.child_tasks) == 1  # the sweeper


async def test_what_is_kept_makes_no_call_dearer(autojump_clock: MockClock) -> None:
    async def of_a_call(results: int) -> int:
        async with open_calls(results=results) as world:
            for _ in range(results):
                await finished(world)

            def through_its_life() -> None:
                world.calls.promote(call := world.begin(Peer(), patience=5))
                world.begin(Peer(), patience=0)
                assert world.calls.has_unsettled
                assert len(world.calls.working()) == 1
                world.calls.cancel(call.id)  # and the oldest that is kept is forgotten
                world.calls.finished.sweep()

            steps = effort(through_its_life)
            assert len(kept(world)) == results
            return steps

    few = min([await of_a_call(3) for _ in range(2)])  # the first time prepares things for ever
    assert await of_a_call(60) <= few + 20  # a step for each would be 57 more
