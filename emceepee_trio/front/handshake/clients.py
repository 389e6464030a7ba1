"""A client of the handshake era over HTTP: its streams, and the connection it speaks on now.

`initialize` opens a :class:`HandshakeConnection`, a dispatcher of its own on the client's session;
it runs in the session, so that those of HTTP may come and go. A client that lost its streams
initializes again with the id of its session: a new connection takes over, the calls of the old one
become tasks, and what was unread moves to the standalone stream.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, Literal, Self

import attrs
import trio
from mcp.server.runner import serve_loop
from mcp.shared.dispatcher import coerce_request_id
from mcp.shared.message import ServerMessageMetadata, SessionMessage
from mcp_types import (
    CONNECTION_CLOSED,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    RequestId,
)

from ...config.bounds import MAX_UNANSWERED
from ...serving.asgi import Refused
from ...session.events import Delivery
from ...session.manager import SessionManager
from ...session.session import Session
from ...waits.firewall import Firewall, begin
from ...web.wire import answer, crashed, dump, spelled
from ..asking.backchannel import Backchannel
from ..faces.face import Face
from ..mcp import Front, mcp_server
from ..progress import progress_note
from .stream import Stream
from .streams import Streams

PRIMED_SINCE = "2025-11-25"
"""Older clients stumble over an event without data."""

LAST_ANSWERS = 0.25
"""Seconds to answer what was under way when the session ended."""
BACKLOG = 1000
"""Messages that wait for the dispatcher; with more, a POST is refused."""


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


@attrs.define(eq=False)
class HandshakeConnection:
    """One `initialize` and what follows, on one dispatcher."""

    front: Front
    streams: Streams
    version: str = attrs.field(default="", init=False)
    _exchanges: dict[RequestId, Exchange] = attrs.field(factory=dict, init=False)
    """By the ids of their requests, in which "1" is 1. No answer of an earlier connection meets a
    request of this one, and no two of one id are under way at once."""
    _pipe: tuple[trio.MemorySendChannel[Any], trio.MemoryReceiveChannel[Any]] = attrs.field(
        factory=lambda: trio.open_memory_channel[Any](BACKLOG), init=False
    )

    _calls: trio.Nursery | None = attrs.field(default=None, init=False)
    """Those of tools, each in a task of its own; the dispatcher has everything else."""
    _scope: trio.CancelScope = attrs.field(factory=trio.CancelScope, init=False)
    _is_closing: bool = attrs.field(default=False, init=False)

    @property
    def is_primed(self) -> bool:
        return self.version >= PRIMED_SINCE

    async def run(self, session_id: str) -> None:
        send, receive = self._pipe
        try:
            with self._wall(session_id, self._crashed), self._scope, send, receive:
                async with trio.open_nursery() as self._calls:
                    await serve_loop(
                        mcp_server(),
                        receive,
                        _Outgoing(self),
                        lifespan_state=self.front,
                        session_id=session_id,
                    )
                    self._calls.cancel_scope.cancel("nobody reads its answers any more")
        finally:
            self._calls = None
            self._settle_all()

    def begin(self, session: Session) -> None:
        # It outlives the calls, to answer those that the end of the session meets.
        begin(session.outer, self._wall(session.id), self.run, session.id)

    def _wall(self, session_id: str, failed: Callable[[str], object] | None = None) -> Firewall:
        return Firewall("client_connection_crashed", failed, fields={"session": session_id})

    def close(self) -> None:
        """The session has ended: what is under way is answered that, and nothing more begins."""
        self.front.draining.set()
        self._scope.deadline = trio.current_time() + LAST_ANSWERS
        self._is_closing = True
        self._look()

    def _look(self) -> None:
        if self._is_closing and not self._exchanges:
            self._scope.cancel("the session has ended")

    def _crashed(self, log_id: str) -> None:
        """Its client can initialize again; what went on goes on as tasks."""
        self.front.give_up()
        self.front.draining.set()
        for request_id in tuple(self._exchanges):
            self._fail(request_id, log_id)

    def _fail(self, request_id: RequestId | None, log_id: str) -> None:
        """Answer a request, if it is not answered, that we have a bug."""
        exchange = self._exchange(request_id)
        if exchange is not None:
            said = crashed(exchange.request_id, log_id)
            self.streams.add(exchange.stream, said, is_answer=True)
            self._settle(exchange.request_id)

    def _exchange(self, request_id: RequestId | None) -> Exchange | None:
        return None if request_id is None else self._exchanges.get(coerce_request_id(request_id))

    def duplicates(self, messages: list[JSONRPCMessage]) -> RequestId | None:
        """An id that is used twice, or that a request in flight has."""
        seen = set[RequestId]()
        for message in messages:
            if isinstance(message, JSONRPCRequest):
                key = coerce_request_id(message.id)
                if key in seen or key in self._exchanges:
                    return message.id
                seen.add(key)
        return None

    def take(self, messages: list[JSONRPCMessage], stream: Stream | None) -> None:
        """Hand the messages of one POST to the dispatcher; answers, if any, go to *stream*.

        Synchronous, so that nobody is ever half-way: all of them are taken, or none.
        """
        pipe = self._pipe[0]
        if pipe.statistics().current_buffer_used + len(messages) > BACKLOG:
            raise Refused(503, f"more than {BACKLOG} messages wait to be read")
        at_most = self.front.session.config.limits.calls + MAX_UNANSWERED
        if stream is not None and len(self._exchanges) + len(messages) > at_most:
            raise Refused(503, f"more than {at_most} requests wait for their answers")
        session_id, waiting = self.front.session.id, set[RequestId]()
        try:
            for message in messages:
                if not isinstance(message, JSONRPCRequest):
                    if not self.front.observe(message):
                        pipe.send_nowait(SessionMessage(message))
                    continue
                assert stream is not None
                if (said := self.front.at_once(message, self.version)) is not None:
                    self.streams.add(stream, said, is_answer=True)
                    continue
                metadata = self._expect(message.id, stream, waiting)
                self.front.observe(message)
                if self._calls is not None and message.method == "tools/call":
                    wall = self._wall(session_id, partial(self._fail, message.id))
                    begin(self._calls, wall, self._call, message)
                else:
                    pipe.send_nowait(SessionMessage(message, metadata))
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            self._settle_all()
            raise Refused(404, "the session has ended; initialize a new one") from None
        if stream is not None and not waiting:
            self.streams.finish(stream)

    async def _call(self, message: JSONRPCRequest) -> None:
        """What the dispatcher would do, at half the price."""
        report = partial(self._report, message.id)
        with trio.CancelScope() as scope:
            try:
                said = await self.front.call(message, report, self.version, scope=scope)
            except trio.Cancelled:
                if not scope.cancel_called:
                    self._refuse(message.id, CONNECTION_CLOSED, "Connection closed")
                raise
        if scope.cancel_called:  # also where an error came without a checkpoint: it has no reader
            self._settle(message.id)
        else:
            await self.say(SessionMessage(said))

    def _refuse(self, request_id: RequestId, code: int, message: str) -> None:
        """Answer a request, if it is not answered, as the dispatcher would."""
        exchange = self._exchange(request_id)
        if exchange is not None:
            error = ErrorData(code=code, message=message)
            said = dump(JSONRPCError(jsonrpc="2.0", id=request_id, error=error))
            self.streams.add(exchange.stream, said, is_answer=True)
            self._settle(request_id)

    async def _report(self, request_id: RequestId, *progress: Any) -> None:
        about = ServerMessageMetadata(related_request_id=request_id)
        await self.say(SessionMessage(progress_note(*progress), about))

    def _expect(
        self, request_id: RequestId, stream: Stream, waiting: set[RequestId]
    ) -> ServerMessageMetadata:
        """A request is about to be under way."""
        key = coerce_request_id(request_id)
        under_way = self.front.session.presence.busy()
        under_way.__enter__()
        self._exchanges[key] = Exchange(request_id, stream, waiting, under_way)
        waiting.add(key)

        async def unanswered() -> None:
            self._settle(key)

        return ServerMessageMetadata(on_request_unanswered=unanswered, can_send_request=False)

    def carry(self, request_id: RequestId, delivery: Delivery) -> None:
        """The next thing said for that request is an answer that tells of these events."""
        exchange = self._exchange(request_id)
        if exchange is not None:
            exchange.delivery = delivery
        else:
            delivery.give_back()

    def _settle(self, request_id: RequestId) -> None:
        key = coerce_request_id(request_id)
        exchange = self._exchanges.pop(key, None)
        if exchange is not None:
            if exchange.delivery is not None:
                exchange.delivery.give_back()
            exchange.under_way.__exit__(None, None, None)
            exchange.waiting.discard(key)
            if not exchange.waiting:
                self.streams.finish(exchange.stream)
            self._look()

    def _settle_all(self) -> None:
        for request_id in tuple(self._exchanges):
            self._settle(request_id)

    def stream_about(self, request_id: RequestId | None) -> Stream:
        """That of the answer to this request, if it is under way; else that of its own."""
        exchange = self._exchange(request_id)
        return self.streams.standalone if exchange is None else exchange.stream

    async def say(self, item: SessionMessage) -> None:
        """A message from the dispatcher, put into the stream it belongs to."""
        with self._wall(self.front.session.id) as wall:
            await self._say(item)
        if wall.log_id is not None and isinstance(item.message, JSONRPCResponse | JSONRPCError):
            self._fail(item.message.id, wall.log_id)

    async def _say(self, item: SessionMessage) -> None:
        message, metadata = item.message, item.metadata
        if isinstance(message, JSONRPCResponse | JSONRPCError):
            exchange = self._exchange(message.id)
            if exchange is None:
                return
            said, is_whole = await answer(message)
            if self._exchange(message.id) is not exchange:
                return  # its client has joined again meanwhile
            delivery = None
            if is_whole and isinstance(message, JSONRPCResponse):
                delivery, exchange.delivery = exchange.delivery, None
            self.streams.add(exchange.stream, said, is_answer=True, delivery=delivery)
            self._settle(exchange.request_id)
        else:
            about = None
            if isinstance(metadata, ServerMessageMetadata):
                about = metadata.related_request_id
            self.streams.add(self.stream_about(about), dump(message))
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

    def end(self) -> None:
        """The client has lost its streams: its calls go on as tasks, its waits end."""
        self.front.give_up()
        self.front.draining.set()
        # No cancelling: what the dispatcher has not read yet shall begin, to become tasks as well.
        self._pipe[0].close()
        self._settle_all()
        self.streams.start_over()


@attrs.define(eq=False)
class _Outgoing:
    """What the dispatcher takes for a write stream."""

    _connection: HandshakeConnection

    async def send(self, item: SessionMessage) -> None:
        await self._connection.say(item)

    async def aclose(self) -> None:
        await trio.lowlevel.checkpoint()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.aclose()


@attrs.define(eq=False)
class HttpSession:
    """What HTTP adds to a session."""

    session: Session
    manager: SessionManager
    streams: Streams = attrs.field(init=False)
    connection: HandshakeConnection | None = attrs.field(default=None, init=False)
    backchannel: Backchannel = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        sweeper = self.session.sweeper
        journal = self.session.shared.journal
        self.streams = Streams(self.session.id, on_kept=sweeper.look, journal=journal)
        sweeper.keepers = (*sweeper.keepers, self.streams)
        self.backchannel = Backchannel(self.session, self)

    def reaches(self) -> bool:
        return self.streams.standalone.has_reader

    async def send(self, message: JSONRPCRequest, about: RequestId | None) -> None:
        said = await spelled(message)
        self.streams.add(self._stream(about), said, asks=str(message.id))
        await self.streams.wait_for_room()

    def note(self, message: JSONRPCNotification, about: RequestId | None) -> None:
        self.streams.add(self._stream(about), dump(message))
        self.streams.make_room()

    def _stream(self, about: RequestId | None) -> Stream:
        if self.connection is None:
            return self.streams.standalone
        return self.connection.stream_about(about)

    def close(self) -> None:
        """The session has ended."""
        if self.connection is not None:
            self.connection.close()
        self.streams.finish(self.streams.standalone)

    def connect(self, face: Face) -> HandshakeConnection:
        """A new connection of the client, with this face; an earlier one ends."""
        if self.connection is not None:
            self.connection.end()
            self.backchannel.start_over(self.streams.unread_requests())
        front = Front(self.session, self.manager, face)
        front.backchannel = self.backchannel
        self.connection = HandshakeConnection(front, self.streams)
        front.deliver = self.connection.carry
        front.send = self.connection.say
        front.stream = self.connection.stream
        self.backchannel.view = face.view
        self.connection.begin(self.session)
        return self.connection
