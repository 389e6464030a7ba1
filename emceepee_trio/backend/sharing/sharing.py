"""Which connections are shared, by whom, and which servers cannot be any more.

There is one in a daemon. A connection is found by its principal first, and then by the whole entry
of its server: who has another entry of that name has another connection.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import asynccontextmanager

import attrs
import trio

from ...config import Config, Server
from ...model import facts
from ...waits.firewall import Firewall, begin
from ..connections.callbacks import LogLine
from ..shared import Shared
from .hub import Hub
from .lease import Lease, Tenant

SPLIT = 1000
"""Servers remembered that cannot be shared; the oldest one is tried again."""
HURRIED = 0.3
"""Seconds a child gets for each step of its end when the daemon ends."""
LEAVING = 5.0
"""Seconds that shared connections may take to close then; then they are cut."""


@attrs.define(eq=False)
class Sharing:
    """Made by :func:`open_sharing` only."""

    _nursery: trio.Nursery
    unshown: Callable[[str, LogLine], object]
    """Given what a server logs that may be of any session of that principal."""
    _hubs: dict[str, list[Hub]] = attrs.field(factory=dict, init=False)
    """By principal. Those of which somebody may get a lease."""
    _split: deque[tuple[str, Server]] = attrs.field(factory=lambda: deque(maxlen=SPLIT), init=False)
    _running: dict[str, Hub] = attrs.field(factory=dict, init=False)
    """By their ids."""

    def lease(
        self,
        server: Server,
        tenant: Tenant,
        config: Config,
        shared: Shared,
        new_id: Callable[[], str],
        wall: Callable[[], float],
        *,
        restricted: bool,
        once: bool,
    ) -> Lease | None:
        """Of the connection of *server* that sessions of one principal share; begun if need be.

        None: it cannot be shared.
        """
        principal = tenant.principal
        if (principal, server) in self._split:
            return None
        hub = self._find(principal, server)
        if hub is None:
            make = (server, principal, config, shared, new_id(), wall, restricted, once)
            hub = Hub(*make, self)
            self._hubs.setdefault(principal, []).append(hub)
            self._running[hub.id] = hub
            shared.journal.note(facts.SharingBegun, hub.id, server.name, principal)
            crash = Firewall("sharing_crashed", fields=hub.who)
            begin(self._nursery, crash, self._run, hub, name=f"shared backend {server.name}")
        return Lease(hub, tenant)

    async def _run(self, hub: Hub) -> None:
        try:
            await hub.run()
        finally:
            del self._running[hub.id]

    def _find(self, principal: str, server: Server) -> Hub | None:
        of = (hub for hub in self._hubs.get(principal, ()) if hub.server == server)
        return next(of, None)

    def hubs(self, principal: str | None = None) -> Iterator[Hub]:
        """Of one principal, or all; also those that have been split, as long as they run."""
        return (hub for hub in self._running.values() if principal in (None, hub.principal))

    def get(self, hub_id: str) -> Hub | None:
        """One of those."""
        return self._running.get(hub_id)

    def forget(self, hub: Hub) -> None:
        hubs = self._hubs.get(hub.principal, [])
        if hub in hubs:
            hubs.remove(hub)
        if not hubs:
            self._hubs.pop(hub.principal, None)

    def split(self, hub: Hub) -> None:
        self.forget(hub)
        self._split.append((hub.principal, hub.server))

    def close(self) -> None:
        """No session is left, or will come."""
        for hub in tuple(self._running.values()):
            hub.hurry(HURRIED)


@asynccontextmanager
async def open_sharing(unshown: Callable[[str, LogLine], object]) -> AsyncGenerator[Sharing]:
    """Shared connections live in this block; leaving it ends them."""
    async with trio.open_nursery() as nursery:
        sharing = Sharing(nursery, unshown)
        try:
            yield sharing
        finally:
            sharing.close()
            nursery.cancel_scope.deadline = trio.current_time() + LEAVING
