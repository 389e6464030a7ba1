"""``emceepee status``: what a running daemon is doing."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ..model.show import escaped
from ..model.wire import loads
from .options import HOST, add_state_option, default_port
from .output import complain, say
from .remote import Daemon, NoAnswer, body_of


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--url", metavar="U", help=f"of the daemon, or unix:PATH; default http://{HOST}:$PORT"
    )
    parser.add_argument("--json", action="store_true", help="everything, as JSON")
    add_state_option(parser)


def run(options: argparse.Namespace) -> int:
    url = options.url or f"http://{HOST}:{default_port()}"
    try:
        said = _ask(Daemon.find(url, options.state_dir), _indented if options.json else _table)
    except NoAnswer as error:
        complain(f"emceepee status: {error}")
        return 1
    say(said)
    return 0


def _ask(daemon: Daemon, show: Callable[[str, dict[str, Any]], str]) -> str:
    with daemon.request("GET", "/status") as response:
        body = body_of(response)
    try:
        status = loads(body.decode())
        if response.status == 200 and "sessions" in status:
            return show(daemon.url, status)
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
        pass  # it is not what it should be
    raise daemon.stranger(response)


def _indented(_: str, status: dict[str, Any]) -> str:
    return json.dumps(status, indent=2, ensure_ascii=False)


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
    cells += ([escaped(str(cell)) for cell in row] for row in rows)
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = ("  ".join(map(str.ljust, row, widths)) for row in cells)
    return [line.rstrip() for line in lines]
