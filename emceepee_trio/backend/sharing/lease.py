"""What one session has of a connection that it shares: to tools, a backend like any other.

All that is known of the server is the hub's; what the session has asked for, what it follows, and
what it has lost is its own. If the hub is split the lease goes on with a connection of its own:
what is under way stays where it is, and nothing is asked twice.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Protocol, TypeVar

import attrs
import trio

from ...config import Server
from ...errors import ServerDisconnected, ToolError
from ...model import events, facts
from ...model.protocol.levels import at_least
from ...model.states import BackendState
from ..connections.callbacks import Host, Params
from ..connections.client import Client
from ..connections.witness import NotRun
from ..preferences import Preferences
from ..private import Private
from ..reconciliation import LostWork
from .hub import Hub
from .mirror import Mirror

T = TypeVar("T")

SESSION_ENDED = "session ended"
"""A reason to leave after which another session may come for the server."""


class Tenant(Host, Protocol):
    """Who has a lease: a session."""

    @property
    def id(self) -> str: ...

    @property
    def principal(self) -> str: ...

    @property
    def client_name(self) -> str: ...

    @property
    def on_demand(self) -> bool:
        """It starts no server that it does not need."""
        ...


@attrs.define(eq=False, repr=False)
class Lease(Mirror):
    hub: Hub
    tenant: Tenant
    preferences: Preferences = attrs.field(init=False)
    ended: trio.Event = attrs.field(factory=trio.Event, init=False)
    _own: Private | None = attrs.field(default=None, init=False)
    _lost_with: LostWork = attrs.field(factory=LostWork, init=False)
    _left: str | None = attrs.field(default=None, init=False)
    """Why, once it is given back."""
    _under_way: int = attrs.field(default=0, init=False)
    """Exchanges with the hub's connection."""
    _waits: set[trio.CancelScope] = attrs.field(factory=set, init=False)
    """For a connection."""
    _changed: trio.Event = attrs.field(factory=trio.Event, init=False)
    """It has a connection of its own, or is given back."""
    _is_untold: bool = attrs.field(init=False)
    """That it is connected, since it was before we came."""
    _is_noted: bool = attrs.field(default=False, init=False)
    """That the session has it."""

    def __attrs_post_init__(self) -> None:
        self.preferences = Preferences(self.server.name, self.tenant.id)
        self.hub.take(self)
        self._is_untold = self.hub.backend.client is not None

    @property
    def _at(self) -> Private:
        return self.hub.backend if self._own is None else self._own

    # The task.

    async def run(self) -> None:
        try:
            self._begin()
            await self._changed.wait()
            if self._own is not None:
                await self._own.run()
            else:
                await self.hub.until_over()
        finally:
            self._give_back(SESSION_ENDED)
            self.ended.set()

    def _begin(self) -> None:
        if self._left is not None or self._own is not None:
            return
        # Not before: a session is known only when it has all its servers.
        self._note(facts.LeaseTaken)
        self._is_noted = True
        agreed, start = self.agreed, self.server.start
        if self._is_untold and self.client is not None and agreed is not None:
            self._is_untold = False
            capabilities, version = agreed.capabilities, agreed.protocol_version
            self.hear(events.ServerConnected(self.server.name, capabilities, version))
        at_once = {BackendState.NOT_CONNECTED, BackendState.ERROR}
        if start == "eager":
            at_once.add(BackendState.IDLE)
        if self.state in at_once and start != "lazy" and not self.on_demand:
            self.wake()

    def leave(self, reason: str, patience: float) -> None:
        if self._own is not None:
            self._own.leave(reason, patience)
        self._give_back(reason)

    def _give_back(self, reason: str) -> None:
        if self._left is not None:
            return
        was_connected = self._own is None and self.hub.backend.client is not None
        self._left = reason
        self._note_over()
        self.hub.give_back(self, is_wanted=reason == SESSION_ENDED)
        for scope in tuple(self._waits):
            scope.cancel(reason)
        if was_connected:
            name = self.server.name
            self.tenant.publish(name, events.ServerDisconnected(name, reason, True))
        self._changed.set()

    # What the hub says.

    def hear(self, happening: events.Happening) -> None:
        """What a session is told of its server; not any more of one that it has left behind."""
        if isinstance(happening, events.ServerConnected | events.ServerDisconnected):
            self._is_untold = False
        if self._own is None:
            self.tenant.publish(self.server.name, happening)

    def lost(self) -> None:
        self._lost_with = LostWork()

    def wants(self, level: str) -> bool:
        chosen = self.preferences.log_level
        return chosen is None or at_least(chosen)(level)

    def move(self) -> None:
        """To a connection of its own; what is under way stays where it is."""
        hub, who = self.hub, self.tenant
        # Most of those who shared it have not needed it yet.
        on_demand = who.on_demand or self.server.start != "eager"
        own = self._own = Private(
            self.server,
            who,
            hub.config,
            hub.shared,
            who.id,
            hub.wall,
            hub.backend.restricted,
            False,
            who.principal,
            on_demand,
        )
        own.preferences = self.preferences
        if self.preferences.subscribed():
            own.wake()
        self._changed.set()
        self._note_over()
        self._leave_hub_when_idle()

    def _note_over(self) -> None:
        if self._is_noted:
            self._is_noted = False
            self._note(facts.LeaseOver)

    def _note(self, kind: type[facts.LeaseTaken | facts.LeaseOver]) -> None:
        self.hub.shared.journal.note(kind, self.tenant.id, self.server.name, self.hub.id)

    def _leave_hub_when_idle(self) -> None:
        if self._own is not None and not self._under_way:
            self.hub.give_back(self, is_wanted=True)

    # What is asked of it.

    def wake(self) -> None:
        self._at.wake()

    async def connection(self) -> Client:
        client, _ = await self._connected(lambda at: at.connection())
        return client

    async def reconnect(self, by: str = "") -> Client:
        def again(at: Private) -> Awaitable[Client]:
            self.hub.audience.reconnects(self, by)
            return at.reconnect()

        client, _ = await self._connected(again)
        return client

    async def _connected(
        self, wait: Callable[[Private], Awaitable[Client]]
    ) -> tuple[Client, Private]:
        """The client that *wait* comes to, and whose it is; of another one if we move meanwhile.

        Raises:
            ToolError: there is none.
        """
        while self._left is None:
            at = self._at
            try:
                with self._waiting(), at.uses.one():
                    client = await wait(at)
            except ToolError:
                if self._at is at and self._left is None:
                    raise
                continue
            if self._left is not None or self._at is not at:
                continue
            if at is self._own:
                return client, at
            if not self.hub.suits(self):
                self.hub.part(self)
                continue
            return self.hub.client_of(self, client), at
        raise self._gone()

    @contextmanager
    def _waiting(self) -> Generator[None]:
        """Cancelled when it is given back."""
        with trio.CancelScope() as scope:
            self._waits.add(scope)
            try:
                yield
            finally:
                self._waits.discard(scope)

    def _gone(self) -> ServerDisconnected:
        return ServerDisconnected(
            f"server {self.server.name!r} is no longer here ({self._left})",
            {"may_have_run": False},
        )

    async def ask(self, exchange: Callable[[Client], Awaitable[T]]) -> T:
        """As :meth:`.Private.ask`."""
        try:
            return await self._ask(exchange)
        except NotRun:
            return await self._ask(exchange)  # noqa: ASYNC120 - then it is the cancellation that counts

    async def _ask(self, exchange: Callable[[Client], Awaitable[T]]) -> T:
        client, at = await self._connected(lambda at: at.connection_to_ask())
        # No checkpoint in between: where it begins is where it ends, split or not.
        is_shared = at is not self._own
        self._under_way += is_shared
        try:
            with at.uses.one():
                return await exchange(client)
        finally:
            self._under_way -= is_shared
            self._leave_hub_when_idle()

    async def follow_changes(self) -> Params:
        agreed = dict(await self._at.follow_changes())
        mine = self.preferences.subscribed()
        uris = agreed.get("resourceSubscriptions")
        if isinstance(uris, list):
            agreed["resourceSubscriptions"] = [uri for uri in uris if uri in mine]
        return agreed

    def roots_changed(self) -> None:
        if self._own is not None:
            self._own.roots_changed()
        elif self._left is None:
            self.hub.roots_changed(self)

    # What is known.

    @property
    def server(self) -> Server:
        return self.hub.server

    @property
    def on_demand(self) -> bool:
        return self.tenant.on_demand

    @property
    def restricted(self) -> bool:
        return self._at.restricted

    @restricted.setter
    def restricted(self, value: bool) -> None:
        self.hub.backend.restricted = self._at.restricted = value

    @property
    def state(self) -> BackendState:
        if self._left is not None and self._own is None:
            return BackendState.DISCONNECTED
        return self._at.state

    @property
    def has_moved(self) -> bool:
        """To a connection of its own."""
        return self._own is not None

    @property
    def shared_with(self) -> Sequence[str] | None:
        if self._own is not None:
            return None
        return [each.tenant.client_name for each in self.hub.leases if each is not self]

    @property
    def client(self) -> Client | None:
        client = self._at.client
        if client is None or self._own is not None:
            return client
        return None if self._left is not None else self.hub.client_of(self, client)

    @property
    def lost_with(self) -> LostWork:
        return self._lost_with if self._own is None else self._own.lost_with
