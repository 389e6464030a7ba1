"""Which servers one session has: each under its name, from when it is added until it is removed.

They run in the session's outer nursery, which is told to leave and not cancelled; so some run that
have no name, because they are not added yet, or close their connection in their own time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import attrs
import trio

from ... import logs
from ...backend.backend import Backend
from ...backend.children.process import PATIENCE
from ...backend.private import Private
from ...backend.shared import Shared
from ...backend.sharing.lease import Tenant
from ...backend.sharing.sharing import Sharing
from ...config import Config, Server
from ...model import events
from ...model.events import Happening
from ...model.text.redact import label
from ...waits.firewall import Firewall, begin
from .planned import Planned


@attrs.define(eq=False)
class Backends(Mapping[str, Backend]):
    """Those of one session that have names, by them."""

    host: Tenant
    config: Config
    shared: Shared
    nursery: trio.Nursery
    planned: Planned
    new_id: Callable[[], str]
    wall: Callable[[], float]
    sharing: Sharing | None
    running: set[Backend] = attrs.field(factory=set, init=False)
    """Also those without a name: not yet added, or no longer."""
    _named: dict[str, Backend] = attrs.field(factory=dict, init=False)
    _going: dict[Backend, str] = attrs.field(factory=dict, init=False)
    """Removed, and by whom; that is still to be told."""

    def __getitem__(self, name: str) -> Backend:
        return self._named[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._named)

    def __len__(self) -> int:
        return len(self._named)

    def start(self, server: Server, *, restricted: bool, is_planned: bool = False) -> Backend:
        """Begin to connect, under the server's name from now on. Waits for nothing."""
        backend = self.begin(server, restricted=restricted)
        self._named[server.name] = backend
        if is_planned:
            self.planned.add(server.name)
        return backend

    def begin(self, server: Server, *, restricted: bool, once: bool = False) -> Backend:
        """Begin to connect, without a name yet."""
        self.planned.discard(server.name)
        backend = self._lease(server, restricted, once) or self._private(server, restricted, once)
        self.running.add(backend)
        begin(
            self.nursery,
            self._wall("backend_crashed", server.name),
            self._run,
            backend,
            name=f"backend {server.name} of {label(self.host.id)}",
        )
        return backend

    def _private(self, server: Server, restricted: bool, once: bool) -> Backend:
        return Private(
            server,
            self.host,
            self.config,
            self.shared,
            self.host.id,
            self.wall,
            restricted,
            once,
            self.host.principal,
            self.host.on_demand,
        )

    def _lease(self, server: Server, restricted: bool, once: bool) -> Backend | None:
        """Of a connection that other sessions of the same principal have, too."""
        if server.scope != "principal" or server.disabled or self.sharing is None:
            return None
        return self.sharing.lease(
            server,
            self.host,
            self.config,
            self.shared,
            self.new_id,
            self.wall,
            restricted=restricted,
            once=once,
        )

    async def _run(self, backend: Backend) -> None:
        if self.shared.tracing is not None:
            self.shared.tracing.apart()
        try:
            await backend.run()
        finally:
            self.running.remove(backend)

    def put(self, backend: Backend) -> None:
        """One that has begun gets its name; who had that has been dropped."""
        self.make_way(backend.server.name)
        self._named[backend.server.name] = backend

    def drop(self, name: str, reason: str, patience: float) -> Backend | None:
        """Take it out of the session at once; it closes its connection in its own time."""
        backend = self._named.pop(name, None)
        if backend is not None:
            backend.leave(reason, patience)
        return backend

    def remove(self, name: str, by: str) -> trio.Event | None:
        """Take it out at once, for good; an event for when it is gone and that is told."""
        backend = self.drop(name, "removed", PATIENCE)
        if backend is None:
            return None
        self._going[backend] = by
        gone = trio.Event()
        begin(self.nursery, self._wall("removal_crashed", name), self._say_when_gone, backend, gone)
        return gone

    async def _say_when_gone(self, backend: Backend, gone: trio.Event) -> None:
        # In the session's own time: the request that wants it may be cancelled.
        try:
            await backend.ended.wait()
            self._say_gone(backend)
        finally:
            gone.set()

    def _say_gone(self, backend: Backend) -> None:
        by = self._going.pop(backend, None)
        if by is not None:
            self.say_removed(backend.server, by)

    def make_way(self, name: str) -> None:
        """Another one of that name comes: what was removed is told before, gone or not."""
        for backend in [going for going in self._going if going.server.name == name]:
            self._say_gone(backend)

    def say_added(self, server: Server, by: str) -> None:
        self.make_way(server.name)
        self.host.publish(server.name, events.ServerAdded(server.name, server.target, by))
        logs.write("info", "server_added", session=self.host.id, server=server.name, by=by)

    def say_removed(self, server: Server, by: str) -> None:
        self.host.publish(server.name, events.ServerRemoved(server.name, server.target, by))
        logs.write("info", "server_removed", session=self.host.id, server=server.name, by=by)

    def leave(self, patience: float) -> None:
        """The session has ended."""
        self._named.clear()
        for backend in self.running:
            backend.leave("session ended", patience)

    def happened(self, server: str, happening: Happening) -> None:
        """Something has, to one of them: it may be part of a loss that is told as a whole."""
        if (backend := self._named.get(server)) is not None:
            backend.lost_with.count(happening)

    def _wall(self, event: str, server: str) -> Firewall:
        return Firewall(event, fields={"session": self.host.id, "server": server})
