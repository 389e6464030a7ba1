"""What fits a query best: exact names, then BM25F, then what the best of those have in common.

A long ranking is made in steps, between which the index must stay as it is. Ties are
broken by what entries are called, so the same entries are always ranked alike.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from heapq import merge, nlargest, nsmallest
from itertools import islice

import attrs

from ..json.intake import Steps
from .index import FULL, Index
from .synonyms import SYNONYMS
from .words import EMPTY, joined, parts, squeezed, stem

MOST = 100
"""Of a ranking, unless more is asked for."""
BREATH = 2000
"""Entries that are put in order in one step."""
MAX_QUERY_TERMS = 64
"""Terms of a query; further ones are not looked for."""

SYNONYM, JOINED, MISSPELLED, HINTED = 0.4, 0.7, 0.6, 0.7
"""What a term counts that is not in the query, beside one that is."""
COMMONPLACE = 1 / 8
"""A synonym that more entries than these have tells nothing."""
COVERAGE = 0.5
"""How much better an entry is if the query has all words of its name."""
FEEDBACK, MODELS, COMMON = 0.4, 5, 8
"""What the terms count that the best entries have in common, of how many, and how many terms."""
SIMILAR = 5
"""Letters of a term from which on it may be a slip for another."""
MOST_SIMILAR = 8
"""Terms that one may be a slip for."""

_PATH = re.compile(r"(?:^|\s)(?:~|\.{1,2})?/[\w.-]+|\b[\w-]+\.[a-z]{2,4}\b")
_URL = re.compile(r"\bhttps?://")
_FILE = tuple(stem(word) for word in ("file", "path"))
_PAGE = tuple(stem(word) for word in ("url", "website"))

Wanted = Callable[[int], bool]


@attrs.frozen
class Found:
    """How well entries fit, the best first."""

    numbers: list[int]
    scores: Mapping[int, float]


def rank(index: Index, query: str, most: int, wanted: Wanted | None = None) -> Steps[Found]:
    """The *most* that fit best, of those that are *wanted*."""
    asked = yield from _terms(index, query)
    scores: dict[int, float] = {}
    for term, share in asked.items():
        _count(index, term, share, scores)
        yield
    yield from _cover(index, asked, scores)
    exact = yield from _named(index, query)
    if not exact and len(scores) > MODELS:
        models = yield from _best(index, scores, MODELS)
        for term, share in _in_common(index, models, scores, asked).items():
            _count(index, term, share, scores)
            yield
    for number, bonus in exact.items():
        scores[number] = scores.get(number, 0.0) + bonus
    if wanted is not None:
        scores = {number: score for number, score in scores.items() if wanted(number)}
        yield
    best = yield from _best(index, scores, most)
    return Found(best, {number: scores[number] for number in best})


def _best(index: Index, scores: Mapping[int, float], most: int) -> Steps[list[int]]:
    few = list(scores)
    if len(few) > most:
        # The least of the best is soon found, and mostly few are as good.
        least = nlargest(most, scores.values())[-1]
        few = [number for number, score in scores.items() if score >= least]
        yield
    entries, runs = index.entries, list[list[int]]()

    def place(number: int) -> tuple[float, tuple[str, str, str], int]:
        return -scores[number], entries[number].place, number

    for start in range(0, len(few), BREATH):
        runs.append(sorted(few[start : start + BREATH], key=place)[:most])
        yield
    best: list[int] = []
    for number in islice(merge(*runs, key=place), most):
        best.append(number)
        if len(best) % BREATH == 0:
            yield
    return best


def _count(index: Index, term: str, share: float, scores: dict[int, float]) -> None:
    """Add what each entry has of a term."""
    if found := index.postings.get(term):
        weight, get = share * index.rarity(term) / FULL, scores.get
        for number, has in found.items():
            scores[number] = get(number, 0.0) + weight * has


def _cover(index: Index, asked: Mapping[str, float], scores: dict[int, float]) -> Steps[None]:
    """Raise those of whose names the query has much."""
    covered: dict[int, float] = {}
    for term, share in asked.items():
        for number, part in index.in_names.get(term, {}).items():
            covered[number] = covered.get(number, 0.0) + share * part
        yield
    for number, part in covered.items():
        if number in scores:  # else there was no room for its terms
            scores[number] *= 1 + COVERAGE * part
    yield


def query_terms(query: str) -> list[str]:
    """Of the words that stand in it."""
    found = (stem(part) for word in parts(query) for part in word if part not in EMPTY)
    return list(dict.fromkeys(found))


def _terms(index: Index, query: str) -> Steps[dict[str, float]]:
    """What is looked for, and how much each term counts."""
    said = [part for word in parts(query) for part in word][:MAX_QUERY_TERMS]
    kept = [stem(part) for part in said if part not in EMPTY]
    asked = dict.fromkeys(kept, 1.0)
    for term in dict.fromkeys(kept):
        if term not in index.postings:
            for other in (yield from _similar(index, term)):
                asked.setdefault(other, MISSPELLED)
    for pair in joined(said):
        if (term := stem(pair)) in index.postings:
            asked.setdefault(term, JOINED)
    for pattern, hinted in ((_PATH, _FILE), (_URL, _PAGE)):
        if pattern.search(query):
            for term in hinted:
                asked.setdefault(term, HINTED)
    for term in kept:
        for other in sorted(SYNONYMS.get(term, ())):
            if 0 < len(index.postings.get(other, ())) <= COMMONPLACE * len(index.entries):
                asked.setdefault(other, SYNONYM)
    return asked


def _similar(index: Index, term: str) -> Steps[list[str]]:
    """Terms that it is a slip for, or part of; nobody knows it as it is."""
    first, lengths = term[0], (len(term) - 1, len(term), len(term) + 1)
    every = iter(index.postings)
    found: list[str] = []
    while few := list(islice(every, 5000)):
        if len(term) >= SIMILAR:
            like = [each for each in few if each[0] == first and len(each) in lengths]
            found += [each for each in like if is_slip(term, each)]
        elif len(term) == 1 and not term.isascii():
            found += [each for each in few if len(each) == 2 and term in each]
        yield
    return sorted(found)[:MOST_SIMILAR]


def is_slip(a: str, b: str) -> bool:
    """Whether they differ in one letter, or in the order of two neighbours."""
    start, short = 0, min(len(a), len(b))
    while start < short and a[start] == b[start]:
        start += 1
    end = 0
    while end < short - start and a[-1 - end] == b[-1 - end]:
        end += 1
    of_a, of_b = a[start : len(a) - end], b[start : len(b) - end]
    return max(len(of_a), len(of_b)) <= 1 or (len(of_a) == 2 and of_a == of_b[::-1])


def _in_common(
    index: Index, best: Sequence[int], scores: Mapping[int, float], asked: Mapping[str, float]
) -> dict[str, float]:
    """Terms that the *best* entries have beside those *asked* for."""
    common: dict[str, float] = defaultdict(float)
    rarity: dict[str, float] = {}
    for number in best:
        for term in index.entries[number].terms:
            if term not in rarity:
                rarity[term] = index.rarity(term)
            common[term] += scores[number] * index.postings[term][number] * rarity[term]
    if not common:
        return {}
    most = max(common.values())
    new = sorted(common, key=lambda term: (-common[term], term))[: COMMON + 22]
    few = [term for term in new if term not in asked][:COMMON]
    return {term: FEEDBACK * common[term] / most for term in few}


EXACT, NEARLY, MENTIONED = 3e6, 2e6, 1e6
"""Of a name that is the query; that is it but for case and separators; that stands in it."""


def _named(index: Index, query: str) -> Steps[dict[int, float]]:
    """Entries whose very name it is, or has."""
    found: dict[int, float] = {}
    for text, bonus in _names_in(query):
        server, _, last = text.rpartition(".") if "." in text else text.rpartition("/")
        for number in index.by_name.get(squeezed(text), ()):
            exact = bonus == NEARLY and index.entries[number].name == text
            found[number] = max(found.get(number, 0.0), EXACT if exact else bonus)
            if len(found) % BREATH == 0:
                yield
        if server:
            for number in index.by_name.get(squeezed(last), ()):
                if index.entries[number].server == server:
                    found[number] = EXACT if bonus == NEARLY else max(found.get(number, 0), bonus)
        yield
    return found


def _names_in(query: str) -> Iterator[tuple[str, float]]:
    whole = query.strip()
    if whole:
        yield whole, NEARLY
    for word in whole.split()[:MAX_QUERY_TERMS]:
        bare = word.strip("\"'`,;:()[]{}?!")
        # A word like any other is no name only because something is called like that.
        if bare != whole and re.search(r"[\w][_./-][\w]|[a-z][A-Z]", bare):
            yield bare, MENTIONED


def wide(index: Index, found: Sequence[int], few: int = 4, first: int = 8) -> list[int]:
    """Several servers before the fifth of one, among the *first*; the rest as they come."""
    ahead: list[int] = []
    behind: list[int] = []
    of_server: Counter[str] = Counter()
    for number in found:
        server = index.entries[number].server
        if len(ahead) < first and of_server[server] < few:
            of_server[server] += 1
            ahead.append(number)
        else:
            behind.append(number)
    return ahead + behind


def best_servers(index: Index, found: Found) -> list[str]:
    """By the best of each, and a little by those that follow it."""
    of_server: dict[str, list[float]] = defaultdict(list)
    for number in found.numbers:
        of_server[index.entries[number].server].append(found.scores[number])
    worth = {server: best[0] + 0.6 * sum(best[1:4]) for server, best in of_server.items()}
    return sorted(worth, key=lambda server: -worth[server])


CLOSEST = 5
"""Names that are told if nothing fits."""


def closest(index: Index, query: str) -> Steps[list[int]]:
    """Entries whose names have most in common with *query*, letter by letter."""
    wanted = _threes(squeezed(query[:MAX_CLOSEST]))
    likeness: list[tuple[float, str, int]] = []
    for at, (name, numbers) in enumerate(index.by_name.items()):
        if at % 200 == 199:
            yield
        have = _threes(name[:MAX_CLOSEST])
        if common := len(wanted & have):
            likeness.append((-common / (len(wanted) + len(have)), name, min(numbers)))
    return [number for *_, number in nsmallest(CLOSEST, likeness)]


MAX_CLOSEST = 100
"""Characters of a name and of a query that are compared, if nothing fits."""


def _threes(text: str) -> set[str]:
    return {text[at : at + 3] for at in range(max(1, len(text) - 2))}
