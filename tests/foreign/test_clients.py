"""Clients that others wrote, each driven as its users would: list, call, progress, resume."""

from __future__ import annotations

import itertools
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from emceepee_trio.tools import TOOLBOX
from outside import Npm, inspect
from served import Daemon

Json = dict[str, Any]

TOOLS = [tool.name for tool in TOOLBOX.tools]
LATEST, MODERN = "2025-11-25", "2026-07-28"


def check_basics(report: Json, version: str) -> None:
    assert report["server"] == "emceepee"
    assert report["version"] == version
    assert report["tools"] == TOOLS
    assert report["echo"] == "grüße 🦑"
    assert report["slow"]["text"] == "done after 1 s in 5 steps"
    check_progress(report["slow"]["progress"], 5)


def check_progress(progress: list[float], steps: int) -> None:
    """Some of the steps, in order: of those that come at once only the newest need be told."""
    assert progress == sorted(set(progress))
    # Before the first one somebody may have been told that the server is being started.
    told = [each for each in progress if each >= 1]
    assert told
    assert set(told) <= {*range(1, steps + 1)}


def check_resumed(report: Json) -> None:
    """Nothing that came after the break was lost, and nothing came twice."""
    assert report["broken"]
    assert report["resumed"] == 1
    assert report["text"] == "done after 2 s in 20 steps"
    check_progress(report["progress"], 20)
    ids = [token.rpartition(".") for token in report["tokens"]]
    assert len({stream for stream, _, _ in ids}) == 1
    # A stream begins by telling where it stands, so the number before the break comes twice.
    numbers = [number for number, _ in itertools.groupby(int(n) for _, _, n in ids)]
    assert numbers == list(range(len(numbers)))


def check_rejoined(report: Json) -> None:
    assert report["same"]
    assert report["tasks"] == [["raw", "slow"]]
    assert report["text"] == "the file is there"


def test_sdk_1_lists_calls_resumes_a_broken_stream_and_joins_its_session_again(
    npm: Npm, daemon: Daemon, tmp_path: Path
) -> None:
    report = npm.drive("sdk1.mjs", daemon.url, str(tmp_path / "now"))
    check_basics(report, LATEST)
    check_resumed(report["resumed"])
    check_rejoined(report["rejoined"])


def test_sdk_2_lists_calls_resumes_a_broken_stream_and_joins_its_session_again(
    npm: Npm, daemon: Daemon, tmp_path: Path
) -> None:
    report = npm.drive("sdk2.mjs", "legacy", daemon.url, str(tmp_path / "now"))
    check_basics(report, LATEST)
    check_resumed(report["resumed"])
    check_rejoined(report["rejoined"])


def test_sdk_2_finds_that_we_are_modern(npm: Npm, daemon: Daemon) -> None:
    check_basics(npm.drive("sdk2.mjs", "auto", daemon.url), MODERN)


@pytest.mark.parametrize(("mode", "version"), [("legacy", LATEST), ("auto", MODERN)])
def test_sdk_2_over_stdio(npm: Npm, mode: str, version: str, tmp_path: Path) -> None:
    kept = ("--state-dir", str(tmp_path))
    command = (sys.executable, "-m", "emceepee_trio", "stdio", "--demo", *kept)
    check_basics(npm.drive("sdk2.mjs", mode, *command), version)


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_the_inspector_lists_our_tools_and_finds_their_schemas_portable(
    npm: Npm, daemon: Daemon, era: str
) -> None:
    listed = inspect(npm, daemon.url, era, "--method", "tools/list", "--strict")
    assert [tool["name"] for tool in listed["tools"]] == TOOLS


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_the_inspector_calls_a_tool_of_a_server(npm: Npm, daemon: Daemon, era: str) -> None:
    arguments = {"server": "demo", "tool": "slow", "args": {"seconds": 0.2, "steps": 2}}
    which = ("--tool-name", "execute_tool", "--tool-args-json", json.dumps(arguments))
    called = inspect(npm, daemon.url, era, "--method", "tools/call", *which)
    assert called["isError"] is False
    assert called["content"][0] == {"type": "text", "text": "done after 0.2 s in 2 steps"}
