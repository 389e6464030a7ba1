"""Streamable HTTP, in both eras: each message is a POST, sent by the task that has it to say.

So a request needs no task of its own, and who does not want its answer any more closes what it
would come by. What answers it is read where it arrives, by the rules that hold for every transport;
a stream that breaks off before is asked for again, as is the one on which a server of the handshake
era speaks first. Knows how messages travel, and nothing of what they ask for.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, closing, suppress
from typing import Any

import anyio
import attrs
import httpx2
import trio
from mcp.shared.message import ClientMessageMetadata, SessionMessage
from mcp_types import (
    CONNECTION_CLOSED,
    INTERNAL_ERROR,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from ...config import Server
from ...model.json.intake import Measure
from ...waits.slices import in_slices
from ..connections.messages import Said, parse
from .auth import ServerAuth
from .channels import Channels, Received, Target
from .courier import Courier, fixed_headers, location, named
from .event_stream import BodyEvents, EventStream, ServerSentEvent, TooLong
from .pace import Pace
from .posts import Ended, Post, posting
from .transport import (
    SESSION_ID,
    ClosedElsewhere,
    HttpTransport,
    certificates,
    client_options,
    session_header,
    spelled,
    unsayable,
)

NOTICE_PATIENCE = 5.0
"""Seconds for a peer to take what wants no answer. Others of that kind wait behind it."""
TRIES = 2
"""In a row, to go on with a stream."""
AGAIN = 1.0
"""Seconds before that, if its server says nothing."""

_ID, _VERSION = SESSION_ID.encode(), b"mcp-protocol-version"
_EVENTS = "text/event-stream"
_TAKEN = {b"accept": b"application/json, text/event-stream", b"content-type": b"application/json"}


@attrs.define(eq=False)
class Rest:
    """Where a stream that ended is gone on with, and when."""

    pace: Pace
    id: bytes = b""
    pause: float = AGAIN

    def note(self, event: ServerSentEvent) -> None:
        if event.id:
            self.id = event.id
        if event.retry_ms is not None:
            self.pause = event.retry_ms / 1000


@attrs.define(eq=False)
class Streamable(ClosedElsewhere):
    """Messages to one server, and what it says in turn."""

    _peer: HttpTransport
    _courier: Courier
    _nursery: trio.Nursery
    """Where the stream lives on which the server speaks first."""
    _version: bytes | None = attrs.field(default=None, init=False)
    """Of the protocol, as the last request said that was no handshake."""
    _one_by_one: trio.Lock = attrs.field(factory=trio.Lock, init=False)
    """What wants no answer."""

    async def send(self, item: SessionMessage) -> None:
        """Returns when there is nothing more to be read for it.

        Raises:
            MCPError: it cannot be said in JSON.
            BrokenResourceError: the connection is over, and whom it concerns has been told why.
            httpx2.RequestError: there is none to be over yet.
        """
        message, about = item.message, item.metadata
        body = await spelled(message)
        given = about.headers if isinstance(about, ClientMessageMetadata) else None
        try:
            headers = {k.lower().encode(): v.encode("ascii") for k, v in (given or {}).items()}
        except UnicodeError as error:
            raise unsayable(error) from None
        try:
            if isinstance(message, JSONRPCRequest):
                post = posting.get() or Post(message.id, message.method == "initialize")
                self._version = None if post.is_initialize else headers.get(_VERSION, self._version)
                await self._ask(post, headers, body)
            else:
                self._version = headers.get(_VERSION, self._version)
                await self._tell(message, headers, body)
        except httpx2.RequestError:
            if self._peer.on_over is None and isinstance(message, JSONRPCRequest):
                raise
            self._peer.close()
            raise anyio.BrokenResourceError from None

    async def _send(
        self,
        method: str,
        headers: Mapping[bytes, bytes],
        body: bytes | None = None,
        post: Post | None = None,
    ) -> Received:
        ours = dict(_TAKEN)
        if self._peer.session_id is not None:
            ours[_ID] = self._peer.session_id.encode("ascii")
        if self._version is not None:
            ours[_VERSION] = self._version
        if post is not None and post.is_initialize:
            told = session_header(self._peer.server, self._peer.session)
            if told is not None and told[0] == SESSION_ID:
                ours[_ID] = told[1].encode()
        ours.update(headers)
        try:
            return await self._courier.send(method, ours, body, post)
        except httpx2.RequestError as error:
            self._peer.failed(method, error)
            raise

    async def _tell(
        self, message: JSONRPCMessage, headers: Mapping[bytes, bytes], body: bytes
    ) -> None:
        """What wants no answer, and has none that anybody reads."""
        if isinstance(message, JSONRPCNotification):
            is_modern = (self._version or b"").decode() in MODERN_PROTOCOL_VERSIONS
            if message.method == "notifications/cancelled" and is_modern:
                return  # closing the stream of its answer has said so
            if message.method == "notifications/initialized":
                self._nursery.start_soon(self.listen)
        async with self._one_by_one:
            with trio.move_on_after(NOTICE_PATIENCE):
                response = await self._send("POST", headers, body)
                await response.aclose()

    async def _ask(self, post: Post, headers: Mapping[bytes, bytes], body: bytes) -> None:
        response = await self._send("POST", headers, body, post)
        try:
            rest = await self._answered(response, post)
        finally:
            await response.aclose()  # noqa: ASYNC102 - waits for nobody
        if rest is not None:
            await self._ask_for_rest(post, rest)

    async def _answered(self, response: Received, post: Post) -> Rest | None:
        """Hand on the answer to *post*; what is left to do if it is still to come."""
        status, kind = response.status, (named(response, b"content-type") or "").lower()
        is_json = kind.startswith("application/json")
        if status == 202:
            why = "server answered a request with 202 Accepted"
            await self._peer.refuse(post, INVALID_REQUEST, why)
        elif status >= 400:
            said = await self._whole(response) if is_json else Said([])
            said.messages[:] = [m for m in said.messages if isinstance(m, JSONRPCError)]
            if said.messages:
                await self._peer.heard(said, post, is_all=True)
            elif status != 404:
                why = "Server returned an error response"
                await self._peer.refuse(post, INTERNAL_ERROR, why)
            elif self._peer.session_id is None:
                await self._peer.refuse(post, METHOD_NOT_FOUND, "Not Found")
            else:
                await self._peer.refuse(post, INVALID_REQUEST, "Session terminated")
        elif 200 <= status < 300 and is_json:
            await self._peer.heard(await self._whole(response), post, is_all=True)
        elif 200 <= status < 300 and kind.startswith(_EVENTS):
            rest = Rest(Pace(self._peer.server.reconnect))
            if not await self._read_events(response, post, rest):
                return rest
            response.leave()
        else:
            await self._peer.refuse(post, INVALID_REQUEST, _no_answer(response, kind))
        return None

    async def _whole(self, response: Received) -> Said:
        limit, body = self._peer.measure.size, bytearray()
        try:
            while chunk := await response.chunk():
                body += chunk
                if len(body) > limit:
                    raise self._peer.too_long()
        except httpx2.RequestError as error:
            self._peer.failed("POST", error)
            raise
        return await in_slices(parse(body, self._peer.measure))

    async def _read_events(self, response: Received, post: Post | None, rest: Rest) -> bool:
        """Hand on what comes in a stream; whether the answer to *post* was there."""
        rest.pace.asked()
        if post is not None:
            post.broke_off = False
            if post.on_stream is not None:
                post.on_stream("begins")
        measure = self._peer.measure
        why: httpx2.RequestError | None = None
        events = BodyEvents(response.chunk, EventStream(measure.size))
        try:
            while (event := await events.next()) is not None:
                rest.note(event)
                if event.kind == "message" and event.data:
                    said = await in_slices(parse(event.data, measure))
                    if await self._peer.heard(said, post, is_all=False):
                        return True
        except TooLong:
            why = self._peer.too_long()
        except httpx2.RequestError as error:
            why = error
        if post is not None:
            post.broke_off = True
            if why is None and post.on_stream is not None:
                post.on_stream("pauses")
        if why is not None:
            self._peer.failed(response.request.method, why, mid_stream=True)
            if isinstance(why, Ended):
                raise why
        return False

    async def _ask_for_rest(self, post: Post, rest: Rest) -> None:
        """Of the stream in which its answer should have come."""
        if not rest.id:
            why = "SSE stream ended without a response"
            return await self._peer.refuse(post, CONNECTION_CLOSED, why)
        left = TRIES
        while left:
            await trio.sleep(rest.pause)
            left -= 1
            try:
                response = await self._get(rest)
                try:
                    if _is_stream(response):
                        if await self._read_events(response, post, rest):
                            return None
                        left = TRIES
                finally:
                    await response.aclose()  # noqa: ASYNC102 - waits for nobody
            except httpx2.RequestError as error:
                if isinstance(error, httpx2.ConnectError | Ended):
                    raise  # the connection is over
        why = "SSE stream ended and reconnection attempts were exhausted"
        return await self._peer.refuse(post, CONNECTION_CLOSED, why)

    async def listen(self) -> None:
        """Read what a server of the handshake era says of its own accord, if it wants to."""
        rest, left = Rest(Pace(self._peer.server.reconnect)), TRIES
        while self._peer.session_id is not None:
            left -= 1
            with suppress(httpx2.RequestError):
                response = await self._get(rest)
                try:
                    if location(response) is not None:
                        return  # it would lead there again
                    if _is_stream(response):
                        await self._read_events(response, None, rest)
                        left = TRIES
                finally:
                    await response.aclose()  # noqa: ASYNC102 - waits for nobody
            if not left:
                return
            await trio.sleep(rest.pause)

    async def _get(self, rest: Rest) -> Received:
        """Says nothing of what it is the rest of: that has been sent, whether this is or not."""
        await rest.pace.turn()
        headers = {b"accept": _TAKEN[b"accept"], b"cache-control": b"no-store"}
        if rest.id:
            headers[b"last-event-id"] = rest.id
        response = await self._send("GET", headers)
        rest.pace.asked()
        return response

    async def leave(self) -> None:
        """End our session, if there is one."""
        if self._peer.session_id is not None:
            with suppress(httpx2.HTTPError):
                await (await self._send("DELETE", {})).aclose()

    async def end_session(self, session_id: str, version: str) -> int | None:
        """See :attr:`.HttpTransport.end_session`."""
        headers = {_ID: session_id.encode("ascii"), _VERSION: version.encode("ascii")}
        try:
            response = await self._send("DELETE", headers)
        except httpx2.HTTPError:
            return None
        await response.aclose()
        return response.status

    def on_response(self, response: Received, post: Post | None) -> None:
        """See it before anything is made of it."""
        peer, request, status = self._peer, response.request, response.status
        peer.refuse_coded(named(response, b"content-encoding"))
        if request.method == "DELETE":
            if peer.session_id is not None and request.headers.get(_ID) == peer.session_id.encode():
                peer.deleted = status
            return
        is_post = request.method == "POST"
        if is_post:
            peer.status = status if status >= 400 else None
            if post is not None and post.is_initialize:
                peer.begins_session(named(response, _ID), status)
        elif status < 300:
            peer.let_us_listen()
        if status == 404 and _ID in request.headers:
            peer.knows_no_session(post, is_post=is_post)


def _is_stream(response: Received) -> bool:
    kind = (named(response, b"content-type") or "").partition(";")[0]
    return 200 <= response.status < 300 and kind.strip().lower() == _EVENTS


def _no_answer(response: Received, kind: str) -> str:
    """Where else it is, without what may be a secret, or what else came."""
    try:
        there = location(response)
    except httpx2.RemoteProtocolError as error:
        return f"Redirect not followed: {error}"
    if there is None:
        return f"Unexpected content type: {kind}"
    shown = there.copy_with(userinfo=b"", query=None, fragment=None)
    why = f"Redirect to {shown} not followed"
    if response.request.target.url.scheme == "https" and there.scheme == "http":
        return f"{why}: it is not encrypted, as this server's url is"
    return f"{why}; use that URL if it is the server that is meant"


@asynccontextmanager
async def open_streamable(
    server: Server,
    session: str,
    measure: Measure,
    *,
    restricted: bool,
    auth: ServerAuth | None,
) -> AsyncGenerator[tuple[Any, Any, HttpTransport]]:
    """What *server* says, and where to write to it.

    If there is an *auth*, it says what the server is shown of who asks. If it is *restricted*,
    ``policy.network`` decides about every address, and no proxy is asked.
    """
    assert server.url is not None
    said, reads = trio.open_memory_channel[SessionMessage](0)
    peer = HttpTransport(server, session, measure, restricted, auth, said)
    context = await certificates()
    client = httpx2.AsyncClient(**client_options(peer), trust_env=not restricted)
    with closing(Channels(context, restricted, None if restricted else client)) as channels:
        async with client, trio.open_nursery() as nursery:

            def on_response(response: Received, post: Post | None) -> None:
                streamable.on_response(response, post)

            home, fixed = Target.of(httpx2.URL(server.url)), fixed_headers(server, client)
            courier = Courier(channels, home, fixed, auth, on_response, peer.check_let_in)
            streamable = Streamable(peer, courier, nursery)
            peer.end_session = streamable.end_session
            try:
                with said, reads:
                    yield reads, streamable, peer
            finally:
                # Bounded by whoever closes it (`link.CLOSING`); who is cancelled says no more.
                await streamable.leave()  # noqa: ASYNC102 - see above
            nursery.cancel_scope.cancel("connection is closed")
