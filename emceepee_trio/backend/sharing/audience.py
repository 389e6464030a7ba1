"""Who hears what of a shared connection.

Each session is told what it would be told of a connection of its own. What may be of any of them,
they are told only if the configuration says so.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import attrs
from mcp import MCPError
from mcp_types import INTERNAL_ERROR

from ...model import events, facts
from ..connections.callbacks import Abandoned, Kind, LogLine, Params
from .wire import NOBODY

if TYPE_CHECKING:
    from .hub import Hub
    from .lease import Lease

ENDED = (events.ProcessStopped, events.ProcessCrashed)


@attrs.define(eq=False)
class Audience:
    """The :class:`~..connections.callbacks.Host` of a hub's backend: all who have a lease of it."""

    _hub: Hub
    departing: list[Lease] = attrs.field(factory=list, init=False)
    """Given back, and wait for the end of the program."""
    _listeners: Sequence[Lease] | None = attrs.field(default=None, init=False)
    """Of what the server says in this very step."""
    _reconnecting: tuple[Lease, str] | None = attrs.field(default=None, init=False)
    """Who has asked for another connection, and what others are told of it."""

    @property
    def principal(self) -> str:
        return self._hub.principal

    @property
    def extensions(self) -> Params:
        """Those that every client knows."""
        of_all = [each.tenant.extensions for each in self._hub.leases]
        if not of_all:
            return {}
        first, *others = of_all
        return {name: said for name, said in first.items() if all(name in o for o in others)}

    def reconnects(self, lease: Lease, by: str) -> None:
        """That lease has asked for another connection, for a client *by* that name."""
        self._reconnecting = lease, f"reconnected by {by}"

    @contextmanager
    def speaking_to(self, leases: Sequence[Lease]) -> Generator[None]:
        """What is said in here, and may be of any session, is for these alone."""
        self._listeners = leases
        try:
            yield
        finally:
            self._listeners = None

    def publish(self, server: str, happening: events.Happening) -> None:
        for lease in tuple(self._hub.leases):
            lease.hear(self._as_told(lease, happening))
        if isinstance(happening, ENDED):
            for lease in self.departing:
                lease.tenant.publish(server, happening)
        if isinstance(happening, events.ServerDisconnected):
            self._hub.disconnected()

    def _as_told(self, lease: Lease, happening: events.Happening) -> events.Happening:
        match happening:
            case events.ServerReconnected():
                lost = lease.lost_with
                return attrs.evolve(
                    happening,
                    invalidated_tasks=lost.tasks,
                    invalidated_elicitations=lost.elicitations,
                    invalidated_sampling=lost.sampling,
                )
            case events.ServerDisconnected(reason="reconnect") if self._reconnecting is not None:
                whose, reason = self._reconnecting
                return happening if lease is whose else attrs.evolve(happening, reason=reason)
        return happening

    def notified(self, server: str, method: str, params: Params | None) -> None:
        for lease in self._hub.here if self._listeners is None else self._listeners:
            lease.tenant.notified(server, method, params)

    def logged(self, line: LogLine) -> None:
        listeners = self._listeners
        if listeners is None:
            listeners = self._hub.here if self._hub.server.share_logs else ()
        if not listeners:
            self._hub.owner.unshown(self.principal, line)
            self._hub.shared.journal.note(facts.LineLogged, self._hub.id, line.server)
        for lease in listeners:
            if line.source != "protocol" or lease.wants(line.level):
                lease.tenant.logged(line)

    async def ask(
        self, server: str, kind: Kind, params: Params, abandoned: Callable[[], Abandoned]
    ) -> dict[str, Any]:
        """A question that came of no lease's request."""
        raise MCPError(code=INTERNAL_ERROR, message=NOBODY)

    async def list_roots(self, server: str) -> list[dict[str, Any]]:
        return self.roots(server)

    def roots(self, server: str) -> list[dict[str, Any]]:
        """For what is no lease's; nothing that could be of one, if they differ."""
        roots = self._hub.common_roots()
        return [{}] if roots is None else roots
