"""Spans as somebody would look at them: kept in memory, and checked against each other."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

import attrs
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import HistogramDataPoint, InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.trace import SpanContext, SpanKind

from emceepee_trio.telemetry.spans import Spans

NAMED = {SpanKind.SERVER: "SERVER", SpanKind.CLIENT: "CLIENT", SpanKind.INTERNAL: "INTERNAL"}


@attrs.define(eq=False)
class _Begun(SpanProcessor):
    """Which have."""

    spans: list[Span] = attrs.field(factory=list)

    def on_start(self, span: Span, parent_context: Any = None) -> None:
        self.spans.append(span)


@attrs.define(eq=False)
class _Numbers(IdGenerator):
    """Ids that take nothing of the randomness by which orders of tasks are chosen."""

    _last: count[int] = attrs.field(factory=lambda: count(1))

    def generate_span_id(self) -> int:
        return next(self._last)

    def generate_trace_id(self) -> int:
        return next(self._last)


class _Complaints(logging.Handler):
    """What the SDK says of how it is used: that a span is ended twice, for one."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.said.append(record.getMessage())


@attrs.define(eq=False)
class Traced:
    """What was traced so far."""

    spans: Spans
    _kept: InMemorySpanExporter
    _begun: _Begun
    _reader: InMemoryMetricReader
    _complaints: _Complaints

    @property
    def ended(self) -> list[ReadableSpan]:
        return list(self._kept.get_finished_spans())

    def named(self, kind: str, name: str) -> list[ReadableSpan]:
        """Those of them that are called so, oldest first."""
        found = [s for s in self.ended if (NAMED[s.kind], s.name) == (kind, name)]
        return sorted(found, key=lambda span: span.start_time or 0)

    def one(self, kind: str, name: str) -> ReadableSpan:
        (span,) = self.named(kind, name)
        return span

    def check(self) -> None:
        """Each has ended once, and none after the one that it is a part of."""
        assert self._complaints.said == []
        ids = [context_of(span).span_id for span in self.ended]
        assert sorted(ids) == sorted(span.get_span_context().span_id for span in self._begun.spans)
        by_id = dict(zip(ids, self.ended, strict=True))
        for span in self.ended:
            parent = None if span.parent is None else by_id.get(span.parent.span_id)
            if parent is not None:
                assert span.start_time is not None
                assert span.end_time is not None
                assert parent.start_time is not None
                assert parent.end_time is not None
                assert parent.start_time <= span.start_time, span.name
                assert span.end_time <= parent.end_time, span.name

    def measured(self, name: str) -> list[HistogramDataPoint]:
        data = self._reader.get_metrics_data()
        return [
            point
            for resource in ([] if data is None else data.resource_metrics)
            for scope in resource.scope_metrics
            for metric in scope.metrics
            if metric.name == name
            for point in metric.data.data_points
            if isinstance(point, HistogramDataPoint)
        ]


def context_of(span: ReadableSpan) -> SpanContext:
    context = span.get_span_context()
    assert context is not None
    return context


def parent_of(span: ReadableSpan) -> int | None:
    return None if span.parent is None else span.parent.span_id


def linked(span: ReadableSpan) -> set[int]:
    return {link.context.span_id for link in span.links}


def said(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


def traceparent(span: ReadableSpan) -> str:
    context = context_of(span)
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"


@contextmanager
def tracing() -> Iterator[Traced]:
    """A tracer of its own, with nothing that is global."""
    kept, begun, reader = InMemorySpanExporter(), _Begun(), InMemoryMetricReader()
    tracers = TracerProvider(shutdown_on_exit=False, id_generator=_Numbers())
    tracers.add_span_processor(begun)
    tracers.add_span_processor(SimpleSpanProcessor(kept))
    meters = MeterProvider([reader], shutdown_on_exit=False)
    complaints = _Complaints()
    logging.getLogger("opentelemetry.sdk").addHandler(complaints)
    try:
        yield Traced(Spans.of(tracers, meters), kept, begun, reader, complaints)
    finally:
        logging.getLogger("opentelemetry.sdk").removeHandler(complaints)
        tracers.shutdown()
        meters.shutdown()
