from __future__ import annotations

from functools import partial
from typing import Any

import attrs
import pytest
import trio
from trio.testing import MockClock

from emceepee_trio.errors import InternalError, SessionGone
from emceepee_trio.model.events import TaskCancelled
from emceepee_trio.model.states import CallState
from emceepee_trio.session.calls.call import Call
from parts import Peer, at_the_moment, in_many_orders, late, open_calls


async def test_who_waits_elsewhere_hears_that_the_session_has_ended(
    autojump_clock: MockClock,
) -> None:
    heard: list[str] = []

    async def request(world: Any, call: Call) -> None:
        with pytest.raises(SessionGone):
            await world.calls.wait(call, 50)
        heard.append("request")

    async def fetch(call: Call) -> None:
        with pytest.raises(SessionGone):
            await call.slot.wait_result()
        heard.append("fetch")

    async with trio.open_nursery() as others:
        async with open_calls() as world:
            in_flight, task = world.begin(Peer(), patience=50), await world.promoted(Peer())
            others.start_soon(request, world, in_flight)  # noqa: ASYNC111 - the waiters must outlive it
            others.start_soon(fetch, task)
            await trio.sleep(1)
    assert sorted(heard) == ["fetch", "request"]
    assert trio.current_time() == 1
    assert in_flight.state is CallState.CANCELLED
    assert world.told.of(TaskCancelled) == [TaskCancelled(task.id, "dig", "session_ended")]


async def test_no_call_begins_in_a_session_that_has_ended(autojump_clock: MockClock) -> None:
    async with open_calls() as world:
        world.nursery.cancel_scope.cancel("ends")
        with pytest.raises(SessionGone):
            world.begin(Peer())
    with pytest.raises(SessionGone):
        world.begin(Peer())
    assert world.calls._calls == {}


async def test_a_bug_in_a_call_costs_that_call_and_is_heard_by_who_waits(
    autojump_clock: MockClock,
) -> None:
    async def buggy(call: Call) -> dict[str, Any]:
        raise KeyError("bug")

    async with open_calls() as world:
        call = world.calls.begin("files", "dig", {}, buggy, patience=5, ttl=9)
        other = world.begin(peer := Peer())
        with pytest.raises(InternalError, match=r"internal error \(log id [0-9a-f]{8}\)"):
            await world.calls.wait(call, 5)
        assert call.state is CallState.FAILED
        peer.answer.set({"fine": True})
        assert await world.calls.wait(other, 5) == {"fine": True}
        assert world.calls._calls == {}


@attrs.define(eq=False)
class Crashing:
    """A backend's end of a call that has a bug where it is cancelled."""

    async def send(self, call: Call) -> dict[str, Any]:
        try:
            await trio.sleep_forever()
        finally:
            raise KeyError("bug")


@pytest.mark.parametrize("how", ["cancel", "expiry", "session"])
async def test_a_bug_of_a_call_that_is_over_changes_nothing_of_its_fate(
    how: str, autojump_clock: MockClock
) -> None:
    """In the very tick of its cancellation; an expiry only wakes it, so there the bug is first."""
    async with open_calls() as world:
        task = await world.promoted(Crashing(), ttl=5.0)  # type: ignore[arg-type]  # as much of a peer as is needed
        await trio.sleep(1)
        if how == "cancel":
            assert world.calls.cancel(task.id)[0]
        await trio.sleep(0 if how == "session" else 9)
    assert task.task is not None
    fate = {"cancel": "cancelled", "expiry": "failed", "session": "failed"}[how]
    assert task.task.status.value == fate
    assert len([told for told in world.told.types if told != "task_created"]) == 1
    if how != "cancel":
        assert isinstance(task.slot.error, InternalError)


def test_completion_and_a_bug_of_one_tick() -> None:
    """A result that cannot be measured, and the cancellation that meets it: one fate, told once."""

    async def race(order: int) -> str:
        async with open_calls() as world:
            task = await world.promoted(peer := Peer())
            async with trio.open_nursery() as rivals:
                rivals.start_soon(at_the_moment, lambda: peer.answer.set({"x": object()}), 0)
                act = partial(world.calls.cancel, task.id)
                rivals.start_soon(at_the_moment, act, late(order))
            await trio.sleep(1)
            assert task.slot.is_settled
            assert task.task is not None
            told = [each for each in world.told.types if each != "task_created"]
            assert told == [f"task_{task.task.status.value}"]
            return task.task.status.value

    assert set(in_many_orders(race)) == {"failed", "cancelled"}
