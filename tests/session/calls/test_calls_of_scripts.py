"""The calls of a script: none outlives it, and none becomes a task."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from emceepee_trio.errors import ExecutionFailed, TimedOut
from emceepee_trio.session.calls.call import Call, Result, Task
from parts import Peer, World, open_calls

RESULT = {"content": [], "isError": False}


async def test_when_a_script_is_over_so_are_its_calls_at_once(autojump_clock: MockClock) -> None:
    async with open_calls() as world:
        script = world.begin(Peer(), patience=5)
        world.calls.promote(script)
        peer = Peer()
        made = [world.begin(peer, within=script) for _ in range(3)]
        peer_ends: list[str] = []
        for call in made:
            world.nursery.start_soon(_see_end, world, call, peer_ends)
        await wait_all_tasks_blocked()
        assert world.calls.cancel(script.id)[0]
        # In the same step, before anybody has had a turn.
        assert all(call.slot.is_settled and call.scope.cancel_called for call in made)
        with pytest.raises(ExecutionFailed, match="the script has ended"):
            world.begin(Peer(), within=script)
        await wait_all_tasks_blocked()
        assert peer_ends == ["its script has ended"] * 3
        assert script.makes == []


async def _see_end(world: World, call: Call, ends: list[str]) -> None:
    try:
        await world.calls.complete(call)
    except ExecutionFailed as error:
        ends.append(error.message.removeprefix("cancelled: "))


async def test_none_is_made_after_the_time_of_a_script(autojump_clock: MockClock) -> None:
    async with open_calls() as world:
        said, deaf = TimedOut("its time is over"), trio.Event()

        async def send(call: Call) -> Result:
            with trio.CancelScope(shield=True):
                await deaf.wait()
            await trio.lowlevel.checkpoint()
            return RESULT

        script = world.calls.begin(
            *("files", "code", {}, send), patience=5, ttl=60, hard_timeout=2, overdue=lambda: said
        )
        await trio.sleep(2)
        assert not script.slot.is_settled  # its task does not see that it is over
        try:
            with pytest.raises(ExecutionFailed, match="the script has ended"):
                world.begin(Peer(), within=script)
        finally:
            deaf.set()
        with pytest.raises(TimedOut, match="its time is over"):
            await world.calls.wait(script, 5)


async def test_they_become_no_tasks_however_long_they_take(autojump_clock: MockClock) -> None:
    async with open_calls() as world:
        script = world.begin(Peer(), patience=5, ttl=1000)
        peer = Peer()
        call = world.begin(peer, patience=10_000, within=script)

        async def much_later() -> None:
            await trio.sleep(300)
            peer.answer.set(RESULT)

        world.nursery.start_soon(much_later)
        waits = world.calls.wait(script, 5)
        assert isinstance(await waits, Task)
        assert await world.calls.complete(call) is RESULT
        assert call.task is None
        await wait_all_tasks_blocked()
        assert script.makes == []
