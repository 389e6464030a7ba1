"""What a tool call costs through us: HTTP in, the echo tool of a stdio server out.

Beside it, in turns and in one run: a lean loop on stock hypercorn that does the same work by hand
(parse, write a line to the child, read a line, answer), and mcp-proxy where its command is found
(``pip install mcp-proxy==0.13.*`` anywhere on PATH, or ``--mcp-proxy PATH``). The client is a raw
keep-alive socket, so what is measured is the server's.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

BACKEND = [
    sys.executable,
    str(Path(__file__).parents[1] / "tests/support/raw_server.py"),
]
INITIALIZE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "benchmark", "version": "0"},
}


PATH = "/mcp"
LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)


class Client:
    """One keep-alive connection, one session."""

    era = "2025-11-25"

    def __init__(self, port: int) -> None:
        self.socket = connect(port)
        self.port = port
        self.session = ""
        self.last = 0

    def close(self) -> None:
        self.socket.close()

    def renew(self) -> None:
        """Another connection: some servers close one that nobody has used for five seconds."""
        self.close()
        self.socket = connect(self.port)

    def open(self) -> None:
        head = self.post({"id": 0, "method": "initialize", "params": INITIALIZE})
        if found := re.search(rb"mcp-session-id: *([^\r]+)", head, re.IGNORECASE):
            self.session = f"Mcp-Session-Id: {found[1].decode()}\r\n"
        self.post({"method": "notifications/initialized"})

    def ask(self, method: str, **params: Any) -> bytes:
        self.last += 1
        return self.post({"id": self.last, "method": method, "params": params})

    def call(self, name: str, arguments: dict[str, Any]) -> float:
        started = time.perf_counter()
        answer = self.ask("tools/call", name=name, arguments=arguments)
        took = time.perf_counter() - started
        if b"hello" not in answer:
            sys.exit(f"no echo from {PATH}: {answer[:500]!r}")
        return took

    def post(self, message: dict[str, Any]) -> bytes:
        self.socket.sendall(self.request(message))
        data = b""
        while not is_whole(data):
            data += read(self.socket)
        return data

    def request(self, message: dict[str, Any]) -> bytes:
        """What is sent."""
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        return (
            f"POST {PATH} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\n"
            "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
            f"MCP-Protocol-Version: {self.era}\r\n{self.session}"
            f"Content-Length: {len(body)}\r\n\r\n".encode()
            + body
        )


def connect(port: int) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def read(connection: socket.socket) -> bytes:
    if data := connection.recv(1 << 20):
        return data
    raise ConnectionError(f"{PATH}: the server closed the connection")


def is_whole(answer: bytes) -> bool:
    """Whether all of it has come."""
    head, blank, body = answer.partition(b"\r\n\r\n")
    if not blank:
        return False
    if length := LENGTH.search(head):
        return len(body) >= int(length[1])
    return b"chunked" not in head.lower() or body.endswith(b"0\r\n\r\n")


LEAN = """
import functools, json, subprocess, sys, trio
from hypercorn.config import Config
from hypercorn.trio import serve

async def main():
    child = await trio.lowlevel.open_process(
        json.loads(sys.argv[1]), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    waiting, sent = {}, [0]
    async def read():
        buffer = b""
        async for chunk in child.stdout:
            *lines, buffer = (buffer + chunk).split(b"\\n")
            for line in lines:
                answer = json.loads(line)
                if (found := waiting.pop(answer.get("id"), None)) is not None:
                    found[1] = answer
                    found[0].set()
    async def app(scope, receive, send):
        if scope["type"] != "http":
            raise ValueError(scope["type"])
        body = b""
        while True:
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        asked = json.loads(body)
        if "id" in asked:
            sent[0] += 1
            waiting[sent[0]] = found = [trio.Event(), None]
            await child.stdin.send_all(json.dumps({**asked, "id": sent[0]}).encode() + b"\\n")
            await found[0].wait()
            data, status = json.dumps({**found[1], "id": asked["id"]}).encode(), 200
        else:
            await child.stdin.send_all(body + b"\\n")
            data, status = b"", 202
        headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(data))]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": data})
    config = Config()
    config.bind, config.errorlog, config.keep_alive_max_requests = [sys.argv[2]], None, 10**9
    async with trio.open_nursery() as nursery:
        nursery.start_soon(read)
        await serve(app, config)
trio.run(main)
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextlib.contextmanager
def server(command: list[str], port: int) -> Iterator[subprocess.Popen[bytes]]:
    """A server that listens on *port*, ended by its id."""
    quiet = subprocess.DEVNULL
    with subprocess.Popen(command, stdin=quiet, stdout=quiet, stderr=quiet) as process:
        try:
            while True:
                if process.poll() is not None:
                    sys.exit(f"{' '.join(command)}: ended with {process.returncode}")
                with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                    break
                time.sleep(0.05)
            yield process
        finally:
            process.terminate()
            process.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=15, help="rounds of 200 calls each")
    parser.add_argument("--mcp-proxy", default=shutil.which("mcp-proxy"))
    options = parser.parse_args()
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        config = folder / "config.json"
        entry = {"command": BACKEND[0], "args": BACKEND[1:]}
        config.write_text(json.dumps({"mcpServers": {"raw": entry}}))
        os.environ["XDG_STATE_HOME"] = str(folder)
        clients: dict[str, tuple[Client, str, dict[str, Any]]] = {}

        def add(
            name: str, command: list[str], port: int, tool: str, arguments: dict[str, Any]
        ) -> None:
            stack.enter_context(server(command, port))
            client = Client(port)
            stack.callback(client.close)
            client.open()
            clients[name] = (client, tool, arguments)

        echo = {"text": "hello"}
        port = free_port()
        lean = [sys.executable, "-c", LEAN, json.dumps(BACKEND), f"127.0.0.1:{port}"]
        add("lean loop on hypercorn", lean, port, "echo", echo)
        port = free_port()
        ours = [sys.executable, "-m", "emceepee_trio", "serve", "--config", str(config)]
        ours += ["--no-auth", "--bind", f"127.0.0.1:{port}"]
        call = {"server": "raw", "tool": "echo", "args": echo}
        add("emceepee", ours, port, "execute_tool", call)
        if options.mcp_proxy:
            port = free_port()
            proxy = [options.mcp_proxy, "--port", str(port), "--", *BACKEND]
            add("mcp-proxy", proxy, port, "echo", echo)

        took: dict[str, list[float]] = {name: [] for name in clients}
        for _ in range(options.runs):
            for name, (client, tool, arguments) in clients.items():
                client.renew()
                took[name] += [client.call(tool, arguments) for _ in range(200)]
    yardstick = statistics.median(next(iter(took.values())))
    print(f"{'one tool call':26}{'p50 ms':>9}{'p95 ms':>9}{'ratio':>8}")
    for name, times in took.items():
        median = statistics.median(times)
        p95 = statistics.quantiles(times, n=20)[18]
        print(f"{name:26}{median * 1e3:9.3f}{p95 * 1e3:9.3f}{median / yardstick:8.2f}")


if __name__ == "__main__":
    main()
