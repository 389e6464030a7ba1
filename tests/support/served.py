"""A real ``emceepee serve`` for clients that are not ours, started and stopped as systemd would."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import attrs

import warm
from stalls import check_daemon

GUARD = 60.0
"""Seconds after which a daemon hangs that was told to stop."""


@attrs.frozen
class Daemon:
    url: str
    """Of its MCP endpoint."""
    pid: int


@contextmanager
def serve(
    folder: Path, *options: str, command: Sequence[str] = (), **environment: str
) -> Iterator[Daemon]:
    """A daemon on a port of its own, unless `PORT` says which, whose files are in *folder*.

    Whoever leaves finds that it ended well, and that no bug of ours was logged meanwhile.
    """
    command = command or warm.command("emceepee_trio")
    stderr = folder / "stderr"
    with stderr.open("wb") as file:
        process = subprocess.Popen(
            [
                *command,
                "serve",
                "--bind",
                f"127.0.0.1:{environment.get('PORT', 0)}",
                "--state-dir",
                str(folder),
                *options,
            ],
            env={**os.environ, "XDG_CONFIG_HOME": str(folder), **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=file,
            text=True,
        )
    with process:
        try:
            assert process.stdout is not None
            announced = (re.search(r"http://[\w.]+:\d+/mcp", line) for line in process.stdout)
            url = next((found[0] for found in announced if found), None)
            assert url is not None, stderr.read_text("utf-8")
            yield Daemon(url, process.pid)
        finally:
            process.terminate()
            try:
                process.wait(GUARD)
            finally:
                process.kill()
    log = [json.loads(line) for line in stderr.read_text("utf-8").splitlines()]
    assert not [line for line in log if "traceback" in line]
    check_daemon(log)
    assert process.returncode == 0
