"""What the servers of a session have, each list as one, under native names and URIs.

A server that is out of reach has what it had. Nobody waits for one that starts for long, and not
twice: what it has is told as a change.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from typing import Any

import attrs
import trio

from ....backend.backend import Backend
from ....backend.catalogue.catalog import SOURCES, Entries, List, name_of
from ....backend.connections.turns import Turns
from ....errors import ToolError
from ....model.allowed import AllowedNames
from ....model.native.choice import Chosen, Offered, choose
from ....model.native.names import native_name
from ....model.native.places import in_entry
from ....model.native.uris import native_uri
from ....model.protocol.apps import is_for_model
from ....session.session import Session
from ....tools import BESIDE
from ....tools.common.asking import OUT_OF_REACH, list_of
from ....tools.common.registry import Request
from ....waits.firewall import Firewall, begin
from .readings import Readings

NAMES: Mapping[str, List] = {source.method: name for name, source in SOURCES.items()}
"""Which list of servers it is, by its method."""


@attrs.define(eq=False)
class NativeLists:
    """Of one session."""

    session: Session
    chosen: Chosen | None = attrs.field(default=None, init=False)
    """Tools, as they were listed last."""
    readings: Readings = attrs.field(factory=Readings, init=False)
    """Of clients of the modern era, whose connections are nobody's."""
    _begun: float = attrs.field(factory=trio.current_time, init=False)

    async def whole(self, request: Request, method: str, *, for_apps: bool) -> Entries:
        """The list of that method; *for_apps*: also tools that are not for a model."""
        if method == "tools/list":
            tools = await self.tools(request, for_apps=for_apps)
            return [*tools, *(tool.to_json() for tool in BESIDE.tools)]
        return await self.others(request, NAMES[method])

    async def tools(self, request: Request, *, for_apps: bool) -> Entries:
        """Those of servers that are listed."""
        settings = self.session.config.native
        found = await self._gathered(request, "tools")
        async with Turns() as turns:
            offers = []
            for backend, entries in found:
                tools = entries
                if not for_apps:
                    tools = []
                    for tool in entries:
                        if turns.is_over:
                            await turns.next()
                        if is_for_model(tool):
                            tools.append(tool)
                first = _compiled(backend.server.native.tools)
                offers.append(Offered(backend.server.name, tools, first))
            self.chosen = await turns.through(choose(offers, settings.max_name, settings.max_tools))
            return [
                {**in_entry(dict(each.tool), partial(native_uri, each.server)), "name": each.name}
                for each in self.chosen.listed
            ]

    async def others(self, request: Request, name: List) -> Entries:
        """Of any other list."""
        most = self.session.config.native.max_name
        shown: Entries = []
        async with Turns() as turns:
            for backend, entries in await self._gathered(request, name):
                server = backend.server.name
                rewrite = partial(native_uri, server)
                for entry in entries:
                    if turns.is_over:
                        await turns.next()
                    native = in_entry(entry, rewrite)
                    if name == "prompts":
                        native = {**native, "name": native_name(server, name_of(entry), most)}
                    shown.append(native)
        return shown

    async def greeted(self) -> None:
        """Wait for servers that are starting as the session begins: what they are is not known."""
        unknown = [
            backend
            for backend in self.session.backends.values()
            if backend.agreed is None
            and backend.state not in OUT_OF_REACH
            and not (backend.on_demand or backend.server.start == "lazy")
        ]

        async def wait(backend: Backend) -> None:
            try:
                await backend.connection()
            except ToolError:
                pass  # whoever needs it is told

        await self._for_each(unknown, wait, self._patience)

    async def _gathered(self, request: Request, name: List) -> list[tuple[Backend, Entries]]:
        backends = list(self.session.backends.values())
        found: dict[Backend, Entries] = {}

        async def look(backend: Backend) -> None:
            is_there = backend.client is not None or backend.idle_since is not None
            with trio.move_on_after(self._longest if is_there else self._patience):
                try:
                    found[backend] = (await list_of(request, backend, name)).of_server
                except ToolError:
                    pass  # whoever uses it is told

        reachable = [each for each in backends if each.state not in OUT_OF_REACH]
        await self._for_each(reachable, look, math.inf)
        return [
            (backend, found[backend] if backend in found else backend.old(name))
            for backend in backends
        ]

    async def _for_each(self, backends: Sequence[Backend], work: Any, patience: float) -> None:
        with trio.move_on_after(patience):  # noqa: ASYNC100 - the nursery waits for them all
            async with trio.open_nursery() as nursery:
                for backend in backends:
                    who = {"session": self.session.id, "server": backend.server.name}
                    begin(nursery, Firewall("list_crashed", fields=who), work, backend)

    @property
    def _longest(self) -> float:
        return self.session.config.limits.list_patience_ms / 1000

    @property
    def _patience(self) -> float:
        """What is left of it for servers that are not connected."""
        return max(0.0, self._begun + self._longest - trio.current_time())


def lists_of(session: Session) -> NativeLists:
    """All connections of a session have the same."""
    return session.one(NativeLists)


@lru_cache(maxsize=1000)
def _compiled(patterns: tuple[str, ...]) -> AllowedNames:
    return AllowedNames.of(patterns)
