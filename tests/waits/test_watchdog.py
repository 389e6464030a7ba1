from __future__ import annotations

import gc
import logging
import queue
from collections.abc import Callable, Generator
from contextlib import contextmanager

import pytest
import trio
import trio.testing

from emceepee_trio import logs
from emceepee_trio.config.bounds import LONG_STEP_MS, SLOW_STEP_MS
from emceepee_trio.logs.frequency import EVERY, Often
from emceepee_trio.waits.watchdog import (
    COLLECTION,
    FRESH,
    LongStep,
    SlowSteps,
    Watchdog,
    slow_steps,
)


class Processor:
    """A clock of a thread that goes when somebody works, and one that goes for others, too."""

    def __init__(self) -> None:
        self.now = self.used = 0.0
        self.asked = 0

    def clock(self) -> float:
        return self.now

    def spent(self) -> float:
        self.asked += 1
        return self.used

    def work(self, seconds: float) -> None:
        self.used += seconds
        self.now += seconds

    def work_for_others(self, seconds: float) -> None:
        self.now += seconds


@contextmanager
def watched(processor: Processor) -> Generator[list[LongStep]]:
    """No collection comes by itself: it would look at the clocks, too."""
    found: list[LongStep] = []
    watchdog = Watchdog(0.1, processor.clock, processor.spent, found.append)
    gc.disable()
    trio.lowlevel.add_instrument(watchdog)
    try:
        with watchdog.collections():
            yield found
    finally:
        trio.lowlevel.remove_instrument(watchdog)
        gc.enable()


async def test_a_step_ends_at_a_checkpoint() -> None:
    processor = Processor()
    with watched(processor) as found:
        for _ in range(3):
            await trio.lowlevel.checkpoint()
            processor.work(0.09)
        await trio.lowlevel.checkpoint()
        assert not found
        processor.work(0.06)
        processor.work(0.06)
        await trio.lowlevel.checkpoint()
    (step,) = found
    assert step.seconds == pytest.approx(0.12)


async def test_steps_of_one_tick_are_apart() -> None:
    processor = Processor()

    async def work() -> None:
        processor.work(0.06)

    with watched(processor) as found:
        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(work)
    assert not found


def test_what_happens_between_two_runs_is_no_step() -> None:
    processor, found = Processor(), list[LongStep]()
    watchdog = Watchdog(0.1, processor.clock, processor.spent, found.append)
    for _ in range(2):
        processor.work(0.2)
        trio.run(trio.lowlevel.checkpoint, instruments=[watchdog])
    assert not found


def test_what_a_host_does_is_no_step() -> None:
    processor, found = Processor(), list[LongStep]()
    watchdog = Watchdog(0.1, processor.clock, processor.spent, found.append)
    ticks: queue.SimpleQueue[Callable[[], object] | None] = queue.SimpleQueue()

    async def main() -> None:
        await trio.sleep(0.001)  # a thread waits, and the host goes on
        processor.work(0.12)
        await trio.lowlevel.checkpoint()

    trio.lowlevel.start_guest_run(
        main,
        run_sync_soon_threadsafe=ticks.put,
        done_callback=lambda _: ticks.put(None),
        instruments=[watchdog],
    )
    while (tick := ticks.get()) is not None:
        processor.work(0.2)
        tick()
    (step,) = found
    assert step.seconds == pytest.approx(0.12)


async def test_what_others_have_of_the_processor_makes_no_step_slow() -> None:
    processor = Processor()
    with watched(processor) as found:
        await trio.lowlevel.checkpoint()
        processor.work_for_others(10)
        processor.work(0.05)
        await trio.lowlevel.checkpoint()
        assert not found
        processor.work_for_others(10)
        processor.work(0.2)
        await trio.lowlevel.checkpoint()
    (step,) = found
    assert step.seconds == pytest.approx(0.2)


async def test_short_steps_ask_for_no_time_of_the_processor() -> None:
    processor = Processor()
    with watched(processor) as found:
        for _ in range(100):
            await trio.lowlevel.checkpoint()
            processor.work(0.00004)
        assert processor.asked == 1
        processor.work(0.2)
        await trio.lowlevel.checkpoint()
    (step,) = found
    assert 0.2 - FRESH <= step.seconds <= 0.2 + 0.00004


async def busy(processor: Processor) -> None:
    processor.work(1)
    await trio.sleep_forever()


