"""What a call waits for, in words: the answer to "why is it stuck"."""

from __future__ import annotations

from typing import Any, Literal

import attrs

from ...backend.backend import Backend
from ...model.json.weight import cut
from ...model.states import BackendState
from ...session.calls.call import Call
from ...session.questions.question import Question
from ...session.session import Session

What = Literal["question", "client", "calls", "queue", "connection", "answer"]

REASON = 300
"""Characters of what a server said, in a line that is to be read at a glance."""


@attrs.frozen
class Wait:
    what: What
    said: str
    since: float
    """On trio's clock."""
    question: str | None = None
    """The id of that for which it waits."""

    def to_json(self, now: float) -> dict[str, Any]:
        found = {"for": self.what, "said": self.said, "seconds": round(now - self.since, 1)}
        return found | ({} if self.question is None else {"question": self.question})


def wait_of(session: Session, call: Call) -> Wait:
    """What *call*, which is not settled, waits for now."""
    if call.open_questions:
        first = call.open_questions[0]
        more = len(call.open_questions) - 1
        others = f", and to {more} more" if more else ""
        if first.is_relayed:
            said = f"its own client, which was asked what {first.server} wants to know{others}"
            return Wait("client", said, first.asked_at, first.id)
        said = f"your answer to what {first.server} asks{others}"
        return Wait("question", said, first.asked_at, first.id)
    if call.makes:
        named = ", ".join(f"{made.server}/{made.tool}" for made in call.makes[:3])
        more = len(call.makes) - 3
        said = f"calls of its script: {named}" + (f" and {more} more" if more > 0 else "")
        return Wait("calls", said, call.sent_at or call.started)
    if call.is_sent:
        backend = session.backends.get(call.server)
        said = f"an answer of {call.server}"
        if open_ := _open_of(session, call.server):
            # It does not say for which call it asks, but until it is answered it may do nothing.
            said += ", which waits for one itself"
            return Wait("question", said, call.sent_at or call.started, open_[0].id)
        if backend is not None and backend.state is BackendState.DEGRADED:
            said += ", which does not answer health checks either"
        return Wait("answer", said, call.sent_at or call.started)
    return _unsent(session, call)


def _open_of(session: Session, server: str) -> list[Question]:
    """Questions that may be of any of its calls."""
    asked = session.questions
    if not asked.has_open:
        return []
    open_ = [*asked.open("elicitation", server), *asked.open("sampling", server)]
    return [question for question in open_ if question.call is None]


def _unsent(session: Session, call: Call) -> Wait:
    backend = session.backends.get(call.server)
    if backend is None:
        if call.server not in session.backends and not session.scripts.available_tokens:
            return Wait("queue", "its turn: other scripts of its session run", call.started)
        return Wait("connection", f"{call.server}, which is not there any more", call.started)
    if backend.waits_for_turn:
        starts = session.shared.starts
        at_once = f"{starts.starting} of at most {starts.most} start now, limits.starting"
        said = f"{call.server}, which waits for its turn to start ({at_once})"
        return Wait("queue", said, call.started)
    return Wait("connection", _connecting(backend), call.started)


def _connecting(backend: Backend) -> str:
    name, state = backend.server.name, backend.state
    failed = f": {cut(backend.last_error, REASON)}" if backend.last_error else ""
    match state:
        case BackendState.CONNECTING:
            return f"{name}, which is {backend.starting or 'being connected'}"
        case BackendState.RECONNECTING | BackendState.NOT_CONNECTED if backend.next_try is not None:
            tries = f"try {backend.retries.attempt + 1} in {backend.next_try_ms / 1000:.0f} s"
            return f"{name} to be connected again, {tries}{failed}"
        case BackendState.CONNECTED | BackendState.DEGRADED:
            return f"{name}, which is connected, to take it"
        case _:
            return f"{name}, which is {state.value.replace('_', ' ')}{failed}"
