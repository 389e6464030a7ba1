"""What starts warm has imported before what it needs: else each of a thousand does so anew."""

from __future__ import annotations

from pathlib import Path

import pytest

from emceepee_lines import run
from served import serve

pytestmark = pytest.mark.once

FEW = 20
"""Modules, for what only some need."""


def late(note: Path) -> list[str]:
    return sorted(note.read_text().splitlines())


def test_a_daemon_imports_little_more(tmp_path: Path) -> None:
    note = tmp_path / "imported"
    with serve(tmp_path, "--demo", TESTS_IMPORTED=str(note)):
        pass
    assert len(late(note)) < FEW, late(note)


@pytest.mark.parametrize("words", [("call", "demo", "echo", "text=x"), ("tools", "demo")])
def test_a_command_imports_little_more(tmp_path: Path, words: tuple[str, ...]) -> None:
    note = tmp_path / "imported"
    told = run(*words, "--demo", TESTS_IMPORTED=str(note))
    assert told.returncode == 0
    assert len(late(note)) < FEW, late(note)
