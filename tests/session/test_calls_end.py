from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import MockClock

from emceepee_trio.errors import SessionGone
from emceepee_trio.model.events import TaskCancelled
from emceepee_trio.model.states import CallState
from emceepee_trio.session.call import Call
from parts import Peer, open_calls


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


async def test_a_bug_in_a_call_ends_its_session_and_is_heard_by_who_waits() -> None:
    async def buggy(call: Call) -> dict[str, Any]:
        raise KeyError("bug")

    async with trio.open_nursery() as others:
        with pytest.RaisesGroup(pytest.RaisesExc(KeyError)):
            async with open_calls() as world:
                call = world.calls.begin("files", "dig", {}, buggy, patience=5, ttl=9)

                async def request() -> None:
                    with pytest.raises(SessionGone):
                        await world.calls.wait(call, 5)

                others.start_soon(request)
                await trio.sleep_forever()
