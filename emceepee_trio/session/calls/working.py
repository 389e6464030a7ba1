"""Calls that have become tasks and are not over: how many there may be, what is told of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import attrs
import trio

from ... import logs
from ...config import Limits
from ...errors import LimitReached, ToolError
from ...journal import Journal
from ...model import events, facts
from ...model.events import Happening
from ...model.states import TASK, TaskState, step
from ...model.wire import timestamp
from .call import Call, Task
from .outcomes import ended


@attrs.define(eq=False)
class Working:
    """Those of one session."""

    limits: Limits
    session_id: str
    journal: Journal
    publish: Callable[[str, Happening], object]
    wall: Callable[[], float]
    _tasks: dict[str, Task] = attrs.field(factory=dict, init=False)

    def __iter__(self) -> Iterator[str]:
        """Their ids."""
        return iter(self._tasks)

    def __len__(self) -> int:
        return len(self._tasks)

    @property
    def has_room(self) -> bool:
        return len(self._tasks) < self.limits.tasks

    def check_room(self) -> None:
        """Raises `LimitReached` if there is none for another one."""
        if not self.has_room:
            raise LimitReached(
                f"{self.limits.tasks} tasks are working in this session (limits.tasks); "
                "fetch, cancel or wait for some of them first"
            )

    def of(self, server: str | None) -> list[Task]:
        """Oldest first, by their calls."""
        working = (task for _, task in sorted(self._tasks.items()))
        return [task for task in working if server in (None, task.server)]

    def begin(self, call: Call) -> Task:
        """The call is one from now on."""
        created = timestamp(self.wall())
        task = call.task = self._tasks[call.id] = Task(
            call.id,
            TaskState.WORKING,
            created,
            created,
            call.server,
            call.tool,
            call.args,
            round(call.ttl * 1000),
            call.args_bytes,
            call.said,
        )
        self.publish(call.server, events.TaskCreated(call.id, call.tool, task.ttl_ms))
        self.journal.note(
            facts.CallPromoted, self.session_id, call.id, call.server, call.tool, task.ttl_ms
        )
        return task

    def end(self, call: Call, task: Task, fate: TaskState, outcome: object) -> None:
        """It has met its fate."""
        task.status = step(TASK, task.status, fate)
        del self._tasks[call.id]
        task.last_updated_at = timestamp(self.wall())
        call.expires = trio.current_time() + self.limits.finished_task_ms / 1000
        if isinstance(outcome, ToolError):
            task.error = outcome.message
        self.publish(call.server, ended(call, task))
        level: logs.Level = "warn" if fate is TaskState.FAILED else "info"
        # No fact: what failed may say what it was called with.
        logs.write(
            level,
            f"task_{fate.value}",
            session=self.session_id,
            server=call.server,
            tool=call.tool,
            task_id=call.id,
            error=task.error,
        )
