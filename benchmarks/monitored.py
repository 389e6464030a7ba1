"""What it costs a call to be counted for monitors, and to be traced: instructions, as ratios.

As `instructions.py` counts them, of a daemon that counts nothing, of one as it is, and of one that
traces every request and sends what it has traced. Where there is no valgrind it says so.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

from http_call import BACKEND, Client, free_port, server
from instructions import START, Counted

UNCOUNTED = r"""
from contextlib import nullcontext
from emceepee_trio.web.metrics.scrape import Metrics
Metrics.reading = lambda self: nullcontext()
"""
CALL = {
    "name": "execute_tool",
    "arguments": {"server": "raw", "tool": "echo", "args": {"text": "hello"}},
}


class _Collector(BaseHTTPRequestHandler):
    """Takes everything, and keeps nothing."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextlib.contextmanager
def collector() -> Iterator[str]:
    """Its URL."""
    listening = ThreadingHTTPServer(("127.0.0.1", 0), _Collector)
    Thread(target=listening.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listening.server_port}"
    finally:
        listening.shutdown()


def instructions(start: str, settings: dict[str, Any], runs: int) -> float:
    """Of one call."""
    with tempfile.TemporaryDirectory() as name:
        folder, port = Path(name), free_port()
        config, output = folder / "config.json", folder / "callgrind"
        entry = {"command": BACKEND[0], "args": BACKEND[1:]}
        config.write_text(json.dumps({"mcpServers": {"raw": entry}, "telemetry": settings}))
        command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={output}"]
        command += [sys.executable, "-c", start, "serve", "--config", str(config), "--no-auth"]
        os.environ["XDG_STATE_HOME"] = name
        with server([*command, "--bind", f"127.0.0.1:{port}"], port) as process:
            counted, client = Counted(process.pid, output), Client(port)
            with contextlib.closing(client):
                client.open()
                for _ in range(20):
                    client.ask("tools/call", **CALL)
                counted.look()
                for _ in range(runs):
                    client.ask("tools/call", **CALL)
                return counted.look() / runs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200, help="calls of each row")
    options = parser.parse_args()
    if shutil.which("valgrind") is None:
        print("there is no valgrind here to count with")
        return
    os.environ["PYTHONHASHSEED"] = "0"
    with collector() as url:
        traced = {"traces": True, "metrics": True, "endpoint": url}
        rows: dict[str, tuple[str, dict[str, Any]]] = {
            "nothing is counted": (UNCOUNTED + START, {}),
            "counted for monitors": (START, {}),
            "and traced": (START, traced),
        }
        plain = 0.0
        for name, (start, settings) in rows.items():
            found = instructions(start, settings, options.runs)
            plain = plain or found
            print(f"{name:26}{found / 1000:9.0f} thousand{found / plain:7.2f}", flush=True)


if __name__ == "__main__":
    main()
