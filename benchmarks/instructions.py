"""How many instructions our process spends on one call: the number that neighbours do not change.

`emceepee serve` runs under valgrind's callgrind, and counts what it does between two looks, in
thousands a call. Servers are programs of their own and not counted. What is asked: tool calls from
HTTP to the `echo` of a stdio server and back, in the handshake era and in the modern one, and to
that of a server over HTTP; pings, and lists of our tools; then the same on pipes, of `emceepee
stdio`. Where there is no valgrind there is nothing to measure, which is said.
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
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from http_call import BACKEND, INITIALIZE, Client, free_port, server

START = r"""
import importlib, pathlib, re, sys
import emceepee_trio
from emceepee_trio.cli import main
root = pathlib.Path(emceepee_trio.__file__).parent
patient = re.compile(r"^QUICK = [0-9.]+$", re.MULTILINE)
(where,) = (p for p in root.rglob("*.py") if patient.search(p.read_text("utf-8")))
name = ".".join(where.relative_to(root.parent).with_suffix("").parts)
importlib.import_module(name).QUICK = 10.0
sys.argv[0] = "emceepee"
main()
"""
"""Under callgrind all takes fifty times as long. What is an answer at once without it is not to
become a stream with it, so the patience for that is fifty times as long, too."""
REMOTE = Path(__file__).parent / "beside/on_sdk.py"
"""The server behind a URL."""
MODERN = "2026-07-28"
STAMP = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": {"name": "benchmark", "version": "0"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
Json = dict[str, Any]
Rows = Mapping[str, Callable[[], bytes]]


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


class Pipes:
    """A client of `emceepee stdio`."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process, self.last = process, 0
        self.ask("initialize", **INITIALIZE)
        self.write({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def write(self, message: Json) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def ask(self, method: str, **params: Any) -> bytes:
        self.last += 1
        asked: Json = {"jsonrpc": "2.0", "id": self.last, "method": method}
        self.write(asked | ({"params": params} if params else {}))
        assert self.process.stdout is not None
        return self.process.stdout.readline()


class Counted:
    """One of ours under callgrind."""

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
    """The command of the daemon, with the patience of a slower machine."""
    command = [python, "-c", START, "serve", "--config", str(config), "--no-auth"]
    return [*command, "--bind", f"127.0.0.1:{port}"]


def valgrind(output: Path, command: list[str]) -> list[str]:
    return ["valgrind", "--tool=callgrind", f"--callgrind-out-file={output}", *command]


def measure(rows: Rows, counted: Counted, is_whole: bytes) -> None:
    for name, ask in rows.items():
        for _ in range(20):
            if is_whole not in ask().lower():
                sys.exit(f"{name}: what came is no whole answer")
        counted.look()
        for _ in range(options.runs):
            ask()
        print(f"{name:26}{counted.look() / options.runs / 1000:9.0f}", flush=True)


def chosen(rows: Rows) -> Rows:
    return {name: ask for name, ask in rows.items() if name.startswith(options.row)}


def main() -> None:
    if shutil.which("valgrind") is None:
        print("there is no valgrind here to count with")
        return
    os.environ["PYTHONHASHSEED"] = "0"
    echo = {"server": "raw", "tool": "echo", "args": {"text": "hello"}}
    call = {"name": "execute_tool", "arguments": echo}
    call_remote = {"name": "execute_tool", "arguments": {**echo, "server": "remote"}}
    remote = free_port()
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        os.environ["XDG_STATE_HOME"] = str(folder)
        config = folder / "config.json"
        stack.enter_context(server([sys.executable, str(REMOTE), str(remote)], remote))
        entries = {
            "raw": {"command": BACKEND[0], "args": BACKEND[1:]},
            "remote": {"url": f"http://127.0.0.1:{remote}/mcp"},
        }
        config.write_text(json.dumps({"mcpServers": entries}))
        print("thousands of instructions a call", flush=True)

        output, port = folder / "callgrind", free_port()
        process = stack.enter_context(server(valgrind(output, ours(port, config)), port))
        handshake, modern = clients = [Client(port), Modern(port)]
        for client in clients:
            stack.callback(client.socket.close)
            client.open()
        over_http = {
            "execute_tool, handshake": partial(handshake.ask, "tools/call", **call),
            "execute_tool, modern": partial(modern.ask, "tools/call", **call),
            "execute_tool over HTTP": partial(handshake.ask, "tools/call", **call_remote),
            "ping": partial(handshake.ask, "ping"),
            "tools/list": partial(handshake.ask, "tools/list"),
            "tools/list, modern": partial(modern.ask, "tools/list"),
        }
        measure(chosen(over_http), Counted(process.pid, output), b"application/json")

        output = folder / "pipes"
        command = [sys.executable, "-c", START, "stdio", "--config", str(config)]
        with subprocess.Popen(
            valgrind(output, command), stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as child:
            pipes = Pipes(child)
            on_pipes = {
                "execute_tool, pipes": partial(pipes.ask, "tools/call", **call),
                "ping, pipes": partial(pipes.ask, "ping"),
                "tools/list, pipes": partial(pipes.ask, "tools/list"),
            }
            measure(chosen(on_pipes), Counted(child.pid, output), b'"result"')
            assert child.stdin is not None
            child.stdin.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200, help="calls of each row")
    parser.add_argument("--row", default="", help="only those whose name begins so")
    options = parser.parse_args()
    main()
