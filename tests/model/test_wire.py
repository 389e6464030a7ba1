from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any, get_args

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emceepee_trio.model import events
from emceepee_trio.model.events import Happening
from emceepee_trio.model.states import TaskState
from emceepee_trio.model.wire import (
    EVENT_TYPES,
    camel,
    dumps,
    event_json,
    event_type,
    loads,
    new_event,
    size_of,
    snake,
    timestamp,
    to_camel,
    to_snake,
)
from strategies import happenings, json_values, objects

# The table of the contract: type, what its data always holds, what it may hold.
TABLE: dict[str, tuple[set[str], set[str]]] = {
    "task_created": ({"taskId", "toolName", "ttl"}, set()),
    "task_completed": ({"taskId", "toolName"}, set()),
    "task_failed": ({"taskId", "toolName", "error"}, {"reason"}),
    "task_cancelled": ({"taskId", "toolName"}, {"reason"}),
    "task_expired": ({"taskId", "toolName", "ttl"}, set()),
    "elicitation_request": ({"requestId", "params"}, {"relayed", "tooLarge"}),
    "sampling_request": ({"requestId", "params"}, {"relayed", "tooLarge"}),
    "elicitation_expired": ({"requestId", "reason"}, set()),
    "sampling_expired": ({"requestId", "reason"}, set()),
    "elicitation_cancelled": ({"requestId", "reason"}, set()),
    "sampling_cancelled": ({"requestId", "reason"}, set()),
    "elicitation_answered": ({"requestId", "by"}, set()),
    "sampling_answered": ({"requestId", "by"}, set()),
    "notification": ({"method", "timestamp"}, {"params", "tooLarge"}),
    "timer_expired": ({"timerId", "message", "fireCount"}, set()),
    "session_shared": ({"clients", "advice"}, set()),
    "share_conflict": ({"name", "reason", "sessions", "advice"}, set()),
    "server_added": ({"name", "target", "addedBy"}, set()),
    "server_removed": ({"name", "target", "removedBy"}, set()),
    "server_connected": ({"name", "capabilities", "protocolVersion"}, {"tooLarge"}),
    "server_reconnected": (
        {
            *("name", "capabilities", "protocolVersion", "type", "attempts"),
            *("refreshedTools", "refreshedResources", "refreshedPrompts"),
            *("invalidatedTasks", "invalidatedElicitations", "invalidatedSampling"),
        },
        {"tooLarge"},
    ),
    "server_disconnected": ({"name", "reason", "wasIntentional"}, set()),
    "server_reconnecting": ({"name", "attempt", "nextRetryMs"}, set()),
    "server_health_degraded": ({"name", "consecutiveFailures", "lastError"}, set()),
    "server_health_restored": ({"name", "consecutiveFailures", "lastError"}, set()),
    "process_started": ({"name", "pid"}, set()),
    "process_crashed": ({"name", "pid"}, {"exitCode", "signal"}),
    "process_stopped": ({"name", "pid"}, {"exitCode", "signal", "reason"}),
    "restarting": ({"name", "attempt", "nextRetryMs"}, {"pid", "exitCode", "signal"}),
    "restarted": ({"name", "pid", "attempt"}, set()),
    "restart_failed": ({"name", "attempt"}, {"pid", "exitCode", "signal"}),
}

classes = pytest.mark.parametrize("cls", get_args(Happening), ids=lambda cls: cls.__name__)


@classes
def test_an_event_has_the_type_and_the_keys_of_the_contract(cls: type[Any]) -> None:
    required, optional = TABLE[EVENT_TYPES[cls]]
    fields = attrs.fields(cls)
    full = cls(*["x" for _ in fields])
    assert to_camel(full).keys() == required | optional
    least = cls(**{field.name: "x" for field in fields if field.default is attrs.NOTHING})
    assert to_camel(least).keys() == required
    assert event_type(full) == EVENT_TYPES[cls]


def test_each_class_is_a_type_of_its_own_and_each_type_has_a_class() -> None:
    assert sorted(EVENT_TYPES.values()) == sorted(TABLE)


@given(happenings)
def test_none_never_travels_and_everything_else_does(happening: Any) -> None:
    data = to_camel(happening)
    for field in attrs.fields(type(happening)):
        value = getattr(happening, field.name)
        if value is None:
            assert camel(field.name) not in data
        else:
            assert data[camel(field.name)] == value
    assert None not in data.values()


