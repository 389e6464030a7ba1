"""What the things of a session can become, as tables.

Theory of operation: each thing with a life (a task, a question, a backend connection, a call) is
in one state at a time, and a table lists every step it may take, with what causes it. The tables
are used three times: :func:`step` refuses a move that is not in them, the diagrams that clients
can read are drawn from them, and the property tests walk them. Whatever is not in the table
cannot happen.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from typing import TypeVar

import attrs

from ..errors import EmceepeeError


class TaskState(enum.Enum):
    """A call that outlived the patience of its request."""

    WORKING = "working"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    EXPIRED = "expired"


class QuestionState(enum.Enum):
    """A request of a backend that waits for the client. Sampling completes, forms are accepted."""

    PENDING = "pending"
    ACCEPTED = "accepted"
    DECLINED = "declined"
    COMPLETED = "completed"
    CANCELLED = "cancelled"
    EXPIRED = "expired"
    REJECTED = "rejected"


class CallState(enum.Enum):
    """A tool call, from the request to its one fate."""

    IN_FLIGHT = "in_flight"
    PROMOTED = "promoted_to_task"
    RETURNED = "returned_result"
    FAILED = "returned_error"
    CANCELLED = "cancelled"


class BackendState(enum.Enum):
    """One backend of one session, as list_servers reports it."""

    NOT_CONNECTED = "not_connected"
    IDLE = "idle"
    CONNECTING = "connecting"
    CONNECTED = "connected"
    DEGRADED = "degraded"
    RECONNECTING = "reconnecting"
    DISCONNECTED = "disconnected"
    ERROR = "error"
    DISABLED = "disabled"


S = TypeVar("S", bound=enum.Enum)


@attrs.frozen
class Step:
    """One arrow of a table."""

    source: enum.Enum
    target: enum.Enum
    cause: str


@attrs.frozen
class Table:
    """Every step a thing may take; *start* is how it is born, *entered* why."""

    name: str
    description: str
    start: enum.Enum
    entered: str
    steps: tuple[Step, ...]
    kept: str = ""
    """What happens to it once it is final, for the diagram."""

    def follows(self, source: enum.Enum) -> frozenset[enum.Enum]:
        return frozenset(step.target for step in self.steps if step.source is source)

    def is_final(self, state: enum.Enum) -> bool:
        return not self.follows(state)

    @property
    def states(self) -> tuple[enum.Enum, ...]:
        """In the order in which the table first names them."""
        seen = [self.start]
        for step in self.steps:
            seen += [state for state in (step.source, step.target) if state not in seen]
        return tuple(seen)


class ImpossibleStep(EmceepeeError):
    """A bug: the table has no such arrow."""


def step(table: Table, source: S, target: S) -> S:
    """*target*, if the table allows it."""
    if target not in table.follows(source):
        raise ImpossibleStep(f"{table.name}: {source.value} -> {target.value}")
    return target


def _steps(
    rows: Mapping[enum.Enum, Iterable[tuple[enum.Enum, str]]],
) -> tuple[Step, ...]:
    return tuple(Step(a, b, cause) for a, arrows in rows.items() for b, cause in arrows)


TASK = Table(
    name="proxy_task_states",
    description="A tool call that outlived its timeout and goes on in the background",
    start=TaskState.WORKING,
    entered="execute_tool wait ends first",
    steps=_steps(
        {
            TaskState.WORKING: [
                (TaskState.COMPLETED, "backend returns a result"),
                (TaskState.FAILED, "backend returns an error"),
                (TaskState.FAILED, "backend is lost or its call_timeout_ms passes"),
                (TaskState.CANCELLED, "client calls cancel_task"),
                (TaskState.EXPIRED, "TTL passes"),
            ]
        }
    ),
    kept="forgotten after limits.finished_task_ms",
)

ELICITATION = Table(
    name="pending_elicitation_states",
    description="A backend asks the user for input; its call waits until somebody answers",
    start=QuestionState.PENDING,
    entered="backend sends elicitation/create",
    steps=_steps(
        {
            QuestionState.PENDING: [
                (QuestionState.ACCEPTED, "respond_to_elicitation action accept"),
                (QuestionState.DECLINED, "respond_to_elicitation action decline"),
                (QuestionState.CANCELLED, "action cancel, or cancel_elicitation_request"),
                (QuestionState.CANCELLED, "backend withdraws it"),
                (QuestionState.EXPIRED, "limits.question_timeout_ms passes"),
                (QuestionState.REJECTED, "backend disconnects or is removed"),
            ]
        }
    ),
    kept="the backend has its one answer",
)

SAMPLING = Table(
    name="pending_sampling_states",
    description="A backend asks for a completion of a language model",
    start=QuestionState.PENDING,
    entered="backend sends sampling/createMessage",
    steps=_steps(
        {
            QuestionState.PENDING: [
                (QuestionState.COMPLETED, "respond_to_sampling"),
                (QuestionState.CANCELLED, "cancel_sampling_request"),
                (QuestionState.CANCELLED, "backend withdraws it"),
                (QuestionState.EXPIRED, "limits.question_timeout_ms passes"),
                (QuestionState.REJECTED, "backend disconnects or is removed"),
            ]
        }
    ),
    kept="the backend has its one answer",
)

CALL = Table(
    name="tool_call_lifecycle",
    description="A tool call: answered in time, or promoted to a task",
    start=CallState.IN_FLIGHT,
    entered="execute_tool",
    steps=_steps(
        {
            CallState.IN_FLIGHT: [
                (CallState.RETURNED, "result within timeout_ms"),
                (CallState.FAILED, "error within timeout_ms"),
                (CallState.CANCELLED, "client cancels the request"),
                (CallState.PROMOTED, "timeout_ms passes, or the client gives up waiting"),
            ]
        }
    ),
    kept="answered once",
)

BACKEND = Table(
    name="backend_states",
    description="One backend of one session, as list_servers reports it",
    start=BackendState.NOT_CONNECTED,
    entered="configured or added",
    steps=_steps(
        {
            BackendState.NOT_CONNECTED: [
                (BackendState.CONNECTING, "eager start, or first use"),
                (BackendState.IDLE, "what it has is known"),
                (BackendState.DISABLED, "disabled in its entry"),
                (BackendState.DISCONNECTED, "removed"),
            ],
            BackendState.IDLE: [
                (BackendState.CONNECTING, "first use"),
                (BackendState.DISCONNECTED, "removed"),
            ],
            BackendState.CONNECTING: [
                (BackendState.CONNECTED, "handshake done"),
                (BackendState.RECONNECTING, "try failed, another will follow"),
                (BackendState.ERROR, "try failed, no other will follow"),
                (BackendState.DISCONNECTED, "removed"),
            ],
            BackendState.CONNECTED: [
                (BackendState.DEGRADED, "a health check failed"),
                (BackendState.RECONNECTING, "connection lost"),
                (BackendState.CONNECTING, "reconnect_server"),
                (BackendState.ERROR, "connection lost, restarts are off"),
                (BackendState.IDLE, "not used for idle_stop_ms"),
                (BackendState.DISCONNECTED, "removed"),
            ],
            BackendState.DEGRADED: [
                (BackendState.CONNECTED, "a health check passed"),
                (BackendState.RECONNECTING, "third failed health check, or connection lost"),
                (BackendState.CONNECTING, "reconnect_server"),
                (BackendState.ERROR, "connection lost, restarts are off"),
                (BackendState.IDLE, "not used for idle_stop_ms"),
                (BackendState.DISCONNECTED, "removed"),
            ],
            BackendState.RECONNECTING: [
                (BackendState.CONNECTING, "the delay passed, or somebody calls"),
                (BackendState.DISCONNECTED, "removed"),
            ],
            BackendState.ERROR: [
                (BackendState.CONNECTING, "reconnect_server, or somebody calls"),
                (BackendState.DISCONNECTED, "removed"),
            ],
        }
    ),
    kept="",
)
