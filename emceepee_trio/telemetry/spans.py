"""Traces: a span for each request that we answer, and one for each that we make for it.

A request that a server gets from us says of which span it is (``traceparent`` in its ``_meta``), so
one trace goes from the client through us to the server. A call may outlive the request that began
it: as a task, or because its client was lost. Then its spans end with that request, and what
follows is a trace of its own, which is *linked* to both. Nothing in a trace ends after its root.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from time import monotonic
from typing import Any

import attrs
from opentelemetry import propagate, trace
from opentelemetry.context import Context
from opentelemetry.metrics import Histogram, MeterProvider
from opentelemetry.trace import (
    Link,
    Span,
    SpanContext,
    SpanKind,
    StatusCode,
    Tracer,
    TracerProvider,
)

from ..model import facts
from ..model.facts import Fact
from ..model.states import TaskState
from ..tracing import Answered, TracedRequest
from .conventions import (
    ERROR,
    LASTING,
    LATENCIES,
    NAMED,
    SERVER,
    TASK,
    TOOL,
    Attributes,
    attributes,
    common,
    failure,
    name_of,
    target_of,
    wrong,
)
from .labels import Labels, shown

SCOPE = "emceepee_trio"
LONGEST = 8192
"""Characters of what a client says of its trace."""
REMEMBERED = 1000
"""Tasks that are over, whose spans are linked to those who fetch their results."""


@attrs.define(eq=False)
class _Request:
    """Of a client, while it is answered and after."""

    span: Span
    context: Context
    """For what is done for it."""
    begun: list[_Work] = attrs.field(factory=list)
    is_over: bool = False


@attrs.define(eq=False)
class _Work:
    """A call."""

    begun: facts.CallBegun
    request: _Request | None
    """That it was begun for."""
    within: _Work | None
    """The script that makes it."""
    open: list[_Sent] = attrs.field(factory=list)
    """Requests to its server without an answer."""
    task: Span | None = None
    """Of what outlives the request."""
    context: Context | None = None
    """For what is done from then on."""


@attrs.define(eq=False)
class _Sent:
    """A request to a server."""

    params: Mapping[str, Any]
    span: Span
    is_over: bool = False
    wrong: Attributes = attrs.field(factory=dict)
    _judge: Callable[[object], Attributes] = lambda result: {}

    def answered(self, result: object) -> None:
        self.wrong = self._judge(result)

    def end(self, said: Attributes) -> None:
        """Once: it may have ended with the request of its client."""
        if not self.is_over:
            self.is_over = True
            _end(self.span, said)


_request: ContextVar[_Request | None] = ContextVar("request", default=None)
"""That which this task works for."""


@attrs.define(eq=False)
class Spans:
    """See :class:`.Tracing`. Of one daemon."""

    _tracer: Tracer
    _served: Histogram | None
    _asked: Histogram | None
    _labels: Labels = attrs.field(factory=Labels)
    _works: dict[str, _Work] = attrs.field(factory=dict, init=False)
    """Calls without an outcome, by their ids."""
    _tasks: OrderedDict[str, SpanContext] = attrs.field(factory=OrderedDict, init=False)
    """Those of tasks, by the ids of their calls."""

    @classmethod
    def of(cls, tracers: TracerProvider | None, meters: MeterProvider | None) -> Spans:
        """Traces, if there is a provider for them, and measures of time, likewise."""
        tracer = (tracers or trace.NoOpTracerProvider()).get_tracer(SCOPE)
        if meters is None:
            return cls(tracer, None, None)
        meter = meters.get_meter(SCOPE)

        def duration(name: str, what: str) -> Histogram:
            return meter.create_histogram(
                name, "s", what, explicit_bucket_boundaries_advisory=LATENCIES
            )

        return cls(
            tracer,
            duration("mcp.server.operation.duration", "Requests of clients that were answered."),
            duration("mcp.client.operation.duration", "Requests to servers."),
        )

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
        before = _extracted(asked.params)
        span = self._start(asked, SpanKind.SERVER, before, ())
        request = _Request(span, trace.set_span_in_context(span, before))
        token, since, said = _request.set(request), monotonic(), Attributes()

        def answered(result: object) -> None:
            said.update(wrong(asked, result))

        try:
            yield answered
        except BaseException as error:
            said |= failure(error)
            raise
        finally:
            _request.reset(token)
            for work in request.begun:
                self._outlives(work)
            request.is_over = True
            _end(span, said)
            self._measure(self._served, asked, said, since)

    def apart(self) -> None:
        _request.set(None)

    # Requests to servers.

    @contextmanager
    def asking(self, asked: TracedRequest, call: str | None) -> Generator[_Sent]:
        if asked.method in LASTING:
            yield _Sent(asked.params, trace.INVALID_SPAN)
            return
        work = None if call is None else self._works.get(call)
        before, links = _parent(work)
        span = self._start(asked, SpanKind.CLIENT, before, links)
        params = _injected(asked.params, trace.set_span_in_context(span, before))
        sent = _Sent(params, span, judge=lambda result: wrong(asked, result))
        if work is not None:
            work.open.append(sent)
        since, said = monotonic(), Attributes()
        try:
            yield sent
            said = sent.wrong
        except BaseException as error:
            said = failure(error)
            raise
        finally:
            if work is not None:
                work.open.remove(sent)
            sent.end(said)
            self._measure(self._asked, asked, said, since)

    def _start(
        self, asked: TracedRequest, kind: SpanKind, before: Context, links: Collection[Link]
    ) -> Span:
        return self._tracer.start_span(
            name_of(asked), before, kind, attributes(asked), tuple(links)
        )

    def _measure(
        self, histogram: Histogram | None, asked: TracedRequest, said: Attributes, since: float
    ) -> None:
        if histogram is None:
            return
        labels = common(asked) | said
        if (target := target_of(asked)) is not None:
            exists = ERROR not in said or said[ERROR] == "tool_error"
            _, name = self._labels.tool(asked.server or "", target, exists=exists)
            labels[NAMED[asked.method]] = name
        if asked.server is not None:
            labels[SERVER] = self._labels.server(asked.server)
        histogram.record(monotonic() - since, labels)

    # Calls, which may outlive both.

    def _call_begun(self, fact: facts.CallBegun) -> None:
        request = _request.get()
        within = None if fact.within is None else self._works.get(fact.within)
        work = self._works[fact.call] = _Work(fact, request, within)
        if request is not None and not request.is_over:
            request.begun.append(work)

    def _call_promoted(self, fact: facts.CallPromoted) -> None:
        if (work := self._works.get(fact.call)) is not None:
            self._outlives(work)

    def _outlives(self, work: _Work) -> None:
        """From here on it is nothing of its request: that ends."""
        call = work.begun.call
        if work.task is not None or call not in self._works or work.within is not None:
            return
        before, _ = _parent(work)
        open_ = [sent for each in self._with_its_own(work) for sent in each.open]
        spans = [*(sent.span for sent in open_), trace.get_current_span(before)]
        links = _valid([Link(span.get_span_context()) for span in spans])
        for sent in open_:
            if not sent.is_over:
                sent.span.set_attribute(TASK, call)
            sent.end({})
        server, tool = shown(work.begun.server), shown(work.begun.tool)
        said = {TASK: call, SERVER: server, TOOL: tool}
        work.task = self._tracer.start_span(
            f"task {tool}", Context(), SpanKind.INTERNAL, said, links
        )
        work.context = trace.set_span_in_context(work.task, Context())
        self._tasks[call] = work.task.get_span_context()
        if len(self._tasks) > REMEMBERED:
            self._tasks.popitem(last=False)

    def _with_its_own(self, work: _Work) -> list[_Work]:
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
        for sent in work.open:
            sent.end(said)
        if work.task is not None:
            _end(work.task, said)

    def _result_read(self, fact: facts.ResultRead) -> None:
        """Whoever fetches what a task has come to has something of its trace."""
        request, task = _request.get(), self._tasks.get(fact.call)
        if request is not None and task is not None and task.is_valid:
            request.span.add_link(task)

    def _call_asked(self, fact: facts.CallAsked) -> None:
        """It waits for somebody to answer a question."""
        work = self._works.get(fact.call)
        for sent in () if work is None else work.open:
            sent.span.add_event("emceepee.question", {"emceepee.question.id": fact.question})


_READ: Mapping[type[Fact], Callable[[Spans, Any], None]] = {
    facts.CallBegun: Spans._call_begun,
    facts.CallPromoted: Spans._call_promoted,
    facts.CallSettled: Spans._call_settled,
    facts.ResultRead: Spans._result_read,
    facts.CallAsked: Spans._call_asked,
}


def _parent(work: _Work | None) -> tuple[Context, list[Link]]:
    """Of a request to a server: of which trace it is, or else to which it is linked."""
    while work is not None and work.context is None and work.within is not None:
        work = work.within
    if work is not None and work.context is not None:
        return work.context, []
    request = _request.get() if work is None else work.request
    if request is None:
        return Context(), []
    if request.is_over:
        return Context(), _valid([Link(request.span.get_span_context())])
    return request.context, []


def _valid(links: Collection[Link]) -> list[Link]:
    return [link for link in links if link.context.is_valid]


def _extracted(params: Mapping[str, Any]) -> Context:
    """What a client says of its trace; whatever else it says there is nothing."""
    meta = params.get("_meta")
    said = meta if isinstance(meta, Mapping) else {}
    given = {field: said.get(field) for field in propagate.get_global_textmap().fields}
    usable = {k: v for k, v in given.items() if isinstance(v, str) and len(v) <= LONGEST}
    return propagate.extract(usable, Context()) if usable else Context()


def _injected(params: Mapping[str, Any], context: Context) -> Mapping[str, Any]:
    """*params* that say of which trace they are, and of no other."""
    carrier: dict[str, str] = {}
    propagate.inject(carrier, context)
    meta = params.get("_meta")
    before = meta if isinstance(meta, Mapping) else {}
    fields = propagate.get_global_textmap().fields
    kept = {key: value for key, value in before.items() if key not in fields}
    if not carrier and len(kept) == len(before):
        return params
    return {**params, "_meta": {**kept, **carrier}}


def _end(span: Span, said: Attributes) -> None:
    if ERROR in said:
        span.set_attributes(said)
        span.set_status(StatusCode.ERROR)
    span.end()
