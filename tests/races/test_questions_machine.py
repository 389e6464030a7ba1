"""The questions of a session against a table: one fate each, one answer for each backend."""

from __future__ import annotations

from typing import Any

import attrs
import pytest
import trio
from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule
from mcp import MCPError

from emceepee_trio.config import Limits
from emceepee_trio.errors import NotFound
from emceepee_trio.journal import Journal
from emceepee_trio.model.facts import QuestionClosed
from emceepee_trio.model.states import QuestionState
from emceepee_trio.session.questions.question import Kind, Question
from emceepee_trio.session.questions.questions import Questions
from parts import Told, new_ids, wall
from replay import Replay
from trio_machine import TrioMachine

OPEN_AT_ONCE, PATIENCE = 3, 10

REASONS = {
    "withdrawn_by_server": "cancelled",
    "call_ended": "cancelled",
    "server_disconnected": "rejected",
    "server_removed": "rejected",
    "server_reconnected": "rejected",
}
ANSWERS: dict[Kind, list[QuestionState]] = {
    "elicitation": [QuestionState.ACCEPTED, QuestionState.DECLINED, QuestionState.CANCELLED],
    "sampling": [QuestionState.COMPLETED],
}


@attrs.define(eq=False)
class Asker:
    """A backend that asks."""

    kind: Kind
    server: str
    expires: float
    question: Question | None = None
    fate: str = "pending"
    abandoned: str = ""
    said: list[str] = attrs.field(factory=list)
    """The events there should be of it."""
    scope: trio.CancelScope = attrs.field(factory=trio.CancelScope)
    got: list[Any] = attrs.field(factory=list)
    expected: Any = None
    """The answer, or the code of the error."""

    async def ask(self, questions: Questions) -> None:
        params = {"message": "?"}
        with self.scope:
            try:
                answer = await questions.ask(self.server, self.kind, params, lambda: self.abandoned)
            except MCPError as error:
                self.got.append(error.error.code)
            else:
                self.got.append(answer)


