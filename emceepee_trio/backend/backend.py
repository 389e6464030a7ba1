"""Keeping one backend of one session connected.

:class:`Backend` is the loop: connect, notice the loss, wait, connect again. Each connection is a
:class:`Link` with a task of its own that opens and closes it. There is one current client at a
time. Everything that happens is published synchronously by whoever notices it, so a call that
fails for a lost connection finds the loss already told.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from typing import TypeVar

import attrs
import trio

from .. import logs
from ..config import Config, Lacking, Server
from ..errors import ConnectFailed, Denied, ServerDisconnected, ToolError, internal
from ..model import events
from ..model.states import BACKEND, BackendState, step
from ..waits.firewall import Firewall, begin
from ..waits.slot import Slot
from .catalogue.catalog import Catalog, Entries, List
from .catalogue.knowledge import Knowledge
from .catalogue.memory import Remembered
from .children.process import PATIENCE, Exit, Process
from .comeback import Comeback, Lost
from .connections.callbacks import Host, Params
from .connections.client import Client, Negotiated
from .connections.failures import Failure
from .connections.health import Health
from .connections.witness import NotRun
from .link import IDLE, RECONNECT, Link
from .retries import Retries
from .shared import Shared
from .uses import Uses
from .wishes import Wishes

T = TypeVar("T")


@attrs.define(eq=False)
class Backend:
    """One server as one session sees it."""

    server: Server
    host: Host
    config: Config
    shared: Shared
    session: str
    wall: Callable[[], float]
    restricted: bool
    """Whether ``policy.network`` holds for it; a change counts from the next connection."""
    once: bool = False
    """A try that fails is the last one; for servers that are only added if they work."""
    principal: str = ""
    """For whom it is connected."""
    on_demand: bool = False
    """Connected only when it is needed, whatever its entry says."""
    catalog: Catalog = attrs.field(init=False)
    state: BackendState = attrs.field(default=BackendState.NOT_CONNECTED, init=False)
    client: Client | None = attrs.field(default=None, init=False)
    connected_at: float | None = attrs.field(default=None, init=False)
    idle_since: float | None = attrs.field(default=None, init=False)
    """From when on nobody has needed it, until it is connected."""
    knowledge: Knowledge = attrs.field(init=False)
    last_error: str | None = attrs.field(default=None, init=False)
    last_process: tuple[int, float, Exit] | None = attrs.field(default=None, init=False)
    """Pid, start and end of the child that ran last."""
    retries: Retries = attrs.field(init=False)
    health: Health = attrs.field(init=False)
    lost_with: Lost = attrs.field(factory=Lost, init=False)
    """What went with the last connection."""
    patience: float = attrs.field(default=PATIENCE, init=False)
    """Seconds a child gets for each step of its end."""
    ended: trio.Event = attrs.field(factory=trio.Event, init=False)
    wishes: Wishes = attrs.field(init=False)
    uses: Uses = attrs.field(factory=Uses, init=False)
    _leaving: str | None = attrs.field(default=None, init=False)
    _link: Link | None = attrs.field(default=None, init=False)
    """The connection, or the try to make one."""
    _beside: Link | None = attrs.field(default=None, init=False)
    """A try to replace a connection that works."""
    _links: trio.Nursery | None = attrs.field(default=None, init=False)
    _before: Link | None = attrs.field(default=None, init=False)
    """The connection that was lost last."""
    _is_restarting: bool = attrs.field(default=False, init=False)
    """So it was told."""
    _try: Slot[Client] = attrs.field(factory=Slot, init=False)
    """The try that is under way, or the next one."""
    _wanted: trio.Event = attrs.field(factory=trio.Event, init=False)
    """Somebody wants that try now."""

    def __attrs_post_init__(self) -> None:
        memory = None if self.server.start == "eager" else self.shared.memory
        self.knowledge = Knowledge(self, self.principal, memory)
        self.catalog = Catalog(
            self.server.name,
            self.server.allowed_tools,
            self.server.denied_tools,
            self.knowledge.heard,
        )
        self.wishes = Wishes(self.server.name, self.session)
        is_program = self.server.transport == "stdio"
        self.retries = Retries(self.server.restart if is_program else self.server.reconnect)
        self.health = Health(
            self.config.health.interval_ms / 1000, not is_program, self.wall, self._health_changed
        )
        if self.server.disabled:
            self.state = BackendState.DISABLED
        elif self.knowledge.recall():
            self._rest()
        if isinstance(self.server, Lacking):
            self.last_error = f"disabled: {self.server.lacks}"

    async def run(self) -> None:
        """The connection task; lives until :meth:`leave`, or until it is cancelled."""
        try:
            if self.server.disabled:
                return
            is_lazy = self.on_demand or self.server.start == "lazy"
            if is_lazy or self.state is BackendState.IDLE:
                await self._wanted.wait()
            while self._leaving is None:
                who = {"session": self.session, "server": self.server.name}
                with Firewall("backend_crashed", self._crashed, fields=who):
                    async with trio.open_nursery() as self._links:
                        await self._keep_connected()
                if self._leaving is None:
                    await self._wait_for_time()
        finally:
            self._links = None
            self._try.fail(self._gone())
            if self.state is not BackendState.DISABLED:
                self.state = step(BACKEND, self.state, BackendState.DISCONNECTED)
            self.ended.set()

    async def _keep_connected(self) -> None:
        assert self._links is not None
        while self._leaving is None:
            if self.state is not BackendState.CONNECTING:  # reconnect() says so at once
                self.state = step(BACKEND, self.state, BackendState.CONNECTING)
            link = self._link = Link(self)
            begin(
                self._links,
                link.wall("server_connection_crashed"),
                link.run,
                name=f"connection to {self.server.name}",
            )
            while True:  # reconnect() may put another link in this one's place
                await link.settled.wait()
                if link.client is not None:
                    await link.client.over.wait()
                if link is self._link:
                    break
                link = self._link
            if link.client is not None:
                await link.ended.wait()
            elif link.failure is not None and self._leaving is None:
                # Else leave() was here between the failure and us, and has set what we wait for.
                self._failed(link.failure)
            if self._leaving is None:
                self._tell_plan(link)
            # Who left the link wants what comes next.
            await self._wait_for_time()

    async def _wait_for_time(self) -> None:
        """Until the next try is due, or wanted."""
        with trio.move_on_at(math.inf if self.next_try is None else self.next_try):
            await self._wanted.wait()
        self.retries.next_try = None

    def _crashed(self, log_id: str) -> None:
        """Nothing of us runs any more; counts as a try that failed."""
        self.client = self.connected_at = self._link = self._beside = None
        if self._leaving is not None:
            return
        waiting = {BackendState.RECONNECTING, BackendState.ERROR, BackendState.IDLE}
        if self.state in waiting:
            self.last_error = internal(log_id)  # what was lost before waits for its time
        else:
            self._failed(Failure(internal(log_id)))

    def _rest(self) -> None:
        """Nobody needs it; the first who does starts it."""
        self.state = step(BACKEND, self.state, BackendState.IDLE)
        self.idle_since = self.wall()
        self._wanted = trio.Event()

    def _wait_for_next(self, again: bool) -> None:
        """From here on callers want the next try, whether it comes by itself or not."""
        waiting = BackendState.RECONNECTING if again else BackendState.ERROR
        self.state = step(BACKEND, self.state, waiting)
        self.idle_since = None
        self._wanted = trio.Event()

    def _tell_plan(self, link: Link) -> None:
        """What follows on the end of *link*; all that there is to say of that has been said."""
        name, tries = self.server.name, self.retries
        ended = self.last_process if self.server.transport == "stdio" else None
        pid, how = (ended[0], ended[2]) if ended is not None else (None, Exit(None, None))
        if self.state is BackendState.RECONNECTING:
            self._log("info", "server_reconnecting", attempt=tries.attempt, delay_ms=tries.delay_ms)
            if self.server.transport != "stdio":
                self.publish(events.ServerReconnecting(name, tries.attempt, tries.delay_ms))
            else:
                self._is_restarting = True
                self.publish(
                    events.Restarting(
                        name, tries.attempt, tries.delay_ms, pid, how.code, how.signal
                    )
                )
        elif (
            self.state is BackendState.ERROR
            and not self.once
            and (link.client is None or tries.retry.enabled)
        ):
            self._is_restarting = False
            self.publish(events.RestartFailed(name, tries.attempt, pid, how.code, how.signal))

    def _failed(self, failure: Failure) -> None:
        self.last_error = failure.message
        ended, self._try = self._try, Slot()
        self._wait_for_next(self.retries.plan(final=failure.final or self.once))
        if self.state is BackendState.ERROR and failure.kind is ConnectFailed:
            self.knowledge.forget()
        self._log(
            "warn", "server_reconnect_failed", attempt=self.retries.attempt, error=failure.message
        )
        ended.fail(self._unreachable(failure))

    def _unreachable(self, failure: Failure) -> ToolError:
        details = dict(failure.details)
        message = f"server {self.server.name!r}: {failure.message}"
        if self.client is not None:
            message += "; the connection that there was goes on"
        elif self.next_try is not None:
            left = max(0.0, self.next_try - trio.current_time())
            details["next_retry_ms"] = round(left * 1000)
            message += f"; next try in {left:.1f} s, await_activity tells when it is back"
        elif failure.kind is Denied:
            message += "; only the operator can allow it, by configuring this server or the policy"
        else:
            message += "; correct it, then call reconnect_server"
        return failure.kind(message, details)

    @property
    def next_try(self) -> float | None:
        """When, on trio's clock."""
        return self.retries.next_try

    def connected(self, link: Link, client: Client) -> None:
        """*link* works."""
        previous = self._link
        if previous is not None and previous is not link:
            previous.leave(RECONNECT)
            self._link, self._beside = link, None
        self.client, self.last_error = client, None
        self.connected_at, self.idle_since = self.wall(), None
        self.state = step(BACKEND, self.state, BackendState.CONNECTED)
        self.knowledge.connected(client)
        self.catalog.all_stale()
        if self.wishes.log_level is not None:
            client.log_level = self.wishes.log_level
        if self._is_restarting and link.process is not None:
            self._is_restarting = False
            self.publish(events.Restarted(self.server.name, link.process.pid, self.retries.attempt))
        agreed = client.negotiated
        if self._before is None:
            self.publish(
                events.ServerConnected(
                    self.server.name, agreed.capabilities, agreed.protocol_version
                )
            )
        else:
            link.comeback = Comeback(self, self._before, client)
        self._log(
            "info",
            "server_connected" if self._before is None else "server_reconnected",
            target=self.server.target,
        )
        self._try.set(client)

    def lost(self, link: Link) -> None:
        """*link*, which was connected, is over; from here on callers wait for the next one."""
        self.client = self.connected_at = None
        made, self._try = self._try, Slot()
        self._before, self.lost_with = link, Lost()
        if self._leaving is not None:
            made.fail(self._gone())
            return
        if link.leaving == IDLE:
            self._before = None  # whoever needs it connects it as for the first time
            self._rest()
        elif link.leaving is not None:
            self.state = step(BACKEND, self.state, BackendState.CONNECTING)
        elif self._beside is not None:
            self._link, self._beside = self._beside, None
            self.state = step(BACKEND, self.state, BackendState.CONNECTING)
        else:
            self._wait_for_next(self.retries.lost(link.connected_at))
        if not made.is_settled:  # something of ours has crashed before it was told that it works
            made.fail(self._unreachable(link.failure or Failure("lost as soon as it was made")))

    def list_changed(self, name: str) -> None:
        """The server says so."""
        self.catalog.stale(name)
        self.knowledge.outdated(name)

    def _health_changed(self, is_well: bool, failures: int, last_error: str) -> None:
        name = self.server.name
        if is_well:
            self.state = step(BACKEND, self.state, BackendState.CONNECTED)
            self.publish(events.ServerHealthRestored(name, failures, last_error))
        else:
            self.state = step(BACKEND, self.state, BackendState.DEGRADED)
            self.publish(events.ServerHealthDegraded(name, failures, last_error))
        self._log(
            "info" if is_well else "warn",
            "server_health_restored" if is_well else "server_health_degraded",
            error=last_error,
        )

    def _log(self, level: logs.Level, what: str, **fields: object) -> None:
        logs.write(level, what, session=self.session, server=self.server.name, **fields)

    def publish(self, happening: events.Happening) -> None:
        self.host.publish(self.server.name, happening)

    def _gone(self) -> ServerDisconnected:
        return ServerDisconnected(
            f"server {self.server.name!r} is no longer here ({self._leaving or 'session ended'})",
            {"may_have_run": False},
        )

    def _why_disabled(self) -> str:
        if isinstance(self.server, Lacking):
            return f"{self.last_error}; its operator can set that and restart this proxy"
        return "disabled in its configuration; enable it there"

    def wake(self) -> None:
        """Connect now, if that waits for somebody who needs it."""
        self._wanted.set()

    async def connection(self) -> Client:
        """The client, waiting for it if need be; starts a try that is only waiting for its time.

        Raises:
            ConnectFailed: the try failed.
            Denied: a policy forbids it.
            LimitReached: there are too many children.
            ServerDisconnected: the backend is being removed.
        """
        while self.client is None:
            if self.state is BackendState.DISABLED:
                raise ConnectFailed(f"server {self.server.name!r} is {self._why_disabled()}")
            if self._leaving is not None or self.ended.is_set():
                raise self._gone()
            self.wake()
            await self._try.wait_result()
        return self.client

    async def ask(self, exchange: Callable[[Client], Awaitable[T]]) -> T:
        """Do *exchange* with the client, waiting for it if need be.

        Once more if it was not run: the server has forgotten our session, or could not even be
        connected to, and whoever called has nothing to do with that. Nothing else is repeated.
        """
        with self.uses.one():
            try:
                return await exchange(await self._connection_to_ask())
            except NotRun:
                return await exchange(await self._connection_to_ask())  # noqa: ASYNC120 - then it is the cancellation that counts

    async def _connection_to_ask(self) -> Client:
        """Who was there, and cannot be asked any more, has run nothing."""
        try:
            return await self.connection()
        except ConnectFailed as error:
            if self._before is None or self.server.transport == "stdio":
                raise
            details = {**(error.details or {}), "may_have_run": False}
            raise ConnectFailed(error.message, details) from None

    async def reconnect(self) -> Client:
        """A new connection: for a url beside the old one, for a child after its end.

        Raises:
            ConnectFailed: it could not be made; over HTTP the old one goes on. As do the others.
        """
        old = self._link
        if self.client is None or old is None or self._links is None:
            return await self.connection()
        self.uses.touch()
        if self.server.transport == "stdio":
            old.leave(RECONNECT)
            return await self.connection()
        new = self._beside
        if new is None:
            new = self._beside = Link(self)
            wall = new.wall("server_connection_crashed")
            begin(self._links, wall, self._run_beside, new)
        await new.settled.wait()
        if new.client is not None:
            return new.client
        raise self._gone() if new.failure is None else self._unreachable(new.failure)

    async def _run_beside(self, link: Link) -> None:
        await link.run()
        if self._beside is link:
            self._beside = None

    def leave(self, reason: str, patience: float) -> None:
        """Tell the connection to close; *patience* is what a child gets for each step."""
        if self._leaving is not None:
            return
        self._leaving, self.patience = reason, patience
        self._wanted.set()
        for link in (self._link, self._beside):
            if link is not None:
                link.leave(reason)

    async def follow_changes(self) -> Params:
        """Have a modern backend send what is subscribed now; what it agreed to.

        Raises:
            MCPError: it does not do that, or it is gone.
            TimeoutError: it does not say.
        """
        link = self._link
        if link is None or link.listening is None:
            raise self._gone()
        with (
            self.uses.one(),
            trio.move_on_after(self.config.limits.execute_timeout_ms / 1000),
        ):
            return await link.listening.follow()
        raise TimeoutError(f"server {self.server.name!r} did not acknowledge the subscription")

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
        return bool(self.uses or self.wishes.subscriptions or self.knowledge.is_learning)

    @property
    def is_wanted(self) -> bool:
        """Somebody waits for it."""
        return self._wanted.is_set()

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
        start = self._link.start if self._link is not None else None
        return start.describe() if start is not None else None

    @property
    def starting_still(self) -> str | None:
        """The same to everybody, if it takes long."""
        start = self._link.start if self._link is not None else None
        return start.describe() if start is not None and start.takes_long else None

    @property
    def process(self) -> Process | None:
        return self._link.process if self._link is not None else None
