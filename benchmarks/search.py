"""How often a search shows the right tool, in how many tokens, and how long it takes.

``--corpus DIR`` has ``tools.json`` (server, name, description, inputSchema) and ``queries.json``
(a query, and the tools that do it). Shown is: the share of queries whose right tool is among the
first 1, 5, 10, 20, the share whose answer of at most 500 tokens names it, what that answer has
(counted by tiktoken if it is installed and finds cl100k_base, else by our own estimate), and the
time of a query over 5,000 tools. ``--folds N`` does the same for weights that were not chosen on
the queries they are judged by: for each part of the queries, those that are best on all others.

Beside it: the BM25 class of fastmcp, if ``--fastmcp PYTHON`` has it. Exits with 1 if fewer than
nine of ten queries are answered, or an answer is too long.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import attrs

from emceepee_trio.model.json.intake import finished
from emceepee_trio.model.search import index as indexing
from emceepee_trio.model.search import ranking
from emceepee_trio.model.search.answer import LINES, ROOM, Findings, Hit, others
from emceepee_trio.model.search.index import Entry, Index
from emceepee_trio.model.search.ranking import MOST, rank, wide
from emceepee_trio.model.search.signatures import arguments_of
from emceepee_trio.model.search.tokens import tokens
from emceepee_trio.model.wire import dumps

Json = dict[str, Any]
T = TypeVar("T")
MANY = 5000
KS = (1, 5, 10, 20)

PEER = """
import asyncio, json, sys
from fastmcp.server.transforms.search.bm25 import BM25SearchTransform
from fastmcp.tools import Tool
tools, queries = json.load(sys.stdin)
made = []
for at, tool in enumerate(tools):
    made.append(Tool(
        name=f"{tool['server']}_{tool['name']}", description=tool.get("description") or "",
        parameters=tool["inputSchema"],
    ))
search = BM25SearchTransform(max_results=20)
async def main():
    found = []
    for query in queries:
        found.append([made.index(tool) for tool in await search._search(made, query)])
    print(json.dumps(found))
