"""Following changes of a modern backend: one `subscriptions/listen` at a time, renewed when needed.

The modern era sends no change unasked. What is wanted (all list changes, and some resources) is
said in the request itself, so a new resource means a new request; the old one is let go once the
new one is acknowledged, and nothing is missed in between. One that breaks off is asked for again;
what changed meanwhile nobody knows, so every list counts as changed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import trio
from mcp import MCPError

from ...waits.bell import Bell
from ...waits.slot import Slot
from ..http.pace import Pace
from .callbacks import LIST_CHANGED, Params
from .client import Client
from .witness import Unanswered

AGAIN = 1.0
"""Seconds from the end of a stream to the next request, at least."""


@attrs.define(eq=False)
class _Stream:
    uris: frozenset[str]
    scope: trio.CancelScope = attrs.field(factory=trio.CancelScope, init=False)
    answered: Slot[Params] = attrs.field(factory=Slot, init=False)
    """The filter that the backend honours, or its refusal."""


@attrs.define(eq=False)
class Listening:
    """Of one connection; :meth:`run` lives as long as that."""

    _client: Client
    _wanted: Callable[[], frozenset[str]]
    _pace: Pace
    _current: _Stream | None = attrs.field(default=None, init=False)
    _renew: trio.Event = attrs.field(factory=trio.Event, init=False)
    _renewed: Bell = attrs.field(factory=Bell, init=False)
    """The current stream is another one now, or there will be no more."""
    _ended: bool = attrs.field(default=False, init=False)

    async def run(self) -> None:
        self._ended = False  # it may be begun again
        self._client.callbacks.on_acknowledged = self._acknowledged
        self._pace.asked()
        try:
            async with trio.open_nursery() as nursery:
                while True:
                    old, new = self._current, _Stream(self._wanted())
                    self._current, self._renew = new, trio.Event()
                    self._renewed.ring()
                    nursery.start_soon(self._listen, new)
                    await new.answered.wait()
                    if old is not None:
                        old.scope.cancel("replaced by a newer subscription")
                    await self._renew.wait()
        finally:
            # For those who wait in tasks that end later than this one.
            self._ended = True
            self._renewed.ring()

    async def follow(self) -> Params:
        """Listen for what is wanted now.

        Returns:
            What the backend agreed to send.

        Raises:
            MCPError: it does not do that, or the connection is over.
        """
        while not self._ended:
            stream = self._current
            # What is wanted may change while we wait; then somebody else waits for that, too.
            if stream is not None and stream.uris == self._wanted():
                return await stream.answered.wait_result()
            self._renew.set()
            await self._renewed.wait()
        raise Unanswered

    async def _listen(self, stream: _Stream) -> None:
        filters: dict[str, Any] = {
            "toolsListChanged": True,
            "promptsListChanged": True,
            "resourcesListChanged": True,
        }
        if stream.uris:
            filters["resourceSubscriptions"] = sorted(stream.uris)
        try:
            with stream.scope:
                try:
                    await self._client.request("subscriptions/listen", {"notifications": filters})
                    refused = stream.answered.set({})
                except MCPError as error:
                    refused = stream.answered.fail(error)
                if refused:
                    return
                # It was acknowledged, and is over.
                for names in LIST_CHANGED.values():
                    for name in names:
                        self._client.callbacks.stale(name)
                await trio.sleep(AGAIN)
                await self._pace.turn()
                if self._current is stream:
                    self._renew.set()
        finally:
            stream.answered.fail(Unanswered())

    def _acknowledged(self, params: Params) -> None:
        if self._current is not None:
            self._pace.asked()
            honoured = params.get("notifications")
            self._current.answered.set(honoured if isinstance(honoured, dict) else {})
