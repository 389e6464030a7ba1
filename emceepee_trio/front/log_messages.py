"""What backends log, for a client of the handshake era that asked for it with logging/setLevel.

Nothing is sent unasked, and nothing of what is sent is taken from what get_logs keeps. A modern
client asks with each request instead, and hears on its stream what is logged for it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import attrs
import outcome
import trio
from mcp_types import RequestId

from ..model.protocol.eras import LOG_LEVEL, meta_of
from ..model.protocol.levels import LEVELS, at_least
from ..session.buffers import Buffers, LogEntry
from ..waits.bell import Bell
from ..waits.firewall import Firewall, begin
from .news import News

if TYPE_CHECKING:
    from .faces.face import Incoming
    from .mcp import Front

T = TypeVar("T")

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
            await notify("notifications/message", named(self._waiting.popleft()))


@asynccontextmanager
async def on_its_stream(
    front: Front,
    about: RequestId,
    level: object,
    is_its: Callable[[LogEntry], bool],
    said: Callable[[LogEntry], Mapping[str, Any]],
) -> AsyncGenerator[News]:
    """What a request of the modern era hears while it is under way: logs, as far as it wants any,
    and what else is told there. Who answers it waits until that is sent."""
    news = News(front.send)

    def logged(entry: LogEntry) -> None:
        is_wanted = level in LEVELS and at_least(str(level))(entry.level)
        if is_wanted and entry.source == "protocol" and is_its(entry):
            news.tell("notifications/message", said(entry), about)

    with front.session.buffers.heard_by(logged):
        async with trio.open_nursery() as nursery:
            begin(nursery, Firewall("news_crashed"), news.run, trio.Event())
            yield news
            nursery.cancel_scope.cancel("answered")


async def heard_meanwhile(front: Front, asked: Incoming, work: Callable[[], Awaitable[T]]) -> T:
    """What *work* comes to for a request of the modern era, which hears what is logged for it.

    That is by the server that it asks; of one that asks several, as a script does, by those that
    calls are waited for of. Who sees one server has its logs from elsewhere.
    """
    level = meta_of(asked.params).get(LOG_LEVEL)
    if level not in LEVELS or front.face.server is not None:
        return await work()

    def is_its(entry: LogEntry) -> bool:
        if (server := asked.entry.request.server) is not None:
            return entry.server == server
        return any(call.server == entry.server for call in front.session.calls.unsettled())

    async with on_its_stream(front, asked.id, level, is_its, named) as news:
        result = await outcome.acapture(work)
        await news.sent()
    return result.unwrap()


def named(entry: LogEntry) -> dict[str, Any]:
    """As it is told where there are several servers."""
    return {
        "level": entry.level if entry.level in LEVELS else "info",
        "logger": f"{entry.server}/{entry.logger}" if entry.logger else entry.server,
        "data": entry.data,
    }
