"""The MCP endpoint over HTTP: POST, GET and DELETE of `/mcp`, handshake era; `modern` the other.

Whoever calls this has checked Host, Origin and token (`web/security.py`) and says who the principal
is. A connection that closes ends nothing: requests run in the session.
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
    INVALID_REQUEST,
    PARSE_ERROR,
    PROTOCOL_VERSION_META_KEY,
    InitializeRequestParams,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    jsonrpc_message_adapter,
)
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from ..config import ON_DEMAND, Config
from ..config.bounds import MAX_BATCH
from ..model.json.intake import TooMuch, Unfit
from ..model.json.long.outlines import outlines
from ..model.json.long.reading import read
from ..model.wire import loads
from ..serving.asgi import Receive, Refused, Scope, Send
from ..session.manager import SessionManager
from ..session.servers.registry import not_found
from ..waits.slices import in_slices
from ..web.security import Header
from ..web.wire import (
    ClientGone,
    Headers,
    accepts,
    headers_of,
    id_of_one,
    read_body,
    send_bytes,
    send_json,
    start_events,
    while_connected,
)
from .address import face_of, names_workspace, server_of
from .faces.face import Face
from .handshake.clients import HttpSession
from .handshake.connection import HandshakeConnection
from .handshake.readers import copy, hand_over, is_gone, only_answer, until_quick
from .handshake.stream import Stream, StreamEntry
from .handshake.streams import UnknownStream
from .modern.endpoint import Modern
from .sessions import open_session

SESSION_HEADER = "mcp-session-id"
REJOIN_HEADER = "x-mcp-reconnect-session"
JSON, SSE = "application/json", "text/event-stream"
BATCHES = "2025-03-26"
"""The one revision with arrays of messages."""


@attrs.define(eq=False)
class McpEndpoint:
    manager: SessionManager
    config: Config
    faces: Mapping[str, Face]
    """By name; the first is that of a URL that names none."""
    _clients: dict[str, HttpSession] = attrs.field(factory=dict, init=False)
    _modern: Modern = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._modern = Modern(self.manager, self.faces)

    def drain(self) -> None:
        """Long polls and streams return; requests that are being answered go on."""
        self.manager.drain()
        for client in self._clients.values():
            client.streams.standalone.drop_reader()

    def listening(self) -> int:
        """Clients that read the stream of what belongs to no request."""
        return sum(client.streams.standalone.has_reader for client in self._clients.values())

    async def __call__(self, scope: Scope, receive: Receive, send: Send, principal: str) -> None:
        headers = headers_of(scope)
        is_modern = _says_modern(headers)
        try:
            match scope["method"]:
                case "POST":
                    await self._post(scope, headers, receive, send, principal)
                case "GET" if not is_modern:
                    await self._get(headers, receive, send, principal)
                case "DELETE" if SESSION_HEADER not in headers and names_workspace(scope):
                    self._modern.end_workspace(scope, principal)
                    await send_bytes(send, 200)
                case "DELETE" if not is_modern:
                    client = self._client(headers.get(SESSION_HEADER), principal)
                    self.manager.end(client.session, "DELETE")
                    await send_bytes(send, 200)
                case method:
                    allow = b"POST, OPTIONS" if is_modern else b"GET, POST, DELETE, OPTIONS"
                    refused = f"{method} is not supported here"
                    raise Refused(405, refused, headers=[(b"allow", allow)])
        except Refused as refused:
            await send_json(send, refused.status, refused.body, refused.headers)
        except ClientGone:
            pass

    async def _post(
        self, scope: Scope, headers: Headers, receive: Receive, send: Send, principal: str
    ) -> None:
        if headers.get("content-type", "").split(";")[0].strip().lower() != JSON:
            raise Refused(415, f"Content-Type must be {JSON}")
        if not accepts(headers, JSON, SSE):
            raise Refused(406, f"Accept must allow both {JSON} and {SSE}")
        body = await read_body(receive, self.config.limits.body)
        measure = self.config.limits.of_clients
        unfit: Unfit | None = None
        try:
            data = await in_slices(read(body, measure, loads))
        except Unfit as why:
            unfit = why.with_traceback(None)  # which leads to what was read so far
        if unfit is not None:
            is_much = isinstance(unfit, TooMuch)
            raise _refused(unfit, id_of_one(await in_slices(outlines(body))) if is_much else None)
        try:
            if _is_modern(headers, data):
                await self._modern.serve(scope, headers, data, receive, send, principal)
            else:
                await self._take(scope, headers, data, receive, send, principal)
        except Refused as refused:
            refused.body["id"] = _id_of(data)
            raise

    async def _take(
        self,
        scope: Scope,
        headers: Headers,
        data: Any,
        receive: Receive,
        send: Send,
        principal: str,
    ) -> None:
        messages = _messages(data)
        first = messages[0]
        if isinstance(first, JSONRPCRequest) and first.method == "initialize":
            if isinstance(data, list):
                raise Refused(400, "initialize must not be part of a batch")
            usual = self.manager.config.http.view_of(principal)
            face = face_of(scope, self.faces, usual)
            await self._initialize(first, face, scope, headers, receive, send, principal)
            return
        client = self._client(headers.get(SESSION_HEADER), principal)
        connection = client.connection
        assert connection is not None
        if connection.front.face.server != server_of(scope["path"]):
            raise Refused(404, "that session was opened at another URL; initialize a new one here")
        _check_version(headers)
        if isinstance(data, list) and connection.version != BATCHES:
            raise Refused(400, f"batches exist only in protocol version {BATCHES}")
        if any(isinstance(message, JSONRPCRequest) for message in messages):
            client.session.presence.used = True
        await self._exchange(client, connection, messages, scope, receive, send)

    async def _initialize(
        self,
        message: JSONRPCRequest,
        face: Face,
        scope: Scope,
        headers: Headers,
        receive: Receive,
        send: Send,
        principal: str,
    ) -> None:
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
        await self._exchange(client, connection, [message], scope, receive, send)

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
        client = self._clients[session.id] = HttpSession(session, self.manager)
        session.at_end(partial(self._forget, client))
        return client

    def _forget(self, client: HttpSession) -> None:
        del self._clients[client.session.id]
        client.close()

    def _client(self, session_id: str | None, principal: str) -> HttpSession:
        """The client of that session; living, and of that principal."""
        if session_id is None:
            raise Refused(400, "Mcp-Session-Id is missing; initialize first")
        client = self._clients.get(session_id)
        session = self.manager.get(session_id)
        if client is None or session is None or session.principal != principal:
            raise Refused(404, "no such session; initialize a new one")
        session.presence.touch()
        return client

    async def _exchange(
        self,
        client: HttpSession,
        connection: HandshakeConnection,
        messages: list[JSONRPCMessage],
        scope: Scope,
        receive: Receive,
        send: Send,
    ) -> None:
        """Take the messages of a POST and answer on its own stream."""
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
                    if await is_gone(scope, receive):
                        return
                    answer = only_answer(stream)  # which has perhaps gone back meanwhile
                if answer is not None:
                    await hand_over(answer, partial(_whole, send, answer, client, stream, named))
                    return
                async with while_connected(receive):
                    await start_events(send, named)
                    await copy(reader, send, is_primed=connection.is_primed)
        finally:
            reader.close()
            client.streams.abandon(stream)

    async def _get(self, headers: Headers, receive: Receive, send: Send, principal: str) -> None:
        if not accepts(headers, SSE):
            raise Refused(406, f"Accept must allow {SSE}")
        client = self._client(headers.get(SESSION_HEADER), principal)
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
                async with while_connected(receive):
                    named = [(SESSION_HEADER.encode(), client.session.id.encode())]
                    await start_events(send, named)
                    await copy(reader, send, is_primed=connection.is_primed)
        finally:
            reader.close()


async def _whole(
    send: Send, answer: StreamEntry, client: HttpSession, stream: Stream, named: list[Header]
) -> None:
    """As one piece, so that no event id has told of the stream."""
    client.streams.discard(stream)
    await send_json(send, 200, answer.data, named)


def _says_modern(headers: Headers) -> bool:
    return headers.get(MCP_PROTOCOL_VERSION_HEADER) in MODERN_PROTOCOL_VERSIONS


def _on_demand(params: Mapping[str, Any]) -> bool:
    """Whether a client says that its session shall start nothing by itself."""
    said: Any = params
    for key in ("capabilities", "experimental"):
        said = said.get(key)
        if not isinstance(said, Mapping):
            return False
    return ON_DEMAND in said


def _is_modern(headers: Headers, data: Any) -> bool:
    if _says_modern(headers):
        return True
    params = data.get("params") if isinstance(data, dict) else None
    meta = params.get("_meta") if isinstance(params, dict) else None
    stamped = isinstance(meta, dict) and PROTOCOL_VERSION_META_KEY in meta
    return stamped and data.get("method") != "initialize"


def _refused(unfit: Unfit, known: str | int | None) -> Refused:
    code = PARSE_ERROR if known is None else INVALID_REQUEST
    refused = Refused(400, f"the body {unfit}", code=code)
    refused.body["id"] = known
    return refused


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


def _id_of(data: Any) -> Any:
    """Of the single request that this is; None if it is anything else."""
    request_id = data.get("id") if isinstance(data, dict) and "method" in data else None
    return request_id if type(request_id) in (int, str) else None


def _check_version(headers: Headers) -> None:
    version = headers.get(MCP_PROTOCOL_VERSION_HEADER)
    if version is not None and version not in HANDSHAKE_PROTOCOL_VERSIONS:
        served = ", ".join((*HANDSHAKE_PROTOCOL_VERSIONS, *MODERN_PROTOCOL_VERSIONS))
        raise Refused(400, f"unsupported MCP-Protocol-Version {version!r}; served are {served}")
