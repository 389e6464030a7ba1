"""The SDK of OpenTelemetry and its exporters. Whoever imports this wants them."""

from __future__ import annotations

from importlib.metadata import version

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from ..config import OUR_NAME


def tracers(endpoint: str | None) -> TracerProvider:
    """Spans go to that *endpoint*, or to the one that the variables say."""
    provider = TracerProvider(resource=_resource(), shutdown_on_exit=False)
    exporter = OTLPSpanExporter(endpoint=_below(endpoint, "traces"))
    provider.add_span_processor(BatchSpanProcessor(exporter))
    return provider


def meters(endpoint: str | None) -> MeterProvider:
    """Likewise, what is measured."""
    reader = PeriodicExportingMetricReader(OTLPMetricExporter(endpoint=_below(endpoint, "metrics")))
    return MeterProvider([reader], _resource(), shutdown_on_exit=False)


def _below(endpoint: str | None, signal: str) -> str | None:
    return None if endpoint is None else f"{endpoint.rstrip('/')}/v1/{signal}"


def _resource() -> Resource:
    """Who we are, where the variables do not say it."""
    resource = Resource.create({"service.version": version("emceepee-trio")})
    if str(resource.attributes.get(SERVICE_NAME, "")).startswith("unknown_service"):
        resource = resource.merge(Resource({SERVICE_NAME: OUR_NAME}))
    return resource
