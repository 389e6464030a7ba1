from __future__ import annotations

from typing import Any

import attrs
from prometheus_client import CollectorRegistry

from emceepee_trio.config.bounds import MAX_METRIC_TOOLS
from emceepee_trio.errors import NotFound
from emceepee_trio.journal import Journal, Reader
from emceepee_trio.model import facts
from emceepee_trio.model.states import TaskState
from emceepee_trio.telemetry.labels import OTHER, SHARE, Labels
from emceepee_trio.web.metrics.counted import SECONDS, Counted

DONE, FAILED = TaskState.COMPLETED, TaskState.FAILED


def settled(counted: Counted, tool: str, fate: TaskState = DONE, **more: Any) -> None:
    fact = facts.CallSettled(0.0, "s", "c", "git", tool, fate, False, 300, None)
    counted.read(attrs.evolve(fact, **more))


def calls(registry: CollectorRegistry, tool: str, outcome: str) -> float | None:
    labels = {"server": "git", "tool": tool, "outcome": outcome}
    return registry.get_sample_value("emceepee_call_duration_seconds_count", labels)


def test_calls_are_counted_by_their_outcome() -> None:
    counted = Counted(Labels())
    settled(counted, "log")
    settled(counted, "log")
    settled(counted, "log", is_error=True)
    for fate in (FAILED, TaskState.CANCELLED, TaskState.EXPIRED):
        settled(counted, "log", fate, code=-32000)
    registry = counted.registry
    assert calls(registry, "log", "completed") == 2
    for outcome in ("error", "failed", "cancelled", "expired"):
        assert calls(registry, "log", outcome) == 1
    labels = {"server": "git", "tool": "log", "outcome": "completed"}
    assert registry.get_sample_value("emceepee_call_duration_seconds_sum", labels) == 0.6
    for bucket, count in ((0.25, 0), (1.0, 2)):
        assert bucket in SECONDS
        here = labels | {"le": str(bucket)}
        name = "emceepee_call_duration_seconds_bucket"
        assert registry.get_sample_value(name, here) == count


def test_names_that_a_client_makes_up_are_no_series() -> None:
    counted = Counted(Labels())
    for number in range(2 * MAX_METRIC_TOOLS):
        settled(counted, f"made up {number}", FAILED, code=NotFound.code)
    settled(counted, "log")
    assert calls(counted.registry, OTHER, "failed") == 2 * MAX_METRIC_TOOLS
    assert calls(counted.registry, "log", "completed") == 1
    assert len(next(iter(counted.registry.collect())).samples) < 100


def test_a_flood_of_tools_is_a_bounded_number_of_series() -> None:
    counted = Counted(Labels())
    for number in range(MAX_METRIC_TOOLS):
        settled(counted, f"t{number}")
    share = MAX_METRIC_TOOLS // SHARE
    assert calls(counted.registry, OTHER, "completed") == MAX_METRIC_TOOLS - share


def test_events_count_once_they_are_handed_over() -> None:
    counted, journal = Counted(Labels()), Journal()
    journal.add(Reader("metrics", counted.read, counted.readers))

    def told() -> float | None:
        return counted.registry.get_sample_value("emceepee_events_told_total")

    for number in (1, 2, 3):
        journal.note(facts.DeliveryMade, "s", number, 5, 0, 0)
    journal.note(facts.DeliveryGivenBack, "s", 1)
    journal.note(facts.DeliveryLost, "s", 2)
    assert told() == 0
    journal.note(facts.DeliveryHandedOver, "s", 3)
    assert told() == 5
    assert journal.readers[0].failures == 0


def test_only_what_was_lost_by_itself_is_a_loss() -> None:
    counted = Counted(Labels())
    counted.read(facts.ConnectionUp(0.0, "s", "git", 1))
    counted.read(facts.ConnectionLost(0.0, "s", "git", 1, is_ours=True))
    counted.read(facts.ConnectionUp(0.0, "s", "git", 2, is_again=True))
    counted.read(facts.ConnectionLost(0.0, "s", "git", 2, is_ours=False))
    git = {"server": "git"}
    for name, count in (("connections", 2), ("reconnects", 1), ("connections_lost", 1)):
        assert counted.registry.get_sample_value(f"emceepee_{name}_total", git) == count


def test_how_programs_end_is_one_of_few_words() -> None:
    counted = Counted(Labels())
    for code in range(256):
        counted.read(facts.ChildEnded(0.0, "s", "git", 1, 7, code, None))
    counted.read(facts.ChildEnded(0.0, "s", "git", 1, 7, None, "SIGKILL"))
    for how, count in (("exit", 1), ("error", 255), ("SIGKILL", 1)):
        labels = {"server": "git", "how": how}
        assert counted.registry.get_sample_value("emceepee_children_ended_total", labels) == count
