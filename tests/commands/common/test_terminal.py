"""What a person sees, and what a pipe gets."""

from __future__ import annotations

import os
import pty
import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import attrs
import pytest

from emceepee_trio.commands.common import terminal

ROWS = [("git", "new", "uvx mcp-server-git " + "x" * 60), ("hub", "conflict", "[red]a\x1b[31mb")]
TITLES = ("server", "what", "target")


@attrs.frozen
class Screen:
    ours: int

    def seen(self) -> str:
        """Everything so far."""
        told = b""
        os.set_blocking(self.ours, False)
        with suppress(OSError):
            while chunk := os.read(self.ours, 65536):
                told += chunk
        return told.decode().replace("\r\n", "\n")


@contextmanager
def screen(patch: pytest.MonkeyPatch, **variables: str) -> Iterator[Screen]:
    """Standard output is a terminal of 60 columns."""
    ours, theirs = pty.openpty()
    patch.setenv("TERM", "xterm-256color")
    patch.setenv("COLUMNS", "60")
    for name in ("NO_COLOR", "FORCE_COLOR"):
        patch.delenv(name, raising=False)
    for name, value in variables.items():
        patch.setenv(name, value)
    with os.fdopen(theirs, "w", encoding="utf-8", closefd=True) as file:
        patch.setattr(sys, "stdout", file)
        patch.setattr(sys, "stderr", file)
        yield Screen(ours)
    os.close(ours)


def test_a_pipe_gets_a_line_for_each_row(capsys: pytest.CaptureFixture[str]) -> None:
    terminal.show_table(TITLES, ROWS)
    title, git, hub = capsys.readouterr().out.splitlines()
    assert title == "SERVER  WHAT      TARGET"
    assert git.endswith("x" * 60)
    assert hub == "hub     conflict  [red]a\\u001b[31mb"


def test_a_terminal_gets_a_table_as_wide_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    with screen(monkeypatch) as shown:
        terminal.show_table(TITLES, ROWS)
        seen = shown.seen()
    assert "\x1b[32mnew" in seen
    plain = re.sub(r"\x1b\[[\d;]*m", "", seen)
    assert max(map(len, plain.splitlines())) <= 60
    assert "[red]a\\u001b[31mb" in plain
    assert plain.count("x") >= 60


def test_a_line_that_is_too_long_is_folded_between_its_words(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said = "broken server: " + " ".join(["not-executable"] * 9)
    with screen(monkeypatch) as shown:
        terminal.say_marked("broken", said)
        seen = re.sub(r"\x1b\[[\d;]*m", "", shown.seen())
    assert max(map(len, seen.splitlines())) <= 60
    assert seen.split() == said.split()


def test_who_wants_no_colours_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    with screen(monkeypatch, NO_COLOR="1") as shown:
        terminal.show_table(TITLES, ROWS)
        terminal.say_marked("broken", "broken: it")
        seen = shown.seen()
    assert not re.search(r"\x1b\[[\d;]*3\d", seen)
    assert "broken: it\n" in re.sub(r"\x1b\[[\d;]*m", "", seen)


def test_a_dumb_terminal_is_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    with screen(monkeypatch, TERM="dumb") as shown:
        terminal.show_table(TITLES, ROWS)
        assert "\x1b" not in shown.seen()


def test_a_table_within_a_text_is_folded_and_plain(monkeypatch: pytest.MonkeyPatch) -> None:
    with screen(monkeypatch):
        lines = terminal.lines_of(TITLES, ROWS)
    assert max(map(len, lines)) <= 60
    assert "\x1b" not in "".join(lines)


def test_what_takes_long_is_told_and_wiped_away(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[bytes] = []
    write = os.write

    def heard(fd: int, data: bytes) -> int:
        if fd != 2:
            return write(fd, data)
        told.append(data)
        return len(data)

    monkeypatch.setattr(os, "write", heard)
    with screen(monkeypatch):
        with terminal.working("at once"):
            pass
        assert told == []
        with terminal.working("starting"), terminal.working("asking for that"):
            end = time.monotonic() + 30
            while not told and time.monotonic() < end:
                time.sleep(0.05)  # a second of the clock is what is tried
    assert told[0] == b"\rstarting ... 1 s"
    assert told[-1] == b"\r" + b" " * 16 + b"\r"
