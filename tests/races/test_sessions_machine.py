"""Sessions against a set of names: who is listed lives, who is not has nothing left that runs."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import attrs
import trio
from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule

from emceepee_trio.config import Config, Limits, Server
from emceepee_trio.errors import LimitReached
from emceepee_trio.session.manager import LEAVING, SessionManager, open_sessions
from emceepee_trio.session.session import Session
from trio_machine import TrioMachine

IDLE, SESSIONS = 10, 3
names = st.sampled_from("abcde")

CONFIG = Config(
    servers=(Server("lazy", command="no-such-command", start="lazy"),),
    limits=attrs.evolve(Limits(), session_idle_ms=IDLE * 1000, sessions=SESSIONS),
)


@attrs.define(eq=False)
class Known:
    """What the model knows of a living session."""

    session: Session
    idle_since: float
    requests: int = 0
    timer: float | None = None
    """When it fires."""

    @property
    def is_busy(self) -> bool:
        return self.requests > 0 or self.timer is not None


class Sessions(TrioMachine):
    manager: SessionManager

    def __init__(self) -> None:
        self.now = 0.0
        self.living: dict[str, Known] = {}
        self.ended: list[Session] = []
        super().__init__()
        self.tasks = self.count_tasks()

    def world(self) -> AbstractAsyncContextManager[object]:
        @asynccontextmanager
        async def opened() -> AsyncGenerator[None]:
            async with open_sessions(CONFIG) as self.manager:
                yield

        return opened()

    def count_tasks(self) -> int:
        return self.do_sync(lambda: trio.lowlevel.current_statistics().tasks_living)

    def gone(self, name: str) -> None:
        self.ended.append(self.living.pop(name).session)

    @rule(name=names, openers=st.integers(1, 3))
    def somebody_opens_it(self, name: str, openers: int) -> None:
        got: list[Session] = []

        async def opener() -> None:
            session = await self.manager.ensure(name, "ada", ends_when_idle=True)
            with session.presence.busy():
                session.presence.used = True
                got.append(session)

        async def act() -> bool:
            opened = True
            try:
                async with trio.open_nursery() as nursery:
                    for _ in range(openers):
                        nursery.start_soon(opener)
            except* LimitReached:
                opened = False
            return opened

        idle = [known for known in self.living.values() if not known.is_busy]
        full = len(self.living) >= SESSIONS and name not in self.living
        opened = self.do(act)
        assert opened == (not full or bool(idle))
        if not opened:
            return
        if full:
            gone = min(idle, key=lambda known: known.idle_since)
            self.gone(gone.session.id)
        assert len(set(map(id, got))) == 1
        known = self.living.setdefault(name, Known(got[0], self.now))
        assert known.session is got[0]
        known.idle_since = self.now

    @precondition(lambda self: self.living)
    @rule(data=st.data())
    def it_ends(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.living)))
        session = self.living[name].session
        self.do_sync(lambda: self.manager.end(session, "DELETE"))
        self.gone(name)

    @precondition(lambda self: self.living)
    @rule(data=st.data())
    def it_crashes(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.living)))
        nursery = data.draw(st.sampled_from(["inner", "outer"]))

        async def crash() -> None:
            raise KeyError("a bug")

        where = getattr(self.living[name].session, nursery)
        self.do_sync(lambda: where.start_soon(crash))
        self.gone(name)

    @precondition(lambda self: self.living)
    @rule(data=st.data())
    def a_request_begins(self, data: st.DataObject) -> None:
        known = self.living[data.draw(st.sampled_from(sorted(self.living)))]
        known.session.presence.requests += 1
        known.requests += 1

    @precondition(lambda self: any(known.requests for known in self.living.values()))
    @rule(data=st.data())
    def a_request_ends(self, data: st.DataObject) -> None:
        busy = sorted(name for name, known in self.living.items() if known.requests)
        known = self.living[data.draw(st.sampled_from(busy))]

        def act() -> None:
            with known.session.presence.busy():
                known.session.presence.requests -= 1

        self.do_sync(act)
        known.requests -= 1
        known.idle_since = self.now

    @precondition(lambda self: self.living)
    @rule(data=st.data(), seconds=st.integers(1, 30))
    def a_timer_is_set(self, data: st.DataObject, seconds: int) -> None:
        known = self.living[data.draw(st.sampled_from(sorted(self.living)))]
        if known.timer is None:
            timers = known.session.timers
            self.do_sync(lambda: timers.set(seconds * 1000, "x", interval=False))
            known.timer = self.now + seconds

    @rule(seconds=st.integers(1, 25))
    def time_passes(self, seconds: int) -> None:
        for _ in range(seconds):
            self.pass_time(1)
            self.now += 1
            for name, known in list(self.living.items()):
                if known.timer == self.now:
                    known.timer, known.idle_since = None, self.now
                if not known.is_busy and self.now == known.idle_since + IDLE:
                    self.gone(name)

    @invariant()
    def the_listed_are_the_living(self) -> None:
        assert {s.id: s for s in self.manager.sessions()} == {
            name: known.session for name, known in self.living.items()
        }
        assert len(self.living) <= SESSIONS
        for known in self.living.values():
            assert not known.session.inner.cancel_scope.cancel_called

    @invariant()
    def the_ended_are_over(self) -> None:
        for session in self.ended:
            assert session.events.triggers.is_closed
            assert session.backends == {}

    def teardown(self) -> None:
        def end_all() -> None:
            for session in self.manager.sessions():
                self.manager.end(session, "over")

        self.do_sync(end_all)
        self.pass_time(round(LEAVING) + 1)
        assert self.count_tasks() == self.tasks
        super().teardown()


TestSessions = Sessions.TestCase
