"""Timers a client sets for itself: one task each, which sleeps and tells."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import attrs
import trio

from ..config.bounds import MAX_TIMERS
from ..errors import LimitReached, NotFound, SessionGone
from ..journal import Journal
from ..model import facts
from ..model.events import Happening, TimerExpired
from ..model.facts import TimerStatus
from ..model.wire import timestamp
from ..waits.firewall import Firewall, begin

OWNER = "emceepee"
"""Every event has a server; those of timers carry our own name."""
ENDED = 100
"""Fired and deleted timers that list_timers still shows; the oldest make room."""


@attrs.define(eq=False)
class Timer:
    timer_id: str
    message: str
    duration_ms: int
    interval: bool
    status: TimerStatus
    created_at: str
    fires_at: str
    fire_count: int = 0
    _scope: trio.CancelScope = attrs.field(factory=trio.CancelScope, init=False)

    def to_json(self) -> dict[str, Any]:
        return {
            field.name: getattr(self, field.name)
            for field in attrs.fields(type(self))
            if not field.name.startswith("_")
        }


@attrs.define(eq=False)
class Timers:
    nursery: trio.Nursery
    publish: Callable[[str, Happening], object]
    new_id: Callable[[], str]
    wall: Callable[[], float]
    session_id: str
    journal: Journal = attrs.field(factory=Journal)
    _timers: dict[str, Timer] = attrs.field(factory=dict, init=False)

    def set(self, duration_ms: int, message: str, *, interval: bool) -> Timer:
        if self.nursery.cancel_scope.cancel_called:
            raise SessionGone("the session has ended; open a new one")
        if sum(timer.status == "active" for timer in self._timers.values()) >= MAX_TIMERS:
            raise LimitReached(f"{MAX_TIMERS} timers are active in this session; delete some first")
        now = self.wall()
        timer = Timer(
            self.new_id(),
            message,
            duration_ms,
            interval,
            "active",
            timestamp(now),
            timestamp(now + duration_ms / 1000),
        )
        self._timers[timer.timer_id] = timer
        self.journal.note(facts.TimerSet, self.session_id, timer.timer_id, duration_ms, interval)
        self._forget_old()
        wall = Firewall(
            "timer_crashed", partial(self._failed, timer), fields={"timer_id": timer.timer_id}
        )
        begin(self.nursery, wall, self._run, timer, name=f"timer {timer.timer_id}")
        return timer

    async def _run(self, timer: Timer) -> None:
        period = timer.duration_ms / 1000
        due = trio.current_time()
        with timer._scope:
            while timer.status == "active":
                # From the last due time, not from now: intervals do not drift.
                due = max(due + period, trio.current_time())
                await trio.sleep_until(due)
                # delete() may have been first in this very tick.
                if timer.status == "active":
                    self._fire(timer)

    def _fire(self, timer: Timer) -> None:
        timer.fire_count += 1
        self.journal.note(facts.TimerFired, self.session_id, timer.timer_id)
        if timer.interval:
            timer.fires_at = timestamp(self.wall() + timer.duration_ms / 1000)
        else:
            self._end(timer, "fired")
        self.publish(OWNER, TimerExpired(timer.timer_id, timer.message, timer.fire_count))

    def delete(self, timer_id: str) -> Timer:
        """Also one that has fired: it stays listed as what it was."""
        timer = self.get(timer_id)
        if timer.status == "active":
            self._end(timer, "deleted")
            timer._scope.cancel("deleted")
        return timer

    def get(self, timer_id: str) -> Timer:
        timer = self._timers.get(timer_id)
        if timer is None:
            raise NotFound(f"no timer {timer_id!r}; list_timers shows what there is")
        return timer

    @property
    def has_active(self) -> bool:
        return any(timer.status == "active" for timer in self._timers.values())

    def list(self, *, include_inactive: bool) -> list[Timer]:
        return [t for t in self._timers.values() if include_inactive or t.status == "active"]

    def _forget_old(self) -> None:
        ended = [t.timer_id for t in self._timers.values() if t.status != "active"]
        for timer_id in ended[: max(0, len(ended) - ENDED)]:
            del self._timers[timer_id]

    def _failed(self, timer: Timer, log_id: str) -> None:
        if timer.status == "active":
            self._end(timer, "failed")

    def _end(self, timer: Timer, status: TimerStatus) -> None:
        timer.status = status
        self.journal.note(facts.TimerEnded, self.session_id, timer.timer_id, status)
