"""Rivals that meet in one tick of the scheduler: one wins, and both are told the same.

That both fates were seen in so many orders shows that the rivals did meet.
"""

from __future__ import annotations

from typing import Any

import attrs
import trio

from emceepee_trio.errors import SessionGone, TimedOut, ToolError
from emceepee_trio.model.states import CallState, TaskState
from emceepee_trio.session.calls.call import Call, Task
from parts import (
    MOMENT,
    Peer,
    World,
    at_the_moment,
    in_many_orders,
    just_before,
    late,
    mock_clock,
    open_calls,
)

RESULT: dict[str, Any] = {"content": []}


@attrs.define
class Seen:
    """What each side of a task was told in the end."""

    status: TaskState
    fetched: Any
    """The result, or the type of the error."""
    backend: str
    told: list[str]


async def outcome_of(call: Call) -> Any:
    try:
        return await call.slot.wait_result()
    except ToolError as error:
        return type(error)


async def seen_of(world: World, call: Call, peer: Peer) -> Seen:
    fetched = await outcome_of(call)
    await trio.testing.wait_all_tasks_blocked()
    assert call.task is not None
    backend = "answered" if peer.returned else "cancelled" if peer.cancelled else "working"
    return Seen(call.task.status, fetched, backend, world.told.types)


def check(seen: Seen, *expected: TaskState) -> None:
    """Everybody was told of the same fate, once."""
    assert seen.status in expected
    assert seen.told == ["task_created", f"task_{seen.status.value}"]
    assert (seen.fetched is RESULT) == (seen.status is TaskState.COMPLETED)


def test_completion_and_expiry() -> None:
    async def race(order: int) -> TaskState:
        async with open_calls() as world:
            peer = Peer()
            call = await world.promoted(peer, ttl=MOMENT)
            world.nursery.start_soon(
                just_before, mock_clock(), lambda: peer.answer.set(RESULT), late(order)
            )
            seen = await seen_of(world, call, peer)
        check(seen, TaskState.COMPLETED, TaskState.EXPIRED)
        assert (seen.backend == "answered") == (seen.status is TaskState.COMPLETED)
        return seen.status

    assert set(in_many_orders(race)) == {TaskState.COMPLETED, TaskState.EXPIRED}


def test_completion_and_cancel() -> None:
    async def race(order: int) -> TaskState:
        async with open_calls() as world:
            peer, said = Peer(), []
            call = await world.promoted(peer)
            world.nursery.start_soon(at_the_moment, lambda: peer.answer.set(RESULT))
            world.nursery.start_soon(
                at_the_moment, lambda: said.append(world.calls.cancel(call.id)[0]), late(order)
            )
            seen = await seen_of(world, call, peer)
            await trio.sleep_until(MOMENT + 1)
        check(seen, TaskState.COMPLETED, TaskState.CANCELLED)
        assert said == [seen.status is TaskState.CANCELLED]
        return seen.status

    assert set(in_many_orders(race)) == {TaskState.COMPLETED, TaskState.CANCELLED}


def test_cancel_and_expiry() -> None:
    async def race(order: int) -> TaskState:
        async with open_calls() as world:
            peer, said = Peer(), []
            call = await world.promoted(peer, ttl=MOMENT)
            world.nursery.start_soon(
                at_the_moment, lambda: said.append(world.calls.cancel(call.id)[0]), late(order)
            )
            seen = await seen_of(world, call, peer)
            await trio.sleep_until(MOMENT + 1)
        check(seen, TaskState.CANCELLED, TaskState.EXPIRED)
        assert said == [seen.status is TaskState.CANCELLED]
        assert seen.backend == "cancelled"
        return seen.status

    assert set(in_many_orders(race)) == {TaskState.CANCELLED, TaskState.EXPIRED}


def test_two_cancels() -> None:
    async def race(order: int) -> None:
        async with open_calls() as world:
            peer, said = Peer(), []
            call = await world.promoted(peer)
            for hops in (0, late(order)):
                world.nursery.start_soon(
                    at_the_moment, lambda: said.append(world.calls.cancel(call.id)[0]), hops
                )
            seen = await seen_of(world, call, peer)
            await trio.sleep_until(MOMENT + 1)
        check(seen, TaskState.CANCELLED)
        assert said == [True, False]

    in_many_orders(race)


