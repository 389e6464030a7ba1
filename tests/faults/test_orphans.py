"""Real daemons, killed while their servers have left processes behind that hide.

What is left is looked for by a mark in the arguments of those processes, which nobody but a test
knows. The seconds that they may take to be gone are a guard.
"""

from __future__ import annotations

import itertools
import os
import re
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import attrs
import httpx  # noqa: ASYNC127 - the client that shares no code with us
import pytest
import trio

from brood import FAMILY, PROC, Brood, helpers, is_alive, open_brood
from emceepee_client import COMMAND, GUARD, log_lines, write_config
from emceepee_lines import Lines, open_lines
from fake_backends import raw, until

pytestmark = pytest.mark.skipif(not (PROC / "self").exists(), reason="needs /proc")

Json = dict[str, Any]

EAGER = {"start": "eager"}
"""Each session has programs to leave behind, however much is known of them."""


@pytest.fixture
def brood() -> Iterator[Brood]:
    with open_brood() as brood:
        yield brood


async def hidden(brood: Brood, servers: int) -> None:
    with trio.fail_after(GUARD):
        await until(lambda: brood.is_hidden(servers))


async def gone(brood: Brood) -> None:
    with trio.fail_after(GUARD):
        await until(lambda: not brood.alive())


async def helper_of(daemon: int) -> int:
    found: list[int] = []

    def there() -> bool:
        found[:] = helpers(daemon)
        return bool(found)

    with trio.fail_after(GUARD):
        await until(there)
    return found[0]


async def kill(lines: Lines) -> None:
    """Of the helper as well nothing is left, once it has done what it is for."""
    watching = helpers(lines.child.pid)
    assert await lines.end(signal.SIGKILL) == -signal.SIGKILL
    with trio.fail_after(GUARD):
        await until(lambda: not any(map(is_alive, watching)))


# -- emceepee stdio ------------------------------------------------------------------------------


async def test_a_killed_stdio_leaves_nothing(brood: Brood, tmp_path: Path) -> None:
    servers = {f"s{n}": raw(*brood.flags, *["--stubborn"] * (n % 2)) for n in range(6)}
    async with open_lines(tmp_path, servers) as lines:
        await hidden(brood, len(servers))
        await kill(lines)
        await gone(brood)


async def test_one_killed_in_the_middle_of_calls_leaves_nothing(
    brood: Brood, tmp_path: Path
) -> None:
    async with open_lines(tmp_path, {"s": raw(*brood.flags)}, results={"inline_bytes": 0}) as lines:
        await lines.initialize()
        await lines.pid("s")
        for n in range(20):
            arguments = {"server": "s", "tool": "big", "args": {"size": 100_000}}
            params = {"name": "execute_tool", "arguments": arguments}
            await lines.send({"jsonrpc": "2.0", "id": n, "method": "tools/call", "params": params})
        await lines.receive()
        await kill(lines)
        await gone(brood)


@pytest.mark.parametrize("flags", [("--silent",), ("--discover", "die"), ("--garbage",)])
async def test_one_killed_while_it_connects_leaves_nothing(
    flags: tuple[str, ...], brood: Brood, tmp_path: Path
) -> None:
    servers = {f"s{n}": raw(*brood.flags, *flags) for n in range(3)}
    async with open_lines(tmp_path, servers) as lines:
        await hidden(brood, 2)
        await kill(lines)
        await gone(brood)


@pytest.mark.parametrize("alive", [1, 2, 8, 20, 35])
async def test_one_killed_while_children_start_leaves_nothing(
    alive: int, brood: Brood, tmp_path: Path
) -> None:
    """Whenever it is killed: between a fork and what follows, with half of them there."""
    servers = {f"s{n}": raw(*brood.flags) for n in range(6)}
    async with open_lines(tmp_path, servers) as lines:
        with trio.fail_after(GUARD):
            await until(lambda: len(brood.alive()) >= alive)
        await kill(lines)
        await gone(brood)


async def test_one_killed_with_the_first_sign_of_a_helper_leaves_nothing(
    brood: Brood, tmp_path: Path
) -> None:
    servers = {f"s{n}": raw(*brood.flags) for n in range(6)}
    async with open_lines(tmp_path, servers) as lines:
        await helper_of(lines.child.pid)
        await kill(lines)
        await gone(brood)


async def kill_helper(daemon: int) -> None:
    """And wait for another."""
    first = await helper_of(daemon)
    os.kill(first, signal.SIGKILL)
    with trio.fail_after(GUARD):
        await until(lambda: helpers(daemon) not in ([], [first]))


