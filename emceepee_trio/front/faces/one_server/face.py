"""One server as it is: its capabilities, names, lists, notifications and order; nothing of ours.

A request goes to the server as it came, and what that answers goes back, in the words of the
client's era. It runs in the client's own session like any other: allowed and denied tools, bounds
and reconnecting hold. A call waits for its result however long that takes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import attrs
from mcp import MCPError
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from ....backend.backend import Backend
from ....errors import LimitReached, NotFound, ServerNotFound, ToolError
from ....model.protocol.eras import (
    NOT_FOUND,
    capabilities_for,
    result_for,
)
from ....session.session import Session
from ....views import ONE_SERVER
from ....waits.firewall import begin_lasting
from ...news import News
from ..face import Incoming, Result, extensions_of
from .forwarded import connected
from .news import Following
from .requests import OneServerRequest

if TYPE_CHECKING:
    from ...mcp import Front

HANDSHAKE_ONLY = ("logging/setLevel", "resources/subscribe", "resources/unsubscribe")
MODERN_ONLY = ("subscriptions/listen",)


@attrs.frozen
class OneServer:
    server: str
    view: str = attrs.field(default=ONE_SERVER, init=False)

    def at_once(self, method: str, version: str) -> str | None:
        return None

    async def greet(self, front: Front, said: Result, version: str) -> Result:
        backend = self._backend(front.session)
        front.session.extensions = extensions_of(front.capabilities)
        agreed = backend.agreed or (await connected(backend)).negotiated
        is_modern = version in MODERN_PROTOCOL_VERSIONS
        capabilities = capabilities_for(
            agreed.capabilities, of_modern=agreed.is_modern, is_modern=is_modern
        )
        said = {
            **said,
            "capabilities": capabilities,
            "serverInfo": dict(agreed.server_info),
            "instructions": agreed.instructions,
        }
        if agreed.instructions is None:
            del said["instructions"]
        if is_modern:
            del said["_meta"]  # which names us
            return result_for("server/discover", said, agreed.server_info, is_modern=True)
        if front.following is None:
            front.following = Following(front.session, self.server, News(front.send))
            begin_lasting(
                front.session.inner,
                "news_crashed",
                front.following.run,
                front.closing,
                session=front.session.id,
            )
        return said

    async def answer(self, front: Front, asked: Incoming) -> Result | None:
        if asked.method == "ping":
            return None
        if asked.method in (HANDSHAKE_ONLY if asked.is_modern else MODERN_ONLY):
            raise MCPError(code=METHOD_NOT_FOUND, message="Method not found", data=asked.method)
        front.session.presence.used = True
        if asked.is_modern:
            front.session.extensions = extensions_of(front.capabilities_of(asked))
        request = OneServerRequest(front, asked, self._backend(front.session))
        try:
            with front.session.while_open():
                return await request.answer()
        except ToolError as error:
            raise _as_mcp_error(error, asked) from None

    async def schema_of(self, session: Session, tool: str) -> Mapping[str, Any] | None:
        backend = session.backends.get(self.server)
        if backend is None:
            return None
        try:
            tools = await backend.ask(lambda client: backend.catalog.last("tools", client))
        except (MCPError, ToolError):
            return None  # the call will find out why
        for entry in tools:
            if entry.get("name") == tool and isinstance(entry.get("inputSchema"), Mapping):
                schema: Mapping[str, Any] = entry["inputSchema"]
                return schema
        return None

    def _backend(self, session: Session) -> Backend:
        try:
            return session.backend(self.server)
        except ServerNotFound as error:
            raise MCPError(code=INVALID_PARAMS, message=error.message) from None


def _as_mcp_error(error: ToolError, asked: Incoming) -> MCPError:
    """What answers a request that met it."""
    code = INTERNAL_ERROR
    if isinstance(error, LimitReached):
        code = INVALID_REQUEST
    elif isinstance(error, NotFound):
        is_old_resource = asked.method == "resources/read" and not asked.is_modern
        code = NOT_FOUND if is_old_resource else INVALID_PARAMS
    return MCPError(code=code, message=error.message, data=error.to_json()["error"])
