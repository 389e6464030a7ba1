"""What a program and all that it has started take of the machine."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from subprocess import PIPE

import pytest
import trio

from emceepee_client import GUARD
from emceepee_trio.backend.children.footprint import Footprint, footprints, look

PAGE = os.sysconf("SC_PAGE_SIZE")

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="there is no /proc")

HELD = 50_000_000
GROWS = """
import subprocess, sys
held = bytearray(b"x") * 50_000_000
child = subprocess.Popen([sys.executable, "-I", "-S", "-c", "input()"], stdin=sys.stdin)
print(child.pid, flush=True)
child.wait()
"""


def process(proc: Path, pid: int, parent: int, pages: int, name: str = "sh") -> None:
    """An entry as the kernel writes it."""
    (proc / str(pid)).mkdir()
    rest = " ".join(["0"] * 19)
    (proc / str(pid) / "stat").write_text(f"{pid} ({name}) S {parent} {rest} {pages} 0 0\n")


def test_a_tree_is_counted_as_a_whole_and_nothing_else_is(tmp_path: Path) -> None:
    process(tmp_path, 1, 0, 1000)
    process(tmp_path, 20, 1, 3, name="a (bad) name")
    process(tmp_path, 21, 20, 5)
    process(tmp_path, 22, 21, 7)
    process(tmp_path, 30, 1, 11)
    (tmp_path / "meminfo").write_text("no process")
    found = look([20, 30, 99], tmp_path)
    assert found == {20: Footprint(3, 15 * PAGE), 30: Footprint(1, 11 * PAGE)}


def test_a_circle_of_parents_has_an_end(tmp_path: Path) -> None:
    """Entries are read one after the other, and numbers are used again."""
    process(tmp_path, 5, 6, 1)
    process(tmp_path, 6, 5, 1)
    assert look([5], tmp_path) == {5: Footprint(2, 2 * PAGE)}


def test_who_ends_while_we_look_counts_for_nothing(tmp_path: Path) -> None:
    process(tmp_path, 5, 1, 4)
    (tmp_path / "6").mkdir()
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "stat").write_text("7 (half) S 5")
    assert look([5, 6, 7], tmp_path) == {5: Footprint(1, 4 * PAGE)}


def test_where_there_is_no_proc_nothing_is_said(tmp_path: Path) -> None:
    assert look([5], tmp_path / "proc") == {}


async def test_a_real_program_and_its_child() -> None:
    command = [sys.executable, "-I", "-S", "-c", GROWS]
    process = await trio.lowlevel.open_process(command, stdin=PIPE, stdout=PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        child = int(await process.stdout.receive_some())
        found = await footprints([process.pid, child])
        assert found[process.pid].processes == 2
        assert found[child].processes == 1
        assert found[process.pid].resident > HELD + found[child].resident
    finally:
        with trio.move_on_after(GUARD, shield=True):
            await process.stdin.aclose()
            await process.wait()
    assert await footprints([process.pid]) == await footprints([]) == {}
