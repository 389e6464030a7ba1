"""Which tools of all servers are listed, where there is room for so many, and what each is called.
Pure.

All, if there is room for them. If not, first those that the entries of their servers name, then
others, in the order of the servers and of their lists, which is also that of what is chosen.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs

from ..allowed import AllowedNames
from ..json.intake import Steps
from .names import native_name


@attrs.frozen
class Offered:
    """The tools of one server, and which of them come first if not all can be listed."""

    server: str
    tools: Sequence[Mapping[str, Any]]
    first: AllowedNames = attrs.field(factory=lambda: AllowedNames.of(()))


@attrs.frozen
class Native:
    """A tool, and what it is called among those of other servers."""

    name: str
    server: str
    tool: Mapping[str, Any]


@attrs.frozen
class Chosen:
    listed: list[Native]
    known: Mapping[str, tuple[str, str]]
    """Server and name of each tool, listed or not, by what it is called."""

    @property
    def left_out(self) -> int:
        return len(self.known) - len(self.listed)


def choose(offers: Iterable[Offered], most_name: int, most_tools: int) -> Steps[Chosen]:
    """Of tools that are called alike, which only those can be that mean to, there is the first."""
    known: dict[str, tuple[str, str]] = {}
    found: list[Native] = []
    first: list[int] = []
    for offer in offers:
        for tool in offer.tools:
            yield
            theirs = tool.get("name")
            if not isinstance(theirs, str):
                continue  # nobody could call it
            name = native_name(offer.server, theirs, most_name)
            if name in known:
                continue
            known[name] = offer.server, theirs
            if theirs in offer.first:
                first.append(len(found))
            found.append(Native(name, offer.server, tool))
    if len(found) <= most_tools:
        return Chosen(found, known)
    wanted = set(first[:most_tools])
    room = most_tools - len(wanted)
    listed = []
    for at, native in enumerate(found):
        yield
        if at in wanted:
            listed.append(native)
        elif room > 0:
            room -= 1
            listed.append(native)
    return Chosen(listed, known)
