"""How long requests took, as measures of OpenTelemetry: those of peers, and those to them."""

from __future__ import annotations

from time import monotonic

import attrs
from opentelemetry.metrics import Histogram, MeterProvider

from ..tracing import TracedRequest
from .conventions import ERROR, LATENCIES, NAMED, SERVER, Attributes, common, target_of
from .labels import Labels


@attrs.define(eq=False)
class Durations:
    """Of requests in one direction."""

    _histogram: Histogram | None
    _labels: Labels
    """Of both: how many names of peers there may be is counted once."""

    def measure(self, asked: TracedRequest, said: Attributes, since: float) -> None:
        """It is over, and this is *said* of how; *since* is when it came, on the same clock."""
        if self._histogram is None:
            return
        labels = common(asked) | said
        if (target := target_of(asked)) is not None:
            exists = ERROR not in said or said[ERROR] == "tool_error"
            _, name = self._labels.tool(asked.server or "", target, exists=exists)
            labels[NAMED[asked.method]] = name
        if asked.server is not None:
            labels[SERVER] = self._labels.server(asked.server)
        self._histogram.record(monotonic() - since, labels)


def durations(meters: MeterProvider | None, scope: str) -> tuple[Durations, Durations]:
    """Of requests that are answered, and of those that are sent; of none where nobody measures."""
    labels = Labels()
    if meters is None:
        return Durations(None, labels), Durations(None, labels)
    meter = meters.get_meter(scope)

    def of(name: str, what: str) -> Durations:
        made = meter.create_histogram(
            name, "s", what, explicit_bucket_boundaries_advisory=LATENCIES
        )
        return Durations(made, labels)

    return (
        of("mcp.server.operation.duration", "Requests of peers that were answered."),
        of("mcp.client.operation.duration", "Requests of ours to peers."),
    )
