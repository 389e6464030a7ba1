"""Real processes that hide, and the real helper. Nothing of them may be left, whatever fails."""

from __future__ import annotations

import os
import secrets
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Iterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio
import trio.testing

from brood import FAMILY, Brood, helpers, is_alive, open_brood
from emceepee_trio import logs
from emceepee_trio.backend.children import lifeline
from emceepee_trio.backend.children import reaper as module
from emceepee_trio.backend.children.process import Process, open_process
from emceepee_trio.backend.children.reaper import Reaper, open_reaper
from emceepee_trio.model.json.intake import Measure
from fake_backends import raw, until

pytestmark = pytest.mark.skipif(not module.HAS_PROC, reason="needs /proc")

US = os.getpid()
SLEEP = "import time; time.sleep(600)"


@pytest.fixture
def brood() -> Iterator[Brood]:
    with open_brood() as brood:
        yield brood


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, dict[str, Any]]]:
    said: list[tuple[str, dict[str, Any]]] = []
    monkeypatch.setattr(logs, "write", lambda level, event, **fields: said.append((event, fields)))
    return said


@asynccontextmanager
async def child(reaper: Reaper | None, *flags: str) -> AsyncGenerator[Process]:
    entry = raw(*flags)
    with trio.fail_after(60):
        async with open_process(
            [entry["command"], *entry["args"]],
            env={"PATH": os.environ["PATH"]},
            cwd=None,
            measure=Measure(1000, 10_000),
            on_stderr=print,
            on_noise=print,
            reaper=reaper,
        ) as process:
            process.patience = 0.3
            yield process


async def hidden(brood: Brood, servers: int = 1) -> None:
    with trio.fail_after(60):
        await until(lambda: brood.is_hidden(servers))


async def gone(brood: Brood) -> None:
    with trio.fail_after(60):
        await until(lambda: not brood.alive())


# -- of a child that has ended -------------------------------------------------------------------


async def test_all_that_a_child_has_started_ends_with_it(brood: Brood) -> None:
    async with open_reaper() as reaper:
        async with child(reaper, *brood.flags):
            await hidden(brood)
        await gone(brood)


async def test_without_a_reaper_they_would_stay(brood: Brood) -> None:
    """Else the tests around this one say nothing."""
    async with child(None, *brood.flags):
        await hidden(brood)
    await until(lambda: len(brood.alive()) == 3)  # those that have left the group


async def test_a_child_that_crashes_leaves_nothing_although_nobody_has_left_it(
    brood: Brood,
) -> None:
    async with open_reaper() as reaper, child(reaper, *brood.flags) as process:
        await hidden(brood)
        os.kill(process.pid, signal.SIGKILL)
        await gone(brood)


async def test_what_others_have_started_is_left_alone(brood: Brood) -> None:
    with open_brood() as other:
        async with open_reaper() as reaper, open_reaper() as foreign:
            async with child(reaper, *other.flags):
                async with child(reaper, *brood.flags), child(foreign, *brood.flags):
                    await hidden(brood, 2)
                    await hidden(other)
                await gone(brood)
                assert len(other.alive()) == FAMILY
            await gone(other)


