"""Which sessions there are, and which have just ended. Who has done nothing is a number."""

from __future__ import annotations

import time
from typing import Any

from ....model.json.intake import Steps
from ....model.text.redact import label
from ....model.timeline.records import Record, Records
from ....model.timeline.replay import Timeline
from ....model.timeline.rows import UNDER_WAY
from ....model.timeline.window import BAD
from ....model.wire import timestamp
from ....waits.slices import in_slices
from ..common.pages import Data, Pages
from ..common.requests import visit

MAX_SHOWN = 200
"""Sessions of the list, the newest; the others are counted."""


def add_to(pages: Pages, records: Records) -> None:
    pages.section("/sessions", "Sessions")

    @pages.view("/sessions", "sessions.html")
    async def sessions() -> Data:
        whose, now = visit().visitor.whose, time.time()
        records.forget(now)
        theirs = [record for record in records if whose in (None, record.principal)]
        return await in_slices(_listed(pages, theirs, now))


def _listed(pages: Pages, records: list[Record], now: float) -> Steps[Data]:
    worked = []
    for number, record in enumerate(records, 1):
        if record.has_worked:
            worked.append(record)
        if number % 50 == 0:
            yield
    worked.sort(key=lambda record: (record.ended_at is not None, -record.opened_at))
    shown = []
    for record in worked[:MAX_SHOWN]:
        timeline = yield from record.replayed()
        shown.append(_session(pages, record, timeline, now))
        yield
    return {
        "sessions": shown,
        "more": len(worked) - len(shown),
        "idle": sum(record.ended_at is None for record in records) - _living(worked),
        "keeps": bool(pages.manager.config.limits.facts),
    }


def _living(records: list[Record]) -> int:
    return sum(record.ended_at is None for record in records)


def _session(pages: Pages, record: Record, timeline: Timeline, now: float) -> dict[str, Any]:
    calls = [row for row in timeline.rows.values() if row.kind == "call"]
    work = [row for row in timeline.rows.values() if row.kind != "connection"]
    last = max((row.ends or now for row in work), default=record.opened_at)
    return {
        "name": pages.names.of(record.id),
        "label": label(record.id),
        "client": timeline.client,
        "principal": record.principal,
        "opened_at": timestamp(record.opened_at),
        "ended_at": None if record.ended_at is None else timestamp(record.ended_at),
        "why_ended": timeline.why_ended,
        "calls": len(calls),
        "under_way": sum(row.outcome == UNDER_WAY for row in calls),
        "failed": sum(row.outcome in BAD for row in calls),
        "questions": sum(row.kind == "question" and row.ends is None for row in work),
        "used_ago_s": round(max(now - last, 0.0), 1),
    }
