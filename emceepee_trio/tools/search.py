"""Finding whatever servers have, in few words: ranked over all of them, said on one line each."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal

import attrs

from ..backend.backend import Backend
from ..backend.catalogue.catalog import List
from ..backend.connections.turns import Turns
from ..config.bounds import (
    MAX_DESCRIPTION,
    MAX_FOUND,
    MAX_QUERIES,
    MAX_QUERY,
    MAX_SEARCH_PATTERN,
)
from ..errors import InvalidArguments
from ..model.json.fields import Bounds, Doc, Most, frozen
from ..model.json.weight import cut
from ..model.search.answer import LINES, MORE_ROOM, ROOM, Findings, Hit, others
from ..model.search.index import KINDS, Kind
from ..model.search.ranking import CLOSEST, Found, closest, rank, wide
from ..model.search.tokens import tokens
from ..model.wire import dumps
from ..session.servers.index import SessionIndex
from ..session.session import Session
from .common.asking import Labelled, gather
from .common.indexing import bring_up
from .common.registry import READS, Request, tool
from .common.response import Reply, json_reply
from .common.search import Search
from .finding import chosen


@frozen
class CodemodeSearch:
    query: Annotated[str | None, Most(most_characters=MAX_QUERY)] = None
    queries: Annotated[tuple[str, ...], Most(MAX_QUERIES, MAX_QUERY)] = ()
    kinds: Annotated[tuple[Kind, ...], Most(MAX_QUERIES)] = ()
    server: Annotated[str | None, Most(most_characters=MAX_SEARCH_PATTERN), Doc("or regex")] = None
    mode: Literal["words", "regex"] = "words"
    limit: Annotated[int | None, Bounds(1, MAX_FOUND)] = None
    schemas: Annotated[int | None, Bounds(0, MAX_FOUND)] = None
    stubs: Annotated[bool | None, Doc("as Python for codemode_execute")] = None


LISTS: Mapping[Kind, List] = {
    "tools": "tools",
    "resources": "resources",
    "templates": "resource_templates",
    "prompts": "prompts",
}


@tool(
    "Find what servers have, by words. Answers briefly: signatures of the best, then names (more) "
    "of what is near.",
    CodemodeSearch,
    READS,
    waits=True,
)
async def codemode_search(request: Request, asked: CodemodeSearch) -> Reply:
    session = request.session
    queries = [
        query for query in dict.fromkeys((asked.query or "", *asked.queries)) if query.strip()
    ]
    if not queries:
        raise InvalidArguments("codemode_search: query: expected what is to be found, or queries")
    kinds = asked.kinds or KINDS
    backends, errors = await chosen(session, asked.server or ".*")
    lists = await _lists(request, kinds, backends, errors)
    kept, names = session.found, {backend.server.name for backend in backends}
    async with kept.lock:
        async with Turns() as turns:
            for kind, of_servers in lists.items():
                await bring_up(session, turns, kind, of_servers)
            numbers = [
                number
                for kind in kinds
                for name in names
                for number in kept.numbers(name, kind)
                if number in kept.index.entries
            ]
        searched = _Searched(session, kept, frozenset(numbers), {})
        found = [await searched.found(query, asked.mode) for query in queries]
        said = _said(queries, found, searched, errors)
        if not any(each.numbers for each in found):
            said |= await _nothing(kept, queries, lists, len(names), searched)
        return await _answer(asked, kept, found, kinds, said)


async def _lists(
    request: Request,
    kinds: Sequence[Kind],
    backends: Sequence[Backend],
    errors: list[dict[str, str]],
) -> dict[Kind, list[Labelled]]:
    """What these servers have; *errors* gets those that do not say, once each."""
    found: dict[Kind, list[Labelled]] = {}
    reached = list(backends)
    for kind in KINDS:
        if kind not in kinds:
            continue
        if kind == "servers":
            found[kind] = [Labelled(each.server.name, [_server(each)]) for each in backends]
            continue
        gathered = await gather(request, LISTS[kind], reached)
        silent = {error["server"] for error in gathered.errors}
        old = [each for each in backends if each not in reached]
        found[kind] = gathered.lists + [
            Labelled(each.server.name, each.old(LISTS[kind]), stale=True) for each in old
        ]
        errors += gathered.errors
        # Nobody waits twice for one of them.
        reached = [each for each in reached if each.server.name not in silent]
    return found


def _server(backend: Backend) -> dict[str, Any]:
    agreed = backend.agreed
    said = {} if agreed is None else agreed.server_info
    texts = (backend.server.description, None if agreed is None else agreed.instructions)
    return {
        "name": backend.server.name,
        "title": said.get("title"),
        "description": " ".join(each[:MAX_DESCRIPTION] for each in texts if each),
    }


@attrs.frozen
class _Searched:
    """Everything that is searched, by every query alike."""

    session: Session
    kept: SessionIndex
    numbers: frozenset[int]
    failed: dict[str, str]
    """Queries that are none, and why; they stop no other."""

    async def found(self, query: str, mode: str) -> Found:
        try:
            if mode == "regex":
                return await self._matching(query)
        except InvalidArguments as error:
            self.failed[query] = error.message
            return Found([], {})
        steps = rank(self.kept.index, query, MAX_FOUND, self.numbers.__contains__)
        async with Turns() as turns:
            return await turns.through(steps)

    async def _matching(self, pattern: str) -> Found:
        """Entries in whose name it is found, then those where it is said."""
        if len(pattern) > MAX_SEARCH_PATTERN:
            raise InvalidArguments(f"query: a regex has at most {MAX_SEARCH_PATTERN} characters")
        search = Search.of("query", pattern)
        numbers = sorted(self.numbers)
        texts: list[str] = []
        async with Turns() as turns:
            for number in numbers:
                if turns.is_over:
                    await turns.next()
                entry, said = self.kept.index.entries[number], self.kept.said[number]
                texts += (entry.name, f"{entry.server}.{entry.name}")
                texts += (_text(said, "title"), _text(said, "description"))
        matches: list[bool] = []
        many = 400 if search.is_quick else len(texts)  # what is not quick is in a thread
        async with Turns() as turns:
            for at in range(0, len(texts), many) if texts else ():
                if turns.is_over:
                    await turns.next()
                if search.is_quick:
                    matches += await search.among(self.session, texts[at : at + many])
        if not search.is_quick:
            matches = await search.among(self.session, texts)
        named = [n for at, n in enumerate(numbers) if any(matches[4 * at : 4 * at + 2])]
        told = [n for at, n in enumerate(numbers) if any(matches[4 * at + 2 : 4 * at + 4])]
        best = list(dict.fromkeys((*named, *told)))[:MAX_FOUND]
        return Found(best, dict.fromkeys(best, 1.0))


def _text(said: Mapping[str, Any], key: str) -> str:
    text = said.get(key)
    return text if isinstance(text, str) else ""


SAID = 60
"""Characters of a query or of a reason in an answer."""
BESIDE = 150
"""Tokens of what is said beside what was found; the others are counted."""


def _said(
    queries: Sequence[str],
    found: Sequence[Found],
    searched: _Searched,
    errors: Iterable[Mapping[str, str]],
) -> dict[str, Any]:
    failed = [{"query": q, "error": why} for q, why in searched.failed.items()]
    nothing = [
        cut(query, SAID // 2)
        for query, each in zip(queries, found, strict=True)
        if not each.numbers and query not in searched.failed
    ]
    said: dict[str, Any] = {}
    if 0 < len(nothing) < len(queries):
        said["nothing_for"] = nothing
    told: list[dict[str, str]] = []
    left = 0
    for error in (*failed, *errors):
        short = {key: cut(value, 2 * SAID) for key, value in error.items()}
        if tokens(dumps([*told, short])) <= BESIDE:
            told.append(short)
        else:
            left += 1
    if told:
        said["errors"] = told
    return said | ({"more_errors": left} if left else {})


async def _nothing(
    kept: SessionIndex,
    queries: Sequence[str],
    lists: Mapping[Kind, Sequence[Labelled]],
    servers: int,
    searched: _Searched,
) -> dict[str, Any]:
    """What was looked at, and what is called most like it."""
    counts = {kind: sum(len(each.of_server) for each in of) for kind, of in lists.items()}
    looked = ", ".join(f"{count} {kind}" for kind, count in counts.items() if kind != "servers")
    like: list[int] = []
    for query in queries:
        async with Turns() as turns:
            like += await turns.through(closest(kept.index, query))
    entries = [kept.index.entries[number] for number in like if number in searched.numbers]
    names = [cut(f"{each.server}.{each.name}", SAID) for each in entries[:CLOSEST]]
    said: dict[str, Any] = {
        "hint": f"nothing fits; looked at {looked or 'no lists'} of {servers} servers"
    }
    return said | ({"closest": names} if names else {})


async def _answer(
    asked: CodemodeSearch,
    kept: SessionIndex,
    found: Sequence[Found],
    kinds: Sequence[Kind],
    said: Mapping[str, Any],
) -> Reply:
    """The best of each query in turn, each once."""
    ranked = [wide(kept.index, each.numbers) for each in found]
    mixed = itertools.chain.from_iterable(itertools.zip_longest(*ranked))
    numbers = list(dict.fromkeys(number for number in mixed if number is not None))
    lines = asked.limit or LINES
    hits = []
    for number in numbers[:lines]:
        entry = kept.index.entries[number]
        hits.append(Hit(entry.kind, entry.server, kept.said[number]))
    more = asked.limit or asked.schemas or asked.stubs
    findings = Findings(MORE_ROOM if more else ROOM, dict(said))
    kind: Kind = "tools" if "tools" in kinds else kinds[0]
    shown = frozenset(numbers[:lines])
    steps = findings.fill(
        hits,
        others(kept.index, found, shown, kind),
        lines=lines,
        schemas=asked.schemas,
        stubs=bool(asked.stubs),
    )
    async with Turns() as turns:
        await turns.through(steps)
    return attrs.evolve(json_reply(findings.to_json()), defines=findings.sizes(hits))


TOOLS = (codemode_search,)
