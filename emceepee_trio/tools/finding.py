"""Finding tools of backends: by server, by name, by words, and a page at a time.

A page is made anew each time it is asked for, from the lists as they are then; a cursor says where
it begins, and what it was asked with.
"""

from __future__ import annotations

import itertools
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal

import attrs

from ..backend.backend import Backend
from ..backend.catalogue.catalog import name_of
from ..backend.connections.turns import Turns
from ..config.bounds import (
    MAX_DESCRIPTION,
    MAX_FIRST_SENTENCE,
    MAX_NAME,
    MAX_PAGE_BYTES,
    MAX_QUERY,
    MAX_SEARCH_PATTERN,
)
from ..config.server import NAME
from ..errors import InvalidArguments
from ..model.json.fields import Doc, MaxLength, Most, frozen
from ..model.json.problems import did_you_mean
from ..model.json.weight import weigh
from ..model.search.ranking import query_terms, rank
from ..model.wire import dumps, loads
from ..session.session import Session
from .common.asking import Gathered, gather, strangers_own
from .common.indexing import bring_up
from .common.listing import abridged, size_of_text
from .common.registry import READS, Request, tool
from .common.response import Reply, text
from .common.search import Search


@frozen
class ListTools:
    server: Annotated[
        str | tuple[str, ...],
        Most(MAX_SEARCH_PATTERN, MAX_SEARCH_PATTERN),
        Doc("a name, names, or a regex"),
    ] = ".*"
    tool: Annotated[str, MaxLength(MAX_SEARCH_PATTERN), Doc("regex")] = ".*"
    query: Annotated[str | None, MaxLength(MAX_QUERY), Doc("words in names or descriptions")] = None
    detail: Annotated[Literal["auto", "full", "summary"], Doc("summary has no schemas")] = "auto"
    cursor: Annotated[str | None, Most(most_characters=MAX_NAME), Doc("of the page before")] = None
    fresh: Annotated[bool, Doc("ask again")] = False


