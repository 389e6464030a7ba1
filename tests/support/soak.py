"""A daemon at work for as long as you like, with faults; then nothing of it may have stayed.

``python tests/support/soak.py [MINUTES]``, or ``nox -s soak -- [MINUTES]``. In each round clients
come over HTTP, do whatever clients do, hang up in the middle, join again and leave, while programs
of theirs are killed and a server behind a URL comes and goes. Every session has three evil servers
beside the good ones, a program and one behind each kind of URL (`evil.py`); some clients call
nothing else. After each round, when the last session has ended, the daemon is measured; the last
round has to look like the first ones. Shown is also for how long all had to wait for one task, at
most; the soak fails if that was too long (`served` sees it)."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import attrs
import trio

import evil
from emceepee_client import write_config
from emceepee_trio.commands.common.remote import RemoteDaemon, RemoteSession
from fake_backends import demo, raw
from http_child import HttpChild, free_port, open_http_child
from served import serve

CLIENTS = 8
EVIL_CLIENTS = 2
"""Of them, who call evil servers only; the others do it now and then."""
ROUND = 45.0
"""Seconds of work; then all have to leave, and the daemon to come to rest."""
REST = 120.0
"""Seconds after which it hangs."""
IDLE_MS = 15_000
"""After which a session ends that nobody has ended. Longer than a client takes to read whatever an
evil server says."""
GROWTH = 8 * 1024 * 1024
"""Bytes by which the last round may be above the first half: memory in pieces, and no more."""
ROUNDS = 3
"""At least: the first one does not meet everything yet."""

FAULTS = {"TOOL_ERR_SERVER_DISCONNECTED", "TOOL_ERR_CONNECT_FAILED", "TOOL_ERR_EXECUTION_FAILED"}
"""What a call may end with while its server is killed; anything else is a finding."""

WITH_COUNT = """
import ctypes, gc, signal, sys
from pathlib import Path
import trio
from emceepee_trio.cli import main

def count(*_):
    gc.collect()
    if hasattr(ctypes.CDLL(None), "malloc_trim"):
        ctypes.CDLL(None).malloc_trim(0)
    file.with_suffix(".new").write_text(str(trio.lowlevel.current_statistics().tasks_living))
    file.with_suffix(".new").rename(file)

