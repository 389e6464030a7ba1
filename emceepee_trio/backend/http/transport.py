"""HTTP transports, the SDK's, with what it leaves open: bounded bodies, and losses told at once.

One HTTP client per connection, ours, so that it sees every response and every error before the SDK
does, which reports a 404 without its status and ends the whole connection for a failed request.
"""

from __future__ import annotations

import functools
import hashlib
import json
import re
import ssl
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any, Self

import attrs
import httpx2
import trio
from mcp import MCPError
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import ServerMessageMetadata, SessionMessage
from mcp_types import INVALID_PARAMS, JSONRPCError, JSONRPCMessage, JSONRPCRequest

from ...config import Server
from ...errors import ConnectFailed
from ...model.json.intake import Measure
from ...waits.slices import in_slices
from ..connections.messages import dump, long_part
from ..connections.sdk import is_followed, unheard
from .auth import ServerAuth
from .cookies import FewCookies
from .network import Forbidden, RestrictedTransport
from .pace import Pace
from .posts import NOTICE_PATIENCE, Body, Ended, Kind, Post, as_post, posting

PATIENCE = 30.0
"""Seconds to connect or to write. Reading has no bound of its own: every request carries a
deadline, and a stream may be silent for hours."""

SESSION_ID = "mcp-session-id"
_VISIBLE = re.compile(r"[\x20-\x7e]*")
SESSION_GONE = "the server has ended our session (HTTP status 404)"


@attrs.define(eq=False)
class HttpTransport:
    """What is known of the peer below the protocol."""

    server: Server
    session: str
    """Of ours."""
    measure: Measure
    restricted: bool
    auth: ServerAuth | None
    """Who knows what it is shown, if that is more than its entry says."""
    _said: trio.MemorySendChannel[SessionMessage]
    status: int | None = attrs.field(default=None, init=False)
    """Of the last answer, if it was an error."""
    on_over: Callable[[str], None] | None = attrs.field(default=None, init=False)
    """Told why the connection is over, once there is one."""
    session_id: str | None = attrs.field(default=None, init=False)
    """What the peer calls our session."""
    session_gone: bool = attrs.field(default=False, init=False)
    """The peer says that it does not know our session."""
    deleted: int | None = attrs.field(default=None, init=False)
    """The status of its answer when we ended our session, if it answered."""
    not_run: set[object] = attrs.field(factory=set, init=False)
    """Ids of requests that it did not run, because it did not know our session."""
    client: httpx2.AsyncClient | None = attrs.field(default=None, init=False)
    _streams: bool = attrs.field(default=False, init=False)
    """Whether the peer has ever let us listen."""
    _listens: Pace = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._listens = Pace(self.server.reconnect)

    async def turn(self, request: httpx2.Request, post: Post | None) -> None:
        """Before *request* is sent: the SDK asks for a stream as often as its server says."""
        # Where it is redirected to is part of the same turn.
        if request.method == "GET" and request.url == httpx2.URL(self.server.url or ""):
            await self._pace(post).turn()

    def _pace(self, post: Post | None) -> Pace:
        if post is None or post.id is None:
            return self._listens
        if post.pace is None:
            post.pace = Pace(self.server.reconnect)
        return post.pace

    async def note(self, response: httpx2.Response) -> None:
        """See a response before the SDK does."""
        request, status = response.request, response.status_code
        encoding = response.headers.get("content-encoding", "identity")
        if encoding.lower() != "identity":
            raise httpx2.DecodingError(f"sent {encoding}, which we do not accept")
        kind = self._kind(response)
        failed = functools.partial(self.failed, request.method, mid_stream=kind == "events")
        post = posting.get()
        if request.method == "GET" or (post is not None and post.id is not None):
            self._pace(post).asked()
        response.stream = Body(response.stream, self.measure, failed, self._say, kind, post)
        if request.method == "DELETE":
            if request.headers.get(SESSION_ID) == self.session_id:
                self.deleted = status
            return
        named = response.headers.get(SESSION_ID)
        if named is not None and _is_initialize(request) and not _VISIBLE.fullmatch(named):
            # The SDK would send it back, and fail in the middle of that.
            raise httpx2.RemoteProtocolError(f"{SESSION_ID} is not of visible ASCII characters")
        if named not in {None, self.session_id} and _is_initialize(request):
            self.session_id = named
        if request.method == "POST" or self.server.transport == "sse":
            self.status = status if status >= 400 else None
        if request.method == "GET" and status < 300:
            self._streams = True
        if status < 400:
            return
        if self.on_over is None:
            return  # it is about to be refused by somebody who can say why
        # Some answer 404 to every GET: they have nothing to stream.
        is_asked = request.method == "POST" or self._streams
        if status == 404 and is_asked and SESSION_ID in request.headers:
            self.session_gone = True
            if request.method != "POST":
                raise Ended(SESSION_GONE)
            # The SDK goes on, so that the others that are under way learn the same each.
            if post is not None:
                self.not_run.add(post.id)
            self.on_over(SESSION_GONE)

    def check_let_in(self, response: httpx2.Response) -> None:
        """Who is not has no connection, unless somebody is about to say so who can say why."""
        if response.status_code == 401 and self.on_over is not None:
            raise Ended(f"{self.server.target} answered 401")

    def _kind(self, response: httpx2.Response) -> Kind:
        method, status = response.request.method, response.status_code
        content_type = response.headers.get("content-type", "").lower()
        if self.server.transport == "sse" and method != "GET":
            return "other"
        if content_type.startswith("text/event-stream"):
            return "events"
        if method == "POST" and content_type.startswith("application/json"):
            return "answer" if response.is_success else "refusal" if status >= 400 else "other"
        return "other"

    async def _say(self, message: JSONRPCMessage, request_id: str | int | None = None) -> None:
        """*request_id*: of ours, in the answer to which it came."""
        item = SessionMessage(message, ServerMessageMetadata(request_id))
        with suppress(trio.BrokenResourceError, trio.ClosedResourceError):  # nobody listens
            try:
                self._said.send_nowait(item)  # as a rule somebody waits for it
            except trio.WouldBlock:
                await self._said.send(item)

    async def relay(self, reads: AsyncIterable[SessionMessage | Exception]) -> None:
        """Hand on what the SDK has to say itself: that a request has failed. Ends with it."""
        with self._said:
            async for item in reads:
                if isinstance(item, SessionMessage) and isinstance(item.message, JSONRPCError):
                    await self._say(item.message)

    async def end_session(self, session_id: str, version: str) -> int | None:
        """End a session of an earlier connection; the status of the answer, if there is one."""
        assert self.client is not None
        assert self.server.url is not None
        headers = {SESSION_ID: session_id, "mcp-protocol-version": version}
        try:
            response = await self.client.request("DELETE", self.server.url, headers=headers)
        except httpx2.HTTPError:
            return None
        return response.status_code

    async def check_written(self, response: httpx2.Response) -> None:
        """The old transport writes nothing any more after an error, and does not say so."""
        if not (response.is_success or is_followed(response)):
            await response.aclose()
            raise Ended(f"{self.server.target} answered {response.status_code}")

    def failed(self, method: str, error: httpx2.RequestError, *, mid_stream: bool = False) -> None:
        """A request failed, or the stream that answers it.

        Of the former the SDK dies. After the latter it asks for the rest, or says so to the caller.
        """
        if (
            (method == "POST" and not mid_stream)
            or isinstance(error, httpx2.ConnectError | Ended)
            or self.server.transport == "sse"
        ) and self.on_over is not None:
            self.on_over(describe(error, self.server))


