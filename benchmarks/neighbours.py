"""What everybody else notices of a session whose client and servers are hostile.

One `emceepee serve`, two principals. The one asks for nothing but `ping`, at a fixed rate, over a
connection of its own; the other attacks, in a process of its own, with servers of its own. Each
attack gets a fresh daemon. First the pings are timed while that process and its servers are there
and silent: the idle time. Then they are timed while it attacks, without an end.

Reported are the 99th percentiles and what one is of the other. A ping that is late makes those
late that should have been sent meanwhile, and they count as well. The attacker and its servers
need processors too, of which there may be but two: they give way to everybody, so that what the
pings wait for is the daemon. How well they do is shown by another daemon, which nobody attacks and
which is pinged meanwhile.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import http.server
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

Json = dict[str, Any]
TOKENS = {"neighbour": "n" * 32, "attacker": "a" * 32}
PERIOD = 0.01
"""Seconds between two pings."""
AIM = 5


class Client:
    """One session over one connection."""

    def __init__(self, port: int, token: str) -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
        self.headers = {
            "Authorization": f"Bearer {token}",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
        }
        version = {"protocolVersion": "2025-11-25", "capabilities": {}}
        self.request("initialize", version | {"clientInfo": {"name": "benchmark", "version": "0"}})
        self.post({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def post(self, message: Json) -> bytes:
        self.connection.request("POST", "/mcp", json.dumps(message).encode(), self.headers)
        response = self.connection.getresponse()
        if (session := response.headers.get("mcp-session-id")) is not None:
            self.headers["Mcp-Session-Id"] = session
        return response.read()

    def request(self, method: str, params: Json | None = None) -> bytes:
        message: Json = {"jsonrpc": "2.0", "id": 1, "method": method}
        return self.post(message if params is None else message | {"params": params})

    def call(self, tool: str, /, **arguments: Any) -> Json:
        """The result of a tool of ours; empty if it is none."""
        body = self.request("tools/call", {"name": tool, "arguments": arguments})
        start = body.find(b'{"jsonrpc"')
        end = body.find(b"\n", start) if start > 0 else len(body)
        answer: Json = json.loads(body[start:end] if start >= 0 else b"{}")
        result: Json = answer.get("result", {})
        return result

    def says(self, tool: str, /, **arguments: Any) -> Json:
        for block in self.call(tool, **arguments).get("content", []):
            with contextlib.suppress(ValueError, KeyError):
                said: Json = json.loads(block["text"])
                return said
        return {}

    def add(self, mode: str, **options: Any) -> None:
        command = {"command": sys.executable, "args": [__file__, "--server", mode]}
        self.call("add_server", name="it", **(command | options))

    def open_questions(self, count: int) -> None:
        self.call("execute_tool", server="it", tool="ask", args={}, timeout_ms=0)
        while self.count("get_elicitations", "elicitations") < count:
            time.sleep(0.1)

    def count(self, tool: str, key: str) -> int:
        said = self.says(tool)
        return len(said.get(key, ())) + int(said.get("more", 0))


Attack = Callable[[Client], None]


# Each is done again and again, once it is prepared.


def nothing(client: Client) -> None:
    time.sleep(0.1)


def long_word(client: Client) -> None:
    client.call("add_server", name="word", command="true", args=["x" * 100_000])
    client.call("list_servers")


def slow_pattern(client: Client) -> None:
    client.call("list_tools", tool="(a|aa)+$")
    client.call("list_tools", tool="^(a|a|aa)+b$", server="it")


def all_tools(client: Client) -> None:
    client.call("list_tools", detail="full")


def answer(client: Client, content: Json) -> None:
    client.open_questions(1)
    for question in client.says("get_elicitations")["elicitations"]:
        named = {"request_id": question["requestId"], "action": "accept"}
        client.call("respond_to_elicitation", **named, content=content)
        client.call("cancel_elicitation_request", request_id=question["requestId"])


def unique_items(client: Client) -> None:
    answer(client, {"a": [{"x": n} for n in range(10_000)]})


def long_form(client: Client) -> None:
    answer(client, {f"p{n}": "x" for n in range(30_000)})


def allowed_tools(client: Client) -> None:
    many = [f"*a*{n}*b" for n in range(200_000)]
    client.call("add_server", name="allowed", command="true", allowed_tools=many)
    client.call("add_server", name="allowed", command="true", allowed_tools=["*a" * 100_000])


def unknown(client: Client) -> None:
    client.call("list_servers", **{f"no{n}": n for n in range(200_000)})


def long_tasks(client: Client) -> None:
    if client.count("list_tasks", "tasks") < 80:
        args = {"text": "x" * 4_000_000}
        client.call("execute_tool", server="it", tool="hang", args=args, timeout_ms=0)
    client.call("list_tasks")


def many_roots(client: Client) -> None:
    client.call("set_roots", roots=[{"uri": f"file:///{n}"} for n in range(100_000)])
    client.call("get_roots")


def execute(client: Client) -> None:
    client.call("execute_tool", server="it", tool="echo", args={})


def many_questions(client: Client) -> None:
    client.call("list_timers")
    client.call("get_elicitations")


ROWS: dict[str, tuple[str, Attack]] = {
    "nobody attacks": ("plain", nothing),
    "lines on stderr": ("stderr", nothing),
    "lines on stdout": ("stdout", nothing),
    "{} on stdout": ("braces", nothing),
    "a long word as argument": ("plain", long_word),
    "a slow pattern, 200 tools": ("tools 200", slow_pattern),
    "5000 tools, all of them": ("tools 5000", all_tools),
    "10,000 unique items": ("ask unique", unique_items),
    "a form with 30,000 fields": ("ask long", long_form),
    "200,000 allowed tools": ("plain", allowed_tools),
    "100 questions of 1 MB": ("ask many", many_questions),
    "a notification of 15 MB": ("notify", execute),
    "200,000 unknown arguments": ("plain", unknown),
    "80 tasks with 4 MB": ("plain", long_tasks),
    "100,000 roots": ("plain", many_roots),
    "1500 cookies with each answer": ("cookies", execute),
}


def give_way() -> None:
    """To those of our session, and where sessions are weighed against each other, to those too."""
    os.nice(19)
    with contextlib.suppress(OSError):
        Path("/proc/self/autogroup").write_text("19")


def attack(row: str, port: int) -> None:
    """In a process of its own: prepare, wait for a word, attack."""
    give_way()
    mode, act = ROWS[row]
    client = Client(port, TOKENS["attacker"])
    if mode == "cookies":
        threading.Thread(target=serve_cookies, daemon=True).start()
        while not cookies_at:
            time.sleep(0.01)
        client.call("add_server", name="it", url=f"http://127.0.0.1:{cookies_at[0]}/mcp")
    else:
        client.add(mode)
    print("ready", flush=True)
    sys.stdin.readline()
    client.call("execute_tool", server="it", tool="begin", args={})
    if mode == "ask many":
        client.call("execute_tool", server="it", tool="ask", args={}, timeout_ms=0)
    print("begun", flush=True)
    while True:
        act(client)


# The servers


FORMS: dict[str, tuple[int, Json]] = {
    "unique": (1, {"properties": {"a": {"type": "array", "uniqueItems": True}}}),
    "long": (1, {"properties": {f"p{n}": {"type": "string"} for n in range(30_000)}}),
    "many": (100, {"properties": {"a": {"type": "string", "title": "x" * 1_000_000}}}),
}


def tell(message: Json) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}, separators=(",", ":")) + "\n")
    sys.stdout.flush()


def answered(mode: list[str], method: str, params: Json) -> Json:
    if method == "initialize":
        capabilities: Json = {"tools": {}}
        info = {"name": "hostile", "version": "0"}
        version = params["protocolVersion"]
        return {"protocolVersion": version, "capabilities": capabilities, "serverInfo": info}
    if method == "tools/list":
        count = int(mode[1]) if mode[0] == "tools" else 1
        schema = {"type": "object"}
        names = [f"{'a' * 28}{n}" for n in range(count)]
        return {"tools": [{"name": name, "inputSchema": schema} for name in names]}
    return {"content": [{"type": "text", "text": "x"}]}


def serve(mode: list[str]) -> None:
    give_way()
    for line in sys.stdin:
        message = json.loads(line)
        method, params = message.get("method", ""), message.get("params") or {}
        if "id" not in message or not method:
            continue
        tool = params.get("name") if method == "tools/call" else None
        if tool == "hang":
            continue
        if method == "server/discover":
            tell({"id": message["id"], "error": {"code": -32601, "message": "Method not found"}})
            continue
        if tool == "ask":
            count, schema = FORMS[mode[1]]
            for n in range(count):
                asked = {"message": "?", "requestedSchema": {"type": "object", **schema}}
                tell({"id": f"q{n}", "method": "elicitation/create", "params": asked})
            continue
        if tool == "echo" and mode[0] == "notify":
            many: Json = {"x": [{}] * 5_000_000}
            tell({"method": "notifications/x", "params": many})
        tell({"id": message["id"], "result": answered(mode, method, params)})
        if tool == "begin" and mode[0] in ("stderr", "stdout", "braces"):
            stream, text = (2, b"y\n") if mode[0] == "stderr" else (1, b"y\n")
            text = b"{}\n" if mode[0] == "braces" else text
            while True:
                os.write(stream, text * 1000)


cookies_at: list[int] = []


def serve_cookies() -> None:
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        sent = 0

        def do_POST(self) -> None:
            message = json.loads(self.rfile.read(int(self.headers["content-length"])))
            body = b""
            if "id" in message and message["method"] == "server/discover":
                error = {"code": -32601, "message": "Method not found"}
                body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error}).encode()
            elif "id" in message:
                result = answered(["plain"], message["method"], message.get("params") or {})
                said = {"jsonrpc": "2.0", "id": message["id"], "result": result}
                body = json.dumps(said).encode()
            self.send_response(200 if body else 202)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            for n in range(1500):
                self.send_header("Set-Cookie", f"c{Handler.sent + n}=v; Path=/")
            Handler.sent += 1500
            self.end_headers()
            self.wfile.write(body)

        def do_GET(self) -> None:
            self.send_response(405)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        cookies_at.append(server.server_address[1])
        server.serve_forever()


# The measurement


@contextlib.contextmanager
def daemon(folder: Path) -> Iterator[int]:
    """The port of an `emceepee serve`."""
    config, ready = folder / "config.json", folder / "port"
    config.write_text(json.dumps({"http": {"tokens": TOKENS}, "policy": {"spawn": "allow"}}))
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
            yield int(said.partition("127.0.0.1:")[2].partition("/")[0].split()[0])
        finally:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()


def pings(client: Client, seconds: float) -> list[float]:
    """How long each took, from when it should have been sent."""
    found: list[float] = []
    due = start = time.perf_counter()
    while due < start + seconds:
        time.sleep(max(0.0, due - time.perf_counter()))
        client.request("ping")
        now = time.perf_counter()
        while due <= now:  # also those that were due while this one was late
            found.append(now - due)
            due += PERIOD
    return sorted(found)


def p99(times: list[float]) -> float:
    return times[min(len(times) - 1, int(len(times) * 0.99))]


def measure(row: str, seconds: float) -> tuple[float, float, float, float]:
    """The 99th percentiles, idle and under attack, the worst of the latter; in seconds.

    And that of another daemon meanwhile, which nobody attacks: what it has to wait for the
    processors is not ours to mend.
    """
    with (
        tempfile.TemporaryDirectory() as folder,
        tempfile.TemporaryDirectory() as elsewhere,
        daemon(Path(folder)) as port,
        daemon(Path(elsewhere)) as other,
        subprocess.Popen(
            [sys.executable, __file__, "--attack", row, "--port", str(port)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        ) as attacker,
    ):
        assert attacker.stdin is not None
        assert attacker.stdout is not None
        try:
            client = Client(port, TOKENS["neighbour"])
            if attacker.stdout.readline() != b"ready\n":
                sys.exit(f"{row}: the attacker has failed")
            pings(client, 0.5)
            idle = pings(client, seconds)
            attacker.stdin.write(b"go\n")
            attacker.stdin.flush()
            under = pings(client, seconds)
            if attacker.poll() is not None:
                sys.exit(f"{row}: the attacker has ended, {attacker.returncode}")
            beside = pings(Client(other, TOKENS["neighbour"]), seconds)
            return p99(idle), p99(under), under[-1], p99(beside)
        finally:
            attacker.kill()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1, help="of each row; the worst is shown")
    parser.add_argument("--seconds", type=float, default=8.0, help="of each of the two measures")
    parser.add_argument("--row", action="append", help="only those that begin so")
    parser.add_argument("--attack", help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--server", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.server is not None:
        return serve(given.server.split())
    if given.attack is not None:
        return attack(given.attack, given.port)
    heads = f"{'idle ms':>10}{'under ms':>10}{'times':>8}{'worst ms':>10}{'beside ms':>11}"
    print(f"{'p99 of a ping':34}{heads}")
    chosen = tuple(given.row or [""])
    for row in ROWS:
        if not row.startswith(chosen):
            continue
        runs = [measure(row, given.seconds) for _ in range(max(1, min(given.runs, 5)))]
        idle, under, worst, beside = max(runs, key=lambda run: run[1] / run[0])
        note = "" if under < AIM * idle else f"  more than {AIM} times"
        print(
            f"{row:34}{idle * 1e3:10.1f}{under * 1e3:10.1f}{under / idle:8.1f}"
            f"{worst * 1e3:10.1f}{beside * 1e3:11.1f}{note}",
            flush=True,
        )
    return None


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt, BrokenPipeError):
        main()
