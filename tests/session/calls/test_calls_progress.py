from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import trio
from trio.testing import MockClock

from emceepee_trio.model.wire import timestamp
from emceepee_trio.session.calls.call import Task
from parts import Peer, open_calls, wall


async def test_progress_is_heard_by_who_waits_and_becomes_the_status_message(
    autojump_clock: MockClock,
) -> None:
    async with open_calls() as world:
        heard: list[Mapping[str, Any]] = []
        peer = Peer()
        call = world.begin(peer, patience=1)
        call.listeners.append(heard.append)
        world.calls.progressed(call, {"progress": 1})
        task = await world.calls.wait(call, 1)
        assert isinstance(task, Task)
        assert task.status_message is None
        await trio.sleep(1)
        reports: list[tuple[Mapping[str, Any], str]] = [
            ({"progress": 2, "total": 4}, "2 of 4"),
            ({"progress": 3}, "3"),
            ({"progress": 4, "message": "almost"}, "almost"),
        ]
        for said, shown in reports:
            world.calls.progressed(call, said)
            assert task.status_message == shown
        assert task.last_updated_at == timestamp(wall())
        assert [said["progress"] for said in heard] == [1, 2, 3, 4]


async def test_a_status_message_is_cut_where_it_becomes_too_long(
    autojump_clock: MockClock,
) -> None:
    async with open_calls() as world:
        call = await world.promoted(Peer())
        assert call.task is not None
        for said in ({"message": "x" * 10**6}, {"progress": "x" * 10**6, "total": "y" * 10**6}):
            world.calls.progressed(call, said)
            assert call.task.status_message == "x" * 500 + "…"
        world.calls.progressed(call, {"message": "x" * 500})
        assert call.task.status_message == "x" * 500


async def test_late_progress_changes_nothing_about_a_finished_task(
    autojump_clock: MockClock,
) -> None:
    async with open_calls() as world:
        call = await world.promoted(Peer())
        _, task = world.calls.cancel(call.id)
        updated = task.last_updated_at
        await trio.sleep(1)
        world.calls.progressed(call, {"progress": 1, "message": "still at it"})
        assert (task.status_message, task.last_updated_at) == (None, updated)
