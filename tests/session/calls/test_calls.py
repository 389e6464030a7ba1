from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from emceepee_trio.errors import (
    ExecutionFailed,
    NotFound,
    ServerDisconnected,
    TimedOut,
)
from emceepee_trio.model.events import TaskCancelled, TaskCompleted, TaskCreated, TaskExpired
from emceepee_trio.model.events import TaskFailed as TaskFailedEvent
from emceepee_trio.model.states import CallState, TaskState
from emceepee_trio.model.wire import timestamp
from emceepee_trio.session.calls.call import Call, Task
from parts import Peer, open_calls, wall

RESULT = {"content": [], "isError": False}


async def test_a_result_in_time_is_returned_and_nothing_remains(autojump_clock: MockClock) -> None:
    async with open_calls() as world:
        peer = Peer()
        call = world.begin(peer, patience=5)
        assert call.to_json() == {
            "tool": "dig",
            "started_at": timestamp(wall()),
            "waiting_on": "connection",
        }
        world.nursery.start_soon(_answer_after, peer, 4)
        assert await world.calls.wait(call, 5) is RESULT
        assert trio.current_time() == 4
        assert call.state is CallState.RETURNED
        assert world.told.said == []
        await wait_all_tasks_blocked()
        assert world.calls._calls == {}


async def _answer_after(peer: Peer, seconds: float) -> None:
    await trio.sleep(seconds)
    peer.answer.set(RESULT)


async def test_an_error_in_time_is_raised(autojump_clock: MockClock) -> None:
    async with open_calls() as world:
        peer = Peer()
        call = world.begin(peer)
        peer.answer.fail(ServerDisconnected("gone"))
        with pytest.raises(ServerDisconnected, match="gone"):
            await world.calls.wait(call, 5)
        assert call.state is CallState.FAILED
        assert world.told.said == []


async def test_a_slow_call_is_promoted_and_finishes(autojump_clock: MockClock) -> None:
    async with open_calls() as world:
        peer = Peer()
        call = world.begin(peer, patience=5, ttl=60)
        task = await world.calls.wait(call, 5)
        assert isinstance(task, Task)
        assert trio.current_time() == 5
        assert (task.task_id, task.status) == (call.id, TaskState.WORKING)
        assert (task.server, task.tool, task.args) == ("files", "dig", {"deep": 1})
        assert task.created_at == task.last_updated_at == timestamp(wall())
        assert task.ttl_ms == 60_000
        assert world.calls.working() == [task]
        await trio.sleep(10)
        peer.answer.set(RESULT)
        assert await call.slot.wait_result() is RESULT
        assert task.status is TaskState.COMPLETED
        assert task.last_updated_at == timestamp(wall())
        assert world.calls.working() == []
        assert world.told.said == [
            ("files", TaskCreated(call.id, "dig", 60_000)),
            ("files", TaskCompleted(call.id, "dig")),
        ]
        assert world.calls.get(call.id).slot.peek() is RESULT  # any number of times
        assert world.calls.get(call.id).slot.peek() is RESULT


async def test_a_result_that_says_is_error_completes_a_task(autojump_clock: MockClock) -> None:
    async with open_calls() as world:
        peer = Peer()
        call = await world.promoted(peer)
        peer.answer.set({"content": [], "isError": True})
        await call.slot.wait()
        assert world.told.types == ["task_created", "task_completed"]


@pytest.mark.parametrize(
    ("error", "reason"),
    [(ServerDisconnected("lost"), "server_disconnected"), (ExecutionFailed("no"), None)],
)
async def test_a_task_whose_backend_fails_has_failed(
    error: Any, reason: str | None, autojump_clock: MockClock
) -> None:
    async with open_calls() as world:
        peer = Peer()
        call = await world.promoted(peer)
        peer.answer.fail(error)
        await call.slot.wait()
        assert call.task is not None
        assert (call.task.status, call.task.error) == (TaskState.FAILED, error.message)
        assert world.told.of(TaskFailedEvent) == [
            TaskFailedEvent(call.id, "dig", error.message, reason)
        ]
        with pytest.raises(type(error)):
            call.slot.peek()


