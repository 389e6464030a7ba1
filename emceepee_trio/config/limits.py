"""What anybody can use up: how many, how much, how long."""

from __future__ import annotations

from typing import Annotated

from ..model.json.fields import Bounds, Doc, frozen
from ..model.json.intake import Measure
from .bounds import (
    DAY,
    KIB,
    MAX_AWAIT_TIMEOUT_MS,
    MAX_CHILDREN,
    MAX_EXECUTE_TIMEOUT_MS,
    MAX_TASK_TTL_MS,
    MIB,
    MIN_TASK_TTL_MS,
    MINUTE,
    SECOND,
)


@frozen
class Limits:
    """What anybody can use up."""

    sessions: Annotated[int, Bounds(1, 100_000), Doc("Sessions at once.")] = 1000
    session_idle_ms: Annotated[
        int,
        Bounds(SECOND, 30 * DAY),
        Doc("A session with nothing under way, and no stream with a reader, ends."),
    ] = 5 * MINUTE
    servers: Annotated[int, Bounds(1, 10_000), Doc("Servers, configured and added.")] = 100
    calls: Annotated[
        int,
        Bounds(1, 100_000),
        Doc("Requests in flight per session that may wait for a server, tool calls and others."),
    ] = 256
    starting: Annotated[
        int | None,
        Bounds(1, MAX_CHILDREN),
        Doc("Programs that start at once, of all sessions; as many as there are cores by default."),
    ] = None
    execute_timeout_ms: Annotated[
        int,
        Bounds(0, MAX_EXECUTE_TIMEOUT_MS),
        Doc("How long execute_tool waits before it promotes, if the call does not say."),
    ] = 2 * MINUTE
    await_timeout_ms: Annotated[
        int,
        Bounds(0, MAX_AWAIT_TIMEOUT_MS),
        Doc("How long await_activity waits, if the call does not say."),
    ] = 30 * SECOND
    answer_ms: Annotated[
        int,
        Bounds(100, MAX_EXECUTE_TIMEOUT_MS),
        Doc(
            "No request is held longer, whatever its timeout_ms says, unless its client is known "
            "to be more patient."
        ),
    ] = 45 * SECOND
    reissue_ms: Annotated[
        int,
        Bounds(0, 10 * MINUTE),
        Doc(
            "How long a call goes on whose client has lost the stream of its answer, in the modern "
            "era, so that it can be sent again and joined; 0: it is cancelled at once."
        ),
    ] = 30 * SECOND
    list_patience_ms: Annotated[
        int, Bounds(0, 5 * MINUTE), Doc("How long lists wait for servers that connect.")
    ] = 5 * SECOND
    calls_bytes: Annotated[
        int,
        Bounds(64 * KIB, 16_384 * MIB),
        Doc("Arguments of calls and tasks under way, together, in bytes."),
    ] = 64 * MIB
    tasks: Annotated[int, Bounds(1, 100_000), Doc("Working tasks per session.")] = 100
    task_ttl_ms: Annotated[
        int,
        Bounds(MIN_TASK_TTL_MS, MAX_TASK_TTL_MS),
        Doc("How long a task may work, if the call does not say."),
    ] = 10 * MINUTE
    finished_task_ms: Annotated[
        int, Bounds(SECOND, DAY), Doc("How long a finished task is kept.")
    ] = 5 * MINUTE
    results: Annotated[int, Bounds(1, 100_000), Doc("Finished results kept per session.")] = 200
    results_bytes: Annotated[
        int, Bounds(64 * KIB, 16_384 * MIB), Doc("Their size together, in bytes.")
    ] = 64 * MIB
    questions: Annotated[int, Bounds(1, 10_000), Doc("Open questions per session.")] = 100
    questions_bytes: Annotated[
        int, Bounds(64 * KIB, 1024 * MIB), Doc("Their size together, in bytes.")
    ] = 4 * MIB
    question_timeout_ms: Annotated[
        int, Bounds(SECOND, DAY), Doc("How long a question waits for its answer.")
    ] = 10 * MINUTE
    events: Annotated[int, Bounds(10, 1_000_000), Doc("Events kept per session.")] = 1000
    events_bytes: Annotated[
        int, Bounds(64 * KIB, 1024 * MIB), Doc("Their size together, in bytes.")
    ] = 4 * MIB
    events_ms: Annotated[int, Bounds(SECOND, DAY), Doc("How long an event is kept.")] = 30 * MINUTE
    facts: Annotated[
        int,
        Bounds(0, 10_000),  # of so many, those that go first are found while others wait
        Doc(
            "Facts kept per session, for its timeline on the page, of about 256 bytes each; what "
            "is over goes first. 0: there are no timelines."
        ),
    ] = 5000
    facts_in_all: Annotated[
        int,
        Bounds(100, 1_000_000),
        Doc("The same of all sessions together; of those that have ended they go first."),
    ] = 100_000
    notifications: Annotated[
        int, Bounds(1, 100_000), Doc("Notifications kept per server, together at most 1 MiB.")
    ] = 100
    logs: Annotated[int, Bounds(1, 100_000), Doc("Log lines kept per server.")] = 500
    log_bytes: Annotated[
        int, Bounds(256, MIB), Doc("A longer log line is cut to this, in bytes.")
    ] = 16 * KIB
    message: Annotated[
        int, Bounds(64 * KIB, 1024 * MIB), Doc("One line or body of a server, in bytes.")
    ] = 16 * MIB
    body: Annotated[int, Bounds(4 * KIB, 1024 * MIB), Doc("A client's request, in bytes.")] = (
        4 * MIB
    )
    values: Annotated[
        int,
        Bounds(10_000, 100_000_000),
        Doc("Values in one message of anybody; lists and objects count twice."),
    ] = 1_000_000
    body_values: Annotated[
        int,
        Bounds(10_000, 100_000_000),
        Doc("Values in one message of a client, if that is less: no model writes so many."),
    ] = 100_000

    @property
    def of_clients(self) -> Measure:
        """What one message of theirs may be."""
        if self.body_values < self.values:
            return Measure(self.body, self.body_values, "limits.body_values")
        return Measure(self.body, self.values)

    @property
    def of_servers(self) -> Measure:
        return Measure(self.message, self.values)
