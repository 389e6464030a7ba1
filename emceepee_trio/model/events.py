"""The frozen union of things that can happen in a session.

A class is one type of event; its fields are its data. The names on the wire follow from the
names here: ``TaskCreated(task_id=…)`` travels as ``task_created`` with ``{"taskId": …}``, and a
field that is None does not travel (`wire.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

import attrs

from .json.weight import weigh

Json: TypeAlias = Any
"""A JSON value that is passed on as it came."""


@attrs.frozen
class TaskCreated:
    """A call has become a task."""

    task_id: str
    tool_name: str
    ttl: int


@attrs.frozen
class TaskCompleted:
    """`get_task_result` has what it has come to."""

    task_id: str
    tool_name: str


@attrs.frozen
class TaskFailed:
    """The server has answered with an error, or was lost."""

    task_id: str
    tool_name: str
    error: str
    reason: str | None = None


@attrs.frozen
class TaskCancelled:
    """By `cancel_task`, or with its session."""

    task_id: str
    tool_name: str
    reason: str | None = None


@attrs.frozen
class TaskExpired:
    """It has lived for its ttl, and was cancelled."""

    task_id: str
    tool_name: str
    ttl: int


@attrs.frozen
class ElicitationRequest:
    """A server asks the user: a form, or a page to open. `params` are those of the protocol."""

    request_id: str
    params: Mapping[str, Json] | None
    too_large: bool | None = None
    """`params` are, to be told as an event; `get_elicitations` has them."""
    relayed: bool | None = None
    """The client itself is asked: nobody shall answer for it."""


@attrs.frozen
class SamplingRequest:
    """A server asks for a completion of the client's model. `params` are those of the protocol."""

    request_id: str
    params: Mapping[str, Json] | None
    too_large: bool | None = None
    """`params` are, to be told as an event; `get_sampling_requests` has them."""
    relayed: bool | None = None
    """The client itself is asked: nobody shall answer for it."""


Lapse = Literal["timeout", "server_disconnected", "server_removed", "server_reconnected"]


@attrs.frozen
class ElicitationExpired:
    """A question is not open any more, and nobody has answered it."""

    request_id: str
    reason: Lapse


@attrs.frozen
class SamplingExpired:
    """The same, of a completion."""

    request_id: str
    reason: Lapse


@attrs.frozen
class ElicitationCancelled:
    """A question is not open any more: its server has withdrawn it, or the client has."""

    request_id: str
    reason: str


@attrs.frozen
class SamplingCancelled:
    """The same, of a completion."""

    request_id: str
    reason: str


@attrs.frozen
class ElicitationAnswered:
    """Not by the client, which was told of it."""

    request_id: str
    by: str


@attrs.frozen
class SamplingAnswered:
    """As above."""

    request_id: str
    by: str


@attrs.frozen
class Notification:
    """A server has notified of something; those that are equal are told once, with a `count`."""

    method: str
    timestamp: str
    params: Mapping[str, Json] | None = None
    too_large: bool | None = None
    """`params` are, to be told as an event; `get_notifications` has them."""


@attrs.frozen
class TimerExpired:
    """A timer has fired."""

    timer_id: str
    message: str
    fire_count: int


@attrs.frozen
class SessionShared:
    """It is one of the modern era, and several clients have given the same name."""

    clients: Sequence[str]
    advice: str


@attrs.frozen
class ShareConflict:
    """A server that several sessions had together is each session's own from now on."""

    name: str
    reason: Literal["elicitation", "sampling", "roots"]
    """What it wanted to know, and nobody could say of whom."""
    sessions: int
    advice: str


@attrs.frozen
class ServerAdded:
    """By a client, or in the configuration."""

    name: str
    target: str
    added_by: str


@attrs.frozen
class ServerRemoved:
    """By a client, or in the configuration."""

    name: str
    target: str
    removed_by: str


@attrs.frozen
class ServerConnected:
    """It works, for the first time in this session."""

    name: str
    capabilities: Mapping[str, Json] | None
    protocol_version: str
    too_large: bool | None = None
    """`capabilities` are, to be told as an event; `get_server_status` has them."""