class Inquiries(TrioMachine):
    def __init__(self) -> None:
        self.now = 0.0
        self.askers: list[Asker] = []
        self.told = Told()
        limits = attrs.evolve(Limits(), questions=OPEN_AT_ONCE, question_timeout_ms=PATIENCE * 1000)
        journal, self.replay = Journal(lambda: self.now), Replay()
        self.replay.reads(journal)
        self.questions = Questions(limits, self.told, new_ids(), wall, "s", journal=journal)
        super().__init__()

    @property
    def pending(self) -> list[Asker]:
        return [asker for asker in self.askers if asker.fate == "pending"]

    @property
    def asked(self) -> list[Asker]:
        return [asker for asker in self.askers if asker.question is not None]

    def end(self, asker: Asker, fate: str, expected: Any, event: str | None = None) -> None:
        asker.fate, asker.expected = fate, expected
        if event is not None:
            asker.said.append(f"{asker.kind}_{event}")

    @rule(kind=st.sampled_from(["elicitation", "sampling"]), server=st.sampled_from("ab"))
    def a_backend_asks(self, kind: Kind, server: str) -> None:
        asker = Asker(kind, server, self.now + PATIENCE)
        full = len(self.pending) >= OPEN_AT_ONCE
        self.do_sync(lambda: self.nursery.start_soon(asker.ask, self.questions))
        self.askers.append(asker)
        if full:
            self.end(asker, "refused", -32603)
        else:
            asker.question = self.questions.open(kind)[-1]
            asker.said = [f"{kind}_request"]

    @precondition(lambda self: self.asked)
    @rule(data=st.data())
    def the_client_answers(self, data: st.DataObject) -> None:
        asker = data.draw(st.sampled_from(self.asked))
        state = data.draw(st.sampled_from(ANSWERS[asker.kind]))
        answer = {"action": state.value}
        question = asker.question
        assert question is not None
        if asker.fate == "pending":
            self.do_sync(lambda: self.questions.answer(question, state, answer))
            self.end(asker, state.value, answer)
        else:
            with pytest.raises(NotFound, match=asker.fate):
                self.do_sync(lambda: self.questions.answer(question, state, answer))

    @precondition(lambda self: self.asked)
    @rule(data=st.data())
    def the_client_cancels(self, data: st.DataObject) -> None:
        asker = data.draw(st.sampled_from(self.asked))
        question = asker.question
        assert question is not None
        if asker.fate == "pending":
            self.do_sync(lambda: self.questions.cancel(question, "why"))
            refusal: Any = {"action": "cancel"} if asker.kind == "elicitation" else -32600
            self.end(asker, "cancelled", refusal, "cancelled")
        else:
            with pytest.raises(NotFound, match=asker.fate):
                self.do_sync(lambda: self.questions.cancel(question, "why"))

    @precondition(lambda self: self.pending)
    @rule(data=st.data(), reason=st.sampled_from(sorted(REASONS)))
    def nobody_wants_it_any_more(self, data: st.DataObject, reason: str) -> None:
        asker = data.draw(st.sampled_from(self.pending))
        asker.abandoned = reason
        self.do_sync(asker.scope.cancel)
        fate = REASONS[reason]
        self.end(asker, fate, None, "cancelled" if fate == "cancelled" else "expired")

    @precondition(lambda self: self.pending)
    @rule(data=st.data(), answered_first=st.booleans())
    def it_is_withdrawn_while_it_is_answered(
        self, data: st.DataObject, answered_first: bool
    ) -> None:
        """In one tick: the answer counts, since it is what the client was told."""
        asker = data.draw(st.sampled_from(self.pending))
        question = asker.question
        assert question is not None
        state = ANSWERS[asker.kind][0]

        def act() -> None:
            if not answered_first:
                asker.scope.cancel()
            self.questions.answer(question, state, {"action": state.value})
            if answered_first:
                asker.scope.cancel()

        self.do_sync(act)
        self.end(asker, state.value, {"action": state.value} if asker.got else None)

    @rule(seconds=st.integers(1, 6))
    def time_passes(self, seconds: int) -> None:
        for _ in range(seconds):
            self.pass_time(1)
            self.now += 1
            for asker in self.pending:
                if asker.expires <= self.now:
                    self.end(asker, "expired", -32001, "expired")

    @invariant()
    def open_is_what_is_pending(self) -> None:
        for kind in ANSWERS:
            of_kind = [asker.question for asker in self.pending if asker.kind == kind]
            assert self.questions.open(kind) == of_kind
        assert len(self.nursery.child_tasks if self.askers else ()) == len(self.pending)

    @invariant()
    def every_question_has_the_fate_it_got_first(self) -> None:
        for asker in self.asked:
            assert asker.question is not None
            assert asker.question.state.value == asker.fate

    @invariant()
    def what_was_noted_says_the_same(self) -> None:
        self.replay.check()
        assert list(self.replay.questions) == [
            ("s", asker.question.id)
            for asker in self.asked
            if asker.fate == "pending" and asker.question is not None
        ]
        closed = [f for f in self.replay.noted if isinstance(f, QuestionClosed)]
        assert {fact.question: fact.state.value for fact in closed} == {
            asker.question.id: asker.fate
            for asker in self.asked
            if asker.fate != "pending" and asker.question is not None
        }

    @invariant()
    def every_backend_got_its_one_answer(self) -> None:
        for asker in self.askers:
            assert asker.got == ([] if asker.expected is None else [asker.expected])

    @invariant()
    def every_event_was_told_once(self) -> None:
        told: dict[str, list[str]] = {}
        for (_, happening), event in zip(self.told.said, self.told.types, strict=True):
            told.setdefault(getattr(happening, "request_id", ""), []).append(event)
        for asker in self.asked:
            assert asker.question is not None
            assert told.pop(asker.question.id) == asker.said
        assert told == {}


TestInquiries = Inquiries.TestCase
