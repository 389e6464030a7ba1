"""Folders that a client of the handshake era says it works in: asked once, and again when told.

They are a choice as by set_roots, which overrides them for good: within what is configured, and as
far as ``policy.roots`` lets clients choose. What is beyond that changes nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import attrs
from mcp import MCPError

from ...session.questions.relay import CannotBeAsked
from ...session.session import Session
from ...waits.firewall import Firewall, begin


@attrs.define(eq=False)
class ClientRoots:
    session: Session
    _request: Callable[[str], Awaitable[dict[str, Any]]]
    _is_asking: bool = attrs.field(default=False, init=False)
    _is_stale: bool = attrs.field(default=False, init=False)

    def ask(self) -> None:
        """They are not known, or not any more. One question at a time is enough."""
        self._is_stale = True
        inner = self.session.inner
        if not (self._is_asking or inner.cancel_scope.cancel_called):
            self._is_asking = True
            begin(inner, Firewall("roots_crashed", fields={"session": self.session.id}), self._ask)

    async def _ask(self) -> None:
        try:
            while self._is_stale:
                self._is_stale = False
                try:
                    said = await self._request("roots/list")
                except (MCPError, CannotBeAsked):
                    return
                await self.session.hear_roots(said.get("roots"))
        finally:
            self._is_asking = False
