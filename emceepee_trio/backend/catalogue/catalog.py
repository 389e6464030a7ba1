"""What one backend offers: its lists, every page of them, as the dicts that came.

A list is fetched when somebody asks, once for all who ask meanwhile, and kept until the backend
says that it changed, the time passes that the backend gave it (`ttlMs`), or the connection is
replaced; after a loss the old one is still served, marked stale. `allowed_tools` and `denied_tools`
apply to what is listed and to what may be called; a prompt or a resource of a denied name is as if
missing, too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Literal, TypeAlias

import attrs
import trio
from mcp import MCPError
from mcp_types import METHOD_NOT_FOUND

from ...errors import ExecutionFailed, InternalError
from ...model.allowed import AllowedNames
from ...model.json.spelling import weighed
from ...waits.firewall import Firewall
from ...waits.slot import Slot
from ..connections.client import Client
from ..connections.turns import Turns

List: TypeAlias = Literal["tools", "resources", "resource_templates", "prompts"]
Entries: TypeAlias = list[dict[str, Any]]


@attrs.frozen
class _Source:
    method: str
    key: str
    capability: str
    optional: bool = False


SOURCES: Mapping[List, _Source] = {
    "tools": _Source("tools/list", "tools", "tools"),
    "resources": _Source("resources/list", "resources", "resources"),
    # Many servers with resources know no templates and say so with an error.
    "resource_templates": _Source(
        "resources/templates/list", "resourceTemplates", "resources", optional=True
    ),
    "prompts": _Source("prompts/list", "prompts", "prompts"),
}

PAGES = 1000
ENTRIES = 100_000
SIZE = 64 * 1024 * 1024
"""Pages, entries, and bytes. A list that goes on longer is an error: its server makes it up."""


def name_of(entry: Mapping[str, Any]) -> str:
    """Whatever it may be."""
    name = entry.get("name")
    return name if isinstance(name, str) else "" if isinstance(name, list | dict) else str(name)


TTL_MS = 24 * 3600 * 1000
"""At most that a list is kept because its server says so."""


def _seconds(ttl_ms: Any) -> float:
    """How long a list holds; until a change is told, if what is said of it is no time."""
    if type(ttl_ms) not in (int, float) or not 0 <= ttl_ms < math.inf:
        return math.inf
    seconds: float = min(ttl_ms, TTL_MS) / 1000
    return seconds


class _Abandoned(Exception):
    """Who fetched it was cancelled."""


@attrs.define(eq=False)
class Catalog:
    """The lists of one backend in one session."""

    server: str
    allowed_tools: tuple[str, ...] | None
    denied_tools: tuple[str, ...] = ()
    on_list: Callable[[List, Entries, int], None] = lambda name, entries, size: None
    """Told of each list that has come as a whole, and of about how many bytes it has."""
    _allowed: AllowedNames | None = attrs.field(init=False)
    _denied: AllowedNames = attrs.field(init=False)
    _kept: dict[List, Entries] = attrs.field(factory=dict, init=False)
    _fresh: dict[str, float] = attrs.field(factory=dict, init=False)
    """Until when each is, on trio's clock."""
    _flights: dict[str, Slot[Entries]] = attrs.field(factory=dict, init=False)
    """Lists that are being fetched, of which no change has been told since."""

    @_allowed.default
    def _compiled(self) -> AllowedNames | None:
        return None if self.allowed_tools is None else AllowedNames.of(self.allowed_tools)

    @_denied.default
    def _compiled_denied(self) -> AllowedNames:
        return AllowedNames.of(self.denied_tools)

    def stale(self, name: str) -> None:
        """The backend says that this list has changed."""
        self._fresh.pop(name, None)
        self._flights.pop(name, None)

    def all_stale(self) -> None:
        """The connection is another one now, or none."""
        for name in SOURCES:
            self.stale(name)

    def kept(self, name: List) -> Entries | None:
        """What is remembered, however old."""
        return self._kept.get(name)

    def allows(self, tool: str) -> bool:
        return (self._allowed is None or tool in self._allowed) and not self._denied.may_have(tool)

    def hides_prompt(self, name: str) -> bool:
        """Whether it is called as a denied tool is; ``*`` denies tools alone."""
        return "*" not in self.denied_tools and self._denied.may_have(name)

    def hides_resource(self, uri: str, name: str = "") -> bool:
        """The same; globs are for tools, and files are often called as they say."""
        last = uri.rstrip("/").rpartition("/")[2]
        return not self._denied.names.isdisjoint((uri, name, last))

    @property
    def hides_something(self) -> bool:
        return bool(self.denied_tools) or self.allowed_tools is not None

    def shows(self, name: List, entry: Mapping[str, Any]) -> bool:
        """Whether that entry of that list is shown."""
        if name == "tools":
            return self.allows(_text(entry, "name"))
        if name == "prompts":
            return not self.hides_prompt(_text(entry, "name"))
        return self._is_shown(entry)

    async def last(self, name: List, client: Client) -> Entries:
        """The list as it was when it was last fetched, unless a change has been told since."""
        return self._kept[name] if name in self._fresh else await self.get(name, client)

    async def get(self, name: List, client: Client) -> Entries:
        """The whole list, fetched if need be.

        Raises:
            MCPError: what the backend said instead.
            ToolError: its pages have no end, or are more than we are up to.
        """
        while (flight := self._flights.get(name)) is not None:
            try:
                return await flight.wait_result()
            except _Abandoned:
                pass  # by a caller who gave up; the next of those who waited takes over
        if self._fresh.get(name, -math.inf) > trio.current_time():
            return self._kept[name]
        flight = self._flights[name] = Slot()
        try:
            entries, ttl = await self._list(name, client)
        except (MCPError, ExecutionFailed, InternalError) as error:
            flight.fail(error)
            raise
        else:
            # A change told while the pages came is newer than the pages.
            if self._flights.get(name) is flight:
                self._fresh[name] = trio.current_time() + ttl
                self._kept[name] = entries
            elif name not in self._fresh:
                self._kept[name] = entries
            flight.set(entries)
            return entries
        finally:
            if self._flights.get(name) is flight:
                del self._flights[name]
            flight.fail(_Abandoned())

    async def look(self, name: List, client: Client) -> Entries:
        """The whole list, for others than this session: it is fetched, and not kept.

        Raises the same.
        """
        return (await self._list(name, client))[0]

    async def _list(self, name: List, client: Client) -> tuple[Entries, float]:
        fields = {"server": self.server, "list": name}
        with Firewall("list_crashed", None, (MCPError, ExecutionFailed), fields=fields) as wall:
            entries, ttl, size = await self._fetch(SOURCES[name], client)
            if self.denied_tools or (name == "tools" and self.hides_something):
                entries = await _only(entries, partial(self.shows, name))
            self.on_list(name, entries, size)
            return entries, ttl
        raise InternalError(str(wall.log_id))

    def _is_shown(self, entry: Mapping[str, Any]) -> bool:
        uri = _text(entry, "uri") or _text(entry, "uriTemplate")
        return not self.hides_resource(uri, _text(entry, "name"))

    async def _fetch(self, source: _Source, client: Client) -> tuple[Entries, float, int]:
        """The entries of all pages, for how many seconds they hold, and how large they are."""
        if source.capability not in client.negotiated.capabilities:
            return [], math.inf, 0
        entries: Entries = []
        ttl = math.inf
        cursor: str | None = None
        seen: set[str] = set()
        size = 0
        while True:
            try:
                page = await client.request(source.method, {"cursor": cursor} if cursor else None)
            except MCPError as error:
                if source.optional and error.error.code == METHOD_NOT_FOUND:
                    return [], math.inf, 0
                raise
            items = page.get(source.key)
            if isinstance(items, list):
                async with Turns() as turns:
                    for item in items:
                        if turns.is_over:
                            await turns.next()
                        if isinstance(item, dict):
                            entries.append(item)
                        size += await turns.through(weighed(item))
            ttl = min(ttl, _seconds(page.get("ttlMs")))
            cursor = page.get("nextCursor")
            # An empty one is how some say that there is none.
            if not isinstance(cursor, str) or not cursor:
                return entries, ttl, size
            if cursor in seen:
                raise self._fault(f"pages its {source.key} in a circle", cursor)
            if len(seen) == PAGES or size > SIZE or len(entries) > ENTRIES:
                raise self._fault(f"does not come to an end of its {source.key}", cursor)
            seen.add(cursor)
            size += len(cursor)

    def _fault(self, what: str, cursor: str) -> ExecutionFailed:
        return ExecutionFailed(
            f"server {self.server!r} {what}; this is a fault of that server",
            {"nextCursor": cursor[:200]},
        )


async def _only(entries: Entries, wanted: Callable[[Mapping[str, Any]], bool]) -> Entries:
    found: Entries = []
    async with Turns() as turns:
        for entry in entries:
            if turns.is_over:
                await turns.next()
            if wanted(entry):
                found.append(entry)
    return found


def _text(entry: Mapping[str, Any], key: str) -> str:
    """What is no string is the name of nothing."""
    value = entry.get(key)
    return value if isinstance(value, str) else ""
