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
from opentelemetry.trace import Link, SpanContext, SpanKind, Tracer, TracerProvider

from ..model.facts import Fact
from ..tracing import Answered, TracedRequest
from . import calls, under_way
from .calls import CallSpans
from .conventions import (
    LASTING,
    QUESTION,
    STREAMED,
    Attributes,
    failure,
    wrong,
)
from .durations import Durations, durations
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
    _calls: CallSpans = attrs.field(init=False)
    _rounds: OrderedDict[str, list[SpanContext]] = attrs.field(factory=OrderedDict, init=False)
    """Of requests that were answered with a question: theirs, and those of tasks that go on; by
    the states with which their clients come again."""

    def __attrs_post_init__(self) -> None:
        self._calls = CallSpans(self._tracer)

    @classmethod
    def of(cls, tracers: TracerProvider | None, meters: MeterProvider | None) -> Spans:
        """Traces, if there is a provider for them, and measures of time, likewise."""
        tracer = (tracers or trace.NoOpTracerProvider()).get_tracer(SCOPE)
        return cls(tracer, *durations(meters, SCOPE))

    @property
    def kinds(self) -> Collection[type[Fact]]:
        return calls.READ

    def read(self, fact: Fact) -> None:
        calls.READ[type(fact)](self._calls, fact)

    # Requests of clients.

    @contextmanager
    def answering(self, asked: TracedRequest) -> Generator[Answered]:
        if asked.method in LASTING:
            yield lambda result: None
            return
        before, earlier = under_way.extracted(asked.params), self._earlier(asked)
        links = under_way.valid([Link(each) for each in earlier])
        span = under_way.start(self._tracer, asked, SpanKind.SERVER, before, links)
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
                self._calls.outlives(work)
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
        work = self._calls.find(call)
        before, links = under_way.parent(work)
        span = under_way.start(self._tracer, asked, SpanKind.CLIENT, before, links)
        context = trace.set_span_in_context(span, before)
        params = under_way.injected(asked.params, context)
        sent = Message(asked, params, span, context, judge=lambda result: wrong(asked, result))
        with self._open(sent, work, asked, self._asked):
            yield sent

    # Requests to clients.

    @contextmanager
    def relaying(self, asked: TracedRequest, question: str | None) -> Generator[Message]:
        about = None if question is None else self._calls.questions.get(question)
        within = Context() if about is None or about.is_over else about.context
        span = under_way.start(self._tracer, asked, SpanKind.CLIENT, within, ())
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
            call = self._calls.only_one(session, asked.server)
        work = self._calls.find(call)
        asked_in = None if work is None else _only_request(work)
        before, links = under_way.extracted(asked.params), list[Link]()
        if not under_way.names_a_span(before):
            before, links = under_way.parent(work)
            before = before if asked_in is None else asked_in.context
        span = under_way.start(self._tracer, asked, SpanKind.SERVER, before, links)
        context = trace.set_span_in_context(span, before)
        question = Message(asked, asked.params, span, context, asked_in, is_question=True)
        token = under_way.question.set(question)
        try:
            with self._open(question, work, asked, self._served):
                yield question
        finally:
            under_way.question.reset(token)

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
            under_way.start(self._tracer, notice, SpanKind.SERVER, before, ()).end()

    def saying(self, notice: TracedRequest, call: str | None) -> Mapping[str, Any]:
        before, links = under_way.parent(self._calls.find(call))
        span = under_way.start(self._tracer, notice, SpanKind.CLIENT, before, links)
        span.end()
        return under_way.injected(notice.params, trace.set_span_in_context(span, before))


def _only_request(work: Work) -> Message | None:
    """To its server, that is not answered yet."""
    sent = [each for each in work.open if not (each.is_question or each.is_over)]
    return sent[0] if len(sent) == 1 else None
