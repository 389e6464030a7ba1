"""A server with a connection of its own: what is asked of it, and what is known of it.

The :class:`Supervisor` keeps it connected and has the client; the other parts of a backend are what
is fetched once and known (catalogue, knowledge), what is wanted again of each connection
(preferences), and whether it is well and used. Here they meet: each connection is put to work, and
each loss is taken note of.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import TypeVar

import attrs
import trio

from ..config import Config, Lacking, Server
from ..errors import ConnectFailed
from ..model import events, facts
from ..model.states import BackendState, Cause
from .catalogue.catalog import Catalog, Entries, List
from .catalogue.knowledge import Knowledge
from .catalogue.memory import Remembered
from .children.process import Exit, Process
from .chores import Chores
from .connections.callbacks import Callbacks, Host, Params
from .connections.client import Client, Negotiated
from .connections.health import HealthCheck
from .connections.witness import NotRun
from .lifecycle import Lifecycle
from .link import Link
from .preferences import Preferences
from .reconciliation import LostWork, Reconciliation
from .retries import Retries
from .shared import Shared
from .supervisor import Supervisor
from .uses import Uses

T = TypeVar("T")


@attrs.define(eq=False, repr=False)
class Private:
    """What a session has of a server."""

    server: Server
    host: Host
    config: Config
    shared: Shared
    session_id: str
    wall: Callable[[], float]
    restricted: bool
    """Whether ``policy.network`` holds for it; a change counts from the next connection."""
    once: bool = False
    """A try that fails before one has worked is the last one; for servers that are only added if
    they work."""
    principal: str = ""
    """For whom it is connected."""
    on_demand: bool = False
    """Connected only when it is needed, whatever its entry says."""
    supervisor: Supervisor = attrs.field(init=False)
    catalog: Catalog = attrs.field(init=False)
    knowledge: Knowledge = attrs.field(init=False)
    health: HealthCheck = attrs.field(init=False)
    lost_with: LostWork = attrs.field(factory=LostWork, init=False)
    """What went with the last connection."""
    preferences: Preferences = attrs.field(init=False)
    uses: Uses = attrs.field(factory=Uses, init=False)
    _chores: Chores | None = attrs.field(default=None, init=False)
    """Of the last connection that worked."""

    def __attrs_post_init__(self) -> None:
        server, limits = self.server, self.config.limits
        is_program = server.transport == "stdio"
        self.supervisor = Supervisor(
            self,
            server,
            self.session_id,
            self.shared,
            limits.of_servers,
            self.wall,
            Lifecycle(
                server.name,
                is_program,
                self.on_demand or server.start == "lazy",
                Retries(server.restart if is_program else server.reconnect, random.random),
                self.once,
            ),
        )
        memory = None if server.start == "eager" else self.shared.memory
        self.knowledge = Knowledge(self, self.principal, memory)
        self.catalog = Catalog(
            server.name, server.allowed_tools, server.denied_tools, self.knowledge.heard
        )
        self.preferences = Preferences(server.name, self.session_id)
        self.health = HealthCheck(
            self.config.health.interval_ms / 1000, not is_program, self.wall, self._health_changed
        )
        if server.disabled:
            self.supervisor.happens(Cause.DISABLED)
        elif self.knowledge.recall():
            self.supervisor.happens(Cause.RECALLED)
        if isinstance(server, Lacking):
            self.supervisor.last_error = f"disabled: {server.lacks}"

    async def run(self) -> None:
        """The connection task; lives until :meth:`leave`, or until it is cancelled."""
        await self.supervisor.run()

    def leave(self, reason: str, patience: float) -> None:
        """Tell the connection to close; *patience* is what a child gets for each step."""
        self.supervisor.leave(reason, patience)

    # What there is of a connection, or was.

    @property
    def state(self) -> BackendState:
        return self.supervisor.life.state

    @property
    def client(self) -> Client | None:
        return self.supervisor.client

    @property
    def ended(self) -> trio.Event:
        """Nothing of it is left."""
        return self.supervisor.ended

    @property
    def connected_at(self) -> float | None:
        return self.supervisor.connected_at

    @property
    def idle_since(self) -> float | None:
        """From when on nobody has needed it, until it is connected."""
        return self.supervisor.idle_since

    @property
    def last_error(self) -> str | None:
        return self.supervisor.last_error

    @property
    def retries(self) -> Retries:
        return self.supervisor.life.tries

    @property
    def next_try(self) -> float | None:
        """When, on trio's clock."""
        return self.supervisor.life.next_try

    @property
    def next_try_ms(self) -> int:
        """How long until then."""
        return self.supervisor.life.delay_ms(trio.current_time())

    @property
    def process(self) -> Process | None:
        current = self.supervisor.life.current
        return None if current is None else current.process

    @property
    def last_process(self) -> tuple[int, float, Exit] | None:
        """Pid, start and end of the child that ran last."""
        return self.supervisor.last_process

    @property
    def unstarted(self) -> str | None:
        """What there is to say to who waits for a connection, while there is none."""
        if self.client is not None:
            return None
        how = "starting" if self.server.transport == "stdio" else "being connected"
        return f"server {self.server.name!r} is {self.starting or how}"

    @property
    def starting(self) -> str | None:
        """What there is to say of a program that has not answered yet, to whoever waits for it."""
        current = self.supervisor.life.current
        start = None if current is None else current.start
        return None if start is None else start.describe()

    @property
    def starting_still(self) -> str | None:
        """The same to everybody, if it takes long."""
        current = self.supervisor.life.current
        start = None if current is None else current.start
        return start.describe() if start is not None and start.takes_long else None

    @property
    def waits_for_turn(self) -> bool:
        """Others start, and its program has to wait until it may."""
        current = self.supervisor.life.current
        start = None if current is None else current.start
        return start is not None and start.waits_for_turn

    @property
    def shared_with(self) -> None:
        """Nobody may."""
        return None

    # What is asked of it.

    def wake(self) -> None:
        """Connect now, if that waits for somebody who needs it."""
        self.supervisor.wake()

    async def connection(self) -> Client:
        """See :meth:`.Supervisor.connection`."""
        return await self.supervisor.connection()

    async def reconnect(self, by: str = "") -> Client:
        """See :meth:`.Supervisor.reconnect`."""
        self.uses.touch()
        return await self.supervisor.reconnect()

    async def ask(self, exchange: Callable[[Client], Awaitable[T]]) -> T:
        """Do *exchange* with the client, waiting for it if need be.

        Once more if it was not run: the server has forgotten our session, or could not even be
        connected to, and whoever called has nothing to do with that. Nothing else is repeated.
        """
        with self.uses.one():
            try:
                return await exchange(await self.connection_to_ask())
            except NotRun:
                return await exchange(await self.connection_to_ask())  # noqa: ASYNC120 - then it is the cancellation that counts

    async def connection_to_ask(self) -> Client:
        """Who was there, and cannot be asked any more, has run nothing."""
        if (client := self.supervisor.client) is not None:
            return client
        try:
            return await self.connection()
        except ConnectFailed as error:
            if self.supervisor.life.before is None or self.server.transport == "stdio":
                raise
            details = {**(error.details or {}), "may_have_run": False}
            raise ConnectFailed(error.message, details) from None

    def roots_changed(self) -> None:
        """It is told others from now on, if it listens."""
        if self.client is not None and not self.client.negotiated.is_modern:
            self.client.notify("notifications/roots/list_changed")

    async def follow_changes(self) -> Params:
        """Have a modern backend send what is subscribed now; what it agreed to.

        Raises:
            MCPError: it does not do that, or it is gone.
            TimeoutError: it does not say.
        """
        chores, current = self._chores, self.supervisor.life.current
        if chores is None or chores.listening is None or chores.link is not current:
            raise self.supervisor.gone()
        with (
            self.uses.one(),
            trio.move_on_after(self.config.limits.execute_timeout_ms / 1000),
        ):
            return await chores.listening.follow()
        raise TimeoutError(f"server {self.server.name!r} did not acknowledge the subscription")

    # What is known of it.

    def remembered(self, name: List) -> Remembered | None:
        """A list of a server that nobody has needed yet.

        None also if there is, or soon will be, a connection that had to be.
        """
        return None if self.idle_since is None else self.knowledge.lists.get(name)

    def old(self, name: List) -> Entries:
        """A list as this session was told it last, or would have been."""
        if (kept := self.catalog.kept(name)) is not None:
            return kept
        known = self.knowledge.lists.get(name) if self.knowledge.is_recalled else None
        return [] if known is None else known.entries

    @property
    def agreed(self) -> Negotiated | None:
        """What it is, as far as that is known."""
        if self.client is not None:
            return self.client.negotiated
        return None if self.idle_since is None else self.knowledge.negotiated

    @property
    def is_used(self) -> bool:
        """Something is under way, a resource is followed, or a question is open."""
        return bool(self.uses or self.preferences.subscribed() or self.knowledge.is_learning)

    # What its supervisor reports: see supervisor.Kept.

    def callbacks(self, link: Link) -> Callbacks:
        return Callbacks(
            self.server.name,
            self.host,
            self._list_changed,
            link.why_over,
            link.over,
            self.uses.one,
        )

    def connected(
        self, link: Link, client: Client, before: Link | None
    ) -> AbstractAsyncContextManager[None]:
        self.knowledge.connected(client)
        self.catalog.all_stale()
        if self.preferences.log_level is not None:
            client.log_level = self.preferences.log_level
        reconciliation = None if before is None else Reconciliation(self, before, client)
        self._chores = Chores(self, link, client, reconciliation)
        return self._chores.done()

    def lost(self) -> None:
        if self._chores is not None:
            self._chores.over()
        self.lost_with = LostWork()

    def given_up(self) -> None:
        self.knowledge.forget()

    def publish(self, happening: events.Happening) -> None:
        self.host.publish(self.server.name, happening)

    def _list_changed(self, name: str) -> None:
        """The server says so."""
        self.catalog.stale(name)
        self.knowledge.outdated(name)

    def _health_changed(self, is_well: bool, failures: int, last_error: str) -> None:
        name = self.server.name
        self.supervisor.happens(Cause.WELL if is_well else Cause.UNWELL)
        if (link := self.supervisor.life.current) is not None:
            link.note(facts.ConnectionRestored if is_well else facts.ConnectionDegraded)
        if is_well:
            self.publish(events.ServerHealthRestored(name, failures, last_error))
        else:
            self.publish(events.ServerHealthDegraded(name, failures, last_error))
        self.supervisor.log(
            "info" if is_well else "warn",
            "server_health_restored" if is_well else "server_health_degraded",
            error=last_error,
        )
