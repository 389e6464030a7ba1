"""Sessions that come and go by the hundred, each with a program of its own: nothing stays.

In this process, where tasks can be counted.
"""

from __future__ import annotations

import gc
import os
from pathlib import Path

import pytest
import trio
import trio.testing

from emceepee_trio.config import Config, Server
from emceepee_trio.session.manager import SessionManager, open_sessions
from fake_backends import raw, until

PROC = Path("/proc")
SELF = PROC / "self"
pytestmark = pytest.mark.skipif(not SELF.exists(), reason="needs /proc")

GUARD = 120
SESSIONS, AT_ONCE, FIRST = 200, 10, 40
TOLERANCE = 6 * 1024 * 1024
"""Bytes that this process may grow by meanwhile: 200 sessions of 30 KiB that stay are more."""


def tasks() -> int:
    return trio.lowlevel.current_statistics().tasks_living


def descriptors() -> int:
    return len(list((SELF / "fd").iterdir()))


def children() -> int:
    """Also those nobody has waited for."""
    found = 0
    for stat in PROC.glob("[0-9]*/stat"):
        try:
            parent = stat.read_text(errors="replace").rpartition(")")[2].split()[1]
        except OSError:  # it ended while we looked
            continue
        found += int(parent) == os.getpid()
    return found


def memory() -> int:
    gc.collect()
    pages = int((SELF / "statm").read_text().split()[1])
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
    server = Server("it", command=entry["command"], args=tuple(entry["args"]))
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
