"""What clients of the handshake era ask over HTTP: POST, GET and DELETE of a session.

A POST is answered by what is said in its own stream: in one piece, if that is an answer that comes
soon, else as the stream that it is. A connection that closes ends nothing: requests run in the
session.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from functools import partial
from typing import Any

import attrs
from mcp.shared.inbound import MCP_PROTOCOL_VERSION_HEADER
from mcp_types import (
    INVALID_PARAMS,
    InitializeRequestParams,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    jsonrpc_message_adapter,
)
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from ...config import ON_DEMAND
from ...config.bounds import MAX_BATCH
from ...serving.asgi import Refused, Send
from ...session.manager import SessionManager
from ...session.servers.registry import not_found
from ...web.security import Header
from ...web.wire import (
    SSE,
    Headers,
    HttpRequest,
    accepts,
    send_bytes,
    send_json,
    start_events,
    while_connected,
)
from ..address import face_of, server_of
from ..faces.face import Face
from ..sessions import open_session
from .clients import HttpSession
from .connection import HandshakeConnection
from .readers import copy, hand_over, is_gone, only_answer, until_quick
from .stream import Stream, StreamEntry
from .streams import UnknownStream

SESSION_HEADER = "mcp-session-id"
REJOIN_HEADER = "x-mcp-reconnect-session"
BATCHES = "2025-03-26"
"""The one revision with arrays of messages."""


@attrs.define(eq=False)
class Handshake:
    manager: SessionManager
    faces: Mapping[str, Face]
    clients: dict[str, HttpSession] = attrs.field(factory=dict, init=False)
    """By the ids of their sessions."""

    def drain(self) -> None:
        """Streams that listen return."""
        for client in self.clients.values():
            client.streams.standalone.drop_reader()

    def listening(self) -> int:
        """Clients that read the stream of what belongs to no request."""
        return sum(client.streams.standalone.has_reader for client in self.clients.values())

    def end(self, request: HttpRequest) -> None:
        """The client has no use for its session any more."""
        client = self._client(request.headers.get(SESSION_HEADER), request.principal)
        self.manager.end(client.session, "DELETE")

    async def take(self, request: HttpRequest, data: Any) -> None:
        """Answer what was posted."""
        messages = _messages(data)
        first = messages[0]
        if isinstance(first, JSONRPCRequest) and first.method == "initialize":
            if isinstance(data, list):
                raise Refused(400, "initialize must not be part of a batch")
            await self._initialize(request, first)
            return
        client = self._client(request.headers.get(SESSION_HEADER), request.principal)
        connection = client.connection
        assert connection is not None
        if connection.front.face.server != server_of(request.scope["path"]):
            raise Refused(404, "that session was opened at another URL; initialize a new one here")
        _check_version(request.headers)
        if isinstance(data, list) and connection.version != BATCHES:
            raise Refused(400, f"batches exist only in protocol version {BATCHES}")
        if any(isinstance(message, JSONRPCRequest) for message in messages):
            client.session.presence.used = True
        await self._exchange(request, client, connection, messages)

    async def _initialize(self, request: HttpRequest, message: JSONRPCRequest) -> None:
        principal, headers = request.principal, request.headers
        face = face_of(request.scope, self.faces, self.manager.config.http.view_of(principal))
        try:
            asked = InitializeRequestParams.model_validate(message.params or {}, by_name=False)
        except ValidationError:
            raise Refused(
                400,
                "initialize needs protocolVersion, capabilities and clientInfo",
                code=INVALID_PARAMS,
            ) from None
        named = headers.get(REJOIN_HEADER, headers.get(SESSION_HEADER))
        if named is not None:
            client = self._client(named, principal)
        else:
            client = await self._new_client(principal, face, _on_demand(message.params or {}))
        connection = client.connect(face)
        latest = HANDSHAKE_PROTOCOL_VERSIONS[-1]
        known = asked.protocol_version in HANDSHAKE_PROTOCOL_VERSIONS
        connection.version = asked.protocol_version if known else latest
        await self._exchange(request, client, connection, [message])

    async def _new_client(self, principal: str, face: Face, on_demand: bool) -> HttpSession:
        if self.manager.draining.is_set():
            raise Refused(503, "shutting down")
        session_id = secrets.token_urlsafe(24)
        if face.server is not None:
            names = {server.name: server for server in self.manager.config.servers}
            if face.server not in names:
                raise Refused(404, not_found(face.server, names), code=INVALID_PARAMS)
            on_demand = True  # no other server need be started
        session = await open_session(self.manager, session_id, principal, on_demand=on_demand)
        client = self.clients[session.id] = HttpSession(session, self.manager)
        session.at_end(partial(self._forget, client))
        return client

    def _forget(self, client: HttpSession) -> None:
        del self.clients[client.session.id]
        client.close()

    def _client(self, session_id: str | None, principal: str) -> HttpSession:
        """The client of that session; living, and of that principal."""
        if session_id is None:
            raise Refused(400, "Mcp-Session-Id is missing; initialize first")
        client = self.clients.get(session_id)
        session = self.manager.get(session_id)
        if client is None or session is None or session.principal != principal:
            raise Refused(404, "no such session; initialize a new one")
        session.presence.touch()
        return client

    async def _exchange(
        self,
        request: HttpRequest,
        client: HttpSession,
        connection: HandshakeConnection,
        messages: list[JSONRPCMessage],
    ) -> None:
        """Take the messages of a POST and answer on its own stream."""
        send = request.send
        named = [(SESSION_HEADER.encode(), client.session.id.encode())]
        if not any(isinstance(message, JSONRPCRequest) for message in messages):
            connection.take(messages, None)
            await send_bytes(send, 202, headers=named)
            return
        connection.check(messages)
        if (known := connection.at_once(messages)) is not None:
            await send_json(send, 200, known, named)
            return
        stream = client.streams.new()
        # No checkpoint since the session was looked up: it lives, and nobody else has that id.
        connection.take(messages, stream)
        reader = stream.open_reader()
        try:
            with client.session.presence.busy():
                await until_quick(stream)
                answer = only_answer(stream)
                if answer is not None and answer.delivery is not None:
                    if await is_gone(request):
                        return
                    answer = only_answer(stream)  # which has perhaps gone back meanwhile
                if answer is not None:
                    await hand_over(answer, partial(_whole, send, answer, client, stream, named))
                    return
                async with while_connected(request.receive):
                    await start_events(send, named)
                    await copy(reader, send, is_primed=connection.is_primed)
        finally:
            reader.close()
            client.streams.abandon(stream)

    async def listen(self, request: HttpRequest) -> None:
        """Write a stream: that of what belongs to no request, or the rest of another."""
        headers = request.headers
        if not accepts(headers, SSE):
            raise Refused(406, f"Accept must allow {SSE}")
        client = self._client(headers.get(SESSION_HEADER), request.principal)
        connection = client.connection
        assert connection is not None
        _check_version(headers)
        if self.manager.draining.is_set():
            raise Refused(503, "shutting down")
        try:
            last_event_id = headers.get("last-event-id")
            if last_event_id is None:
                reader = client.streams.standalone.open_reader()
            else:
                reader = client.streams.resume(last_event_id)
        except UnknownStream:
            raise Refused(
                400, "Last-Event-ID names no stream of this session that is still kept"
            ) from None
        client.backchannel.listens()
        try:
            with client.session.presence.busy():
                async with while_connected(request.receive):
                    named = [(SESSION_HEADER.encode(), client.session.id.encode())]
                    await start_events(request.send, named)
                    await copy(reader, request.send, is_primed=connection.is_primed)
        finally:
            reader.close()


async def _whole(
    send: Send, answer: StreamEntry, client: HttpSession, stream: Stream, named: list[Header]
) -> None:
    """As one piece, so that no event id has told of the stream."""
    client.streams.discard(stream)
    await send_json(send, 200, answer.data, named)


def _on_demand(params: Mapping[str, Any]) -> bool:
    """Whether a client says that its session shall start nothing by itself."""
    said: Any = params
    for key in ("capabilities", "experimental"):
        said = said.get(key)
        if not isinstance(said, Mapping):
            return False
    return ON_DEMAND in said


def _messages(data: Any) -> list[JSONRPCMessage]:
    items = data if isinstance(data, list) else [data]
    if not items:
        raise Refused(400, "an empty batch")
    if len(items) > MAX_BATCH:
        raise Refused(400, f"a batch of more than {MAX_BATCH} messages")
    try:
        messages = [jsonrpc_message_adapter.validate_python(item, by_name=False) for item in items]
    except ValidationError:
        raise Refused(400, "the body is not a JSON-RPC 2.0 message") from None
    for item, message in zip(items, messages, strict=True):
        # To the adapter, a request whose id is no id is a notification.
        if isinstance(message, JSONRPCNotification) and "id" in item:
            raise Refused(400, "the id of a request must be a string or an integer")
    return messages


def _check_version(headers: Headers) -> None:
    version = headers.get(MCP_PROTOCOL_VERSION_HEADER)
    if version is not None and version not in HANDSHAKE_PROTOCOL_VERSIONS:
        served = ", ".join((*HANDSHAKE_PROTOCOL_VERSIONS, *MODERN_PROTOCOL_VERSIONS))
        raise Refused(400, f"unsupported MCP-Protocol-Version {version!r}; served are {served}")
