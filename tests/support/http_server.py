"""A backend over HTTP without the SDK, in the process of the test, which sees and spoils all of it.

It speaks either era on ``/mcp``, and the old SSE transport on ``/sse``. ``spoil`` looks at every
request first and may answer it in any way. Stopping it is as sudden as the death of a process.
"""

from __future__ import annotations

import gc
import json
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, Literal
from unittest import mock

import attrs
import h11
import pytest
import trio

Json = dict[str, Any]

MODERN = "2026-07-28"
ENVELOPE = "io.modelcontextprotocol/"
GONE = (trio.BrokenResourceError, trio.ClosedResourceError, h11.ProtocolError)

QUIET = pytest.mark.filterwarnings("ignore:Async generator '(httpx2|httpcore2):ResourceWarning")
"""For tests with clients of the SDK: it leaves loops over a response in the middle."""

FORM = {"mode": "form", "message": "name?", "requestedSchema": {"type": "object"}}


@attrs.define(eq=False)
class Request:
    verb: str
    path: str
    headers: dict[str, str]
    body: bytes
    aborted: trio.Event = attrs.field(factory=trio.Event, init=False)
    """The client has closed the connection before it had its answer."""

    @property
    def message(self) -> Json:
        message: Json = json.loads(self.body) if self.body else {}
        return message

    @property
    def method(self) -> str:
        return str(self.message.get("method", ""))


@attrs.define(eq=False)
class Reply:
    """The way back to one request: a whole answer, or a stream of events."""

    _connection: h11.Connection
    _stream: trio.SocketStream
    _writing: trio.Lock = attrs.field(factory=trio.Lock, init=False)
    """A stream of old takes the answers to all requests."""

    async def _send(self, *events: h11.Event) -> None:
        async with self._writing:
            await self._stream.send_all(b"".join(self._connection.send(e) or b"" for e in events))

    async def start(self, status: int, kind: str, **headers: str) -> None:
        named = [("content-type", kind), *((k.replace("_", "-"), v) for k, v in headers.items())]
        await self._send(h11.Response(status_code=status, headers=named))

    async def data(self, data: bytes) -> None:
        await self._send(h11.Data(data=data))

    async def end(self) -> None:
        await self._send(h11.EndOfMessage())

    async def raw(self, data: bytes) -> None:
        """Whatever it is; the connection has to be closed behind it."""
        async with self._writing:
            await self._stream.send_all(data)

    async def hang_up(self) -> None:
        await self._stream.aclose()

    async def whole(
        self, status: int, body: bytes = b"", kind: str = "text/plain", **headers: str
    ) -> None:
        await self.start(status, kind, content_length=str(len(body)), **headers)
        await self.data(body)
        await self.end()

    async def json(self, data: object, status: int = 200, **headers: str) -> None:
        await self.whole(status, json.dumps(data).encode(), "application/json", **headers)

    async def events(self) -> None:
        await self.start(200, "text/event-stream")

    async def event(self, data: object, event: str = "message", more: str = "") -> None:
        text = data if isinstance(data, str) else json.dumps(data)
        await self.data(f"event: {event}\n{more}data: {text}\n\n".encode())


Spoil = Callable[[Request, Reply], Awaitable[bool]]
"""Whether it has answered, or will not."""


