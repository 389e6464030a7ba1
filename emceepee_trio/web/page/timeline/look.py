"""What of a timeline somebody wants to see, as it stands in the address."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

import attrs

from ....errors import InvalidArguments
from ....model.timeline.rows import Row
from ....model.timeline.window import Filter, Window

PAGE = 60
"""Rows shown at once, beside the connections that were there."""
MAX_BESIDE = 20
"""Of those, the newest; and of older rows that are under way."""
FILTERS = {"kind": "kinds", "server": "servers", "tool": "tools", "outcome": "outcomes"}
MARGIN = 0.02
"""Of the width, behind what is last."""


@attrs.frozen
class Look:
    """Times are seconds since the session was opened."""

    begins: float | None = None
    ends: float | None = None
    last: float | None = None
    """The last so many seconds, whenever that is."""
    page: int = 1
    """The newest are on the first."""
    only: Mapping[str, Sequence[str]] = attrs.field(factory=dict)

    @classmethod
    def of(cls, said: Mapping[str, Sequence[str]]) -> Look:
        """
        Raises:
            InvalidArguments: what should be a number is none.
        """

        def number(name: str) -> float | None:
            text = next((each for each in said.get(name, ()) if each), None)
            try:
                found = None if text is None else float(text)
            except ValueError:
                found = math.nan
            if found is not None and not math.isfinite(found):
                raise InvalidArguments(f"{name} is a number of seconds")
            return found

        page = number("page")
        return cls(
            number("from"),
            number("to"),
            number("last"),
            max(1, int(page or 1)),
            {name: [each for each in said.get(name, ()) if each] for name in FILTERS},
        )

    @property
    def filter(self) -> Filter:
        return Filter(**{FILTERS[name]: frozenset(wanted) for name, wanted in self.only.items()})

    def window(self, whole: Window, since: float) -> Window:
        if self.last is not None:
            return Window(whole.ends - max(self.last, 0.001), whole.ends).within(whole)
        begins = whole.begins if self.begins is None else since + self.begins
        ends = whole.ends if self.ends is None else since + self.ends
        return Window(begins, ends).within(whole)

    def link(self, **changes: Any) -> str:
        """A query with other values in it; None takes one out."""
        values: dict[str, Any] = {
            "from": self.begins,
            "to": self.ends,
            "last": self.last,
            "page": None if self.page == 1 else self.page,
            **self.only,
        } | {name.rstrip("_"): value for name, value in changes.items()}
        said = {
            name: round(value, 4) if isinstance(value, float) else value
            for name, value in values.items()
            if value not in (None, [], "")
        }
        return "?" + urlencode(said, doseq=True)

    @property
    def is_zoomed(self) -> bool:
        return (self.begins, self.ends, self.last) != (None, None, None)

    def looking_at(self, window: Window | None, since: float) -> str:
        if window is None:
            return self.link(from_=None, to=None, last=None, page=None)
        begins, ends = window.begins - since, window.ends - since
        return self.link(from_=begins, to=ends, last=None, page=None)


def whole_of(rows: Iterable[Row], opened_at: float, now: float) -> Window:
    """From the first thing that was done to the last, or to now while something is."""
    rows = list(rows)
    work = [row for row in rows if row.kind != "connection"] or rows
    begins = min((row.begins for row in work), default=opened_at)
    ends = max((row.ends or now for row in work), default=now)
    return Window(begins, ends + max((ends - begins) * MARGIN, 0.001))


@attrs.frozen
class Part:
    """The rows of a page, in the order of time; the newest are on the first one."""

    beside: Sequence[Row]
    """Connections that were there meanwhile, and what began before and still is under way."""
    rows: Sequence[Row]
    window: Window
    """In which all of those are, if there are others beside them; else what was asked for."""
    count: int
    pages: int
    first: int
    """Number of the first row, from 1."""


def part_of(fitting: Sequence[Row], page: int, seen: Window) -> Part:
    links = [row for row in fitting if row.kind == "connection"]
    others = [row for row in fitting if row.kind != "connection"]
    ends = max(0, len(others) - (page - 1) * PAGE)
    rows = others[max(0, ends - PAGE) : ends]
    window = seen
    if len(rows) < len(others):
        until = max((row.ends or seen.ends for row in rows), default=seen.ends)
        since = min((row.begins for row in rows), default=seen.begins)
        window = Window(since, until + (until - since) * MARGIN).within(seen)
        links = [row for row in links if window.shows(row)]
    older = [row for row in others[: max(0, ends - PAGE)] if row.ends is None]
    beside = [*links[-MAX_BESIDE:], *older[-MAX_BESIDE:]]
    pages = max(1, -(-len(others) // PAGE))
    return Part(beside, rows, window, len(others), pages, max(0, ends - PAGE) + 1)


def offered(rows: Iterable[Row], asked: Look) -> dict[str, list[dict[str, Any]]]:
    """What one can choose, and how often it is there."""
    counts: dict[str, Counter[str]] = {name: Counter(asked.only[name]) for name in FILTERS}
    for name in FILTERS:
        counts[name] = Counter(dict.fromkeys(asked.only[name], 0))
    for row in rows:
        counts["kind"][row.kind] += 1
        counts["outcome"][row.outcome] += 1
        if row.server:
            counts["server"][row.server] += 1
        if row.kind == "call":
            counts["tool"][row.name] += 1
    return {
        name: [
            {"name": each, "count": count, "chosen": each in asked.only[name]}
            for each, count in sorted(counts[name].items(), key=lambda pair: (-pair[1], pair[0]))
        ]
        for name in FILTERS
    }
