"""The 2026-07-28 half of the endpoint: every POST is self-contained.

No handshake, no session header, no ids and no resumption. The session is a workspace named in the
URL (``/mcp?session=NAME``), of the principal alone; DELETE of that URL ends it. An answer is plain
JSON unless a notification comes first or the request has been silent for a while; then it is a
stream, whose closing cancels the request.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager
from functools import cached_property, partial
from typing import Any

import anyio
import attrs
import trio
from mcp.server.connection import Connection
from mcp.server.runner import modern_error_data, serve_one
from mcp.shared.dispatcher import CallOptions
from mcp.shared.exceptions import NoBackChannelError
from mcp.shared.inbound import (
    ERROR_CODE_HTTP_STATUS,
    MCP_NAME_HEADER,
    MCP_PROTOCOL_VERSION_HEADER,
    InboundLadderRejection,
    InboundModernRoute,
    classify_inbound_request,
    decode_header_value,
    find_duplicated_routing_header,
    unsupported_protocol_version_rejection,
    validate_mcp_param_headers,
)
from mcp.shared.message import SessionMessage
from mcp.shared.transport_context import TransportContext
from mcp_types import (
    HEADER_MISMATCH,
    ErrorData,
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    RequestId,
)
from pydantic import ValidationError

from .. import logs
from ..config import OUR_NAME
from ..model.events import SessionShared
from ..serving.asgi import Receive, Refused, Scope, Send
from ..session.events import Delivery
from ..session.manager import SessionManager
from ..session.session import Session
from ..waits.bell import Bell
from ..waits.slices import in_slices
from ..web.wire import (
    KEEP_ALIVE,
    KEEP_ALIVE_EVERY,
    Headers,
    answer,
    dump,
    event,
    send_bytes,
    send_event,
    send_json,
    start_events,
)
from . import tasks
from .address import face_of, workspace_of
from .faces.face import Face
from .faces.passed import PassedOn
from .mcp import EXPECTED, Front, mcp_server, spelled_answer
from .progress import progress_note
from .sessions import open_session

MAX_CLIENTS = 10
"""That are told from each other in one session."""
SHARED = (
    "Several clients use this session: what one is told, such as an event or a question, the "
    "others are not. Each gets one of its own with another ?session=NAME in its URL, or with "
    "`emceepee stdio --connect URL` as its command."
)
BACKLOG = 256
"""Notifications of one request that wait for a slow reader; the oldest make room: they are
progress, of which only the newest counts."""


TRANSPORT = TransportContext(kind="streamable-http", can_send_request=False)


@attrs.define(eq=False)
class _Exchange:
    """One request as the SDK wants to see it, and what it says before its answer."""

    request_id: str | int
    said: deque[str] = attrs.field(factory=lambda: deque(maxlen=BACKLOG), init=False)
    answer: JSONRPCResponse | JSONRPCError | None = attrs.field(default=None, init=False)
    transport: TransportContext = attrs.field(default=TRANSPORT, init=False)
    message_metadata: None = attrs.field(default=None, init=False)
    can_send_request: bool = attrs.field(default=False, init=False)
    is_stream: bool = attrs.field(default=False, init=False)
    """It is answered as an event stream."""
    is_written: bool = attrs.field(default=False, init=False)
    """The transport has the answer."""
    watching: trio.CancelScope = attrs.field(init=False)
    """For its client, who may go; until it is to be answered in another way, or is."""
    _delivery: Delivery | None = attrs.field(default=None, init=False)

    @cached_property
    def cancel_requested(self) -> anyio.Event:
        """Nobody sets it: whoever cancels a request of this era closes its response."""
        return anyio.Event()

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        raise NoBackChannelError(method)

    async def notify(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> None:
        self.say(JSONRPCNotification(jsonrpc="2.0", method=method, params=dict(params or {})))

    async def send(self, item: SessionMessage) -> None:
        assert isinstance(item.message, JSONRPCNotification)  # nothing is asked in this era
        self.say(item.message)

    def say(self, message: JSONRPCNotification) -> None:
        """Before the answer."""
        self.said.append(dump(message))
        if not self.is_stream:
            self.become_stream()
            self.watching.cancel("something is said")
        self._news.ring()

    def become_stream(self) -> None:
        """Unless there is an answer: what is decided first stays."""
        self.is_stream |= self.answer is None

    async def progress(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> None:
        raise NotImplementedError("front.progress reports by itself")

    def carry(self, _: RequestId, delivery: Delivery) -> None:
        """The answer is going to tell of these events."""
        self._delivery = delivery

    def settle(self, *, is_told: bool) -> None:
        """What becomes of them, if nothing has yet."""
        delivery, self._delivery = self._delivery, None
        if delivery is not None and is_told:
            delivery.commit()
        elif delivery is not None:
            delivery.give_back()

    def finish(self, answer: JSONRPCResponse | JSONRPCError) -> None:
        self.answer = answer
        if self.is_stream:
            self._news.ring()

    @cached_property
    def _news(self) -> Bell:
        """Of a stream; most answers are none."""
        return Bell()

    async def news(self) -> None:
        """Wait for the answer, or for what is said before it."""
        while not self.said and self.answer is None:
            await self._news.wait()


@attrs.define(eq=False)
class _Workspace:
    """Who is seen to use one session of this era, in which nobody says that they are somebody."""

    session: Session
    under_way: dict[Front, str | int] = attrs.field(factory=dict, init=False)
    """Requests, and what their clients call them."""
    clients: dict[str, None] = attrs.field(factory=dict, init=False)
    """By name and version, in the order in which they came."""
    passed_on: PassedOn = attrs.field(factory=PassedOn, init=False)
    _is_told: bool = attrs.field(default=False, init=False)

    @contextmanager
    def serves(self, front: Front, request_id: str | int, client: str) -> Generator[None]:
        is_new = client not in self.clients and len(self.clients) < MAX_CLIENTS
        if is_new:
            self.clients[client] = None
        # One client has not two requests of one id under way; two windows of one program may.
        if (is_new and len(self.clients) > 1) or (
            request_id in self.under_way.values() and not self._is_told
        ):
            self._tell()
        self.under_way[front] = request_id
        try:
            yield
        finally:
            del self.under_way[front]

    def _tell(self) -> None:
        self._is_told = True
        clients = list(self.clients)
        logs.write("warn", "session_shared", session=self.session.id, clients=clients)
        self.session.publish(OUR_NAME, SessionShared(clients, SHARED))


@attrs.define(eq=False)
class Modern:
    manager: SessionManager
    faces: Mapping[str, Face]
    _workspaces: dict[str, _Workspace] = attrs.field(factory=dict, init=False)
    """By the name of their sessions."""

    async def serve(
        self,
        scope: Scope,
        headers: Headers,
        data: Any,
        receive: Receive,
        send: Send,
        principal: str,
    ) -> None:
        pairs = [(n.decode("latin-1"), v.decode("latin-1")) for n, v in scope["headers"]]
        if (twice := find_duplicated_routing_header(pairs)) is not None:
            raise Refused(400, f"{twice} appears more than once", code=HEADER_MISMATCH)
        message = _single(data)
        if isinstance(message, JSONRPCNotification):
            # This era has none towards a server; they are taken, and mean nothing, but for why a
            # request is about to be cancelled: closing its response cannot say that.
            version = headers.get(MCP_PROTOCOL_VERSION_HEADER, "")
            _raise_if(unsupported_protocol_version_rejection(version))
            workspace = self._workspaces.get(workspace_of(scope, principal))
            for front in () if workspace is None else workspace.under_way:
                front.observe(message)
            await send_bytes(send, 202)
            return
        route = classify_inbound_request(data, headers=headers)
        if isinstance(route, InboundLadderRejection):
            _raise_if(route)
        assert isinstance(route, InboundModernRoute)
        if message.method in tasks.NAMED:  # the SDK knows nothing of these
            about = decode_header_value(headers.get(MCP_NAME_HEADER))
            if about is None or about != (message.params or {}).get("taskId"):
                said = f"{MCP_NAME_HEADER} must be the taskId of {message.method}"
                raise Refused(400, said, code=HEADER_MISMATCH)
        face = face_of(scope, self.faces, self.manager.config.http.view_of(principal))
        name = workspace_of(scope, principal)
        if self.manager.draining.is_set() and self.manager.get(name) is None:
            raise Refused(503, "shutting down")
        session = self.manager.get(name) or await open_session(self.manager, name, principal)
        exchange = _Exchange(message.id)
        front = Front(session, self.manager, face, session.draining, exchange.carry)
        workspace = self._workspace(session)
        client = _called(route.client_info)
        if not (message.params or {}).keys() - {"_meta"}:
            known = face.at_once(message.method, route.protocol_version)
            if known is not None:
                with session.presence.busy(), workspace.serves(front, message.id, client):
                    await send_json(send, 200, spelled_answer(message.id, known))
                return
        front.send, front.passed_on = exchange.send, workspace.passed_on
        front.may_resend = True
        front.observe(message)
        request = front.request_of(message.id)

        async def handle() -> None:
            if message.method == "tools/call":
                if (no := await _param_rejection(message, headers, face, session)) is not None:
                    said = ErrorData(code=no.code, message=no.message, data=no.data)
                    exchange.finish(JSONRPCError(jsonrpc="2.0", id=message.id, error=said))
                    return
                said_of_it = await front.call(message, report, route.protocol_version)
                if isinstance(said_of_it, JSONRPCError):
                    exchange.settle(is_told=False)
                exchange.finish(said_of_it)
                return
            connection = Connection.from_envelope(
                route.protocol_version, route.client_info, route.client_capabilities
            )
            try:
                result = await serve_one(
                    mcp_server(),
                    exchange,
                    message.method,
                    message.params,
                    connection=connection,
                    lifespan_state=front,
                )
            except EXPECTED as error:  # all else is a crash of the whole request
                exchange.settle(is_told=False)
                said = modern_error_data(error)
                exchange.finish(JSONRPCError(jsonrpc="2.0", id=message.id, error=said))
            else:
                exchange.finish(JSONRPCResponse(jsonrpc="2.0", id=message.id, result=result))

        async def report(*progress: Any) -> None:
            exchange.say(progress_note(*progress))

        async def respond() -> None:
            await handle()
            if not exchange.is_stream:
                await _answer(exchange, send)

        with session.presence.busy(), workspace.serves(front, message.id, client):
            try:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(respond)
                    has_begun = False
                    while not exchange.is_written:
                        with trio.move_on_after(KEEP_ALIVE_EVERY) as exchange.watching:
                            await _gone(receive)
                            # Closing the response is this era's cancellation.
                            front.client_is_gone()
                            nursery.cancel_scope.cancel("client is gone")
                            break
                        exchange.become_stream()
                        if exchange.is_stream and not has_begun:
                            has_begun = True
                            nursery.start_soon(_stream, exchange, send)
            finally:
                exchange.settle(is_told=False)
                if request.on_end is not None:
                    request.on_end(exchange.is_written)

    def _forget(self, session_id: str) -> None:
        del self._workspaces[session_id]

    def _workspace(self, session: Session) -> _Workspace:
        found = self._workspaces.get(session.id)
        if found is None:
            found = self._workspaces[session.id] = _Workspace(session)
            session.at_end(partial(self._forget, session.id))
        return found

    def end_workspace(self, scope: Scope, principal: str) -> None:
        """The client will ask for nothing more in its workspace."""
        session = self.manager.get(workspace_of(scope, principal))
        if session is None:
            raise Refused(404, "no such session")
        self.manager.end(session, "DELETE")


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _answer(exchange: _Exchange, send: Send) -> None:
    assert exchange.answer is not None
    status, said = _status(exchange.answer), await _said(exchange)
    await _hand_over(exchange, partial(send_json, send, status, said))


async def _stream(exchange: _Exchange, send: Send) -> None:
    await start_events(send)
    while exchange.said or exchange.answer is None:
        with trio.move_on_after(KEEP_ALIVE_EVERY) as silence:
            await exchange.news()
        if silence.cancelled_caught:
            await send_event(send, KEEP_ALIVE)
        while exchange.said:
            await send_event(send, await in_slices(event(exchange.said.popleft())))
    end = {"type": "http.response.body", "body": await in_slices(event(await _said(exchange)))}
    await _hand_over(exchange, partial(send, end))


async def _said(exchange: _Exchange) -> str:
    assert exchange.answer is not None
    said, is_whole = await answer(exchange.answer)
    if not is_whole:
        exchange.settle(is_told=False)
    return said


async def _hand_over(exchange: _Exchange, write: Callable[[], Awaitable[None]]) -> None:
    """Write the answer, unless the client is known to be gone."""
    await trio.lowlevel.checkpoint()  # who watches may learn it in this very tick
    # From here on it is the transport's, and what it tells of is told. No checkpoint before that.
    exchange.is_written = True
    exchange.watching.cancel("it is answered")
    exchange.settle(is_told=True)
    with trio.CancelScope(shield=True):  # bounded by the transport's patience with readers
        await write()


def _called(info: Any) -> str:
    """What a client calls itself."""
    said = [info.get("name"), info.get("version")] if isinstance(info, Mapping) else []
    return " ".join(each[:100] for each in said if isinstance(each, str)) or "unknown client"


def _status(answer: JSONRPCResponse | JSONRPCError) -> int:
    if isinstance(answer, JSONRPCResponse):
        return 200
    return ERROR_CODE_HTTP_STATUS.get(answer.error.code, 200)


def _single(data: Any) -> JSONRPCRequest | JSONRPCNotification:
    try:
        if isinstance(data, dict) and "id" not in data:
            return JSONRPCNotification.model_validate(data)
        return JSONRPCRequest.model_validate(data)
    except ValidationError:
        raise Refused(400, "the body must be a single JSON-RPC request or notification") from None


def _raise_if(rejection: InboundLadderRejection | None) -> None:
    if rejection is not None:
        raise Refused(
            ERROR_CODE_HTTP_STATUS.get(rejection.code, 400),
            rejection.message,
            code=rejection.code,
            data=rejection.data,
        )


async def _param_rejection(
    message: JSONRPCRequest, headers: Headers, face: Face, session: Session
) -> InboundLadderRejection | None:
    params = message.params or {}
    arguments = params.get("arguments") or {}
    if message.method != "tools/call" or not isinstance(arguments, Mapping):
        return None
    schema = await face.schema_of(session, str(params.get("name")))
    if schema is None:
        return None
    return validate_mcp_param_headers(schema, arguments, headers)
