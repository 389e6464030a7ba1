"""What others notice of scripts that try to get out, many of them at once; and what one costs.

One `emceepee serve`, two principals: the one runs scripts in as many sessions as are asked for,
each of which tries another way out or takes what it can get; the other sends `ping` at a fixed
rate, over a connection of its own. Reported are the median of a ping while nobody runs anything,
while scripts run that do nothing (processes of their own, which want processors too), and while
these try; how many times the first that is; the same of another daemon, which nobody gives a
script, and how many times that, so that one sees what all wait for processors; how many were run;
and how long one script takes that does nothing, which is what a process started beforehand could
spare it, next to a Python that does nothing.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from itertools import cycle
from pathlib import Path
from statistics import median

from neighbours import TOKENS, Client, give_way
from results import Pings, daemon

HARMLESS = ("1 + 1",)
WAYS_OUT = (
    "().__class__.__base__.__subclasses__()",
    "(lambda: 0).__globals__",
    "'{0.__class__.__init__.__globals__}'.format(servers)",
    "__import__('os').system('id')",
    "eval('__import__(\"os\")')",
    "import subprocess",
    "import socket",
    "import os\nos.kill(os.getppid(), 9)",
    "open('/proc/self/environ').read()",
    "raise SystemExit(3)",
    "x = 'a' * 10**12",
    "x = 2 ** 10**9",
    "def f(n):\n    return f(n + 1)\nf(0)",
    "x = []\nfor n in range(10**6):\n    x = [x]\nx",
    "for n in range(1000):\n    print('x' * 10_000)",
    "(" * 50_000,
)


def run(port: int, scripts: Iterator[str], lock: threading.Lock) -> None:
    """One session: one script after the other."""
    client = Client(port, TOKENS["attacker"])
    while True:
        with lock:
            code = next(scripts, None)
        if code is None:
            return
        client.call("codemode_execute", code=code, timeout_ms=60_000)


def attack(port: int, codes: Sequence[str], count: int, at_once: int) -> None:
    """In a process of its own, which keeps nobody from the processors."""
    give_way()
    scripts = (code for code, _ in zip(cycle(codes), range(count), strict=False))
    lock = threading.Lock()
    threads = [
        threading.Thread(target=run, args=(port, scripts, lock), daemon=True)
        for _ in range(at_once)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def during(
    port: int, other: int, codes: Sequence[str], count: int, at_once: int
) -> tuple[float, float, float]:
    """The median of a ping while so many run, here and there, and how long all took."""
    command = [sys.executable, __file__, "--attack", json.dumps([port, codes, count, at_once])]
    start = time.perf_counter()
    with Pings(port) as pings, Pings(other) as beside:
        subprocess.run(command, check=True, start_new_session=True)
    return pings.p50 * 1e3, beside.p50 * 1e3, time.perf_counter() - start


def alone(port: int) -> float:
    client = Client(port, TOKENS["attacker"])
    times = []
    for _ in range(9):
        start = time.perf_counter()
        client.call("codemode_execute", code="1 + 1")
        times.append(time.perf_counter() - start)
    return median(times) * 1e3


def python() -> float:
    times = []
    for _ in range(9):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-S", "-c", ""], check=True)
        times.append(time.perf_counter() - start)
    return median(times) * 1e3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1, help="changes nothing here")
    parser.add_argument("--scripts", type=int, default=1000)
    parser.add_argument("--at-once", type=int, default=16, help="sessions that run them")
    parser.add_argument("--attack", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.attack is not None:
        return attack(*json.loads(given.attack))
    with (
        tempfile.TemporaryDirectory() as folder,
        tempfile.TemporaryDirectory() as elsewhere,
        daemon(Path(folder), 1_000_000) as (_, port),
        daemon(Path(elsewhere), 1_000_000) as (_, other),
    ):
        print(
            f"one script that does nothing: {alone(port):.0f} ms; a bare Python {python():.0f} ms"
        )
        with Pings(port) as idle:
            time.sleep(2)
        heads = f"{'ping ms':>10}{'times idle':>12}{'beside ms':>11}{'times that':>12}"
        heads += f"{'scripts':>10}{'seconds':>10}"
        print(f"{'':24}{heads}")
        print(f"{'nobody':24}{idle.p50 * 1e3:10.2f}{1:12.2f}")
        for name, codes in (("they do nothing", HARMLESS), ("they try to get out", WAYS_OUT)):
            p50, beside, took = during(port, other, codes, given.scripts, given.at_once)
            shown = f"{p50:10.2f}{p50 / (idle.p50 * 1e3):12.2f}{beside:11.2f}{p50 / beside:12.2f}"
            print(f"{name:24}{shown}{given.scripts:10}{took:10.1f}", flush=True)
    return None


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt, BrokenPipeError):
        main()
