"""Progress for a client that waits and asked for it: its backend's, or that time is passing."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

import attrs
import outcome
import trio
from mcp_types import JSONRPCNotification

from ..config.bounds import PROGRESS_EVERY_MS
from ..waits.firewall import Firewall, begin

T = TypeVar("T")
Report = Callable[[str | int, float, float | None, str | None], Awaitable[None]]
"""Tells a client: its token, how far it is, of how much, and in words."""

MOST = 1e300
"""What is more is no number to JSON, or has no next one."""


def progress_note(
    token: str | int, progress: float, total: float | None, message: str | None
) -> JSONRPCNotification:
    said = {"progressToken": token, "progress": progress, "total": total, "message": message}
    params = {key: value for key, value in said.items() if value is not None}
    return JSONRPCNotification(jsonrpc="2.0", method="notifications/progress", params=params)


@attrs.define(eq=False)
class Progress:
    """Of one request. Forwards what increases; fills silence; says nothing after the response."""

    _tell: Report
    _token: str | int
    _missing: Callable[[], str | None] = lambda: None
    """What to say of a server that is waited for, while it is not connected."""
    _said: Mapping[str, Any] = attrs.field(factory=dict, init=False)
    """The newest of the backend's reports, which is all that a slow client needs."""
    _sent: float = attrs.field(default=0.0, init=False)
    _news: trio.Event = attrs.field(factory=trio.Event, init=False)

    def heard(self, said: Mapping[str, Any]) -> None:
        """The backend reports progress."""
        progress = said.get("progress")
        if isinstance(progress, int | float) and self._sent < progress < MOST:
            self._said = said
            self._news.set()

    async def report_while(self, work: Callable[[], Awaitable[T]]) -> T:
        async with trio.open_nursery() as nursery:
            begin(nursery, Firewall("progress_crashed"), self._report)
            result = await outcome.acapture(work)
            nursery.cancel_scope.cancel("answered")
        return result.unwrap()

    async def _report(self) -> None:
        started = trio.current_time()
        while True:
            with trio.move_on_after(PROGRESS_EVERY_MS / 1000):
                await self._news.wait()
            if self._news.is_set():
                self._news = trio.Event()
                news = self._said
                await self._send(news["progress"], news.get("total"), news.get("message"))
            else:
                waited = round(trio.current_time() - started)
                filler = math.nextafter(self._sent, math.inf)
                said = self._missing() or f"working for {waited} s"
                await self._send(filler, self._said.get("total"), said)

    async def _send(self, progress: float, total: Any, message: Any) -> None:
        self._sent = progress
        await self._tell(
            self._token,
            progress,
            total if isinstance(total, int | float) and abs(total) < MOST else None,
            message if isinstance(message, str) else None,
        )