async def test_the_helper_is_killed_first(brood: Brood, tmp_path: Path) -> None:
    servers = {f"s{n}": raw(*brood.flags) for n in range(3)}
    async with open_lines(tmp_path, servers) as lines:
        await hidden(brood, len(servers))
        await kill_helper(lines.child.pid)
        await kill(lines)
        await gone(brood)


@pytest.mark.parametrize("helper_first", [False, True])
async def test_without_its_environment_it_is_ended_by_its_group(
    helper_first: bool, brood: Brood, tmp_path: Path
) -> None:
    entry = raw(*brood.flags, "--stubborn")
    bare = {"command": "env", "args": ["-i", f"PATH={os.environ['PATH']}", entry["command"]]}
    async with open_lines(tmp_path, {"s": {**bare, "args": bare["args"] + entry["args"]}}) as lines:
        await hidden(brood, 1)
        # Of what has neither its environment nor its group nobody knows whose it is.
        escaped = {pid for pid in brood.alive() if os.getsid(pid) != server_of(lines.child.pid)}
        if helper_first:
            await kill_helper(lines.child.pid)
        await kill(lines)
        with trio.fail_after(GUARD):
            await until(lambda: set(brood.alive()) == escaped)


def server_of(daemon: int) -> int:
    """The pid of its only child that is not the helper."""
    found = []
    for path in PROC.glob("[0-9]*/stat"):
        with suppress(OSError):
            if int(path.read_text(errors="replace").rpartition(")")[2].split()[1]) == daemon:
                found.append(int(path.parent.name))
    (server,) = set(found) - set(helpers(daemon))
    return server


async def test_those_of_an_emceepee_inside_of_another_end_too(brood: Brood, tmp_path: Path) -> None:
    inner = write_config(tmp_path, {f"s{n}": raw(*brood.flags) for n in range(3)})
    inner = inner.rename(tmp_path / "inner.json")
    # By a way that shows nobody that it is one of us: such an entry would be left out.
    code = "import sys; from emceepee_trio.cli import main; sys.exit(main())"
    args = ["-c", code, "stdio", "--config", str(inner)]
    nested = {"command": sys.executable, "args": args}
    async with open_lines(tmp_path, {"inner": nested, "s": raw(*brood.flags)}) as lines:
        await lines.initialize()
        watched = await helper_of(await lines.pid("inner"))
        await hidden(brood, 4)
        await kill(lines)
        await gone(brood)
        with trio.fail_after(GUARD):
            await until(lambda: not is_alive(watched))


@pytest.mark.parametrize("how", [None, signal.SIGTERM, signal.SIGINT])
async def test_one_that_ends_by_itself_leaves_nothing(
    how: signal.Signals | None, brood: Brood, tmp_path: Path
) -> None:
    servers = {f"s{n}": raw(*brood.flags, *["--stubborn"] * (n % 2)) for n in range(4)}
    async with open_lines(tmp_path, servers) as lines:
        await hidden(brood, len(servers))
        watching = helpers(lines.child.pid)
        assert await lines.end(how) == 0
        assert not any(map(is_alive, watching))
        await gone(brood)


async def test_servers_that_cannot_start_leave_nothing(brood: Brood, tmp_path: Path) -> None:
    """Every try leaves some behind, and the daemon lives on."""
    entry = raw(*brood.flags, "--exit-at-once", 3)
    retry = {"base_delay_ms": 10, "max_delay_ms": 10, "max_attempts": 3}
    servers = {f"s{n}": {**entry, "restart": retry} for n in range(2)}
    async with open_lines(tmp_path, servers) as lines:
        await lines.initialize()
        for server in servers:
            await lines.execute(server, "echo")
            while await status(lines, server) != "error":
                await lines.call("activity", "await_activity", timeout_ms=100)
        await gone(brood)
        assert lines.child.returncode is None


async def status(lines: Lines, server: str) -> str:
    answer = await lines.call(f"status of {server}", "get_server_status", server=server)
    return str(answer.json["server"]["status"])


async def test_a_start_is_not_delayed_by_the_helper(tmp_path: Path) -> None:
    """Without servers there is none."""
    async with open_lines(tmp_path) as lines:
        await lines.initialize()
        assert helpers(lines.child.pid) == []


# -- emceepee serve ------------------------------------------------------------------------------


