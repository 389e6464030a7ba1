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
from .callbacks import Abandoned, Callbacks, Host, Params
from .catalog import Catalog
from .client import Client
from .connect import Eras
from .failures import Failure
from .link import Link
from .process import PATIENCE, Exit, Process


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
    catalog: Catalog = attrs.field(init=False)
    state: BackendState = attrs.field(default=BackendState.NOT_CONNECTED, init=False)
    client: Client | None = attrs.field(default=None, init=False)
    connected_at: float | None = attrs.field(default=None, init=False)
    last_error: str | None = attrs.field(default=None, init=False)
    last_process: tuple[int, float, Exit] | None = attrs.field(default=None, init=False)
    """Pid, start and end of the child that ran last."""
    attempt: int = attrs.field(default=0, init=False)
    """Failed tries in a row."""
    next_try: float | None = attrs.field(default=None, init=False)
    """When, on trio's clock."""
    patience: float = attrs.field(default=PATIENCE, init=False)
    """Seconds a child gets for each step of its end."""
    ended: trio.Event = attrs.field(factory=trio.Event, init=False)
    log_level: str | None = attrs.field(default=None, init=False)
    subscriptions: set[str] = attrs.field(factory=set, init=False)
    _leaving: str | None = attrs.field(default=None, init=False)
    _link: Link | None = attrs.field(default=None, init=False)
    _links: trio.Nursery | None = attrs.field(default=None, init=False)
    _try: Slot[Client] = attrs.field(factory=Slot, init=False)
    """The try that is under way, or the next one."""
    _wanted: trio.Event = attrs.field(factory=trio.Event, init=False)
    """Somebody wants a connection now."""

    def __attrs_post_init__(self) -> None:
        self.catalog = Catalog(self.server.name, self.server.allowed_tools)
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
        delays = self._delays()
        while self._leaving is None:
            link = self._start_link()
            await link.settled.wait()
            if link.client is None:
                failure = link.failure
            else:
                link, failure = await self._until_lost(link), None
                if link.leaving is not None:
                    continue
                if trio.current_time() - link.started > RETRY_RESET_MS / 1000:
                    self.attempt, delays = 0, self._delays()
            if self._leaving is None:
                await self._pause(failure, delays)

    async def _until_lost(self, link: Link) -> Link:
        """The link that was current in the end: :meth:`reconnect` may put others in its place."""
        while True:
            await link.over()
            current = self._link
            assert current is not None
            if current is link:
                await link.ended.wait()
                return link
            link = current

    def _start_link(self) -> Link:
        assert self._links is not None
        if self.state is not BackendState.CONNECTING:
            self.state = step(BACKEND, self.state, BackendState.CONNECTING)
        self._link = self._new_link()
        self._links.start_soon(self._link.run, name=f"connection to {self.server.name}")
        return self._link

    def _new_link(self) -> Link:
        callbacks = Callbacks(self.server.name, self.host, self.catalog.stale, self._why_over)
        return Link(self, callbacks)

    async def _pause(self, failure: Failure | None, delays: Iterator[float]) -> None:
        """Between two tries: until the delay has passed, or somebody wants one now."""
        self.attempt += 1
        retry = self._retry
        again = retry.enabled and (retry.max_attempts is None or self.attempt <= retry.max_attempts)
        delay = next(delays) if again and not (failure and failure.final) else math.inf
        waiting = BackendState.ERROR if delay == math.inf else BackendState.RECONNECTING
        self.state = step(BACKEND, self.state, waiting)
        self._wanted = trio.Event()
        self.next_try = trio.current_time() + delay if delay < math.inf else None
        if failure is not None:
            self.last_error = failure.message
            logs.write(
                "warn",
                "server_reconnect_failed",
                session=self.session,
                server=self.server.name,
                attempt=self.attempt,
                error=failure.message,
            )
            # Only now, because it says when the next try is.
            slot, self._try = self._try, Slot()
            slot.fail(self._unreachable(failure))
        with trio.move_on_after(delay):
            await self._wanted.wait()
        self.next_try = None

    def _unreachable(self, failure: Failure) -> ConnectFailed:
        details = dict(failure.details)
        message = f"server {self.server.name!r}: {failure.message}"
        if self.next_try is not None:
            left = max(0.0, self.next_try - trio.current_time())
            details["next_retry_ms"] = round(left * 1000)
            message += f"; next try in {left:.1f} s, await_activity tells when it is back"
        else:
            message += "; correct it, then call reconnect_server"
        return ConnectFailed(message, details)

    @property
    def _retry(self) -> Retry:
        return self.server.restart if self.server.transport == "stdio" else self.server.reconnect

    def _delays(self) -> Iterator[float]:
        retry = self._retry
        return backoff(
            retry.base_delay_ms / 1000,
            retry.max_delay_ms / 1000,
            multiplier=retry.multiplier,
            jitter=retry.jitter,
            chance=random.random,
        )

    def connected(self, link: Link, client: Client) -> None:
        previous = self._link
        if previous is not None and previous is not link:
            previous.leave("reconnect")
            previous.lose()
        self._link, self.client, self.last_error = link, client, None
        self.connected_at = self.wall()
        if self.state is not BackendState.CONNECTED:
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

    def forget(self, link: Link) -> None:
        """*link* is over; from here on callers wait for the next one."""
        self.catalog.all_stale()
        if self.client is link.client:
            self.client = self.connected_at = None
            self._try = Slot()

    def publish(self, happening: events.Happening) -> None:
        self.host.publish(self.server.name, happening)

    def _why_over(self) -> Abandoned:
        if self._leaving is not None:
            return "server_removed"
        if self._link is not None and self._link.leaving is not None:
            return "server_reconnected"
        return "server_disconnected"

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
            old.leave("reconnect")
            old.lose()
            self.state = step(BACKEND, self.state, BackendState.CONNECTING)
            return await self._try.wait_result()
        new = self._new_link()
        self._links.start_soon(new.run, name=f"connection to {self.server.name}")
        await new.settled.wait()
        if new.client is None:
            if new.failure is None:
                raise self._gone()
            raise self._unreachable(new.failure)
        return new.client

    def leave(self, reason: str, patience: float) -> None:
        """Tell the connection to close; *patience* is what a child gets for each step."""
        if self._leaving is not None:
            return
        self._leaving, self.patience = reason, patience
        self._wanted.set()
        if self._link is not None:
            self._link.leave(reason)
            self._link.lose()

    def subscribed(self) -> frozenset[str]:
        return frozenset(self.subscriptions)

    async def follow_changes(self) -> Params:
        """Have a modern backend send what is subscribed now; what it agreed to.

        Raises:
            MCPError: it does not do that.
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
        try:
            if self.log_level is not None:
                await client.request("logging/setLevel", {"level": self.log_level})
            for uri in sorted(self.subscriptions):
                await client.request("resources/subscribe", {"uri": uri})
        except MCPError as error:
            logs.write(
                "warn",
                "server_restore_failed",
                session=self.session,
                server=self.server.name,
                error=error.error.message,
            )