@attrs.define(eq=False)
class HttpServer:
    era: Literal["handshake", "modern"] = "handshake"
    streams: bool = False
    """Answer tool calls with streams of events."""
    listens: bool = False
    """Let clients of the handshake era listen with GET."""
    spoil: Spoil | None = None
    port: int = 0
    prefix: str = "session"
    """Of the ids of its sessions."""
    requests: list[Request] = attrs.field(factory=list, init=False)
    sessions: set[str] = attrs.field(factory=set, init=False)
    release: trio.Event = attrs.field(factory=trio.Event, init=False)
    """Ends the calls of ``slow``."""
    listeners: list[Reply] = attrs.field(factory=list, init=False)
    _answers: dict[str, tuple[trio.Event, Json]] = attrs.field(factory=dict, init=False)
    _news: trio.Event = attrs.field(factory=trio.Event, init=False)
    _scope: trio.CancelScope = attrs.field(factory=trio.CancelScope, init=False)
    _background: trio.Nursery = attrs.field(init=False)
    _stopped: trio.Event = attrs.field(factory=trio.Event, init=False)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    def of(self, method: str) -> list[Request]:
        """Messages with this method, or requests with this verb."""
        return [r for r in self.requests if method in (r.method, r.verb)]

    async def wait_for(self, method: str, count: int = 1) -> Request:
        while len(found := self.of(method)) < count:
            await self._news.wait()
        return found[count - 1]

    async def wait_for_listener(self, count: int = 1) -> Reply:
        while len(self.listeners) < count:
            await self._news.wait()
        return self.listeners[count - 1]

    def _tell(self) -> None:
        news, self._news = self._news, trio.Event()
        news.set()

    # -- its life ----------------------------------------------------------------------------

    async def run(self, *, task_status: trio.TaskStatus[None]) -> None:
        listeners = await trio.open_tcp_listeners(self.port, host="127.0.0.1")
        self.port = listeners[0].socket.getsockname()[1]
        self._scope, self._stopped = trio.CancelScope(), trio.Event()
        try:
            with self._scope:
                async with trio.open_nursery() as self._background:
                    task_status.started()
                    await trio.serve_listeners(self._serve, listeners)
        finally:
            self._stopped.set()

    async def stop(self) -> None:
        self._scope.cancel("stopped")
        await self._stopped.wait()

    async def _serve(self, stream: trio.SocketStream) -> None:
        connection = h11.Connection(h11.SERVER, max_incomplete_event_size=1 << 24)
        try:
            while (request := await _next_request(connection, stream)) is not None:
                self.requests.append(request)
                self._tell()
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(_watch, connection, stream, request, nursery.cancel_scope)
                    await self._handle(request, Reply(connection, stream))
                    nursery.cancel_scope.cancel("answered")
                if connection.states != {h11.CLIENT: h11.DONE, h11.SERVER: h11.DONE}:
                    return
                connection.start_next_cycle()
        except* GONE:
            pass

    # -- what it says ------------------------------------------------------------------------

    async def _handle(self, request: Request, reply: Reply) -> None:
        if self.spoil is not None and await self.spoil(request, reply):
            return
        is_free = self.era == "modern" or request.method in {"initialize", "server/discover"}
        if request.path.startswith(("/sse", "/messages")):
            await self._old(request, reply)
        elif request.verb == "GET":
            await self._listen(request, reply)
        elif request.verb == "DELETE":
            known = request.headers.get("mcp-session-id") in self.sessions
            self.sessions.discard(request.headers.get("mcp-session-id", ""))
            await reply.whole(200 if known else 404)
        elif not (is_free or request.headers.get("mcp-session-id") in self.sessions):
            await reply.json(_error(None, -32600, "no such session"), 404)
        elif "id" not in request.message or "method" not in request.message:
            self._take(request.message)
            await reply.whole(202)
        else:
            await self._post(request, reply)

    async def _listen(self, request: Request, reply: Reply) -> None:
        if not self.listens:
            await reply.whole(405)
            return
        await reply.events()
        await self._keep(reply)

    async def _keep(self, reply: Reply) -> None:
        self.listeners.append(reply)
        self._tell()
        await trio.sleep_forever()

    def _take(self, message: Json) -> None:
        if "method" not in message and message.get("id") in self._answers:
            arrived, answer = self._answers[message["id"]]
            answer.update(message)
            arrived.set()

    async def _post(self, request: Request, reply: Reply) -> None:
        message = request.message
        if request.method == "subscriptions/listen":
            await reply.events()
            told = {"notifications": message["params"]["notifications"]}
            method = "notifications/subscriptions/acknowledged"
            await reply.event({"jsonrpc": "2.0", "method": method, "params": told})
            await self._keep(reply)
        is_call = request.method == "tools/call"
        name = message["params"]["name"] if is_call else None
        if is_call and (self.streams or name in {"ask", "progress"}):
            await reply.events()
            await reply.event(await self._result(message, reply))
            await reply.end()
            return
        answer = await self._result(message, None)
        headers = {}
        if request.method == "initialize" and "result" in answer:
            session = f"{self.prefix}-{len(self.requests)}"
            self.sessions.add(session)
            headers["mcp_session_id"] = session
        is_unknown = "error" in answer and self.era == "modern"
        await reply.json(answer, 404 if is_unknown else 200, **headers)

    async def _old(self, request: Request, reply: Reply) -> None:
        """The SSE transport of 2024-11-05: one stream for all answers."""
        if request.verb == "GET":
            await reply.events()
            await reply.event("/messages?session=1", "endpoint")
            await self._keep(reply)
        self._take(request.message)
        await reply.whole(202)
        if "id" in request.message and "method" in request.message:
            self._background.start_soon(self._answer_old, request.message, self.listeners[-1])

    async def _answer_old(self, message: Json, stream: Reply) -> None:
        result = await self._result(message, stream)
        with suppress(*GONE):  # nobody reads it any more
            await stream.event(result)

    async def _result(self, message: Json, reply: Reply | None) -> Json:
        method, params = message["method"], message.get("params", {})
        is_call = method == "tools/call"
        result = await self._call(params, reply) if is_call else self._common(method, params)
        if result is None:
            return _error(message["id"], -32601, "Method not found")
        complete = {"resultType": "complete"} if self.era == "modern" else {}
        return {"jsonrpc": "2.0", "id": message["id"], "result": {**complete, **result}}

    def _common(self, method: str, params: Json) -> Json | None:
        capabilities = {"tools": {"listChanged": True}}
        if method == "tools/list":
            schema = {"type": "object", "properties": {"at": {"x-mcp-header": "Place"}}}
            return {"tools": [{"name": "echo", "inputSchema": schema}]}
        if self.era == "modern":
            if method != "server/discover":
                return None
            return {"supportedVersions": [MODERN], "capabilities": capabilities}
        if method == "ping":
            return {}
        if method != "initialize":
            return None
        info = {"name": "http", "version": "0"}
        version = params["protocolVersion"]
        return {"protocolVersion": version, "capabilities": capabilities, "serverInfo": info}

    async def _call(self, params: Json, reply: Reply | None) -> Json:
        name, arguments = params["name"], params.get("arguments") or {}
        if name == "slow":
            await self.release.wait()
        elif name == "never":
            await trio.sleep_forever()
        elif name == "big":
            return _text("x" * arguments["size"])
        elif name == "progress" and reply is not None:
            for step in range(3):
                token = params["_meta"]["progressToken"]
                said = {"progressToken": token, "progress": step}
                await reply.event(
                    {"jsonrpc": "2.0", "method": "notifications/progress", "params": said}
                )
        elif name == "ask" and reply is not None:
            return _text(json.dumps(await self._ask(params, reply)))
        return _text(json.dumps(arguments))

    async def _ask(self, params: Json, reply: Reply) -> Json:
        question = f"question-{len(self._answers)}"
        arrived, answer = self._answers[question] = (trio.Event(), {})
        asked = {"jsonrpc": "2.0", "id": question, "method": "elicitation/create", "params": FORM}
        await reply.event(asked)
        await arrived.wait()
        return answer


