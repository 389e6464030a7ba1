from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from emceepee_client import GUARD
from served import serve

WITH_COUNT = """
import gc, sys
from pathlib import Path
from emceepee_trio.cli import main

file = Path(sys.argv.pop(1))
status = main()
file.write_text(f"{gc.get_freeze_count()} {len(gc.get_objects())}")
sys.exit(status)
"""


@pytest.mark.parametrize("command", ["stdio", "serve"])
def test_a_collection_looks_at_little_of_what_was_imported(tmp_path: Path, command: str) -> None:
    counted = tmp_path / "counted"
    words = [sys.executable, "-c", WITH_COUNT, str(counted)]
    if command == "serve":
        with serve(tmp_path, command=words):
            pass
    else:
        subprocess.run([*words, command], stdin=subprocess.DEVNULL, timeout=GUARD, check=True)
    kept, looked_at = map(int, counted.read_text().split())
    assert looked_at < kept / 2
