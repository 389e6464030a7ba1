"""What the things of a session can become, as tables.

Theory of operation: each thing with a life (a task, a question, a backend connection, a call) is
in one state at a time, and a table lists every step it may take, with what causes it. The tables
are used three times: :func:`step` refuses a move that is not in them, the diagrams that clients
can read are drawn from them, and the property tests walk them. Whatever is not in the table
cannot happen. That of a backend decides as well: each of its arrows has a :class:`Cause` of its
own, and :func:`follow` says where that leads.
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


class Cause(enum.Enum):
    """What moves a backend. In no state do two arrows have the same."""

    DISABLED = "disabled in its entry"
    RECALLED = "what it has is known"
    DUE = "its time has come"
    WANTED = "somebody needs it"
    WORKS = "handshake done"
    FAILED = "try failed, another will follow"
    FAILED_FOR_GOOD = "try failed, no other will follow"
    UNWELL = "a health check failed"
    WELL = "a health check passed"
    LOST = "connection lost, a try will follow"
    LOST_FOR_GOOD = "connection lost, no try will follow"
    LOST_BESIDE = "connection lost, a try to replace it is under way"
    LEFT = "reconnect_server"
    UNUSED = "not used for idle_stop_ms"
    REMOVED = "removed"


class LinkState(enum.Enum):
    """One connection of a backend, from the try to make it until nothing of it is left."""

    OPENING = "opening"
    GIVEN_UP = "given_up"
    WORKING = "working"
    OVER = "over"
    TOLD = "told"
    ENDED = "ended"


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


def follow(table: Table, source: S, cause: enum.Enum) -> S:
    """Where *cause* leads from *source*, if the table says so."""
    for arrow in table.steps:
        if arrow.source is source and arrow.cause == cause.value:
            assert isinstance(arrow.target, type(source))
            return arrow.target
    raise ImpossibleStep(f"{table.name}: {source.value}, {cause.value}")


def _caused(
    rows: Mapping[enum.Enum, Iterable[tuple[enum.Enum, enum.Enum]]],
) -> tuple[Step, ...]:
    return tuple(Step(a, b, cause.value) for a, arrows in rows.items() for b, cause in arrows)


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

_LOSSES = (
    (BackendState.RECONNECTING, Cause.LOST),
    (BackendState.ERROR, Cause.LOST_FOR_GOOD),
    (BackendState.CONNECTING, Cause.LOST_BESIDE),
    (BackendState.CONNECTING, Cause.LEFT),
    (BackendState.IDLE, Cause.UNUSED),
    (BackendState.DISCONNECTED, Cause.REMOVED),
)

BACKEND = Table(
    name="backend_states",
    description="One backend of one session, as list_servers reports it",
    start=BackendState.NOT_CONNECTED,
    entered="configured or added",
    steps=_caused(
        {
            BackendState.NOT_CONNECTED: [
                (BackendState.CONNECTING, Cause.DUE),
                (BackendState.CONNECTING, Cause.WANTED),
                (BackendState.IDLE, Cause.RECALLED),
                (BackendState.DISABLED, Cause.DISABLED),
                (BackendState.DISCONNECTED, Cause.REMOVED),
            ],
            BackendState.IDLE: [
                (BackendState.CONNECTING, Cause.WANTED),
                (BackendState.DISCONNECTED, Cause.REMOVED),
            ],
            BackendState.CONNECTING: [
                (BackendState.CONNECTED, Cause.WORKS),
                (BackendState.RECONNECTING, Cause.FAILED),
                (BackendState.ERROR, Cause.FAILED_FOR_GOOD),
                (BackendState.DISCONNECTED, Cause.REMOVED),
            ],
            BackendState.CONNECTED: [
                (BackendState.DEGRADED, Cause.UNWELL),
                *_LOSSES,
            ],
            BackendState.DEGRADED: [
                (BackendState.CONNECTED, Cause.WELL),
                *_LOSSES,
            ],
            BackendState.RECONNECTING: [
                (BackendState.CONNECTING, Cause.DUE),
                (BackendState.CONNECTING, Cause.WANTED),
                (BackendState.DISCONNECTED, Cause.REMOVED),
            ],
            BackendState.ERROR: [
                (BackendState.CONNECTING, Cause.WANTED),
                (BackendState.DISCONNECTED, Cause.REMOVED),
            ],
        }
    ),
)

LINK = Table(
    name="connection_states",
    description="One connection of a backend; what is to be told of it is told once",
    start=LinkState.OPENING,
    entered="a try begins",
    steps=_steps(
        {
            LinkState.OPENING: [
                (LinkState.WORKING, "handshake done"),
                (LinkState.GIVEN_UP, "left"),
                (LinkState.ENDED, "failed"),
            ],
            LinkState.GIVEN_UP: [(LinkState.ENDED, "nothing of it is left")],
            LinkState.WORKING: [(LinkState.OVER, "left, or nothing will come any more")],
            LinkState.OVER: [(LinkState.TOLD, "at once; of a program that we end, once it has")],
            LinkState.TOLD: [(LinkState.ENDED, "nothing of it is left")],
        }
    ),
)