asyncio.run(main())
"""


def counter() -> tuple[str, Callable[[str], float]]:
    """What counts tokens, and how it is called."""
    try:
        import tiktoken  # type: ignore[import-not-found, unused-ignore] # noqa: PLC0415

        encoding = tiktoken.get_encoding("cl100k_base")
    except Exception as error:  # noqa: BLE001 - not there, or not without a network
        return f"our estimate ({type(error).__name__} of tiktoken)", tokens
    return "cl100k_base", lambda text: len(encoding.encode(text))


@attrs.frozen
class Corpus:
    tools: Sequence[Json]
    queries: Sequence[Json]

    @classmethod
    def at(cls, folder: Path) -> Corpus:
        tools, queries = (
            json.loads((folder / f"{name}.json").read_text("utf-8"))
            for name in ("tools", "queries")
        )
        return cls(tools, queries)

    def index(self) -> Index:
        index = Index()
        for number, tool in enumerate(self.tools):
            said = [(name, text_of(schema)) for name, schema, _ in arguments_of(tool)]
            index.add(
                number,
                Entry(
                    "tools",
                    tool["server"],
                    tool["name"],
                    description=tool.get("description") or "",
                    parameters=tuple(said),
                ),
            )
        return index

    def right(self, query: Json) -> set[int]:
        wanted = {tuple(each) for each in query["right"]}
        return {n for n, tool in enumerate(self.tools) if (tool["server"], tool["name"]) in wanted}


def text_of(schema: Any) -> str:
    return str(schema.get("description", "")) if isinstance(schema, dict) else ""


def answer(corpus: Corpus, index: Index, query: str) -> tuple[list[int], str]:
    found = finished(rank(index, query, MOST))
    first = wide(index, found.numbers)
    hits = [Hit("tools", corpus.tools[n]["server"], corpus.tools[n]) for n in first]
    said = Findings(ROOM)
    finished(said.fill(hits, others(index, [found], set(first[:LINES]), "tools")))
    return first, dumps(said.to_json())


def names_it(text: str, tool: Json) -> bool:
    """Whether an answer has that tool of that server."""
    said = json.loads(text)
    head = f"{tool['server']}.{tool['name']}("
    named = said.get("more", {}).get(tool["server"], "").split(" ")
    return any(line.startswith(head) for line in said["found"]) or tool["name"] in named


def row(name: str, hits: Sequence[float], *more: str) -> None:
    print(f"{name:<34}" + "".join(f"{each:7.2f}" for each in hits) + "   " + "  ".join(more))


def judged(corpus: Corpus, firsts: Sequence[Sequence[int]]) -> list[float]:
    """The share whose right tool is among so many."""
    places = [
        min((first.index(n) for n in corpus.right(query) if n in first), default=MOST)
        for query, first in zip(corpus.queries, firsts, strict=True)
    ]
    return [statistics.mean(place < k for place in places) for k in KS]


def shown(corpus: Corpus, texts: Sequence[str]) -> list[bool]:
    return [
        any(names_it(text, corpus.tools[n]) for n in corpus.right(query))
        for query, text in zip(corpus.queries, texts, strict=True)
    ]


def peer(corpus: Corpus, python: str) -> None:
    given = [corpus.tools, [query["query"] for query in corpus.queries]]
    ran = subprocess.run(
        [python, "-c", PEER], input=json.dumps(given), capture_output=True, text=True, check=False
    )
    if ran.returncode:
        print(f"fastmcp: {ran.stderr.strip().splitlines()[-1]}")
    else:
        row("fastmcp, its BM25 class", judged(corpus, json.loads(ran.stdout)))


def many(corpus: Corpus) -> tuple[Index, float, float]:
    """An index of 5,000 tools, and how long one took at the median and at the most."""
    index, spent = Index(), []
    source = corpus.index()
    copies = itertools.cycle(range(len(corpus.tools)))
    for number, at in zip(range(MANY), copies, strict=False):
        tool, turn = corpus.tools[at], number // len(corpus.tools)
        server = source.entries[at].server + (f"-{turn}" if turn else "")
        said = tuple((name, text_of(schema)) for name, schema, _ in arguments_of(tool))
        entry = Entry("tools", server, tool["name"], "", tool.get("description") or "", said)
        since = time.process_time()
        index.add(number, entry)
        spent.append(time.process_time() - since)
    return index, statistics.median(spent), max(spent)


def speed(corpus: Corpus) -> None:
    index, median, longest = many(corpus)
    print(f"\n{MANY} tools: {index.size} terms of theirs, {len(index.postings)} different ones")
    print(f"to add a tool: {median * 1e3:.2f} ms, at most {longest * 1e3:.2f}")
    times = []
    for query in [query["query"] for query in corpus.queries] * 3:
        since = time.process_time()
        finished(rank(index, query, MOST))
        times.append((time.process_time() - since) * 1000)
    cut = statistics.quantiles(times, n=100)
    print(f"a query: p50 {cut[49]:.2f} ms, p99 {cut[98]:.2f} ms of CPU")


GRID: Sequence[tuple[str, Any, str, Sequence[float]]] = (
    ("saturation", indexing, "SATURATION", (0.9, 1.2, 1.6)),
    ("synonyms", ranking, "SYNONYM", (0.25, 0.4, 0.55)),
    ("coverage", ranking, "COVERAGE", (0.25, 0.5, 1.0)),
    ("feedback", ranking, "FEEDBACK", (0.0, 0.2, 0.4, 0.6)),
)


def settings() -> Iterator[dict[str, float]]:
    for chosen in itertools.product(*(values for *_, values in GRID)):
        yield dict(zip((name for name, *_ in GRID), chosen, strict=True))


def take(setting: dict[str, float]) -> None:
    for name, module, constant, _ in GRID:
        setattr(module, constant, setting[name])


def cross_validate(corpus: Corpus, folds: int) -> None:
    """Weights chosen without the queries they are judged by, and those that we have."""
    usual = {name: getattr(module, constant) for name, module, constant, _ in GRID}
    order = list(range(len(corpus.queries)))
    random.Random(1).shuffle(order)
    hits: list[list[bool]] = []
    for setting in (every := list(settings())):
        take(setting)
        index = corpus.index()
        texts = [answer(corpus, index, query["query"])[1] for query in corpus.queries]
        hits.append(shown(corpus, texts))
    take(usual)
    right = 0
    for fold in range(folds):
        judges = order[fold::folds]
        rest = set(order) - set(judges)
        best = max(range(len(every)), key=lambda s: sum(hits[s][at] for at in rest))
        right += sum(hits[best][at] for at in judges)
    shares = sorted(statistics.mean(each) for each in hits)
    print(f"\nof {len(every)} settings: {shares[0]:.3f} to {shares[-1]:.3f} of the queries shown")
    print(f"chosen without those that judge, {folds} parts: {right / len(order):.3f}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--corpus", type=Path)
    parser.add_argument("--folds", type=int, default=0)
    parser.add_argument("--fastmcp", metavar="PYTHON")
    parser.add_argument("--misses", action="store_true", help="print queries without an answer")
    arguments, _ = parser.parse_known_args()
    if arguments.corpus is None:
        print("nothing is measured without --corpus DIR")
        return 0
    corpus = Corpus.at(arguments.corpus)
    name, count = counter()
    index = corpus.index()
    answers = [answer(corpus, index, query["query"]) for query in corpus.queries]
    firsts, texts = [first for first, _ in answers], [text for _, text in answers]
    is_shown = shown(corpus, texts)
    sizes = [count(text) for text in texts]
    share = statistics.mean(is_shown)
    print(
        f"{'right tool among the first':<34}" + "".join(f"{k:7}" for k in KS) + "   in the answer"
    )
    row("this", judged(corpus, firsts), f"{share:.3f}")
    if arguments.fastmcp:
        peer(corpus, arguments.fastmcp)
    ratios = [tokens(text) / size for text, size in zip(texts, sizes, strict=True)]
    print(f"\ntokens ({name}): {statistics.mean(sizes):.0f} on average, at most {max(sizes)}")
    print(f"our estimate beside that: {min(ratios):.2f} to {max(ratios):.2f}")
    if arguments.misses:
        for query in itertools.compress(corpus.queries, (not each for each in is_shown)):
            print(f"  {query['query']!r}: {query['right']}")
    speed(corpus)
    if arguments.folds:
        cross_validate(corpus, arguments.folds)
    return int(share < 0.9 or max(sizes) > ROOM)


if __name__ == "__main__":
    sys.exit(main())
