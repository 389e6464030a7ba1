from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.once

ROOT = Path(__file__).parent.parent


@pytest.mark.cold
def test_the_comparison_measures_who_is_named_and_installs_nobody_else(tmp_path: Path) -> None:
    written, kept = tmp_path / "found.json", tmp_path / "kept"
    command = [sys.executable, str(ROOT / "benchmarks" / "peers.py"), "--runs=2"]
    command += ["--row=the server itself", f"--json={written}", f"--kept={kept}"]
    done = subprocess.run(
        [*command, "--measure=calls", "--measure=alone"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(written.read_text("utf-8"))["rows"]
    assert (row["name"], row["way"]) == ("the server itself", "stdio to stdio")
    assert set(row["samples"]) == {
        *("p50_ms", "p99_ms", "cpu_us", "ping_ms", "list_ms"),
        *("per_s_16", "per_s_64", "start_ms", "mb"),
    }
    assert {len(samples) for samples in row["samples"].values()} == {2}
    assert all(sample > 0 for samples in row["samples"].values() for sample in samples)
    assert "the server itself" in done.stdout
    assert not kept.exists()


@pytest.mark.cold
def test_what_a_model_reads_is_counted_until_every_task_is_done() -> None:
    command = [sys.executable, str(ROOT / "benchmarks" / "context.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = {line[:18].strip(): line[18:].split() for line in done.stdout.splitlines()}
    *_, code, script = map(int, lines["the ten tasks"])
    assert script < code / 2
