"""How a session stands: as it has it itself, and as its facts have it, which is to be the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import attrs

from emceepee_trio.backend.private import Private
from emceepee_trio.backend.sharing.lease import Lease
from emceepee_trio.model.states import BackendState
from emceepee_trio.model.timeline.replay import Timeline
from emceepee_trio.model.timeline.rows import Row
from emceepee_trio.session.session import Session

UNSENT = {"turn", "connection", "reconnection", "preparation"}
TRYING = {"turn", "trying"}


@attrs.frozen
class Standing:
    calls: Mapping[str, str]
    """What each of those that are not settled waits for."""
    fates: Mapping[str, str]
    """Of tasks that are kept."""
    questions: Mapping[str, tuple[str, str, str]]
    """Those that are open: of which kind and server, and with whom."""
    up: Mapping[tuple[str, str], int]
    """Connections, by server, and whether they are well."""
    trying: Mapping[str, int]
    timers: frozenset[str]


def connected_by(session: Session) -> list[Private]:
    """Who keeps its servers connected: for it alone, or for all who share one."""
    found = []
    for backend in session.backends.running:
        if isinstance(backend, Private):
            found.append(backend)
        elif isinstance(backend, Lease) and backend.state is not BackendState.DISCONNECTED:
            found.append(backend._at)
    return found


def as_it_is(session: Session) -> Standing:
    calls, questions = session.calls, session.questions
    unsettled = [calls._calls[each] for each in (*calls.places, *calls._working)]
    links = [
        link
        for backend in connected_by(session)
        for link in (backend.supervisor.life.current, backend.supervisor.life.beside)
        if link is not None and link.client is None and not link.ended.is_set()
    ]
    return Standing(
        calls={
            call.id: ("question" if call.open_questions else "server")
            if call.is_sent
            else "connection"
            for call in unsettled
        },
        fates={call.id: call.task.status.value for call in calls.finished if call.task},
        questions={
            each.id: (each.kind, each.server, "client" if each.is_relayed else "tools")
            for each in questions._open.values()
        },
        up=Counter(
            (backend.server.name, "unwell" if backend.state is BackendState.DEGRADED else "up")
            for backend in session.backends.running
            if backend.client is not None
        ),
        trying=Counter(link.server.name for link in links),
        timers=frozenset(timer.timer_id for timer in session.timers.list(include_inactive=False)),
    )


def as_it_was_noted(timeline: Timeline, kept: Mapping[str, str]) -> Standing:
    """*kept*: the tasks whose fate is asked for."""

    def rows(kind: str) -> list[Row]:
        return [row for row in timeline.rows.values() if row.kind == kind and row.ends is None]

    links = rows("connection")
    return Standing(
        calls={
            row.id: "connection" if row.phase in UNSENT else str(row.phase) for row in rows("call")
        },
        # What has answered with an error is an error here, and completed for its client.
        fates={
            name: timeline.rows["call", name].outcome.replace("error", "completed") for name in kept
        },
        questions={row.id: (row.name, row.server, str(row.phase)) for row in rows("question")},
        up=Counter((row.server, str(row.phase)) for row in links if row.phase in {"up", "unwell"}),
        trying=Counter(row.server for row in links if row.phase in TRYING),
        timers=frozenset(row.id for row in rows("timer")),
    )


def check_standing(session: Session, timeline: Timeline) -> None:
    stands = as_it_is(session)
    assert as_it_was_noted(timeline, stands.fates) == stands
    by_name = Counter(backend.server.name for backend in session.backends.running)
    for row in timeline.rows.values():
        if row.kind == "call" and row.phase in UNSENT and by_name[row.server] == 1:
            (backend,) = (each for each in connected_by(session) if each.server.name == row.server)
            assert (row.phase == "preparation") == (backend.client is not None)
            # What others were connected to before, who comes later does not know.
            if row.phase == "connection" and backend.session_id == session.id:
                assert backend.supervisor.life.before is None
