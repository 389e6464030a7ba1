"""How soon the page answers, and what it costs calls that somebody looks at it.

One `emceepee serve` with 1000 sessions, some of which call all the time, so that it notes 10,000
facts a minute. Beside them one session calls `echo`, in rounds: with nobody at the page, and with a
browser at it, which asks for it whenever its stream says that something has changed. Reported are
the time to the first byte of each page, and the median of a call beside that of the rounds with
nobody at the page.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import socket
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from http_call import BACKEND, Client, connect, free_port, is_whole, read, server

FACTS_A_MINUTE = 10_000
A_CALL = 5
"""Facts that one call notes."""
WORKING = 10
"""Sessions that call."""
ECHO = {"server": "raw", "tool": "echo", "args": {"text": "hello"}}


def get(connection: socket.socket, port: int, path: str, accept: str) -> tuple[float, bytes]:
    """Seconds to the first byte of it, and all of it."""
    asked = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAccept: {accept}\r\n\r\n"
    began = time.perf_counter()
    connection.sendall(asked.encode())
    data = read(connection)
    first = time.perf_counter() - began
    while not is_whole(data):
        data += read(connection)
    if not data.startswith(b"HTTP/1.1 200"):
        sys.exit(f"{path}: {data[:300]!r}")
    return first, data


class Work(threading.Thread):
    """Sessions that call, one after the other, as often as there are to be facts."""

    def __init__(self, port: int) -> None:
        super().__init__(daemon=True)
        self.clients = [Client(port) for _ in range(WORKING)]
        for client in self.clients:
            client.open()
            client.call("execute_tool", ECHO)
        self.calls = 0
        self.over = threading.Event()

    def run(self) -> None:
        began, pause = time.monotonic(), 60 * A_CALL / FACTS_A_MINUTE
        while not self.over.wait(max(0.0, began + self.calls * pause - time.monotonic())):
            self.clients[self.calls % WORKING].call("execute_tool", ECHO)
            self.calls += 1


class Onlooker(threading.Thread):
    """A browser that has one page open."""

    def __init__(self, port: int, path: str) -> None:
        super().__init__(daemon=True)
        self.port, self.path = port, path
        self.first: list[float] = []
        self.over = threading.Event()
        self.stream = connect(port)

    def run(self) -> None:
        asked = f"GET /live HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\n\r\n"
        self.stream.sendall(asked.encode())
        with contextlib.closing(connect(self.port)) as connection, contextlib.suppress(OSError):
            while not self.over.is_set():
                if b"changed" in read(self.stream):
                    first, _ = get(connection, self.port, self.path, "text/html")
                    self.first.append(first)

    def end(self) -> None:
        self.over.set()
        with contextlib.suppress(OSError):
            self.stream.shutdown(socket.SHUT_RDWR)
        self.join()
        self.stream.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10, help="rounds of 200 calls each, of a page")
    parser.add_argument("--sessions", type=int, default=1000)
    options = parser.parse_args()
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        config, port = folder / "config.json", free_port()
        entry: dict[str, Any] = {"command": BACKEND[0], "args": BACKEND[1:], "start": "lazy"}
        limits = {"sessions": 5000}
        config.write_text(json.dumps({"mcpServers": {"raw": entry}, "limits": limits}))
        command = [sys.executable, "-m", "emceepee_trio", "serve", "--config", str(config)]
        command += ["--no-auth", "--bind", f"127.0.0.1:{port}", "--state-dir", str(folder)]
        stack.enter_context(server(command, port))
        opener = Client(port)
        for _ in range(options.sessions):
            opener.session = ""
            opener.open()
        work, probe = Work(port), Client(port)
        probe.open()
        work.start()
        began = time.monotonic(), work.calls
        looker = connect(port)
        _, listed = get(looker, port, "/api/sessions", "application/json")
        body = json.loads(listed.partition(b"\r\n\r\n")[2])
        paths = ["/", "/sessions", f"/sessions/{body['sessions'][0]['name']}"]
        names = ["first page", "sessions", "one session"]
        print(f"{'page':14}{'first byte':>12}{'worst':>10}{'p50 of a call':>16}", flush=True)
        for name, path in zip(names, paths, strict=True):
            get(looker, port, path, "text/html")  # templates are compiled once
            alone: list[float] = []
            watched: list[float] = []
            first: list[float] = []
            for _ in range(options.runs):
                alone += [probe.call("execute_tool", ECHO) for _ in range(200)]
                onlooker = Onlooker(port, path)
                onlooker.start()
                watched += [probe.call("execute_tool", ECHO) for _ in range(200)]
                onlooker.end()
                first += onlooker.first
            first += [get(looker, port, path, "text/html")[0] for _ in range(20)]
            ratio = statistics.median(watched) / statistics.median(alone)
            print(
                f"{name:14}{statistics.median(first) * 1e3:9.1f} ms{max(first) * 1e3:7.1f} ms"
                f"{ratio:14.2f} x",
                flush=True,
            )
        calls, seconds = work.calls - began[1], time.monotonic() - began[0]
        _, told = get(looker, port, "/status", "application/json")
        slow = json.loads(told.partition(b"\r\n\r\n")[2])["slow_steps"]
        print(
            f"{slow['count']} steps took 20 ms of processor time or more since the daemon began, "
            f"collections of garbage too; the longest {slow['longest_ms']} ms"
        )
        print(f"{calls * A_CALL * 60 / seconds:.0f} facts a minute, beside those of that one")
        work.over.set()
        work.join()


if __name__ == "__main__":
    main()
