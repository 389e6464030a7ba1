"""What a connection is told beside answers, in the order in which it came.

Servers say it synchronously; a transport may take its time. In between is a bounded queue of each
connection, whose oldest make room. An answer waits until what was said before it is on its way.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import attrs
import trio
from mcp.shared.message import ServerMessageMetadata, SessionMessage
from mcp_types import JSONRPCNotification, RequestId

from .. import logs
from ..model.protocol.eras import notice_for
from ..waits.bell import Bell

BACKLOG = 1000
"""Notifications that wait for a slow client."""

ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
CANCELLED = "notifications/cancelled"

Send = Callable[[SessionMessage], Awaitable[None]]
"""Puts a message on its way, on the stream of the request that it is related to."""


@attrs.define(eq=False)
class News:
    send: Send
    _waiting: deque[SessionMessage] = attrs.field(factory=lambda: deque(maxlen=BACKLOG), init=False)
    _is_over: bool = attrs.field(default=False, init=False)
    _lost: int = attrs.field(default=0, init=False)
    _is_sending: bool = attrs.field(default=False, init=False)
    _changed: Bell = attrs.field(factory=Bell, init=False)

    def tell(
        self, method: str, params: Mapping[str, Any] | None, about: RequestId | None = None
    ) -> None:
        """With the request that it belongs to, if it belongs to one."""
        said = {"params": dict(params)} if params else {}
        message = JSONRPCNotification(jsonrpc="2.0", method=method, **said)
        if len(self._waiting) == BACKLOG:
            self._lost += 1
        metadata = None if about is None else ServerMessageMetadata(related_request_id=about)
        self._waiting.append(SessionMessage(message, metadata))
        self._changed.ring()

    async def run(self, over: trio.Event) -> None:
        """Send until *over*."""
        self._is_over = False  # it may be begun again
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._send_all)
                await over.wait()
                nursery.cancel_scope.cancel("the connection is over")
        finally:
            self._is_over = True
            self._changed.ring()

    async def _send_all(self) -> None:
        while True:
            while not self._waiting:
                await self._changed.wait()
            self._is_sending = True
            try:
                await self.send(self._waiting.popleft())
            finally:
                self._is_sending = False
                self._changed.ring()
            if self._lost:
                logs.write("warn", "notifications_dropped", count=self._lost)
                self._lost = 0

    async def listen(
        self,
        over: trio.Event,
        about: RequestId,
        honoured: Mapping[str, Any],
        run: Callable[[trio.Event], Awaitable[None]] | None = None,
    ) -> dict[str, Any]:
        """Answer a ``subscriptions/listen``.

        What is *honoured* is acknowledged first of all, then told, as by :meth:`run` or by *run*;
        at the end comes a cancellation, and then the result, which is returned.
        """
        await self._say(ACKNOWLEDGED, {"notifications": dict(honoured)}, about)
        await (run or self.run)(over)
        await self._say(CANCELLED, {"requestId": about, "reason": "shutting down"}, about)
        return {"resultType": "complete", **notice_for({}, about)}

    async def _say(self, method: str, params: Mapping[str, Any], about: RequestId) -> None:
        said = notice_for(params, about)
        message = JSONRPCNotification(jsonrpc="2.0", method=method, params=said)
        await self.send(SessionMessage(message, ServerMessageMetadata(related_request_id=about)))

    async def sent(self) -> None:
        """Wait until all that was told is on its way."""
        while (self._waiting or self._is_sending) and not self._is_over:
            await self._changed.wait()
