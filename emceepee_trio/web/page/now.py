"""What is under way now: the first screen, and the answer to "why is it stuck".

What is shown is bounded, and it is gathered in steps: so it comes at once from a thousand sessions,
and delays none of them.
"""

from __future__ import annotations

import heapq
from collections import Counter
from typing import Any

import attrs
import trio

from ...backend.backend import Backend
from ...model.json.intake import Steps
from ...model.json.weight import cut
from ...model.states import BackendState
from ...model.text.redact import label
from ...session.calls.call import Call
from ...session.questions.question import Question
from ...session.session import Session
from ...waits.slices import in_slices
from .answering import quick
from .common.pages import Data, Pages
from .common.requests import visit
from .memory import Sizes, Sizing
from .waiting import REASON, wait_of

MAX_SHOWN = 100
"""Of each: questions, calls, servers, children. The oldest calls are shown, and the largest
children."""
MANY = 2000
"""Of which the oldest are looked for, before more are gathered."""
BREATH = 16
"""Sessions that are looked at in one step."""
ASKS = 200
"""Characters of what a question says, where it is named."""


def add_to(pages: Pages) -> None:
    pages.section("/", "Now")
    sizing = Sizing()

    @pages.view("/", "now.html")
    async def now() -> Data:
        sessions = pages.manager.sessions(visit().visitor.whose)
        found = _Found(pages)
        await in_slices(found.gather(sessions))
        sizes = await sizing.of([child.pid for child in found.children])
        return found.to_json(sizes)


@attrs.frozen
class _Child:
    session: Session
    backend: Backend
    pid: int
    started_at: float


@attrs.define(eq=False)
class _Found:
    pages: Pages
    now: float = attrs.field(factory=trio.current_time, init=False)
    sessions: Counter[str] = attrs.field(factory=Counter, init=False)
    questions: list[tuple[Session, Question]] = attrs.field(factory=list, init=False)
    """The oldest, as of calls."""
    questions_in_all: int = attrs.field(default=0, init=False)
    calls: list[tuple[Session, Call]] = attrs.field(factory=list, init=False)
    calls_in_all: int = attrs.field(default=0, init=False)
    servers: dict[str, States] = attrs.field(factory=dict, init=False)
    children: list[_Child] = attrs.field(factory=list, init=False)
    _pids: set[int] = attrs.field(factory=set, init=False)

    def gather(self, sessions: list[Session]) -> Steps[None]:
        for n, session in enumerate(sessions, 1):
            self.sessions["working" if session.has_work else "idle"] += 1
            if session.questions.has_open:
                asked = session.questions
                open_ = [*asked.open("elicitation"), *asked.open("sampling")]
                self.questions_in_all += len(open_)
                self.questions += [(session, question) for question in open_]
                if len(self.questions) > MANY:
                    self.questions = heapq.nsmallest(MAX_SHOWN, self.questions, key=_asked_at)
            if session.calls.has_unsettled:
                unsettled = session.calls.unsettled()
                self.calls_in_all += len(unsettled)
                self.calls += [(session, call) for call in unsettled]
                if len(self.calls) > MANY:
                    self.calls = heapq.nsmallest(MAX_SHOWN, self.calls, key=_started)
            for name, backend in session.backends.items():
                if (states := self.servers.get(name)) is None:
                    states = self.servers[name] = States()
                states.add(backend)
                process = backend.process
                if process is not None and process.pid not in self._pids:
                    self._pids.add(process.pid)  # one that sessions share is one
                    self.children.append(_Child(session, backend, process.pid, process.started_at))
            if n % BREATH == 0:
                yield
        self.questions = heapq.nsmallest(MAX_SHOWN, self.questions, key=_asked_at)
        self.calls = heapq.nsmallest(MAX_SHOWN, self.calls, key=_started)

    def to_json(self, sizes: Sizes) -> dict[str, Any]:
        children = sorted(self.children, key=lambda each: -sizes.resident(each.pid))
        return {
            "sessions": {"working": self.sessions["working"], "idle": self.sessions["idle"]},
            "questions": [self._question(*each) for each in self.questions],
            "questions_in_all": self.questions_in_all,
            "calls": [self._call(*each) for each in self.calls],
            "calls_in_all": self.calls_in_all,
            "servers": [
                {"name": name, **found.to_json()}
                for name, found in list(self.servers.items())[:MAX_SHOWN]
            ],
            "servers_in_all": len(self.servers),
            "children": [self._child(each, sizes) for each in children[:MAX_SHOWN]],
            "children_in_all": len(children),
            "resident_bytes": sizes.total([child.pid for child in children]),
        }

    def named(self, session: Session) -> dict[str, str]:
        """Whose something is."""
        return {
            "session": self.pages.names.of(session.id),
            "label": label(session.id),
            "client": session.client_name,
        }

    def _question(self, session: Session, question: Question) -> dict[str, Any]:
        message = question.params.get("message")
        return {
            **self.named(session),
            "question": question.id,
            "server": question.server,
            "kind": question.kind,
            "mode": question.mode,
            "relayed": question.is_relayed,
            "quick": quick(question),
            "message": cut(message, ASKS) if isinstance(message, str) else "",
            "seconds": round(self.now - question.asked_at, 1),
            "left": round(
                question.asked_at + session.config.limits.question_timeout_ms / 1000 - self.now,
            ),
            "calls": [
                f"{call.server}/{call.tool}"
                for call in session.calls.under_way()
                if question in call.open_questions
            ][:3],
        }

    def _call(self, session: Session, call: Call) -> dict[str, Any]:
        task = call.task
        said = task.status_message if task is not None else call.said
        return {
            **self.named(session),
            "call": call.id,
            "server": call.server,
            "tool": call.tool,
            "is_task": task is not None,
            "seconds": round(self.now - call.started, 1),
            "waits": wait_of(session, call).to_json(self.now),
            "progress": said if said and self.pages.manager.config.page.payloads else None,
        }

    def _child(self, child: _Child, sizes: Sizes) -> dict[str, Any]:
        return {
            **self.named(child.session),
            "server": child.backend.server.name,
            "pid": child.pid,
            **sizes.to_json(child.pid),
            "shared_with": list(child.backend.shared_with or ()),
            "seconds": round(child.session.wall() - child.started_at),
        }


def _asked_at(each: tuple[Session, Question]) -> float:
    return each[1].asked_at


def _started(each: tuple[Session, Call]) -> float:
    return each[1].started


_WELL = {BackendState.CONNECTED, BackendState.IDLE}


@attrs.define(eq=False)
class States:
    """One name, in all sessions that have a server of it."""

    _counts: dict[BackendState, int] = attrs.field(factory=dict, init=False)
    last_error: str | None = attrs.field(default=None, init=False)

    def add(self, backend: Backend) -> None:
        state = backend.state
        self._counts[state] = self._counts.get(state, 0) + 1
        if state not in _WELL and backend.last_error is not None:
            self.last_error = backend.last_error

    def to_json(self) -> dict[str, Any]:
        error = self.last_error
        return {
            "states": {state.value: count for state, count in self._counts.items()},
            "last_error": None if error is None else cut(error, REASON),
        }
