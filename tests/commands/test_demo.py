"""``emceepee demo``: a guided tour."""

from __future__ import annotations

import re

from emceepee_lines import run


def test_the_tour_shows_everything_and_ends_well() -> None:
    told = run("demo")
    assert (told.returncode, told.stderr) == (0, "")
    steps = re.findall(r"^(\d+)\. ", told.stdout, re.MULTILINE)
    assert steps == [str(n) for n in range(1, len(steps) + 1)]
    assert len(steps) >= 6
    for shown in (
        "35 tools: add_server, remove_server",
        "Hello, emceepee",
        "Tool call exceeded timeout (300ms). Promoted to task",
        "What is your name?",
        "Hello, Ada!",
        "-> await_activity",
        "done after 2 s",
    ):
        assert shown in told.stdout, shown


def test_nothing_is_cut_off_in_full() -> None:
    told = run("demo", "--full")
    assert told.returncode == 0
    assert "…" not in told.stdout.replace('"…"', "")
    assert '"inputSchema"' in told.stdout
