"""An index made from scratch, and what it finds: what any other index is compared with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from emceepee_trio.model.json.intake import Steps
from emceepee_trio.model.search.index import Entry, Index
from emceepee_trio.model.search.ranking import Found, Wanted, rank

T = TypeVar("T")


def index_of(entries: Mapping[int, Entry]) -> Index:
    index = Index()
    for number, entry in entries.items():
        index.add(number, entry)
    return index


def ranked(index: Index, query: str, most: int = 100, wanted: Wanted | None = None) -> Found:
    return through(rank(index, query, most, wanted))


def through(steps: Steps[T]) -> T:
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result


def names(index: Index, query: str) -> list[str]:
    """Of what fits *query*, the best first."""
    return [index.entries[number].name for number in ranked(index, query).numbers]
