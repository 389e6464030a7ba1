"""Lists in answers: a page at a time, written in turns with everybody else, and not without end.

What lists hold is a server's to say: how many entries, and how large each. A page has room for
`MAX_PAGE_BYTES`; how many entries there are beyond it is said, with a cursor for the next one, and
so is which ones are too large to be shown beside others. Each page is made anew, from what there is
then; a cursor says where it begins, and of which list.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs

from ...backend.connections.turns import Turns
from ...config.bounds import MAX_LIST_BYTES, MAX_PAGE_BYTES
from ...errors import InvalidArguments
from ...model.json.intake import Steps
from ...model.json.spelling import spell_up_to
from ...model.json.weight import cut, weigh
from ...model.wire import dumps
from .registry import Request
from .response import Reply, text

NAMES = (
    "server",
    "stale",
    "as_of",
    "name",
    "uri",
    "uriTemplate",
    "task_id",
    "requestId",
    "timestamp",
)
"""What is left of an entry that is too large."""

FRAME = 200
"""Bytes around the entries of a page and what is said beside them: the list's name, a cursor."""


@attrs.frozen
class Group:
    """Entries of a list that have one name: those of a server, or a single one."""

    name: str
    entries: Iterable[Mapping[str, Any]]
    """Made as they are needed."""
    count: int = 1
    head: str = ""
    tail: str = ""
    """What is written around them, if they stand together."""


@attrs.frozen
class Cursor:
    """Where a page begins: with which entry of which group."""

    group: str = ""
    at: int = 0
    mark: str = ""
    """A letter that the first page wants to be known by the others."""

    @classmethod
    def of(cls, given: str | None, asked: object) -> Cursor:
        """Raises `InvalidArguments` if it belongs to something else than *asked*, or is none."""
        if given is None:
            return cls()
        found = re.fullmatch(r"([a-z]?)(\d{1,9})-([0-9a-f]{8})-(.+)", given)
        if found is None:
            raise InvalidArguments("cursor: not one; it is what the page before ended with")
        if found[3] != _digest(asked):
            raise InvalidArguments("cursor: of another list; give the same arguments with it")
        return cls(found[4], int(found[2]), found[1])

    def spelled(self, asked: object) -> str:
        return f"{self.mark}{self.at}-{_digest(asked)}-{self.group}"


def _digest(asked: object) -> str:
    return f"{zlib.crc32(dumps(asked).encode()):08x}"


@attrs.frozen
class Page:
    groups: Mapping[str, str]
    """As JSON, by name: entries with commas between them."""
    more: int
    """Entries beyond it."""
    next: Cursor | None
    """The first for which there was no room."""
    short: frozenset[str]
    """Names of groups with entries that are only named."""

    @property
    def sizes(self) -> dict[str, int]:
        return {name: size_of_text(said) for name, said in self.groups.items()}


async def page(
    groups: Iterable[Group], start: Cursor, room: int, largest: int | None = None
) -> Page:
    """From *start* on as many as there is *room* for, and one in any case.

    One that is larger than *largest*, else than the page, is only named.
    """
    written: dict[str, str] = {}
    short: set[str] = set()
    size = more = 0
    begun = not start.group
    following: Cursor | None = None
    async with Turns() as turns:
        for group in groups:
            if turns.is_over:
                await turns.next()
            first = 0
            if not begun:
                if group.name != start.group:
                    continue
                begun, first = True, start.at
            if following is not None:
                more += group.count
                continue
            found: list[str] = []
            size += len(group.head) + len(group.tail)
            for at, entry in enumerate(group.entries):
                if turns.is_over:
                    await turns.next()
                if at < first:
                    continue
                said, is_whole = await turns.through(abridged(entry, largest or room))
                size += size_of_text(said) + 1
                if size > room and (found or written):
                    following = Cursor(group.name, at, start.mark)
                    more += group.count - at
                    break
                found.append(said)
                if not is_whole:
                    short.add(group.name)
            if found:
                written[group.name] = f"{group.head}{','.join(found)}{group.tail}"
    return Page(written, more, following, frozenset(short))


def abridged(entry: Mapping[str, Any], room: int) -> Steps[tuple[str, bool]]:
    """The JSON of *entry*, or of how it is called if it is too large; and whether it is whole."""
    said = yield from spell_up_to(entry, room)
    if said is not None and size_of_text(said) <= room:
        return said, True
    named = {key: entry[key] for key in NAMES if key in entry}
    short = {key: value for key, value in named.items() if weigh(value) <= 1000}
    return dumps(short | {"too_large": True}), False


def size_of_text(said: str) -> int:
    return len(said) if said.isascii() else len(said.encode())


def room_of(request: Request, said: object = None) -> int:
    """For the entries of a page that says this beside them. Scripts and people read longer ones."""
    most = MAX_PAGE_BYTES if request.shortens else MAX_LIST_BYTES
    return max(most - size_of_text(dumps(said)) - FRAME, most // 2)


async def listed(
    request: Request,
    key: str,
    groups: Sequence[Group],
    asked: Any,
    said: Mapping[str, Any] | None = None,
) -> tuple[Reply, Page]:
    """A page of the list *key*, with what else is *said*; the arguments *asked* have a cursor."""
    whose = whose_cursor(key, asked)
    start = Cursor.of(asked.cursor, whose)
    if start.group and start.group not in {group.name for group in groups}:
        raise InvalidArguments(f"cursor: {start.group!r} is not in the list now; begin anew")
    said = said or {}
    found = await page(groups, start, room_of(request, said))
    rest: dict[str, Any] = {}
    if found.next is not None:
        rest = {"more": found.more, "cursor": found.next.spelled(whose)}
    rest |= said
    tail = "," + dumps(rest)[1:] if rest else "}"
    answer = f'{{"{key}":[{",".join(found.groups.values())}]{tail}'
    return Reply({"content": [text(answer)], "isError": False}), found


def whose_cursor(key: str, asked: Any) -> object:
    return [key, attrs.asdict(asked, filter=lambda field, _: field.name not in PRESENTED)]


PRESENTED = ("cursor", "detail", "fresh")
"""Arguments that change how a list is shown, not what is in it."""


async def by_age(
    request: Request, key: str, groups: Iterable[Group], asked: Any
) -> tuple[Reply, Page]:
    """The same of groups whose names are ids, oldest first: they may end between two pages."""
    in_order = sorted(groups, key=lambda group: group.name)
    if asked.cursor is not None and (found := asked.cursor.rpartition("-")[2]):
        left = [group for group in in_order if group.name >= found]
        in_order = [Group(found, (), 0), *left] if not left or left[0].name != found else left
    return await listed(request, key, in_order, asked)


def errors_within(errors: Sequence[dict[str, str]], room: int) -> list[dict[str, str]]:
    """*errors* of servers, all cut alike if there is no *room* for them as they are."""
    if size_of_text(dumps(errors)) <= room:
        return list(errors)
    each = max(room // len(errors) - 100, 20)
    return [error | {"error": cut(error["error"], each)} for error in errors[: room // 60]]
