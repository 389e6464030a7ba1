"""``emceepee status``: what a running daemon is doing."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from typing import Any, TypeVar

from ..model.wire import loads
from .common.options import HOST, add_url_option, default_port
from .common.output import complain, megabytes, say
from .common.remote import NoAnswer, RemoteDaemon, body_of
from .common.terminal import lines_of

T = TypeVar("T")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_url_option(parser)
    parser.add_argument("--json", action="store_true", help="everything, as JSON")


def run(options: argparse.Namespace) -> int:
    return tell(options, _indented if options.json else _table)


def tell(options: argparse.Namespace, show: Callable[[str, dict[str, Any]], str]) -> int:
    """What the daemon says of itself, as *show* puts it."""
    url = options.url or f"http://{HOST}:{default_port()}"
    try:
        said = ask(RemoteDaemon.find(url, options.state_dir), show)
    except NoAnswer as error:
        complain(f"emceepee {options.command}: {error}")
        return 1
    say(said)
    return 0


def ask(
    daemon: RemoteDaemon,
    show: Callable[[str, dict[str, Any]], T],
    page: str = "/status",
    key: str = "sessions",
) -> T:
    """What *show* makes of the daemon's address and what it says on that page.

    Raises:
        NoAnswer: it says nothing, or something else.
    """
    with daemon.request("GET", page) as response:
        body = body_of(response)
    try:
        said = loads(body.decode())
        if response.status == 200 and key in said:
            return show(daemon.url, said)
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


def _note(server: dict[str, Any]) -> str:
    why = f": {server['last_error']}" if "last_error" in server else ""
    return f"disabled{why}" if server["disabled"] else ""


def _table(url: str, status: dict[str, Any]) -> str:
    sessions = status["sessions"]
    state = "ready" if status["ready"] else "draining"
    about = f"pid {status['pid']}, since {status['started_at']}"
    lines = [f"emceepee {status['version']} at {url}: {state}, {about}"]
    if (slow := status.get("slow_steps")) and slow["count"]:
        often = "once" if slow["count"] == 1 else f"{slow['count']} times"
        lines.append(f"all had to wait {often}, up to {slow['longest_ms']} ms")
    lines.append("")
    if not sessions:
        lines.append("no sessions")
        if configured := status.get("servers"):  # an older daemon does not name them
            lines += ["", "Each session that comes has:"]
            lines += lines_of(
                ("server", "transport", "target", "note"),
                [[s["name"], s["transport"], s["target"], _note(s)] for s in configured],
            )
        return "\n".join(lines)
    named = ("session", "principal", "client")
    lines += lines_of(
        (*named, *ITEMS),
        [[*(s[key] for key in named), *(_count(s, part) for part in ITEMS)] for s in sessions],
    )
    for part, columns in ITEMS.items():
        rows = [
            [s["session"], *(item.get(key, "") for key in columns.values())]
            for s in sessions
            for item in s[part]
        ]
        if rows:
            lines += ["", *lines_of(("session", *columns), rows)]
    if programs := status.get("programs"):  # of which an older daemon says nothing
        rows = [[str(program[key]) for key in PROGRAMS] for program in programs]
        for row, program in zip(rows, programs, strict=True):
            row += [str(len(program["sessions"])), *_costs(program)]
        lines += ["", *lines_of((*PROGRAMS, "sessions", "memory", "note"), rows)]
    return "\n".join(lines)


def _count(session: dict[str, Any], part: str) -> str:
    """How many there are; of tasks, how many work, and how many are over and only kept."""
    items = session[part]
    if part != "tasks":
        return str(len(items))
    works = sum(task["status"] == "working" for task in items)
    return f"{works} ({len(items) - works} over)" if works < len(items) else str(works)


PROGRAMS = ("server", "principal", "scope", "programs", "processes")
"""The columns of what the programs of servers take."""


def _costs(program: dict[str, Any]) -> tuple[str, str]:
    """The memory of one server's, and what sharing it would save."""
    memory = megabytes(program["resident_bytes"])
    if (saved := program.get("sharing_would_save_bytes")) is None:
        return memory, ""
    would = f'"scope": "principal" would save {megabytes(saved)}'
    return memory, would if program["keeps_nothing"] else f"{would}, if it keeps nothing of a call"
