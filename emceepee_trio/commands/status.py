"""``emceepee status``: what a running daemon is doing."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from .remote import Daemon, NoAnswer, add_state_option
from .serve import HOST, default_port

HELP = "sessions, servers, tasks and open questions of a running daemon"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--url", metavar="U", help=f"of the daemon, or unix:PATH; default http://{HOST}:$PORT"
    )
    parser.add_argument("--json", action="store_true", help="everything, as JSON")
    add_state_option(parser)


def run(options: argparse.Namespace) -> int:
    url = options.url or f"http://{HOST}:{default_port()}"
    try:
        status = _ask(Daemon.find(url, options.state_dir))
    except NoAnswer as error:
        print(f"emceepee status: {error}", file=sys.stderr)
        return 1
    print(json.dumps(status, indent=2, ensure_ascii=False) if options.json else _table(url, status))
    return 0


def _ask(daemon: Daemon) -> dict[str, Any]:
    with daemon.request("GET", "/status") as response:
        body = response.read()
    try:
        status = json.loads(body)
    except ValueError:
        status = None
    if response.status != 200 or not isinstance(status, dict) or "sessions" not in status:
        raise daemon.stranger(response)
    return status


ITEMS = {
    "servers": {"server": "name", "status": "status", "target": "target", "error": "last_error"},
    "tasks": {
        "task": "task_id",
        "status": "status",
        "server": "server",
        "tool": "tool",
        "since": "created_at",
    },
    "questions": {
        "question": "request_id",
        "kind": "kind",
        "server": "server",
        "since": "timestamp",
    },
}
"""The tables under that of the sessions: their columns, and what stands in them."""


def _table(url: str, status: dict[str, Any]) -> str:
    sessions = status["sessions"]
    state = "ready" if status["ready"] else "draining"
    about = f"pid {status['pid']}, since {status['started_at']}"
    lines = [f"emceepee {status['version']} at {url}: {state}, {about}"]
    if (slow := status.get("slow_steps")) and slow["count"]:
        lines.append(f"all had to wait {slow['count']} times, up to {slow['longest_ms']} ms")
    lines.append("")
    if not sessions:
        return "\n".join([*lines, "no sessions"])
    named = ("session", "principal", "client")
    lines += _columns(
        (*named, *ITEMS),
        [[s[key] for key in named] + [len(s[key]) for key in ITEMS] for s in sessions],
    )
    for part, columns in ITEMS.items():
        rows = [
            [s["session"], *(item.get(key, "") for key in columns.values())]
            for s in sessions
            for item in s[part]
        ]
        if rows:
            lines += ["", *_columns(("session", *columns), rows)]
    return "\n".join(lines)


def _columns(titles: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    # What a client calls itself, and what servers report, may hold anything; one line each.
    cells = [[title.upper() for title in titles]]
    cells += ([_plain(str(cell)) for cell in row] for row in rows)
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = ("  ".join(map(str.ljust, row, widths)) for row in cells)
    return [line.rstrip() for line in lines]


def _plain(text: str) -> str:
    """Without what a terminal would obey."""
    return "".join(c if c.isprintable() else " " for c in text)
