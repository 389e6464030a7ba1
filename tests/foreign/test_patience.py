"""Clients with the time-outs that they come with, and a call that takes longer than those."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

from outside import Npm, inspect
from served import Daemon

SECONDS = 90
"""More than the minute that all of them wait."""


def test_a_call_of_90_seconds_is_a_task_and_then_its_result(npm: Npm, daemon: Daemon) -> None:
    """All of them at once: they do nothing but wait."""
    asked = {"server": "demo", "tool": "slow", "args": {"seconds": SECONDS}}
    which = ("tools/call", "--tool-name", "execute_tool", "--tool-args-json", json.dumps(asked))
    with ThreadPoolExecutor() as threads:
        inspected = threads.submit(inspect, npm, daemon.url, "legacy", "--method", *which)
        driven = [
            threads.submit(npm.drive, "patient.mjs", mode, daemon.url, str(SECONDS))
            for mode in ("1", "legacy", "auto")
        ]
    assert "proxy_task" in json.dumps(inspected.result())
    for each in driven:
        first, *others = each.result()["said"]
        assert "task" in first
        assert others[-1].startswith(f"done after {SECONDS} s")
