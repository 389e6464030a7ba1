"""Serving HTTP on sockets that listen, until a drain: how many connections, and how they end.

A connection and its bounds are in `connection.py`, what is asked on it in `exchange.py`, the
sockets in `binds.py`.
"""

from __future__ import annotations

import math
import resource
import socket
from collections.abc import Sequence
from functools import partial

import attrs
import trio

from .. import logs
from ..waits.sweeper import Sweeper
from .answers import refusal
from .asgi import App
from .binds import Bound
from .connection import Connection
from .exchange import serve_requests

MOST_CONNECTIONS = 4096
"""At once, or half of what this process may open, whichever is less. One more takes the place of
the one that has waited longest for a request; if all are being served, it is told to come later."""

REFUSING = 1.0
"""Seconds to tell it."""
LENIENCY = 0.5
"""Seconds that a peer may be late before that is looked for: so all who are late by then are seen
at once."""


@attrs.define(eq=False)
class Drain:
    """From "stop accepting" to "the last connection is gone"."""

    grace: float
    started: trio.Event = attrs.field(factory=trio.Event, init=False)
    finished: trio.Event = attrs.field(factory=trio.Event, init=False)
    scope: trio.CancelScope = attrs.field(factory=trio.CancelScope, init=False)
    connections: set[Connection] = attrs.field(factory=set, init=False)

    def begin(self, *, skip_grace: bool = False) -> None:
        """Synchronous. Again with *skip_grace*: what is still open is cut."""
        self.started.set()
        self.scope.deadline = min(self.scope.deadline, trio.current_time() + self.grace)
        if skip_grace:
            self.scope.deadline = trio.current_time()
        for connection in tuple(self.connections):
            connection.drain()

    def end(self) -> float:
        return self.scope.deadline

    # Its peers have their time, which costs nothing as long as they keep to it: see Sweeper.

    def next_due(self) -> float:
        return min((each.due for each in self.connections), default=math.inf) + LENIENCY

    def sweep(self) -> None:
        now = trio.current_time()
        for connection in tuple(self.connections):
            connection.sweep(now)


async def serve_http(app: App, sockets: Sequence[Bound], drain: Drain) -> None:
    """Accept until *drain* begins, then give what is open its grace."""
    at_most, patience = most_connections(), Sweeper((drain,))

    def look(due: float) -> None:
        # With its leniency, or whoever is given as much time as others had a moment ago would have
        # all of them looked at.
        patience.look(due + LENIENCY)

    async def handle(stream: trio.SocketStream) -> None:
        if drain.started.is_set():
            return
        if len(drain.connections) >= at_most and not _make_room(drain.connections):
            with trio.move_on_after(REFUSING):
                await stream.send_all(refusal(503, b"retry-after: 1"))
            return
        connection = Connection(_plain(stream.socket), drain.end, look)
        drain.connections.add(connection)
        try:
            await serve_requests(connection, app)
        finally:
            drain.connections.discard(connection)

    listeners = [trio.SocketListener(trio.socket.from_stdlib_socket(b.socket)) for b in sockets]
    with drain.scope:
        async with trio.open_nursery() as watching:
            watching.start_soon(patience.run)
            async with trio.open_nursery() as connections:
                async with trio.open_nursery() as accepting:
                    serve = partial(trio.serve_listeners, handler_nursery=connections)
                    accepting.start_soon(serve, handle, listeners)
                    await drain.started.wait()
                    accepting.cancel_scope.cancel("draining")
            watching.cancel_scope.cancel("nobody is there any more")
    drain.finished.set()


def _plain(sock: trio.socket.SocketType) -> socket.socket:
    """The socket itself, to read and write without a checkpoint for each."""
    plain = socket.socket(sock.family, sock.type, sock.proto, fileno=sock.detach())
    plain.setblocking(False)
    return plain


def most_connections() -> int:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return min(MOST_CONNECTIONS, soft // 2) if soft > 0 else MOST_CONNECTIONS


def _make_room(connections: set[Connection]) -> bool:
    """Close the connection that waits for its peer and has least time left; False if none does."""
    first = min(connections, key=lambda connection: connection.due)
    if first.due == math.inf:
        return False
    logs.often(
        "warn", "too_many_connections", sums={"closed": 1}, latest={"open": len(connections)}
    )
    connections.discard(first)
    first.cut()
    return True
