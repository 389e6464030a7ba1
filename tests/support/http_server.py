"""A backend over HTTP without the SDK, in the process of the test, which sees and spoils all of it.

It has a play in either era on ``/mcp``, and with the old SSE transport on ``/sse``. ``spoil``
looks at every request first and may answer it in any way; what a play has instead of an answer
is said in a manner that may be wrong, too. Stopping it is as sudden as the death of a process.
"""

from __future__ import annotations

import gc
import json
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any
from unittest import mock

import attrs
import h11
import pytest
import trio

from play import Era, Part, Play, Said, greetings

Json = dict[str, Any]

JSON, EVENTS = "application/json", "text/event-stream"
ENVELOPE = "io.modelcontextprotocol/"
GONE = (trio.BrokenResourceError, trio.ClosedResourceError, h11.ProtocolError)

QUIET = pytest.mark.filterwarnings("ignore:Async generator '(httpx2|httpcore2):ResourceWarning")
"""For tests with clients of the SDK: it leaves loops over a response in the middle."""


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


@attrs.frozen
class Manner:
    """How lines are said instead of an answer; as JSON only the last one."""

    status: int
    kind: str
    session: str | None = None
    before: bytes = b""
    between: bytes = b"\n\n"

    async def say(self, reply: Reply, lines: list[bytes]) -> None:
        named = {} if self.session is None else {"mcp_session_id": self.session}
        if self.kind == EVENTS:
            await reply.start(self.status, self.kind, **named)
            for line in lines:
                await reply.data(self.before + b"event: message\ndata: " + line + self.between)
            await reply.end()
        else:
            body = b"" if self.status in {202, 204} else b"".join(lines[-1:])
            await reply.whole(self.status, body, self.kind, **named)


@attrs.define(eq=False)
class _Answer:
    """What a request gets, in one piece or as a stream of its own, or on that of all."""

    reply: Reply
    is_stream: bool
    ends: bool = True
    headers: dict[str, str] = attrs.field(factory=dict)
    given: trio.Event = attrs.field(factory=trio.Event, init=False)

    async def say(self, said: Said, status: int = 200) -> None:
        if self.is_stream:
            await self.reply.event(said.line.decode())
            if said.is_last and self.ends:
                await self.reply.end()
        elif said.is_last:
            await self.reply.whole(status, said.line, JSON, **self.headers)
        if said.is_last:
            self.given.set()


def plain(era: Era) -> Play:
    """Of a server with one tool, which repeats what it is given, whatever it is called by."""
    schema = {"type": "object", "properties": {"at": {"x-mcp-header": "Place"}}}
    hello = greetings("http", {"tools": {"listChanged": True}})
    results: dict[str, Json] = {
        "tools/list": {"tools": [{"name": "echo", "inputSchema": schema}]},
        "tools/call": {"content": [{"type": "text", "text": "@ARGUMENTS@"}], "x-vendor": 1},
    }
    if era == "modern":
        results["server/discover"] = hello["server/discover"]
    else:
        results |= {"initialize": hello["initialize"], "ping": {}}
    return Play(era=era, results=results, tools={})


