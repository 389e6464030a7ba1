"""Programs that many sessions have together: killed, crowded, and used by who does not listen."""

from __future__ import annotations

import os
import signal
from functools import partial
from pathlib import Path

import pytest
import trio
import trio.testing

from emceepee_trio.backend.sharing.lease import Lease
from emceepee_trio.config import Config, Server
from emceepee_trio.errors import ServerDisconnected, ToolError
from emceepee_trio.session.manager import SessionManager, open_sessions
from emceepee_trio.session.session import Session
from emceepee_trio.tools import TOOLBOX
from emceepee_trio.tools.common.registry import Request
from fake_backends import Journal, raw, until
from principals import data, told

GUARD = 120


def shared(*flags: str, **more: object) -> Server:
    entry = raw(*flags)
    args = tuple(entry["args"])
    return Server("x", command=entry["command"], args=args, scope="principal", **more)  # type: ignore[arg-type]


async def call(manager: SessionManager, session: Session, tool: str, **args: object) -> object:
    """The text of the result, or the error."""
    asked = {"server": "x", "tool": tool, "args": args}
    try:
        reply = await TOOLBOX.get("execute_tool").call(Request(session, manager), asked)
    except ToolError as error:
        return error
    return reply.result["content"][0]["text"]


def pid_of(session: Session) -> int:
    process = session.backends["x"].process
    assert process is not None
    return process.pid


async def test_a_program_that_is_killed_under_calls_of_five_sessions(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal")
    got: dict[str, object] = {}
    with trio.fail_after(GUARD):
        async with open_sessions(Config(servers=(shared(*journal.flags),))) as manager:
            sessions = [await manager.ensure(f"s{n}", "ada") for n in range(5)]
            assert await call(manager, sessions[0], "echo", text="x") == "x"

            async def hang(session: Session) -> None:
                got[session.id] = await call(manager, session, "never")

            async with trio.open_nursery() as nursery:
                for session in sessions:
                    nursery.start_soon(hang, session)
                await journal.wait_for_marker("never started", 5)
                os.kill(pid_of(sessions[0]), signal.SIGKILL)
            for session in sessions:
                error = got[session.id]
                assert isinstance(error, ServerDisconnected)
                assert error.details == {"may_have_run": True}
                await session.backends["x"].connection()
                await until(partial(data, session, "server_reconnected"))
                assert [e for e in told(session) if e != "restarted"] == [
                    *("process_crashed", "server_disconnected", "restarting"),
                    *("process_started", "server_reconnected"),
                ]
                assert await call(manager, session, "echo", text=session.id) == session.id
            assert len({pid_of(session) for session in sessions}) == 1
    started = [entry for entry in journal.entries() if "started" in entry]
    assert len(started) == 2


async def test_a_hundred_sessions_that_come_and_go_over_one_program() -> None:
    def tasks() -> int:
        return trio.lowlevel.current_statistics().tasks_living

    with trio.fail_after(GUARD):
        async with open_sessions(Config(servers=(shared(start="eager"),))) as manager:
            kept = await manager.ensure("kept", "ada")
            assert await call(manager, kept, "echo", text="x") == "x"
            await trio.testing.wait_all_tasks_blocked()
            before, pid = tasks(), pid_of(kept)

            async def one(n: int) -> None:
                session = await manager.ensure(f"session-{n}", "ada")
                if n % 5:
                    assert await call(manager, session, "echo", text=str(n)) == str(n)
                if n % 3:
                    session.inner.start_soon(call, manager, session, "never")
                    await trio.lowlevel.checkpoint()
                manager.end(session, "test")

            for start in range(0, 100, 10):
                async with trio.open_nursery() as nursery:
                    for n in range(start, start + 10):
                        nursery.start_soon(one, n)
            await until(lambda: tasks() == before)
            lease = kept.backends["x"]
            assert isinstance(lease, Lease)
            assert lease.shared_with == []
            assert lease.hub.wire is not None
            assert list(lease.hub.wire.clients) == [lease]
            assert pid_of(kept) == pid
            assert await call(manager, kept, "echo", text="still") == "still"


@pytest.mark.parametrize("share_logs", [False, True])
async def test_who_never_looks_at_what_it_is_told_keeps_nobody_waiting(share_logs: bool) -> None:
    """Thousands of notifications and lines for two sessions, of which one takes nothing."""
    with trio.fail_after(GUARD):
        async with open_sessions(Config(servers=(shared(share_logs=share_logs),))) as manager:
            silent, other = [await manager.ensure(name, "ada") for name in ("silent", "other")]
            await call(manager, silent, "echo", text="x")
            for _ in range(5):
                await call(manager, other, "notify_many", n=500, k=20)
                await call(manager, other, "stderr", line="x" * 100, n=500)
                assert await call(manager, other, "echo", text="quick") == "quick"
            await until(lambda: bool(silent.buffers.tail("x", "stderr", 1)) == share_logs)
            limits = manager.config.limits
            assert silent.buffers.count_notifications("x") <= limits.notifications
            assert len(silent.buffers.tail("x", "stderr", 10**6)) <= limits.logs
            assert await call(manager, silent, "echo", text="there") == "there"
