"""What a session wants of a server beside answers, and wants again of each new connection."""

from __future__ import annotations

from collections import Counter

import attrs
from mcp import MCPError

from .. import logs
from .connections.callbacks import Params
from .connections.client import Client


@attrs.define(eq=False)
class Preferences:
    server: str
    session_id: str
    log_level: str | None = attrs.field(default=None, init=False)
    subscriptions: set[str] = attrs.field(factory=set, init=False)
    """URIs of resources that the session follows."""
    streams: Counter[str] = attrs.field(factory=Counter, init=False)
    """Those that streams of clients follow, and how many do."""

    def subscribed(self) -> frozenset[str]:
        return frozenset(self.subscriptions | self.streams.keys())

    async def repeat(self, client: Client) -> None:
        """Say it to a backend of the handshake era; a modern one is told with each request."""
        if self.log_level is not None:
            await self._say(client, "logging/setLevel", {"level": self.log_level})
        for uri in sorted(self.subscribed()):
            await self._say(client, "resources/subscribe", {"uri": uri})

    async def _say(self, client: Client, method: str, params: Params) -> None:
        try:
            await client.request(method, params)
        except MCPError as error:
            logs.write(
                "warn",
                "server_restore_failed",
                session=self.session_id,
                server=self.server,
                error=error.error.message,
            )
