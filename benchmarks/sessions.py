"""What many sessions cost: memory of idle ones, and how long it takes to wake all who wait.

Opens N sessions without servers on one `emceepee serve`, each over a connection of its own, for N
of 10, 100 and 1000. Then every session has a timer that fires at the same moment, and waits for it
in `await_activity`. Reported are the memory a session costs, the time from that moment to the
first, the median and the last response, and the longest that all of them had to wait for one task.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import re
import resource
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import trio

INITIALIZE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "benchmark", "version": "0"},
}


class Client:
    """One keep-alive connection, one session."""

    def __init__(self, stream: trio.SocketStream, port: int) -> None:
        self.stream = stream
        self.port = port
        self.session = ""

    async def open(self) -> None:
        head = await self.post({"id": 0, "method": "initialize", "params": INITIALIZE})
        found = re.search(rb"mcp-session-id: *([^\r]+)", head, re.IGNORECASE)
        if found is None:
            sys.exit(f"no session: {head[:300]!r}")
        self.session = f"Mcp-Session-Id: {found[1].decode()}\r\n"
        await self.post({"method": "notifications/initialized"})

    async def call(self, name: str, **arguments: Any) -> bytes:
        params = {"name": name, "arguments": arguments}
        return await self.post({"id": 1, "method": "tools/call", "params": params})

    async def post(self, message: dict[str, Any]) -> bytes:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        head = (
            f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\n"
            "Content-Type: application/json\r\n"
            f"Accept: application/json, text/event-stream\r\n{self.session}"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        await self.stream.send_all(head.encode() + body)
        data = b""
        while b"\r\n\r\n" not in data:
            data += await self._more()
        head_bytes, _, rest = data.partition(b"\r\n\r\n")
        if length := re.search(rb"content-length: *(\d+)", head_bytes, re.IGNORECASE):
            while len(rest) < int(length[1]):
                rest += await self._more()
        else:
            while not rest.endswith(b"0\r\n\r\n"):
                rest += await self._more()
        return head_bytes + b"\r\n\r\n" + rest

    async def _more(self) -> bytes:
        if data := await self.stream.receive_some():
            return bytes(data)
        sys.exit("the server closed a connection")


def resident(pid: int) -> int:
    """Kilobytes."""
    status = Path(f"/proc/{pid}/status").read_text()
    found = re.search(r"VmRSS:\s+(\d+) kB", status)
    assert found is not None
    return int(found[1])


def longest_step(port: int) -> int:
    """Milliseconds of processor time; of those below 20 the daemon keeps no account."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/status") as response:
        longest: int = json.load(response)["slow_steps"]["longest_ms"]
    return longest


async def measure(pid: int, port: int, count: int) -> None:
    before = resident(pid)
    limit = trio.CapacityLimiter(50)
    clients: list[Client] = []

    async def open_one() -> None:
        async with limit:
            stream = await trio.open_tcp_stream("127.0.0.1", port)
            client = Client(stream, port)
            await client.open()
            clients.append(client)

    async with trio.open_nursery() as nursery:
        for _ in range(count):
            nursery.start_soon(open_one)
    after = resident(pid)

    fires = time.monotonic() + 3 + count / 100
    ended: list[float] = []

    async def set_timer(client: Client) -> None:
        async with limit:
            left = max(100, round((fires - time.monotonic()) * 1000))
            await client.call("set_timer", duration_ms=left, message="now")

    async def wait(client: Client) -> None:
        answer = await client.call("await_activity", timeout_ms=600_000)
        if b"timer_expired" not in answer:
            sys.exit(f"woken by something else: {answer[:500]!r}")
        ended.append(time.monotonic() - fires)

    async with trio.open_nursery() as nursery:
        for client in clients:
            nursery.start_soon(set_timer, client)
    async with trio.open_nursery() as nursery:
        for client in clients:
            nursery.start_soon(wait, client)
    ended.sort()
    longest = await trio.to_thread.run_sync(longest_step, port)
    print(
        f"{count:9}{(after - before) / count:15.1f}"
        f"{ended[0] * 1e3:12.1f}{ended[len(ended) // 2] * 1e3:12.1f}{ended[-1] * 1e3:12.1f}"
        f"{longest:12}",
        flush=True,
    )
    for client in clients:
        await client.stream.aclose()


@contextlib.contextmanager
def daemon() -> Iterator[tuple[int, int]]:
    """An `emceepee serve` without servers: its pid and port."""
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder, "config.json")
        config.write_text(json.dumps({"limits": {"sessions": 5000}}))
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port: int = probe.getsockname()[1]
        command = [sys.executable, "-m", "emceepee_trio", "serve", "--config", str(config)]
        command += ["--no-auth", "--bind", f"127.0.0.1:{port}", "--state-dir", folder]
        quiet = subprocess.DEVNULL
        with subprocess.Popen(command, stdin=quiet, stdout=quiet, stderr=quiet) as process:
            try:
                while True:
                    if process.poll() is not None:
                        sys.exit(f"{' '.join(command)}: ended with {process.returncode}")
                    with (
                        contextlib.suppress(OSError),
                        socket.create_connection(("127.0.0.1", port)),
                    ):
                        break
                    time.sleep(0.05)
                yield process.pid, port
            finally:
                process.terminate()
                process.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, help="not used here; all benchmarks take it")
    parser.parse_args()
    if not Path("/proc").is_dir():
        sys.exit("memory is read from /proc, which is not here")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 4096)), hard))
    print(
        f"{'sessions':>9}{'kB a session':>15}{'first ms':>12}{'median ms':>12}{'last ms':>12}"
        f"{'step ms':>12}"
    )
    for count in (10, 100, 1000):
        with daemon() as (pid, port):
            trio.run(measure, pid, port, count)


if __name__ == "__main__":
    main()
