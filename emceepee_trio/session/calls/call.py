"""One tool call, and the task that it becomes if it takes too long.

What is known of it, as others see it. `calls.py` begins it and decides its fate.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import attrs
import trio

from ...errors import ToolError
from ...model.states import CallState, TaskState
from ...waits.bell import Bell
from ...waits.slot import Slot
from ..questions.question import Question

Result = dict[str, Any]
Progress = Callable[[Mapping[str, Any]], None]


@attrs.define(eq=False)
class Task:
    """What clients see of a promoted call."""

    task_id: str
    status: TaskState
    created_at: str
    last_updated_at: str
    server: str
    tool: str
    args: Mapping[str, Any]
    ttl_ms: int
    args_bytes: int = 0
    """About as many as there are."""
    status_message: str | None = None
    error: str | None = None


@attrs.frozen
class Lapsed:
    """A question that ran out."""

    request_id: str
    server: str
    after_ms: int

    def __str__(self) -> str:
        return (
            f"question {self.request_id} of server {self.server} was not answered within "
            f"{self.after_ms} ms (limits.question_timeout_ms)"
        )


@attrs.define(eq=False)
class Call:
    """One call of a backend's tool. Its id is its task's, should it become one."""

    id: str
    server: str
    tool: str
    args: Mapping[str, Any]
    ttl: float
    started_at: str
    started: float
    hard_end: float
    """``call_timeout_ms``, on trio's clock: promoted or not."""
    scope: trio.CancelScope
    """In which it runs."""
    args_bytes: int = 0
    waiting_on: str = "connection"
    sent_at: float | None = None
    """On trio's clock, the last time."""
    state: CallState = CallState.IN_FLIGHT
    task: Task | None = None
    expires: float = math.inf
    """When its TTL ends or, once it is finished, when it is forgotten."""
    size: int = 0
    within: Call | None = None
    """That of the script which makes this one."""
    overdue: Callable[[], ToolError] | None = None
    """What it fails with at its hard end, if that is not ``call_timeout_ms``."""
    said: str | None = None
    """How far it is, if it has said so before it has become a task."""
    makes: list[Call] = attrs.field(factory=list, init=False)
    """Those of a script that run."""
    slot: Slot[Result] = attrs.field(factory=Slot, init=False)
    listeners: list[Progress] = attrs.field(factory=list, init=False)
    """Requests that wait for this call and want to hear of its progress."""
    questions: list[Question] = attrs.field(factory=list, init=False)
    """Those that it may be waiting for."""
    refusal: Exception | None = attrs.field(default=None, init=False)
    """The error that its server answered, as that came, where it is shown so."""
    lapsed: Lapsed | None = attrs.field(default=None, init=False)
    """The last of them that nobody has answered in time."""
    news: Bell = attrs.field(factory=Bell, init=False)
    """Rings when its slot is set, when a question of it is told or over, and when its task says how
    far it is."""

    @property
    def open_questions(self) -> list[Question]:
        """Those that somebody has to answer before it can go on."""
        return [question for question in self.questions if question.is_open]

    @property
    def needs_answers(self) -> bool:
        """Whether some of those are for the tools alone."""
        return any(not question.is_relayed for question in self.open_questions)

    def tell(self) -> None:
        """Wake who waits for it."""
        self.news.ring()

    @property
    def is_sent(self) -> bool:
        return self.waiting_on == "answer"

    def to_json(self) -> dict[str, Any]:
        return {
            "tool": self.tool,
            "started_at": self.started_at,
            "waiting_on": self.waiting_on,
        }


Send = Callable[[Call], Awaitable[Result]]