@attrs.define(eq=False)
class HttpServer:
    era: Era = "handshake"
    streams: bool = False
    """Answer tool calls with streams of events."""
    listens: bool = False
    """Let clients of the handshake era listen with GET."""
    spoil: Spoil | None = None
    play: Play = attrs.Factory(lambda self: plain(self.era), takes_self=True)
    manner: Manner | None = None
    """Of what the play has instead of an answer: right, if there is none."""
    port: int = 0
    prefix: str = "session"
    """Of the ids of its sessions."""
    requests: list[Request] = attrs.field(factory=list, init=False)
    sessions: set[str] = attrs.field(factory=set, init=False)
    release: trio.Event = attrs.field(factory=trio.Event, init=False)
    """Ends the calls of ``slow``."""
    listeners: list[Reply] = attrs.field(factory=list, init=False)
    _parts: dict[str | None, Part] = attrs.field(factory=dict, init=False)
    """By the ids of their sessions."""
    _answers: dict[tuple[Part, Any], _Answer] = attrs.field(factory=dict, init=False)
    """Of requests that have none yet."""
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
        session = request.headers.get("mcp-session-id")
        is_free = self.era == "modern" or request.method in {"initialize", "server/discover"}
        if request.path.startswith(("/sse", "/messages")):
            await self._old(request, reply)
        elif request.verb == "GET":
            await self._listen(reply)
        elif request.verb == "DELETE":
            known = session in self.sessions
            self.sessions.discard(session or "")
            await reply.whole(200 if known else 404)
        elif not (is_free or session in self.sessions):
            await reply.json(_error(None, -32600, "no such session"), 404)
        elif not _is_request(request.message):
            await self._take(self._part(session), request.message)
            await reply.whole(202)
        else:
            await self._post(request, reply, session)

    async def _listen(self, reply: Reply) -> None:
        if "start" in self.play.instead:
            await self._lie(reply, self.play.instead["start"])
        elif not self.listens:
            await reply.whole(405)
        else:
            await reply.events()
            await self._keep(reply)

    async def _keep(self, reply: Reply) -> None:
        self.listeners.append(reply)
        self._tell()
        await trio.sleep_forever()

    async def _lie(self, reply: Reply, lines: list[bytes]) -> None:
        await (self.manner or Manner(200, EVENTS if self.streams else JSON)).say(reply, lines)

    def _part(self, session: str | None) -> Part:
        return self._parts.setdefault(session, Part(self.play))

    async def _take(self, part: Part, message: Json) -> None:
        for said in part.hear(message):
            with suppress(*GONE):  # nobody reads it any more
                await self._answers[part, said.of].say(said)

    async def _post(self, request: Request, reply: Reply, session: str | None) -> None:
        message = request.message
        if request.method == "subscriptions/listen":
            await reply.events()
            told = {"notifications": message["params"]["notifications"]}
            method = "notifications/subscriptions/acknowledged"
            await reply.event({"jsonrpc": "2.0", "method": method, "params": told})
            await self._keep(reply)
        lies = self.play.lies(message)
        if lies is not None:
            await self._lie(reply, lies)
            return
        is_call = request.method == "tools/call"
        asks = is_call and message["params"]["name"] in {"ask", "progress"}
        answer = _Answer(reply, is_stream=is_call and (self.streams or asks))
        if answer.is_stream:
            await reply.events()
        elif request.method == "initialize":
            session = f"{self.prefix}-{len(self.requests)}"
            self.sessions.add(session)
            answer.headers = {"mcp_session_id": session}
        await self._play(self._part(session), message, answer)

    async def _play(self, part: Part, message: Json, answer: _Answer) -> None:
        key = part, message["id"]
        self._answers[key] = answer
        try:
            if message["method"] == "tools/call" and message["params"]["name"] == "slow":
                await self.release.wait()
            for said in part.hear(message):
                is_unknown = self.era == "modern" and b'"error"' in said.line[:200]
                await answer.say(said, 404 if is_unknown else 200)
            await answer.given.wait()
        finally:
            if self._answers.get(key) is answer:
                del self._answers[key]

    async def _old(self, request: Request, reply: Reply) -> None:
        """The SSE transport of 2024-11-05: one stream for all answers."""
        if request.verb == "GET":
            await reply.events()
            await reply.event("/messages?session=1", "endpoint")
            await self._keep(reply)
        message, part = request.message, self._part("old")
        if not _is_request(message):
            await self._take(part, message)
        await reply.whole(202)
        if _is_request(message):
            answer = _Answer(self.listeners[-1], is_stream=True, ends=False)
            self._background.start_soon(self._answer_old, part, message, answer)

    async def _answer_old(self, part: Part, message: Json, answer: _Answer) -> None:
        with suppress(*GONE):  # nobody reads it any more
            await self._play(part, message, answer)


def _is_request(message: Json) -> bool:
    return "id" in message and "method" in message


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

        async def connect(host: object, port: int, **_: object) -> trio.SocketStream:
            await trio.lowlevel.checkpoint()
            ends = map(trio.socket.from_stdlib_socket, socket.socketpair())
            ours, theirs = map(trio.SocketStream, ends)
            nursery.start_soon(serve, by_port[port], theirs)
            return ours

        with mock.patch.object(trio, "open_tcp_stream", connect):
            yield
            gc.collect()  # while the test's filter of warnings holds
            nursery.cancel_scope.cancel("test is over")
