"""Which entries have a term, and how much of it: what a ranking is reckoned from.

Entries come and go one by one. What an entry has of a term depends on that entry alone; how rare a
term is, is counted when it is asked for. So an index that has seen any changes is the same as one
that was made of what there is now.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Literal, TypeAlias, TypeVar, get_args

import attrs

from .words import EMPTY, parts, squeezed, stem, terms, terms_of_name

T = TypeVar("T")
Kind: TypeAlias = Literal["tools", "resources", "templates", "prompts", "servers"]
KINDS: tuple[Kind, ...] = get_args(Kind)

MAX_TEXT = 4000
MAX_NAME = 1000
"""Characters of one text of an entry that are looked at, and of a name."""
MAX_PARAMETERS = 64
"""Parameters of an entry that are looked at."""
MAX_TERMS = 128
"""Terms of an entry, those of its names first."""
MAX_POSTINGS = 1_000_000
"""Terms of all entries together; what comes beyond is not found by words."""

FULL = 255
"""What an entry has of a term at the most; small numbers cost nothing to keep."""
SATURATION = 1.2
"""How soon more of a term makes no difference: the k1 of BM25."""


@attrs.frozen
class _Field:
    weight: float
    slope: float
    """How much it counts that it is longer than usual: the b of BM25."""
    usual: int
    """Terms. A constant, so that no entry changes with what others are there."""


_SERVER = _Field(2.0, 0.3, 3)
_NAME = _Field(3.0, 0.3, 4)
_TITLE = _Field(2.0, 0.3, 4)
_DESCRIPTION = _Field(1.0, 0.6, 25)
_PARAMETERS = _Field(0.5, 0.6, 6)
_SAID_OF_PARAMETERS = _Field(0.3, 0.75, 40)


@attrs.frozen
class Entry:
    """What can be found."""

    kind: Kind
    server: str
    name: str
    title: str = ""
    description: str = ""
    parameters: tuple[tuple[str, str], ...] = ()
    """Names, and what is said of each."""


@attrs.frozen(eq=False)
class Indexed:
    """What an index keeps of an entry."""

    kind: Kind
    server: str
    name: str
    squeezed: str
    words: frozenset[str]
    """Terms of its name."""
    terms: tuple[str, ...]

    @property
    def place(self) -> tuple[str, str, str]:
        """Among those that fit as well."""
        return self.server, self.kind, self.name


@attrs.define(eq=False)
class Index:
    """Of all that a session can find, by numbers that whoever fills it gives."""

    postings: dict[str, dict[int, int]] = attrs.field(factory=dict, init=False)
    """For each term, how much of it entries have, of `FULL`."""
    entries: dict[int, Indexed] = attrs.field(factory=dict, init=False)
    by_name: dict[str, dict[int, None]] = attrs.field(factory=dict, init=False)
    """By their names without case and separators."""
    in_names: dict[str, dict[int, float]] = attrs.field(factory=dict, init=False)
    """For each term, of whose names it is which part."""
    by_server: dict[str, dict[int, None]] = attrs.field(factory=dict, init=False)
    size: int = attrs.field(default=0, init=False)
    """Terms of all entries."""

    def add(self, number: int, entry: Entry) -> bool:
        """Whether there was room for it; if not, it is known by its name only."""
        found = _weights(entry) if self.size < MAX_POSTINGS else {}
        name = entry.name[:MAX_NAME]
        bare = squeezed(name)
        self.entries[number] = Indexed(
            entry.kind,
            entry.server,
            name,
            bare,
            frozenset(stem(each) for word in parts(name) for each in word if each not in EMPTY),
            tuple(found),
        )
        self.by_name.setdefault(bare, {})[number] = None
        self.by_server.setdefault(entry.server, {})[number] = None
        words = self.entries[number].words
        for term in words:
            self.in_names.setdefault(term, {})[number] = 1 / len(words)
        for term, weight in found.items():
            self.postings.setdefault(term, {})[number] = weight
        self.size += len(found)
        return bool(found)

    def remove(self, number: int) -> None:
        entry = self.entries.pop(number)
        _take(self.by_name, entry.squeezed, number)
        _take(self.by_server, entry.server, number)
        for term in entry.words:
            _take(self.in_names, term, number)
        for term in entry.terms:
            _take(self.postings, term, number)
        self.size -= len(entry.terms)

    def rarity(self, term: str) -> float:
        """The idf of BM25."""
        count, having = len(self.entries), len(self.postings.get(term, ()))
        return math.log(1 + (count - having + 0.5) / (having + 0.5))


def _take(found: dict[str, dict[int, T]], key: str, n: int) -> None:
    del found[key][n]
    if not found[key]:
        del found[key]


def _weights(entry: Entry) -> dict[str, int]:
    """How much it has of each of its terms: BM25F, but for how rare they are."""
    total: dict[str, float] = defaultdict(float)
    for field, found in _fields(entry):
        norm = 1 - field.slope + field.slope * len(found) / field.usual
        for term in found:
            total[term] += field.weight / norm
    few = list(total.items())[:MAX_TERMS]
    return {term: max(1, round(FULL * n / (SATURATION + n))) for term, n in few}


def _fields(entry: Entry) -> Iterator[tuple[_Field, list[str]]]:
    yield _NAME, terms_of_name(entry.name[:MAX_NAME])
    yield _SERVER, terms_of_name(entry.server[:MAX_NAME])
    yield _TITLE, terms_of_name(entry.title[:MAX_NAME])
    parameters = entry.parameters[:MAX_PARAMETERS]
    yield _PARAMETERS, terms_of_name(_text(name for name, _ in parameters))
    yield _DESCRIPTION, terms(entry.description[:MAX_TEXT])
    yield _SAID_OF_PARAMETERS, terms(_text(said for _, said in parameters))


def _text(texts: Iterable[str]) -> str:
    return " ".join(texts)[:MAX_TEXT]
