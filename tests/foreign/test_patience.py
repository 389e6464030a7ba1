"""Clients with the time-outs that they come with, and a call that takes longer than those."""

from __future__ import annotations

import json
import re
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from outside import Npm, inspect
from served import Daemon

SECONDS = 90
"""More than the minute that most of them wait."""

HERE = Path(__file__).parent


def mcporter(npm: Npm, home: Path, url: str) -> list[str]:
    """Its calls are programs of their own, which have one session by a daemon of theirs."""
    config = home / "mcporter.json"
    entry = {"url": url, "lifecycle": "keep-alive"}
    config.write_text(json.dumps({"mcpServers": {"emceepee": entry}}), "utf-8")
    program = npm.program("mcporter")

    def run(*words: str) -> str:
        command = [*program, *words]
        return npm.run(command, HOME=str(home), MCPORTER_CONFIG=str(config)).stdout

    def call(name: str, **arguments: Any) -> str:
        return run("call", f"emceepee.{name}", "--args", json.dumps(arguments))

    slow = {"seconds": SECONDS, "steps": 9}
    said = []
    try:
        said.append(call("execute_tool", server="demo", tool="slow", args=slow))
        found = re.search(r'"task_id": ?"([^"]+)"', said[0])
        assert found is not None, said[0]
        while "done after" not in said[-1]:
            said.append(call("get_task_result", task_id=found[1]))
    finally:
        run("daemon", "stop")
    return said


@pytest.mark.long
def test_a_call_of_90_seconds_is_a_task_and_then_its_result(
    fastmcp: Future[str], npm: Npm, daemon: Daemon
) -> None:
    """All of them at once: they do nothing but wait."""
    asked = {"server": "demo", "tool": "slow", "args": {"seconds": SECONDS}}
    which = ("tools/call", "--tool-name", "execute_tool", "--tool-args-json", json.dumps(asked))
    patient = [fastmcp.result(), str(HERE / "patient.py"), daemon.url, str(SECONDS)]
    # Short: a socket's path is made below it.
    with TemporaryDirectory(dir="/tmp") as home, ThreadPoolExecutor() as threads:
        inspected = threads.submit(inspect, npm, daemon.url, "legacy", "--method", *which)
        ported = threads.submit(mcporter, npm, Path(home), daemon.url)
        driven = [
            threads.submit(npm.drive, "patient.mjs", mode, daemon.url, str(SECONDS))
            for mode in ("1", "legacy", "auto")
        ]
        fast = threads.submit(npm.run, patient)
    assert "proxy_task" in json.dumps(inspected.result())
    said = [each.result()["said"] for each in driven]
    for first, *others in (*said, ported.result(), json.loads(fast.result().stdout)["said"]):
        assert "task" in first
        assert f"done after {SECONDS} s" in others[-1]
