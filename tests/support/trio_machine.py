"""Hypothesis state machines whose rules run inside trio, on a hand-moved clock."""

from __future__ import annotations

import queue
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, TypeVar

import outcome
import trio
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize
from trio.testing import MockClock, wait_all_tasks_blocked

from orders import orders, take_order

T = TypeVar("T")


def more(times: int) -> settings:
    """For a machine that is quick, or large: so many times the examples of the others."""
    return settings(max_examples=times * settings().max_examples)


class TrioMachine(RuleBasedStateMachine):
    """One guest-mode trio run per example. Hypothesis stays in charge.

    Subclasses define :meth:`world`; rules stay synchronous and call :meth:`do`, which returns
    once every task in the run is blocked again. Time moves only with :meth:`pass_time`. The order
    in which tasks run is part of the program.
    """

    def __init__(self) -> None:
        super().__init__()
        self.clock = MockClock()
        self._ready: queue.SimpleQueue[Callable[[], object]] = queue.SimpleQueue()
        self._outcome: outcome.Outcome[None] | None = None
        self._send: trio.MemorySendChannel[Any] | None = None
        trio.lowlevel.start_guest_run(
            self._main,
            run_sync_soon_threadsafe=self._ready.put,
            done_callback=self._done,
            clock=self.clock,
        )
        self._pump(lambda: self._send is not None)

    def world(self) -> AbstractAsyncContextManager[object]:
        """What rules act on; it ends with the example. A nursery, unless there is more."""
        return self._open_nursery()

    @asynccontextmanager
    async def _open_nursery(self) -> AsyncGenerator[None]:
        async with trio.open_nursery() as self.nursery:
            yield
            self.nursery.cancel_scope.cancel("over")

    @initialize(order=orders)
    def tasks_run_in_the(self, order: int) -> None:
        self.do_sync(lambda: take_order(order))

    def do(self, job: Callable[[], Awaitable[T]]) -> T:
        assert self._send is not None
        answers: list[outcome.Outcome[T]] = []
        self._token.run_sync_soon(self._send.send_nowait, (job, answers))
        self._pump(lambda: bool(answers))
        return answers[0].unwrap()

    def do_sync(self, job: Callable[[], T]) -> T:
        async def run() -> T:
            return job()

        return self.do(run)

    def pass_time(self, seconds: int) -> None:
        """A second at a time: what is due first happens first."""

        async def run() -> None:
            for _ in range(seconds):
                self.clock.jump(1)
                await wait_all_tasks_blocked()

        self.do(run)

    def teardown(self) -> None:
        # None if the world could not be made, which has been raised then.
        if self._send is not None and self._outcome is None:
            self._token.run_sync_soon(self._send.close)
            self._pump(lambda: False)

    async def _main(self) -> None:
        self._token = trio.lowlevel.current_trio_token()
        send, jobs = trio.open_memory_channel[Any](1)
        async with self.world():
            self._send = send
            async for job, answers in jobs:
                answer = await outcome.acapture(job)
                await wait_all_tasks_blocked()
                answers.append(answer)

    def _done(self, result: outcome.Outcome[None]) -> None:
        self._outcome = result

    def _pump(self, until: Callable[[], bool]) -> None:
        while not until():
            if self._outcome is not None:
                return self._outcome.unwrap()
            self._ready.get(timeout=60)()
        return None
