"""The SSE transport of 2024-11-05, the SDK's, with what it leaves open.

Its client is ours, so that it sees every response and every error before the SDK does: bodies are
bounded, what the server says is read by the rules that hold for every transport, and losses are
told at once. The SDK is told of the endpoint that it writes to, and nothing else.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import Any

import attrs
import httpx2
import trio
from mcp.client.sse import sse_client
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCError, JSONRPCRequest

from ...config import Server
from ...errors import ConnectFailed
from ...model.json.intake import Measure
from ...waits.slices import in_slices
from ..connections.messages import long_part, parse
from ..connections.sdk import is_followed, unheard
from .auth import ServerAuth
from .channels import MANY
from .cookies import FewCookies
from .event_stream import BodyEvents, EventStream, TooLong
from .network import RestrictedTransport
from .posts import Ended
from .transport import (
    SESSION_ID,
    ClosedElsewhere,
    HttpTransport,
    certificates,
    client_options,
    session_header,
    shown_of,
    spelled,
)


@attrs.define(eq=False)
class _Body(httpx2.AsyncByteStream):
    """A response on its way to the SDK; what the server says in it turns off here."""

    _inner: Any
    _peer: HttpTransport
    _method: str
    _is_stream: bool
    _chunks: AsyncIterator[bytes] = attrs.field(init=False)
    _events: BodyEvents = attrs.field(init=False)
    _size: int = attrs.field(default=0, init=False)
    _pieces: int = attrs.field(default=0, init=False)

    # Not a generator: the SDK leaves its loops in the middle, and nobody would close it.
    def __aiter__(self) -> AsyncIterator[bytes]:
        self._chunks = aiter(self._inner)
        self._events = BodyEvents(self._next_chunk, EventStream(self._peer.measure.size))
        return self

    async def __anext__(self) -> bytes:
        try:
            told = await (self._next_endpoint() if self._is_stream else self._next_chunk())
        except TooLong:
            error = self._peer.too_long()
            self._peer.failed(self._method, error)
            raise error from None
        except httpx2.RequestError as error:
            self._peer.failed(self._method, error)
            raise
        if told:
            return told
        raise StopAsyncIteration

    async def _next_chunk(self) -> bytes:
        """Empty at the end."""
        async for chunk in self._chunks:
            self._pieces += 1
            if self._pieces % MANY == 0:  # of what was read at once, there may be one for each byte
                await trio.lowlevel.checkpoint()
            self._size += len(chunk)
            if not self._is_stream and self._size > self._peer.measure.size:
                raise self._peer.too_long()
            if chunk:
                return chunk
        return b""

    async def _next_endpoint(self) -> bytes:
        while (event := await self._events.next()) is not None:
            if event.kind == "endpoint":
                lines = b"".join(b"data: " + line + b"\n" for line in event.data.split(b"\n"))
                return b"event: endpoint\n" + lines + b"\n"
            if event.kind == "message" and event.data:
                said = await in_slices(parse(event.data, self._peer.measure))
                await self._peer.heard(said, None, is_all=False)
        return b""

    async def aclose(self) -> None:
        await self._inner.aclose()


class _Client(httpx2.AsyncClient):
    """Tells of a failed request before anybody else hears of it."""

    def __init__(self, peer: HttpTransport) -> None:
        options = client_options(peer)
        restricted = None
        if peer.restricted:
            restricted = RestrictedTransport(options["verify"], options["limits"])
        hooks = {"response": [self._note]}
        super().__init__(**options, transport=restricted, cookies=FewCookies(), event_hooks=hooks)
        self._peer = peer

    async def _note(self, response: httpx2.Response) -> None:
        """See a response before the SDK does."""
        self._peer.refuse_coded(response.headers.get("content-encoding"))
        status, method = response.status_code, response.request.method
        self._peer.status = status if status >= 400 else None
        kind = response.headers.get("content-type", "").lower()
        is_stream = method == "GET" and kind.startswith("text/event-stream")
        response.stream = _Body(response.stream, self._peer, method, is_stream)

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        sending = _sending.get() if request.method == "POST" else None
        if sending is not None and sending.body is not None:
            request.stream = httpx2.ByteStream(sending.body)
            request.headers["content-length"] = str(len(sending.body))
        if sending is not None and sending.is_initialize:
            told = session_header(self._peer.server, self._peer.session)
            if told is not None and told[0] == SESSION_ID:
                request.headers[SESSION_ID] = told[1]
        try:
            response = await self._send(request, **options)
            if request.method == "POST" and not (response.is_success or is_followed(response)):
                # The SDK writes nothing any more after an error, and does not say so.
                await response.aclose()
                raise Ended(f"{self._peer.server.target} answered {response.status_code}")
            return response
        except httpx2.RequestError as error:
            self._peer.failed(request.method, error)
            raise

    async def _send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        """With what the server is shown of who asks; twice, if there is something else by now."""
        auth = self._peer.auth
        shown = await self._show(request)
        response = await super().send(request, **options)
        if response.status_code == 401 and auth is not None and await auth.refused(shown):
            await response.aclose()
            await self._show(request)
            response = await super().send(request, **options)
        self._peer.check_let_in(response.status_code)
        return response

    async def _show(self, request: httpx2.Request) -> Mapping[str, str]:
        shown = await shown_of(self._peer.auth)
        request.headers.update(shown)
        return shown


@attrs.frozen
class _Sending:
    """A message on its way."""

    is_initialize: bool
    body: bytes | None
    """What goes out, if the SDK has not the whole message."""


_sending: ContextVar[_Sending | None] = ContextVar("sending", default=None)
"""The SDK sends each in the context in which it was handed to it."""


@attrs.define(eq=False)
class _Writes(ClosedElsewhere):
    """Messages to the SDK, which takes what JSON cannot say for the end of the connection.

    It would write a long one at once, so of that it gets no more than it looks at, and what goes
    out is our text.
    """

    _inner: Any

    async def send(self, item: SessionMessage) -> None:
        message, body = item.message, await spelled(item.message)
        is_initialize = isinstance(message, JSONRPCRequest) and message.method == "initialize"
        carried = long_part(message)
        if carried:
            message = message.model_copy(update={carried: {}})
        token = _sending.set(_Sending(is_initialize, body if carried else None))
        try:
            with unheard():
                await self._inner.send(SessionMessage(message, item.metadata))
        finally:
            _sending.reset(token)


@asynccontextmanager
async def open_old(
    server: Server,
    session: str,
    measure: Measure,
    *,
    restricted: bool,
    auth: ServerAuth | None,
) -> AsyncGenerator[tuple[Any, Any, HttpTransport]]:
    """See :func:`.streamable.open_streamable`."""
    assert server.url is not None
    said, reads = trio.open_memory_channel[SessionMessage](0)
    peer = HttpTransport(server, session, measure, restricted, auth, said)
    await certificates()
    with unheard():
        async with _open_sdk(server.url, peer) as (theirs, writes), trio.open_nursery() as nursery:
            nursery.start_soon(_relay, peer, theirs)
            with reads:
                yield reads, _Writes(writes), peer
            nursery.cancel_scope.cancel("connection is closed")


@asynccontextmanager
async def _open_sdk(url: str, peer: HttpTransport) -> AsyncGenerator[tuple[Any, Any]]:
    def make_client(*_: object, **__: object) -> httpx2.AsyncClient:
        return _Client(peer)

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


async def _relay(peer: HttpTransport, reads: AsyncIterable[SessionMessage | Exception]) -> None:
    """Hand on what the SDK has to say itself: that a request has failed. Ends with it."""
    try:
        async for item in reads:
            if isinstance(item, SessionMessage) and isinstance(item.message, JSONRPCError):
                await peer.say(item.message)
    finally:
        peer.close()