def describe(error: httpx2.HTTPError, server: Server) -> str:
    """In our words: those of the library may quote the URL, and with it a secret."""
    if isinstance(error, Ended | Forbidden):
        return str(error)
    if isinstance(error, httpx2.HTTPStatusError):
        return f"{server.target} answered {error.response.status_code}"
    return f"cannot reach {server.target}: {error or type(error).__name__}"


def _is_initialize(request: httpx2.Request) -> bool:
    post = posting.get()
    return request.method == "POST" and post is not None and post.is_initialize


def session_header(server: Server, session: str) -> tuple[str, str] | None:
    """What tells *server* which session of ours calls, if its entry asks for that.

    The id itself is enough to join a session, so any header but the one made for it gets a hash.
    """
    name = server.propagate_session
    if name is None or session == "default" or session.startswith("pending-"):
        return None
    if name.lower() == SESSION_ID:
        return SESSION_ID, session
    return name, hashlib.sha256(session.encode()).hexdigest()


@functools.cache
def _certificates() -> ssl.SSLContext:
    """For all connections: reading them takes 40 ms."""
    return httpx2.create_ssl_context()


class _Client(httpx2.AsyncClient):
    """Tells of a failed request before anybody else hears of it."""

    def __init__(self, transport: HttpTransport) -> None:
        headers = httpx2.Headers(dict(transport.server.headers))
        # Uncompressed, the length of a body is what it takes in memory.
        headers["accept-encoding"] = "identity"
        # Every call under way has a connection of its own; `limits.calls` bounds them.
        limits = httpx2.Limits(max_connections=None, max_keepalive_connections=20)
        restricted = RestrictedTransport(_certificates(), limits) if transport.restricted else None
        super().__init__(
            headers=headers,
            verify=_certificates(),
            timeout=httpx2.Timeout(PATIENCE, read=None, pool=None),
            limits=limits,
            transport=restricted,
            cookies=FewCookies(),
            event_hooks={"response": [transport.note]},
        )
        self._noting = transport
        self._told = session_header(transport.server, transport.session)
        if self._told is not None and self._told[0] != SESSION_ID:
            self.headers[self._told[0]] = self._told[1]

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        if self._told is not None and self._told[0] == SESSION_ID and _is_initialize(request):
            request.headers[SESSION_ID] = self._told[1]
        post = posting.get()
        if request.method == "POST" and post is not None and post.body is not None:
            request.stream = httpx2.ByteStream(post.body)
            request.headers["content-length"] = str(len(post.body))
        try:
            if self._noting.server.transport == "sse":
                response = await self._send(request, **options)
                if request.method == "POST":
                    await self._noting.check_written(response)
                return response
            if post is None:
                await self._noting.turn(request, None)
                return await self._send(request, **options)
            request.extensions = {**request.extensions, "trace": post.trace}
            with post.waiting() as scope:
                if post.id is None and request.method == "POST":
                    scope.deadline = trio.current_time() + NOTICE_PATIENCE
                await self._noting.turn(request, post)
                return await self._send(request, **options)
            return post.instead(request)
        except httpx2.RequestError as error:
            self._noting.failed(request.method, error)
            raise

    async def _send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        """With what the server is shown of who asks; twice, if there is something else by now."""
        auth = self._noting.auth
        shown = await self._show(request)
        response = await super().send(request, **options)
        if response.status_code == 401 and auth is not None and await auth.refused(shown):
            await response.aclose()
            await self._show(request)
            response = await super().send(request, **options)
        self._noting.check_let_in(response)
        return response

    async def _show(self, request: httpx2.Request) -> Mapping[str, str]:
        if self._noting.auth is None:
            return {}
        try:
            shown = await self._noting.auth.headers()
        except ConnectFailed as error:
            raise Ended(error.message) from None
        request.headers.update(shown)
        return shown


