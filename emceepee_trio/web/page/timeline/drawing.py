"""Where everything stands in the picture, in percent of its width: SVG has no need of styles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ....model import facts
from ....model.facts import Fact
from ....model.timeline.rows import PHASES, Phase, Row
from ....model.timeline.window import BAD, Window, overview
from ....model.timeline.words import SAYS, duration
from .look import Look

MARKS: Mapping[type[Fact], str] = {
    facts.CallPromoted: "promoted",
    facts.ResultRead: "read",
    facts.TimerFired: "fired",
    facts.ChildEnded: "ended",
    facts.ConnectionLost: "lost",
}
"""What is drawn of the facts of a row, beside what it waited for."""

LEGEND: Sequence[Phase] = (
    "turn",
    "connection",
    "reconnection",
    "preparation",
    "server",
    "question",
)
"""What calls wait for."""


def drawn(rows: Sequence[Row], shown: Sequence[Row], seen: Window, whole: Window) -> dict[str, Any]:
    return {"rows": [row_drawn(row, seen) for row in shown], "overview": _overview(rows, whole)}


def row_drawn(row: Row, seen: Window) -> dict[str, Any]:
    now = seen.ends
    bars = []
    for span in row.spans:
        bar = seen.bar(span.begins, now if span.ends is None else max(span.ends, span.begins))
        if bar is not None:
            lasted = duration((now if span.ends is None else span.ends) - span.begins)
            bars.append({"x": bar[0], "width": bar[1], "phase": span.phase, "lasted": lasted})
            bars[-1]["says"] = PHASES[span.phase]
    if not bars and (bar := seen.bar(row.begins, row.ends or row.begins)) is not None:
        bars.append({"x": bar[0], "width": bar[1], "phase": "server", "lasted": "0 ms", "says": ""})
    marks = [
        {"x": round(seen.share(fact.at), 3), "kind": kind, "says": SAYS[type(fact)](fact)}
        for fact in row.facts
        if (kind := MARKS.get(type(fact))) is not None and seen.begins <= fact.at <= seen.ends
    ]
    return {"bars": bars, "marks": marks, "goes_on": row.ends is None}


def _overview(rows: Sequence[Row], whole: Window) -> list[dict[str, Any]]:
    """Bars of the whole, of which each leads to its piece of time; heights in percent."""
    buckets = overview([row for row in rows if row.kind != "connection"], whole)
    most = max((bucket.count for bucket in buckets), default=0) or 1
    width = 100 / len(buckets)
    return [
        {
            "x": round(n * width, 3),
            "width": round(width, 3),
            "window": Window(bucket.begins, bucket.ends),
            "height": round(bucket.count / most * 100, 1),
            "bad": round(bucket.failed / most * 100, 1),
            "count": bucket.count,
            "failed": bucket.failed,
        }
        for n, bucket in enumerate(buckets)
    ]


def zooms(asked: Look, seen: Window, whole: Window, since: float) -> list[dict[str, Any]]:
    """Other windows that one may want, each a link; none that shows the same."""

    def to(label: str, window: Window | None) -> dict[str, Any]:
        return {"label": label, "query": asked.looking_at(window, since)}

    found = []
    if asked.is_zoomed:
        found.append(to("All of it", None))
    if seen != whole:
        found.append(to("Zoom out", seen.zoomed(3).within(whole)))
    if seen.length > 0.002:
        found.append(to("Zoom in", seen.zoomed(1 / 3).within(whole)))
    if seen.begins > whole.begins:
        found.append(to("Earlier", seen.moved(-0.75).within(whole)))
    if seen.ends < whole.ends:
        found.append(to("Later", seen.moved(0.75).within(whole)))
    for seconds, label in ((10, "Last 10 s"), (60, "Last minute"), (600, "Last 10 min")):
        if seconds < whole.length and asked.last != seconds:
            query = asked.link(from_=None, to=None, last=seconds, page=None)
            found.append({"label": label, "query": query})
    return found


def tone(outcome: str, *, waits_for_a_person: bool = False) -> str:
    """How the state of a row is coloured; its word says the same."""
    if outcome in BAD:
        return "bad"
    if waits_for_a_person:
        return "wait"
    return {"under way": "good"}.get(outcome, "")
