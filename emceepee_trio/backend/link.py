"""One connection of a backend: a try and, if it works, its life until it is lost or left.

Its task opens and closes it. Whoever notices first that it is over sets :class:`~.callbacks.Over`,
and the link tells everything there is to tell before anybody can see an effect of it.
"""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Literal

import attrs
import trio

from .. import logs
from ..errors import internal
from ..model import events
from ..model.json.intake import Measure
from ..waits.firewall import Firewall, begin, begin_lasting
from .children.process import Process
from .comeback import Comeback
from .connections.callbacks import Abandoned, Callbacks
from .connections.client import Client
from .connections.connect import Streams, has_worked, open_client
from .connections.failures import NOT_A_BUG, Failure, explain
from .connections.listening import Listening
from .http.pace import Pace
from .start import FIRST, Start

if TYPE_CHECKING:
    from .backend import Backend

CLOSING = 5.0
"""Seconds a connection may take to close; then it is cut."""

REFUSALS = 1.0
"""Seconds that requests under way have to be told, like one before them, that they were not run."""

RECONNECT = "reconnect"
"""Why a connection is left for another one."""
IDLE: Literal["idle"] = "idle"
"""Why one is left for none: nobody uses it."""


@attrs.define(eq=False)
class Link:
    """One try and, if it works, the connection."""

    backend: Backend
    callbacks: Callbacks = attrs.field(init=False)
    process: Process | None = attrs.field(default=None, init=False)
    streams: Streams | None = attrs.field(default=None, init=False)
    start: Start | None = attrs.field(default=None, init=False)
    """Of a program, until it is settled."""
    client: Client | None = attrs.field(default=None, init=False)
    connected_at: float = attrs.field(default=math.inf, init=False)
    """On trio's clock."""
    listening: Listening | None = attrs.field(default=None, init=False)
    comeback: Comeback | None = attrs.field(default=None, init=False)
    """Of a connection that is not the first."""
    failure: Failure | None = attrs.field(default=None, init=False)
    settled: trio.Event = attrs.field(factory=trio.Event, init=False)
    """Connected, or failed."""
    ended: trio.Event = attrs.field(factory=trio.Event, init=False)
    leaving: str | None = attrs.field(default=None, init=False)
    """Why we end it ourselves, if we do."""
    _scope: trio.CancelScope = attrs.field(factory=trio.CancelScope, init=False)
    _crashed: bool = attrs.field(default=False, init=False)
    """The child ended without our doing."""
    _lost: bool = attrs.field(default=False, init=False)
    _told: bool = attrs.field(default=False, init=False)

    def __attrs_post_init__(self) -> None:
        backend = self.backend
        self.callbacks = Callbacks(
            backend.server.name,
            backend.host,
            backend.list_changed,
            self._why_over,
            self._over,
            backend.uses.one,
        )

    async def run(self) -> None:
        try:
            with self.wall("server_connection_crashed", self._crash):
                await self._run()
        finally:
            try:
                with self.wall("server_connection_crashed"):
                    self._lose()
                    self._tell()
                    self._tell_of_process()
            finally:
                self.comeback = None  # it holds the connection before, which held the one before
                self.start = None  # it holds us
                self.settled.set()
                self.ended.set()

    def wall(self, event: str, failed: Callable[[str], object] | None = None) -> Firewall:
        fields = {"session": self.backend.session, "server": self.backend.server.name}
        return Firewall(event, failed, fields=fields)

    def _crash(self, log_id: str) -> None:
        """A try that failed, or a connection that is lost, for a bug of ours."""
        self.failure = Failure(internal(log_id))

    async def _run(self) -> None:
        backend, limits = self.backend, self.backend.config.limits
        try:
            with self._scope:
                async with (
                    self._starting(),
                    open_client(
                        backend.server,
                        self.callbacks,
                        backend.shared,
                        backend.session,
                        measure=Measure(limits.message, limits.values),
                        restricted=backend.restricted,
                        on_streams=self._opened,
                    ) as client,
                ):
                    # It may have been given up in the tick in which it was made.
                    await trio.lowlevel.checkpoint_if_cancelled()
                    self._scope.deadline = math.inf
                    self.client, self.connected_at = client, trio.current_time()
                    with self.wall("server_connection_crashed", self._crash) as wall:
                        backend.connected(self, client)
                    if wall.log_id is not None:
                        client.over.set()
                    self.settled.set()
                    if self.start is not None:
                        self.start.end()
                        self.start = None
                    async with self._chores(client):
                        await client.over.wait()
                        if client.http is not None and client.http.session_gone:
                            with trio.move_on_after(REFUSALS):
                                await client.idle()
                    self._lose()  # if it was over before we knew that it works
                    self._scope.deadline = trio.current_time() + CLOSING
            if self._scope.cancelled_caught and self.client is None and self.leaving is None:
                self.failure = explain(
                    backend.server,
                    self.streams,
                    self.callbacks.stderr,
                    None,
                    worked_for=None if self.start is None else self.start.worked_for,
                )
        except* NOT_A_BUG as group:
            self.failure = explain(backend.server, self.streams, self.callbacks.stderr, group)

    @asynccontextmanager
    async def _starting(self) -> AsyncGenerator[None]:
        """From the first thing that is done for it; around all of it."""
        backend = self.backend
        patience = backend.server.connect_timeout_ms / 1000
        if backend.server.transport != "stdio":
            self._scope.deadline = trio.current_time() + patience
            yield
            return
        starts = backend.shared.starts
        with starts.place(backend.session, lambda: backend.is_wanted) as place:
            is_first = not has_worked(backend.server, backend.shared)
            longest = FIRST if is_first else patience
            self.start = Start(self, self._scope, place, starts, patience, longest)
            await place.granted.wait()
            self.start.begin()
            async with trio.open_nursery() as watching:
                begin(watching, self.wall("start_crashed"), self.start.watch)
                yield
                watching.cancel_scope.cancel("it is over")

    @asynccontextmanager
    async def _chores(self, client: Client) -> AsyncGenerator[None]:
        """What a connection does beside answering calls."""
        backend = self.backend
        who = {"session": backend.session, "server": backend.server.name}
        async with trio.open_nursery() as chores:
            if client.negotiated.is_modern:
                self.listening = Listening(
                    client, backend.wishes.subscribed, Pace(backend.retries.retry)
                )
                begin_lasting(chores, "listening_crashed", self.listening.run, **who)
            if (comeback := self.comeback) is not None:
                wall = self.wall("comeback_crashed", lambda _: comeback.tell())
                begin(chores, wall, comeback.run)
            elif not client.negotiated.is_modern:
                begin(chores, self.wall("wishes_crashed"), backend.wishes.repeat, client)
            is_first = self.comeback is None
            begin(chores, self.wall("learning_crashed"), backend.knowledge.learn, client, is_first)
            begin_lasting(chores, "health_crashed", backend.health.watch, client, **who)
            if unused_ms := backend.server.idle_stop_ms:
                watch, patience = self._stop_when_unused, unused_ms / 1000
                begin_lasting(chores, "idle_stop_crashed", watch, client, patience, **who)
            yield
            chores.cancel_scope.cancel("connection is over")

    async def _stop_when_unused(self, client: Client, patience: float) -> None:
        """Look again when it could be time, as a use in that very tick goes on."""
        uses = self.backend.uses
        while True:
            await trio.sleep_until(max(self.connected_at, uses.last) + patience)
            if client.over.is_set():
                return  # somebody was first
            if self.backend.is_used:
                uses.touch()
            elif trio.current_time() >= max(self.connected_at, uses.last) + patience:
                self.leave(IDLE)

    def _opened(self, streams: Streams) -> None:
        self._crashed = False  # a first child ended of our asking what it speaks
        self._tell_of_process()
        self.streams, self.process = streams, streams.process
        if self.process is not None:
            self.process.patience = self.backend.patience
            self.backend.publish(events.ProcessStarted(self.backend.server.name, self.process.pid))

    def leave(self, reason: str) -> None:
        """End it: politely if it is connected, at once if it is not."""
        if self.leaving is None:
            self.leaving = reason
        if self.process is not None:
            self.process.patience = self.backend.patience
        if self.client is not None:
            self.client.over.set()
        else:
            self._scope.cancel(reason)

    def _over(self) -> None:
        """Nothing will come any more. Called once for each transport."""
        process = self.process
        # One that said too much is ended by us, even if it has died of our not listening by now.
        is_gone = process is not None and process.exit is not None and process.failure is None
        self._crashed = is_gone and self.leaving is None
        self._lose()

    def _lose(self) -> None:
        """Tell it once, before anybody can see an effect."""
        if self.client is None or self._lost:
            return
        self._lost = True
        self.client.over.set()
        if self.comeback is not None:
            self.comeback.tell()
        self.backend.lost(self)
        if self.leaving is None or self.process is None:
            self._tell()
        # else once the child has ended that we end

    def _why_over(self) -> Abandoned:
        if self.leaving is None:
            return "server_disconnected"
        return "server_reconnected" if self.leaving == RECONNECT else "server_removed"

    def _reason(self) -> str:
        process = self.process
        if self.callbacks.over.why is not None:
            return self.callbacks.over.why
        if self.failure is not None:
            return self.failure.message
        if process is None:
            return "connection lost"
        if process.failure is not None:
            return process.failure
        if process.exit is None:
            return "closed its output"
        if process.exit.signal is not None:
            return f"process was killed by {process.exit.signal}"
        return f"process exited with code {process.exit.code}"

    def _tell(self) -> None:
        if self.client is None or self._told:
            return
        self._told = True
        name, reason = self.backend.server.name, self.leaving or self._reason()
        self._tell_of_process()
        self.backend.last_error = None if self.leaving else reason
        if self.leaving != IDLE:  # then nothing is lost, and the end of the process says it all
            left = self.leaving is not None
            self.backend.publish(events.ServerDisconnected(name, reason, left))
        logs.write(
            "info", "server_disconnected", session=self.backend.session, server=name, reason=reason
        )

    def _tell_of_process(self) -> None:
        """Once its end is known."""
        process = self.process
        if process is None or process.exit is None:
            return
        self.process = None
        self.backend.last_process = (process.pid, process.started_at, process.exit)
        name, pid, end = self.backend.server.name, process.pid, process.exit
        if self._crashed:
            self.backend.publish(events.ProcessCrashed(name, pid, end.code, end.signal))
        else:
            reason = IDLE if self.leaving == IDLE else None
            stopped = events.ProcessStopped(name, pid, end.code, end.signal, reason)
            self.backend.publish(stopped)
