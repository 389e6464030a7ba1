"""``emceepee sessions``: who is connected to a running daemon."""

from __future__ import annotations

import argparse
import json
from typing import Any

from .common.options import add_url_option
from .common.terminal import lines_of
from .status import tell


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_url_option(parser)
    parser.add_argument("--json", action="store_true", help="everything, as JSON")


def run(options: argparse.Namespace) -> int:
    return tell(options, _indented if options.json else _table)


def _indented(_: str, status: dict[str, Any]) -> str:
    return json.dumps(status["sessions"], indent=2, ensure_ascii=False)


def _table(_: str, status: dict[str, Any]) -> str:
    if not status["sessions"]:
        return "no sessions"
    rows = [
        [
            *(session[key] for key in ("session", "principal", "client")),
            sum(server["status"] == "connected" for server in session["servers"]),
            sum(task["status"] == "working" for task in session["tasks"]),
            len(session["questions"]),
        ]
        for session in status["sessions"]
    ]
    titles = ("session", "principal", "client", "connected", "working", "questions")
    return "\n".join(lines_of(titles, rows))
