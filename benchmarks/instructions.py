"""How many instructions our process spends on one call: the number that neighbours do not change.

`emceepee serve` runs under valgrind's callgrind, and counts what it does between two looks, in
thousands a call. Servers are programs of their own and not counted. What is asked: tool calls from
HTTP to the `echo` of a stdio server and back, in the handshake era and in the modern one, pings,
and lists of our tools. Where there is no valgrind there is nothing to measure, which is said.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from http_call import BACKEND, Client, free_port, server

START = r"""
import importlib, pathlib, re, sys
import emceepee_trio
from emceepee_trio.cli import main
root = pathlib.Path(emceepee_trio.__file__).parent
patient = re.compile(r"^QUICK = 0\.\d+$", re.MULTILINE)
(where,) = (p for p in root.rglob("*.py") if patient.search(p.read_text("utf-8")))
name = ".".join(where.relative_to(root.parent).with_suffix("").parts)
importlib.import_module(name).QUICK = 10.0
sys.argv[0] = "emceepee"
main()
"""
"""Under callgrind all takes fifty times as long. What is an answer at once without it is not to
become a stream with it, so the patience for that is fifty times as long, too."""
MODERN = "2026-07-28"
STAMP = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": {"name": "benchmark", "version": "0"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
Json = dict[str, Any]


class Modern(Client):
    """No handshake; each request says who it is."""

    def open(self) -> None:
        self.era = MODERN

    def request(self, message: Json) -> bytes:
        params = {**message.get("params", {}), "_meta": STAMP}
        self.session = f"Mcp-Method: {message['method']}\r\n"
        if "name" in params:
            self.session += f"Mcp-Name: {params['name']}\r\n"
        return super().request({**message, "params": params})


class Counted:
    """The daemon under callgrind."""

    def __init__(self, pid: int, output: Path) -> None:
        self.pid, self.output = pid, output
        self.looks = 0

    def look(self) -> int:
        """Instructions since the last time."""
        self.looks += 1
        control = ["callgrind_control", "--dump", str(self.pid)]
        subprocess.run(control, check=True, capture_output=True)
        text = Path(f"{self.output}.{self.looks}").read_text("utf-8")
        found = re.search(r"^(?:summary|totals): (\d+)$", text, re.MULTILINE)
        return int(found[1]) if found else sys.exit("callgrind has written no sum")


def ours(port: int, config: Path, python: str = sys.executable) -> list[str]:
    """The command, with the patience of a slower machine."""
    command = [python, "-c", START, "serve", "--config", str(config), "--no-auth"]
    return [*command, "--bind", f"127.0.0.1:{port}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200, help="calls of each row")
    parser.add_argument("--row", default="", help="only those whose name begins so")
    options = parser.parse_args()
    if shutil.which("valgrind") is None:
        print("there is no valgrind here to count with")
        return
    os.environ["PYTHONHASHSEED"] = "0"
    echo = {"server": "raw", "tool": "echo", "args": {"text": "hello"}}
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        os.environ["XDG_STATE_HOME"] = str(folder)
        config = folder / "config.json"
        entry = {"command": BACKEND[0], "args": BACKEND[1:]}
        config.write_text(json.dumps({"mcpServers": {"raw": entry}}))
        output, port = folder / "callgrind", free_port()
        command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={output}"]
        process = stack.enter_context(server([*command, *ours(port, config)], port))
        counted = Counted(process.pid, output)
        clients = [Client(port), Modern(port)]
        for client in clients:
            stack.callback(client.socket.close)
            client.open()
        handshake, modern = clients
        call = {"name": "execute_tool", "arguments": echo}
        rows: dict[str, Callable[[], bytes]] = {
            "execute_tool, handshake": partial(handshake.ask, "tools/call", **call),
            "execute_tool, modern": partial(modern.ask, "tools/call", **call),
            "ping": partial(handshake.ask, "ping"),
            "tools/list": partial(handshake.ask, "tools/list"),
        }
        print("thousands of instructions a call", flush=True)
        for name, ask in rows.items():
            if not name.startswith(options.row):
                continue
            for _ in range(20):
                if b"application/json" not in ask().lower():
                    sys.exit(f"{name}: the answer is a stream")
            counted.look()
            for _ in range(options.runs):
                ask()
            print(f"{name:26}{counted.look() / options.runs / 1000:9.0f}", flush=True)


if __name__ == "__main__":
    main()
