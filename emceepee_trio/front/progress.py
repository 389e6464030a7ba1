"""Progress for a client that waits and asked for it: its backend's, or that time is passing."""

from __future__ import annotations

import math
from collections import deque
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

BACKLOG = 16
"""Reports that wait for a client; the oldest make room."""
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
    _heard: deque[Mapping[str, Any]] = attrs.field(
        factory=lambda: deque(maxlen=BACKLOG), init=False
    )
    """What the backend has reported; the newest are all that a slow client needs."""
    _total: Any = attrs.field(default=None, init=False)
    _newest: float | None = attrs.field(default=None, init=False)
    """Of what was heard, or said."""
    _news: trio.Event = attrs.field(factory=trio.Event, init=False)
    _is_over: bool = attrs.field(default=False, init=False)
    """What was heard is still told, as it was before the answer."""

    def heard(self, said: Mapping[str, Any]) -> None:
        """The backend reports progress."""
        progress = said.get("progress")
        if not isinstance(progress, int | float) or not 0 <= progress < MOST:
            return
        if self._newest is None or self._newest < progress:
            self._newest = progress
            self._heard.append(said)
            self._news.set()

    async def report_while(self, work: Callable[[], Awaitable[T]]) -> T:
        async with trio.open_nursery() as nursery:
            begin(nursery, Firewall("progress_crashed"), self._report)
            result = await outcome.acapture(work)
            self._is_over = True
            self._news.set()
        return result.unwrap()

    async def _report(self) -> None:
        started = trio.current_time()
        while self._heard or not self._is_over:
            with trio.move_on_after(PROGRESS_EVERY_MS / 1000):
                await self._news.wait()
            if self._news.is_set():
                self._news = trio.Event()
                await self._tell_heard()
            else:
                waited = round(trio.current_time() - started)
                self._newest = math.nextafter(self._newest or 0.0, math.inf)
                said = self._missing() or f"working for {waited} s"
                await self._send(self._newest, self._total, said)

    async def _tell_heard(self) -> None:
        while self._heard:
            news = self._heard.popleft()
            self._total = news.get("total")
            await self._send(news["progress"], self._total, news.get("message"))

    async def _send(self, progress: float, total: Any, message: Any) -> None:
        await self._tell(
            self._token,
            progress,
            total if isinstance(total, int | float) and abs(total) < MOST else None,
            message if isinstance(message, str) else None,
        )
