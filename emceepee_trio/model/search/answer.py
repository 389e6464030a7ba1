"""What a search answers: wide and thin, and never more than there is room for.

First as many lines as are wanted, as short as they get; then the best of them as they are called,
then names of what else the best servers have, then more of everything as long as there is room.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from heapq import nsmallest
from typing import Any

import attrs

from ..json.intake import Steps
from ..json.weight import cut, is_more_than, weigh
from ..wire import dumps
from .index import Index, Kind
from .ranking import Found, best_servers
from .signatures import LONGEST_NAME, bare, purpose, stub, typed
from .tokens import tokens

ROOM = 500
"""Tokens of an answer, unless more is asked for."""
MORE_ROOM = 2500
"""Of one for which it is."""
LINES = 20
"""Of an answer, unless another number is asked for."""
FULL = 5
"""Lines that say all that a line can before anything else is named."""
SMALL = 400
"""Characters of a schema that is shown without being asked for."""
LINE = 90
"""Characters of a line, as long as others wait for room; four times as many at the most."""

SERVERS, BEST = 6, 3
"""Of which more is named; and of which all is, if there is room."""
FIRST = 12
"""Names of each of them, before others of any are."""
TRIED = 20
"""Names for which there is no room, until no shorter one is looked for."""
MOST_OF_SERVER = 100
"""Names of one of them."""

_MARK: Mapping[Kind, str] = {
    "tools": "",
    "resources": "resource ",
    "templates": "template ",
    "prompts": "prompt ",
    "servers": "server ",
}


@attrs.frozen(eq=False)
class Hit:
    """What was found."""

    kind: Kind
    server: str
    entry: Mapping[str, Any]

    @property
    def name(self) -> str:
        if self.kind in ("resources", "templates"):
            key = "uri" if self.kind == "resources" else "uriTemplate"
            return cut(str(self.entry.get(key, "")), LONGEST_NAME)
        return cut(str(self.entry.get("name", "")), LONGEST_NAME)

    def lines(self, *, is_stub: bool = False) -> tuple[str, ...]:
        """From the shortest to the longest."""
        said = purpose(self.entry)
        mark = _MARK[self.kind]
        if self.kind == "servers":
            return (_cut(f"{mark}{self.server}"), _cut(f"{mark}{self.server} {said}"))
        if self.kind in ("resources", "templates"):
            named = f"{mark}{self.server} {self.name}"
            title = self.entry.get("title") or self.entry.get("name")
            called = cut(title, LONGEST_NAME) if isinstance(title, str) else ""
            return (_cut(named), _cut(f"{named} {called}".rstrip()))
        if is_stub and self.kind == "tools":
            said = f"  # {said}" if said else ""
            return tuple(_cut(f"{stub(self.server, self.entry)}{more}") for more in ("", said))
        tool = _as_tool(self.entry) if self.kind == "prompts" else self.entry
        head = f"{mark}{self.server}.{self.name}"
        short = head + typed(tool, optional=False)
        return (
            _cut(head + bare(tool)),
            _cut(short),
            _cut(f"{short} {said}".rstrip()),
            _cut(f"{head}{typed(tool)} {said}".rstrip()),
        )


def _cut(line: str) -> str:
    return cut(line, 4 * LINE)


def _as_tool(prompt: Mapping[str, Any]) -> Mapping[str, Any]:
    """Arguments of a prompt are strings, and listed."""
    found = prompt.get("arguments")
    few = [each for each in found if isinstance(each, Mapping)] if isinstance(found, list) else []
    return {
        "inputSchema": {
            "properties": {str(each.get("name")): {"type": "string"} for each in few},
            "required": [str(each.get("name")) for each in few if each.get("required") is True],
        }
    }


@attrs.define(eq=False)
class Findings:
    """Filled in the order of worth; what has no room is left out."""

    room: int
    said: dict[str, Any] = attrs.field(factory=dict)
    """What is said in any case, and is of bounded size."""
    _lines: list[str] = attrs.field(factory=list, init=False)
    _more: dict[str, str] = attrs.field(factory=dict, init=False)
    _schemas: dict[str, Any] = attrs.field(factory=dict, init=False)
    _size: float = attrs.field(default=0.0, init=False)

    def to_json(self) -> dict[str, Any]:
        found: dict[str, Any] = {"found": self._lines}
        if self._schemas:
            found["schemas"] = self._schemas
        if self._more:
            found["more"] = self._more
        return found | self.said

    def sizes(self, hits: Iterable[Hit]) -> Mapping[str, int]:
        """Characters of what is said of each server, when it was filled with these."""
        sizes = Counter[str]()
        for hit, line in zip(hits, self._lines, strict=False):  # few have all of theirs
            sizes[hit.server] += len(line)
            if schema := self._schemas.get(f"{hit.server}.{hit.name}"):
                sizes[hit.server] += weigh(schema)
        for server, names in self._more.items():
            sizes[server] += len(names)
        return sizes

    def fill(
        self,
        hits: Sequence[Hit],
        others: Iterable[tuple[str, str]],
        *,
        lines: int = LINES,
        schemas: int | None = None,
        stubs: bool = False,
    ) -> Steps[None]:
        """With the best *lines* of *hits*, and with *others*: servers, and names that they have."""
        shown = list(hits[:lines])
        forms: list[tuple[str, ...]] = []
        for hit in shown:
            forms.append(hit.lines(is_stub=stubs))
            yield
        self._weigh()
        forms = forms[: self._begin(forms)]
        yield
        for at in range(min(len(forms), FULL)):
            self._lengthen(at, forms[at], LINE)
            yield
        if schemas:
            yield from self._add_schemas(shown[:schemas], 4 * self.room)
        self._weigh()
        left = yield from self._name(others)
        self._weigh()
        yield
        yield from self._name(left)  # what was found to be left is used up
        self._weigh()
        for at, form in enumerate(forms):
            yield
            self._lengthen(at, form, 4 * LINE)
        if schemas is None:
            yield from self._add_schemas(shown[:FULL], SMALL)
        while self._is_too_much():
            yield

    def _begin(self, forms: Sequence[tuple[str, ...]]) -> int:
        """How many have room as short as they get."""
        for at, form in enumerate(forms):
            if not self._take(_cost(form[0])):
                return at
            self._lines.append(form[0])
        return len(forms)

    def _lengthen(self, at: int, form: Sequence[str], longest: int) -> None:
        """To the longest that there is room for."""
        before = self._lines[at]
        for line in reversed(form[1:]):
            if len(before) < len(line) <= longest and self._take(_cost(line) - _cost(before)):
                self._lines[at] = line
                return

    def _name(self, others: Iterable[tuple[str, str]]) -> Steps[list[tuple[str, str]]]:
        """As many as there is room for; the next few for which there is none."""
        left: list[tuple[str, str]] = []
        for server, name in others:
            short = cut(name, LONGEST_NAME)
            before = self._more.get(server)
            said = f" {dumps(short)[1:-1]}" if before is not None else dumps({server: short})
            if self._take(tokens(said)):
                self._more[server] = short if before is None else f"{before} {short}"
            else:
                left.append((server, name))
                if len(left) == TRIED:
                    break
            yield
        return left

    def _add_schemas(self, hits: Iterable[Hit], longest: int) -> Steps[None]:
        for hit in hits:
            yield
            schema = hit.entry.get("inputSchema") if hit.kind == "tools" else None
            if not isinstance(schema, Mapping) or not schema.get("properties"):
                continue
            if is_more_than(schema, longest) or weigh(schema) > longest:
                continue
            if self._take(tokens(dumps(schema)) + tokens(hit.name + hit.server) + 4):
                self._schemas[f"{hit.server}.{hit.name}"] = schema

    def _is_too_much(self) -> bool:
        """What is least worth is taken out again; rarely, since pieces are reckoned with care."""
        self._weigh()
        if self._size <= self.room:
            return False
        if self._more:
            server, names = self._more.popitem()
            if names := names.rpartition(" ")[0]:
                self._more[server] = names
        elif self._schemas:
            self._schemas.popitem()
        elif self._lines:
            self._lines.pop()
        else:
            return False
        return True

    def _weigh(self) -> None:
        """What has been reckoned piece by piece is a little more than the whole."""
        self._size = tokens(dumps(self.to_json()))

    def _take(self, size: float) -> bool:
        if self._size + size > self.room:
            return False
        self._size += size
        return True


def others(
    index: Index, queries: Sequence[Found], shown: Container[int], kind: Kind
) -> Iterator[tuple[str, str]]:
    """What else of that *kind* could be meant: all that the best servers have, then what fits."""
    named: set[int] = set()
    all_of: list[list[int]] = []
    for found in queries:
        place = {number: at for at, number in enumerate(found.numbers)}
        for rank, server in enumerate(best_servers(index, found)[:SERVERS]):
            every = (n for n in index.by_server[server] if index.entries[n].kind == kind)
            few = nsmallest(MOST_OF_SERVER, every, key=lambda n: (place.get(n, len(place)), n))
            few = [number for number in few if number not in shown]
            yield from _names(index, few[:FIRST], named)
            if rank < BEST:
                all_of.append(few)
    for found in queries:
        all_of.append([n for n in found.numbers if index.entries[n].kind == kind])
    for few in all_of:
        yield from _names(index, (n for n in few if n not in shown), named)


def _names(index: Index, numbers: Iterable[int], named: set[int]) -> Iterator[tuple[str, str]]:
    for number in numbers:
        if number not in named:
            named.add(number)
            yield index.entries[number].server, index.entries[number].name


def _cost(line: str) -> float:
    return tokens(dumps(line)) + 1