@attrs.frozen
class ServerReconnected:
    """Connected again, and what the time between has cost."""

    name: str
    capabilities: Mapping[str, Json] | None
    protocol_version: str
    type: Literal["restart", "network_blip"]
    attempts: int
    refreshed_tools: bool
    refreshed_resources: bool
    refreshed_prompts: bool
    invalidated_tasks: int
    invalidated_elicitations: int
    invalidated_sampling: int
    too_large: bool | None = None


@attrs.frozen
class ServerDisconnected:
    """The connection is lost, and what was under way on it."""

    name: str
    reason: str
    was_intentional: bool


@attrs.frozen
class ServerReconnecting:
    """A server behind a URL is going to be tried again; of a program that is `Restarting`."""

    name: str
    attempt: int
    next_retry_ms: int


@attrs.frozen
class ServerHealthDegraded:
    """It does not answer whether it is there."""

    name: str
    consecutive_failures: int
    last_error: str


@attrs.frozen
class ServerHealthRestored:
    """It answers again; how often it had not, and why."""

    name: str
    consecutive_failures: int
    last_error: str


@attrs.frozen
class ProcessStarted:
    """A server's program runs."""

    name: str
    pid: int


@attrs.frozen
class ProcessCrashed:
    """A server's program has ended by itself."""

    name: str
    pid: int
    exit_code: int | None = None
    signal: str | None = None


@attrs.frozen
class ProcessStopped:
    """By us; what is said as the *reason* is that nobody needed it any more."""

    name: str
    pid: int
    exit_code: int | None = None
    signal: str | None = None
    reason: Literal["idle"] | None = None


@attrs.frozen
class Restarting:
    """A program is going to be started again; how the last one ended."""

    name: str
    attempt: int
    next_retry_ms: int
    pid: int | None = None
    exit_code: int | None = None
    signal: str | None = None


@attrs.frozen
class Restarted:
    """The program runs again."""

    name: str
    pid: int
    attempt: int


@attrs.frozen
class RestartFailed:
    """The last try failed, or its connection was lost; nobody tries again by himself. Also of a
    server behind a URL."""

    name: str
    attempt: int
    pid: int | None = None
    exit_code: int | None = None
    signal: str | None = None


Happening: TypeAlias = (
    TaskCreated
    | TaskCompleted
    | TaskFailed
    | TaskCancelled
    | TaskExpired
    | ElicitationRequest
    | SamplingRequest
    | ElicitationExpired
    | SamplingExpired
    | ElicitationCancelled
    | SamplingCancelled
    | ElicitationAnswered
    | SamplingAnswered
    | Notification
    | TimerExpired
    | SessionShared
    | ShareConflict
    | ServerAdded
    | ServerRemoved
    | ServerConnected
    | ServerReconnected
    | ServerDisconnected
    | ServerReconnecting
    | ServerHealthDegraded
    | ServerHealthRestored
    | ProcessStarted
    | ProcessCrashed
    | ProcessStopped
    | Restarting
    | Restarted
    | RestartFailed
)
"""What an event says. Who said it and when is the event's own (`Event`)."""


@attrs.frozen
class Event:
    """One thing that happened, as it is kept and delivered."""

    id: str
    server: str
    created_at: str
    happening: Happening
    text: str
    """Its JSON, written once (`wire.new_event`); what is told beside it is added at its end."""
    size: int
    """Bytes of that, which is what the bounds count."""
    count: int = 1
    """Equal list_changed notices that collapsed into this one."""


LONGEST = 1000
"""Characters of a text in an event that is too large as a whole."""


def abridged(happening: Happening, room: int) -> Happening:
    """*happening*, or what there is *room* for; what a peer said as a whole is left out as such."""
    given = {a.name: getattr(happening, a.name) for a in attrs.fields(type(happening))}
    weights = {name: weigh(value) for name, value in given.items() if isinstance(value, _LONG)}
    if sum(weights.values()) <= room:
        return happening
    changes: dict[str, Any] = {}
    for name, value in given.items():
        if isinstance(value, str) and len(value) > LONGEST:
            changes[name] = value[:LONGEST] + "…"
        elif isinstance(value, Mapping):
            changes |= {name: None, "too_large": True}
    return attrs.evolve(happening, **changes)


_LONG = (str, Mapping)
