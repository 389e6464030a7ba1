"""What a long result of a server costs: memory, the time to search it, and what others notice.

One `emceepee serve`, two principals, and a server that is a program, or one behind a URL that
answers with JSON or with events (``--over``). The one principal calls a tool whose answer has so
many megabytes, of which it is shown a preview, and then looks for a word in what is kept; the other
sends `ping` at a fixed rate, over a connection of its own. Each row has a fresh daemon, which has
seen a short result.

Reported are, as multiples of the message, the daemon's memory at its highest while the result came
and what it held afterwards; the time of the call beside that of a client which reads the same
message by itself and parses it at once; the processor time of a `grep`, and how long it took, the
median and the longest of several; and the medians of a ping, in that time and when nobody else asks
for anything.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from statistics import median
from typing import Any, Self

from neighbours import PERIOD, TOKENS, Client

Json = dict[str, Any]
MB = 1_000_000
GREPS = 9
WORDS = ("the needle", r"needle \d+", "no such word")
"""What is looked for: the first two are in the last line, the third nowhere."""


# The server


def lines(size: int) -> str:
    line = "2026-01-01T00:00:00Z worker 7: a line of a log, as long as these are in the middle\n"
    return line * (size // len(line)) + "the needle 42\n"


def rows(size: int) -> str:
    row = {"id": 0, "name": "a row of a table", "tags": ["a", "b"], "note": "needle in none of it"}
    count = size // (len(json.dumps(row)) + 7)
    return json.dumps([{**row, "id": n} for n in range(count)] + [{"note": "the needle 42"}])


def result(kind: str, size: int) -> Json:
    match kind:
        case "lines":
            return {"content": [{"type": "text", "text": lines(size)}]}
        case "a squid in a text":  # which makes each character four bytes of a string of Python
            return {"content": [{"type": "text", "text": "🦑" + lines(size)}]}
        case "image":
            data = "iVBORw0K" * (size // 8)
            return {"content": [{"type": "image", "mimeType": "image/png", "data": data}]}
        case "JSON in a text":
            return {"content": [{"type": "text", "text": rows(size)}]}
        case "values":
            return {"content": [], "structuredContent": {"rows": json.loads(rows(size))}}
    raise ValueError(kind)


KINDS = ("lines", "a squid in a text", "image", "JSON in a text", "values")
OVER = ("stdio", "json", "events")
PROGRAM: Json = {"command": sys.executable, "args": [__file__, "--server"]}


def message(request_id: Any, said: Json) -> bytes:
    whole = {"jsonrpc": "2.0", "id": request_id, "result": said}
    return json.dumps(whole, ensure_ascii=False).encode() + b"\n"


def answer(asked: Json) -> bytes:
    """To a request; nothing, if it is none."""
    method, params = asked.get("method", ""), asked.get("params") or {}
    if "id" not in asked:
        return b""
    said: Json = {"tools": [{"name": "long", "inputSchema": {"type": "object"}}]}
    if method == "initialize":
        info = {"name": "long", "version": "0"}
        said = {"protocolVersion": params["protocolVersion"], "serverInfo": info}
        said["capabilities"] = {"tools": {}}
    elif method == "tools/call":
        said = result(params["arguments"]["kind"], params["arguments"]["size"])
    return message(asked["id"], said)


def serve() -> None:
    for line in sys.stdin:
        sys.stdout.buffer.write(answer(json.loads(line)))
        sys.stdout.buffer.flush()


class Handler(BaseHTTPRequestHandler):
    """Of a server behind a URL."""

    protocol_version = "HTTP/1.1"
    events = False

    def do_POST(self) -> None:
        said = answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        kind = "application/json"
        if self.events and said:
            said, kind = b"data: " + said + b"\n", "text/event-stream"
        self.send_response(200 if said else 202)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    def do_GET(self) -> None:
        self.send_error(405)

    def do_DELETE(self) -> None:
        self.send_error(405)

    def log_message(self, *_: object) -> None:
        pass


@contextlib.contextmanager
def entry(over: str) -> Iterator[Json]:
    """Of the server, in a configuration."""
    if over == "stdio":
        yield PROGRAM
        return
    command = [sys.executable, __file__, "--server", "--over", over]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield {"url": f"http://127.0.0.1:{int(server.stdout.readline())}/mcp"}
        finally:
            server.terminate()


def serve_urls(over: str) -> None:
    of_kind = type("Of", (Handler,), {"events": over == "events"})
    with ThreadingHTTPServer(("127.0.0.1", 0), of_kind) as server:
        print(server.server_port, flush=True)
        server.serve_forever()


# The measurement


@contextlib.contextmanager
def daemon(folder: Path, size: int, server: Json | None = None) -> Iterator[tuple[int, int]]:
    """The process and the port of an `emceepee serve` that takes such messages."""
    config, ready = folder / "config.json", folder / "port"
    settings = {
        "mcpServers": {"long": PROGRAM if server is None else server},
        "limits": {"message": 2 * size + 10 * MB, "values": 100_000_000, "answer_ms": 600_000},
        "results": {"bytes": 4 * size + 10 * MB},
        "http": {"tokens": TOKENS},
        "policy": {"spawn": "allow"},
    }
    config.write_text(json.dumps(settings))
    command = [sys.executable, "-m", "emceepee_trio", "serve", "--config", str(config)]
    command += ["--bind", "127.0.0.1:0", "--state-dir", str(folder)]
    with (
        ready.open("wb") as out,
        subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.DEVNULL
        ) as process,
    ):
        try:
            while "127.0.0.1:" not in (said := ready.read_text()) or "\n" not in said:
                if process.poll() is not None:
                    sys.exit(f"{' '.join(command)}: ended with {process.returncode}")
                time.sleep(0.05)
            port = said.partition("127.0.0.1:")[2].partition("/")[0].split()[0]
            yield process.pid, int(port)
        finally:
            process.terminate()
            process.wait(20)


def memory(pid: int, what: str) -> int:
    """Bytes: ``VmRSS`` what it has, ``VmHWM`` the most that it has had since it was reset."""
    for line in Path(f"/proc/{pid}/status").read_text("utf-8").splitlines():
        if line.startswith(what):
            return int(line.split()[1]) * 1024
    raise ValueError(what)


def processor_time(pid: int) -> float:
    """Seconds that it has had."""
    fields = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def reset_peak(pid: int) -> None:
    Path(f"/proc/{pid}/clear_refs").write_text("5", "utf-8")


class Pings(threading.Thread):
    """As long as the block lasts."""

    def __init__(self, port: int) -> None:
        super().__init__(daemon=True)
        self.client = Client(port, TOKENS["neighbour"])
        self.times: list[float] = []
        self.over = threading.Event()

    def run(self) -> None:
        due = time.perf_counter()
        while not self.over.wait(max(0.0, due - time.perf_counter())):
            self.client.request("ping")
            now = time.perf_counter()
            while due <= now:  # also those that were due while this one was late
                self.times.append(now - due)
                due += PERIOD

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self.join()

    @property
    def p50(self) -> float:
        return median(self.times) if self.times else 0.0

    @property
    def worst(self) -> float:
        return max(self.times, default=0.0)


def call(client: Client, kind: str, size: int) -> Json:
    """What is shown of it."""
    args = {"kind": kind, "size": size}
    said = client.call("execute_tool", server="long", tool="long", args=args, timeout_ms=600_000)
    shown: Json = json.loads(said["content"][0]["text"])
    return shown


def alone(kind: str, size: int) -> float:
    """Seconds until a client has it that does nothing else with it."""
    with subprocess.Popen(
        [sys.executable, __file__, "--server"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        params = {"name": "long", "arguments": {"kind": kind, "size": size}}
        asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        start = time.perf_counter()
        server.stdin.write(json.dumps(asked).encode() + b"\n")
        server.stdin.flush()
        json.loads(server.stdout.readline())
        took = time.perf_counter() - start
        server.stdin.close()
        return took


def measure(kind: str, size: int, over: str) -> Json:
    length = len(message(1, result(kind, size)))
    beside = alone(kind, size)
    with (
        tempfile.TemporaryDirectory() as folder,
        entry(over) as server,
        daemon(Path(folder), size, server) as (pid, port),
    ):
        client = Client(port, TOKENS["attacker"])
        call(client, kind, 50_000)
        with Pings(port) as idle:
            time.sleep(1)
        before = memory(pid, "VmRSS")
        reset_peak(pid)
        start = time.perf_counter()
        with Pings(port) as coming:
            shown = call(client, kind, size)
            took = time.perf_counter() - start
        peak, after = memory(pid, "VmHWM") - before, memory(pid, "VmRSS") - before
        reset_peak(pid)
        greps: list[float] = []
        used = processor_time(pid)
        for n in range(GREPS):
            client.call("read_result", id=shown["result"], grep=WORDS[n % len(WORDS)])
        used = (processor_time(pid) - used) / GREPS
        with Pings(port) as searched:
            for n in range(GREPS):
                start = time.perf_counter()
                client.call("read_result", id=shown["result"], grep=WORDS[n % len(WORDS)])
                greps.append(time.perf_counter() - start)
        return {
            "kind": kind,
            "over": over,
            "mb": round(length / MB, 1),
            "peak": peak / length,
            "after": after / length,
            "call_s": took,
            "times_alone": took / beside,
            "grep_cpu_ms": used * 1e3,
            "grep_ms": median(greps) * 1e3,
            "grep_worst_ms": max(greps) * 1e3,
            "ping_idle_ms": idle.p50 * 1e3,
            "ping_coming_ms": coming.p50 * 1e3,
            "ping_searched_ms": searched.p50 * 1e3,
            "ping_worst_ms": max(coming.worst, searched.worst) * 1e3,
        }


COLUMNS = {
    "mb": ("MB", ".1f"),
    "peak": ("highest", ".2f"),
    "after": ("held", ".2f"),
    "call_s": ("call s", ".2f"),
    "times_alone": ("times alone", ".2f"),
    "grep_cpu_ms": ("grep CPU ms", ".0f"),
    "grep_ms": ("grep ms", ".0f"),
    "grep_worst_ms": ("longest", ".0f"),
    "ping_idle_ms": ("ping ms", ".2f"),
    "ping_coming_ms": ("coming", ".2f"),
    "ping_searched_ms": ("searched", ".2f"),
    "ping_worst_ms": ("worst", ".1f"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1, help="of each row; the medians are shown")
    parser.add_argument("--mb", type=int, action="append", help="of a result; 1, 10 and 100")
    parser.add_argument("--row", action="append", help="only kinds that begin so")
    parser.add_argument("--over", choices=OVER, default="stdio", help="how its server is reached")
    parser.add_argument("--json", type=Path, help="write all that was found there")
    parser.add_argument("--server", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.server:
        return serve() if given.over == "stdio" else serve_urls(given.over)
    print(f"{'':20}" + "".join(f"{head:>12}" for head, _ in COLUMNS.values()))
    found: list[Json] = []
    for kind in KINDS:
        if not kind.startswith(tuple(given.row or [""])):
            continue
        for size in given.mb or (1, 10, 100):
            runs = [measure(kind, size * MB, given.over) for _ in range(max(1, min(given.runs, 5)))]
            found += runs
            shown = {name: median(run[name] for run in runs) for name in COLUMNS}
            said = (f"{shown[name]:12{how}}" for name, (_, how) in COLUMNS.items())
            print(f"{kind:20}" + "".join(said), flush=True)
    if given.json is not None:
        given.json.write_text(json.dumps(found, indent=1), "utf-8")
    return None


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt, BrokenPipeError):
        main()
