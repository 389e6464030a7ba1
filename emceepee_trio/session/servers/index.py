"""What a session can find: kept beside the lists it is made of, and changed where they have.

There is none before the first search. A list that is what it was costs one look; of one that has
changed, only the entries that have are taken out and put in. Tools that are for no model are found
by nobody. Knows neither queries nor answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import attrs
import trio

from ...model.json.intake import Steps
from ...model.protocol.apps import is_for_model
from ...model.search.entries import entry_of
from ...model.search.index import Index, Kind

Said: TypeAlias = Mapping[str, Any]


@attrs.define(eq=False)
class _Shelf:
    """One list of one server."""

    said: Sequence[Said] | None = attrs.field(default=None, init=False)
    """The list that all of it is in the index of; None while that is being changed."""
    numbers: list[int] = attrs.field(factory=list, init=False)
    """Of its entries, in their order."""
    by_name: dict[tuple[str, int], tuple[int, Said]] = attrs.field(factory=dict, init=False)
    """By what they are called, and the how manieth of that name it is."""


@attrs.define(eq=False)
class SessionIndex:
    index: Index = attrs.field(factory=Index, init=False)
    said: dict[int, Said] = attrs.field(factory=dict, init=False)
    """What servers have said, by number."""
    lock: trio.Lock = attrs.field(factory=trio.Lock, init=False)
    """Held by whoever changes it, or ranks by it: both are made in turns with others."""
    _shelves: dict[tuple[str, Kind], _Shelf] = attrs.field(factory=dict, init=False)
    _last: int = attrs.field(default=0, init=False)

    def update(self, server: str, kind: Kind, said: Sequence[Said]) -> Steps[None]:
        """That is what the list is now."""
        shelf = self._shelves.setdefault((server, kind), _Shelf())
        if shelf.said is said:
            return
        # What is found to be the same stays; whoever is interrupted leaves the rest for the next.
        shelf.said = None
        names = yield from _names(said)
        for at, key in enumerate([key for key in shelf.by_name if key not in names]):
            self._remove(shelf, key)
            if at % 20 == 19:
                yield
        for at, (key, entry) in enumerate(names.items()):
            before = shelf.by_name.get(key)
            if before is not None and (before[1] is entry or before[1] == entry):
                if at % 20 == 19:
                    yield
                continue
            if before is not None:
                self._remove(shelf, key)
            self._add(shelf, key, server, kind, entry)
            yield
        shelf.numbers = [shelf.by_name[key][0] for key in names]
        shelf.said = said

    def keep_only(self, servers: Iterable[str]) -> Steps[None]:
        """The others are there no longer."""
        kept = frozenset(servers)
        for place in [place for place in self._shelves if place[0] not in kept]:
            shelf = self._shelves[place]
            shelf.said = None
            for at, key in enumerate(list(shelf.by_name)):
                self._remove(shelf, key)
                if at % 20 == 19:
                    yield
            del self._shelves[place]

    def numbers(self, server: str, kind: Kind) -> Sequence[int]:
        """Of the entries of a list, in their order."""
        shelf = self._shelves.get((server, kind))
        return [] if shelf is None else shelf.numbers

    def _add(
        self, shelf: _Shelf, key: tuple[str, int], server: str, kind: Kind, entry: Said
    ) -> None:
        self._last += 1
        if kind != "tools" or is_for_model(entry):
            self.index.add(self._last, entry_of(kind, server, entry))
        self.said[self._last] = entry
        shelf.by_name[key] = (self._last, entry)

    def _remove(self, shelf: _Shelf, key: tuple[str, int]) -> None:
        number, _ = shelf.by_name.pop(key)
        if number in self.index.entries:
            self.index.remove(number)
        del self.said[number]


def _names(said: Sequence[Said]) -> Steps[dict[tuple[str, int], Said]]:
    found: dict[tuple[str, int], Said] = {}
    count: dict[str, int] = {}
    for at, entry in enumerate(said):
        if at % 500 == 499:
            yield
        said_so = (entry.get(key) for key in ("uri", "uriTemplate", "name"))
        name = next((each for each in said_so if each and isinstance(each, str)), "")[:1000]
        count[name] = count.get(name, 0) + 1
        found[name, count[name]] = entry
    return found