@attrs.define(eq=False)
class _Sendable:
    """Messages to the SDK, which takes what JSON cannot say for the end of the connection.

    It would write a long one at once, so of that it gets no more than it looks at, and what goes
    out is our text.

    Closing is left to the SDK: an answer that comes while it ends the session finds them open.
    """

    _inner: Any

    async def send(self, item: SessionMessage) -> None:
        message, body = item.message, None
        try:
            if carried := long_part(message):
                body = await in_slices(dump(message))
                message = message.model_copy(update={carried: {}})
            else:
                data = message.model_dump(by_alias=True, mode="json", exclude_unset=True)
                json.dumps(data, ensure_ascii=False, allow_nan=False).encode()
        except (ValueError, RecursionError) as error:
            # A lone surrogate, hundreds of levels, a number without an end.
            raise MCPError(
                code=INVALID_PARAMS, message=f"cannot be sent over HTTP: {error}"
            ) from None
        post = Post()
        if isinstance(message, JSONRPCRequest):
            # Of calls there is one, which can be abandoned.
            post = posting.get() or Post(message.id, message.method == "initialize")
        post.body = body
        with unheard(), as_post(post):
            await self._inner.send(SessionMessage(message, item.metadata))

    async def aclose(self) -> None:
        pass

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        pass


@asynccontextmanager
async def open_http(
    server: Server,
    session: str,
    measure: Measure,
    *,
    restricted: bool,
    auth: ServerAuth | None,
) -> AsyncGenerator[tuple[Any, Any, HttpTransport]]:
    """The message streams of *server*, by the transport its entry names.

    If there is an *auth*, it says what the server is shown of who asks. If it is *restricted*,
    ``policy.network`` decides about every address, and no proxy is asked.
    """
    assert server.url is not None
    said, ours = trio.open_memory_channel[SessionMessage](0)
    transport = HttpTransport(server, session, measure, restricted, auth, said)
    if not _certificates.cache_info().currsize:
        # In a thread, so that nobody else waits for it.
        await trio.to_thread.run_sync(_certificates)
    opened = _open_sse if server.transport == "sse" else _open_streamable
    with unheard():
        async with (
            opened(server.url, transport) as (reads, writes),
            trio.open_nursery() as nursery,
        ):
            nursery.start_soon(transport.relay, reads)
            with ours:
                yield ours, _Sendable(writes), transport
            nursery.cancel_scope.cancel("connection is closed")


@asynccontextmanager
async def _open_streamable(url: str, transport: HttpTransport) -> AsyncGenerator[tuple[Any, Any]]:
    async with (
        _Client(transport) as transport.client,
        # Bodies are bounded by us.
        streamable_http_client(
            url, http_client=transport.client, max_sse_event_size=None
        ) as streams,
    ):
        yield streams


@asynccontextmanager
async def _open_sse(url: str, transport: HttpTransport) -> AsyncGenerator[tuple[Any, Any]]:
    def make_client(*_: object, **__: object) -> httpx2.AsyncClient:
        return _Client(transport)

    opened = False
    try:
        async with sse_client(url, httpx_client_factory=make_client) as streams:
            opened = True
            yield streams
    except* RuntimeError:
        if opened:
            raise
        # anyio's word for a stream that ended before it told where to write to
        raise ConnectFailed("the event stream ended before it named an endpoint") from None
