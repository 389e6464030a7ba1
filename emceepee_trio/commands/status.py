"""``emceepee status``: what a running daemon is doing."""

from __future__ import annotations

import argparse
import json
import os
import socket
import sys
from collections.abc import Iterable, Sequence
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from .common import Usage
from .serve import HOST, default_port

HELP = "sessions, servers, tasks and open questions of a running daemon"
PATIENCE = 10.0
"""Seconds that the daemon may take to answer."""


class _NoAnswer(Exception):
    """Nobody answered, or not with a status."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--url", metavar="U", help=f"of the daemon, or unix:PATH; default http://{HOST}:$PORT"
    )
    parser.add_argument("--json", action="store_true", help="everything, as JSON")
    parser.add_argument(
        "--state-dir", type=Path, metavar="D", help="where its token is, as for serve"
    )


def run(options: argparse.Namespace) -> int:
    url = options.url or f"http://{HOST}:{default_port()}"
    try:
        status = _ask(url, _token(options.state_dir))
    except _NoAnswer as error:
        print(f"emceepee status: {error}", file=sys.stderr)
        return 1
    print(json.dumps(status, indent=2, ensure_ascii=False) if options.json else _table(url, status))
    return 0


def _token(state: Path | None) -> str | None:
    from ..front.tokens import MINTED, VARIABLE, BadToken, read_token, state_directory

    if token := os.environ.get(VARIABLE):
        return token
    path = (state or state_directory()) / MINTED
    try:
        return read_token(path) if path.exists() else None
    except (BadToken, OSError) as error:
        raise _NoAnswer(str(error)) from None


def _ask(url: str, token: str | None) -> dict[str, Any]:
    """The daemon's ``/status``. Follows no redirects, uses no proxy: the token is for it alone."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    connection = _connection(url)
    try:
        connection.request("GET", "/status", headers=headers)
        response = connection.getresponse()
        body = response.read()
    except (OSError, HTTPException) as error:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise _NoAnswer(
            f"no daemon answers at {url} ({reason}); `emceepee serve` starts one"
        ) from None
    finally:
        connection.close()
    if response.status == 401:
        raise _NoAnswer(
            f"the daemon at {url} wants another token; set EMCEEPEE_TOKEN, or name its --state-dir"
        )
    try:
        status = json.loads(body)
    except ValueError:
        status = None
    if response.status != 200 or not isinstance(status, dict) or "sessions" not in status:
        raise _NoAnswer(f"what answers at {url} is no emceepee daemon (status {response.status})")
    return status


def _connection(url: str) -> HTTPConnection:
    if url.startswith("unix:"):
        return _UnixConnection(url.removeprefix("unix:"))
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise Usage(f"--url: expected http://HOST:PORT or unix:PATH, got {url!r}")
    kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
    try:
        return kind(parts.hostname, parts.port, timeout=PATIENCE)
    except ValueError as error:
        raise Usage(f"--url: {error}") from None


class _UnixConnection(HTTPConnection):
    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=PATIENCE)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(PATIENCE)
        self.sock.connect(self._path)


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
    lines = [f"emceepee {status['version']} at {url}: {state}, {about}", ""]
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
