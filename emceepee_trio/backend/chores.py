"""What a connection does beside answering calls, from when it works until it is over.

Listening for changes, coming back to where the one before was, repeating what was wished for,
learning what there is, checks of its health, and the stop of a program that nobody uses. Each is
a task of its own behind a wall of its own: none of them costs the connection. Knows nothing of
how that is opened, closed or told.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import attrs
import trio

from ..waits.firewall import Firewall, begin, begin_lasting
from .connections.client import Client
from .connections.listening import Listening
from .http.pace import Pace
from .lifecycle import IDLE
from .reconciliation import Reconciliation

if TYPE_CHECKING:
    from .link import Link
    from .private import Private


@attrs.define(eq=False)
class Chores:
    """Of one connection."""

    _backend: Private
    link: Link
    _client: Client
    _reconciliation: Reconciliation | None
    """Of a connection that is not the first."""
    listening: Listening | None = attrs.field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        backend = self._backend
        if self._client.negotiated.is_modern:
            pace = Pace(backend.retries.retry)
            self.listening = Listening(self._client, backend.preferences.subscribed, pace)

    @asynccontextmanager
    async def done(self) -> AsyncGenerator[None]:
        """While the block lasts."""
        backend, client, who = self._backend, self._client, self._backend.supervisor.who
        async with trio.open_nursery() as nursery:
            if self.listening is not None:
                begin_lasting(nursery, "listening_crashed", self.listening.run, **who)
            if (reconciliation := self._reconciliation) is not None:
                wall = self._wall("comeback_crashed", lambda _: reconciliation.tell())
                begin(nursery, wall, reconciliation.run)
            elif self.listening is None:
                begin(nursery, self._wall("wishes_crashed"), backend.preferences.repeat, client)
            wall, is_first = self._wall("learning_crashed"), self._reconciliation is None
            begin(nursery, wall, backend.knowledge.learn, client, is_first)
            begin_lasting(nursery, "health_crashed", backend.health.watch, client, **who)
            if unused_ms := backend.server.idle_stop_ms:
                patience = unused_ms / 1000
                begin_lasting(nursery, "idle_stop_crashed", self._stop_unused, patience, **who)
            yield
            nursery.cancel_scope.cancel("connection is over")

    def over(self) -> None:
        """The connection is, and will be told so."""
        if self._reconciliation is not None:
            self._reconciliation.tell()
            self._reconciliation = None  # it holds the connection before, which held the one before

    def _wall(self, event: str, failed: Callable[[str], object] | None = None) -> Firewall:
        return Firewall(event, failed, fields=self._backend.supervisor.who)

    async def _stop_unused(self, patience: float) -> None:
        """Look again when it could be time, as a use in that very tick goes on."""
        backend, link = self._backend, self.link
        while True:
            await trio.sleep_until(max(link.connected_at, backend.uses.last) + patience)
            if self._client.over.is_set():
                return  # somebody was first
            if backend.is_used:
                backend.uses.touch()
            elif trio.current_time() >= max(link.connected_at, backend.uses.last) + patience:
                link.leave(IDLE)