@given(objects)
def test_what_a_backend_sent_travels_as_it_came(params: Mapping[str, Any]) -> None:
    for happening in (
        events.ElicitationRequest("q", params),
        events.SamplingRequest("q", params),
        events.Notification("m", "now", params),
    ):
        assert to_camel(happening)["params"] is params
    assert to_camel(events.ServerConnected("n", params, "v"))["capabilities"] is params


def test_null_and_foreign_keys_inside_of_params_stay() -> None:
    params = {"some_key": None, "nested": [{"a_b": None}], "_meta": {"x_y": 1}}
    assert to_camel(events.Notification("m", "now", params)) == {
        "method": "m",
        "timestamp": "now",
        "params": {"some_key": None, "nested": [{"a_b": None}], "_meta": {"x_y": 1}},
    }


@given(happenings, st.integers(1, 100))
def test_an_event_is_its_five_keys_and_can_be_read_again(happening: Any, count: int) -> None:
    event = new_event("01J", "files", "2026-01-01T00:00:00.000Z", happening)
    assert event.size == size_of(event_json(event))
    shown = event_json(attrs.evolve(event, count=count))
    assert list(shown) == ["id", "type", "server", "createdAt", "data"]
    assert (shown["id"], shown["server"], shown["createdAt"]) == (
        "01J", "files", "2026-01-01T00:00:00.000Z",
    )  # fmt: skip
    assert shown["data"].get("count", 1) == count
    assert ("count" in shown["data"]) == (count > 1)
    assert json.loads(dumps(shown)) == shown


@attrs.define(eq=False)
class Thing:
    some_name: str
    status: TaskState
    args: Mapping[str, Any]
    left_out: str | None = None


def test_what_travels_in_snake_case_keeps_its_names() -> None:
    thing = Thing("x", TaskState.WORKING, {"camelCase": None})
    assert to_snake(thing) == {
        "some_name": "x",
        "status": "working",
        "args": {"camelCase": None},
    }
    assert to_snake(Thing("x", TaskState.FAILED, {}, "said"))["left_out"] == "said"


@given(st.floats(0, 4e9))
def test_timestamps_are_utc_with_milliseconds_and_sort(seconds: float) -> None:
    written = timestamp(seconds)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", written)
    assert written <= timestamp(seconds + 0.001)
    assert timestamp(seconds + 0.002) > written


def test_a_timestamp_is_what_rfc_3339_says() -> None:
    assert timestamp(0) == "1970-01-01T00:00:00.000Z"
    assert timestamp(1_700_000_000.5) == "2023-11-14T22:13:20.500Z"
    assert timestamp(1.9999) == "1970-01-01T00:00:01.999Z"


@given(st.from_regex(r"[a-z]{2,5}(_[a-z]{2,5}){0,3}", fullmatch=True))
def test_camel_and_snake_are_opposites(name: str) -> None:
    assert snake(camel(name)) == name


@given(json_values)
def test_dumps_is_compact_and_lossless(value: Any) -> None:
    written = dumps(value)
    assert json.loads(written) == value
    assert size_of(value) == len(written.encode())
    assert len(written) <= len(json.dumps(value, ensure_ascii=False))


def test_unicode_is_written_as_it_is_unless_it_cannot_be_encoded() -> None:
    assert dumps({"ü": "日本"}) == '{"ü":"日本"}'
    assert dumps(["\ud800", "ü"]) == '["\\ud800","\\u00fc"]'
    assert size_of("日本") == 8
    assert size_of("\ud800") == 8


def test_what_is_no_number_is_written_as_nothing() -> None:
    """A server may say so; our clients are sent JSON."""
    assert dumps({"a": [math.inf, -math.inf, math.nan, 1e300, "ü"]}) == (
        '{"a":[null,null,null,1e+300,"ü"]}'
    )
    assert dumps([math.nan, "\ud800"]) == '[null,"\\ud800"]'
    assert size_of(math.inf) == 4


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "{} {}",
        '{"a": NaN}',
        "[Infinity]",
        "[-Infinity]",
        "[1e999]",
        "[-1e999]",
        "[" + "1" * 5000 + "]",
        "[" * 100_000,
    ],
)
def test_what_could_not_be_passed_on_as_json_is_none(text: str) -> None:
    with pytest.raises((ValueError, RecursionError)):
        loads(text)


@pytest.mark.parametrize("value", [{"a": [1, 2.5, None, True, "ü"]}, 1e300, 10**18, "\ud83d", []])
def test_json_is_parsed_as_it_is(value: Any) -> None:
    assert loads(json.dumps(value)) == value
