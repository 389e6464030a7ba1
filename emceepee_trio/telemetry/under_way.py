"""What is under way, as it is traced, and which trace it is of.

A span that has ended cannot be moved. So what outlives the span that it is a part of ends with
that, and begins again as a part of what it outlives it for.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping
from contextvars import ContextVar
from typing import Any, TypeVar

import attrs
from opentelemetry import propagate, trace
from opentelemetry.context import Context
from opentelemetry.trace import Link, Span, SpanKind, StatusCode, Tracer

from ..model import facts
from ..tracing import TracedRequest
from .conventions import ERROR, Attributes, attributes, name_of

T = TypeVar("T")

REMEMBERED = 1000
"""Tasks that are over, whose spans are linked to those who fetch their results; and as many
requests whose clients may come again with an answer."""
LONGEST = 8192
"""Characters of what a peer says of its trace."""


@attrs.define(eq=False)
class Served:
    """A request of a client, while it is answered and after."""

    span: Span
    context: Context
    """For what is done for it."""
    begun: list[Work] = attrs.field(factory=list)
    is_over: bool = False


@attrs.define(eq=False)
class Work:
    """A call."""

    begun: facts.CallBegun
    request: Served | None
    """That it was begun for."""
    within: Work | None
    """The script that makes it."""
    open: list[Message] = attrs.field(factory=list)
    """Requests to its server, and of it, without an answer; oldest first."""
    task: Span | None = None
    """Of what outlives the request."""
    context: Context | None = None
    """For what is done from then on."""


@attrs.define(eq=False)
class Message:
    """A request to a server, or of one, or one that puts that to a client."""

    asked: TracedRequest
    params: Mapping[str, Any]
    """That say of which trace it is."""
    span: Span
    context: Context
    """For what is done until it is answered."""
    asked_in: Message | None = None
    """What its server was asked, as it asked this."""
    is_question: bool = False
    """It is of a server."""
    is_over: bool = False
    put: list[Message] = attrs.field(factory=list)
    """Requests by which a client is asked what this asks, without an answer."""
    wrong: Attributes = attrs.field(factory=dict)
    _judge: Callable[[object], Attributes] = lambda result: {}

    def answered(self, result: object) -> None:
        self.wrong = self._judge(result)

    def moved_on(self) -> None:
        if not self.is_over:
            self.span.add_event("notifications/progress")

    def end(self, said: Attributes) -> None:
        """Once: it may have ended with the request of its client."""
        if not self.is_over:
            self.is_over = True
            for each in self.put:  # which are within it
                each.end(said)
            close(self.span, said)

    def begins_again(self, span: Span, within: Context) -> None:
        self.span, self.is_over, self.asked_in = span, False, None
        self.context = trace.set_span_in_context(span, within)


request: ContextVar[Served | None] = ContextVar("request", default=None)
"""That which this task works for."""
question: ContextVar[Message | None] = ContextVar("question", default=None)
"""That which this task answers."""


def parent(work: Work | None) -> tuple[Context, list[Link]]:
    """Of a request to a server: of which trace it is, or else to which it is linked."""
    while work is not None and work.context is None and work.within is not None:
        work = work.within
    if work is not None and work.context is not None:
        return work.context, []
    of = request.get() if work is None else work.request
    if of is None:
        return Context(), []
    if of.is_over:
        return Context(), valid([Link(of.span.get_span_context())])
    return of.context, []


def start(
    tracer: Tracer, asked: TracedRequest, kind: SpanKind, before: Context, links: Collection[Link]
) -> Span:
    """The span of a request, or of a notification."""
    return tracer.start_span(name_of(asked), before, kind, attributes(asked), tuple(links))


def remember(table: OrderedDict[str, T], name: str, what: T) -> None:
    table[name] = what
    if len(table) > REMEMBERED:
        table.popitem(last=False)


def valid(links: Collection[Link]) -> list[Link]:
    return [link for link in links if link.context.is_valid]


def extracted(params: Mapping[str, Any]) -> Context:
    """What a peer says of its trace; whatever else it says there is nothing."""
    meta = params.get("_meta")
    said = meta if isinstance(meta, Mapping) else {}
    given = {field: said.get(field) for field in propagate.get_global_textmap().fields}
    usable = {k: v for k, v in given.items() if isinstance(v, str) and len(v) <= LONGEST}
    return propagate.extract(usable, Context()) if usable else Context()


def names_a_span(context: Context) -> bool:
    return trace.get_current_span(context).get_span_context().is_valid


def injected(params: Mapping[str, Any], context: Context) -> Mapping[str, Any]:
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


def close(span: Span, said: Attributes) -> None:
    if ERROR in said:
        span.set_attributes(said)
        span.set_status(StatusCode.ERROR)
    span.end()
