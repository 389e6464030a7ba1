"""No task of ours keeps all others waiting: fails the test in which one does.

Every run of trio in the process of the tests is watched, and so is every daemon that tests start
(it says ``slow_step`` in its log). What counts is the time the processor spent between two
checkpoints, without collections of garbage. The steps of a test's own tasks are its own affair.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest_trio  # type: ignore[import-untyped]  # asked only where it is
import trio
from trio._core import _run
from trio.abc import Clock, Instrument

from emceepee_trio.config.bounds import LONG_STEP_MS
from emceepee_trio.waits.watchdog import COLLECTION, LongStep, Watchdog

OWN = (str(Path(__file__).parents[1]), str(Path(pytest_trio.__file__).parent))
"""Where the code of a test's own tasks is."""


def is_ours(step: LongStep) -> bool:
    return step.kind != COLLECTION and not step.file.startswith(OWN)


_excused = False
"""Whether the test that runs now is of a bug that is known: helpers do not know which one it is."""

_stalls: list[LongStep] = []
"""Of that test."""


@contextmanager
def every_run_watched(*, excused: bool) -> Generator[None]:
    """While one test runs, which fails at the end of the block; guest runs as well."""
    global _excused, _stalls
    stalls: list[LongStep] = []

    def notice(step: LongStep) -> None:
        if is_ours(step):
            stalls.append(step)

    watchdog = Watchdog(LONG_STEP_MS / 1000, time.perf_counter, time.thread_time, notice)
    usual, before = _run.setup_runner, (_excused, _stalls)

    def setup(
        clock: Clock | None,
        instruments: Sequence[Instrument],
        restrict_keyboard_interrupt_to_checkpoints: bool,
        strict_exception_groups: bool,
    ) -> _run.Runner:
        options = (restrict_keyboard_interrupt_to_checkpoints, strict_exception_groups)
        return usual(clock, [*instruments, watchdog], *options)

    _run.setup_runner, _excused, _stalls = setup, excused, stalls
    try:
        with watchdog.collections():
            yield
        check_so_far()
    finally:
        _run.setup_runner, (_excused, _stalls) = usual, before


def check_so_far() -> None:
    """Fail now, and not again at the end: a test of many examples asks after each."""
    stalls = _stalls.copy()
    _stalls.clear()
    assert _excused or not stalls, "everybody had to wait for: " + "; ".join(
        f"{step.task}, {step.seconds * 1000:.0f} ms, now at {step.where or 'its end'}"
        for step in stalls
    )


def check_daemon(log: Iterable[Mapping[str, Any]]) -> None:
    """The lines of one that has ended."""
    slow = [line for line in log if line["event"] == "slow_step" and line["kind"] != COLLECTION]
    assert _excused or not slow, slow


@contextmanager
def steps_measured() -> Generator[Callable[[], float]]:
    """Of the run of trio that we are in: how long the longest step of ours was in the block."""
    longest = 0.0

    def notice(step: LongStep) -> None:
        nonlocal longest
        if is_ours(step):
            longest = max(longest, step.seconds)

    watchdog = Watchdog(0.001, time.perf_counter, time.thread_time, notice)
    trio.lowlevel.add_instrument(watchdog)
    with watchdog.collections():
        try:
            yield lambda: longest
        finally:
            trio.lowlevel.remove_instrument(watchdog)
