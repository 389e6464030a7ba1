"""Questions of backends (elicitation, sampling) that wait for the client.

Each question is parked in the task that asks, which also carries its deadline; there is no
sweeper for open ones. `_close` is the only end: it settles the slot first, so an answer in the
deadline's own tick is either accepted or too late, never both. Whether the client itself is asked
meanwhile, and what it says, is for `relay.py`.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any, Literal

import attrs
import trio
from mcp import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_REQUEST, REQUEST_TIMEOUT

from .. import logs
from ..backend.connections.callbacks import NO_CALL, asked_as, working_for
from ..config import Limits
from ..config.bounds import MAX_DELIVERY_BYTES
from ..errors import InvalidArguments, NotFound
from ..journal import Journal
from ..model import events, facts
from ..model.events import Happening
from ..model.facts import Closing
from ..model.forms import UnusableForm, filled, has_patterns, mismatches
from ..model.json.intake import Steps, finished
from ..model.json.weight import weigh
from ..model.states import ELICITATION, SAMPLING, QuestionState, step
from ..model.wire import timestamp
from ..waits.matching import in_thread
from ..waits.slices import in_slices
from ..waits.slot import Slot

Kind = Literal["elicitation", "sampling"]
TABLES = {"elicitation": ELICITATION, "sampling": SAMPLING}
UNHEARD = "the question could not be told to the client; the log of emceepee says why"
"""To a backend, which has asked nobody."""
CLOSED = 200
"""Closed questions remembered, so that a late answer hears what became of its question."""


@attrs.define(eq=False)
class Question:
    id: str
    kind: Kind
    server: str
    timestamp: str
    params: Mapping[str, Any]
    call: str | None = NO_CALL
    """The call that it is asked for, by its id; None if its server does not say."""
    state: QuestionState = QuestionState.PENDING
    asked_at: float = 0.0
    """On trio's clock."""
    size: int = 0
    """About as many bytes as its params have."""
    concerns: Sequence[str] = ()
    """Ids of the calls that may wait for it, oldest first."""
    tell: Callable[[], object] = lambda: None
    """Wakes who waits for those."""
    key: str | None = None
    """What its server calls it, if it has a name for it."""
    is_relayed: bool = attrs.field(default=False, init=False)
    """The client itself has been asked, and has not refused."""
    withdraw: Callable[[], object] = attrs.field(default=lambda: None, init=False)
    """Tells who is asked that it is over. Called as it is closed: nobody hears sooner of that."""
    slot: Slot[dict[str, Any]] = attrs.field(factory=Slot, init=False)

    @property
    def is_open(self) -> bool:
        return not self.slot.is_settled

    @property
    def mode(self) -> str:
        mode = self.params.get("mode")
        return mode if isinstance(mode, str) else "form"

    def brief(self) -> dict[str, Any]:
        """As it stands in every response while it is open."""
        short = self.reference()
        if self.kind == "elicitation":
            short |= {"message": self.params.get("message"), "mode": self.mode}
            short |= {k: self.params[k] for k in ("requestedSchema", "url") if k in self.params}
        return short

    def reference(self) -> dict[str, Any]:
        """As it stands where it is told elsewhere."""
        return {"requestId": self.id, "server": self.server, **self.mark}

    @property
    def mark(self) -> dict[str, Any]:
        """Of one that nobody shall answer for the client, who is asked."""
        return {"relayed": True} if self.is_relayed else {}

    def name(self) -> dict[str, Any]:
        """As it stands there if it is too large for that."""
        return self.reference() | {"too_large": True}

    def whole(self) -> dict[str, Any]:
        """As get_elicitations and get_sampling_requests list it."""
        shown = {**self.reference(), "timestamp": self.timestamp}
        if self.kind == "sampling":
            return {**shown, "params": dict(self.params)}
        extras = ("requestedSchema", "url", "elicitationId")
        return {
            **shown,
            "mode": self.mode,
            "message": self.params.get("message"),
            **{key: self.params[key] for key in extras if key in self.params},
        }


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
        if len(self._open) >= self.limits.questions:
            raise MCPError(
                code=INTERNAL_ERROR,
                message=f"{self.limits.questions} questions are open in this session already",
            )
        size, room = weigh(params), self.limits.questions_bytes
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


ANSWERS = {
    "accept": QuestionState.ACCEPTED,
    "decline": QuestionState.DECLINED,
    "cancel": QuestionState.CANCELLED,
}


async def judged(
    question: Question, answer: Mapping[str, Any], *, as_it_is: bool = False
) -> tuple[QuestionState, dict[str, Any]]:
    """What a client's own answer comes to, and what of it goes to the backend.

    A form that goes there *as it is* need not fit; its server will see.

    Raises:
        InvalidArguments: it is none.
    """
    if question.kind == "sampling":
        if not (answer.keys() >= {"role", "content", "model"}):
            raise InvalidArguments("a completion has a role, content and a model")
        return QuestionState.COMPLETED, dict(answer)
    state = ANSWERS.get(str(answer.get("action")))
    if state is None:
        raise InvalidArguments(f"an action is {', '.join(ANSWERS)}")
    given = answer.get("content")
    if state is not QuestionState.ACCEPTED or question.mode == "url" or as_it_is:
        return state, dict(answer)
    if not isinstance(given, Mapping | None):
        raise InvalidArguments("the content of a form is an object")
    return state, {**answer, "content": await fitting(question, given)}


async def fitting(question: Question, content: Mapping[str, Any] | None) -> dict[str, Any]:
    """:func:`checked_content`, in a way that makes nobody wait."""
    check = checked_content(question, content)
    if await in_slices(has_patterns(question.params.get("requestedSchema"))):
        return await in_thread(partial(finished, check))
    return await in_slices(check)


def checked_content(question: Question, content: Mapping[str, Any] | None) -> Steps[dict[str, Any]]:
    """*content* with the schema's defaults filled in.

    Raises:
        InvalidArguments: it does not fit; says every way in which it does not.
    """
    schema = question.params.get("requestedSchema")
    if not isinstance(schema, dict):
        return dict(content or {})
    complete = yield from filled(schema, content or {})
    try:
        wrong = yield from mismatches(schema, complete)
    except UnusableForm as error:
        logs.write("warn", "elicitation_schema_unusable", error=str(error))
        return complete
    if wrong:
        raise InvalidArguments(
            f"content does not fit the requested schema: {'; '.join(wrong)}. "
            f"Elicitation {question.id} is still open",
            {"problems": wrong},
        )
    return complete
