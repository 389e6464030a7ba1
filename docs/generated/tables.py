"""Tables: the states of a backend, the metrics, and requests that are not taken."""

from __future__ import annotations

import runpy
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path

from emceepee_trio.backend.lifecycle import TODO
from emceepee_trio.model.states import BACKEND, BackendState
from emceepee_trio.web.metrics.scrape import reference

from .words import escaped, table

MALFORMED = Path(__file__).parents[2] / "tests" / "support" / "malformed.py"


def http_rst() -> str:
    """The requests of tests/support/malformed.py, and what is said to each."""
    rows = [
        (
            case.what,
            str(case.h11),
            str(case.llhttp),
            "taken" if case.ours == HTTPStatus.OK else str(case.ours),
        )
        for case in runpy.run_path(str(MALFORMED))["CASES"]
    ]
    return "\n".join(table("50 15 20 15", ("What is sent", "h11", "llhttp", "Here"), rows))


def lifecycle_rst() -> str:
    """Each state of a backend: what there is to do, and where what can happen leads."""

    def rows() -> Iterator[tuple[str, str, str]]:
        for state in BackendState:
            todo = TODO[state]
            arrows = [arrow for arrow in BACKEND.steps if arrow.source is state]
            said = [f"| {arrow.cause}: ``{arrow.target.value}``" for arrow in arrows]
            leads = "\n       ".join(said or ["nothing"])
            yield f"``{state.value}``", f"{todo.name.lower()} {todo.value}", leads

    head = ("State", "What its task does", "What happens, and where it leads")
    return "\n".join(table("15 30 55", head, rows()))


def metrics_rst() -> str:
    """Every family of /metrics, but those of the process itself."""

    def rows() -> Iterator[tuple[str, str]]:
        for family in reference():
            labels = f" ``{{{', '.join(family.labels)}}}``" if family.labels else ""
            yield f"``{family.full_name}``{labels}, {family.kind}", escaped(family.what)

    return "\n".join(table("40 60", ("Metric", "What it says"), rows()))
