"""An HTTP client of the MCP endpoint in memory: it holds streams open, vanishes, stops reading.

What our own HTTP server does, and for a client that says so any ASGI server, and no more: of a
client that is gone, `receive` says so and what is sent is swallowed; to one that does not read, a
send takes as long as that lasts. An exception that leaves the endpoint ends the test.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

import attrs
import trio

from emceepee_trio.front.handshake.clients import HttpSession
from emceepee_trio.front.http import McpEndpoint
from emceepee_trio.serving.asgi import GONE

T = TypeVar("T")
Json = dict[str, Any]

LATEST, BATCHING, OLDEST = "2025-11-25", "2025-03-26", "2024-11-05"
MODERN = "2026-07-28"
HELLO = {"capabilities": {}, "clientInfo": {"name": "asgi", "version": "0"}}
DONE = {"jsonrpc": "2.0", "method": "notifications/initialized"}
BOTH = "application/json, text/event-stream"
META = "io.modelcontextprotocol/"


@attrs.frozen
class Event:
    """One server-sent event."""

    id: str | None
    data: str
    retry: int | None

    @property
    def json(self) -> Any:
        return json.loads(self.data)


@attrs.define(eq=False)
class Exchange:
    """One request and its response, as far as it has come."""

    scope: Json
    status: int = attrs.field(default=0, init=False)
    headers: dict[str, str] = attrs.field(factory=dict, init=False)
    body: bytearray = attrs.field(factory=bytearray, init=False)
    is_complete: bool = attrs.field(default=False, init=False)
    is_dropped: bool = attrs.field(default=False, init=False)
    is_served: bool = attrs.field(default=False, init=False)
    """The server is done with it, and has written to it for the last time."""
    stalled: trio.Event | None = attrs.field(default=None, init=False)
    """Set when the client reads on."""
    ghost: bool = attrs.field(default=False, init=False)
    """Nothing interrupts a write to this one, not even a cancellation."""
    comments: int = attrs.field(default=0, init=False)
    events: list[Event] = attrs.field(factory=list, init=False)
    swallowed: bytearray = attrs.field(factory=bytearray, init=False)
    """What the server has written since the client is gone: it could not know."""
    _request: list[Json] = attrs.field(factory=list, init=False)
    _parsed: int = attrs.field(default=0, init=False)
    _changed: trio.Event = attrs.field(factory=trio.Event, init=False)

    # The server's side.

    async def receive(self) -> Json:
        await trio.lowlevel.checkpoint()
        await self.until(lambda: self._request or self.is_dropped or self.is_complete)
        if self._request and not self.is_dropped:
            return self._request.pop(0)
        return {"type": "http.disconnect"}

    async def send(self, message: Any) -> None:
        try:
            await trio.lowlevel.checkpoint()
        except trio.Cancelled:
            if self.is_dropped:
                self.swallowed += message.get("body", b"")  # it was the transport's already
            raise
        if self.stalled is not None:
            with trio.CancelScope(shield=self.ghost):
                await self.stalled.wait()
        if self.is_dropped:
            self.swallowed += message.get("body", b"")
            return
        assert not self.is_complete, "sent after the end"
        if message["type"] == "http.response.start":
            assert not self.status, "begun twice"
            self.status = message["status"]
            pairs = [(n.decode(), v.decode()) for n, v in message["headers"]]
            self.headers = dict(pairs)
            assert len(self.headers) == len(pairs), "a header twice"
        else:
            assert self.status, "a body without a beginning"
            self.body += message.get("body", b"")
            self.is_complete = not message.get("more_body", False)
        self._parse()
        self._wake()

    def _parse(self) -> None:
        if not self.is_stream:
            return
        while (end := self.body.find(b"\n\n", self._parsed)) >= 0:
            lines = self.body[self._parsed : end].decode().split("\n")
            self._parsed = end + 2
            fields = dict(line.split(": ", 1) for line in lines if not line.startswith(":"))
            if not fields:
                self.comments += 1
                continue
            retry = fields.get("retry")
            wait = None if retry is None else int(retry)
            self.events.append(Event(fields.get("id"), fields["data"], wait))

    def _wake(self) -> None:
        changed, self._changed = self._changed, trio.Event()
        changed.set()

    # The client's side.

    def put(self, body: bytes, *, more: bool = False) -> None:
        self._request.append({"type": "http.request", "body": body, "more_body": more})
        self._wake()

    def drop(self) -> None:
        """Vanish."""
        self.is_dropped = True
        self.read_on()
        self._wake()

    def stop_reading(self, *, ghost: bool = False) -> None:
        self.stalled, self.ghost = trio.Event(), ghost

    def read_on(self) -> None:
        if self.stalled is not None:
            self.stalled.set()
            self.stalled = None

    async def until(self, seen: Callable[[], T]) -> T:
        while not (found := seen()):
            await self._changed.wait()
        return found

    @property
    def is_stream(self) -> bool:
        return self.headers.get("content-type") == "text/event-stream"

    @property
    def primed(self) -> bool:
        return bool(self.events) and self.events[0].data == ""

    @property
    def messages(self) -> list[Any]:
        """So far."""
        if self.is_stream:
            return [event.json for event in self.events if event.data]
        said = json.loads(self.body) if self.is_complete and self.body else []
        return said if isinstance(said, list) else [said]

    async def begun(self) -> int:
        return await self.until(lambda: self.status)

    async def complete(self) -> Exchange:
        await self.until(lambda: self.is_complete)
        return self

    async def message(self, number: int = 0) -> Any:
        await self.until(lambda: len(self.messages) > number)
        return self.messages[number]

    async def answer(self) -> Json:
        """The last message, once the response is complete."""
        await self.complete()
        answer: Json = self.messages[-1]
        return answer

    async def error(self) -> tuple[int, Json]:
        """The status and the error of a request that is refused."""
        said = (await self.answer()).copy()
        assert self.headers["content-type"] == "application/json"
        assert said.pop("jsonrpc") == "2.0"
        assert said.keys() == {"id", "error"}
        return self.status, said["error"]


@attrs.define(eq=False)
class Client:
    """Of one principal. Remembers its session and version as MCP wants it to."""

    endpoint: McpEndpoint
    nursery: trio.Nursery
    principal: str = "local"
    path: str = "/mcp"
    session: str | None = attrs.field(default=None, init=False)
    version: str = attrs.field(default=LATEST, init=False)
    capabilities: Json = attrs.field(factory=dict, init=False)
    is_foreign: bool = attrs.field(default=False, init=False)
    """It speaks to a server of others, which has no extensions of ours."""
    ids: Iterator[int] = attrs.field(factory=lambda: itertools.count(1), init=False)

    def open(
        self,
        method: str,
        headers: Mapping[str, str | None],
        body: bytes | None = b"",
        query: str = "",
    ) -> Exchange:
        """Send a request; with a body of None it stays incomplete."""
        sent: dict[str, str | None] = {}
        if self.session is not None:
            sent = {"mcp-session-id": self.session, "mcp-protocol-version": self.version}
        pairs = [(n.lower(), v) for n, v in (sent | dict(headers)).items() if v is not None]
        scope: Json = {
            "type": "http",
            "method": method,
            "path": self.path,
            "query_string": query.encode(),
            "headers": [(name.encode(), value.encode()) for name, value in pairs],
        }
        exchange = Exchange(scope)
        if not self.is_foreign:
            scope["extensions"] = {GONE: lambda: exchange.is_dropped}
        if body is not None:
            exchange.put(body)
        self.nursery.start_soon(self._serve, exchange)
        return exchange

    async def _serve(self, exchange: Exchange) -> None:
        await self.endpoint(exchange.scope, exchange.receive, exchange.send, self.principal)
        exchange.is_served = True

    def post(self, message: Any, query: str = "", **headers: str | None) -> Exchange:
        """*message* is sent as JSON, or as it is if it is bytes."""
        body = message if isinstance(message, bytes) else json.dumps(message).encode()
        sent = {"content-type": "application/json", "accept": BOTH} | _named(headers)
        return self.open("POST", sent, body, query)

    def request(self, method: str, /, id: Any = None, **params: Any) -> Exchange:
        return self.post(request(next(self.ids) if id is None else id, method, **params))

    def get(self, last_event_id: str | None = None, **headers: str | None) -> Exchange:
        sent = {"accept": "text/event-stream", "last-event-id": last_event_id}
        return self.open("GET", sent | _named(headers))

    def delete(self, **headers: str | None) -> Exchange:
        return self.open("DELETE", _named(headers))

    async def initialize(
        self, version: str = LATEST, query: str = "", **headers: str | None
    ) -> Exchange:
        """Shake hands; with a header that names a session, join it again."""
        sent: Json = {"mcp-session-id": None, "mcp-protocol-version": None} | headers
        said = {**HELLO, "capabilities": self.capabilities}
        hello = request(next(self.ids), "initialize", protocolVersion=version, **said)
        exchange = await self.post(hello, query, **sent).complete()
        if exchange.status == 200:
            self.session = exchange.headers["mcp-session-id"]
            self.version = (await exchange.answer())["result"]["protocolVersion"]
            done = self.post(DONE)
            assert (await done.complete()).status == 202
        return exchange

    async def rejoin(self, version: str = LATEST) -> Exchange:
        return await self.initialize(version, mcp_session_id=self.session)

    def tool(self, name: str, /, **arguments: Any) -> Exchange:
        return self.request("tools/call", name=name, arguments=arguments)

    async def call(self, name: str, /, **arguments: Any) -> Json:
        """The result of a tool."""
        answered = await self.tool(name, **arguments).answer()
        assert "result" in answered, answered
        result: Json = answered["result"]
        return result

    async def reply(self, asked: Json, result: Any = None, **error: Any) -> None:
        """The answer to a request of the server: a result, or an error."""
        said = {"error": error} if error else {"result": result}
        taken = await self.post({"jsonrpc": "2.0", "id": asked["id"], **said}).complete()
        assert taken.status == 202

    def cancel(self, request_id: Any, **params: Any) -> Exchange:
        params |= {"requestId": request_id}
        return self.post({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})

    def modern(
        self,
        method: str,
        /,
        query: str = "",
        id: Any = None,
        meta: Json | None = None,
        headers: Mapping[str, str | None] | None = None,
        **params: Any,
    ) -> Exchange:
        """A request of the modern era, with what it has to bring along."""
        id = next(self.ids) if id is None else id
        whole = request(id, method, **params, _meta=stamp() | (meta or {}))
        sent = modern_headers(method, params) | dict(headers or {})
        return self.post(whole, query, **sent)

    def modern_tool(
        self, name: str, /, *, query: str = "", meta: Any = None, **arguments: Any
    ) -> Exchange:
        params: Json = {"name": name, "arguments": arguments}
        return self.modern("tools/call", query=query, meta=meta, **params)

    async def modern_call(self, name: str, /, *, query: str = "", **arguments: Any) -> Any:
        """What a tool of ours says."""
        answer = await self.modern_tool(name, query=query, **arguments).answer()
        return json.loads(answer["result"]["content"][0]["text"])

    @property
    def own(self) -> HttpSession:
        """What the endpoint has of it."""
        assert self.session is not None
        return self.endpoint.handshake.clients[self.session]


def _named(headers: Mapping[str, str | None]) -> dict[str, str | None]:
    return {name.replace("_", "-"): value for name, value in headers.items()}


def request(request_id: Any, method: str, /, **params: Any) -> Json:
    return {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}


def stamp(version: str = MODERN) -> Json:
    return {
        f"{META}protocolVersion": version,
        f"{META}clientCapabilities": {},
        f"{META}clientInfo": HELLO["clientInfo"],
    }


def modern_headers(method: str, params: Json, version: str = MODERN) -> dict[str, str | None]:
    name = params.get("name", params.get("uri", params.get("taskId")))
    return {"mcp_protocol_version": version, "mcp_method": method, "mcp_name": name}
