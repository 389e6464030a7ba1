"""Questions of backends (elicitation, sampling) that wait for the client.

Each question is parked in the task that asks, which also carries its deadline; there is no
sweeper for open ones. `_close` is the only end: it settles the slot first, so an answer in the
deadline's own tick is either accepted or too late, never both. Whether the client itself is asked
meanwhile, and what it says, is for `relay.py`.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import attrs
import trio
from mcp import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_REQUEST, REQUEST_TIMEOUT

from ...backend.connections.callbacks import asked_as, working_for
from ...config import Limits
from ...config.bounds import MAX_DELIVERY_BYTES
from ...errors import InvalidArguments, NotFound
from ...journal import Journal
from ...model import events, facts
from ...model.events import Happening
from ...model.facts import Closing
from ...model.json.spelling import weighed
from ...model.states import ELICITATION, SAMPLING, QuestionState, step
from ...model.wire import timestamp
from ...waits.slices import in_slices
from .question import Kind, Question, nobody

TABLES = {"elicitation": ELICITATION, "sampling": SAMPLING}
UNHEARD = "the question could not be told to the client; the log of emceepee says why"
"""To a backend, which has asked nobody."""
CLOSED = 200
"""Closed questions remembered, so that a late answer hears what became of its question."""


@attrs.define(eq=False)
class Questions:
    """All questions of one session."""

    limits: Limits
    publish: Callable[[str, Happening], bool]
    """Whether the client will hear of it."""
    new_id: Callable[[], str]
    wall: Callable[[], float]
    session_id: str
    heard: Callable[[Question], AbstractContextManager[object]] = lambda question: nullcontext()
    """Entered when the client hears of one, left when that is closed, or its server gone."""
    journal: Journal = attrs.field(factory=Journal)
    relay: Callable[[Question, Questions], AbstractContextManager[object]] = (
        lambda question, questions: nullcontext()
    )
    """Entered behind that, so that it knows what it may be for."""
    _open: dict[str, Question] = attrs.field(factory=dict, init=False)
    _bytes: int = attrs.field(default=0, init=False)
    """Of those."""
    _closed: OrderedDict[str, QuestionState] = attrs.field(factory=OrderedDict, init=False)
    # Of both, by their ids:
    _told: set[str] = attrs.field(factory=set, init=False)
    """The client has them, or how to ask for them."""
    _in_full: set[str] = attrs.field(factory=set, init=False)
    """It has them as they are."""

    async def ask(
        self, server: str, kind: Kind, params: Mapping[str, Any], abandoned: Callable[[], str]
    ) -> dict[str, Any]:
        """Wait for the client's answer; what is returned or raised goes to the backend.

        Raises:
            MCPError: cancelled by the client, expired, or one question too many.
        """
        size, room = await in_slices(weighed(params)), self.limits.questions_bytes
        # No checkpoint from here until it is open.
        if len(self._open) >= self.limits.questions:
            raise MCPError(
                code=INTERNAL_ERROR,
                message=f"{self.limits.questions} questions are open in this session already",
            )
        if self._bytes + size > room:
            raise MCPError(
                code=INTERNAL_ERROR,
                message=f"the questions that are open in this session would have more than {room} "
                "bytes (limits.questions_bytes)",
            )
        question = Question(
            self.new_id(),
            kind,
            server,
            timestamp(self.wall()),
            params,
            working_for.get(),
            size=size,
            key=asked_as.get(),
        )
        question.asked_at = trio.current_time()
        self._open[question.id] = question
        self._bytes += size
        self.journal.note(
            facts.QuestionOpened, self.session_id, question.id, kind, server, question.call, size
        )
        try:
            with self.heard(question), self.relay(question, self):
                return await self._answered(question)
        finally:
            # Synchronous, because this also runs while being cancelled. No-ops otherwise.
            try:
                if not question.slot.is_settled:
                    self._abandoned(question, abandoned())
            finally:
                # Every response shows the open ones: whatever happens, it is none of them.
                self._unheard(question)

    async def _answered(self, question: Question) -> dict[str, Any]:
        if not self._publish(question):
            self._unheard(question)
            return question.slot.peek()
        told = facts.QuestionTold
        self.journal.note(told, self.session_id, question.id, question.kind, question.server)
        with trio.move_on_after(self.limits.question_timeout_ms / 1000):
            await question.slot.wait()
        # No checkpoint from here to the return: whoever was told that it counts, counts.
        self._expire(question, "timeout")
        return question.slot.peek()

    def _publish(self, question: Question) -> bool:
        is_form = question.kind == "elicitation"
        asked = events.ElicitationRequest if is_form else events.SamplingRequest
        is_large = question.size >= MAX_DELIVERY_BYTES
        told = asked(
            question.id,
            None if is_large else question.params,
            is_large or None,
            question.is_relayed or None,
        )
        return self.publish(question.server, told)

    def relayed(self, question: Question) -> None:
        """The client is asked what it has been told to answer by tool: it is told so."""
        self._untell(question)

    def left(self, question: Question) -> None:
        """Nobody is asked any more: it is to be answered by tool, and told as if it were new."""
        self._untell(question)
        self._publish(question)
        question.tell()

    def _untell(self, question: Question) -> None:
        self._told.discard(question.id)
        self._in_full.discard(question.id)

    def take(self, question: Question, state: QuestionState, result: dict[str, Any]) -> None:
        """The answer of a client that was asked; it may be late."""
        self._close(question, state, result, "answered")

    def refuse(self, question: Question, why: MCPError | InvalidArguments) -> None:
        """The client answers that with an error, or with what is no answer."""
        error = why if isinstance(why, MCPError) else _error(INVALID_REQUEST, why.message)
        self._close(question, QuestionState.REJECTED, error, "answered")

    def _unheard(self, question: Question) -> None:
        outcome = _error(INTERNAL_ERROR, UNHEARD)
        self._close(question, QuestionState.REJECTED, outcome, "unheard")

    def _abandoned(self, question: Question, reason: str) -> None:
        if reason in {"withdrawn_by_server", "call_ended"}:
            outcome = _error(INVALID_REQUEST, reason)
            if self._close(question, QuestionState.CANCELLED, outcome, "cancelled"):
                self._tell_cancelled(question, reason)
        else:
            self._expire(question, reason)

    def _expire(self, question: Question, reason: Any) -> None:
        late = reason == "timeout"
        state = QuestionState.EXPIRED if late else QuestionState.REJECTED
        what = (
            f"nobody answered within {self.limits.question_timeout_ms} ms" if late else str(reason)
        )
        outcome = _error(REQUEST_TIMEOUT if late else INTERNAL_ERROR, what)
        if self._close(question, state, outcome, "late" if late else "rejected"):
            kind = question.kind
            told = events.ElicitationExpired if kind == "elicitation" else events.SamplingExpired
            self.publish(question.server, told(question.id, reason))

    def _tell_cancelled(self, question: Question, reason: str) -> None:
        elicitation = question.kind == "elicitation"
        told = events.ElicitationCancelled if elicitation else events.SamplingCancelled
        self.publish(question.server, told(question.id, reason))

    def _close(
        self,
        question: Question,
        state: QuestionState,
        outcome: dict[str, Any] | MCPError,
        why: Closing,
    ) -> bool:
        settled = (
            question.slot.fail(outcome)
            if isinstance(outcome, MCPError)
            else question.slot.set(outcome)
        )
        if settled:
            del self._open[question.id]
            self._bytes -= question.size
            question.state = step(TABLES[question.kind], question.state, state)
            self._closed[question.id] = state
            if len(self._closed) > CLOSED:
                forgotten, _ = self._closed.popitem(last=False)
                self._told.discard(forgotten)
                self._in_full.discard(forgotten)
            self.journal.note(
                facts.QuestionClosed,
                self.session_id,
                question.id,
                question.kind,
                question.server,
                state,
                why,
                round((trio.current_time() - question.asked_at) * 1000),
            )
            question.withdraw()
            # Else they would hold each other, and the answer, until garbage is looked for.
            question.withdraw = nobody
        return settled

    def tell(self, question: Question, *, in_full: bool) -> Callable[[], None] | None:
        """A response has it, in full or not; call what is returned if that is not written.

        None if that was known, or is of no use any more.
        """
        if question.id not in self._open:
            return None
        marks = (self._told, self._in_full) if in_full else (self._told,)
        new = [each for each in marks if question.id not in each]
        for each in new:
            each.add(question.id)

        def take_back() -> None:
            for each in new:
                each.discard(question.id)

        return take_back if new else None

    def tell_again(self) -> None:
        """The client has lost what it was told of those that are open."""
        self._told.difference_update(self._open)
        self._in_full.difference_update(self._open)

    def is_told(self, question: Question) -> bool:
        return question.id in self._told

    def is_in_full(self, request_id: str) -> bool:
        """Whether the client has it, open or not."""
        return request_id in self._in_full

    def find(self, request_id: str) -> Question | None:
        """An open one."""
        return self._open.get(request_id)

    @property
    def has_open(self) -> bool:
        return bool(self._open)

    def open(self, kind: Kind, server: str | None = None) -> list[Question]:
        """Oldest first."""
        return [
            question
            for question in self._open.values()
            if question.kind == kind and server in (None, question.server)
        ]

    def get(self, kind: Kind, request_id: str) -> Question:
        """An open question.

        Raises:
            NotFound: there is none of that kind and id; says what became of it.
        """
        question = self._open.get(request_id)
        if question is not None and question.kind == kind:
            return question
        if request_id in self._closed and question is None:
            fate = self._closed[request_id].value
            raise NotFound(f"{kind} {request_id!r} is no longer open: {fate}", {"status": fate})
        raise NotFound(
            f"no {kind} {request_id!r} is open; get_{_plural(kind)} lists those that are"
        )

    def answer(
        self,
        question: Question,
        state: QuestionState,
        result: dict[str, Any],
        *,
        by: str | None = None,
    ) -> None:
        """The client's answer goes to the backend; or that of somebody else, which it is told."""
        if not self._close(question, state, result, "answered"):
            self.get(question.kind, question.id)  # raises: somebody was first
        if by is not None:
            is_form = question.kind == "elicitation"
            told = events.ElicitationAnswered if is_form else events.SamplingAnswered
            self.publish(question.server, told(question.id, by))

    def cancel(self, question: Question, reason: str) -> None:
        """The client will not answer: a form ends as cancelled, sampling with an error."""
        outcome: dict[str, Any] | MCPError = {"action": "cancel"}
        if question.kind == "sampling":
            outcome = _error(INVALID_REQUEST, reason)
        if not self._close(question, QuestionState.CANCELLED, outcome, "cancelled"):
            self.get(question.kind, question.id)
        self._tell_cancelled(question, reason)


def _plural(kind: Kind) -> str:
    return "elicitations" if kind == "elicitation" else "sampling_requests"


def _error(code: int, message: str) -> MCPError:
    return MCPError(code=code, message=message)
