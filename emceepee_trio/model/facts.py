"""What has happened, as it is noted for whoever keeps a record of it.

A fact says of which session it is, when it was noted, and the ids that tie it to others. Sizes are
in it, and names; never an argument, a result, what a server or a client wrote, a header or a token.
The id of a session is one to those who have no other: whoever shows a fact shows its label.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import attrs

from .states import QuestionState, TaskState

Kind: TypeAlias = Literal["elicitation", "sampling"]
Closing: TypeAlias = Literal["answered", "cancelled", "late", "rejected", "unheard"]
"""Why a question is not open any more: rejected if its server cannot hear an answer, unheard if the
client could not be told of it."""
TimerStatus: TypeAlias = Literal["active", "fired", "deleted", "failed"]
Unanswerable: TypeAlias = Literal["elicitation", "sampling", "roots"]
"""What a shared server wanted to know, and nobody can say of whom."""


@attrs.frozen
class Fact:
    at: float
    """When, as the clock of the journal has it."""
    session: str


@attrs.frozen
class SessionOpened(Fact):
    """It is one client's."""

    principal: str


@attrs.frozen
class SessionNamed(Fact):
    """Its client has said what it is called."""

    client: str


@attrs.frozen
class SessionEnded(Fact):
    """Nothing of it runs any more."""

    reason: str


@attrs.frozen
class LineLogged(Fact):
    """What a server writes, or says to be logged, is kept for a while."""

    server: str


@attrs.frozen
class CallBegun(Fact):
    """A tool of a server is called."""

    call: str
    server: str
    tool: str
    has_args: bool
    args_bytes: int
    """About as many."""
    within: str | None
    """The call of the script that makes it."""


@attrs.frozen
class CallQueued(Fact):
    """A script, for which others of its session have to end first."""

    call: str


@attrs.frozen
class CallSent(Fact):
    """Its server has it, or soon will. Again, if the server has said that it has not run it."""

    call: str


@attrs.frozen
class CallReturned(Fact):
    """Its server has not run it: it waits for a connection again."""

    call: str


@attrs.frozen
class CallAsked(Fact):
    """It may be waiting for the answer of that question."""

    call: str
    question: str


@attrs.frozen
class CallPromoted(Fact):
    """It is a task. If it was settled in the very tick, that is noted before."""

    call: str
    server: str
    tool: str
    ttl_ms: int


@attrs.frozen
class CallSettled(Fact):
    """It has its fate."""

    call: str
    server: str
    tool: str
    fate: TaskState
    """Also of one that is no task."""
    is_task: bool
    duration_ms: int
    code: int | str | None
    """Of its error."""
    is_error: bool = False
    """It came to a result, of which its server says that it is an error."""


@attrs.frozen
class ResultKept(Fact):
    """What a task has come to, for whoever fetches it."""

    call: str
    size: int
    """With its arguments, about as many bytes."""


@attrs.frozen
class ResultRead(Fact):
    """It was fetched."""

    call: str


@attrs.frozen
class ResultTold(Fact):
    """It is in an answer, or what is shown of it."""

    call: str
    size: int
    """About as many bytes of it as a model reads."""


@attrs.frozen
class ResultEvicted(Fact):
    """There is no such task any more."""

    call: str


@attrs.frozen
class QuestionOpened(Fact):
    """A server waits for an answer."""

    question: str
    kind: Kind
    server: str
    call: str | None
    """The call that it is asked for, if its server says."""
    size: int


@attrs.frozen
class QuestionTold(Fact):
    """It is among the events that the client is told of."""

    question: str
    kind: Kind
    server: str


@attrs.frozen
class QuestionRelayed(Fact):
    """The client itself is asked."""

    question: str


@attrs.frozen
class QuestionLeft(Fact):
    """It is not any more, and the tools are to answer."""

    question: str


@attrs.frozen
class QuestionClosed(Fact):
    """It has one, or needs none any more."""

    question: str
    kind: Kind
    server: str
    state: QuestionState
    why: Closing
    duration_ms: int


