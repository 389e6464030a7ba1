"""One request of the modern era: its answer, what is said before it, and how both are written.

A task of the session works at the answer and writes it, while that of the connection watches the
client, whose leaving is this era's cancellation. If something is said before, or nothing for a
while, the answer is a stream, which the latter writes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import attrs
import trio
from mcp.shared.inbound import ERROR_CODE_HTTP_STATUS
from mcp.shared.message import SessionMessage
from mcp_types import (
    CONNECTION_CLOSED,
    ErrorData,
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    RequestId,
)

from ...serving.asgi import Receive, Send
from ...session.events import Delivery
from ...tools.common.registry import Request
from ...waits.bell import Bell
from ...waits.firewall import Firewall, begin
from ...waits.slices import in_slices
from ...web.wire import (
    KEEP_ALIVE,
    KEEP_ALIVE_EVERY,
    answer,
    crashed,
    dump,
    event,
    send_event,
    send_json,
    start_events,
    until_gone,
    while_connected,
)
from ..mcp import Front
from ..progress import progress_note

BACKLOG = 256
"""Notifications of one request that wait for a slow reader; the oldest make room: they are
progress, of which only the newest counts."""

Work = Callable[[], Awaitable[JSONRPCResponse | JSONRPCError]]


@attrs.define(eq=False)
class ModernExchange:
    front: Front
    message: JSONRPCRequest
    look: Callable[[], bool] | None
    """Says whether the client is gone, where the server can."""
    said: deque[str] = attrs.field(factory=lambda: deque(maxlen=BACKLOG), init=False)
    """Before the answer, and not written yet."""
    answer: str | None = attrs.field(default=None, init=False)
    """As it goes out."""
    status: int = attrs.field(default=200, init=False)
    is_stream: bool = attrs.field(default=False, init=False)
    """It is answered as an event stream."""
    is_written: bool = attrs.field(default=False, init=False)
    """The transport has the answer."""
    _is_over: bool = attrs.field(default=False, init=False)
    """Nobody works at it any more."""
    _is_left: bool = attrs.field(default=False, init=False)
    """Nobody is going to write it who does not now."""
    _working: trio.CancelScope = attrs.field(factory=trio.CancelScope, init=False)
    _watching: trio.CancelScope = attrs.field(factory=trio.CancelScope, init=False)
    """For the client, who may go, until there is something else to do."""
    _delivery: Delivery | None = attrs.field(default=None, init=False)
    """What the answer tells."""
    _request: Request = attrs.field(init=False)
    _news: Bell = attrs.field(factory=Bell, init=False)

    def __attrs_post_init__(self) -> None:
        self.front.deliver, self.front.send = self.carry, self.send
        self.front.observe(self.message)
        self._request = self.front.under_way.find(self.message.id).request

    # The task of the session.

    def begin(self, work: Work, send: Send) -> None:
        fields = {"session": self.front.session.id, "method": self.message.method}
        wall = Firewall("request_crashed", self._crashed, fields=fields)
        begin(self.front.session.outer, wall, self._work, work, send)

    async def _work(self, work: Work, send: Send) -> None:
        try:
            with self._working:
                made = await work()
                said, is_whole = await answer(made)
                if isinstance(made, JSONRPCError):
                    self.status = ERROR_CODE_HTTP_STATUS.get(made.error.code, 200)
                self._decide(said, tells=is_whole and isinstance(made, JSONRPCResponse))
                if not self.is_stream:
                    await self._hand_over(partial(send_json, send, self.status, said))
        except trio.Cancelled:
            error = ErrorData(code=CONNECTION_CLOSED, message="Connection closed")
            self._decide(dump(JSONRPCError(jsonrpc="2.0", id=self.message.id, error=error)))
            raise
        finally:
            self._is_over = True
            self._watching.cancel("it is over")
            if self._is_left:
                self._end()

    def _crashed(self, log_id: str) -> None:
        self.status = 500
        self._decide(crashed(self.message.id, log_id))

    def _decide(self, said: str, *, tells: bool = False) -> None:
        """That is the answer, which perhaps *tells* of events."""
        self.answer = said
        if not tells:
            self._settle(is_told=False)
        self._news.ring()

    # What is said meanwhile.

    async def send(self, item: SessionMessage) -> None:
        assert isinstance(item.message, JSONRPCNotification)  # nothing is asked in this era
        self.say(item.message)

    async def report(self, *progress: Any) -> None:
        self.say(progress_note(*progress))

    def say(self, message: JSONRPCNotification) -> None:
        """Before the answer."""
        self.said.append(dump(message))
        self._become_stream()
        self._watching.cancel("something is said")
        self._news.ring()

    def _become_stream(self) -> None:
        """Unless there is an answer: what is decided first stays."""
        self.is_stream |= self.answer is None

    def carry(self, _: RequestId, delivery: Delivery) -> None:
        """The answer is going to tell of these events."""
        self._delivery = delivery

    def _settle(self, *, is_told: bool) -> None:
        """What becomes of them, if nothing has yet."""
        delivery, self._delivery = self._delivery, None
        if delivery is not None and is_told:
            delivery.commit()
        elif delivery is not None:
            delivery.give_back()

    def _end(self) -> None:
        """Nothing is done for it any more."""
        self._settle(is_told=False)
        self._request.end(is_written=self.is_written)

    # The task of the connection.

    async def respond(self, receive: Receive, send: Send) -> None:
        """See the client go, and write what is not written yet."""
        try:
            while not (self.is_stream or self._is_over):
                with trio.move_on_after(KEEP_ALIVE_EVERY) as self._watching:
                    await until_gone(receive)
                    self.front.under_way.client_is_gone()
                    return
                self._become_stream()
            if self.is_stream:
                await self._stream(receive, send)
            elif not self.is_written and self.answer is not None:  # it was cut short
                await self._hand_over(partial(send_json, send, self.status, self.answer))
        finally:
            if self._is_over:
                self._end()
            else:
                self._is_left = True
                self._working.cancel("client is gone")

    async def _stream(self, receive: Receive, send: Send) -> None:
        async with while_connected(receive):
            await start_events(send)
            while self.said or self.answer is None:
                with trio.move_on_after(KEEP_ALIVE_EVERY) as silence:
                    await self._until_news()
                if silence.cancelled_caught:
                    await send_event(send, KEEP_ALIVE)
                while self.said:
                    await send_event(send, await in_slices(event(self.said.popleft())))
            end = {"type": "http.response.body", "body": await in_slices(event(self.answer))}
            await self._hand_over(partial(send, end))
        if self.answer is None:
            self.front.under_way.client_is_gone()

    async def _until_news(self) -> None:
        while not self.said and self.answer is None:
            await self._news.wait()

    async def _hand_over(self, write: Callable[[], Awaitable[None]]) -> None:
        """Write the answer, unless the client is known to be gone."""
        if self.look is None:
            await trio.lowlevel.checkpoint()  # who watches may learn it in this very tick
        elif self.look():
            return
        # From here on it is the transport's, and what it tells of is told. No checkpoint before
        # that.
        self.is_written = True
        self._settle(is_told=True)
        with trio.CancelScope(shield=True):  # bounded by the transport's patience with readers
            await write()