async def test_children_that_end_together_are_looked_for_together(
    brood: Brood, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = 0

    def count(*args: Any) -> None:
        nonlocal looks
        looks += 1
        end_tagged(*args)

    end_tagged = lifeline.end_tagged
    monkeypatch.setattr(lifeline, "end_tagged", count)

    async def hold(reaper: Reaper, over: trio.Event) -> None:
        async with child(reaper, *brood.flags):
            await over.wait()

    over = trio.Event()
    async with open_reaper() as reaper:
        async with trio.open_nursery() as nursery:
            for _ in range(8):
                nursery.start_soon(hold, reaper, over)
            await hidden(brood, 8)
            await reaper._looking.acquire()
            over.set()
            await until(lambda: len(reaper._to_end) == 8)
            reaper._looking.release()
        await gone(brood)
    assert looks == 1


async def test_a_cancelled_end_is_an_end(brood: Brood) -> None:
    async with open_reaper() as reaper:
        with trio.CancelScope() as scope:
            async with child(reaper, *brood.flags):
                await hidden(brood)
                scope.cancel()
                await trio.sleep_forever()
        await gone(brood)


# -- the helper ----------------------------------------------------------------------------------


def read(pid: int, what: str) -> bytes:
    return Path(f"/proc/{pid}/{what}").read_bytes()


async def helper() -> int:
    """The only one, once there is one."""
    found: list[int] = []

    def there() -> bool:
        found[:] = helpers(US)
        return len(found) == 1

    with trio.fail_after(60):
        await until(there)
    return found[0]


async def test_there_is_a_helper_from_the_first_child_to_the_end() -> None:
    async with open_reaper() as reaper:
        assert helpers(US) == []
        async with child(reaper):
            first = await helper()
            async with child(reaper):
                assert helpers(US) == [first]
        assert helpers(US) == [first]
    assert helpers(US) == []
    assert not is_alive(first)


async def test_without_children_there_is_no_helper() -> None:
    async with open_reaper():
        await trio.testing.wait_all_tasks_blocked()
        assert helpers(US) == []


async def test_the_helper_outlives_what_ends_us_and_shows_no_tag(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(lifeline.NAME, "we.too")  # of an emceepee that has started us
    async with open_reaper() as reaper, child(reaper) as process:
        pid = await helper()
        assert os.getsid(pid) == os.getpgid(pid) == pid
        with trio.fail_after(60):  # what has only just begun shows no environment yet
            await until(lambda: any(lifeline._tags(process.pid)))
        tag = next(lifeline._tags(process.pid))
        assert tag.startswith(reaper._token + ".")
        shown = read(pid, "cmdline") + read(pid, "environ")
        assert reaper._token.encode() not in shown
        assert b"we.too" not in shown
        assert reaper._token not in repr(reaper)
        assert tag not in repr(process)

        def ignored() -> int:
            return int(read(pid, "status").partition(b"SigIgn:")[2].split()[0], 16)

        ends = [signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGPIPE]
        with trio.fail_after(60):
            await until(lambda: all(ignored() & 1 << number - 1 for number in ends))
        for number in ends:
            os.kill(pid, number)
        assert helpers(US) == [pid]


async def test_a_helper_that_is_killed_has_a_successor(
    said: list[tuple[str, dict[str, Any]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PAUSE", 0.01)
    async with open_reaper() as reaper, child(reaper):
        seen = set()
        for _ in range(3):
            pid = await helper()
            os.kill(pid, signal.SIGKILL)
            seen.add(pid)
            with trio.fail_after(60):
                await until(lambda pid=pid: helpers(US) not in ([], [pid]))  # type: ignore[misc]  # a default has no type
        assert len(seen) == 3
        await helper()
    assert said == [("reaper_killed", {"signal": 9})] * 3


async def test_a_helper_that_does_not_listen_has_a_successor() -> None:
    """It would take for running what has ended long ago."""
    async with open_reaper() as reaper, child(reaper):
        pid = await helper()
        os.kill(pid, signal.SIGSTOP)
        for _ in range(100_000):
            reaper._tell("-1 1")
        with trio.fail_after(60):
            await until(lambda: helpers(US) not in ([], [pid]))
    assert not is_alive(pid)


@pytest.mark.parametrize("how", ["no /proc", "no program", "no python"])
async def test_without_a_helper_children_live_and_it_is_said_once(
    how: str,
    brood: Brood,
    said: list[tuple[str, dict[str, Any]]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "LONG_PAUSE", 0.01)
    if how == "no /proc":
        monkeypatch.setattr(module, "HAS_PROC", False)
    elif how == "no program":
        monkeypatch.setattr(lifeline, "__file__", "/nowhere/lifeline.py")
    entry = raw(*brood.flags)
    if how == "no python":
        monkeypatch.setattr(sys, "executable", "/nowhere/python")
        entry["command"] = shutil.which("python3")
    async with open_reaper() as reaper:
        async with open_process(
            [entry["command"], *entry["args"]],
            env={"PATH": os.environ["PATH"]},
            cwd=None,
            measure=Measure(1000, 10_000),
            on_stderr=print,
            on_noise=print,
            reaper=reaper,
        ) as process:
            process.patience = 0.3
            await hidden(brood)
            with trio.fail_after(60):
                await until(lambda: said)
    if how == "no /proc":
        await until(lambda: len(brood.alive()) == 3)
    else:
        await gone(brood)
    ((event, fields),) = said
    assert event == "no_reaper"
    assert fields["reason"]


# -- the helper by itself ------------------------------------------------------------------------


@attrs.define(eq=False)
class Helper:
    """The program, as a daemon would start it."""

    process: subprocess.Popen[bytes]
    others: ExitStack
    token: str = attrs.field(factory=lambda: secrets.token_hex(8), init=False)
    """No other test's: the helper looks at all processes there are."""

    def tell(self, *words: bytes) -> None:
        """The token, and these."""
        data = b"".join([f"={self.token}\n".encode(), *words])
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def end(self) -> None:
        """The daemon is gone."""
        self.process.communicate(timeout=60)
        assert self.process.returncode == 0

    def start(
        self, tag: str | None, code: str = SLEEP, *, group: int | None = 0
    ) -> subprocess.Popen[bytes]:
        """A process that says so once it runs."""
        other = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", f"print(flush=True); {code}"],
            env={} if tag is None else {lifeline.NAME: tag},
            stdout=subprocess.PIPE,
            process_group=group,
        )
        self.others.enter_context(other)
        self.others.callback(other.kill)
        assert other.stdout is not None
        assert other.stdout.readline() == b"\n"
        return other


@pytest.fixture
def program() -> Iterator[Helper]:
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", lifeline.__file__],
        stdin=subprocess.PIPE,
        start_new_session=True,
        env={},
    )
    with process, ExitStack() as others:
        others.callback(process.kill)
        yield Helper(process, others)


def statuses(*processes: subprocess.Popen[bytes]) -> list[int]:
    return [process.wait(60) for process in processes]


def words(process: subprocess.Popen[bytes]) -> bytes:
    return f"{process.pid} {lifeline.started(process.pid)}\n".encode()


def test_who_carries_the_tag_ends_and_nobody_else(program: Helper) -> None:
    theirs = [program.start(tag) for tag in (f"{program.token}.1", f"{program.token}.2")]
    # Not of this daemon, of one whose token only begins the same, of none.
    others = [program.start(tag) for tag in ("xyz.1", f"{program.token}d.1", program.token, None)]
    program.tell()
    program.end()
    assert statuses(*theirs) == [-signal.SIGTERM] * 2
    assert [other.poll() for other in others] == [None] * 4


def test_who_ignores_sigterm_is_killed(program: Helper) -> None:
    deaf = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True)"
    other = program.start(f"{program.token}.1", f"{deaf}; {SLEEP}")
    assert other.stdout is not None
    other.stdout.readline()
    program.tell()
    program.end()
    assert statuses(other) == [-signal.SIGKILL]


def test_nobody_is_asked_twice_to_end(program: Helper) -> None:
    """That would mean: at once."""
    patient = """
import os, signal, time
signal.signal(signal.SIGTERM, lambda *args: os.write(1, b"asked "))
os.write(1, b"\\n")
while True:
    time.sleep(600)
"""
    code = f"exec({patient!r})"
    first = program.start(f"{program.token}.1", code)
    others = [first]
    for number in range(4):
        others.append(program.start(f"{program.token}.{number}", code, group=first.pid))
    for other in others:
        assert other.stdout is not None
        assert other.stdout.readline() == b"\n"
    program.tell(b"+" + words(first))
    program.end()
    assert statuses(*others) == [-signal.SIGKILL] * 5
    for other in others:
        assert other.stdout is not None
        assert other.stdout.read() in (b"asked ", b"")  # too busy to hear the first


def test_a_group_that_it_was_told_of_ends_without_a_tag(program: Helper) -> None:
    told, over = program.start(None), program.start(None)
    member = program.start(None, group=told.pid)
    program.tell(b"+" + words(told), b"+" + words(over), b"-" + words(over))
    program.end()
    assert statuses(told, member) == [-signal.SIGTERM] * 2
    assert over.poll() is None


def test_a_group_ends_although_its_leader_is_gone(program: Helper) -> None:
    leader = program.start(None)
    member = program.start(None, group=leader.pid)
    program.tell(b"+" + words(leader))
    leader.kill()
    leader.wait()
    program.end()
    assert statuses(member) == [-signal.SIGTERM]


def test_a_number_that_has_become_anothers_is_left_alone(program: Helper) -> None:
    other = program.start(None)
    program.tell(f"+{other.pid} 1\n".encode())
    program.end()
    assert other.poll() is None


def test_the_last_word_may_be_cut_off(program: Helper) -> None:
    """We were killed in the middle of it."""
    other = program.start(f"{program.token}.1")
    program.tell(b"+12")
    program.end()
    assert statuses(other) == [-signal.SIGTERM]


def test_a_token_that_never_came_is_nobodys(program: Helper) -> None:
    other = program.start(".1")
    program.end()
    assert other.poll() is None


def test_who_leaves_the_group_and_forks_all_the_time_is_caught(program: Helper) -> None:
    chain = """
import os, time
for _ in range(60_000):
    if os.fork():
        os._exit(0)
    os.setsid()
    time.sleep(0.001)
"""
    first = program.start(f"{program.token}.1", f"exec({chain!r})")
    first.wait(60)
    program.tell()
    program.end()
    # All of them hold its other end.
    assert first.stdout is not None
    readable, _, _ = select.select([first.stdout], [], [], 10)
    assert readable, "somebody is left"
    assert first.stdout.read() == b""