@attrs.frozen
class ConnectionTrying(Fact):
    """A try to connect begins."""

    server: str
    connection: int


@attrs.frozen
class ConnectionQueued(Fact):
    """Other programs have to start first."""

    server: str
    connection: int


@attrs.frozen
class ConnectionStarting(Fact):
    """It is the turn of its program."""

    server: str
    connection: int


@attrs.frozen
class ConnectionUp(Fact):
    """It works."""

    server: str
    connection: int
    is_again: bool = False
    """In the place of one that was up."""


@attrs.frozen
class ConnectionDegraded(Fact):
    """A health check has failed."""

    server: str
    connection: int


@attrs.frozen
class ConnectionRestored(Fact):
    """One has passed again."""

    server: str
    connection: int


@attrs.frozen
class ConnectionLost(Fact):
    """One that was up."""

    server: str
    connection: int
    is_ours: bool
    """We have ended it."""


@attrs.frozen
class ConnectionEnded(Fact):
    """Nothing is left of it, or of the try."""

    server: str
    connection: int


@attrs.frozen
class ChildStarted(Fact):
    """A server's program runs."""

    server: str
    connection: int
    pid: int


@attrs.frozen
class ChildEnded(Fact):
    """It has ended, by itself or by us."""

    server: str
    connection: int
    pid: int
    code: int | None
    signal: str | None


@attrs.frozen
class ConnectionLeft(Fact):
    """Its session has it no more, and others may. Readers make it of :class:`LeaseOver`."""

    server: str
    connection: int


@attrs.frozen
class SharingBegun(Fact):
    """Sessions of one principal have a server together. What is noted of its connections, and of
    this, has an id of its own in place of a session's."""

    server: str
    principal: str


@attrs.frozen
class SharingSplit(Fact):
    """Nobody can say of which session the server wants to know something: each is by itself."""

    server: str
    why: Unanswerable
    sessions: int


@attrs.frozen
class SharingOver(Fact):
    """Nothing of it runs any more."""

    server: str


@attrs.frozen
class LeaseTaken(Fact):
    """From here on what becomes of a shared connection concerns this session, too."""

    server: str
    sharing: str
    """The id that is noted in place of a session's."""


@attrs.frozen
class LeaseOver(Fact):
    """It does not any more."""

    server: str
    sharing: str


@attrs.frozen
class TimerSet(Fact):
    """A client wants to be reminded."""

    timer: str
    duration_ms: int
    repeats: bool


@attrs.frozen
class TimerFired(Fact):
    """It was."""

    timer: str


@attrs.frozen
class TimerEnded(Fact):
    """It will not fire any more."""

    timer: str
    status: TimerStatus


@attrs.frozen
class EventEvicted(Fact):
    """There was no room or time for it any more, and nobody had been told of it."""

    server: str


@attrs.frozen
class Tallied(Fact):
    """What the client's model has to read of a server, in bytes."""

    server: str
    definitions: int
    results: int


@attrs.frozen
class DeliveryMade(Fact):
    """Events are on their way out in one response."""

    delivery: int
    events: int
    more: int
    """That did not fit."""
    lost: int


@attrs.frozen
class DeliveryHandedOver(Fact):
    """That response was."""

    delivery: int


@attrs.frozen
class DeliveryGivenBack(Fact):
    """It was not; the events are told by another one."""

    delivery: int


@attrs.frozen
class DeliveryLost(Fact):
    """It cannot be written: the events are not told at all, and counted."""

    delivery: int


@attrs.frozen
class StreamOpened(Fact):
    """To a client of the handshake era, over HTTP."""

    stream: str


@attrs.frozen
class StreamResumed(Fact):
    """Its client has come back to it."""

    stream: str


@attrs.frozen
class StreamEvicted(Fact):
    """Messages that the client should have had, and will not get."""

    count: int
    evicted: int
    """In all, with these."""
