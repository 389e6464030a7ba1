"""Ours beside proxies that others wrote, and beside the least that could stand in their place.

All are asked for the same in one run, in turns: a tool call to the same small server, by programs
that are all running meanwhile; then each alone, for its start and for what sessions cost; then,
where there is a valgrind, instructions. Peers are installed from PyPI and npm, each in a folder of
its own that is kept (``.nox/.cache/peers``); who cannot be had is left out, and said.

Read the ratios: the milliseconds belong to the machine. There is no limit on how long anything
may take, so a busy machine makes the numbers worse and nothing else.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from statistics import median
from typing import Any, TypeVar

from beside.contenders import ECHO, HERE, Contender, contenders
from beside.installs import ROOT, Missing, Python
from beside.load import Failed, Running, running
from beside.samples import Row, ratios, tables
from http_call import free_port, server
from instructions import Counted

CALLS = 200
"""One after the other, of each row in a round."""
ASKED = 40
"""Pings, and lists of tools, likewise."""
AT_ONCE = {16: 20, 64: 8}
"""Calls under way: how many calls for each of them, in a round."""
SESSIONS = 40
COUNTED = 100
"""Calls whose instructions are counted."""
WARM = 20
"""Calls before anything is measured."""

PLOT = HERE / "plot.py"
REMOTE = HERE / "on_sdk.py"

T = TypeVar("T")
Rows = dict[Contender, Row]
GONE = (Failed, OSError)


def without(contender: Contender, why: Exception) -> None:
    say(f"without {contender.name}, {contender.way}: {why}")


def say(what: str) -> None:
    print(what, file=sys.stderr, flush=True)


def middle(run: Running, method: str) -> float:
    """Milliseconds."""
    took = []
    for _ in range(ASKED):
        started = time.perf_counter()
        run.load.ask(method)
        took.append(time.perf_counter() - started)
    return median(took) * 1e3


def calls(rows: Rows, rounds: int) -> None:
    """Latency, throughput and processor time, in turns of all who run."""
    with contextlib.ExitStack() as stack:
        runs: dict[Contender, Running] = {}
        for contender in rows:
            try:
                run = stack.enter_context(running(contender))
                for _ in range(WARM):
                    run.call()
            except GONE as error:
                without(contender, error)
            else:
                runs[contender] = run
        for number in range(rounds):
            say(f"round {number + 1} of {rounds}")
            for contender, run in in_turn(runs.items(), number):
                try:
                    rows[contender].note(**a_round(run))
                except GONE as error:
                    without(contender, error)
                    del runs[contender]


def in_turn(all_of_them: Iterable[T], number: int) -> list[T]:
    """Another one begins each round."""
    every = list(all_of_them)
    first = number % max(1, len(every))
    return every[first:] + every[:first]


def a_round(run: Running) -> dict[str, float]:
    run.load.renew()
    before = run.processor_time()
    took = sorted(run.call() for _ in range(CALLS))
    used = run.processor_time() - before
    found = {
        "p50_ms": took[CALLS // 2] * 1e3,
        "p99_ms": took[CALLS * 99 // 100] * 1e3,
        "cpu_us": used / CALLS * 1e6,
        "ping_ms": middle(run, "ping"),
        "list_ms": middle(run, "tools/list"),
    }
    for at, each in AT_ONCE.items():
        found[f"per_s_{at}"] = at * each / run.load.crowd(at, at * each, run.contender.call)
    return found


def alone(rows: Rows, times: int) -> None:
    """The start, until the first answer; the memory then; and what sessions add that are idle."""
    left = list(rows)
    for number in range(times):
        say(f"start {number + 1} of {times}")
        for contender in in_turn(left, number):
            try:
                rows[contender].note(**a_start(contender))
            except GONE as error:
                without(contender, error)
                left.remove(contender)


def a_start(contender: Contender) -> dict[str, float]:
    already = programs()
    started = time.perf_counter()
    with running(contender) as run:
        found = {"start_ms": (time.perf_counter() - started) * 1e3}
        run.load.ask("tools/list")
        before = run.resident()
        found["mb"] = before / 1024
        if contender.way == "stdio to stdio" or contender.is_modern:
            return found
        sessions = []
        for _ in range(SESSIONS):
            sessions.append(run.session())
            sessions[-1].ask("tools/list")
        found["session_kb"] = (run.resident() - before) / len(sessions)
        if contender.way == "HTTP to stdio":
            found["programs"] = programs() - already
        return found


def programs() -> int:
    """How many echo servers run."""
    asked = b"\0".join(part.encode() for part in ECHO) + b"\0"
    count = 0
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            count += path.read_bytes() == asked
    return count


def instructions(rows: Rows, folder: Path) -> None:
    if shutil.which("valgrind") is None:
        say("without instructions: there is no valgrind here to count with")
        return
    os.environ["PYTHONHASHSEED"] = "0"
    for number, contender in enumerate(rows):
        if contender.counted is None:
            continue
        say(f"instructions of {contender.name}, {contender.way}")
        output = folder / f"callgrind.{number}"
        valgrind = ("valgrind", "--tool=callgrind", f"--callgrind-out-file={output}")
        try:
            with running(contender, *valgrind) as run:
                rows[contender].note(k_instructions=a_count(run, Counted(run.process.pid, output)))
        except GONE as error:
            say(f"without instructions of {contender.name}: {error}")


def a_count(run: Running, counted: Counted) -> float:
    for _ in range(WARM):
        run.call()
    counted.look()
    for _ in range(COUNTED):
        run.call()
    return counted.look() / COUNTED / 1000


def machine() -> dict[str, Any]:
    return {
        "system": platform.platform(),
        "python": platform.python_version(),
        "processors": os.cpu_count(),
        "load": os.getloadavg(),
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=7, help="rounds, and starts of each")
    parser.add_argument("--before", action="append", default=[], help="another revision of ours")
    parser.add_argument("--row", action="append", help="only those whose name begins so")
    parser.add_argument("--measure", action="append", choices=["calls", "alone", "instructions"])
    parser.add_argument("--json", type=Path, help="where to write every sample")
    parser.add_argument("--plot", type=Path, help="where to draw: .svg or .png")
    parser.add_argument("--kept", type=Path, default=ROOT / ".nox/.cache/peers")
    options = parser.parse_args()
    measures = options.measure or ["calls", "alone", "instructions"]
    kept, wanted, port = options.kept.absolute(), tuple(options.row or [""]), free_port()
    here = machine()
    with contextlib.ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        os.environ["XDG_STATE_HOME"] = str(scratch)
        url = f"http://127.0.0.1:{port}/mcp"
        rows: Rows = {
            each: Row(each.name, each.role, each.way)
            for each in contenders(kept, scratch, url, options.before, wanted)
        }
        if any(each.way == "HTTP to HTTP" for each in rows):
            stack.enter_context(server([sys.executable, str(REMOTE), str(port)], port))
        if "calls" in measures:
            calls(rows, options.runs)
        if "alone" in measures:
            alone(rows, options.runs)
        if "instructions" in measures:
            instructions(rows, scratch)
    found = [row for row in rows.values() if row.samples]
    print(f"{here['processors']} processors, load {here['load'][0]:.1f} at the beginning")
    for line in tables(found):
        print(line)
    written = {"machine": here, "rows": [row.as_json() for row in found], "ratios": ratios(found)}
    with tempfile.TemporaryDirectory() as folder:
        data = options.json or Path(folder, "peers.json")
        data.write_text(json.dumps(written, indent=1), "utf-8")
        if options.plot:
            draw(kept, data, options.plot)


def draw(kept: Path, data: Path, picture: Path) -> None:
    try:
        python = Python(kept / "matplotlib", "matplotlib>=3.10").python
    except Missing as missing:
        return say(f"without a picture: {missing}")
    subprocess.run([python, str(PLOT), str(data), str(picture)], check=True)
    return None


if __name__ == "__main__":
    main()