file = Path(sys.argv.pop(1))
signal.signal(signal.SIGUSR1, count)
sys.exit(main())
"""
"""A daemon that can be asked how many tasks it has. It gives back before what it only keeps for the
next message of 20 MB."""


@attrs.frozen
class Sample:
    """The daemon at rest."""

    memory: int
    files: int
    children: int
    tasks: int


@attrs.define(eq=False)
class Soak:
    daemon: RemoteDaemon
    pid: int
    url: str
    counted: Path
    is_over: threading.Event = attrs.field(factory=threading.Event, init=False)
    done: Counter[str] = attrs.field(factory=Counter, init=False)

    # -- clients, each in a thread ----------------------------------------------------------

    def work(self, seed: int) -> None:
        """Session after session, until the round is over."""
        dice = random.Random(seed)
        acts = [Soak.evil] if seed % CLIENTS < EVIL_CLIENTS else ACTS
        while not self.is_over.is_set():
            with RemoteSession.connected(self.daemon, f"soak-{seed}") as client:
                for _ in range(dice.randint(1, 12)):
                    if not self.is_over.is_set():
                        act = dice.choice(acts)
                        act(self, client, dice)
                        self.done[act.__name__] += 1
            self.done["session"] += 1

    def call(self, client: RemoteSession, server: str, tool: str, args: Any, **options: Any) -> Any:
        """What the tool says; None if its server was lost meanwhile."""
        asked = {"server": server, "tool": tool, "args": args, **options}
        return self.ask(client, "execute_tool", **asked)

    def ask(self, client: RemoteSession, tool: str, /, **arguments: Any) -> Any:
        result = client.call(tool, arguments)
        text = result["content"][0]["text"]
        if not result.get("isError"):
            return text
        error = json.loads(text)["error"]
        if error["code"] not in FAULTS:
            raise AssertionError(f"{tool} {arguments}: {error}")
        self.done[error["code"]] += 1
        return None

    def echo(self, client: RemoteSession, dice: random.Random) -> None:
        server = dice.choice(["raw", "demo", "web"])
        secret = str(dice.random())
        said = self.call(client, server, "echo", {"text": secret})
        assert said is None or secret in said, said

    def evil(self, client: RemoteSession, dice: random.Random) -> None:
        """Whatever comes of it, something has to come, and soon."""
        server, how = dice.choice(EVIL), dice.choice(evil.ALL)
        asked = {"server": server, "tool": "do", "args": {"how": how}, "timeout_ms": 2000}
        client.call("execute_tool", {**asked, "ttl_ms": 1000})
        if dice.random() < 0.3:
            client.call("list_tools", {"server": server})

    def big(self, client: RemoteSession, dice: random.Random) -> None:
        size = dice.randint(1, 500_000)
        said = self.call(client, "raw", "big", {"size": size})
        assert said is None or len(said) == size

    def flood(self, client: RemoteSession, dice: random.Random) -> None:
        self.call(client, "raw", "notify_many", {"n": dice.randint(1, 2000), "k": 1})

    def task(self, client: RemoteSession, dice: random.Random) -> None:
        args = {"seconds": dice.random()}
        self.call(client, "demo", "slow", args, timeout_ms=0)
        self.call(client, "raw", "never", {}, timeout_ms=0)
        self.ask(client, "await_activity", timeout_ms=1000)
        for task in json.loads(self.ask(client, "list_tasks"))["tasks"]:
            if dice.random() < 0.7:
                client.call("cancel_task", {"task_id": task["task_id"]})  # or it is done

    def question(self, client: RemoteSession, dice: random.Random) -> None:
        self.call(client, "raw", "string_id_question", {}, timeout_ms=0)
        self.ask(client, "await_activity", timeout_ms=500)
        for asked in json.loads(self.ask(client, "get_elicitations"))["elicitations"]:
            answer = {"action": "accept", "content": {"name": "Ada"}}
            client.call("respond_to_elicitation", {"request_id": asked["requestId"], **answer})

    def timer(self, client: RemoteSession, dice: random.Random) -> None:
        self.ask(client, "set_timer", duration_ms=dice.choice([100, 3_600_000]), message="m")
        self.ask(client, "await_activity", timeout_ms=200)

    def look(self, client: RemoteSession, dice: random.Random) -> None:
        for tool in ("list_servers", "list_tools", "list_resources", "get_logs"):
            self.ask(client, tool)

    def reconnect(self, client: RemoteSession, dice: random.Random) -> None:
        self.ask(client, "reconnect_server", name=dice.choice(["raw", "web"]))

    def crash(self, client: RemoteSession, dice: random.Random) -> None:
        """A program of this session dies, in the middle of something."""
        self.call(client, "raw", "never", {}, timeout_ms=0)
        status = json.loads(self.ask(client, "get_server_status", server="raw"))
        if (process := status.get("process")) is not None and "exit_code" not in process:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process["pid"], signal.SIGKILL)

    def hang_up(self, client: RemoteSession, dice: random.Random) -> None:
        """A session that nobody ends, and a connection that is closed before its answer."""
        hello = {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "gone", "version": "0"},
        }
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
        }
        with self.daemon.request("POST", "/mcp", headers, message("initialize", hello)) as answer:
            answer.read()
            session = answer.headers["Mcp-Session-Id"]
        if dice.random() < 0.5:  # it comes back, and has lost its streams
            again = {**headers, "X-Mcp-Reconnect-Session": session}
            with self.daemon.request("POST", "/mcp", again, message("initialize", hello)) as answer:
                answer.read()
                assert answer.headers["Mcp-Session-Id"] == session
        waits = {"name": "await_activity", "arguments": {"timeout_ms": 60_000}}
        body = json.dumps(message("tools/call", waits)).encode()
        lines = [*(f"{k}: {v}" for k, v in headers.items()), f"Mcp-Session-Id: {session}"]
        address = urlsplit(self.url)
        head = f"POST /mcp HTTP/1.1\r\nHost: {address.netloc}\r\n" + "\r\n".join(lines)
        assert address.port is not None
        with socket.create_connection(("127.0.0.1", address.port)) as peer:
            peer.sendall(f"{head}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
            if dice.random() < 0.5:
                peer.recv(100)

    # -- the daemon at rest -----------------------------------------------------------------

    def sessions(self) -> int:
        with self.daemon.request("GET", "/status") as response:
            return len(json.loads(response.read())["sessions"])

    def longest_step(self) -> int:
        """Milliseconds of processor time, since its start."""
        with self.daemon.request("GET", "/status") as response:
            longest: int = json.loads(response.read())["slow_steps"]["longest_ms"]
        return longest

    def measure(self) -> Sample:
        proc = Path("/proc", str(self.pid))
        pages = int((proc / "statm").read_text().split()[1])
        return Sample(
            pages * os.sysconf("SC_PAGE_SIZE"),
            len(list((proc / "fd").iterdir())),
            sum(parent == self.pid for parent in parents()),
            int(self.counted.read_text()),
        )

    async def rest(self) -> Sample:
        """Measured twice: at rest nothing moves."""
        while self.sessions():  # noqa: ASYNC110 - of a process
            await trio.sleep(0.1)
        before = None
        while True:
            await trio.sleep(1)
            self.counted.unlink(missing_ok=True)
            os.kill(self.pid, signal.SIGUSR1)
            while not self.counted.exists():  # noqa: ASYNC110 - as above
                await trio.sleep(0.1)
            now = self.measure()
            if before is not None and attrs.astuple(now)[1:] == attrs.astuple(before)[1:]:
                return now
            before = now


ACTS: list[Callable[[Soak, RemoteSession, random.Random], None]] = [
    *[Soak.echo] * 6,
    *[Soak.big, Soak.flood, Soak.task, Soak.question, Soak.timer, Soak.look],
    *[Soak.reconnect, Soak.crash, Soak.hang_up, Soak.evil],
]
EVIL = ["evil", "evil-web", "evil-sse"]


def message(method: str, params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def parents() -> Iterator[int]:
    """Of all processes."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it ended while we looked
            yield int(stat.read_text(errors="replace").rpartition(")")[2].split()[1])


