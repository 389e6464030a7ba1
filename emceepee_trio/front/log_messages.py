"""What backends log, for a client of the handshake era that asked for it with logging/setLevel.

Nothing is sent unasked, and nothing of what is sent is taken from what get_logs keeps. A modern
client asks with each request instead, for what that request logs; no tool of ours logs anything.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import attrs
import trio

from ..model.protocol.levels import LEVELS, at_least
from ..session.buffers import Buffers, LogEntry
from ..waits.bell import Bell

BACKLOG = 200
"""Messages that wait for a slow client; the oldest make room, and get_logs still has them."""

Notify = Callable[[str, Mapping[str, Any]], Awaitable[None]]


@attrs.define(eq=False)
class LogMessages:
    """Of one connection."""

    _buffers: Buffers
    _wanted: Callable[[str], bool] = attrs.field(factory=lambda: at_least(LEVELS[0]), init=False)
    _waiting: deque[LogEntry] = attrs.field(factory=lambda: deque(maxlen=BACKLOG), init=False)
    _news: Bell = attrs.field(factory=Bell, init=False)

    def set_level(self, level: str) -> None:
        self._wanted = at_least(level)

    async def run(self, notify: Notify, over: trio.Event) -> None:
        """Send until *over*."""
        with self._buffers.heard_by(self._heard):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._send, notify)
                await over.wait()
                nursery.cancel_scope.cancel("the connection is over")

    def _heard(self, entry: LogEntry) -> None:
        if entry.source == "protocol" and self._wanted(entry.level):
            self._waiting.append(entry)
            self._news.ring()

    async def _send(self, notify: Notify) -> None:
        while True:
            while not self._waiting:
                await self._news.wait()
            await notify("notifications/message", _params(self._waiting.popleft()))


def _params(entry: LogEntry) -> dict[str, Any]:
    return {
        "level": entry.level if entry.level in LEVELS else "info",
        "logger": f"{entry.server}/{entry.logger}" if entry.logger else entry.server,
        "data": entry.data,
    }
