"""What a fact says, to people and as JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs

from .. import facts
from ..facts import Fact
from ..wire import snake, timestamp
from .rows import Row, Span

SAYS: Mapping[type[Fact], Callable[[Any], str]] = {
    facts.CallBegun: lambda f: f"asked for, with about {_bytes(f.args_bytes)} of arguments",
    facts.CallQueued: lambda f: "waits for other scripts of its session",
    facts.CallSent: lambda f: "sent to its server",
    facts.CallReturned: lambda f: "its server has not run it: waits for a new connection",
    facts.CallAsked: lambda f: f"may wait for question {f.question}",
    facts.CallPromoted: lambda f: f"became a task, which may work for {duration(f.ttl_ms / 1000)}",
    facts.CallSettled: lambda f: (
        f"{f.fate.value} after {duration(f.duration_ms / 1000)}"
        + (f", with code {f.code}" if f.code is not None else "")
    ),
    facts.ResultKept: lambda f: f"its result is kept, about {_bytes(f.size)} with its arguments",
    facts.ResultTold: lambda f: f"about {_bytes(f.size)} of its result were answered",
    facts.ResultRead: lambda f: "its result was fetched",
    facts.ResultEvicted: lambda f: "its result is not kept any more",
    facts.QuestionOpened: lambda f: f"asked, in about {_bytes(f.size)}",
    facts.QuestionTold: lambda f: "told to the client, as an event",
    facts.QuestionRelayed: lambda f: "put to the client itself",
    facts.QuestionLeft: lambda f: "not put to the client any more; to be answered by tool or here",
    facts.QuestionClosed: lambda f: (
        f"{f.state.value} after {duration(f.duration_ms / 1000)} ({f.why})"
    ),
    facts.ConnectionTrying: lambda f: f"connection {f.connection} is tried",
    facts.ConnectionQueued: lambda f: "waits for its turn: other programs start first",
    facts.ConnectionStarting: lambda f: "its turn to start has come",
    facts.ConnectionUp: lambda f: "connected",
    facts.ConnectionDegraded: lambda f: "does not answer a health check",
    facts.ConnectionRestored: lambda f: "answers health checks again",
    facts.ConnectionLost: lambda f: "disconnected by us" if f.is_ours else "lost",
    facts.ConnectionLeft: lambda f: "goes on without this session, if others have it",
    facts.ConnectionEnded: lambda f: "nothing is left of it",
    facts.ChildStarted: lambda f: f"program {f.pid} started",
    facts.ChildEnded: lambda f: (
        f"program {f.pid} was killed by {f.signal}"
        if f.signal
        else f"program {f.pid} ended with code {f.code}"
    ),
    facts.TimerSet: lambda f: (
        f"set for {'every ' if f.repeats else ''}{duration(f.duration_ms / 1000)}"
    ),
    facts.TimerFired: lambda f: "fired",
    facts.TimerEnded: lambda f: f"over: {f.status}",
}
"""What a row has to tell, in words; each kind of fact that is in a row has some."""


def _bytes(count: int) -> str:
    return f"{count:,} byte{'s' * (count != 1)}"


def duration(seconds: float) -> str:
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms" if seconds >= 0.01 else f"{seconds * 1000:.1f} ms"
    if seconds < 60:
        return f"{seconds:.2f} s" if seconds < 10 else f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


def fact_json(fact: Fact) -> dict[str, Any]:
    """All of it; but the session, which is known to who asks."""
    said: dict[str, Any] = {"fact": snake(type(fact).__name__), "at": timestamp(fact.at)}
    for field in attrs.fields(type(fact)):
        if field.name not in {"at", "session"}:
            value = getattr(fact, field.name)
            said[field.name] = getattr(value, "value", value)
    return said


def row_json(row: Row, now: float) -> dict[str, Any]:
    """What became of it; while it is under way, also what it waits for, and since when."""

    def lasted(it: Row | Span) -> float:
        return milliseconds((now if it.ends is None else it.ends) - it.begins)

    said: dict[str, Any] = {
        "kind": row.kind,
        "id": row.id,
        "server": row.server or None,
        "name": row.name,
        "within": row.within,
        "outcome": row.outcome,
        "began_at": timestamp(row.begins),
        "ended_at": None if row.ends is None else timestamp(row.ends),
        "duration_ms": lasted(row),
        "told_bytes": row.told_bytes if row.kind == "call" else None,
        "spans": [
            {
                "phase": span.phase,
                "after_ms": milliseconds(span.begins - row.begins),
                "duration_ms": milliseconds(
                    (now if span.ends is None else span.ends) - span.begins
                ),
            }
            for span in row.spans
        ],
        "facts": list(map(fact_json, row.facts)),
    }
    if row.phase is not None:
        said["waits_for"] = row.phase
        said["waits_since"] = timestamp(row.spans[-1].begins)
    return {key: value for key, value in said.items() if value is not None}


def milliseconds(seconds: float) -> float:
    return round(seconds * 1000, 3)
