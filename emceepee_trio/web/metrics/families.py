"""What a metric is: a name, what it says, and a value for each of its labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import attrs
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric

PREFIX = "emceepee_"


@attrs.frozen
class Family:
    name: str
    """As queries have it, but for what stands before each of ours."""
    kind: Literal["counter", "gauge", "histogram"]
    what: str
    labels: tuple[str, ...] = ()
    values: Mapping[Any, float] = attrs.field(factory=dict)
    """By a tuple of the values of its labels, in their order."""

    @property
    def full_name(self) -> str:
        return PREFIX + self.name

    def metric(self) -> Metric:
        """As prometheus-client has it."""
        metric: GaugeMetricFamily | CounterMetricFamily
        if self.kind == "gauge":
            metric = GaugeMetricFamily(self.full_name, self.what, labels=self.labels)
        else:
            metric = CounterMetricFamily(self.full_name, self.what, labels=self.labels)
        for key, value in self.values.items():
            metric.add_metric(key, value)
        return metric


def one(name: str, what: str, value: float) -> Family:
    """A gauge without labels."""
    return Family(name, "gauge", what, (), {(): value})
