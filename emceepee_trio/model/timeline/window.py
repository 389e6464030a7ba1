"""What somebody looks at: a piece of time, and rows of some servers, tools and outcomes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

import attrs

from .rows import UNDER_WAY, Row

SHORTEST = 0.001
"""Seconds that a window has at least."""
LEAST = 0.25
"""Percent of its width that anything has which was there at all."""
STEPS = (
    *(0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5),
    *(1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400),
)
TICKS = 7
"""At most as many, whatever the window."""
BUCKETS = 60
"""Of the overview."""


@attrs.frozen
class Window:
    """Times as facts have them."""

    begins: float
    ends: float

    @property
    def length(self) -> float:
        return self.ends - self.begins

    def share(self, at: float) -> float:
        """Where that is, in percent of the width; what is outside is at the edge."""
        return min(max((at - self.begins) / self.length * 100, 0.0), 100.0)

    def bar(self, begins: float, ends: float) -> tuple[float, float] | None:
        """Where it stands and how wide it is, in percent; None if it is outside."""
        if ends < self.begins or begins > self.ends:
            return None
        x = self.share(begins)
        width = max(self.share(ends) - x, LEAST)
        return round(min(x, 100 - width), 3), round(width, 3)

    def ticks(self, since: float) -> list[tuple[float, str]]:
        """Round times after *since*: where, in percent, and what it says there."""
        step = next((step for step in STEPS if self.length / step <= TICKS), STEPS[-1])
        first = math.ceil((self.begins - since) / step - 1e-9)
        last = math.floor((self.ends - since) / step + 1e-9)
        # Of a session that has lasted for months, some.
        stride = max(1, math.ceil((last - first + 1) / (TICKS + 1)))
        return [
            (round(self.share(since + n * step), 3), after(n * step, step))
            for n in range(first, last + 1, stride)
        ]

    def zoomed(self, times: float) -> Window:
        """Around the same middle."""
        middle = (self.begins + self.ends) / 2
        half = max(self.length * times, SHORTEST) / 2
        return Window(middle - half, middle + half)

    def moved(self, lengths: float) -> Window:
        by = self.length * lengths
        return Window(self.begins + by, self.ends + by)

    def within(self, whole: Window) -> Window:
        """What of it is there, at least for a moment."""
        begins = max(min(self.begins, whole.ends - SHORTEST), whole.begins)
        return Window(begins, max(min(self.ends, whole.ends), begins + SHORTEST))

    def shows(self, row: Row) -> bool:
        return row.begins <= self.ends and (row.ends is None or row.ends >= self.begins)


def after(seconds: float, step: float) -> str:
    """As ticks say it: no more of it than changes from one to the next."""
    sign, seconds = ("-" if seconds < 0 else ""), abs(seconds)
    if step < 0.001:
        return f"{sign}{seconds * 1000:.1f} ms"
    if step < 1 and seconds < 1:
        return f"{sign}{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{sign}{seconds:.{_digits(step)}f} s"
    minutes, rest = divmod(seconds, 60)
    digits = _digits(step)
    tail = f"{rest:0{3 + digits if digits else 2}.{digits}f}"
    hours, minutes = divmod(int(minutes), 60)
    return f"{sign}{hours}:{minutes:02}:{tail}" if hours else f"{sign}{minutes}:{tail}"


def _digits(step: float) -> int:
    return max(0, -math.floor(math.log10(step) + 1e-9)) if step < 1 else 0


@attrs.frozen
class Filter:
    """Which rows: of any of these, or of all where none is named."""

    kinds: frozenset[str] = frozenset()
    servers: frozenset[str] = frozenset()
    tools: frozenset[str] = frozenset()
    outcomes: frozenset[str] = frozenset()

    def takes(self, row: Row) -> bool:
        return (
            (not self.kinds or row.kind in self.kinds)
            and (not self.servers or row.server in self.servers)
            and (not self.tools or (row.kind == "call" and row.name in self.tools))
            and (not self.outcomes or row.outcome in self.outcomes)
        )


@attrs.frozen
class Bucket:
    """A piece of the overview: how many rows began in it, of which outcome."""

    begins: float
    ends: float
    counts: Mapping[str, int]

    @property
    def count(self) -> int:
        return sum(self.counts.values())

    @property
    def failed(self) -> int:
        return sum(n for outcome, n in self.counts.items() if outcome in BAD)

    @property
    def under_way(self) -> int:
        return self.counts.get(UNDER_WAY, 0)


BAD = frozenset({"error", "failed", "expired", "lost", "not made", "rejected"})
"""Outcomes that nobody wanted."""


def overview(rows: Sequence[Row], all_of_it: Window) -> list[Bucket]:
    """The whole, in pieces of the same length."""
    length = all_of_it.length / BUCKETS
    counts: list[Counter[str]] = [Counter() for _ in range(BUCKETS)]
    for row in rows:
        number = int((row.begins - all_of_it.begins) / length)
        counts[min(max(number, 0), BUCKETS - 1)][row.outcome] += 1
    return [
        Bucket(all_of_it.begins + n * length, all_of_it.begins + (n + 1) * length, counted)
        for n, counted in enumerate(counts)
    ]
