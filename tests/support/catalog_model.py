"""A server whose lists are asked for, page by page, and those who ask: what each should get."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from types import SimpleNamespace
from typing import Any, cast

import attrs
import trio
from mcp import MCPError

from emceepee_trio.backend.backend import Backend
from emceepee_trio.backend.catalogue.catalog import SOURCES, Catalog, Entries, List
from emceepee_trio.backend.connections.client import Client
from emceepee_trio.backend.connections.witness import Unanswered
from emceepee_trio.config import Config, Limits, Server
from emceepee_trio.errors import ToolError
from emceepee_trio.model.states import BackendState
from emceepee_trio.session.servers.planned import Planned
from emceepee_trio.tools.common.asking import gather
from emceepee_trio.tools.common.registry import Request
from emceepee_trio.waits.slot import Slot

PATIENCE = 5
"""Seconds that a list over all servers waits for one of them."""
ALLOWED = "ok-*"

REQUEST = Request(
    cast(
        Any,
        SimpleNamespace(
            id="a session",
            config=Config(limits=attrs.evolve(Limits(), list_patience_ms=PATIENCE * 1000)),
            planned=Planned(),
        ),
    ),
    cast(Any, None),  # of the sessions, of which there is this one
    answer_ms=Limits().answer_ms,
)
METHODS: Mapping[str, List] = {source.method: name for name, source in SOURCES.items()}


@attrs.define(eq=False)
class Fetch:
    """One way through all pages of a list, in the eyes of the server."""

    number: int
    name: List
    peer: Peer
    reader: Reader
    """Who does it, and perhaps for others."""
    needs: int
    """The change that had been told when it began."""
    asked: Slot[dict[str, Any]] | None = None
    """The page that is asked for now."""
    pages: int = 0
    entries: Entries = attrs.field(factory=list)
    """What those who asked should get."""
    ttl: float = float("inf")

    @property
    def cursor(self) -> str:
        return f"{self.number}/{self.pages}"


@attrs.define(eq=False)
class Peer:
    """One connection: stands where the client of a backend does."""

    new_fetch: Callable[[List, Peer], Fetch]
    fetches: list[Fetch] = attrs.field(factory=list)
    """Of which a page is asked for."""
    is_over: bool = False
    negotiated: Any = attrs.field(
        factory=lambda: SimpleNamespace(capabilities={"tools": {}, "resources": {}})
    )

    async def request(self, method: str, params: Mapping[str, Any] | None) -> dict[str, Any]:
        if self.is_over:
            raise Unanswered
        name = METHODS[method]
        if params is None:
            fetch = self.new_fetch(name, self)
        else:
            number, page = params["cursor"].split("/")
            fetch = next(f for f in current_reader.get().fetches if f.number == int(number))
            assert (fetch.name, fetch.pages) == (name, int(page))
        assert fetch.asked is None
        fetch.asked = Slot()
        self.fetches.append(fetch)
        try:
            return await fetch.asked.wait_result()
        finally:
            fetch.asked = None
            self.fetches.remove(fetch)

    def end(self) -> None:
        self.is_over = True
        for fetch in self.fetches:
            assert fetch.asked is not None
            fetch.asked.fail(Unanswered())


@attrs.define(eq=False)
class Reader:
    """Somebody who wants a list."""

    name: List
    how: str
    peer: Peer | None
    """The connection that there was when it asked."""
    until: float
    """When it has waited long enough."""
    needs: int
    """The change that had been told when it asked."""
    waits_for: Fetch | None = None
    fetches: list[Fetch] = attrs.field(factory=list)
    """Its own."""
    scope: trio.CancelScope = attrs.field(factory=trio.CancelScope)
    fate: str | None = None
    got: Any = None

    async def run(self, catalog: Catalog) -> None:
        current_reader.set(self)
        with self.scope:
            try:
                self.got = await self._read(catalog)
                self.fate = "answered"
            except (MCPError, ToolError) as error:
                self.got, self.fate = error, "refused"
        if self.scope.cancelled_caught:
            self.fate = "cancelled"

    async def _read(self, catalog: Catalog) -> Any:
        if self.how == "gather":
            gathered = await gather(REQUEST, self.name, [stand_in(catalog, self.peer)])
            return {"found": list(gathered.entries())} | gathered.said
        client = cast(Client, self.peer)
        if self.how == "last":
            return await catalog.last(self.name, client)
        return await catalog.get(self.name, client)


current_reader: ContextVar[Reader] = ContextVar("current_reader")


def stand_in(catalog: Catalog, peer: Peer | None) -> Backend:
    """As much of a backend as a list over all of them looks at."""

    async def ask(exchange: Callable[[Any], Any]) -> Any:
        return await exchange(peer)

    state = BackendState.RECONNECTING if peer is None else BackendState.CONNECTED
    server = Server("it", command="none")
    it = SimpleNamespace(server=server, state=state, last_error="lost", catalog=catalog, ask=ask)
    it.starting_still = None
    it.remembered = lambda name: None  # it was connected
    it.old = lambda name: catalog.kept(name) or []
    return cast(Backend, it)
