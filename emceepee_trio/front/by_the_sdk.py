"""Requests over HTTP that the SDK answers: the handshake, and what few clients ask for.

Each is given to the SDK's server by itself, in either era. A dispatcher of its own for each client
would be a task, three nurseries and two channels for as long as its session lasts, and most of
those are idle.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import cached_property
from typing import Any

import anyio
import attrs
from mcp.server.connection import Connection
from mcp.server.runner import modern_error_data, serve_one
from mcp.shared.dispatcher import CallOptions
from mcp.shared.exceptions import NoBackChannelError
from mcp.shared.message import ServerMessageMetadata, SessionMessage
from mcp.shared.transport_context import TransportContext
from mcp_types import JSONRPCError, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse, RequestId
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

from .mcp import EXPECTED, Front, mcp_server

Say = Callable[[SessionMessage], Awaitable[None]]

_TRANSPORT = TransportContext(kind="streamable-http", can_send_request=False)


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
