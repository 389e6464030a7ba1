"""An index made from scratch, and what it finds: what any other index is compared with."""

from __future__ import annotations

from collections.abc import Mapping

from emceepee_trio.model.json.intake import finished
from emceepee_trio.model.search.index import Entry, Index
from emceepee_trio.model.search.ranking import Found, Wanted, rank


def index_of(entries: Mapping[int, Entry]) -> Index:
    index = Index()
    for number, entry in entries.items():
        index.add(number, entry)
    return index


def ranked(index: Index, query: str, most: int = 100, wanted: Wanted | None = None) -> Found:
    return finished(rank(index, query, most, wanted))


def names(index: Index, query: str) -> list[str]:
    """Of what fits *query*, the best first."""
    return [index.entries[number].name for number in ranked(index, query).numbers]
