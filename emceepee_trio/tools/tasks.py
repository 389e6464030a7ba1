"""Tasks: calls that took longer than their request waited."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import attrs
import trio

from ..config.bounds import (
    MAX_ARGS_BEGINNING,
    MAX_ARGS_SHOWN,
    MAX_EXECUTE_TIMEOUT_MS,
    MAX_PENDING_BYTES,
    MAX_WAITERS,
)
from ..config.server import A_NAME
from ..errors import TimedOut
from ..model.json.fields import Bounds, frozen
from ..model.json.weight import beginning
from ..model.states import TaskState
from ..model.wire import to_snake
from ..session.calls.call import Call, Task
from ..session.session import Session
from .common.asking import asks, is_asked
from .common.deliveries import Room
from .common.listing import Group, by_age
from .common.registry import ENDS, READS, Request, tool
from .common.response import LONGEST, Reply, json_reply

Status = Literal["working", "completed", "failed", "cancelled", "expired"]


def task_json(task: Task, *, whole: bool = False) -> dict[str, Any]:
    """A task; arguments that are long stand only in what is *whole*."""
    said = to_snake(task)
    if (size := said.pop("args_bytes")) > MAX_ARGS_SHOWN and not whole:
        said["args_bytes"] = size
        said["args_beginning"] = beginning(said.pop("args"), MAX_ARGS_BEGINNING)
    return said


@frozen
class ListTasks:
    server: Annotated[str | None, A_NAME] = None
    status: Status | None = None
    include_completed: bool = False
    cursor: Annotated[str | None, A_NAME] = None


@tool("Tasks that are working, oldest first.", ListTasks, READS)
async def list_tasks(request: Request, asked: ListTasks) -> Reply:
    def wanted(task: Task) -> bool:
        if asked.server not in (None, task.server):
            return False
        if asked.status is not None:
            return task.status.value == asked.status
        return asked.include_completed or task.status is TaskState.WORKING

    tasks = filter(wanted, request.session.calls.tasks())
    groups = [Group(task.task_id, map(task_json, (task,))) for task in tasks]
    reply, _ = await by_age(request, "tasks", groups, asked)
    return reply


@frozen
class OfTask:
    task_id: Annotated[str, A_NAME]


@tool("One task, and the questions its server has open.", OfTask, READS)
async def get_task(request: Request, asked: OfTask) -> Reply:
    session = request.session
    task = _task(session.calls.get(asked.task_id))
    room = Room(MAX_PENDING_BYTES)
    questions = room.briefs(session.questions.open("elicitation", task.server))
    said = {"task": task_json(task, whole=True), "pending_elicitations_for_server": questions}
    full = [question for question, in_full in room.shown if in_full]
    return attrs.evolve(json_reply(said), full=full)


def _task(call: Call) -> Task:
    assert call.task is not None
    return call.task


@frozen
class GetTaskResult:
    task_id: Annotated[str, A_NAME]
    timeout_ms: Annotated[int | None, Bounds(0, MAX_EXECUTE_TIMEOUT_MS)] = None


@tool(
    "The result of a task, waiting for it. May be repeated while it is kept.",
    GetTaskResult,
    READS,
    hint="result of a slow call",
)
async def get_task_result(request: Request, asked: GetTaskResult) -> Reply:
    session = request.session
    call = session.calls.get(asked.task_id)
    wait_ms = request.answer_ms
    if asked.timeout_ms is not None:
        wait_ms = min(wait_ms, asked.timeout_ms)
    if not call.slot.is_settled:
        with session.presence.wait_in(MAX_WAITERS):
            if request.on_progress is not None:
                call.listeners.append(request.on_progress)
            try:
                with request.move_on_after(wait_ms / 1000), request.waiting(call):
                    await _settled(call, session)
            finally:
                if request.on_progress is not None:
                    call.listeners.remove(request.on_progress)
    if not call.slot.is_settled:
        session.check_open()
        details = {"task": task_json(_task(call))}
        if call.needs_answers:
            raise TimedOut(f"task {asked.task_id} waits for you: {asks(call)}", details)
        waited = (
            f"after {wait_ms} ms; it goes on. {is_asked(call)}await_activity tells when it is done"
        )
        if wait_ms != asked.timeout_ms:
            waited += f"; {LONGEST.format(wait_ms)}"
        if session.draining.is_set():
            waited = "and ends with it: the daemon is stopping; call again when it is back"
        backend = session.backends.get(call.server)
        if not call.is_sent and backend is not None and backend.starting is not None:
            waited += f". Server {call.server!r} is {backend.starting}"
            session.planned.discard(call.server)
        raise TimedOut(f"task {asked.task_id} is still working {waited}", details)
    session.calls.finished.read(call)
    return Reply(call.slot.peek(), lapsed=call.lapsed, of=call.server, call=call.id)


async def _settled(call: Call, session: Session) -> None:
    """Wait for it, unless somebody has to answer first, or there is no time for waits any more."""
    async with trio.open_nursery() as nursery:

        async def stop_at_drain() -> None:
            await session.draining.wait()
            nursery.cancel_scope.cancel("the process is about to stop")

        nursery.start_soon(stop_at_drain)
        while not (call.slot.is_settled or call.needs_answers):
            await call.news.wait()
        nursery.cancel_scope.cancel("it is settled, or waits for an answer")


@tool("Stop a task; its server is told.", OfTask, ENDS)
async def cancel_task(request: Request, asked: OfTask) -> Reply:
    won, task = request.session.calls.cancel(asked.task_id)
    message = (
        f"task {task.task_id} is cancelled, server {task.server!r} is told to stop"
        if won
        else f"task {task.task_id} is {task.status.value} already"
    )
    return json_reply({"success": won, "message": message})


TOOLS = (list_tasks, get_task, get_task_result, cancel_task)
