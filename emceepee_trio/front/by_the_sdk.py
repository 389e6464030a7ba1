"""The SDK's server, which answers the handshake and what few clients ask for.

Every request that it is given passes :meth:`.Front.answer` first, its outermost (and only)
middleware. Of those that come over HTTP each is given to it by itself, in either era. A dispatcher
of its own for each client would be a task, three nurseries and two channels for as long as its
session lasts, and most of those are idle.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import cache, cached_property
from typing import Any

import anyio
import attrs
from mcp.server import Server
from mcp.server.caching import CacheHint
from mcp.server.connection import Connection
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.runner import modern_error_data, serve_one
from mcp.shared.dispatcher import CallOptions
from mcp.shared.exceptions import NoBackChannelError
from mcp.shared.message import ServerMessageMetadata, SessionMessage
from mcp.shared.transport_context import TransportContext
from mcp_types import (
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    RequestId,
    ServerCapabilities,
    SetLevelRequestParams,
)
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS

from .lists import (
    SERVER_INFO,
    TTL_MS,
    get_prompt,
    list_prompts,
    list_resources,
    list_templates,
    read_resource,
)
from .mcp import EXPECTED, Front

Say = Callable[[SessionMessage], Awaitable[None]]

_TRANSPORT = TransportContext(kind="streamable-http", can_send_request=False)


@cache
def mcp_server() -> Server[Front]:
    """The SDK's registry of handlers, shared by all connections; each brings its front along."""
    cached = CacheHint(ttl_ms=TTL_MS, scope="private")
    server = _Server(
        SERVER_INFO["name"],
        version=SERVER_INFO["version"],
        on_list_tools=_never,
        on_call_tool=_never,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
        on_subscriptions_listen=_never,
        cache_hints={
            "tools/list": cached,
            "prompts/list": cached,
            "resources/list": cached,
            "resources/templates/list": cached,
            "resources/read": cached,
        },
    )
    server.add_request_handler("logging/setLevel", SetLevelRequestParams, _set_log_level)
    server.middleware[:] = [_Middleware()]
    return server


class _Server(Server[Front]):
    """The SDK's, which would promise changes to whoever may listen; nothing of ours changes."""

    def get_capabilities(
        self, *args: Any, protocol_version: str | None = None, **options: Any
    ) -> ServerCapabilities:
        capabilities = super().get_capabilities(*args, **options)
        if protocol_version in MODERN_PROTOCOL_VERSIONS:
            capabilities.logging = None  # there it would be of each request, and ours log nothing
        return capabilities


class _Middleware:
    """:meth:`Front.answer` in the shape that the SDK wants."""

    async def __call__(
        self, ctx: ServerRequestContext[Front, Any], call_next: CallNext
    ) -> HandlerResult:
        return await ctx.lifespan_context.answer(ctx, call_next)


async def _never(context: ServerRequestContext[Any, Any], params: Any) -> Any:
    raise AssertionError("the middleware answers that")


async def _set_log_level(
    context: ServerRequestContext[Front], params: SetLevelRequestParams
) -> Any:
    context.lifespan_context.set_log_level(params.level, context)
    return {}


def of_handshake(front: Front, say: Say) -> Connection:
    """A connection on which somebody has initialized, or is about to."""
    connection = Connection.for_loop(
        _Outbound(say), protocol_version_hint=front.version or HANDSHAKE_PROTOCOL_VERSIONS[-1]
    )
    connection.initialized.set()  # whether it is, the front knows
    return connection


async def by_the_sdk(
    front: Front, message: JSONRPCRequest, say: Say, connection: Connection
) -> JSONRPCResponse | JSONRPCError:
    """The answer to a request that was shown to *front*."""
    try:
        result = await serve_one(
            mcp_server(),
            _Alone(say, message.id),
            message.method,
            message.params,
            connection=connection,
            lifespan_state=front,
        )
    except EXPECTED as error:  # all else is a crash of the whole request
        said = modern_error_data(error)
        return JSONRPCError(jsonrpc="2.0", id=message.id, error=said)
    return JSONRPCResponse(jsonrpc="2.0", id=message.id, result=result)


@attrs.define(eq=False)
class _Outbound:
    """What the SDK says that belongs to no request."""

    _say: Say
    request_id: RequestId | None = None

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        raise NoBackChannelError(method)  # our own way to ask a client is `asking/backchannel.py`

    async def notify(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> None:
        about = self.request_id
        belongs = None if about is None else ServerMessageMetadata(related_request_id=about)
        said: dict[str, Any] = {} if params is None else {"params": dict(params)}
        note = JSONRPCNotification(jsonrpc="2.0", method=method, **said)
        await self._say(SessionMessage(note, belongs))


@attrs.define(eq=False, slots=False)
class _Alone(_Outbound):
    """A request as the SDK's server wants to see it."""

    transport: TransportContext = attrs.field(default=_TRANSPORT, init=False)
    message_metadata: None = attrs.field(default=None, init=False)
    can_send_request: bool = attrs.field(default=False, init=False)

    @cached_property
    def cancel_requested(self) -> anyio.Event:
        """Nobody sets it: who cancels a request ends the scope that it is answered in."""
        return anyio.Event()

    async def progress(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> None:
        raise NotImplementedError("front.progress reports by itself")
