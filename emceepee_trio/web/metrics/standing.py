"""How things stand in all sessions at this moment, counted when a monitor asks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import attrs
import trio

from ...backend.children.footprint import footprints
from ...backend.sharing.hub import Hub
from ...journal import Journal
from ...model.json.intake import Steps
from ...session.manager import SessionManager
from ...session.session import Session
from ...telemetry.labels import Labels
from ...waits.slices import in_slices
from ...waits.watchdog import SlowSteps
from .families import Family, one


@attrs.define(eq=False)
class Standing:
    """Sums over sessions, taken one after the other: others run meanwhile."""

    labels: Labels
    sessions: int = 0
    calls: Counter[str] = attrs.field(factory=Counter)
    """By what they wait for."""
    tasks: int = 0
    waiters: int = 0
    questions: Counter[str] = attrs.field(factory=Counter)
    oldest: float = 0.0
    """Seconds for which the oldest of those has been open."""
    backends: Counter[tuple[str, str]] = attrs.field(factory=Counter)
    """By server and state."""
    leases: Counter[str] = attrs.field(factory=Counter)
    """Of connections that sessions have together, by server."""
    shared: Counter[str] = attrs.field(factory=Counter)
    """Those connections, whoever has them, likewise."""
    children: dict[int, str] = attrs.field(factory=dict)
    """Servers, by the pids of their programs."""
    memory: Counter[str] = attrs.field(factory=Counter)
    """Bytes, by server."""

    def add(self, session: Session) -> None:
        self.sessions += 1
        self.waiters += session.presence.waiters
        for call in session.calls.unsettled():
            asks = "question" if call.needs_answers else call.waiting_on
            self.calls[asks] += 1
            self.tasks += call.task is not None
        for kind in ("elicitation", "sampling"):
            for question in session.questions.open(kind):
                self.questions[kind] += 1
                self.oldest = max(self.oldest, trio.current_time() - question.asked_at)
        for name, backend in session.backends.items():
            server = self.labels.server(name)
            self.backends[server, backend.state.value] += 1
            self.leases[server] += backend.shared_with is not None
            if (process := backend.process) is not None:
                self.children[process.pid] = server

    def add_hub(self, hub: Hub) -> None:
        if hub.backend.client is not None:
            self.shared[self.labels.server(hub.server.name)] += 1

    def families(self) -> Iterator[Family]:
        yield one("sessions", "Sessions.", self.sessions)
        yield Family(
            "calls_under_way",
            "gauge",
            "Calls of tools without an outcome, tasks among them, by what they wait for: a "
            "connection, the answer of a server, or the answer to a question.",
            ("waiting_on",),
            {(each,): self.calls[each] for each in ("connection", "answer", "question")},
        )
        yield one("tasks_working", "Calls without an outcome that have become tasks.", self.tasks)
        yield one("waiters", "Requests that wait for news or for a result.", self.waiters)
        yield Family(
            "questions_open",
            "gauge",
            "Questions of servers that nobody has answered yet.",
            ("kind",),
            {(each,): self.questions[each] for each in ("elicitation", "sampling")},
        )
        yield one(
            "oldest_question_age_seconds",
            "How long the oldest open question has waited; 0 if there is none.",
            self.oldest,
        )
        yield Family(
            "backends",
            "gauge",
            "Servers as sessions have them, by state; states in which there is none are left out.",
            ("server", "state"),
            self.backends,
        )
        yield Family(
            "leases",
            "gauge",
            "Sessions that may use a connection together with others, connected or not.",
            ("server",),
            {(server,): count for server, count in self.leases.items() if count},
        )
        yield Family(
            "shared_connections",
            "gauge",
            "Connections that sessions of one principal have together.",
            ("server",),
            {(server,): count for server, count in self.shared.items()},
        )
        yield Family(
            "children",
            "gauge",
            "Programs that run for servers.",
            ("server",),
            Counter((server,) for server in self.children.values()),
        )
        yield Family(
            "children_resident_bytes",
            "gauge",
            "Memory of programs and of all that they have started; shared pages count for each.",
            ("server",),
            {(server,): count for server, count in self.memory.items()},
        )


async def standing(manager: SessionManager, labels: Labels) -> Standing:
    """At this moment, or soon after."""
    found = await in_slices(_sums(manager, labels))
    for pid, footprint in (await footprints(found.children)).items():
        found.memory[found.children[pid]] += footprint.resident
    return found


def _sums(manager: SessionManager, labels: Labels) -> Steps[Standing]:
    found = Standing(labels)
    for session in manager.sessions():
        found.add(session)
        yield
    for hub in () if manager.sharing is None else list(manager.sharing.hubs()):
        found.add_hub(hub)
    return found


def of_daemon(journal: Journal, slow: SlowSteps, listening: int, version: str) -> Iterator[Family]:
    """What is of no session."""
    yield Family(
        "build_info", "gauge", "Always 1; which version runs.", ("version",), {(version,): 1}
    )
    yield one(
        "listening_clients",
        "Clients of the handshake era that read what is said to them of its own accord.",
        listening,
    )
    yield Family(
        "slow_steps_total",
        "counter",
        "Times that everybody had to wait for one task for 20 ms of processor time or more.",
        (),
        {(): slow.count},
    )
    yield one("longest_step_seconds", "The longest time of such a wait.", slow.longest)
    yield Family(
        "facts_dropped_total",
        "counter",
        "Facts that a reader of the record had no room for, as a timeline of a long session has "
        "none, or that it has failed to read.",
        ("reader",),
        _dropped(journal),
    )


def _dropped(journal: Journal) -> Counter[tuple[str]]:
    """By name: some have one for each kind of facts, and one room for all of them."""
    dropped, crowded_out = Counter[tuple[str]](), Counter[tuple[str]]()
    for reader in journal.readers:
        dropped[reader.name,] += reader.failures
        crowded_out[reader.name,] = max(crowded_out[reader.name,], reader.crowded_out())
    for name, count in crowded_out.items():
        dropped[name] += count
    return dropped