def _text(text: str) -> Json:
    return {"content": [{"type": "text", "text": text}], "x-vendor": 1}


def _error(request_id: Any, code: int, message: str) -> Json:
    return {"jsonrpc": "2.0", "id": request_id, "error": {"code": code, "message": message}}


async def _next_request(connection: h11.Connection, stream: trio.SocketStream) -> Request | None:
    head, body = None, b""
    while True:
        event = connection.next_event()
        if event is h11.NEED_DATA:
            connection.receive_data(await stream.receive_some())
        elif isinstance(event, h11.Request):
            head = event
        elif isinstance(event, h11.Data):
            body += event.data
        elif isinstance(event, h11.EndOfMessage) and head is not None:
            headers = {name.decode(): value.decode() for name, value in head.headers}
            return Request(head.method.decode(), head.target.decode(), headers, body)
        else:
            return None


async def _watch(
    connection: h11.Connection,
    stream: trio.SocketStream,
    request: Request,
    answering: trio.CancelScope,
) -> None:
    """A client that leaves wants no answer any more."""
    try:
        while data := await stream.receive_some():
            connection.receive_data(data)  # the next request, if our answer was quicker than we
    except trio.BrokenResourceError:
        pass
    request.aborted.set()
    answering.cancel("the client has left")


@asynccontextmanager
async def open_http_server(server: HttpServer) -> AsyncGenerator[HttpServer]:
    async with trio.open_nursery() as nursery:
        await nursery.start(server.run)
        yield server
        gc.collect()  # while the test's filter of warnings holds
        nursery.cancel_scope.cancel("test is over")


@asynccontextmanager
async def open_without_network(*servers: HttpServer) -> AsyncGenerator[None]:
    """The same without listeners: who connects gets one end of a pair of sockets.

    What is sent there has arrived when that is done, so a clock that jumps does not jump over it.
    """
    by_port = dict(enumerate(servers, 1))
    async with trio.open_nursery() as nursery:
        for port, server in by_port.items():
            server.port, server._background = port, nursery

        async def serve(server: HttpServer, stream: trio.SocketStream) -> None:
            async with stream:
                await server._serve(stream)

        async def connect(*_: object, port: int, **__: object) -> trio.SocketStream:
            await trio.lowlevel.checkpoint()
            ends = map(trio.socket.from_stdlib_socket, socket.socketpair())
            ours, theirs = map(trio.SocketStream, ends)
            nursery.start_soon(serve, by_port[port], theirs)
            return ours

        with mock.patch.object(trio, "open_tcp_stream", connect):
            yield
            gc.collect()  # while the test's filter of warnings holds
            nursery.cancel_scope.cancel("test is over")
