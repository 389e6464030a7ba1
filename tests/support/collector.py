"""A collector of OpenTelemetry that keeps what it is sent: OTLP over HTTP, on a port of its own."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import attrs
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span


@attrs.define(eq=False)
class Collector:
    url: str
    traces: list[ExportTraceServiceRequest] = attrs.field(factory=list)
    metrics: list[ExportMetricsServiceRequest] = attrs.field(factory=list)
    headers: list[dict[str, str]] = attrs.field(factory=list)

    @property
    def all_spans(self) -> list[Span]:
        scopes = [s for sent in self.traces for r in sent.resource_spans for s in r.scope_spans]
        return [span for scope in scopes for span in scope.spans]

    @property
    def spans(self) -> dict[str, Span]:
        """By their names."""
        return {span.name: span for span in self.all_spans}

    @property
    def services(self) -> set[str]:
        """What who has sent them is called."""
        return {
            said.value.string_value
            for sent in self.traces
            for each in sent.resource_spans
            for said in each.resource.attributes
            if said.key == "service.name"
        }

    @property
    def measured(self) -> set[str]:
        scopes = [
            s for sent in self.metrics for r in sent.resource_metrics for s in r.scope_metrics
        ]
        return {metric.name for scope in scopes for metric in scope.metrics}


@contextmanager
def collecting() -> Iterator[Collector]:
    """It takes everything."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            if self.headers.get("content-encoding") == "gzip":
                body = gzip.decompress(body)
            collector.headers.append({k.lower(): v for k, v in self.headers.items()})
            if self.path == "/v1/traces":
                collector.traces.append(ExportTraceServiceRequest.FromString(body))
            elif self.path == "/v1/metrics":
                collector.metrics.append(ExportMetricsServiceRequest.FromString(body))
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    collector = Collector(f"http://127.0.0.1:{server.server_port}")
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield collector
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
