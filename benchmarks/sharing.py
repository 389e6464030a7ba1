"""What many sessions start: 20 of them on one `emceepee serve` with ten servers, each a program.

With ``start: auto``, once the daemon has learned what the servers have: how many programs run if no
session calls anything, if each calls a tool of one server, and again after a restart of the daemon;
and how long a new session waits for `tools/list`, `list_tools` and `list_servers` since it has been
answered `initialize`, while each server takes ``--start`` seconds to start. Beside it ``scope:
principal``, where all sessions have one program of each server together, and ``start: eager``,
which starts everything for everybody; and what one session has alone that calls all of them.
Megabytes are those in memory of the daemon and all of its programs. ``--sessions`` and
``--servers`` are other numbers.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

from emceepee_trio.backend.children.footprint import look

Json = dict[str, Any]

SERVER = """
import json, sys, time
time.sleep(float(sys.argv[1]))
tools = [{"name": f"tool_{n}", "description": "Does it.", "inputSchema": {"type": "object"}}
         for n in range(10)]
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    answer = {"jsonrpc": "2.0", "id": asked["id"]}
    if asked["method"] == "initialize":
        answer["result"] = {"protocolVersion": asked["params"]["protocolVersion"],
                            "capabilities": {"tools": {}},
                            "serverInfo": {"name": "s", "version": "0"}}
    elif asked["method"] == "tools/list":
        answer["result"] = {"tools": tools}
    elif asked["method"] == "tools/call":
        answer["result"] = {"content": [{"type": "text", "text": "done"}]}
    else:
        answer["error"] = {"code": -32601, "message": "Method not found"}
    print(json.dumps(answer), flush=True)
