"""How long each task keeps all others waiting: the time of every step between two checkpoints.

What counts is the time that the processor spent on a step, not the clock: a busy machine makes
every step long, and none of them slow. To ask for that time is dear, so the clock is looked at
first: what took little of it took no more of the processor. A step is counted from the end of the
one before, or from where trio has waited: what it does in between is little.

Collections of garbage but those of the youngest objects look at what everybody has made, so they
are taken off the step in which they happen, and counted by themselves: all wait for them just as
well.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import attrs
import trio
from trio.abc import Instrument
from trio.lowlevel import Task

from .. import logs
from ..config.bounds import LONG_STEP_MS, SLOW_STEP_MS

COLLECTION = "garbage collection"
"""What stands in place of a task where it was nobody's step."""

FRESH = 0.005
"""Seconds of the clock for which it is good enough to know what the processor had spent."""

_OURS = __name__.partition(".")[0] + "."


@attrs.frozen
class LongStep:
    """One that took long."""

    kind: str
    """The function that the task runs: there are only so many."""
    task: str
    """Its name: there may be thousands."""
    seconds: float
    where: str
    """The innermost place of ours in which the task waits now; empty if it has ended."""
    file: str
    """In which that function is."""


@attrs.define(eq=False)
class Watchdog(Instrument):
    """Tells of every step that took at least *threshold* seconds."""

    threshold: float
    clock: Callable[[], float]
    """Seconds, of which the processor spends no more than pass."""
    spent: Callable[[], float]
    """Seconds that the processor has spent on the calling thread."""
    tell: Callable[[LongStep], None]
    """Called between two steps."""
    _fresh: float = attrs.field(init=False)
    """Seconds after which we ask again what the processor has spent."""
    _looked: float = attrs.field(init=False)
    """When we asked; that in which we are made began unseen."""
    _had_spent: float = attrs.field(init=False)
    """What it had, then."""
    _since: float = attrs.field(init=False)
    """When the last step ended."""
    _collecting: float = attrs.field(default=0.0, init=False)
    _collected: float = attrs.field(default=0.0, init=False)
    """Seconds of this step."""
    _collections: list[float] = attrs.field(factory=list, init=False)
    """Those not told of yet: a collection may come in the middle of anything, also of telling."""

    def __attrs_post_init__(self) -> None:
        self._fresh = min(FRESH, self.threshold / 4)
        self._since = self._looked = self.clock()
        self._had_spent = self.spent()

    def after_io_wait(self, timeout: float) -> None:
        # Where we are the guest of another loop that one has worked meanwhile, and between two runs
        # somebody else has.
        self._since = now = self.clock()
        if now - self._looked >= self._fresh:
            self._looked, self._had_spent = now, self.spent()

    def after_task_step(self, task: Task) -> None:
        began, now = self._since, self.clock()
        self._since = now
        if now - self._looked >= self._fresh:
            # Others may have had all of the time between our look and its begin.
            before = began - self._looked + self._had_spent
            self._looked, self._had_spent = now, self.spent()
            seconds = self._had_spent - before - self._collected
            if seconds >= self.threshold:
                self._tell_of(task, seconds)
        self._collected = 0.0
        while self._collections:
            self.tell(LongStep(COLLECTION, COLLECTION, self._collections.pop(), "", ""))

    def _tell_of(self, task: Task, seconds: float) -> None:
        kind, file = task.coro.__qualname__, task.coro.cr_code.co_filename
        self.tell(LongStep(kind, task.name, seconds, _where(task), file))

    @contextmanager
    def collections(self) -> Generator[None]:
        """Sees them while the block is."""
        gc.callbacks.append(self._collection)
        try:
            yield
        finally:
            gc.callbacks.remove(self._collection)

    def _collection(self, phase: str, info: dict[str, Any]) -> None:
        # Two of them never overlap, whichever threads begin them.
        if info["generation"] == 0:
            return
        if phase == "start":
            self._collecting = self.spent()
            return
        seconds = self.spent() - self._collecting
        if trio.lowlevel.in_trio_run():  # which no other thread is
            self._collected += seconds
        if seconds >= self.threshold:
            self._collections.append(seconds)


def _where(task: Task) -> str:
    frames = [(frame, line) for frame, line in task.iter_await_frames()]
    ours = [(f, line) for f, line in frames if f.f_globals.get("__name__", "").startswith(_OURS)]
    for frame, line in reversed(ours or frames):
        return f"{frame.f_globals.get('__name__', '?')}:{line}"
    return ""


@attrs.define(eq=False)
class SlowSteps:
    """Counts them, and warns of long ones: one line now, and then per minute, for each kind."""

    count: int = attrs.field(default=0, init=False)
    longest: float = attrs.field(default=0.0, init=False)

    def tell(self, step: LongStep) -> None:
        self.count += 1
        self.longest = max(self.longest, step.seconds)
        if step.seconds * 1000 >= LONG_STEP_MS:
            logs.often(
                "warn",
                "slow_step",
                sums={"count": 1, "cpu_ms": round(step.seconds * 1000)},
                latest={"task": step.task, "now_at": step.where or None},
                kind=step.kind,
            )

    def to_json(self) -> dict[str, Any]:
        return {"count": self.count, "longest_ms": round(self.longest * 1000)}


@contextmanager
def slow_steps(clock: Callable[[], float], spent: Callable[[], float]) -> Generator[SlowSteps]:
    """Of the run of trio that we are in, while the block is; the clocks as in `Watchdog`."""
    slow = SlowSteps()
    watchdog = Watchdog(SLOW_STEP_MS / 1000, clock, spent, slow.tell)
    trio.lowlevel.add_instrument(watchdog)
    with watchdog.collections():
        try:
            yield slow
        finally:
            trio.lowlevel.remove_instrument(watchdog)
