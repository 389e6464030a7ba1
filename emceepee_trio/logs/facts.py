"""Lines of the log that are facts, and nothing but that: which, and how each is written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..model import facts
from ..model.facts import Closing, Fact
from ..model.states import TaskState
from . import Level, write, writes

Line = tuple[Level, str, Mapping[str, Any]]
"""Level, event and fields, beside the session."""


def tell(fact: Fact) -> None:
    """Write its line, if it has one."""
    line = LINES[type(fact)](fact)
    if line is not None:
        level, event, fields = line
        write(level, event, session=fact.session, **fields)


def _session_opened(fact: facts.SessionOpened) -> Line:
    return "info", "session_created", {}


def _session_ended(fact: facts.SessionEnded) -> Line:
    return "info", "session_destroyed", {"reason": fact.reason}


def _call_begun(fact: facts.CallBegun) -> Line | None:
    if not writes("debug"):
        return None
    return "debug", "tool_execution_start", {**_tool(fact), "has_args": fact.has_args}


def _call_promoted(fact: facts.CallPromoted) -> Line:
    return "info", "tool_execution_timeout", {**_tool(fact), "task_id": fact.call}


def _call_settled(fact: facts.CallSettled) -> Line | None:
    if fact.fate is TaskState.COMPLETED:
        if not writes("debug"):
            return None
        took = {"duration_ms": fact.duration_ms}
        return "debug", "tool_execution_complete", {**_tool(fact), **took}
    if fact.fate is TaskState.FAILED:
        return "warn", "tool_execution_failed", {**_tool(fact), "code": fact.code}
    return None


def _tool(fact: facts.CallBegun | facts.CallPromoted | facts.CallSettled) -> dict[str, str]:
    return {"server": fact.server, "tool": fact.tool}


def _question_told(fact: facts.QuestionTold) -> Line:
    return "info", f"{fact.kind}_received", _question(fact)


CLOSED: Mapping[Closing, tuple[Level, str]] = {
    "answered": ("info", "responded"),
    "cancelled": ("info", "cancelled"),
    "late": ("warn", "timeout"),
    "rejected": ("warn", "rejected"),
}
"""Of one that nobody was told of, nobody is told."""


def _question_closed(fact: facts.QuestionClosed) -> Line | None:
    if fact.why not in CLOSED:
        return None
    level, event = CLOSED[fact.why]
    took = {"duration_ms": fact.duration_ms} if fact.why == "answered" else {}
    return level, f"{fact.kind}_{event}", {**_question(fact), **took}


def _question(fact: facts.QuestionTold | facts.QuestionClosed) -> dict[str, str]:
    return {"server": fact.server, "request_id": fact.question}


def _sharing_split(fact: facts.SharingSplit) -> Line:
    said = {"server": fact.server, "reason": fact.why, "sessions": fact.sessions}
    return "warn", "share_conflict", said


def _stream_evicted(fact: facts.StreamEvicted) -> Line | None:
    before = fact.evicted - fact.count
    if before.bit_length() == fact.evicted.bit_length():  # as it doubles, not once for each
        return None
    return "warn", "stream_eviction", {"evicted": fact.evicted}


LINES: Mapping[type[Fact], Callable[[Any], Line | None]] = {
    facts.SessionOpened: _session_opened,
    facts.SessionEnded: _session_ended,
    facts.CallBegun: _call_begun,
    facts.CallPromoted: _call_promoted,
    facts.CallSettled: _call_settled,
    facts.QuestionTold: _question_told,
    facts.QuestionClosed: _question_closed,
    facts.SharingSplit: _sharing_split,
    facts.StreamEvicted: _stream_evicted,
}
