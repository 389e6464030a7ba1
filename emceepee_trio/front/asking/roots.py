"""Folders that a client of the handshake era says it works in: asked once, and again when told.

They are a choice as by set_roots, which overrides them for good: within what is configured, and as
far as ``policy.roots`` lets clients choose. What is beyond that changes nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import attrs
import trio
from mcp import MCPError

from ... import logs
from ...config.bounds import MAX_NAME, MAX_ROOTS, MAX_ROOTS_BYTES, MAX_URI
from ...config.roots import Folder
from ...errors import Denied
from ...session.relay import CannotBeAsked
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
                await self._tell(said.get("roots"))
        finally:
            self._is_asking = False

    async def _tell(self, said: Any) -> None:
        told = self.session.told_roots
        try:
            work = told.choice(_folders(said))
            choice = await trio.to_thread.run_sync(work) if told.needs_disk else work()
        except Denied as denied:
            logs.write(
                "info", "client_roots_refused", session=self.session.id, error=denied.message
            )
        else:
            self.session.choose_roots(choice, by_client=True)


def _folders(said: Any) -> list[Folder]:
    """Raises `Denied` if they are none, or too many."""
    roots = said if isinstance(said, list) else []
    folders = [
        Folder(uri, name[:MAX_NAME] if isinstance(name := root.get("name"), str) else None)
        for root in roots[: MAX_ROOTS + 1]
        if isinstance(root, Mapping)
        and isinstance(uri := root.get("uri"), str)
        and uri.startswith("file://")
        and len(uri) <= MAX_URI
    ]
    size = sum(len(folder.uri) + len(folder.name or "") for folder in folders)
    if not isinstance(said, list) or len(folders) > MAX_ROOTS or size > MAX_ROOTS_BYTES:
        raise Denied(f"expected at most {MAX_ROOTS} roots of {MAX_ROOTS_BYTES} characters")
    return folders
