"""What was measured, and the tables that are made of it. Knows nobody who is measured."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from statistics import median
from typing import Any


@dataclass(frozen=True)
class Measure:
    """One column."""

    name: str
    head: str
    digits: int = 2
    more_is_better: bool = False


MEASURES = (
    Measure("p50_ms", "p50 ms"),
    Measure("p99_ms", "p99 ms"),
    Measure("cpu_us", "CPU µs", 0),
    Measure("per_s_16", "/s at 16", 0, more_is_better=True),
    Measure("per_s_64", "/s at 64", 0, more_is_better=True),
    Measure("ping_ms", "ping ms"),
    Measure("list_ms", "list ms"),
    Measure("start_ms", "start ms", 0),
    Measure("mb", "MB", 0),
    Measure("session_kb", "kB/sess.", 0),
    Measure("programs", "programs", 0),
    Measure("k_instructions", "k instr.", 0),
)


@dataclass(eq=False)
class Row:
    """Of one contender: a sample of a measure for each round."""

    name: str
    role: str
    way: str
    samples: dict[str, list[float]] = field(default_factory=dict)

    def note(self, **found: float) -> None:
        for name, value in found.items():
            self.samples.setdefault(name, []).append(value)

    def middle(self, measure: Measure) -> float | None:
        found = self.samples.get(measure.name)
        return median(found) if found else None

    def ratio(self, other: Row, measure: Measure) -> float | None:
        """To another: round by round, since what slows one round slows both; then the middle."""
        mine, theirs = self.samples.get(measure.name, []), other.samples.get(measure.name, [])
        pairs = [(one, two) for one, two in zip(mine, theirs, strict=False) if two > 0]
        return median(one / two for one, two in pairs) if pairs else None

    def as_json(self) -> dict[str, Any]:
        return {"name": self.name, "role": self.role, "way": self.way, "samples": self.samples}


def tables(rows: list[Row]) -> Iterator[str]:
    """Of each way: what was measured, and how many times that of the others ours is."""
    for way in dict.fromkeys(row.way for row in rows):
        here = [row for row in rows if row.way == way]
        measured = [each for each in MEASURES if any(row.middle(each) is not None for row in here)]
        yield ""
        yield f"{way:32}" + "".join(f"{each.head:>10}" for each in measured)
        for row in here:
            yield f"{row.name:32}" + "".join(
                _cell(row.middle(each), each.digits) for each in measured
            )
        for ours in here:
            if ours.role == "ours":
                yield ""
                yield f"{ours.name}, times"
                for other in here:
                    if other is not ours:
                        yield f"  {other.name:30}" + "".join(
                            _cell(ours.ratio(other, each), 2) for each in measured
                        )


def _cell(value: float | None, digits: int) -> str:
    return f"{'–':>10}" if value is None else f"{value:10.{digits}f}"


def ratios(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """Each of ours to each of the others, on the same way."""
    rows = list(rows)
    return [
        {
            "of": ours.name,
            "to": other.name,
            "way": ours.way,
            "times": {each.name: ours.ratio(other, each) for each in MEASURES},
        }
        for ours in rows
        if ours.role == "ours"
        for other in rows
        if other.way == ours.way and other is not ours
    ]
