"""Whether a connected backend still answers: asked when nothing was heard of it for long.

An answer to any request is health enough. A peer behind a URL that misses several checks is given
up and connected again; a program is not: one that computes and does nothing else meanwhile is no
dead one, and who calls it learns from its status why it is silent.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from typing import Any

import attrs
import trio

from ...model.wire import timestamp
from .client import Client

JITTER = 0.1
"""Share of the interval by which a check is moved, so that sessions do not check in step."""

AGAIN = 10.0
"""Seconds from a check that failed to the next one."""

MISSES = 3
"""Checks that fail in a row before a connection counts as lost."""


@attrs.define(eq=False)
class HealthCheck:
    """Of one backend; :meth:`watch` lives as long as a connection."""

    interval: float
    gives_up: bool
    wall: Callable[[], float]
    on_change: Callable[[bool, int, str], None]
    """Told whether it is well now, how many checks had failed, and how the last of them did."""
    failures: int = attrs.field(default=0, init=False)
    last_error: str | None = attrs.field(default=None, init=False)
    _checked_at: float | None = attrs.field(default=None, init=False)
    _due: float = attrs.field(default=0.0, init=False)
    """When to check, on trio's clock; put off by every answer."""
    _pause: float = attrs.field(default=0.0, init=False)

    async def watch(self, client: Client) -> None:
        self.failures, self.last_error = 0, None
        client.on_answer = partial(self._answered, client)
        self._next_pause()
        self._heard()  # or there would be no connection
        while True:
            await trio.sleep_until(self._due)
            if trio.current_time() < self._due:
                continue
            due = self._due
            wrong = await client.check()
            if client.over.is_set():
                return
            self._next_pause()
            if wrong is None:
                self._heard()
            elif self._due == due:  # else it has answered something else meanwhile
                self._missed(client, wrong)

    def _next_pause(self) -> None:
        self._pause = self.interval * random.uniform(1 - JITTER, 1 + JITTER)

    def _answered(self, client: Client) -> None:
        """To a call. What still comes from a connection that is over is no news of the server."""
        if not client.over.is_set():
            self._heard()

    def _heard(self) -> None:
        self._checked_at = self.wall()
        self._due = trio.current_time() + self._pause
        if self.failures:
            failures, self.failures = self.failures, 0
            self.on_change(True, failures, str(self.last_error))

    def _missed(self, client: Client, wrong: str) -> None:
        self._checked_at = self.wall()
        self._due = trio.current_time() + AGAIN
        self.failures, self.last_error = self.failures + 1, wrong
        if self.failures >= MISSES and self.gives_up:
            client.over.set(f"{self.failures} health checks failed: {wrong}")
        elif self.failures == 1:
            self.on_change(False, self.failures, wrong)

    def to_json(self) -> dict[str, Any]:
        """As list_servers shows it."""
        said: dict[str, Any] = {"consecutive_failures": self.failures}
        if self._checked_at is not None:
            said["checked_at"] = timestamp(self._checked_at)
        if self.last_error is not None:
            said["last_error"] = self.last_error
        return said
