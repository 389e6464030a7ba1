"""What one session knows of a server that it is not connected to, and learns when it is.

It begins with what the memory of the daemon holds. A connection soon has those lists looked at that
its session has not asked for, so that the next one knows them; where they are not what this one was
told, that is a change like one that the server tells. The catalogue is no part of it: it fetches a
list when the session asks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import trio
from mcp import MCPError

from ...config.roots import as_roots
from ...errors import ToolError
from ...model.json.weight import weigh
from ..connections.callbacks import LIST_CHANGED
from ..connections.client import Client, Negotiated
from .catalog import SOURCES, Entries, List
from .memory import KnownServer, Memory, Remembered

if TYPE_CHECKING:
    from ..private import Private

PAUSE = 0.5
"""Seconds from a connection until we look ourselves: what its session asks for need not be."""
PATIENCE = 30.0
"""Seconds for one list; one that takes longer is not known, and asked for by whoever wants it."""


@attrs.define(eq=False)
class Knowledge:
    _backend: Private
    _principal: str
    _memory: Memory | None
    """None: of servers that are connected at once, whatever is known."""
    negotiated: Negotiated | None = attrs.field(default=None, init=False)
    """As it was agreed upon last."""
    lists: dict[List, Remembered] = attrs.field(factory=dict, init=False)
    """As they came last."""
    is_recalled: bool = attrs.field(default=False, init=False)
    """There was something to tell before it was connected."""
    is_learning: bool = attrs.field(default=False, init=False)
    _name: str = attrs.field(default="", init=False)
    """Of its entry."""
    _connected_at: float = attrs.field(default=0.0, init=False)
    """On the wall clock."""
    _told: dict[List, Remembered] = attrs.field(factory=dict, init=False)
    """What was known before that."""
    _new: set[List] = attrs.field(factory=set, init=False)
    """Lists that have come since."""

    def recall(self) -> bool:
        """Whether there is something."""
        if self._memory is None:
            return False
        backend = self._backend
        roots = backend.server.roots
        roots = backend.config.roots if roots is None else roots
        self._name = self._memory.name(backend.server, self._principal, roots)
        if (known := self._memory.recall(self._name)) is not None:
            self.negotiated, self.is_recalled = known.negotiated, True
            self.lists.update(known.lists)
        return self.is_recalled

    def connected(self, client: Client) -> None:
        """From here on lists are those of this connection."""
        self.negotiated, self._connected_at = client.negotiated, self._backend.wall()
        self._told, self._new = dict(self.lists), set()
        for name, source in SOURCES.items():
            if source.capability not in client.negotiated.capabilities:
                self.heard(name, [], 0)
        self._keep()

    async def learn(self, client: Client, is_first: bool) -> None:
        """Look at what there is, and tell what has changed, unless a reconciliation does."""
        wanted = SOURCES if self._memory is not None else self._told if is_first else ()
        if not wanted:
            return
        self.is_learning = True
        try:
            await trio.sleep(PAUSE)
            for name in SOURCES:
                if name in wanted and name not in self._new:
                    await self._look_at(name, client)
        finally:
            self.is_learning = False
        if is_first:
            self._tell_changes()

    def _tell_changes(self) -> None:
        changed = {
            name
            for name, before in self._told.items()
            if name in self._new
            and (now := self.lists.get(name)) is not None
            and now.entries != before.entries
        }
        for method, names in LIST_CHANGED.items():
            if not changed.isdisjoint(names):
                self._backend.host.notified(self._backend.server.name, method, None)

    async def _look_at(self, name: List, client: Client) -> None:
        with trio.move_on_after(PATIENCE):
            try:
                await self._backend.catalog.look(name, client)
            except (MCPError, ToolError):
                pass

    def heard(self, name: List, entries: Entries, size: int) -> None:
        """That is what this list is now."""
        self.lists[name] = Remembered(entries, self._backend.wall(), size)
        self._new.add(name)
        self._keep()

    def outdated(self, name: str) -> None:
        """It is not that any more; this session has been told, and will see it."""
        self.lists = {each: kept for each, kept in self.lists.items() if each != name}

    def _keep(self) -> None:
        """Have the memory know as much."""
        memory, agreed, server = self._memory, self.negotiated, self._backend.server
        if memory is None or agreed is None or not self._is_told_what_is_configured():
            return
        said = (agreed.capabilities, agreed.server_info, agreed.instructions)
        size = weigh(said) + sum(each.size for each in self.lists.values())
        private = (*server.env.values(), *server.headers.values())
        known = KnownServer(agreed, dict(self.lists), self._connected_at, size, private)
        memory.learn(self._name, known, server.name)

    def forget(self) -> None:
        """It does not work: the next session shall find out at once, and not when it needs it."""
        if self._memory is not None:
            self._memory.forget(self._name)

    def _is_told_what_is_configured(self) -> bool:
        """What is known is known of these roots; a client may have chosen others since."""
        backend = self._backend
        roots = backend.server.roots
        configured = as_roots((backend.config.roots or ()) if roots is None else roots)
        return backend.host.roots(backend.server.name) == [root.to_json() for root in configured]
