"""In which words it is said what has become of a call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...config.bounds import MAX_STATUS_MESSAGE
from ...errors import ExecutionFailed, ServerDisconnected, SessionGone, TimedOut, ToolError
from ...model import events
from ...model.events import Happening
from ...model.states import TaskState
from ...model.text.brief import brief
from .call import Call, Task


def overdue(call: Call) -> ToolError:
    """It has met its hard end."""
    if call.overdue is not None:
        return call.overdue()
    limit = round((call.hard_end - call.started) * 1000)
    return TimedOut(
        f"{call.server}/{call.tool} did not answer within call_timeout_ms ({limit}); "
        "the backend was told to stop, it may have done part of the work"
    )


def expired(call: Call) -> ToolError:
    """Its task has met the end of its TTL."""
    return ExecutionFailed(
        f"task {call.id} expired after {round(call.ttl * 1000)} ms; "
        f"{_unanswered(call) or 'call again with a larger ttl_ms'}",
        {"status": "expired"},
    )


def _plain(said: object) -> str:
    return said if isinstance(said, str) else brief(said)


def status_message(said: Mapping[str, Any]) -> str:
    message = said.get("message")
    total = f" of {_plain(said['total'])}" if "total" in said else ""
    text = message if isinstance(message, str) else ""
    text = text or f"{_plain(said.get('progress'))}{total}"
    return text if len(text) <= MAX_STATUS_MESSAGE else text[:MAX_STATUS_MESSAGE] + "…"


def ended(call: Call, task: Task) -> Happening:
    error = call.slot.error
    match task.status:
        case TaskState.COMPLETED:
            return events.TaskCompleted(call.id, call.tool)
        case TaskState.CANCELLED:
            reason = "session_ended" if isinstance(error, SessionGone) else None
            return events.TaskCancelled(call.id, call.tool, reason)
        case TaskState.EXPIRED:
            return events.TaskExpired(call.id, call.tool, task.ttl_ms)
        case _:
            reason = "server_disconnected" if isinstance(error, ServerDisconnected) else None
            return events.TaskFailed(call.id, call.tool, task.error or "", reason)


def _unanswered(call: Call) -> str:
    """Why it came to nothing, if it was for a question."""
    if (open_ := call.open_questions) and call.lapsed is None:
        return f"its question {open_[0].id} was not answered until then"
    return f"its {call.lapsed}" if call.lapsed is not None else ""


def explained(call: Call, error: ToolError) -> ToolError:
    """What its server answered, which knows no reason for having got no answer itself."""
    if call.lapsed is None or not isinstance(error, ExecutionFailed):
        return error
    return ExecutionFailed(
        f"{_unanswered(call)}; then {error.message}. Call again, and answer with "
        "respond_to_elicitation or respond_to_sampling in time",
        error.details,
    )


def gone() -> SessionGone:
    return SessionGone("the session ended under this call; open a new one and call again")
