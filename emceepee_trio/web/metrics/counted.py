"""What has happened, counted: the reader of facts for monitors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs
from prometheus_client import CollectorRegistry, Counter, Histogram

from ...errors import NotFound
from ...model import facts
from ...model.facts import Fact
from ...model.states import TaskState
from ...telemetry.labels import Labels
from .families import Family

SECONDS = (0.01, 0.05, 0.25, 1.0, 5.0, 30.0, 120.0, 600.0, 1800.0)
"""Calls take a moment, as long as their client waits, or as long as a task may live."""
ERROR = "error"
"""The outcome of a call that has come to a result which says that it failed."""


@attrs.define(eq=False)
class Counted:
    """Of one daemon, since it has started."""

    labels: Labels
    registry: CollectorRegistry = attrs.field(factory=lambda: CollectorRegistry(auto_describe=True))
    readers: Mapping[type[Fact], Callable[[Any], object]] = attrs.field(init=False)
    """What to do with each kind of fact."""
    families: list[Family] = attrs.field(factory=list, init=False)
    """What there is, without values."""
    _calls: dict[tuple[str, str, str], Histogram] = attrs.field(factory=dict, init=False)
    """By server, tool and outcome: a look at one table for a call like others before it."""
    _delivered: dict[int, int] = attrs.field(factory=dict, init=False)
    """Events in each delivery that is on its way."""

    def __attrs_post_init__(self) -> None:
        self.readers = {**self._of_calls(), **self._of_sessions(), **self._of_servers()}

    def read(self, fact: Fact) -> None:
        self.readers[type(fact)](fact)

    def _counter(self, name: str, what: str, *labels: str) -> Counter:
        family = Family(f"{name}_total", "counter", what, labels)
        self.families.append(family)
        return Counter(family.full_name, what, labels, registry=self.registry)

    def _histogram(self, name: str, what: str, *labels: str) -> Histogram:
        family = Family(name, "histogram", what, labels)
        self.families.append(family)
        return Histogram(family.full_name, what, labels, buckets=SECONDS, registry=self.registry)

    def _by_server(self, counter: Counter, *labels: str) -> Callable[[str], Counter]:
        """The one of each server, which is looked for once if it is called as its server is."""
        known: dict[str, Counter] = {}

        def of(server: str) -> Counter:
            if (found := known.get(server)) is None:
                named = self.labels.server(server)
                found = counter.labels(named, *labels)
                if named == server:  # else it may have a place later, or there are too many
                    known[server] = found
            return found

        return of

    def _of_calls(self) -> Mapping[type[Fact], Callable[[Any], object]]:
        took = self._histogram(
            "call_duration_seconds",
            "Calls of tools of servers, from their begin to their outcome: completed, error (the "
            "server says that the tool failed), failed, cancelled or expired.",
            *("server", "tool", "outcome"),
        )
        asked = self._counter(
            "call_arguments_bytes", "Arguments of calls, about as many bytes.", "server"
        )
        promoted = self._counter(
            "promotions", "Calls that have become tasks, because their client waits no longer.",
            "server",
        )  # fmt: skip
        resent = self._counter(
            "calls_sent", "Calls handed to their server; again, if it has not run one."
        )
        asked_of, promoted_of = self._by_server(asked), self._by_server(promoted)
        read = self._counter("results_read", "Results of tasks that clients have fetched.")
        forgotten = self._counter(
            "results_forgotten", "Results of tasks that are kept no longer, read or not."
        )

        def settled(fact: facts.CallSettled) -> None:
            outcome = ERROR if fact.is_error else fact.fate.value
            key = fact.server, fact.tool, outcome
            if (known := self._calls.get(key)) is None:
                exists = fact.fate is not TaskState.FAILED or fact.code != NotFound.code
                named = self.labels.tool(fact.server, fact.tool, exists=exists)
                known = took.labels(*named, outcome)
                if named == key[:2]:  # else it may have a place later, or there are too many
                    self._calls[key] = known
            known.observe(fact.duration_ms / 1000)

        return {
            facts.CallBegun: lambda f: asked_of(f.server).inc(f.args_bytes),
            facts.CallSent: lambda f: resent.inc(),
            facts.CallPromoted: lambda f: promoted_of(f.server).inc(),
            facts.CallSettled: settled,
            facts.ResultRead: lambda f: read.inc(),
            facts.ResultEvicted: lambda f: forgotten.inc(),
        }

    def _of_sessions(self) -> Mapping[type[Fact], Callable[[Any], object]]:
        opened = self._counter("sessions_opened", "Sessions that have begun.")
        ended = self._counter("sessions_ended", "Sessions that are over, and why.", "reason")
        asked = self._counter(
            "questions", "Questions of servers, elicitations and samplings.", "server", "kind"
        )
        took = self._histogram(
            "question_duration_seconds",
            "How long questions were open: answered, cancelled, late (nobody answered in time), "
            "rejected (their server cannot hear an answer) or unheard.",
            *("kind", "outcome"),
        )
        told = self._counter("events_told", "Events in answers that were handed over.")
        evicted = self._counter(
            "events_evicted", "Events for which there was no room or time before anybody was told."
        )
        streams = self._counter("streams_opened", "Streams to clients of the handshake era.")
        resumed = self._counter("streams_resumed", "Streams that a client has come back to.")
        lost = self._counter(
            "stream_messages_evicted", "Messages that a client should have had, and will not get."
        )
        said = self._counter(
            "told_bytes",
            "What models were given to read of a server: definitions of what it has, and results.",
            *("server", "kind"),
        )

        definitions_of = self._by_server(said, "definitions")
        results_of = self._by_server(said, "results")

        def tell(fact: facts.Tallied) -> None:
            if fact.definitions:
                definitions_of(fact.server).inc(fact.definitions)
            if fact.results:
                results_of(fact.server).inc(fact.results)

        def made(fact: facts.DeliveryMade) -> None:
            self._delivered[fact.delivery] = fact.events

        return {
            facts.SessionOpened: lambda f: opened.inc(),
            facts.SessionEnded: lambda f: ended.labels(f.reason).inc(),
            facts.QuestionOpened: lambda f: asked.labels(
                self.labels.server(f.server), f.kind
            ).inc(),
            facts.QuestionClosed: lambda f: took.labels(f.kind, f.why).observe(
                f.duration_ms / 1000
            ),
            facts.EventEvicted: lambda f: evicted.inc(),
            facts.Tallied: tell,
            facts.DeliveryMade: made,
            facts.DeliveryHandedOver: lambda f: told.inc(self._delivered.pop(f.delivery, 0)),
            facts.DeliveryGivenBack: lambda f: self._delivered.pop(f.delivery, None),
            facts.DeliveryLost: lambda f: self._delivered.pop(f.delivery, None),
            facts.StreamOpened: lambda f: streams.inc(),
            facts.StreamResumed: lambda f: resumed.inc(),
            facts.StreamEvicted: lambda f: lost.inc(f.count),
        }

    def _of_servers(self) -> Mapping[type[Fact], Callable[[Any], object]]:
        tries = self._counter("connection_tries", "Tries to connect to a server.", "server")
        up = self._counter("connections", "Connections that worked.", "server")
        again = self._counter(
            "reconnects", "Connections that took the place of one that had worked.", "server"
        )
        lost = self._counter(
            "connections_lost",
            "Connections that ended though nobody here has ended them.",
            "server",
        )
        degraded = self._counter(
            "connections_degraded", "Connections whose health checks have begun to fail.", "server"
        )
        split = self._counter(
            "share_conflicts",
            "Times that a shared server became each session's own, for it wanted to know "
            "something and nobody could say of which session: elicitation, sampling or roots.",
            *("server", "why"),
        )
        started = self._counter("children_started", "Programs started for servers.", "server")
        killed = self._counter(
            "children_ended",
            "Programs that have ended, and how: exit, error (with a code), or which signal.",
            *("server", "how"),
        )

        up_of, again_of = self._by_server(up), self._by_server(again)

        def connected(fact: facts.ConnectionUp) -> None:
            up_of(fact.server).inc()
            if fact.is_again:
                again_of(fact.server).inc()

        def ended(fact: facts.ChildEnded) -> None:
            how = fact.signal or ("error" if fact.code else "exit")
            killed.labels(self.labels.server(fact.server), how).inc()

        def by_server(counter: Counter) -> Callable[[Any], None]:
            of = self._by_server(counter)
            return lambda fact: of(fact.server).inc()

        lost_of = by_server(lost)
        return {
            facts.ConnectionTrying: by_server(tries),
            facts.ConnectionUp: connected,
            facts.ConnectionLost: lambda f: None if f.is_ours else lost_of(f),
            facts.ConnectionDegraded: by_server(degraded),
            facts.SharingSplit: lambda f: split.labels(self.labels.server(f.server), f.why).inc(),
            facts.ChildStarted: by_server(started),
            facts.ChildEnded: ended,
        }
