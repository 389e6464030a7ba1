"""What is done, and told, when a server is back: of a restart or of a network that blinked.

Nothing that was under way survives either; what the server remembers of us may. Lists that we had
are fetched again, and a change is told only of those that really differ.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import attrs
import trio
from mcp import MCPError

from ..errors import ToolError
from ..model import events
from .catalogue.catalog import SOURCES, Entries, List
from .connections.callbacks import LIST_CHANGED
from .connections.client import Client

if TYPE_CHECKING:
    from .link import Link
    from .private import Private

PATIENCE = 5.0
"""Seconds to find all that out; what a server does not answer by then counts as not refreshed."""

What = Literal["restart", "network_blip"]


@attrs.define(eq=False)
class LostWork:
    """What went with a connection, counted from its loss on."""

    tasks: int = 0
    elicitations: int = 0
    sampling: int = 0

    def count(self, happening: events.Happening) -> None:
        match happening:
            case events.TaskFailed(reason="server_disconnected"):
                self.tasks += 1
            case events.ElicitationExpired(reason="server_disconnected" | "server_reconnected"):
                self.elicitations += 1
            case events.SamplingExpired(reason="server_disconnected" | "server_reconnected"):
                self.sampling += 1


@attrs.define(eq=False)
class Reconciliation:
    """Of one connection that is not the first."""

    backend: Private
    before: Link
    """The connection that there was."""
    client: Client
    what: What = attrs.field(default="restart", init=False)
    _fresh: set[List] = attrs.field(factory=set, init=False)
    _told: bool = attrs.field(default=False, init=False)

    async def run(self) -> None:
        backend = self.backend
        had = {name: backend.catalog.kept(name) for name in SOURCES}
        with trio.move_on_after(PATIENCE):
            if not self.client.negotiated.is_modern:
                await backend.preferences.repeat(self.client)
            self.what = await self._find_out()
            for name, entries in had.items():
                if entries is not None:
                    await self._refresh(name)
        self.tell()
        for method, names in LIST_CHANGED.items():
            if any(self._differs(name, had[name]) for name in names if name in self._fresh):
                backend.host.notified(backend.server.name, method, None)

    async def _find_out(self) -> What:
        """Whether the server is the same one, and remembers us."""
        before = self.before.client
        assert before is not None  # it was connected
        http = before.http
        if http is None or self.client.http is None:
            return "restart"  # a program: another process
        await self.before.ended.wait()  # it may have ended its session itself
        if before.negotiated.server_info != self.client.negotiated.server_info or http.session_gone:
            return "restart"
        if http.session_id is None:
            return "network_blip"
        status = http.deleted
        if status is None:
            status = await self.client.http.end_session(
                http.session_id, before.negotiated.protocol_version
            )
        return "network_blip" if status is not None and status < 300 else "restart"

    async def _refresh(self, name: List) -> None:
        try:
            await self.backend.catalog.get(name, self.client)
        except (MCPError, ToolError):
            return
        self._fresh.add(name)

    def _differs(self, name: List, had: Entries | None) -> bool:
        return had is not None and had != self.backend.catalog.kept(name)

    def tell(self) -> None:
        """Once; at the latest before anything else is told of this connection."""
        if self._told:
            return
        self._told = True
        backend, agreed = self.backend, self.client.negotiated
        lost = backend.lost_with
        backend.publish(
            events.ServerReconnected(
                backend.server.name,
                agreed.capabilities,
                agreed.protocol_version,
                self.what,
                backend.retries.attempt,
                "tools" in self._fresh,
                "resources" in self._fresh,
                "prompts" in self._fresh,
                lost.tasks,
                lost.elicitations,
                lost.sampling,
            )
        )
