"""Names of servers and tools as values of labels: as many as a monitor can bear.

They come from peers, and every new one is a time series that is kept for ever. Servers of the
configuration always have a name of their own; of the others, and of tools, those that came first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import lru_cache

import attrs

from ..config.bounds import MAX_METRIC_LABEL, MAX_METRIC_SERVERS, MAX_METRIC_TOOLS

OTHER = "other"
"""All that there was no place for."""
SHARE = 10
"""No server has more than one in so many of the places for tools."""


@attrs.define(eq=False)
class Labels:
    is_configured: Callable[[str], bool] = lambda server: False
    _servers: dict[str, str] = attrs.field(factory=dict, init=False)
    """Those that are not configured."""
    _tools: dict[tuple[str, str], str] = attrs.field(factory=dict, init=False)
    """By server and name."""
    _of_server: Counter[str] = attrs.field(factory=Counter, init=False)

    def server(self, name: str) -> str:
        if self.is_configured(name):
            return shown(name)
        if name not in self._servers:
            if len(self._servers) >= MAX_METRIC_SERVERS:
                return OTHER
            self._servers[name] = shown(name)
        return self._servers[name]

    def tool(self, server: str, name: str, *, exists: bool) -> tuple[str, str]:
        """Of a server and its tool. Who is called and does *not* exist gets no place."""
        said = self.server(server)
        key = said, name
        if key not in self._tools:
            is_full = (
                len(self._tools) >= MAX_METRIC_TOOLS
                or self._of_server[said] >= MAX_METRIC_TOOLS // SHARE
            )
            if is_full or not exists or said == OTHER:
                return said, OTHER
            self._of_server[said] += 1
            self._tools[key] = shown(name)
        return said, self._tools[key]


@lru_cache(MAX_METRIC_SERVERS)
def shown(name: str) -> str:
    """Nothing in it that a line of text could not have, half a surrogate pair for one."""
    short = name if len(name) <= MAX_METRIC_LABEL else name[: MAX_METRIC_LABEL - 1] + "…"
    return "".join(each if each.isprintable() else "\ufffd" for each in short)
