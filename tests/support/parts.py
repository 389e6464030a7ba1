"""The parts of a session by themselves, a record of what they publish, and orders of scheduling."""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import attrs
import trio
from hypothesis import settings
from trio.testing import MockClock

from emceepee_trio.config import Limits
from emceepee_trio.journal import Journal
from emceepee_trio.model.events import Happening
from emceepee_trio.model.ids import Ids
from emceepee_trio.model.wire import event_type
from emceepee_trio.session.calls.call import Call
from emceepee_trio.session.calls.calls import Calls
from emceepee_trio.waits.slot import Slot
from emceepee_trio.waits.sweeper import Sweeper
from orders import take_order

T = TypeVar("T")

ORDERS = 200
"""Runs of a race, each in its own order of what is due in the same tick."""

FOR_EVER = 1e7
"""Seconds on that clock, which come when nothing else will: a race that hangs fails at once."""


def in_many_orders(race: Callable[[int], Awaitable[T]], orders: int = ORDERS) -> list[T]:
    """What came out of *race*, run again and again on a clock that jumps; told which run it is.

    Where a profile asks for fewer examples than usual, in as many fewer orders.
    """

    async def guarded(order: int) -> T:
        with trio.fail_after(FOR_EVER):
            return await race(order)

    results = []
    share = settings().max_examples / settings.get_profile("short").max_examples
    for order in range(math.ceil(orders * min(share, 1))):
        take_order(order)
        results.append(trio.run(guarded, order, clock=MockClock(autojump_threshold=0)))
    return results


async def hop(times: int) -> None:
    """Be late by so many ticks."""
    for _ in range(times):
        await trio.lowlevel.checkpoint()


MOMENT = 10.0
"""When rivals meet."""


def late(order: int) -> int:
    """How many ticks late a rival is in this run: as likely none as one or two."""
    return order % 3


async def at_the_moment(act: Callable[[], object], hops: int = 0) -> None:
    await trio.sleep_until(MOMENT)
    await hop(hops)
    act()


async def just_before(clock: MockClock, act: Callable[[], object], hops: int) -> None:
    """Act in the tick in which the moment comes: what is due then is woken a tick later."""
    await trio.sleep_until(MOMENT - 1)
    clock.jump(1)
    await hop(hops)
    act()


def mock_clock() -> MockClock:
    clock = trio.lowlevel.current_clock()
    assert isinstance(clock, MockClock)
    return clock


def wall() -> float:
    """A wall clock that goes with trio's."""
    return 1_700_000_000 + trio.current_time()


def new_ids() -> Ids:
    """Ids that say in which order they were made, and nothing else."""
    return Ids(lambda: 1_700_000_000.0, bytes)


@attrs.define(eq=False)
class Told:
    """What was published, in place of a session's events."""

    said: list[tuple[str, Happening]] = attrs.field(factory=list)

    def __call__(self, server: str, happening: Happening) -> bool:
        self.said.append((server, happening))
        return True

    @property
    def types(self) -> list[str]:
        return [event_type(happening) for _, happening in self.said]

    def of(self, cls: type[T]) -> list[T]:
        return [happening for _, happening in self.said if isinstance(happening, cls)]


@attrs.define(eq=False)
class Peer:
    """The backend's end of a call: does nothing until it is told to."""

    answer: Slot[dict[str, Any]] = attrs.field(factory=Slot)
    call: Call | None = None
    """What it was sent."""
    cancelled: bool = False
    returned: bool = False

    async def send(self, call: Call) -> dict[str, Any]:
        self.call = call
        call.waiting_on = "answer"
        try:
            result = await self.answer.wait_result()
        except trio.Cancelled:
            self.cancelled = True
            raise
        self.returned = True
        return result


@attrs.define(eq=False)
class World:
    """The calls of one session, with the sweeper that forgets them."""

    calls: Calls
    told: Told
    nursery: trio.Nursery

    def begin(self, peer: Peer, **how: Any) -> Call:
        defaults: dict[str, Any] = {"patience": 5.0, "ttl": 60.0}
        return self.calls.begin("files", "dig", {"deep": 1}, peer.send, **(defaults | how))

    async def promoted(self, peer: Peer, **how: Any) -> Call:
        """A call that is a task already."""
        call = self.begin(peer, **({"patience": 0.0} | how))
        await self.calls.wait(call, 0)
        assert call.task is not None
        return call


@asynccontextmanager
async def open_calls(journal: Journal | None = None, **limits: int) -> AsyncGenerator[World]:
    told, sweeper = Told(), Sweeper()
    notes = Journal() if journal is None else journal
    async with trio.open_nursery() as nursery:
        calls = Calls(
            attrs.evolve(Limits(), **limits),
            nursery,
            told,
            new_ids(),
            wall,
            sweeper.look,
            "s",
            notes,
        )
        sweeper.keepers = (calls.finished,)
        nursery.start_soon(sweeper.run)
        yield World(calls, told, nursery)
        nursery.cancel_scope.cancel("end of the test")