async def test_a_task_expires_its_ttl_after_the_promotion(autojump_clock: MockClock) -> None:
    async with open_calls() as world:
        peer = Peer()
        call = world.begin(peer, patience=5, ttl=60)
        await world.calls.wait(call, 5)
        with pytest.raises(ExecutionFailed, match="expired after 60000 ms") as caught:
            await call.slot.wait_result()
        assert trio.current_time() == 65
        assert caught.value.details == {"status": "expired"}
        assert peer.cancelled  # the backend is told
        assert call.task is not None
        assert call.task.status is TaskState.EXPIRED
        assert world.told.of(TaskExpired) == [TaskExpired(call.id, "dig", 60_000)]


async def test_a_promotion_before_its_time_moves_the_expiry_too(autojump_clock: MockClock) -> None:
    async with open_calls() as world:
        call = world.begin(Peer(), patience=100, ttl=60)
        await trio.sleep(10)
        world.calls.promote(call)
        await call.slot.wait()
        assert trio.current_time() == 70


async def test_a_patience_of_zero_promotes_at_once(autojump_clock: MockClock) -> None:
    async with open_calls() as world:
        call = world.begin(Peer(), patience=0)
        assert isinstance(await world.calls.wait(call, 0), Task)
        assert trio.current_time() == 0


async def test_a_call_is_promoted_once(autojump_clock: MockClock) -> None:
    async with open_calls() as world:
        call = await world.promoted(Peer())
        task, expires = call.task, call.expires
        await trio.sleep(1)
        world.calls.promote(call)
        assert (call.task, call.expires) == (task, expires)
        assert world.told.types == ["task_created"]


@pytest.mark.parametrize("succeeds", [True, False])
async def test_what_is_over_is_found_as_a_task_by_who_stopped_waiting_for_it(
    succeeds: bool, autojump_clock: MockClock
) -> None:
    async with open_calls() as world:
        peer = Peer()
        call = world.begin(peer)
        if succeeds:
            peer.answer.set(RESULT)
        else:
            peer.answer.fail(ExecutionFailed("no"))
        await call.slot.wait()
        world.calls.promote(call)
        world.calls.promote(call)
        fate = "completed" if succeeds else "failed"
        assert world.told.types == ["task_created", f"task_{fate}"]
        assert world.calls.get(call.id) is call
        assert [task.status.value for task in world.calls.tasks()] == [fate]
        await trio.sleep(world.calls.limits.finished_task_ms / 1000 + 1)
        assert world.calls.tasks() == []


async def test_what_was_cancelled_is_not_promoted(autojump_clock: MockClock) -> None:
    async with open_calls() as world:
        call = world.begin(Peer())
        with trio.move_on_after(1):
            await world.calls.wait(call, 5)
        world.calls.promote(call)
        assert call.task is None
        assert world.told.said == []


async def test_the_hard_end_comes_before_the_promotion(autojump_clock: MockClock) -> None:
    async with open_calls() as world:
        peer = Peer()
        call = world.begin(peer, patience=10, hard_timeout=3)
        with pytest.raises(TimedOut, match=r"call_timeout_ms \(3000\)"):
            await world.calls.wait(call, 10)
        assert trio.current_time() == 3
        assert peer.cancelled
        assert world.told.said == []


async def test_the_hard_end_comes_to_a_task_too(autojump_clock: MockClock) -> None:
    async with open_calls() as world:
        peer = Peer()
        call = world.begin(peer, patience=2, ttl=60, hard_timeout=10)
        await world.calls.wait(call, 2)
        with pytest.raises(TimedOut):
            await call.slot.wait_result()
        assert trio.current_time() == 10
        assert peer.cancelled
        assert call.task is not None
        assert call.task.status is TaskState.FAILED
        assert world.told.types == ["task_created", "task_failed"]


