"""``emceepee stdio --connect``: windows of clients, each with a session of its own on a daemon."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx  # noqa: ASYNC127 - the client that shares no code with us
import pytest
import trio

import warm
from emceepee_client import COMMAND, GUARD, MODERN, Answer, Json
from emceepee_lines import Lines, open_pipes, request, run
from emceepee_trio.bridge import daemon as far
from emceepee_trio.bridge import relay
from emceepee_trio.bridge.daemon import PATIENCE
from emceepee_trio.bridge.http import Address
from emceepee_trio.bridge.relay import Relay
from served import Daemon, serve

HEAVY = {"mcp", "mcp_types", "pydantic", "trio", "anyio", "cattrs", "jsonschema", "hypercorn"}
META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": {"name": "a window", "version": "0"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


def bridge(
    folder: Path, where: str, name: str = "bridge", **environment: str
) -> AbstractAsyncContextManager[Lines]:
    words = ("stdio", "--connect", where, "--state-dir", str(folder))
    return open_pipes(folder / f"{name}.log", *words, **environment)


def sessions(folder: Path, daemon: Daemon) -> list[Json]:
    token = (folder / "token").read_text().strip()
    headers = {"authorization": f"Bearer {token}"}
    url = daemon.url.removesuffix("/mcp") + "/status"
    found: list[Json] = httpx.get(url, headers=headers, trust_env=False).json()["sessions"]
    return found


async def modern(lines: Lines, request_id: Any, tool: str, **arguments: Any) -> Answer:
    params = {"name": tool, "arguments": arguments, "_meta": META}
    return Answer.of((await lines.request(request_id, "tools/call", params))["result"])


@pytest.mark.parametrize("era", ["handshake", "modern"])
async def test_each_window_has_a_session_of_its_own_that_ends_with_it(
    tmp_path: Path, era: str
) -> None:
    with serve(tmp_path) as daemon:
        async with bridge(tmp_path, daemon.url) as one, bridge(tmp_path, daemon.url, "two") as two:
            if era == "handshake":
                await one.initialize()
                await two.initialize()
            call = Lines.call if era == "handshake" else modern
            mine = await call(one, 1, "set_timer", duration_ms=3_600_000, message="mine")
            assert mine.json["timer"]["message"] == "mine"
            assert (await call(two, 1, "list_timers")).json == {"timers": []}
            assert len((await call(one, 2, "list_timers")).json["timers"]) == 1
            assert len(sessions(tmp_path, daemon)) == 2
            assert await two.end() == 0
            assert len(sessions(tmp_path, daemon)) == 1
            assert await one.end(signal.SIGTERM) == 0
        assert sessions(tmp_path, daemon) == []
    assert (tmp_path / "bridge.log").read_text() == (tmp_path / "two.log").read_text() == ""


async def test_what_the_daemon_says_of_its_own_accord_comes_too(tmp_path: Path) -> None:
    with serve(tmp_path, "--demo") as daemon:
        async with bridge(tmp_path, daemon.url) as lines:
            await lines.initialize()
            await lines.request("level", "logging/setLevel", {"level": "info"})
            await lines.execute("demo", "log", {"message": "hello"})
            while not any(m.get("method") == "notifications/message" for m in lines.other):
                message = await lines.receive()
                assert message is not None
                lines.other.append(message)


async def test_a_slow_call_is_told_of_its_progress_and_can_be_cancelled(tmp_path: Path) -> None:
    with serve(tmp_path, "--demo") as daemon:
        async with bridge(tmp_path, daemon.url) as lines:
            await lines.initialize()
            asked = {"server": "demo", "tool": "slow", "args": {"seconds": 3600}}
            params = {"name": "execute_tool", "arguments": asked, "_meta": {"progressToken": "p"}}
            await lines.send(request("slow", "tools/call", params))
            while (message := await lines.receive()) is not None:
                if message.get("method") == "notifications/progress":
                    break
            cancelled = {"requestId": "slow", "reason": "changed my mind"}
            method = "notifications/cancelled"
            await lines.send({"jsonrpc": "2.0", "method": method, "params": cancelled})
            status = await lines.call("s", "get_server_status", server="demo")
            while status.json["calls_in_flight"]:
                status = await lines.call("s", "get_server_status", server="demo")
            assert not [m for m in lines.other if m.get("id") == "slow"]


async def test_a_modern_client_that_gives_up_finds_a_task(tmp_path: Path) -> None:
    with serve(tmp_path, "--demo") as daemon:
        async with bridge(tmp_path, daemon.url) as lines:
            asked = {"server": "demo", "tool": "slow", "args": {"seconds": 3600}}
            params = {"name": "execute_tool", "arguments": asked, "_meta": META}
            await lines.send(request("slow", "tools/call", params))
            status = await modern(lines, "s", "get_server_status", server="demo")
            while not status.json["calls_in_flight"]:
                status = await modern(lines, "s", "get_server_status", server="demo")
            gave_up = {"requestId": "slow", "reason": "Request timed out"}
            method = "notifications/cancelled"
            await lines.send({"jsonrpc": "2.0", "method": method, "params": gave_up})
            tasks: list[Json] = []
            while not tasks:
                tasks = (await modern(lines, "t", "list_tasks")).json["tasks"]
            assert tasks[0]["status"] == "working"


async def test_a_daemon_that_is_started_anew_is_joined_again(tmp_path: Path) -> None:
    where = tmp_path / "socket"
    options = ("--demo", "--bind", f"unix:{where}")
    async with open_restarts(tmp_path, *options) as restart:
        await restart()
        async with bridge(tmp_path, f"unix:{where}") as lines:
            await lines.initialize()
            await lines.call(1, "set_timer", duration_ms=3_600_000, message="before")
            slow = {"server": "demo", "tool": "slow", "args": {"seconds": 3600}}
            await lines.send(
                request("slow", "tools/call", {"name": "execute_tool", "arguments": slow})
            )
            status = await lines.call("s", "get_server_status", server="demo")
            while not status.json["calls_in_flight"]:
                status = await lines.call("s", "get_server_status", server="demo")
            await restart(signal.SIGKILL)
            lost = await lines.answer("slow")
            assert lost["error"]["data"] == {"may_have_run": True}
            assert (await lines.call(2, "list_timers")).json == {"timers": []}
            assert (await lines.execute("demo", "echo", {"text": "back"})).texts[0] == "back"


def test_a_daemon_that_is_away_for_long_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(far, "PATIENCE", 0.1)
    said: list[bytes] = []
    it = Relay(Address(f"unix:{tmp_path}/nobody"), lambda: None, said.append)
    it.take(json.dumps(request(1, "initialize", {})).encode())
    error = json.loads(said.pop())["error"]
    assert "emceepee serve" in error["message"]
    assert error["data"] == {"may_have_run": False}


def spoken(folder: Path, where: str, *messages: Json) -> tuple[list[Json], float]:
    """What is answered to who says all of that and nothing more, and the seconds to the end."""
    words = ("stdio", "--connect", where, "--state-dir", str(folder))
    text = "".join(f"{json.dumps(message)}\n" for message in messages)
    began = time.monotonic()
    done = run(*words, stdin=text)
    assert (done.returncode, done.stderr) == (0, "")
    return [json.loads(line) for line in done.stdout.splitlines()], time.monotonic() - began


HELLO = request(
    1,
    "initialize",
    {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "a window", "version": "0"},
    },
)


def test_who_ends_without_a_daemon_is_answered_and_left_alone(tmp_path: Path) -> None:
    ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    listing = request(2, "tools/list", {})
    said, seconds = spoken(tmp_path, f"unix:{tmp_path}/none", HELLO, ready, listing)
    assert [each["id"] for each in said] == [1, 2]
    for each in said:
        assert "standard input has ended" in each["error"]["message"]
        assert "no daemon answers" in each["error"]["message"]
        assert each["error"]["data"] == {"may_have_run": False}
    assert seconds < PATIENCE


def test_who_asks_more_than_is_taken_at_once_is_answered_too(tmp_path: Path) -> None:
    many = relay.AT_ONCE + 20
    lines = [json.dumps(request(each, "tools/list", {})) for each in range(many)]
    words = ["stdio", "--connect", f"unix:{tmp_path}/none", "--state-dir", str(tmp_path)]
    pipe = subprocess.PIPE
    with subprocess.Popen([*COMMAND, *words], stdin=pipe, stdout=pipe, text=True) as child:
        assert child.stdin is not None
        child.stdin.write("\n".join([*lines, ""]))
        child.stdin.flush()
        threads = Path(f"/proc/{child.pid}/task")
        # One for each, the main one, and the one that takes them: it has the next in hand.
        while len(list(threads.iterdir())) < relay.AT_ONCE + 2:
            time.sleep(0.01)
        said, _ = child.communicate(timeout=GUARD)
    answered = [json.loads(line)["id"] for line in said.splitlines()]
    assert sorted(answered) == list(range(many))


def test_what_waits_for_its_turn_is_answered_when_there_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relay, "AT_ONCE", 1)
    said: list[bytes] = []
    it = Relay(Address(f"unix:{tmp_path}/nobody"), lambda: None, said.append)
    it.take(json.dumps(request(1, "tools/list", {})).encode())
    second = json.dumps(request(2, "tools/list", {})).encode()
    taking = threading.Thread(target=it.take, args=(second,), daemon=True)
    taking.start()
    it.give_up()
    taking.join(GUARD)
    assert sorted(json.loads(each)["id"] for each in said) == [1, 2]


def test_who_waits_until_all_is_taken_is_told_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relay, "PATIENCE", 1000 * GUARD)
    it = Relay(Address(f"unix:{tmp_path}/nobody"), lambda: None, lambda _: None)
    taken, looked = threading.Event(), threading.Event()

    def is_taken() -> bool:
        looked.set()
        return taken.is_set()

    waiting = threading.Thread(target=it.wait_taken, args=(is_taken,), daemon=True)
    waiting.start()
    looked.wait(GUARD)
    taken.set()
    it.has_taken()
    waiting.join(GUARD)
    assert not waiting.is_alive()


def test_an_answer_is_waited_for_until_it_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the process could end in between."""
    monkeypatch.setattr(far, "PATIENCE", 0)
    begins, goes_on = threading.Event(), threading.Event()

    def write(line: bytes) -> None:
        begins.set()
        goes_on.wait(GUARD)

    it = Relay(Address(f"unix:{tmp_path}/nobody"), lambda: None, write)
    it.take(json.dumps(request(1, "tools/list", {})).encode())
    assert begins.wait(GUARD)
    assert not it.wait_answered(0)
    goes_on.set()
    assert it.wait_answered(GUARD)


