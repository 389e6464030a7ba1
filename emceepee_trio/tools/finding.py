"""Finding tools of backends: by server, by name, by words, and a page at a time."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal

import attrs

from ..backend.backend import Backend
from ..backend.catalogue.catalog import name_of
from ..backend.connections.turns import Turns
from ..config.bounds import (
    MAX_DESCRIPTION,
    MAX_FIRST_SENTENCE,
    MAX_LIST_BYTES,
    MAX_PAGE_BYTES,
    MAX_QUERY,
    MAX_SEARCH_PATTERN,
)
from ..config.server import A_NAME, NAME
from ..errors import InvalidArguments
from ..model.json.fields import Doc, Most, frozen
from ..model.json.problems import did_you_mean
from ..model.protocol.apps import is_for_model
from ..model.search.ranking import query_terms, rank
from ..model.wire import dumps, loads
from ..session.session import Session
from .common.asking import Gathered, gather, strangers_own
from .common.indexing import bring_up
from .common.listing import FRAME, Cursor, Group, Page, page, size_of_text
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
    tool: Annotated[str, Most(most_characters=MAX_SEARCH_PATTERN), Doc("regex")] = ".*"
    query: Annotated[
        str | None, Most(most_characters=MAX_QUERY), Doc("words in names or descriptions")
    ] = None
    detail: Annotated[Literal["auto", "full", "summary"], Doc("summary has no schemas")] = "auto"
    cursor: Annotated[str | None, A_NAME] = None
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
    start = Cursor.of(asked.cursor, _asked_for(asked))
    backends, missing = await chosen(session, asked.server)
    gathered = await gather(request, "tools", backends, fresh=asked.fresh)
    gathered.errors[:0] = missing
    wanted = await _for_model(gathered, await of_tool.among(session, await gathered.names()))
    if asked.query is not None:
        groups = await _fitting(session, gathered, wanted, asked.query)
    else:
        groups = _grouped(gathered, wanted)
    if start.group and start.group not in [group.server for group in groups]:
        raise InvalidArguments(f"cursor: there is no server {start.group!r} now; begin anew")
    said = gathered.said
    if not groups and not gathered.errors:
        said["hint"] = _nothing_found(asked, [] if asked.tool == ".*" else await gathered.names())
    detail = {"f": "full", "s": "summary"}.get(start.mark, asked.detail)
    if detail != "summary":
        room = MAX_PAGE_BYTES - size_of_text(dumps(said)) - FRAME
        full = await page(map(_Group.whole, groups), start, room, MAX_LIST_BYTES)
        if detail == "full" or full.next is None:
            return _reply(asked, full, "full", said)
    said |= {"hint": _HINT}
    room = MAX_PAGE_BYTES - size_of_text(dumps(said)) - FRAME
    return _reply(asked, await page(map(_Group.short, groups), start, room), "summary", said)


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


async def _for_model(gathered: Gathered, wanted: Sequence[bool]) -> list[bool]:
    """Which of the *wanted* anybody may call: others are for what their servers show to people."""
    entries = itertools.chain.from_iterable(each.of_server for each in gathered.lists)
    found: list[bool] = []
    async with Turns() as turns:
        for entry, is_wanted in zip(entries, wanted, strict=True):
            if turns.is_over:
                await turns.next()
            found.append(is_wanted and is_for_model(entry))
    return found


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

    @property
    def server(self) -> str:
        return str(self.label["server"])

    def whole(self) -> Group:
        # Whose it is and whether it is old is for us to say, whatever it says itself.
        return self._of(map(strangers_own, self.found))

    def short(self) -> Group:
        return self._of(map(_summary, self.found))

    def _of(self, entries: Iterable[Mapping[str, Any]]) -> Group:
        head = dumps(self.label)[:-1] + ',"tools":['
        return Group(self.server, entries, len(self.found), head, "]}")


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


def _asked_for(asked: ListTools) -> list[Any]:
    return ["tools", _names(asked.server) or asked.server, asked.tool, asked.query]


def _reply(asked: ListTools, found: Page, detail: str, said: Mapping[str, Any]) -> Reply:
    rest = dict(said) | {"detail": detail}
    if found.next is not None:
        following = attrs.evolve(found.next, mark=detail[0])
        rest |= {"more": found.more, "cursor": following.spelled(_asked_for(asked))}
    answer = f'{{"tools":[{",".join(found.groups.values())}],{dumps(rest)[1:]}'
    return Reply({"content": [text(answer)], "isError": False}, defines=found.sizes)


TOOLS = (list_tools,)
