"""Keeping one backend of one session connected.

:class:`Backend` is the loop: connect, notice the loss, wait, connect again. Each connection is a
:class:`Link` with a task of its own that opens and closes it. There is one current client at a
time. Everything that happens is published synchronously by whoever notices it, so a call that
fails for a lost connection finds the loss already told.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator

import attrs
import trio
from mcp import MCPError

from .. import logs
from ..config import Limits, Retry, Server
from ..config.bounds import RETRY_RESET_MS
from ..errors import ConnectFailed, ServerDisconnected
from ..model import events
from ..model.delays import backoff
from ..model.states import BACKEND, BackendState, step
from ..waits.slot import Slot
from .callbacks import Host, Params
from .catalog import Catalog
from .client import Client
from .connect import Eras
from .failures import Failure
from .link import RECONNECT, Link
from .process import PATIENCE, Exit, Process
from .reaper import Reaper


@attrs.define(eq=False)
class Backend:
    """One server as one session sees it."""

    server: Server
    host: Host
    limits: Limits
    eras: Eras
    session: str
    """For the logs."""
    wall: Callable[[], float]
    reaper: Reaper | None = None
    catalog: Catalog = attrs.field(init=False)
    state: BackendState = attrs.field(default=BackendState.NOT_CONNECTED, init=False)
    client: Client | None = attrs.field(default=None, init=False)
    connected_at: float | None = attrs.field(default=None, init=False)
    last_error: str | None = attrs.field(default=None, init=False)
    last_process: tuple[int, float, Exit] | None = attrs.field(default=None, init=False)
    """Pid, start and end of the child that ran last."""
    attempt: int = attrs.field(default=0, init=False)
    """Failed tries and lost connections in a row."""
    next_try: float | None = attrs.field(default=None, init=False)
    """When, on trio's clock."""
    patience: float = attrs.field(default=PATIENCE, init=False)
    """Seconds a child gets for each step of its end."""
    ended: trio.Event = attrs.field(factory=trio.Event, init=False)
    log_level: str | None = attrs.field(default=None, init=False)
    subscriptions: set[str] = attrs.field(factory=set, init=False)
    _leaving: str | None = attrs.field(default=None, init=False)
    _link: Link | None = attrs.field(default=None, init=False)
    """The connection, or the try to make one."""
    _beside: Link | None = attrs.field(default=None, init=False)
    """A try to replace a connection that works."""
    _links: trio.Nursery | None = attrs.field(default=None, init=False)
    _delays: Iterator[float] = attrs.field(init=False)
    _try: Slot[Client] = attrs.field(factory=Slot, init=False)
    """The try that is under way, or the next one."""
    _wanted: trio.Event = attrs.field(factory=trio.Event, init=False)
    """Somebody wants that try now."""

    def __attrs_post_init__(self) -> None:
        self.catalog = Catalog(self.server.name, self.server.allowed_tools)
        self._delays = self._new_delays()
        if self.server.disabled:
            self.state = BackendState.DISABLED

    async def run(self) -> None:
        """The connection task; lives until :meth:`leave`, or until it is cancelled."""
        try:
            if self.server.disabled:
                return
            if self.server.start == "lazy":
                await self._wanted.wait()
            async with trio.open_nursery() as self._links:
                await self._keep_connected()
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
            self._links.start_soon(link.run, name=f"connection to {self.server.name}")
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
            # Who left the link wants what comes next.
            with trio.move_on_at(math.inf if self.next_try is None else self.next_try):
                await self._wanted.wait()
            self.next_try = None

    def _plan(self, failure: Failure | None) -> None:
        """Say when the next try is, if there is one by itself. From here on callers want that."""
        self.attempt += 1
        retry = self._retry
        again = retry.enabled and (retry.max_attempts is None or self.attempt <= retry.max_attempts)
        again = again and not (failure is not None and failure.final)
        self.next_try = trio.current_time() + next(self._delays) if again else None
        waiting = BackendState.RECONNECTING if again else BackendState.ERROR
        self.state = step(BACKEND, self.state, waiting)
        self._wanted = trio.Event()

    def _failed(self, failure: Failure) -> None:
        self.last_error = failure.message
        ended, self._try = self._try, Slot()
        self._plan(failure)
        logs.write(
            "warn",
            "server_reconnect_failed",
            session=self.session,
            server=self.server.name,
            attempt=self.attempt,
            error=failure.message,
        )
        ended.fail(self._unreachable(failure))

    def _unreachable(self, failure: Failure) -> ConnectFailed:
        details = dict(failure.details)
        message = f"server {self.server.name!r}: {failure.message}"
        if self.client is not None:
            message += "; the connection that there was goes on"
        elif self.next_try is not None:
            left = max(0.0, self.next_try - trio.current_time())
            details["next_retry_ms"] = round(left * 1000)
            message += f"; next try in {left:.1f} s, await_activity tells when it is back"
        else:
            message += "; correct it, then call reconnect_server"
        return ConnectFailed(message, details)

    @property
    def _retry(self) -> Retry:
        return self.server.restart if self.server.transport == "stdio" else self.server.reconnect

    def _new_delays(self) -> Iterator[float]:
        retry = self._retry
        return backoff(
            retry.base_delay_ms / 1000,
            retry.max_delay_ms / 1000,
            multiplier=retry.multiplier,
            jitter=retry.jitter,
            chance=random.random,
        )

    def connected(self, link: Link, client: Client) -> None:
        """*link* works."""
        previous = self._link
        if previous is not None and previous is not link:
            previous.leave(RECONNECT)
            self._link, self._beside = link, None
        self.client, self.last_error = client, None
        self.connected_at = self.wall()
        self.state = step(BACKEND, self.state, BackendState.CONNECTED)
        self.catalog.all_stale()
        if self.log_level is not None:
            client.log_level = self.log_level
        agreed = client.negotiated
        self.publish(
            events.ServerConnected(self.server.name, agreed.capabilities, agreed.protocol_version)
        )
        logs.write(
            "info",
            "server_connected",
            session=self.session,
            server=self.server.name,
            target=self.server.target,
        )
        self._try.set(client)

    def lost(self, link: Link) -> None:
        """*link*, which was connected, is over; from here on callers wait for the next one."""
        self.client = self.connected_at = None
        self._try = Slot()
        if self._leaving is not None:
            return
        if link.leaving is not None:
            self.state = step(BACKEND, self.state, BackendState.CONNECTING)
        elif self._beside is not None:
            self._link, self._beside = self._beside, None
            self.state = step(BACKEND, self.state, BackendState.CONNECTING)
        else:
            if trio.current_time() - link.connected_at > RETRY_RESET_MS / 1000:
                self.attempt, self._delays = 0, self._new_delays()
            self._plan(None)

    def publish(self, happening: events.Happening) -> None:
        self.host.publish(self.server.name, happening)

    def _gone(self) -> ServerDisconnected:
        return ServerDisconnected(
            f"server {self.server.name!r} is no longer here ({self._leaving or 'session ended'})",
            {"may_have_run": False},
        )

    async def connection(self) -> Client:
        """The client, waiting for it if need be; starts a try that is only waiting for its time.

        Raises:
            ConnectFailed: the try failed.
            ServerDisconnected: the backend is being removed.
        """
        while self.client is None:
            if self.state is BackendState.DISABLED:
                raise ConnectFailed(
                    f"server {self.server.name!r} is disabled in its configuration; enable it there"
                )
            if self._leaving is not None or self.ended.is_set():
                raise self._gone()
            self._wanted.set()
            await self._try.wait_result()
        return self.client

    async def reconnect(self) -> Client:
        """A new connection: for a url beside the old one, for a child after its end.

        Raises:
            ConnectFailed: it could not be made; over HTTP the old one goes on.
        """
        old = self._link
        if self.client is None or old is None or self._links is None:
            return await self.connection()
        if self.server.transport == "stdio":
            old.leave(RECONNECT)
            return await self.connection()
        new = self._beside
        if new is None:
            new = self._beside = Link(self)
            self._links.start_soon(self._run_beside, new)
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

    def subscribed(self) -> frozenset[str]:
        return frozenset(self.subscriptions)

    async def follow_changes(self) -> Params:
        """Have a modern backend send what is subscribed now; what it agreed to.

        Raises:
            MCPError: it does not do that, or it is gone.
            TimeoutError: it does not say.
        """
        link = self._link
        if link is None or link.listening is None:
            raise self._gone()
        with trio.move_on_after(self.limits.execute_timeout_ms / 1000):
            return await link.listening.follow()
        raise TimeoutError(f"server {self.server.name!r} did not acknowledge the subscription")

    @property
    def process(self) -> Process | None:
        return self._link.process if self._link is not None else None

    async def restore(self, client: Client) -> None:
        """Say again what a backend of the handshake era has been told before."""
        if self.log_level is not None:
            await self._restore(client, "logging/setLevel", {"level": self.log_level})
        for uri in sorted(self.subscriptions):
            await self._restore(client, "resources/subscribe", {"uri": uri})

    async def _restore(self, client: Client, method: str, params: Params) -> None:
        try:
            await client.request(method, params)
        except MCPError as error:
            logs.write(
                "warn",
                "server_restore_failed",
                session=self.session,
                server=self.server.name,
                error=error.error.message,
            )
