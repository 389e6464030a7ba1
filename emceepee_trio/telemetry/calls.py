"""Spans of calls and questions, as facts tell of them: what they are of, and what outlives that.

A call may outlive the request that began it. Then what is open of it ends with that request, and
begins again in the trace of the task that it is from then on.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

import attrs
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import Link, SpanContext, SpanKind, Tracer

from ..model import facts
from ..model.facts import Fact
from ..model.states import TaskState
from . import under_way
from .conventions import ERROR, QUESTION, SERVER, TASK, TOOL, Attributes
from .labels import shown
from .under_way import Message, Work


@attrs.define(eq=False)
class CallSpans:
    """Of one daemon."""

    _tracer: Tracer
    _works: dict[str, Work] = attrs.field(factory=dict, init=False)
    """Calls without an outcome, by their ids."""
    questions: dict[str, Message] = attrs.field(factory=dict, init=False)
    """Those that are open, likewise."""
    _tasks: OrderedDict[str, SpanContext] = attrs.field(factory=OrderedDict, init=False)
    """Those of tasks, by the ids of their calls."""

    def find(self, call: str | None) -> Work | None:
        """That call, if it has no outcome yet."""
        return None if call is None else self._works.get(call)

    def only_one(self, session: str | None, server: str | None) -> str | None:
        """The call of which a question is that does not say so, if there is no other."""
        found = [
            call
            for call, work in self._works.items()
            if (work.begun.session, work.begun.server) == (session, server) and work.open
        ]
        return found[0] if len(found) == 1 else None

    def _call_begun(self, fact: facts.CallBegun) -> None:
        request = under_way.request.get()
        within = None if fact.within is None else self._works.get(fact.within)
        work = self._works[fact.call] = Work(fact, request, within)
        if request is not None and not request.is_over:
            request.begun.append(work)

    def _call_promoted(self, fact: facts.CallPromoted) -> None:
        if (work := self._works.get(fact.call)) is not None:
            self.outlives(work)

    def outlives(self, work: Work) -> None:
        """From here on it is nothing of its request: that ends."""
        call = work.begun.call
        if work.task is not None or call not in self._works or work.within is not None:
            return
        before, _ = under_way.parent(work)
        open_ = [each for one in self._with_its_own(work) for each in one.open]
        spans = [*(each.span for each in open_), trace.get_current_span(before)]
        links = under_way.valid([Link(span.get_span_context()) for span in spans])
        unanswered = [
            (each, [put for put in each.put if not put.is_over])
            for each in open_
            if each.is_question and not each.is_over
        ]
        for each in reversed(open_):  # what was asked within another one ends before that
            if not each.is_over:
                each.span.set_attribute(TASK, call)
            each.end({})
        server, tool = shown(work.begun.server), shown(work.begun.tool)
        said = {TASK: call, SERVER: server, TOOL: tool}
        work.task = self._tracer.start_span(
            f"task {tool}", Context(), SpanKind.INTERNAL, said, links
        )
        work.context = trace.set_span_in_context(work.task, Context())
        for question, asked in unanswered:
            self._begins_again(question, SpanKind.SERVER, work.context)
            for put in asked:
                self._begins_again(put, SpanKind.CLIENT, question.context)
        under_way.remember(self._tasks, call, work.task.get_span_context())

    def _begins_again(self, message: Message, kind: SpanKind, within: Context) -> None:
        links = under_way.valid([Link(message.span.get_span_context())])
        span = under_way.start(self._tracer, message.asked, kind, within, links)
        message.begins_again(span, within)

    def _with_its_own(self, work: Work) -> list[Work]:
        """And the calls of a script, if it is one."""
        return [each for each in self._works.values() if work in (each, each.within)]

    def _call_settled(self, fact: facts.CallSettled) -> None:
        work = self._works.pop(fact.call, None)
        if work is None:
            return
        said: Attributes = {}
        if fact.fate is TaskState.FAILED:
            said = {ERROR: str(fact.code)}
        elif fact.fate is not TaskState.COMPLETED:
            said = {ERROR: fact.fate.value}
        elif fact.is_error:
            said = {ERROR: "tool_error"}
        # Nobody waits for what is about to be cancelled.
        for each in reversed(work.open):
            each.end(said)
        if work.task is not None:
            under_way.close(work.task, said)

    def _result_read(self, fact: facts.ResultRead) -> None:
        """Whoever fetches what a task has come to has something of its trace."""
        request, task = under_way.request.get(), self._tasks.get(fact.call)
        if request is not None and task is not None and task.is_valid:
            request.span.add_link(task)

    # Questions, which are known by an id from here on.

    def _question_opened(self, fact: facts.QuestionOpened) -> None:
        if (question := under_way.question.get()) is not None and not question.is_over:
            self.questions[fact.question] = question
            question.span.set_attribute(QUESTION, fact.question)

    def _call_asked(self, fact: facts.CallAsked) -> None:
        """It waits, or may wait, for somebody to answer a question."""
        work, question = self._works.get(fact.call), self.questions.get(fact.question)
        for sent in () if work is None else work.open:
            if sent.is_question or sent.is_over:
                continue
            sent.span.add_event("emceepee.question", {QUESTION: fact.question})
            if question is not None and question.asked_in is None:
                question.span.add_link(sent.span.get_span_context())

    def _question_relayed(self, fact: facts.QuestionRelayed | facts.QuestionLeft) -> None:
        if (question := self.questions.get(fact.question)) is not None and not question.is_over:
            is_put = isinstance(fact, facts.QuestionRelayed)
            question.span.add_event(f"emceepee.question.{'relayed' if is_put else 'left'}")

    def _question_closed(self, fact: facts.QuestionClosed) -> None:
        question = self.questions.pop(fact.question, None)
        for put in () if question is None else question.put:
            put.end({ERROR: "cancelled"})  # somebody else has answered it, or nobody


READ: Mapping[type[Fact], Any] = {
    facts.CallBegun: CallSpans._call_begun,
    facts.CallPromoted: CallSpans._call_promoted,
    facts.CallSettled: CallSpans._call_settled,
    facts.ResultRead: CallSpans._result_read,
    facts.QuestionOpened: CallSpans._question_opened,
    facts.CallAsked: CallSpans._call_asked,
    facts.QuestionRelayed: CallSpans._question_relayed,
    facts.QuestionLeft: CallSpans._question_relayed,
    facts.QuestionClosed: CallSpans._question_closed,
}
"""What is done at each kind of fact."""
