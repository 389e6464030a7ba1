"""How long a program may take to start, and how many do so at once."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import trio

from emceepee_trio.backend.children import start
from emceepee_trio.backend.children.pulse import Pulse
from emceepee_trio.backend.shared import Shared
from emceepee_trio.config import Config, Limits, Retry, server_from_arguments
from emceepee_trio.errors import ConnectFailed
from emceepee_trio.model.facts import (
    ChildStarted,
    ConnectionQueued,
    ConnectionStarting,
    ConnectionTrying,
    ConnectionUp,
)
from emceepee_trio.session.manager import open_sessions
from fake_backends import raw, until
from installer import installing
from recording import running
from replay import Replay

pytestmark = pytest.mark.cold

GUARD = 60
LATER = {"restart": Retry(base_delay_ms=60_000)}


@pytest.mark.once
@pytest.mark.parametrize("how", ["print", "write", "burn", "child"])
async def test_a_first_start_that_works_is_waited_for(how: str) -> None:
    entry = installing(how, 3.5, connect_timeout_ms=1000)  # who does nothing has two seconds
    with trio.fail_after(GUARD):
        async with running(entry | LATER) as it:
            await it.backend.connection()
            assert it.host.story == ["process_started", "server_connected"]


async def test_a_first_start_that_does_nothing_is_not() -> None:
    entry = installing("sleep", 600, connect_timeout_ms=500)
    with trio.fail_after(GUARD):
        async with running(entry | LATER) as it:
            with pytest.raises(ConnectFailed, match=r"no answer within 500 ms; next try"):
                await it.backend.connection()


@pytest.mark.once
async def test_nobody_works_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    assert start.FIRST == 120
    monkeypatch.setattr(start, "FIRST", 4.0)
    monkeypatch.setattr("emceepee_trio.backend.link.FIRST", 4.0)
    entry = installing("print", 600, connect_timeout_ms=1000)
    why = r"no answer within [45] s, though it still works; it said: Downloading"
    with trio.fail_after(GUARD):
        async with running(entry | LATER) as it:
            with pytest.raises(ConnectFailed, match=why):
                await it.backend.connection()


async def test_who_has_worked_before_has_the_time_of_a_try() -> None:
    shared = Shared()
    entry = installing("print", 600, connect_timeout_ms=1000)
    shared.remember((None, entry["command"], *entry["args"]), "handshake")
    with trio.fail_after(GUARD):
        async with running(entry | LATER, shared=shared) as it:
            with pytest.raises(ConnectFailed, match="no answer within 1000 ms; it said"):
                await it.backend.connection()


async def test_of_all_sessions_only_so_many_start_at_once(tmp_path: Path) -> None:
    log = tmp_path / "log"
    servers = tuple(
        server_from_arguments({"name": f"s{n}", **installing("sleep", 0.3, log=log)})
        for n in range(3)
    )
    config = Config(servers=servers, limits=Limits(starting=2))
    with trio.fail_after(GUARD):
        async with open_sessions(config) as sessions:
            for name in ("a", "b"):
                session = await sessions.ensure(name, "p")
            for session in sessions.sessions():
                for backend in session.backends.values():
                    await backend.connection()
    at_once, most = 0, 0
    for line in log.read_text().splitlines():
        at_once += 1 if line == "begin" else -1
        most = max(most, at_once)
    assert most == 2
    assert at_once == 0


@pytest.mark.parametrize(("how", "most"), [("sleep", "IDLE"), ("burn", "HELD")])
async def test_who_hangs_keeps_nobody_from_starting(
    how: str, most: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither who does nothing, nor who never stops to do something."""
    monkeypatch.setattr(start, most, 0.5)
    hanging = server_from_arguments({"name": "hanging", **installing(how, 600)})
    config = Config(servers=(hanging,), limits=Limits(starting=1))
    with trio.fail_after(GUARD):
        async with open_sessions(config) as sessions:
            session = await sessions.ensure("a", "p")
            await until(lambda: session.backend("hanging").process is not None)
            other = server_from_arguments({"name": "raw", **raw()})
            await session.backends.start(other, restricted=False).connection()
            assert session.backend("hanging").starting is not None
            assert session.backend("hanging").last_error is None  # it is at its first try


async def test_who_leaves_while_it_waits_for_its_turn_is_gone() -> None:
    shared = Shared()
    shared.starts.allow(1)
    with trio.fail_after(GUARD), shared.starts.place("another", lambda: False):
        async with running(raw(), shared=shared) as it:
            await trio.testing.wait_all_tasks_blocked()
            said = it.backend.starting
            assert said is not None
            assert "waits for its turn, 1 at once may do so (limits.starting)" in said
            assert it.host.story == []
    assert shared.starts.starting == 0


async def test_that_a_program_waits_for_its_turn_and_has_it_is_noted() -> None:
    shared, replay = Shared(), Replay()
    replay.reads(shared.journal)
    shared.starts.allow(1)
    with trio.fail_after(GUARD):
        with shared.starts.place("another", lambda: False) as place:
            async with running(raw(), shared=shared) as it:
                await trio.testing.wait_all_tasks_blocked()
                assert list(map(type, replay.noted)) == [ConnectionTrying, ConnectionQueued]
                place.give_back()
                await it.backend.connection()
                assert list(map(type, replay.noted))[2:] == [
                    ConnectionStarting,
                    ChildStarted,
                    ConnectionUp,
                ]
        replay.noted.clear()
        async with running(raw(), shared=shared) as it:  # at once
            await it.backend.connection()
            assert not {ConnectionQueued, ConnectionStarting} & {*map(type, replay.noted)}


async def test_the_pulse_of_a_program_is_that_of_all_it_has_started() -> None:
    async with trio.open_nursery() as nursery:
        entry = installing("child", 600)
        process = await nursery.start(trio.run_process, [entry["command"], *entry["args"]])
        pulse = Pulse()
        await until(lambda: pulse.beats(process.pid, 0))
        for _ in range(3):
            await until(lambda: pulse.beats(process.pid, 0))
        nursery.cancel_scope.cancel("seen")


async def test_who_waits_for_a_timer_or_for_its_input_has_none() -> None:
    script = "import sys, time\nprint(flush=True)\nwhile True: time.sleep(0.1)"
    async with trio.open_nursery() as nursery:
        command = [sys.executable, "-c", script]
        process = await nursery.start(trio.run_process, command)
        pulse = Pulse()
        await until(lambda: not pulse.beats(process.pid, 0))
        assert pulse.beats(process.pid, 1)
        assert not pulse.beats(process.pid, 1)
        nursery.cancel_scope.cancel("seen")
