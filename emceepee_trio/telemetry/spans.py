"""Traces: a span for each request that we answer, and one for each that we make for it.

A request that a server gets from us says of which span it is (``traceparent`` in its ``_meta``), so
one trace goes from the client through us to the server, and back if that asks something. A call may
outlive the request that began it: as a task, or because its client was lost. Then its spans end
with that request, and what follows is a trace of its own, which is *linked* to both. Nothing in a
trace ends after its root.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Generator, Mapping
from contextlib import contextmanager
from time import monotonic
from typing import Any

import attrs
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.metrics import MeterProvider
from opentelemetry.trace import Link, Span, SpanContext, SpanKind, Tracer, TracerProvider

from ..model import facts
from ..model.facts import Fact
from ..model.states import TaskState
from ..tracing import Answered, TracedRequest
from . import under_way
from .conventions import (
    ERROR,
    LASTING,
    QUESTION,
    SERVER,
    STREAMED,
    TASK,
    TOOL,
    Attributes,
    attributes,
    failure,
    name_of,
    wrong,
)
from .durations import Durations, durations
from .labels import shown
from .under_way import Message, Served, Work

SCOPE = "emceepee_trio"


@attrs.define(eq=False)
class Spans:
    """See :class:`.Tracing`. Of one daemon."""

    _tracer: Tracer
    _served: Durations
    """Of requests of peers."""
    _asked: Durations
    """Of those to peers."""
    _works: dict[str, Work] = attrs.field(factory=dict, init=False)
    """Calls without an outcome, by their ids."""
    _questions: dict[str, Message] = attrs.field(factory=dict, init=False)
    """Those that are open, likewise."""
    _tasks: OrderedDict[str, SpanContext] = attrs.field(factory=OrderedDict, init=False)
    """Those of tasks, by the ids of their calls."""
    _rounds: OrderedDict[str, list[SpanContext]] = attrs.field(factory=OrderedDict, init=False)
    """Of requests that were answered with a question: theirs, and those of tasks that go on; by
    the states with which their clients come again."""

    @classmethod
    def of(cls, tracers: TracerProvider | None, meters: MeterProvider | None) -> Spans:
        """Traces, if there is a provider for them, and measures of time, likewise."""
        tracer = (tracers or trace.NoOpTracerProvider()).get_tracer(SCOPE)
        return cls(tracer, *durations(meters, SCOPE))

    @property
    def kinds(self) -> Collection[type[Fact]]:
        return _READ

    def read(self, fact: Fact) -> None:
        _READ[type(fact)](self, fact)

    # Requests of clients.

    @contextmanager
    def answering(self, asked: TracedRequest) -> Generator[Answered]:
        if asked.method in LASTING:
            yield lambda result: None
            return
        before, earlier = under_way.extracted(asked.params), self._earlier(asked)
        links = under_way.valid([Link(each) for each in earlier])
        span = self._start(asked, SpanKind.SERVER, before, links)
        request = Served(span, trace.set_span_in_context(span, before))
        token, since, said = under_way.request.set(request), monotonic(), Attributes()
        state: object = None

        def answered(result: object) -> None:
            nonlocal state
            said.update(wrong(asked, result))
            state = result.get("requestState") if isinstance(result, Mapping) else None

        try:
            yield answered
        except BaseException as error:
            said |= failure(error)
            raise
        finally:
            under_way.request.reset(token)
            for work in request.begun:
                self._outlives(work)
            request.is_over = True
            under_way.close(span, said)
            self._served.measure(asked, said, since)
            if isinstance(state, str):
                tasks = [work.task.get_span_context() for work in request.begun if work.task]
                said_of = [span.get_span_context(), *earlier[1:], *tasks]
                under_way.remember(self._rounds, state, said_of)

    def _earlier(self, asked: TracedRequest) -> list[SpanContext]:
        """Spans of what it goes on with, if it brings answers to questions."""
        state = asked.params.get("requestState")
        return self._rounds.get(state, []) if isinstance(state, str) else []

    def apart(self) -> None:
        under_way.request.set(None)

    # Requests to servers.

    @contextmanager
    def asking(self, asked: TracedRequest, call: str | None) -> Generator[Message]:
        if asked.method in LASTING:
            yield Message(asked, asked.params, trace.INVALID_SPAN, Context())
            return
        work = self._work(call)
        before, links = under_way.parent(work)
        span = self._start(asked, SpanKind.CLIENT, before, links)
        context = trace.set_span_in_context(span, before)
        params = under_way.injected(asked.params, context)
        sent = Message(asked, params, span, context, judge=lambda result: wrong(asked, result))
        with self._open(sent, work, asked, self._asked):
            yield sent

    # Requests to clients.

    @contextmanager
    def relaying(self, asked: TracedRequest, question: str | None) -> Generator[Message]:
        about = None if question is None else self._questions.get(question)
        within = Context() if about is None or about.is_over else about.context
        span = self._start(asked, SpanKind.CLIENT, within, ())
        if question is not None:
            span.set_attribute(QUESTION, question)
        context = trace.set_span_in_context(span, within)
        put = Message(asked, under_way.injected(asked.params, context), span, context)
        if about is not None:
            about.put.append(put)
        try:
            with self._open(put, None, asked, self._asked):
                yield put
        finally:
            if about is not None:
                about.put.remove(put)

    # Requests of servers.

    @contextmanager
    def asked(
        self, asked: TracedRequest, call: str | None, session: str | None
    ) -> Generator[object]:
        if call is None:
            call = self._only_one(session, asked.server)
        work = self._work(call)
        asked_in = None if work is None else _only_request(work)
        before, links = under_way.extracted(asked.params), list[Link]()
        if not under_way.names_a_span(before):
            before, links = under_way.parent(work)
            before = before if asked_in is None else asked_in.context
        span = self._start(asked, SpanKind.SERVER, before, links)
        context = trace.set_span_in_context(span, before)
        question = Message(asked, asked.params, span, context, asked_in, is_question=True)
        token = under_way.question.set(question)
        try:
            with self._open(question, work, asked, self._served):
                yield question
        finally:
            under_way.question.reset(token)

    def _only_one(self, session: str | None, server: str | None) -> str | None:
        """The call of which a question is that does not say so, if there is no other."""
        found = [
            call
            for call, work in self._works.items()
            if (work.begun.session, work.begun.server) == (session, server) and work.open
        ]
        return found[0] if len(found) == 1 else None

    @contextmanager
    def _open(
        self, message: Message, work: Work | None, asked: TracedRequest, times: Durations
    ) -> Generator[None]:
        """Until it is answered."""
        if work is not None:
            work.open.append(message)
        since, said = monotonic(), Attributes()
        try:
            yield
            said = message.wrong
        except BaseException as error:
            said = failure(error)
            raise
        finally:
            if work is not None:
                work.open.remove(message)
                for each in work.open:
                    if each.asked_in is message:
                        each.end({})
            message.end(said)
            times.measure(asked, said, since)

    # Notifications.

    def heard(self, notice: TracedRequest) -> None:
        if notice.method not in STREAMED:
            before = under_way.extracted(notice.params)
            self._start(notice, SpanKind.SERVER, before, ()).end()

    def saying(self, notice: TracedRequest, call: str | None) -> Mapping[str, Any]:
        before, links = under_way.parent(self._work(call))
        span = self._start(notice, SpanKind.CLIENT, before, links)
        span.end()
        return under_way.injected(notice.params, trace.set_span_in_context(span, before))

    # All of these.

    def _work(self, call: str | None) -> Work | None:
        return None if call is None else self._works.get(call)

    def _start(
        self, asked: TracedRequest, kind: SpanKind, before: Context, links: Collection[Link]
    ) -> Span:
        return self._tracer.start_span(
            name_of(asked), before, kind, attributes(asked), tuple(links)
        )

    # Calls, which may outlive both.

    def _call_begun(self, fact: facts.CallBegun) -> None:
        request = under_way.request.get()
        within = None if fact.within is None else self._works.get(fact.within)
        work = self._works[fact.call] = Work(fact, request, within)
        if request is not None and not request.is_over:
            request.begun.append(work)

    def _call_promoted(self, fact: facts.CallPromoted) -> None:
        if (work := self._works.get(fact.call)) is not None:
            self._outlives(work)

    def _outlives(self, work: Work) -> None:
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
        message.begins_again(self._start(message.asked, kind, within, links), within)

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
            self._questions[fact.question] = question
            question.span.set_attribute(QUESTION, fact.question)

    def _call_asked(self, fact: facts.CallAsked) -> None:
        """It waits, or may wait, for somebody to answer a question."""
        work, question = self._works.get(fact.call), self._questions.get(fact.question)
        for sent in () if work is None else work.open:
            if sent.is_question or sent.is_over:
                continue
            sent.span.add_event("emceepee.question", {QUESTION: fact.question})
            if question is not None and question.asked_in is None:
                question.span.add_link(sent.span.get_span_context())

    def _question_relayed(self, fact: facts.QuestionRelayed | facts.QuestionLeft) -> None:
        if (question := self._questions.get(fact.question)) is not None and not question.is_over:
            is_put = isinstance(fact, facts.QuestionRelayed)
            question.span.add_event(f"emceepee.question.{'relayed' if is_put else 'left'}")

    def _question_closed(self, fact: facts.QuestionClosed) -> None:
        question = self._questions.pop(fact.question, None)
        for put in () if question is None else question.put:
            put.end({ERROR: "cancelled"})  # somebody else has answered it, or nobody


_READ: Mapping[type[Fact], Any] = {
    facts.CallBegun: Spans._call_begun,
    facts.CallPromoted: Spans._call_promoted,
    facts.CallSettled: Spans._call_settled,
    facts.ResultRead: Spans._result_read,
    facts.QuestionOpened: Spans._question_opened,
    facts.CallAsked: Spans._call_asked,
    facts.QuestionRelayed: Spans._question_relayed,
    facts.QuestionLeft: Spans._question_relayed,
    facts.QuestionClosed: Spans._question_closed,
}


def _only_request(work: Work) -> Message | None:
    """To its server, that is not answered yet."""
    sent = [each for each in work.open if not (each.is_question or each.is_over)]
    return sent[0] if len(sent) == 1 else None