"""

INITIALIZE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "benchmark", "version": "0"},
}
GUARD = 600.0


class Session:
    def __init__(self, port: int) -> None:
        self._connection = HTTPConnection("127.0.0.1", port, timeout=GUARD)
        self._headers = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
        }
        self.ask("initialize", INITIALIZE)

    def ask(self, method: str, params: Json) -> Json:
        said = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        self._connection.request("POST", "/mcp", json.dumps(said), self._headers)
        response = self._connection.getresponse()
        body = response.read().decode()
        if name := response.headers.get("Mcp-Session-Id"):
            self._headers["Mcp-Session-Id"] = name
        data = [line[6:] for line in body.splitlines() if line.startswith("data: {")]
        answer: Json = json.loads(data[-1] if data else body)
        return answer

    def call(self, tool: str, **arguments: Any) -> Json:
        said = self.ask("tools/call", {"name": tool, "arguments": arguments})
        found: Json = json.loads(said["result"]["content"][0]["text"])
        return found

    def execute(self, server: str) -> None:
        asked = {"server": server, "tool": "tool_1", "timeout_ms": 3_600_000}
        said = self.ask("tools/call", {"name": "execute_tool", "arguments": asked})
        if said["result"]["content"][0]["text"] != "done":
            sys.exit(f"a call failed: {said}")

    def states(self) -> list[str]:
        return [server["status"] for server in self.call("list_servers")["servers"]]

    def close(self) -> None:
        self._connection.request("DELETE", "/mcp", headers=self._headers)
        self._connection.getresponse().read()
        self._connection.close()


def programs(script: Path) -> int:
    """Those that run, of all sessions."""
    count = 0
    for line in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            count += str(script).encode() in line.read_bytes()
    return count


@contextlib.contextmanager
def daemon(folder: Path, servers: int, delay: float, **defaults: Any) -> Iterator[tuple[int, int]]:
    """Its port and pid. Its state is in the *folder*, where the next one finds it."""
    script = folder / "server.py"
    script.write_text(SERVER)
    entry = {"command": sys.executable, "args": ["-I", "-S", str(script), str(delay)]}
    entries = {f"s{n}": entry for n in range(servers)}
    config = folder / "config.json"
    # Starting is not what is measured, so nobody waits for a turn.
    settings = {"defaults": defaults, "limits": {"starting": 500}}
    config.write_text(json.dumps({"mcpServers": entries, **settings}))
    command = [sys.executable, "-m", "emceepee_trio", "serve", "--config", str(config), "--no-auth"]
    command += ["--bind", "127.0.0.1:0", "--state-dir", str(folder)]
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            for line in process.stdout:
                if "http://127.0.0.1:" in line:
                    yield int(line.split("http://127.0.0.1:")[1].split("/")[0]), process.pid
                    break
            else:
                sys.exit(f"{' '.join(command)}: has not started")
        finally:
            process.terminate()
            process.wait()


def learn(port: int, folder: Path, servers: int) -> None:
    """Let one session connect everything, until all of it is written down."""
    session = Session(port)
    for n in range(servers):
        session.execute(f"s{n}")
    kept = folder / "catalogue"
    while sum('"tool_9"' in path.read_text() for path in kept.glob("*.json")) < servers:
        time.sleep(0.05)
    session.close()
    while programs(folder / "server.py"):
        time.sleep(0.05)


def first_answers(port: int) -> tuple[Json, Session]:
    """Milliseconds until a new session has its first lists, from the answer to initialize on."""
    session = Session(port)
    times: Json = {}
    since = time.perf_counter()
    session.ask("tools/list", {})
    times["tools/list"] = time.perf_counter() - since
    for tool in ("list_tools", "list_servers"):
        session.call(tool)
        times[tool] = time.perf_counter() - since
    return {name: took * 1000 for name, took in times.items()}, session


def counts(at: tuple[int, int], script: Path, sessions: int, servers: int, calls: int = 1) -> Json:
    """How many programs run in each case, and the times of the last session."""
    port, pid = at
    opened = [first_answers(port) for _ in range(sessions)]
    while any("connecting" in session.states() for _, session in opened):
        time.sleep(0.1)
    found: Json = {"no call": programs(script)}
    for n, (_, session) in enumerate(opened):
        for k in range(calls):
            session.execute(f"s{(n + k) % servers}")
    found["one call each"] = programs(script)
    found["MB"] = look([pid])[pid].resident / 1e6
    for _, session in opened:
        session.close()
    middle = sorted(opened, key=lambda each: sum(each[0].values()))[sessions // 2]
    return found | middle[0]


def measure(case: str, sessions: int, servers: int, delay: float) -> dict[str, Json]:
    with tempfile.TemporaryDirectory() as name:
        folder, found = Path(name), {}
        script = folder / "server.py"
        defaults: Json = {"start": "eager" if case == "eager" else "auto"}
        if case == "principal":
            defaults |= {"scope": "principal", "linger_ms": 1000}
        with daemon(folder, servers, delay, **defaults) as at:
            if case != "eager":
                learn(at[0], folder, servers)
            if case == "principal":
                found["one session, all"] = counts(at, script, 1, servers, calls=servers)
                while programs(script):  # which stay a while
                    time.sleep(0.05)
            found[case] = counts(at, script, sessions, servers)
        if case == "auto":
            with daemon(folder, servers, delay, **defaults) as at:
                found[f"{case}, restarted"] = counts(at, script, sessions, servers)
        return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, help="not used here; all benchmarks take it")
    parser.add_argument("--sessions", type=int, default=20)
    parser.add_argument("--servers", type=int, default=10)
    parser.add_argument("--start", type=float, default=1.0, help="seconds a server takes to start")
    options = parser.parse_args()
    if not Path("/proc").is_dir():
        sys.exit("programs are counted in /proc, which is not here")
    columns = ("no call", "one call each", "MB", "tools/list", "list_tools", "list_servers")
    print(f"{options.sessions} sessions, {options.servers} servers: programs, and milliseconds")
    print(f"{'start':17}" + "".join(f"{column:>15}" for column in columns))
    for start in ("auto", "principal", "eager"):
        found = measure(start, options.sessions, options.servers, options.start)
        for name, row in found.items():
            print(f"{name:17}" + "".join(f"{row[column]:15.5g}" for column in columns), flush=True)


if __name__ == "__main__":
    main()