@attrs.define(eq=False)
class Served:
    """An `emceepee serve`, and a client for each of its sessions."""

    child: trio.Process
    url: str
    _ids: Iterator[int] = attrs.field(factory=lambda: itertools.count(1), init=False)

    async def open(self, http: httpx.AsyncClient) -> dict[str, str]:
        """A new session: what its requests have to say."""
        params = {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "tests", "version": "0"},
        }
        answer = await self.post(http, "initialize", params)
        return {"mcp-session-id": answer.headers["mcp-session-id"]}

    async def call(
        self, http: httpx.AsyncClient, session: dict[str, str], server: str, tool: str
    ) -> None:
        arguments = {"server": server, "tool": tool, "args": {}}
        params = {"name": "execute_tool", "arguments": arguments}
        await self.post(http, "tools/call", params, session)

    async def post(
        self,
        http: httpx.AsyncClient,
        method: str,
        params: Json,
        headers: dict[str, str] | None = None,
    ) -> httpx.Response:
        asked = {"jsonrpc": "2.0", "id": next(self._ids), "method": method, "params": params}
        answer = await http.post(
            self.url,
            json=asked,
            headers={"accept": "application/json, text/event-stream", **(headers or {})},
        )
        assert answer.status_code == 200, answer.text
        return answer


@asynccontextmanager
async def open_served(folder: Path, servers: Json) -> AsyncGenerator[Served]:
    config = write_config(folder, servers, defaults=EAGER)
    stderr = folder / "stderr.log"
    command = [*COMMAND, "serve", "--config", str(config), "--bind", "127.0.0.1:0", "--no-auth"]
    with trio.fail_after(2 * GUARD), stderr.open("w") as errlog:
        child = await trio.lowlevel.open_process(command, stdout=subprocess.PIPE, stderr=errlog)
        try:
            assert child.stdout is not None
            said = b""
            while (found := re.search(rb"http://[\w.]+:\d+/mcp\n", said)) is None:
                chunk = await child.stdout.receive_some()
                assert chunk, stderr.read_text("utf-8")
                said += chunk
            yield Served(child, found[0].decode().strip())
        finally:
            if child.returncode is None:
                child.terminate()
            with trio.CancelScope(shield=True):
                await child.wait()
                if child.stdout is not None:
                    await child.stdout.aclose()
    assert not [line for line in log_lines(stderr) if "traceback" in line]


# The client of the test leaves off in the middle of a request when the daemon is killed.
@pytest.mark.filterwarnings("ignore:Async generator 'httpx[.]:ResourceWarning")
async def test_a_killed_daemon_leaves_nothing_of_any_session(brood: Brood, tmp_path: Path) -> None:
    """Under load: sessions begin and end, and calls are under way."""
    servers = {"a": raw(*brood.flags), "b": raw(*brood.flags, "--stubborn")}
    async with open_served(tmp_path, servers) as it, httpx.AsyncClient(timeout=GUARD) as http:
        sessions = [await it.open(http) for _ in range(3)]
        await hidden(brood, 2 * len(sessions))

        async def work(session: dict[str, str]) -> None:
            with suppress(httpx.TransportError):
                while True:
                    await it.call(http, session, "a", "echo")

        async def come_and_go() -> None:
            with suppress(httpx.TransportError):
                while True:
                    await http.delete(it.url, headers=await it.open(http))

        async with trio.open_nursery() as nursery:
            for session in sessions:
                nursery.start_soon(work, session)
            nursery.start_soon(come_and_go)
            with trio.fail_after(GUARD):
                await until(lambda: len(brood.alive()) > (2 * len(sessions) + 1) * FAMILY)
            watching = helpers(it.child.pid)
            assert len(watching) == 1
            it.child.kill()
        await it.child.wait()
        await gone(brood)
        with trio.fail_after(GUARD):
            await until(lambda: not is_alive(watching[0]))


async def test_a_session_that_ends_leaves_nothing_and_others_keep_theirs(
    brood: Brood, tmp_path: Path
) -> None:
    async with (
        open_served(tmp_path, {"a": raw(*brood.flags)}) as it,
        httpx.AsyncClient(timeout=GUARD) as http,
    ):
        await it.open(http)
        await hidden(brood, 1)
        kept = set(brood.alive())
        second = await it.open(http)
        await hidden(brood, 2)
        await http.delete(it.url, headers=second)
        with trio.fail_after(GUARD):
            await until(lambda: set(brood.alive()) == kept)
        it.child.terminate()
        assert await it.child.wait() == 0
        await gone(brood)


async def test_a_server_that_a_reload_removes_leaves_nothing(brood: Brood, tmp_path: Path) -> None:
    with open_brood() as other:
        servers = {"a": raw(*brood.flags), "b": raw(*other.flags)}
        async with open_served(tmp_path, servers) as it, httpx.AsyncClient(timeout=GUARD) as http:
            await it.open(http)
            await hidden(brood, 1)
            await hidden(other, 1)
            kept = set(other.alive())
            write_config(tmp_path, {"b": servers["b"]}, defaults=EAGER)
            it.child.send_signal(signal.SIGHUP)
            await gone(brood)
            assert set(other.alive()) == kept
        await gone(other)