async def test_a_ttl_that_ends_before_the_hard_end_expires_the_task(
    autojump_clock: MockClock,
) -> None:
    async with open_calls() as world:
        call = world.begin(Peer(), patience=2, ttl=5, hard_timeout=10)
        await world.calls.wait(call, 2)
        await call.slot.wait()
        assert trio.current_time() == 7
        assert world.told.types == ["task_created", "task_expired"]


async def test_a_task_can_be_cancelled_once(autojump_clock: MockClock) -> None:
    async with open_calls() as world:
        peer = Peer()
        call = await world.promoted(peer)
        won, task = world.calls.cancel(call.id)
        assert (won, task.status) == (True, TaskState.CANCELLED)
        again, task = world.calls.cancel(call.id)
        assert (again, task.status) == (False, TaskState.CANCELLED)
        await wait_all_tasks_blocked()
        assert peer.cancelled
        assert world.told.said[1:] == [("files", TaskCancelled(call.id, "dig"))]
        with pytest.raises(ExecutionFailed) as caught:
            call.slot.peek()
        assert caught.value.details == {"status": "cancelled"}


async def test_a_finished_task_cannot_be_cancelled(autojump_clock: MockClock) -> None:
    async with open_calls() as world:
        peer = Peer()
        call = await world.promoted(peer)
        peer.answer.set(RESULT)
        await call.slot.wait()
        won, task = world.calls.cancel(call.id)
        assert (won, task.status) == (False, TaskState.COMPLETED)
        assert call.slot.peek() is RESULT
        assert world.told.types == ["task_created", "task_completed"]


async def test_a_call_whose_request_is_cancelled_is_cancelled(autojump_clock: MockClock) -> None:
    async with open_calls() as world:
        peer = Peer()
        call = world.begin(peer)
        with trio.move_on_after(1):
            await world.calls.wait(call, 5)
        await wait_all_tasks_blocked()
        assert peer.cancelled
        assert call.state is CallState.CANCELLED
        assert world.calls._calls == {}
        assert world.told.said == []


async def test_a_call_whose_client_only_gave_up_waiting_goes_on(autojump_clock: MockClock) -> None:
    async with open_calls() as world:
        peer = Peer()
        call = world.begin(peer)
        async with trio.open_nursery() as request:
            request.start_soon(world.calls.wait, call, 5)
            await trio.sleep(1)
            world.calls.promote(call)  # what the front does, in this order
            request.cancel_scope.cancel("timed out")
        assert not peer.cancelled
        peer.answer.set(RESULT)
        assert await call.slot.wait_result() is RESULT
        assert world.told.types == ["task_created", "task_completed"]


async def test_a_call_that_was_not_sent_yet_can_become_a_task(autojump_clock: MockClock) -> None:
    async with open_calls() as world:
        connected = trio.Event()

        async def send(call: Call) -> dict[str, Any]:
            await connected.wait()
            call.waiting_on = "answer"
            return RESULT

        call = world.calls.begin("files", "dig", {}, send, patience=1, ttl=9)
        await world.calls.wait(call, 1)
        assert not call.is_sent
        assert world.calls.under_way("files") == [call]
        assert world.calls.under_way("web") == []
        connected.set()
        await call.slot.wait()
        assert call.is_sent
        assert world.calls.under_way("files") == []


async def test_only_tasks_are_found_by_id(autojump_clock: MockClock) -> None:
    async with open_calls() as world:
        call = world.begin(Peer())
        for unknown in (call.id, "nonsense", ""):
            with pytest.raises(NotFound, match="list_tasks shows what there is"):
                world.calls.get(unknown)
            with pytest.raises(NotFound):
                world.calls.cancel(unknown)
        world.calls.promote(call)
        assert world.calls.get(call.id) is call