def test_what_is_under_way_when_input_ends_is_answered(tmp_path: Path) -> None:
    with serve(tmp_path, "--demo") as daemon:
        ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        slow = {"server": "demo", "tool": "slow", "args": {"seconds": 3600}, "timeout_ms": 3600_000}
        call = request(2, "tools/call", {"name": "execute_tool", "arguments": slow})
        said, _ = spoken(tmp_path, daemon.url, HELLO, ready, call)
        opened, left = (each for each in said if "id" in each)
        assert opened["result"]["serverInfo"]
        assert left["id"] == 2
        assert "standard input has ended" in left["error"]["message"]
        assert sessions(tmp_path, daemon) == []


def test_a_silent_daemon_hears_why_a_request_is_cancelled(tmp_path: Path) -> None:
    """And the client's next line is not read later for that."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "socket"))
        listener.listen()
        listener.settimeout(GUARD)
        it = Relay(Address(f"unix:{tmp_path}/socket"), lambda: None, lambda line: None)
        it.take(json.dumps(request(7, "tools/list", {"_meta": META})).encode())
        asked: dict[str, socket.socket] = {}
        while "tools/list" not in asked:
            asked |= heard(listener)
        notice = {"method": "notifications/cancelled", "params": {"requestId": 7, "reason": "no"}}
        it.take(json.dumps({"jsonrpc": "2.0", **notice}).encode())
        while "notifications/cancelled" not in asked:
            asked |= heard(listener)
        asked["tools/list"].setblocking(False)
        with pytest.raises(BlockingIOError):  # it is still open
            asked["tools/list"].recv(1)
        asked["tools/list"].settimeout(GUARD)
        asked["notifications/cancelled"].sendall(
            b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n"
        )
        assert asked["tools/list"].recv(1) == b""
        for each in asked.values():
            each.close()


def heard(listener: socket.socket) -> dict[str, socket.socket]:
    """The method of the next request, and its connection."""
    connection, _ = listener.accept()
    connection.settimeout(GUARD)
    sent = b""
    while not sent.endswith(b"}"):
        sent += connection.recv(65536)
    return {json.loads(sent.partition(b"\r\n\r\n")[2])["method"]: connection}


def test_a_request_that_we_trip_over_is_answered(tmp_path: Path) -> None:
    said: list[bytes] = []
    it = Relay(Address(f"unix:{tmp_path}/nobody"), lambda: "no\ntoken", said.append)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "nobody"))
        listener.listen()
        it.take(json.dumps(request(1, "initialize", {})).encode())
    (answer,) = map(json.loads, said)
    assert (answer["id"], answer["error"]["code"]) == (1, -32603)


async def test_another_token_is_wanted_and_found(tmp_path: Path) -> None:
    with serve(tmp_path) as daemon:
        async with bridge(tmp_path, daemon.url, EMCEEPEE_TOKEN="wrong") as lines:
            answer = await lines.request(1, "initialize", {})
            assert "EMCEEPEE_TOKEN" in answer["error"]["message"]


async def test_it_ends_when_nobody_reads_its_output(tmp_path: Path) -> None:
    with serve(tmp_path) as daemon:
        async with bridge(tmp_path, daemon.url) as lines:
            await lines.initialize()
            assert lines.child.stdout is not None
            await lines.child.stdout.aclose()
            await lines.send(request(2, "tools/list"))
            assert await lines.child.wait() == 0
            lines.child.stdout = None
        assert sessions(tmp_path, daemon) == []


def test_input_and_output_may_be_one_socket(tmp_path: Path) -> None:
    ours, theirs = socket.socketpair()
    with serve(tmp_path) as daemon, ours, theirs:
        theirs.setblocking(False)
        words = ["stdio", "--connect", daemon.url, "--state-dir", str(tmp_path)]
        pipe = theirs.fileno()
        with subprocess.Popen([*COMMAND, *words], stdin=pipe, stdout=pipe) as child:
            theirs.close()
            with ours.makefile("rwb") as file:
                file.write(b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n')
                file.flush()
                assert json.loads(file.readline())["id"] == 1
                ours.shutdown(socket.SHUT_RDWR)
            assert child.wait(GUARD) == 0


def test_nothing_heavy_is_imported_for_it() -> None:
    code = (
        "import emceepee_trio.commands.stdio, emceepee_trio.bridge.serve, sys; print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not HEAVY & {name.partition(".")[0] for name in done.stdout.split()}


@asynccontextmanager
async def open_restarts(folder: Path, *options: str) -> AsyncGenerator[Any]:
    """A daemon that can be ended and started anew; it listens when the call returns."""
    running: list[Any] = []

    async def restart(how: signal.Signals = signal.SIGTERM) -> None:
        if running:
            running[0].send_signal(how)
            await running.pop().wait()
        words = ("serve", "--bind", "127.0.0.1:0", "--state-dir", str(folder), *options)
        child = await trio.lowlevel.open_process(
            [*warm.command("emceepee_trio"), *words],
            env={**os.environ, "XDG_CONFIG_HOME": str(folder)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        running.append(child)
        assert child.stdout is not None
        said = b""
        while b"token" not in said:
            said += await child.stdout.receive_some()

    try:
        yield restart
    finally:
        with trio.CancelScope(shield=True):
            for child in running:
                child.terminate()
                await child.wait()
                await child.stdout.aclose()
