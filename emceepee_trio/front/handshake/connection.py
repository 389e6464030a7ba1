"""One `initialize` of a client over HTTP and what follows: requests in tasks, answers in streams.

They run in the session, so that connections of HTTP may come and go. Where nothing is under way
there is no task.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, Literal

import attrs
import trio
from mcp.shared.dispatcher import coerce_request_id
from mcp.shared.message import ServerMessageMetadata, SessionMessage
from mcp_types import (
    CONNECTION_CLOSED,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCRequest,
    JSONRPCResponse,
    RequestId,
)

from ...config.bounds import MAX_UNANSWERED
from ...serving.asgi import Refused
from ...session.events import Delivery
from ...waits.firewall import Firewall, begin
from ...web.wire import answer, crashed, dump
from ..by_the_sdk import by_the_sdk, of_handshake
from ..mcp import Front
from ..progress import progress_note
from .stream import Stream
from .streams import Streams

PRIMED_SINCE = "2025-11-25"
"""Older clients stumble over an event without data."""

LAST_ANSWERS = 0.25
"""Seconds to answer what was under way when the session ended."""


@attrs.define(eq=False)
class Exchange:
    """A request on its way, as its client calls it, and which stream its answer belongs to."""

    request_id: RequestId
    stream: Stream
    waiting: set[RequestId]
    """Requests of the same POST without an answer; the stream ends when there are none."""
    under_way: AbstractContextManager[None]
    """Keeps the session from being idle, also while no connection waits for the answer."""
    delivery: Delivery | None = None
    """What the answer that is about to be said will tell."""
    scope: trio.CancelScope = attrs.field(factory=trio.CancelScope, init=False)
    """In which it is answered."""
    outlives_session: bool = attrs.field(default=False, init=False)
    """By no more than a moment: then it is refused."""


@attrs.define(eq=False)
class HandshakeConnection:
    front: Front
    streams: Streams
    version: str = attrs.field(default="", init=False)
    _exchanges: dict[RequestId, Exchange] = attrs.field(factory=dict, init=False)
    """By the ids of their requests, in which "1" is 1. No answer of an earlier connection meets a
    request of this one, and no two of one id are under way at once."""
    _greeted: trio.Event | None = attrs.field(default=None, init=False)
    """Set when `initialize` is answered; there while it is not."""

    @property
    def is_primed(self) -> bool:
        return self.version >= PRIMED_SINCE

    def _wall(self, failed: Callable[[str], object] | None = None) -> Firewall:
        fields = {"session": self.front.session.id}
        return Firewall("client_connection_crashed", failed, fields=fields)

    def close(self) -> None:
        """The session has ended: what is under way is answered that, and nothing more begins."""
        self.front.closing.set()
        for exchange in self._exchanges.values():
            if not exchange.scope.cancel_called:
                exchange.outlives_session = True
                exchange.scope.deadline = trio.current_time() + LAST_ANSWERS

    def end(self) -> None:
        """The client has lost its streams: its calls go on as tasks, its waits end."""
        self.front.under_way.give_up()
        self.front.closing.set()
        scopes = [exchange.scope for exchange in self._exchanges.values()]
        if scopes:
            begin(self.front.session.outer, self._wall(), _cancel, scopes)
        self._settle_all()
        self.streams.start_over()

    def _exchange(self, request_id: RequestId | None) -> Exchange | None:
        return None if request_id is None else self._exchanges.get(coerce_request_id(request_id))

    def check(self, messages: list[JSONRPCMessage]) -> None:
        """Whether the requests of one POST can be taken.

        Raises:
            Refused: one has an id that another has, there or in flight; or there are too many.
        """
        seen = set[RequestId]()
        for message in messages:
            if isinstance(message, JSONRPCRequest):
                key = coerce_request_id(message.id)
                if key in seen or key in self._exchanges:
                    raise Refused(400, f"request id {message.id!r} is in flight already")
                seen.add(key)
        at_most = self.front.session.config.limits.calls + MAX_UNANSWERED
        if len(self._exchanges) + len(messages) > at_most:
            raise Refused(503, f"more than {at_most} requests wait for their answers")

    def at_once(self, messages: list[JSONRPCMessage]) -> str | None:
        """The answer, as it goes out, to a single request that nobody has to think about."""
        only = messages[0] if len(messages) == 1 else None
        if not isinstance(only, JSONRPCRequest):
            return None
        return self.front.at_once(only, self.version)

    def take(self, messages: list[JSONRPCMessage], stream: Stream | None) -> None:
        """Begin to answer the messages of one POST; answers, if any, go to *stream*.

        Synchronous, so that nobody is ever half-way: all of them are taken, or none.
        """
        waiting = set[RequestId]()
        for message in messages:
            if not isinstance(message, JSONRPCRequest):
                self.front.observe(message)
                continue
            assert stream is not None
            exchange = self._expect(message.id, stream, waiting)
            self.front.observe(message)
            wall = self._wall(partial(self._fail, exchange))
            begin(self.front.session.outer, wall, self._answer, message, exchange)

    def _expect(self, request_id: RequestId, stream: Stream, waiting: set[RequestId]) -> Exchange:
        """A request is about to be under way."""
        key = coerce_request_id(request_id)
        under_way = self.front.session.presence.busy()
        under_way.__enter__()
        exchange = self._exchanges[key] = Exchange(request_id, stream, waiting, under_way)
        waiting.add(key)
        return exchange

    async def _answer(self, message: JSONRPCRequest, exchange: Exchange) -> None:
        try:
            with exchange.scope as scope:
                self.front.under_way.answered_in(scope, message.id)
                said = await self._said(message)
                # Nobody can cancel it by its id any more. Who has done that, where an error came
                # without a checkpoint, does not read it.
                if not scope.cancel_called:
                    await self._tell(said, exchange)
        except trio.Cancelled:
            self._refuse(exchange)
            raise
        if scope.cancel_called and exchange.outlives_session:
            self._refuse(exchange)
        elif scope.cancel_called:
            self.front.under_way.forget(message.id)
            self._settle(exchange)

    async def _said(self, message: JSONRPCRequest) -> JSONRPCResponse | JSONRPCError:
        if message.method == "tools/call":  # by far the most: at a third of the price
            return await self.front.call(message, partial(self._report, message.id), self.version)
        if message.method != "initialize":
            if self._greeted is not None:  # a client that does not wait for it
                await self._greeted.wait()
            return await self._by_the_sdk(message)
        greeted = self._greeted = trio.Event()
        try:
            return await self._by_the_sdk(message)
        finally:
            greeted.set()
            self._greeted = None

    async def _by_the_sdk(self, message: JSONRPCRequest) -> JSONRPCResponse | JSONRPCError:
        connection = of_handshake(self.front, self.say)
        return await by_the_sdk(self.front, message, self.say, connection)

    async def _report(self, request_id: RequestId, *progress: Any) -> None:
        about = ServerMessageMetadata(related_request_id=request_id)
        await self.say(SessionMessage(progress_note(*progress), about))

    def _refuse(self, exchange: Exchange) -> None:
        """Its session has ended."""
        error = ErrorData(code=CONNECTION_CLOSED, message="Connection closed")
        said = JSONRPCError(jsonrpc="2.0", id=exchange.request_id, error=error)
        self._end_with(exchange, dump(said))

    def _fail(self, exchange: Exchange, log_id: str) -> None:
        """We have a bug."""
        self._end_with(exchange, crashed(exchange.request_id, log_id))

    def _end_with(self, exchange: Exchange, said: str) -> None:
        """Answer a request, if it is not answered."""
        if self._exchange(exchange.request_id) is exchange:
            self.streams.add(exchange.stream, said, is_answer=True)
            self._settle(exchange)

    def _settle(self, exchange: Exchange) -> None:
        key = coerce_request_id(exchange.request_id)
        if self._exchanges.get(key) is not exchange:
            return
        del self._exchanges[key]
        if exchange.delivery is not None:
            exchange.delivery.give_back()
        exchange.under_way.__exit__(None, None, None)
        exchange.waiting.discard(key)
        if not exchange.waiting:
            self.streams.finish(exchange.stream)

    def _settle_all(self) -> None:
        for exchange in tuple(self._exchanges.values()):
            self._settle(exchange)

    def carry(self, request_id: RequestId, delivery: Delivery) -> None:
        """The next thing said for that request is an answer that tells of these events."""
        exchange = self._exchange(request_id)
        if exchange is not None:
            exchange.delivery = delivery
        else:
            delivery.give_back()

    def stream_about(self, request_id: RequestId | None) -> Stream:
        """That of the answer to this request, if it is under way; else that of its own."""
        exchange = self._exchange(request_id)
        return self.streams.standalone if exchange is None else exchange.stream

    async def say(self, item: SessionMessage) -> None:
        """Put a message that is no answer into the stream that it belongs to."""
        with self._wall():
            about = None
            if isinstance(item.metadata, ServerMessageMetadata):
                about = item.metadata.related_request_id
            self.streams.add(self.stream_about(about), dump(item.message))
            await self.streams.wait_for_room()

    async def _tell(self, message: JSONRPCResponse | JSONRPCError, exchange: Exchange) -> None:
        """That is the answer."""
        said, is_whole = await answer(message)
        if self._exchange(message.id) is not exchange:
            return  # its client has joined again meanwhile
        delivery = None
        if is_whole and isinstance(message, JSONRPCResponse):
            delivery, exchange.delivery = exchange.delivery, None
        self.streams.add(exchange.stream, said, is_answer=True, delivery=delivery)
        self._settle(exchange)
        await self.streams.wait_for_room()

    def stream(self, request_id: RequestId, what: Literal["begins", "pauses"]) -> None:
        """The server answers that request with a stream, or ends it, to be asked again."""
        exchange = self._exchange(request_id)
        if exchange is None:
            return
        if what == "begins":
            exchange.stream.open()
        elif self.is_primed:
            exchange.stream.pause()


async def _cancel(scopes: list[trio.CancelScope]) -> None:
    """Nobody reads those answers any more."""
    # What came in the same tick shall have begun, to go on as a task as well.
    await trio.lowlevel.checkpoint()
    for scope in scopes:
        scope.cancel("its client has joined again")