@tool(
    "Find tools of the connected servers, with their schemas. Lists can be long: narrow it down.",
    ListTools,
    READS,
    waits=True,
    hint="find tools of any MCP server",
)
async def list_tools(request: Request, asked: ListTools) -> Reply:
    session = request.session
    of_tool = Search.of("tool", asked.tool)
    start = _Cursor.of(asked)
    backends, missing = await chosen(session, asked.server)
    gathered = await gather(request, "tools", backends, fresh=asked.fresh)
    gathered.errors[:0] = missing
    wanted = await of_tool.among(session, await gathered.names())
    if asked.query is not None:
        groups = await _fitting(session, gathered, wanted, asked.query)
    else:
        groups = _grouped(gathered, wanted)
    if start.server and start.server not in [group.server for group in groups]:
        raise InvalidArguments(f"cursor: there is no server {start.server!r} now; begin anew")
    said = gathered.said
    if not groups and not gathered.errors:
        said["hint"] = _nothing_found(asked, [] if asked.tool == ".*" else await gathered.names())
    room = max(MAX_PAGE_BYTES - weigh(said), MAX_PAGE_BYTES // 2)
    detail = start.detail or asked.detail
    if detail != "summary":
        full = await _page(groups, start, room)
        if detail == "full" or full.next is None:
            return _reply(asked, full, "full", said)
    summaries = [attrs.evolve(group, is_short=True) for group in groups]
    return _reply(asked, await _page(summaries, start, room), "summary", said | {"hint": _HINT})


_HINT = 'names only; for schemas narrow server, tool or query down, or detail="full"'


def _nothing_found(asked: ListTools, names: Sequence[str]) -> str:
    if asked.query is not None:
        return "no tool has all these words in its name or description; try fewer, or others"
    if asked.tool != ".*":
        meant = did_you_mean(asked.tool, names)
        return f"no tool matches {asked.tool!r}{meant}; query looks for words, in any case"
    return "no server has any tools"


async def chosen(
    session: Session, server: str | tuple[str, ...]
) -> tuple[list[Backend], list[dict[str, str]]]:
    """Which servers are meant, and what is said of those that are not there."""
    names = _names(server)
    if names is None:
        assert isinstance(server, str)
        if (exact := session.backends.get(server)) is not None:
            return [exact], []
        backends = list(session.backends.values())
        search = Search.of("server", server)
        among = await search.among(session, [backend.server.name for backend in backends])
        found = list(itertools.compress(backends, among))
        names = () if found or server == ".*" else (server,)
    else:
        found = [each for name, each in session.backends.items() if name in names]
    there = ", ".join(session.backends) or "none"
    missing = []
    for name in dict.fromkeys(names):
        if name not in session.backends:
            what = f"no server {name!r}" if re.fullmatch(NAME, name) else f"no server is {name!r}"
            hint = did_you_mean(name, session.backends)
            missing.append({"server": name, "error": f"{what}{hint}; there are: {there}"})
    return found, missing


def _names(server: str | tuple[str, ...]) -> tuple[str, ...] | None:
    """The list that it is, or spells; None for a name or a pattern."""
    if not isinstance(server, str):
        return server
    if not server.startswith('["'):
        return None
    try:
        names = loads(server)
    except (ValueError, RecursionError):
        return None
    return tuple(names) if all(isinstance(name, str) for name in names) else None


async def _fitting(
    session: Session, gathered: Gathered, wanted: Sequence[bool], query: str
) -> list[_Group]:
    """Those of the *wanted* that have all words of *query*, ranked as any search ranks them."""
    kept = session.found
    async with kept.lock, Turns() as turns:
        await bring_up(session, turns, "tools", gathered.lists)
        numbers: list[int] = []
        for each in gathered.lists:
            of_server = kept.numbers(each.server, "tools")
            # A server that was removed meanwhile has none any more.
            numbers += of_server or [0] * len(each.of_server)
        has = await _with_words(gathered, wanted, query.lower().split(), turns)
        terms = query_terms(query)
        for at, number in enumerate(numbers):
            if turns.is_over:
                await turns.next()
            if terms and wanted[at] and not has[at]:
                has[at] = all(number in kept.index.postings.get(term, ()) for term in terms)
        found = await turns.through(rank(kept.index, query, len(kept.index.entries)))
    place = {number: at for at, number in enumerate(found.numbers)}
    groups: list[tuple[int, _Group]] = []
    start = 0
    for each in gathered.lists:
        among = range(start, start + len(each.of_server))
        start = among.stop
        fits = sorted((place.get(numbers[at], len(place)), at) for at in among if has[at])
        if fits:
            entries = [each.of_server[at - among.start] for _, at in fits]
            groups.append((fits[0][0], _Group(each.label, entries)))
    return [group for _, group in sorted(groups, key=lambda each: each[0])]


async def _with_words(
    gathered: Gathered, wanted: Sequence[bool], words: Sequence[str], turns: Turns
) -> list[bool]:
    """Which of the *wanted* have all *words*."""
    found: list[bool] = []
    entries = itertools.chain.from_iterable(each.of_server for each in gathered.lists)
    for entry, is_wanted in zip(entries, wanted, strict=True):
        if turns.is_over:
            await turns.next()
        said = (name_of(entry), entry.get("title"), entry.get("description"))
        texts = [each[:MAX_DESCRIPTION].lower() for each in said if isinstance(each, str)]
        found.append(is_wanted and all(any(w in each for each in texts) for w in words))
    return found


@attrs.frozen
class _Group:
    """What was found of one server."""

    label: Mapping[str, Any]
    found: list[dict[str, Any]]
    is_short: bool = False

    @property
    def server(self) -> str:
        return str(self.label["server"])

    @property
    def head(self) -> str:
        return dumps(self.label)[:-1] + ',"tools":['

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        for entry in self.found:
            # Whose it is and whether it is old is for us to say, whatever it says itself.
            yield _summary(entry) if self.is_short else strangers_own(entry)


def _grouped(gathered: Gathered, wanted: Iterable[bool]) -> list[_Group]:
    flags = iter(wanted)
    groups = []
    for each in gathered.lists:
        its_flags = itertools.islice(flags, len(each.of_server))
        found = list(itertools.compress(each.of_server, its_flags))
        if found:
            groups.append(_Group(each.label, found))
    return groups


def _summary(tool: Mapping[str, Any]) -> dict[str, Any]:
    said = {"name": tool["name"]} if "name" in tool else {}
    description = tool.get("description") or tool.get("title")
    if isinstance(description, str):
        start = description.lstrip()[:MAX_FIRST_SENTENCE]
        if first := start.split("\n")[0].split(". ")[0].rstrip():
            said["description"] = first
    return said


@attrs.frozen
class _Cursor:
    """Where a page begins."""

    server: str = ""
    at: int = 0
    detail: Literal["full", "summary"] | None = None
    """As the first page had it."""

    @classmethod
    def of(cls, asked: ListTools) -> _Cursor:
        """Raises `InvalidArguments` if it belongs to something else, or is none."""
        if asked.cursor is None:
            return cls()
        found = re.fullmatch(r"([fs])(\d{1,9})-([0-9a-f]{8})-(.+)", asked.cursor)
        if found is None:
            raise InvalidArguments("cursor: not one; it is what the page before ended with")
        if found[3] != _asked_for(asked):
            raise InvalidArguments(
                "cursor: of another search; give the same server, tool and query with it"
            )
        return cls(found[4], int(found[2]), "full" if found[1] == "f" else "summary")


def _asked_for(asked: ListTools) -> str:
    names = _names(asked.server) or asked.server
    return f"{zlib.crc32(dumps([names, asked.tool, asked.query]).encode()):08x}"


@attrs.frozen
class _Page:
    groups: dict[str, str]
    """As JSON, by server."""
    more: int
    next: tuple[str, int] | None
    """Server and number of the first for which there was no room."""


async def _page(groups: Iterable[_Group], start: _Cursor, room: int) -> _Page:
    """From *start* on as many as there is *room* for, and one in any case."""
    written: dict[str, str] = {}
    size = more = 0
    begun = not start.server
    following: tuple[str, int] | None = None
    async with Turns() as turns:
        for group in groups:
            first = 0
            if not begun:
                if group.server != start.server:
                    continue
                begun, first = True, start.at
            if following is not None:
                more += len(group.found)
                continue
            found: list[str] = []
            size += len(group.head) + 3
            for at, entry in enumerate(group):
                if turns.is_over:
                    await turns.next()
                if at < first:
                    continue
                said = await turns.through(abridged(entry))
                size += size_of_text(said) + 1
                if size > room and (found or written):
                    following = (group.server, at)
                    more += len(group.found) - at
                    break
                found.append(said)
            if found:
                written[group.server] = f"{group.head}{','.join(found)}]}}"
    return _Page(written, more, following)


def _reply(asked: ListTools, page: _Page, detail: str, said: Mapping[str, Any]) -> Reply:
    rest = dict(said) | {"detail": detail}
    if page.next is not None:
        server, at = page.next
        rest |= {"more": page.more, "cursor": f"{detail[0]}{at}-{_asked_for(asked)}-{server}"}
    answer = f'{{"tools":[{",".join(page.groups.values())}],{dumps(rest)[1:]}'
    sizes = {server: size_of_text(said) for server, said in page.groups.items()}
    return Reply({"content": [text(answer)], "isError": False}, defines=sizes)


TOOLS = (list_tools,)