async def test_it_is_told_whose_it_was_and_where_that_waits_now() -> None:
    processor = Processor()
    with watched(processor) as found:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(busy, processor, name="the third of many")
            await trio.testing.wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
    (step,) = found
    assert (step.kind, step.task, step.file) == ("busy", "the third of many", __file__)
    line = busy.__code__.co_firstlineno + 2
    assert step.where.startswith(("trio.", f"{__name__}:{line}"))


async def test_of_a_task_that_has_ended_nothing_is_told_but_its_name() -> None:
    async def end() -> None:
        processor.work(1)

    processor = Processor()
    with watched(processor) as found:
        async with trio.open_nursery() as nursery:  # noqa: ASYNC112 - it is a task of its own
            nursery.start_soon(end)
    (step,) = found
    assert step.where == ""


async def test_a_collection_is_nobodys_step() -> None:
    processor = Processor()

    def collecting(phase: str, info: object) -> None:
        if phase == "stop":
            processor.work(0.5)

    gc.callbacks.append(collecting)  # before the watchdog's: it is told of the end later
    try:
        with watched(processor) as found:
            await trio.lowlevel.checkpoint()
            processor.work(0.06)
            gc.collect()
            processor.work(0.05)
            await trio.lowlevel.checkpoint()
    finally:
        gc.callbacks.remove(collecting)
    mine, collection = sorted(found, key=lambda step: step.seconds)
    assert mine.kind != collection.kind == COLLECTION
    assert mine.seconds == pytest.approx(0.11)
    assert collection.seconds == pytest.approx(0.5)


async def test_a_collection_between_two_steps_is_nobodys_either() -> None:
    processor = Processor()

    class Collects(trio.abc.Instrument):
        def before_io_wait(self, timeout: float) -> None:
            gc.collect()

    def collecting(phase: str, info: object) -> None:
        if phase == "stop":
            processor.work(0.5)

    between = Collects()
    gc.callbacks.append(collecting)
    try:
        with watched(processor) as found:
            trio.lowlevel.add_instrument(between)
            await trio.lowlevel.checkpoint()
            trio.lowlevel.remove_instrument(between)
            await trio.lowlevel.checkpoint()
    finally:
        gc.callbacks.remove(collecting)
    assert {step.kind for step in found} == {COLLECTION}


async def test_a_collection_of_another_thread_takes_nothing_off() -> None:
    processor = Processor()

    def collecting(phase: str, info: object) -> None:
        if phase == "stop":
            processor.work(0.5)

    gc.callbacks.append(collecting)
    try:
        with watched(processor) as found:
            await trio.to_thread.run_sync(gc.collect)
            await trio.lowlevel.checkpoint()
    finally:
        gc.callbacks.remove(collecting)
    assert COLLECTION in {step.kind for step in found}


def test_slow_ones_are_counted_and_long_ones_are_logged(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0
    monkeypatch.setattr(logs, "_often", Often(lambda: now))
    slow = SlowSteps()
    long = LONG_STEP_MS / 1000

    def step(seconds: float, task: str = "a") -> None:
        slow.tell(LongStep("Link.run", task, seconds, "", ""))

    with caplog.at_level(logging.WARNING):
        step(SLOW_STEP_MS / 1000)
        assert not caplog.records
        step(long)
        step(2 * long)
        step(3 * long, "b")
        assert slow.to_json() == {"count": 4, "longest_ms": 3 * LONG_STEP_MS}
        now = EVERY
        step(long, "c")
    first, second = [r.fields for r in caplog.records]  # type: ignore[attr-defined]  # logs.py puts it there
    assert first == {"kind": "Link.run", "task": "a", "count": 1, "cpu_ms": LONG_STEP_MS}
    assert second == {"kind": "Link.run", "task": "c", "count": 3, "cpu_ms": 6 * LONG_STEP_MS}


async def test_a_run_is_watched_as_long_as_its_block() -> None:
    processor = Processor()
    processor.work(1)
    with slow_steps(processor.clock, processor.spent) as slow:
        await trio.lowlevel.checkpoint()
        assert slow.count == 0
        processor.work(1)
        await trio.lowlevel.checkpoint()
        assert slow.count == 1
    processor.work(1)
    await trio.lowlevel.checkpoint()
    assert slow.count == 1
