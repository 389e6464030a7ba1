"""One connection of a backend: a try and, if it works, its life until it is lost or left.

Its task opens and closes it. Whoever notices a loss first calls :meth:`Link.lose`, which tells
everything there is to tell before anybody can see an effect of it.
"""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import attrs
import trio

from .. import logs
from ..model import events
from .callbacks import Callbacks
from .client import Client
from .connect import Streams, open_client
from .failures import NOT_A_BUG, Failure, explain
from .listening import Listening
from .process import Process

if TYPE_CHECKING:
    from .backend import Backend

CLOSING = 5.0
"""Seconds a connection may take to close; then it is cut."""


@attrs.define(eq=False)
class Link:
    """One try and, if it works, the connection."""

    backend: Backend
    callbacks: Callbacks
    started: float = attrs.field(factory=trio.current_time, init=False)
    process: Process | None = attrs.field(default=None, init=False)
    streams: Streams | None = attrs.field(default=None, init=False)
    client: Client | None = attrs.field(default=None, init=False)
    listening: Listening | None = attrs.field(default=None, init=False)
    failure: Failure | None = attrs.field(default=None, init=False)
    settled: trio.Event = attrs.field(factory=trio.Event, init=False)
    """Connected, or failed."""
    ended: trio.Event = attrs.field(factory=trio.Event, init=False)
    leaving: str | None = attrs.field(default=None, init=False)
    """Why we end it ourselves, if we do."""
    _scope: trio.CancelScope = attrs.field(factory=trio.CancelScope, init=False)
    _lost: bool = attrs.field(default=False, init=False)

    async def run(self) -> None:
        backend = self.backend
        self._scope.deadline = self.started + backend.server.connect_timeout_ms / 1000
        try:
            with self._scope:
                async with open_client(
                    backend.server,
                    self.callbacks,
                    backend.eras,
                    limit=backend.limits.message,
                    on_streams=self._opened,
                ) as client:
                    self._scope.deadline = math.inf
                    self.client = client
                    backend.connected(self, client)
                    self.settled.set()
                    async with self._chores(client):
                        await client.over.wait()
                    self.lose()
                    self._scope.deadline = trio.current_time() + CLOSING
            if self._scope.cancelled_caught and self.client is None and self.leaving is None:
                self.failure = explain(backend.server, self.streams, self.callbacks.stderr, None)
        except* NOT_A_BUG as group:
            self.failure = explain(backend.server, self.streams, self.callbacks.stderr, group)
        finally:
            self.lose()
            self._tell_of_process()
            if self.client is not None and self.leaving is not None:
                self._disconnected(self.leaving, intentional=True)
            self.settled.set()
            self.ended.set()

    @asynccontextmanager
    async def _chores(self, client: Client) -> AsyncGenerator[None]:
        """What a connection does beside answering calls."""
        async with trio.open_nursery() as chores:
            if client.negotiated.is_modern:
                self.listening = Listening(client, self.backend.subscribed)
                chores.start_soon(self.listening.run)
            else:
                chores.start_soon(self.backend.restore, client)
            yield
            chores.cancel_scope.cancel("connection is over")

    def _opened(self, streams: Streams) -> None:
        self.streams, self.process = streams, streams.process
        if self.process is not None:
            self.process.patience = self.backend.patience
            self.backend.publish(events.ProcessStarted(self.backend.server.name, self.process.pid))

    async def over(self) -> None:
        """Park until a connection that was made is lost or left."""
        assert self.client is not None
        await self.client.over.wait()
        self.lose()

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

    def lose(self) -> None:
        """The connection is gone. Told once, before anybody can see its effects."""
        if self.client is None or self._lost:
            return
        self._lost = True
        self.client.over.set()
        self.backend.forget(self)
        if self.leaving is None:
            reason = self._reason()
            self._tell_of_process()
            self._disconnected(reason, intentional=False)

    def _reason(self) -> str:
        process = self.process
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

    def _disconnected(self, reason: str, *, intentional: bool) -> None:
        name = self.backend.server.name
        self.backend.last_error = None if intentional else reason
        self.backend.publish(events.ServerDisconnected(name, reason, intentional))
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
        if self.leaving is None and process.failure is None:
            self.backend.publish(events.ProcessCrashed(name, pid, end.code, end.signal))
        else:
            self.backend.publish(events.ProcessStopped(name, pid, end.code, end.signal))
