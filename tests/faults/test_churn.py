"""Sessions that come and go by the hundred, each with a program of its own: nothing stays.

In this process, where tasks can be counted; and in a daemon, whose clients come over HTTP.
"""

from __future__ import annotations

import gc
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import trio
import trio.testing

from emceepee_client import write_config
from emceepee_trio.commands.common.remote import RemoteDaemon, RemoteSession
from emceepee_trio.config import Config, Server
from emceepee_trio.session.manager import SessionManager, open_sessions
from fake_backends import raw, until
from served import serve

PROC = Path("/proc")
SELF = PROC / "self"
pytestmark = pytest.mark.skipif(not SELF.exists(), reason="needs /proc")

GUARD = 120
SESSIONS, AT_ONCE, FIRST = 200, 10, 40
TOLERANCE = 6 * 1024 * 1024
"""Bytes that this process may grow by meanwhile: 200 sessions of 30 KiB that stay are more."""


def tasks() -> int:
    return trio.lowlevel.current_statistics().tasks_living


def descriptors(pid: int | str = "self") -> int:
    return len(list((PROC / str(pid) / "fd").iterdir()))


def children(of: int | None = None) -> int:
    """Also those nobody has waited for."""
    found, of = 0, of or os.getpid()
    for stat in PROC.glob("[0-9]*/stat"):
        try:
            parent = stat.read_text(errors="replace").rpartition(")")[2].split()[1]
        except OSError:  # it ended while we looked
            continue
        found += int(parent) == of
    return found


def memory(pid: int | str = "self") -> int:
    gc.collect()
    pages = int((PROC / str(pid) / "statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


async def come_and_go(manager: SessionManager, sessions: range) -> None:
    """Some at once. Each is dropped when it has connected, has called, or in the middle of that."""

    async def one(n: int) -> None:
        session = await manager.ensure(f"session-{n}", "local")
        if n % 5:
            client = await session.backend("it").connection()
            if n % 3:
                asked = {"name": "echo", "arguments": {"text": "x"}}
                said = await client.request("tools/call", asked)
                assert said["content"][0]["text"] == "x"
        manager.end(session, "test")

    for start in range(sessions.start, sessions.stop, AT_ONCE):
        async with trio.open_nursery() as nursery:
            for n in range(start, start + AT_ONCE):
                nursery.start_soon(one, n)


async def test_of_sessions_that_come_and_go_nothing_stays() -> None:
    entry = raw()
    server = Server("it", command=entry["command"], args=tuple(entry["args"]), start="eager")
    with trio.fail_after(GUARD):
        before_all = tasks()
        async with open_sessions(Config(servers=(server,))) as manager:
            kept = await manager.ensure("kept", "local")
            client = await kept.backend("it").connection()
            assert await client.request("ping") == {}
            await trio.testing.wait_all_tasks_blocked()  # what follows a connection is done
            counts = tasks(), children(), descriptors()
            await come_and_go(manager, range(FIRST))
            await until(lambda: (tasks(), children(), descriptors()) == counts)
            before = memory()
            await come_and_go(manager, range(FIRST, FIRST + SESSIONS))
            await until(lambda: (tasks(), children(), descriptors()) == counts)
            grown = memory() - before
            assert grown < TOLERANCE
            assert manager.sessions() == [kept]
            assert await client.request("ping") == {}
        assert tasks() == before_all


def come_and_go_over_http(daemon: RemoteDaemon, sessions: range) -> None:
    """Each calls something, begins something that does not end, or only says hello."""

    def one(n: int) -> None:
        with RemoteSession.connected(daemon, f"client-{n}") as client:
            if n % 5:
                asked = {"server": "it", "tool": "echo", "args": {"text": "x"}}
                assert client.call("execute_tool", asked)["content"][0]["text"] == "x"
            if n % 3:
                client.call(
                    "execute_tool", {"server": "it", "tool": "never", "args": {}, "timeout_ms": 0}
                )

    with ThreadPoolExecutor(AT_ONCE) as clients:
        assert len(list(clients.map(one, sessions))) == len(sessions)


async def test_of_clients_that_come_and_go_nothing_stays_in_a_daemon(tmp_path: Path) -> None:
    config = write_config(tmp_path, {"it": raw()})
    with trio.fail_after(GUARD), serve(tmp_path, "--config", str(config)) as served:
        daemon = RemoteDaemon.find(served.url, tmp_path)

        def come_and_go(sessions: range) -> None:
            come_and_go_over_http(daemon, sessions)

        await trio.to_thread.run_sync(come_and_go, range(FIRST))
        # Its helper stays, and no program of any session.
        await until(lambda: children(served.pid) == 1)
        files, before = descriptors(served.pid), memory(served.pid)
        await trio.to_thread.run_sync(come_and_go, range(FIRST, FIRST + SESSIONS))
        await until(lambda: children(served.pid) == 1)
        await until(lambda: descriptors(served.pid) <= files)
        assert memory(served.pid) - before < TOLERANCE
