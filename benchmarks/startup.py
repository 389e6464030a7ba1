"""How long a client waits for ``emceepee stdio`` to answer for the first time.

Measured from before the process is started to the answers of ``initialize`` and ``tools/list``,
beside two processes that any such server contains: a bare Python, and one that imports the SDK.
The bridge (``--connect``) leads to a daemon that runs already.
All are taken in turns in one run, so that the ratios mean something on a busy machine too.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from http_call import free_port, server

YARDSTICK = "import mcp"

ASKED: list[dict[str, Any]] = [
    {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "benchmark", "version": "0"},
        },
    },
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
    {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
]


def python(code: str) -> Iterator[tuple[str, float]]:
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True)
    yield "exit", time.perf_counter() - started


def stdio(*options: str) -> Iterator[tuple[str, float]]:
    command = [sys.executable, "-m", "emceepee_trio", "stdio", *options]
    started = time.perf_counter()
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            for message in ASKED:
                process.stdin.write(json.dumps(message).encode() + b"\n")
                process.stdin.flush()
                if (wanted := message.get("id")) is None:
                    continue
                for line in process.stdout:
                    answer = json.loads(line)
                    if answer.get("id") == wanted and "method" not in answer:
                        break
                else:
                    sys.exit(f"{' '.join(command)}: ended without an answer")
                if "result" not in answer:
                    sys.exit(f"{' '.join(command)}: {answer}")
                yield message["method"], time.perf_counter() - started
        finally:
            process.stdin.close()  # it ends, and leaving the block waits for that


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=10)
    runs = parser.parse_args().runs

    taken: dict[tuple[str, str], list[float]] = {}
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        config, port = Path(folder, "config.json"), free_port()
        config.write_text("{}")
        own = ("--config", str(config))
        daemon = [sys.executable, "-m", "emceepee_trio", "serve", *own, "--state-dir", folder]
        daemon += ["--no-auth", "--bind", f"127.0.0.1:{port}"]
        stack.enter_context(server(daemon, port))
        for run in range(runs + 1):
            for name, moments in (
                ("pass", python("pass")),
                (YARDSTICK, python(YARDSTICK)),
                ("emceepee stdio", stdio(*own)),
                ("emceepee stdio --demo", stdio(*own, "--demo")),
                ("stdio --connect", stdio("--connect", f"http://127.0.0.1:{port}")),
            ):
                for moment, seconds in moments:
                    if run:  # the first only fills caches
                        taken.setdefault((name, moment), []).append(seconds)

    medians = {key: statistics.median(times) for key, times in taken.items()}
    yardstick = medians[YARDSTICK, "exit"]
    print(f"Medians of {runs} runs, beside {YARDSTICK!r}\n")
    print(f"{'process':<24}{'until':<14}{'ms':>8}{'ratio':>8}")
    for (name, moment), median in medians.items():
        print(f"{name:<24}{moment:<14}{median * 1000:>8.0f}{median / yardstick:>8.2f}")


if __name__ == "__main__":
    main()
