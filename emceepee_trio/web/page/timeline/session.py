"""One session: what became of its calls, questions, connections and timers, and what it cost."""

from __future__ import annotations

import time
from typing import Any

from quart import Response, request

from ....errors import NotFound
from ....model.json.intake import Steps
from ....model.text.redact import label
from ....model.timeline.records import Record, Records
from ....model.timeline.replay import Timeline
from ....model.timeline.rows import PHASES, Row
from ....model.timeline.window import Window
from ....model.timeline.words import SAYS, duration, fact_json, row_json
from ....model.wire import timestamp
from ....waits.slices import in_slices
from ..common.pages import Pages
from ..common.requests import API, json_response, visit, wants_json
from .drawing import LEGEND, drawn, tone, zooms
from .look import Look, offered, part_of, whole_of

ROW = ("within", "ended_at", "told_bytes", "server", "waits_for")
"""What a row has or has not."""
TOKEN = 4
"""Bytes that one token has, about."""


def add_to(pages: Pages, records: Records) -> None:
    async def session(name: str) -> Response:
        whose, now = visit().visitor.whose, time.time()
        record = _record(pages, records, name, whose)
        asked = Look.of(request.args.to_dict(flat=False))
        said = await in_slices(_shown(pages, record, asked, now, is_drawn=not wants_json()))
        if wants_json():
            return json_response(200, said)
        return await pages.html(200, "session.html", {**said, "asked": asked})

    for path, name in (
        ("/sessions/<name>", "session"),
        (f"{API}/sessions/<name>", "api_session"),
        (f"{API}/sessions/<name>/timeline", "api_timeline"),
    ):
        pages.blueprint.add_url_rule(path, name, session, methods=["GET"])


def _shown(
    pages: Pages, record: Record, asked: Look, now: float, *, is_drawn: bool
) -> Steps[dict[str, Any]]:
    """As JSON; what is drawn of it is for people."""
    timeline = yield from record.replayed()
    rows = list(timeline.rows.values())
    whole = whole_of(rows, record.opened_at, now)
    seen = asked.window(whole, record.opened_at)
    yield
    chosen = [row for row in rows if seen.shows(row)]
    yield
    fitting = [row for row in chosen if asked.filter.takes(row)]
    part = part_of(fitting, asked.page, seen)
    shown = [*part.beside, *part.rows]
    yield
    said: dict[str, Any] = {
        "session": _session(pages, record, timeline, now),
        "window": _times(seen, record.opened_at),
        "whole": _times(whole, record.opened_at),
        "filters": offered(chosen, asked),
        "count": part.count,
        "pages": part.pages,
        "page": asked.page,
        "ledger": _ledger(record),
        "rows": [row_json(row, now) for row in shown],
    }
    if not is_drawn:
        return said
    yield
    picture = drawn(rows, shown, part.window, whole)
    said["rows"] = [
        {**dict.fromkeys(ROW), **entry, **place, **_words(row, now)}
        for row, entry, place in zip(shown, said["rows"], picture["rows"], strict=True)
    ]
    since = record.opened_at
    for bucket in picture["overview"]:
        bucket["query"] = asked.looking_at(bucket["window"].within(whole), since)
    yield
    said["drawing"] = {
        "overview": picture["overview"],
        "ticks": part.window.ticks(since),
        "zooms": zooms(asked, part.window, whole, since),
        "seen": whole.bar(part.window.begins, part.window.ends),
        "beside": sum(row.kind == "connection" for row in part.beside),
        "first": part.first,
        "last": part.first + len(part.rows) - 1,
        "legend": [(phase, PHASES[phase]) for phase in LEGEND],
        "newer": asked.link(page=asked.page - 1) if asked.page > 1 else None,
        "older": asked.link(page=asked.page + 1) if asked.page < part.pages else None,
        "without_filters": asked.link(kind=None, server=None, tool=None, outcome=None),
        "kept": _kept(asked),
        "length": duration(seen.length),
    }
    return said


def _record(pages: Pages, records: Records, name: str, whose: str | None) -> Record:
    for record in records:
        if whose in (None, record.principal) and pages.names.of(record.id) == name:
            return record
    if not pages.manager.config.limits.facts:
        raise NotFound("no timelines are kept; limits.facts of the configuration says how much is")
    raise NotFound("there is no such session any more; they are kept for a while after their end")


def _session(pages: Pages, record: Record, timeline: Timeline, now: float) -> dict[str, Any]:
    return {
        "name": pages.names.of(record.id),
        "label": label(record.id),
        "client": timeline.client,
        "principal": record.principal,
        "opened_at": timestamp(record.opened_at),
        "lasted_s": round((record.ended_at or now) - record.opened_at, 1),
        "ended_at": None if record.ended_at is None else timestamp(record.ended_at),
        "why_ended": timeline.why_ended,
        "dropped_facts": record.dropped,
    }


def _times(window: Window, since: float) -> dict[str, Any]:
    return {
        "from_s": round(window.begins - since, 4),
        "to_s": round(window.ends - since, 4),
        "from": timestamp(window.begins),
        "to": timestamp(window.ends),
    }


def _ledger(record: Record) -> dict[str, Any]:
    """What the client's model had to read, in bytes, and about as many tokens."""
    lines = [{"server": name or "others", **_cost(*told)} for name, told in record.told.items()]
    lines.sort(key=lambda line: -line["tokens"])
    definitions, results = (sum(told[which] for told in record.told.values()) for which in (0, 1))
    return {"servers": lines, **_cost(definitions, results)}


def _cost(definitions: int, results: int) -> dict[str, Any]:
    return {
        "definitions_bytes": definitions,
        "results_bytes": results,
        "tokens": (definitions + results) // TOKEN,
    }


def _words(row: Row, now: float) -> dict[str, Any]:
    """What people read of a row."""
    waits = row.phase
    since = row.spans[-1].begins if row.spans else row.begins
    return {
        "lasted": duration((row.ends or now) - row.begins),
        "waits": None if waits is None else PHASES[waits],
        "waited_s": round(now - since, 1),
        "tone": tone(row.outcome, waits_for_a_person=waits in {"question", "tools", "client"}),
        "facts": [
            {
                **fact_json(fact),
                "after": duration(fact.at - row.begins),
                "says": SAYS[type(fact)](fact),
            }
            for fact in row.facts
        ],
    }


def _kept(asked: Look) -> list[tuple[str, str]]:
    """What the form of the filters hands on."""
    times = {"from": asked.begins, "to": asked.ends, "last": asked.last}
    return [(name, f"{value:g}") for name, value in times.items() if value is not None]
