"""What is known of a server behind a URL below the protocol, and what it has said handed on.

Both HTTP transports tell it what they see, and it knows what that means for the connection: that
it is over, and why; that our session is gone. Sends nothing itself.
"""

from __future__ import annotations

import functools
import hashlib
import json
import re
import ssl
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, Self

import attrs
import httpx2
import trio
from mcp import MCPError
from mcp.shared.message import ServerMessageMetadata, SessionMessage
from mcp_types import INVALID_PARAMS, ErrorData, JSONRPCError, JSONRPCMessage

from ...config import Server
from ...errors import ConnectFailed
from ...model.json.intake import Measure
from ...waits.slices import in_slices
from ..connections.messages import Said, dump, long_part, note
from .auth import ServerAuth
from .channels import KEPT, PATIENCE
from .network import Forbidden
from .posts import Ended, Post

SESSION_ID = "mcp-session-id"
SESSION_GONE = "the server has ended our session (HTTP status 404)"
_VISIBLE = re.compile(r"[\x20-\x7e]*")


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
    settles: Callable[[SessionMessage], bool] = lambda _: False
    """Takes an answer that nothing is in front of, and what it takes goes no further."""
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
    end_session: Callable[[str, str], Awaitable[int | None]] = attrs.field(init=False)
    """End a session of an earlier connection, by its id and the version of the protocol in which
    it was opened; the status of the answer, if there is one."""
    _streams: bool = attrs.field(default=False, init=False)
    """Whether the peer has ever let us listen."""

    def refuse_coded(self, encoding: str | None) -> None:
        """Uncompressed, the length of a body is what it takes in memory."""
        if (encoding or "identity").lower() != "identity":
            raise httpx2.DecodingError(f"sent {encoding}, which we do not accept")

    def begins_session(self, named: str | None, status: int) -> None:
        """What the answer to an `initialize` says of it."""
        if named is not None and not _VISIBLE.fullmatch(named):
            # It would have to be sent back.
            raise httpx2.RemoteProtocolError(f"{SESSION_ID} is not of visible ASCII characters")
        if named and 200 <= status < 300:
            self.session_id = named

    def let_us_listen(self) -> None:
        self._streams = True

    def knows_no_session(self, post: Post | None, *, is_post: bool) -> None:
        """It answered 404 to a request that named our session."""
        # Some answer 404 to every GET: they have nothing to stream.
        if self.on_over is None or not (is_post or self._streams):
            return
        self.session_gone = True
        if not is_post:
            raise Ended(SESSION_GONE)
        # The answer goes on, so that the others that are under way learn the same each.
        if post is not None:
            self.not_run.add(post.id)
        self.on_over(SESSION_GONE)

    def check_let_in(self, status: int) -> None:
        """Who is not has no connection, unless somebody is about to say so who can say why."""
        if status == 401 and self.on_over is not None:
            raise Ended(f"{self.server.target} answered 401")

    def too_long(self) -> Ended:
        return Ended(f"message too long (limit {self.measure.size} bytes)")

    async def heard(self, said: Said, post: Post | None, *, is_all: bool) -> bool:
        """Hand on what was said; whether that was the answer to *post*.

        *is_all*: there is nothing else in the response.
        """
        answer = request_id = None
        if post is not None and post.id is not None:
            request_id = post.id
            answer = await in_slices(post.answer(said, is_all=is_all))
        for message in said.messages:
            await self.say(message, request_id)
        if answer is not None:
            await self.say(answer, request_id)
        elif said.why_not is not None and not said.messages:
            await self.say(note(f"the server's message {said.why_not}"), request_id)
        return answer is not None

    async def say(self, message: JSONRPCMessage, request_id: str | int | None = None) -> None:
        """*request_id*: of ours, in the answer to which it came."""
        item = SessionMessage(message, ServerMessageMetadata(request_id))
        with suppress(trio.BrokenResourceError, trio.ClosedResourceError):  # nobody listens
            # Who waits for more has handled all that was in front of it.
            if self._said.statistics().tasks_waiting_receive and self.settles(item):
                return
            try:
                self._said.send_nowait(item)  # as a rule somebody waits for it
            except trio.WouldBlock:
                await self._said.send(item)

    async def refuse(self, post: Post, code: int, why: str) -> None:
        """Answer it ourselves: nobody else will."""
        error = ErrorData(code=code, message=why)
        await self.say(JSONRPCError(jsonrpc="2.0", id=post.id, error=error), post.id)

    def close(self) -> None:
        """Nothing more is said."""
        self._said.close()

    def failed(self, method: str, error: httpx2.RequestError, *, mid_stream: bool = False) -> None:
        """A request failed, or the stream that answers it.

        Of the former the connection is over. After the latter the rest is asked for, or the caller
        is told.
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
    return f"cannot reach {server.target}: {str(error) or type(error).__name__}"


_encoder = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))


async def spelled(message: JSONRPCMessage) -> bytes:
    """Its JSON.

    Raises:
        MCPError: it cannot be said in JSON.
    """
    try:
        if long_part(message):
            return await in_slices(dump(message))
        data = message.model_dump(by_alias=True, mode="json", exclude_unset=True)
        return _encoder.encode(data).encode()
    except (ValueError, RecursionError) as error:
        # A lone surrogate, hundreds of levels, a number without an end.
        raise unsayable(error) from None


async def shown_of(auth: ServerAuth | None) -> Mapping[str, str]:
    """What the server is shown of who asks.

    Raises:
        Ended: there is nothing to show, or nothing that could be sent.
    """
    if auth is None:
        return {}
    try:
        shown = await auth.headers()
    except ConnectFailed as error:
        raise Ended(error.message) from None
    if not "".join((*shown, *shown.values())).isascii():
        raise Ended("what this server is to be shown cannot be sent in a header")
    return shown


class ClosedElsewhere:
    """What the dispatcher closes when it ends, and is closed where it was opened."""

    async def aclose(self) -> None:
        pass

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        pass


def unsayable(error: Exception) -> MCPError:
    return MCPError(code=INVALID_PARAMS, message=f"cannot be sent over HTTP: {error}")


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
    context = httpx2.create_ssl_context()
    context.set_alpn_protocols(["http/1.1"])
    return context


async def certificates() -> ssl.SSLContext:
    if not _certificates.cache_info().currsize:
        # In a thread, so that nobody else waits for it.
        await trio.to_thread.run_sync(_certificates)
    return _certificates()


def client_options(transport: HttpTransport) -> dict[str, Any]:
    """For who sends what it says with httpx2."""
    headers = httpx2.Headers(dict(transport.server.headers))
    headers["accept-encoding"] = "identity"
    told = session_header(transport.server, transport.session)
    if told is not None and told[0] != SESSION_ID:
        headers[told[0]] = told[1]
    # Every call under way has a connection of its own; `limits.calls` bounds them.
    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=KEPT)
    return {
        "headers": headers,
        "verify": _certificates(),
        "timeout": httpx2.Timeout(PATIENCE, read=None, pool=None),
        "limits": limits,
    }
