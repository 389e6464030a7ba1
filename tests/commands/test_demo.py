"""``emceepee demo``: a guided tour."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
from pathlib import Path

import pytest

from emceepee_client import COMMAND, GUARD
from emceepee_lines import run


def test_the_tour_shows_everything_and_leaves_nothing(tmp_path: Path) -> None:
    told = run("demo", TMPDIR=str(tmp_path))
    assert (told.returncode, told.stderr) == (0, "")
    assert told.stdout.startswith("$ emceepee serve --demo\n")
    steps = re.findall(r"^(\d+)\. ", told.stdout, re.MULTILINE)
    assert steps == [str(n) for n in range(1, len(steps) + 1)]
    assert len(steps) >= 6
    for shown in (
        "39 tools: add_server, remove_server",
        "Hello, emceepee",
        "Tool call exceeded timeout (300ms). Promoted to task",
        "What is your name?",
        "Hello, Ada!",
        "-> await_activity",
        "done after 2 s",
    ):
        assert shown in told.stdout, shown
    assert not listens(told.stdout)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.once
def test_nothing_is_cut_off_in_full() -> None:
    told = run("demo", "--full")
    assert told.returncode == 0
    assert "…" not in told.stdout.replace('"…"', "")
    assert '"inputSchema"' in told.stdout


@pytest.mark.once
def test_what_its_user_has_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "emceepee").mkdir()
    (tmp_path / "emceepee" / "config.json").write_text("nonsense")
    told = run("demo", XDG_CONFIG_HOME=str(tmp_path), EMCEEPEE_TOKEN="two words", PORT="none")
    assert (told.returncode, told.stderr) == (0, "")


@pytest.mark.once
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_tour_that_is_broken_off_leaves_nothing(tmp_path: Path, number: signal.Signals) -> None:
    with subprocess.Popen(
        [*COMMAND, "demo"],
        env=os.environ | {"TMPDIR": str(tmp_path)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as tour:
        try:
            assert tour.stdout is not None
            said = ""
            while "4. " not in said:
                said += tour.stdout.readline()
            assert listens(said)
            tour.send_signal(number)
            _, complaint = tour.communicate(timeout=GUARD)
        finally:
            tour.kill()
    assert tour.returncode == (130 if number is signal.SIGINT else 1), complaint
    assert "Traceback" not in complaint
    assert not listens(said)
    assert list(tmp_path.iterdir()) == []


def listens(said: str) -> bool:
    """Whether the daemon of a tour can be reached."""
    found = re.search(r"http://127\.0\.0\.1:(\d+)/mcp", said)
    assert found, said
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", int(found[1]))) == 0
