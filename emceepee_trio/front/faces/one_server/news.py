"""What a client of one server is told before the answer to a request, or without any request.

In the handshake era that is all that its server says, for as long as the connection lasts. In the
modern one it is progress, if the request wants it, and what is logged while that is under way.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import attrs
import trio
from mcp_types import RequestId

from ....backend.connections.callbacks import OnProgress, Params
from ....model.protocol.eras import LOG_LEVEL, meta_of, notice_for
from ....model.protocol.levels import LEVELS
from ....session.buffers import LogEntry
from ....session.session import Session
from ...log_messages import on_its_stream
from ...news import News
from ..face import Incoming

if TYPE_CHECKING:
    from ...mcp import Front


@attrs.define(eq=False)
class Following:
    """A connection of the handshake era that hears of one server all that there is to hear."""

    session: Session
    server: str
    news: News
    under_way: dict[RequestId, None] = attrs.field(factory=dict, init=False)
    """Requests to it, the oldest first."""

    async def run(self, over: trio.Event) -> None:
        """Until *over*."""
        with (
            self.session.announcements.heard_by(self._notified),
            self.session.buffers.heard_by(self._logged),
        ):
            await self.news.run(over)

    def _notified(self, server: str, method: str, params: Params | None) -> None:
        if server == self.server:
            self.news.tell(method, notice_for(params, None))

    def _logged(self, entry: LogEntry) -> None:
        if entry.server == self.server and entry.source == "protocol":
            # No server says which request it logs for; the oldest waits longest for a word.
            self.news.tell(
                "notifications/message", _as_sent(entry), next(iter(self.under_way), None)
            )


@asynccontextmanager
async def told_before_the_answer(
    front: Front, asked: Incoming, server: str
) -> AsyncGenerator[News | None]:
    """Where that is told of that *server*, if anything is."""
    if (following := front.following) is not None:
        following.under_way[asked.id] = None
        try:
            yield following.news
        finally:
            following.under_way.pop(asked.id, None)
        return
    level = meta_of(asked.params).get(LOG_LEVEL)
    if asked.progress_token is None and level not in LEVELS:
        yield None
        return

    def is_its(entry: LogEntry) -> bool:
        return entry.server == server

    async with on_its_stream(front, asked.id, level, is_its, _as_sent) as news:
        yield news


def progress_to(news: News | None, asked: Incoming) -> OnProgress | None:
    """Tells there what the server reports, under the client's token; None if nobody wants it."""
    token = asked.progress_token
    if news is None or token is None:
        return None

    def heard(said: Params) -> None:
        news.tell("notifications/progress", {**said, "progressToken": token}, asked.id)

    return heard


def _as_sent(entry: LogEntry) -> dict[str, Any]:
    """As its server sent it."""
    named = {} if entry.logger is None else {"logger": entry.logger}
    return {"level": entry.level, **named, "data": entry.data}