def test_promotion_and_completion() -> None:
    async def race(order: int) -> str:
        async with open_calls() as world:
            peer = Peer()
            call = world.begin(peer, patience=MOMENT)
            rival = just_before if order % 2 else lambda _, *rest: at_the_moment(*rest)
            world.nursery.start_soon(
                rival, mock_clock(), lambda: peer.answer.set(RESULT), late(order)
            )
            got = await world.calls.wait(call, MOMENT)
            if isinstance(got, Task):
                seen = await seen_of(world, call, peer)
                check(seen, TaskState.COMPLETED)
                assert call.state is CallState.PROMOTED
                return "promoted"
            assert got is RESULT
            assert (call.state, world.told.said) == (CallState.RETURNED, [])
            return "returned"

    assert set(in_many_orders(race)) == {"promoted", "returned"}


def test_a_client_that_gives_up_and_completion() -> None:
    async def race(order: int) -> CallState:
        async with open_calls() as world:
            peer, got = Peer(), []
            call = world.begin(peer, patience=60)
            world.nursery.start_soon(at_the_moment, lambda: peer.answer.set(RESULT))

            async def request() -> None:
                got.append(await world.calls.wait(call, 60))

            async with trio.open_nursery() as requests:

                def give_up() -> None:
                    world.calls.promote(call)
                    requests.cancel_scope.cancel("timed out")

                requests.start_soon(request)
                requests.start_soon(at_the_moment, give_up, late(order))
            assert await outcome_of(call) is RESULT
            # Even if the answer was first: who gave up will not read it.
            check(await seen_of(world, call, peer), TaskState.COMPLETED)
            return call.state

    assert set(in_many_orders(race)) == {CallState.PROMOTED, CallState.RETURNED}


def test_a_request_that_is_cancelled_and_promotion() -> None:
    async def race(order: int) -> str:
        async with open_calls() as world:
            peer = Peer()
            call = world.begin(peer, patience=MOMENT)
            async with trio.open_nursery() as requests:
                requests.start_soon(world.calls.wait, call, MOMENT)
                requests.start_soon(at_the_moment, requests.cancel_scope.cancel, late(order))
            await trio.testing.wait_all_tasks_blocked()
            # A task that goes on, or nothing at all.
            assert (call.task is None) == peer.cancelled
            assert world.told.types == ([] if call.task is None else ["task_created"])
            assert (call.state is CallState.CANCELLED) == (call.task is None)
            return "cancelled" if call.task is None else "promoted"

    assert set(in_many_orders(race)) == {"cancelled", "promoted"}


def test_the_hard_end_and_completion() -> None:
    async def race(order: int) -> str:
        async with open_calls() as world:
            peer = Peer()
            call = world.begin(peer, patience=60, hard_timeout=MOMENT)
            world.nursery.start_soon(
                just_before, mock_clock(), lambda: peer.answer.set(RESULT), late(order)
            )
            try:
                got: Any = await world.calls.wait(call, 60)
            except TimedOut:
                got = TimedOut
            await trio.testing.wait_all_tasks_blocked()
            assert got in (RESULT, TimedOut)
            assert peer.returned == (got is RESULT)
            assert peer.cancelled == (got is TimedOut)
            assert call.state is (CallState.RETURNED if got is RESULT else CallState.FAILED)
            return "returned" if got is RESULT else "timed out"

    assert set(in_many_orders(race)) == {"returned", "timed out"}


def test_the_hard_end_and_promotion() -> None:
    async def race(order: int) -> str:
        async with open_calls() as world:
            peer = Peer()
            call = world.begin(peer, patience=MOMENT, hard_timeout=MOMENT)
            try:
                got: Any = await world.calls.wait(call, MOMENT)
            except TimedOut:
                assert world.told.said == []
                return "timed out"
            assert isinstance(got, Task)
            seen = await seen_of(world, call, peer)
            check(seen, TaskState.FAILED)
            assert seen.fetched is TimedOut
            return "promoted"

    assert set(in_many_orders(race)) == {"promoted", "timed out"}


def test_the_end_of_the_session_and_completion() -> None:
    async def race(order: int) -> str:
        got: list[Any] = []
        async with trio.open_nursery() as elsewhere:
            async with open_calls() as world:
                peer = Peer()
                call = await world.promoted(peer)

                async def fetch() -> None:
                    got.append(await outcome_of(call))

                elsewhere.start_soon(fetch)
                world.nursery.start_soon(at_the_moment, lambda: peer.answer.set(RESULT))
                await at_the_moment(world.nursery.cancel_scope.cancel, late(order))
        assert call.task is not None
        assert got in ([RESULT], [SessionGone])
        completed = got == [RESULT]
        assert call.task.status is (TaskState.COMPLETED if completed else TaskState.CANCELLED)
        assert len(world.told.said) == 2
        return "completed" if completed else "cancelled"

    assert set(in_many_orders(race)) == {"completed", "cancelled"}