async def come_and_go(web: HttpChild, dice: random.Random) -> None:
    """The server behind a URL, with its sessions and without."""
    while True:
        await trio.sleep(dice.uniform(2, 8))
        await web.kill(forget=dice.random() < 0.5)
        await trio.sleep(dice.uniform(0, 2))
        await web.start()


async def keep_evil(port: int) -> None:
    """It ends now and then."""
    command = [sys.executable, evil.__file__, str(port)]
    while True:
        child = await trio.lowlevel.open_process(command, stdout=subprocess.DEVNULL)
        try:
            await child.wait()
        finally:
            child.kill()
            with trio.CancelScope(shield=True):
                await child.wait()
        await trio.sleep(0.2)


async def one_round(soak: Soak, web: HttpChild, number: int) -> Sample:
    soak.is_over.clear()
    with ThreadPoolExecutor(CLIENTS) as clients:
        working = [clients.submit(soak.work, number * CLIENTS + n) for n in range(CLIENTS)]
        async with trio.open_nursery() as nursery:
            nursery.start_soon(come_and_go, web, random.Random(number))
            with trio.move_on_after(ROUND):
                while not any(work.done() for work in working):  # noqa: ASYNC110 - of threads
                    await trio.sleep(0.1)
            soak.is_over.set()
            await trio.to_thread.run_sync(partial(clients.shutdown, wait=True))
            nursery.cancel_scope.cancel("the round is over")
    for work in working:
        work.result()
    if web.child is None:
        await web.start()
    with trio.fail_after(REST):
        return await soak.rest()


async def run(minutes: int) -> bool:
    """Whether the last round looks like the first ones."""
    samples: list[Sample] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        async with open_http_child(folder, "--listens") as web, trio.open_nursery() as nursery:
            port = await free_port()
            nursery.start_soon(keep_evil, port)
            quick = {"base_delay_ms": 100, "max_delay_ms": 1000, "max_attempts": 1000}
            servers = {
                "raw": {**raw(), "restart": quick},
                "demo": demo(),
                "web": {"url": web.url, "reconnect": quick},
                "evil": {
                    "command": sys.executable,
                    "args": [evil.__file__],
                    "restart": quick,
                    "era": "handshake",
                },
                "evil-web": {"url": f"http://127.0.0.1:{port}/mcp", "reconnect": quick},
                "evil-sse": {"url": f"http://127.0.0.1:{port}/sse", "reconnect": quick},
            }
            path = write_config(folder, servers, limits={"session_idle_ms": IDLE_MS})
            counted = folder / "tasks"
            command = [sys.executable, "-c", WITH_COUNT, str(counted)]
            with serve(folder, "--config", str(path), command=command) as served:
                daemon = RemoteDaemon.find(served.url, folder)
                soak = Soak(daemon, served.pid, served.url, counted)
                print(
                    f"{'round':>6}{'memory MB':>11}{'files':>7}{'processes':>11}{'tasks':>7}"
                    f"{'step ms':>9}"
                )
                for number in range(max(ROUNDS, minutes)):
                    sample = await one_round(soak, web, number)
                    samples.append(sample)
                    print(
                        f"{number + 1:6}{sample.memory / 2**20:11.1f}{sample.files:7}"
                        f"{sample.children:11}{sample.tasks:7}{soak.longest_step():9}",
                        flush=True,
                    )
            nursery.cancel_scope.cancel("the last round is over")
    print(", ".join(f"{count} {what}" for what, count in soak.done.most_common()))
    first, last = samples[0], samples[-1]
    grown = last.memory - max(each.memory for each in samples[: (len(samples) + 1) // 2])
    rest = attrs.astuple(last)[1:] == attrs.astuple(first)[1:]
    stayed = "nothing" if rest else "SOMETHING"
    print(f"memory has grown by {grown / 2**20:.1f} MB; {stayed} stayed")
    return rest and grown < GROWTH


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("minutes", type=int, nargs="?", default=10)
    sys.exit(0 if trio.run(run, parser.parse_args().minutes) else 1)


if __name__ == "__main__":
    main()
