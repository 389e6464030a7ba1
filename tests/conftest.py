"""What holds for the whole suite: its hypothesis profiles, its markers, and that it leaves nothing.

Nor does a test pass in which a task of ours kept all others waiting; see `stalls`.

Everything tests put into a temporary directory without pytest's ``tmp_path`` lands in one that has
to be empty at the end; by then every child process has to be gone, and waited for.
"""

from __future__ import annotations

import faulthandler
import gc
import itertools
import os
import signal
import tempfile
import time
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings

import warm
from emceepee_trio import logs
from emceepee_trio.logs.frequency import Often
from stalls import every_run_watched

TESTS = Path(__file__).parent
PROC = Path("/proc")

MARKERS = ("races", "faults", "conformance", "foreign")
"""What each test has that is in the folder of that name."""

# How long the last child may take to be gone after the last test: a guard, not a measure.
GOODBYE = 30.0

# Slowness is the machine's, not the code's: no deadlines, no complaints about it.
settings.register_profile(
    "short",
    max_examples=50,
    stateful_step_count=30,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "long", settings.get_profile("short"), max_examples=2000, stateful_step_count=100
)
# For Pythons beside the one that runs all: what differs between them shows in few examples.
settings.register_profile("few", settings.get_profile("short"), max_examples=15)
# For a bug that was planted: that a test fails is all there is to know.
settings.register_profile(
    "planted", settings.get_profile("short"), phases=(Phase.explicit, Phase.generate)
)
settings.load_profile("short")


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Generator[None]:
    for item in items:  # before -m looks at the markers
        for marker in MARKERS:
            if item.path.is_relative_to(TESTS / marker):
                item.add_marker(marker)
    yield
    # In whichever order the others are: they have the processors while it waits.
    items.sort(key=lambda item: item.get_closest_marker("long") is None)


def pytest_collection_finish() -> None:
    """Collections of garbage, of which some tests ask for one, look at nothing of what is here."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None]:
    # What prints where a test hangs reads the frames of a thread that runs meanwhile, and now and
    # then crashes the interpreter by that. Hypothesis may look for the shortest failure for longer
    # than that waits, and does not hang; a machine that does fails by itself.
    if any(map(item.get_closest_marker, ("races", "hypothesis"))):
        faulthandler.cancel_dump_traceback_later()
    with every_run_watched(excused=item.get_closest_marker("stalls") is not None):
        yield


@pytest.fixture(scope="session")
def states(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Folders, of which pytest would look at all that there are to find a name for another."""
    folder = tmp_path_factory.mktemp("states")
    return (folder / str(number) for number in itertools.count())


@pytest.fixture(autouse=True)
def nothing_is_known_before(states: Iterator[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """No daemon finds what that of another test has kept."""
    state = next(states)
    state.mkdir()
    monkeypatch.setenv("XDG_STATE_HOME", str(state))
    monkeypatch.delenv("STATE_DIRECTORY", raising=False)


@pytest.fixture(autouse=True)
def nothing_was_said_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test logs often is new to it."""
    monkeypatch.setattr(logs, "_often", Often(time.monotonic))


def children() -> list[str]:
    """Pid and command of every child of this process, also of those nobody waited for."""
    found = []
    for stat in PROC.glob("[0-9]*/stat"):
        try:
            pid, rest = stat.read_text(errors="replace").split(" (", 1)
        except OSError:  # it ended while we looked
            continue
        command, rest = rest.rsplit(") ", 1)
        state, parent = rest.split()[:2]
        if int(parent) == os.getpid():
            found.append(f"{pid} {command} ({state})")
    return found


@pytest.fixture(scope="session", autouse=True)
def nothing_is_left_behind(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[None]:
    stray = tmp_path_factory.mktemp("stray")
    theirs = set(children())
    # Who runs us in the background may have us ignore it, and with us every child.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:  # as nohup does
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(stray))  # for children
        patch.setattr(tempfile, "tempdir", str(stray))
        yield
    deadline = time.monotonic() + GOODBYE
    while (left := set(children()) - theirs) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not left, f"child processes left: {sorted(left)}"
    assert not (files := sorted(stray.iterdir())), f"temporary files left: {files}"


@pytest.fixture(scope="session")
def fork_server(nothing_is_left_behind: None) -> Iterator[None]:
    with warm.fork_server():
        yield


@pytest.fixture(autouse=True)
def it_starts_programs_warm(
    fork_server: None, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_cold = any(map(request.node.get_closest_marker, ("cold", "faults")))
    monkeypatch.setattr(warm, "is_on", not (is_cold or os.environ.get("TESTS_START_COLD")))
