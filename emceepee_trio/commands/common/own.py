"""A session of our own, with servers of our own: what commands ask that have no daemon to ask."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import attrs
import trio

from ...backend.backend import Backend
from ...config import LOCAL, Config
from ...errors import ToolError
from ...session.manager import SessionManager, open_sessions
from ...session.session import Session
from ...tools import TOOLBOX
from ...tools.common.registry import Request
from ...tools.common.response import error_reply
from .shell import PAUSE, T


@attrs.frozen
class Own:
    session: Session
    manager: SessionManager

    @property
    def request(self) -> Request:
        return Request(self.session, self.manager, shortens=False)  # people see it, or programs

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The result of a tool of ours, without the context blocks."""
        try:
            return (await TOOLBOX.get(tool).call(self.request, arguments)).result
        except ToolError as error:
            return error_reply(error).result

    async def settled(self, server: str | None) -> None:
        """They all connect at once; we only look at one after the other."""
        for backend in list(self.session.backends.values()):
            if server in (None, backend.server.name):
                await self._connected(backend)

    async def pause(self) -> None:
        await trio.sleep(PAUSE)

    async def beside(self, work: Callable[[], T]) -> T:
        # Who is interrupted does not wait for a person any more.
        return await trio.to_thread.run_sync(work, abandon_on_cancel=True)

    async def _connected(self, backend: Backend) -> None:
        try:
            await backend.connection()
        except ToolError:
            pass  # its state tells


@asynccontextmanager
async def open_own(config: Config) -> AsyncGenerator[Own]:
    """Its servers are started, and end with the block."""
    async with open_sessions(config) as manager:
        manager.sharing = None  # with whom? And so all that they log is its own.
        yield Own(await manager.ensure("shell", LOCAL), manager)
