from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from emceepee_client import GUARD
from emceepee_trio.commands.common.interpreter import FULL, SWITCH
from served import serve

WITH_COUNT = """
import gc, sys
from pathlib import Path
from emceepee_trio.cli import main

file = Path(sys.argv.pop(1))
status = main()
collections = f"{gc.get_freeze_count()} {len(gc.get_objects())} {gc.get_threshold()[2]}"
file.write_text(f"{collections} {sys.getswitchinterval()}")
sys.exit(status)
"""


@pytest.mark.parametrize("command", ["stdio", "serve"])
def test_nobody_waits_for_what_python_does_by_itself(tmp_path: Path, command: str) -> None:
    counted = tmp_path / "counted"
    words = [sys.executable, "-c", WITH_COUNT, str(counted)]
    if command == "serve":
        with serve(tmp_path, command=words):
            pass
    else:
        subprocess.run([*words, command], stdin=subprocess.DEVNULL, timeout=GUARD, check=True)
    kept, looked_at, full, switch = map(float, counted.read_text().split())
    assert looked_at < kept / 2
    assert full == FULL
    assert switch == pytest.approx(SWITCH)
