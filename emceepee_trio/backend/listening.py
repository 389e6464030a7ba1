"""Following changes of a modern backend: one `subscriptions/listen` at a time, renewed when needed.

The modern era sends no change unasked. What is wanted (all list changes, and some resources) is
said in the request itself, so a new resource means a new request; the old one is let go once the
new one is acknowledged, and nothing is missed in between.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import trio
from mcp import MCPError

from ..waits.slot import Slot
from .callbacks import Params
from .client import Client


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
    _current: _Stream | None = attrs.field(default=None, init=False)
    _renew: trio.Event = attrs.field(factory=trio.Event, init=False)

    async def run(self) -> None:
        self._client.callbacks.on_acknowledged = self._acknowledged
        async with trio.open_nursery() as nursery:
            while True:
                old, new = self._current, _Stream(self._wanted())
                self._current, self._renew = new, trio.Event()
                nursery.start_soon(self._listen, new)
                await new.answered.wait()
                if old is not None:
                    old.scope.cancel("replaced by a newer subscription")
                await self._renew.wait()

    async def follow(self) -> Params:
        """Listen for what is wanted now.

        Returns:
            What the backend agreed to send.

        Raises:
            MCPError: it does not do that.
        """
        wanted = self._wanted()
        while True:
            stream = self._current
            if stream is not None and stream.uris == wanted:
                return await stream.answered.wait_result()
            self._renew.set()
            await trio.lowlevel.checkpoint()
            if stream is not None:
                await stream.answered.wait()

    async def _listen(self, stream: _Stream) -> None:
        filters: dict[str, Any] = {
            "toolsListChanged": True,
            "promptsListChanged": True,
            "resourcesListChanged": True,
        }
        if stream.uris:
            filters["resourceSubscriptions"] = sorted(stream.uris)
        with stream.scope:
            try:
                await self._client.request("subscriptions/listen", {"notifications": filters})
                stream.answered.set({})
            except MCPError as error:
                stream.answered.fail(error)

    def _acknowledged(self, params: Params) -> None:
        if self._current is not None:
            honoured = params.get("notifications")
            self._current.answered.set(honoured if isinstance(honoured, dict) else {})
