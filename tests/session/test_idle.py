from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from emceepee_trio.backend.connections.callbacks import LogLine
from emceepee_trio.config import Config, Limits
from emceepee_trio.errors import LimitReached
from emceepee_trio.model.events import Notification
from emceepee_trio.session.manager import SessionManager, open_sessions
from emceepee_trio.session.session import Session
from parts import MOMENT, Peer, hop, in_many_orders, late

IDLE = 60


def config(**limits: int) -> Config:
    return Config(limits=attrs.evolve(Limits(), **({"session_idle_ms": IDLE * 1000} | limits)))


async def opened(manager: SessionManager, name: str = "a", *, used: bool = True) -> Session:
    session = await manager.ensure(name, "ada", ends_when_idle=True)
    session.presence.used = used
    return session


async def test_a_session_ends_after_its_idle_time(autojump_clock: MockClock) -> None:
    async with open_sessions(config()) as manager:
        session = await opened(manager)
        await trio.sleep(IDLE - 1)
        assert manager.get("a") is session
        with session.presence.busy():
            pass
        await trio.sleep(IDLE - 1)
        assert manager.get("a") is session
        await trio.sleep(2)
        assert manager.get("a") is None


async def test_the_session_of_a_pipe_ends_with_the_pipe_only(autojump_clock: MockClock) -> None:
    async with open_sessions(config()) as manager:
        session = await manager.ensure("default", "local")
        await trio.sleep(100 * IDLE)
        assert manager.get("default") is session


async def test_a_session_that_only_said_hello_ends_sooner(autojump_clock: MockClock) -> None:
    async with open_sessions(config(session_idle_ms=1_800_000)) as manager:
        await opened(manager, "a", used=False)
        used = await opened(manager, "b", used=False)
        await trio.sleep(100)
        used.presence.used = True
        await trio.sleep(30)
        assert manager.get("a") is None
        assert manager.get("b") is used
        await trio.sleep(1600)
        assert manager.get("b") is used
        await trio.sleep(100)
        assert manager.get("b") is None


def task(session: Session) -> Callable[[], object]:
    peer = Peer()
    call = session.calls.begin("x", "t", {}, peer.send, patience=0, ttl=10_000)
    session.calls.promote(call)
    return lambda: peer.answer.set({})


def question(session: Session) -> Callable[[], object]:
    scope = trio.CancelScope()

    async def ask() -> None:
        with scope:
            await session.ask("x", "sampling", {}, lambda: "withdrawn_by_server")

    session.outer.start_soon(ask)
    return scope.cancel


def request(session: Session) -> Callable[[], object]:
    busy = session.presence.busy()
    busy.__enter__()
    return lambda: busy.__exit__(None, None, None)


@pytest.mark.parametrize("work", [task, question, request])
async def test_work_keeps_a_session_and_idleness_counts_from_its_end(
    work: Callable[[Session], Callable[[], object]], autojump_clock: MockClock
) -> None:
    async with open_sessions(config()) as manager:
        session = await opened(manager)
        finish = work(session)
        await trio.sleep(4.9 * IDLE)
        assert session.has_work
        assert manager.get("a") is session
        finish()
        await trio.sleep(IDLE - 1)
        assert not session.has_work
        assert manager.get("a") is session
        await trio.sleep(2 * IDLE)
        assert manager.get("a") is None


async def test_a_timer_keeps_a_session_until_it_has_fired(autojump_clock: MockClock) -> None:
    async with open_sessions(config()) as manager:
        session = await opened(manager)
        session.timers.set(5 * IDLE * 1000, "x", interval=False)
        await trio.sleep(6 * IDLE - 1)
        assert manager.get("a") is session
        await trio.sleep(IDLE)
        assert manager.get("a") is None


async def test_what_servers_say_keeps_no_session(autojump_clock: MockClock) -> None:
    async with open_sessions(config()) as manager:
        session = await opened(manager)
        for _ in range(IDLE + 1):
            session.publish("x", Notification("m", "now"))
            session.logged(LogLine("x", "stderr", "info", "chatter"))
            await trio.sleep(1)
        assert manager.get("a") is None


def test_a_request_in_the_idle_tick_finds_a_session_that_lives() -> None:
    async def race(order: int) -> bool:
        async with open_sessions(config(session_idle_ms=round(MOMENT * 1000))) as manager:
            session = await opened(manager)
            await trio.sleep_until(MOMENT)
            await hop(late(order))
            found = manager.get("a")
            if found is None:
                return False
            with found.presence.busy():
                await trio.sleep(5)
                assert manager.get("a") is found is session
                found.check_open()
            return True

    assert set(in_many_orders(race)) == {True, False}


async def test_at_the_limit_the_session_idle_longest_makes_room(autojump_clock: MockClock) -> None:
    async with open_sessions(config(sessions=3)) as manager:
        first = await opened(manager, "first")
        await trio.sleep(1)
        second = await opened(manager, "second")
        await trio.sleep(1)
        third = await opened(manager, "third")
        with first.presence.busy():
            pass
        await opened(manager, "fourth")
        assert manager.get("second") is None
        assert manager.get("first") is first
        assert manager.get("third") is third
        with pytest.raises(Exception, match="session has ended"):
            second.check_open()


async def test_at_the_limit_nothing_makes_room_for_what_is_open_already(
    autojump_clock: MockClock,
) -> None:
    async with open_sessions(config(sessions=2)) as manager:
        both = [await opened(manager, name) for name in "ab"]
        assert [await opened(manager, name) for name in "ab"] == both


async def test_where_all_are_busy_nobody_else_gets_in(autojump_clock: MockClock) -> None:
    async with open_sessions(config(sessions=2)) as manager:
        one, other = await opened(manager, "a"), await opened(manager, "b")
        with one.presence.busy():
            finish = task(other)
            with pytest.raises(LimitReached, match=r"limits\.sessions"):
                await opened(manager, "c")
            assert manager.get("c") is None
            finish()
            await wait_all_tasks_blocked()
            third = await opened(manager, "c")
        assert manager.sessions() == [one, third]


def test_racing_openers_never_exceed_the_limit() -> None:
    async def race(order: int) -> None:
        async with open_sessions(config(sessions=3)) as manager:

            async def opener(name: str, hops: int) -> Any:
                await hop(hops)
                try:
                    await opened(manager, name)
                except LimitReached:
                    return
                assert len(manager._sessions) <= 3

            async with trio.open_nursery() as nursery:
                for number in range(8):
                    nursery.start_soon(opener, str(number), late(order + number))
            await wait_all_tasks_blocked()
            assert 1 <= len(manager.sessions()) <= 3

    in_many_orders(race, orders=50)
