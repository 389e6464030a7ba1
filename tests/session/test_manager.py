from __future__ import annotations

from typing import Any, NoReturn

import attrs
import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from emceepee_trio.backend.connections.callbacks import LogLine
from emceepee_trio.config import Config, Limits, Server
from emceepee_trio.errors import SessionGone
from emceepee_trio.model.events import TimerExpired
from emceepee_trio.model.states import BackendState
from emceepee_trio.session.manager import SessionFailed, SessionManager, open_sessions
from emceepee_trio.session.servers.backends import Backends
from emceepee_trio.session.session import Session
from parts import MOMENT, Peer, hop, in_many_orders, late

# In reach of every session, but no process is started before somebody wants one.
LAZY = Server("lazy", command="no-such-command", start="lazy")


def config(**limits: Any) -> Config:
    return Config(servers=(LAZY,), limits=attrs.evolve(Limits(), **limits))


def tasks() -> int:
    return trio.lowlevel.current_statistics().tasks_living


async def test_a_session_is_made_on_first_use_and_found_again(autojump_clock: MockClock) -> None:
    async with open_sessions(config()) as manager:
        assert manager.get("a") is None
        session = await manager.ensure("a", "ada")
        assert (session.id, session.principal) == ("a", "ada")
        assert manager.get("a") is session
        assert await manager.ensure("a", "ada") is session
        assert list(session.backends) == ["lazy"]
        assert session.backends["lazy"].state is BackendState.NOT_CONNECTED


async def test_sessions_are_listed_by_principal(autojump_clock: MockClock) -> None:
    async with open_sessions(config()) as manager:
        of_ada = [await manager.ensure(name, "ada") for name in "ab"]
        of_bob = await manager.ensure("c", "bob")
        assert manager.sessions() == [*of_ada, of_bob]
        assert manager.sessions("ada") == of_ada
        assert manager.sessions("bob") == [of_bob]
        assert manager.sessions("eve") == []


async def test_sessions_share_nothing(autojump_clock: MockClock) -> None:
    async with open_sessions(config()) as manager:
        one, other = await manager.ensure("a", "ada"), await manager.ensure("b", "ada")
        one.publish("x", TimerExpired("t", "", 1))
        one.timers.set(1000, "x", interval=False)
        one.notified("x", "m", None)
        one.logged(LogLine("x", "stderr", "info", "line"))
        one.set_roots([{"uri": "file:///"}])
        call = one.calls.begin("x", "t", {}, Peer().send, patience=0, ttl=60)
        one.calls.promote(call)
        await trio.sleep(2)
        assert not other.events.has_pending
        assert other.timers.list(include_inactive=True) == []
        assert other.buffers.take_notifications(None, None) == []
        assert other.buffers.tail("x", "stderr", 10) == []
        assert other.roots() == []
        assert other.calls.tasks() == []
        assert one.backends["lazy"] is not other.backends["lazy"]


async def test_ending_is_done_in_one_breath(autojump_clock: MockClock) -> None:
    async with open_sessions(config()) as manager:
        session = await manager.ensure("a", "ada")
        manager.end(session, "DELETE")
        # No checkpoint in between.
        assert manager.get("a") is None
        assert manager.sessions() == []
        assert session.events.triggers.is_closed
        with pytest.raises(SessionGone):
            session.check_open()
        with pytest.raises(SessionGone):
            session.timers.set(1000, "x", interval=False)
        manager.end(session, "again")  # changes nothing
        await wait_all_tasks_blocked()
        assert session.backends == {}


async def test_what_a_session_runs_ends_with_it(autojump_clock: MockClock) -> None:
    async with open_sessions(config()) as manager:
        await manager.ensure("other", "ada")
        await wait_all_tasks_blocked()
        before = tasks()
        session = await manager.ensure("a", "ada")
        session.timers.set(1000, "x", interval=True)
        for patience in (0.0, 60.0):
            call = session.calls.begin("x", "t", {}, Peer().send, patience=patience, ttl=60)
        session.outer.start_soon(session.ask, "x", "elicitation", {}, lambda: "server_removed")
        await wait_all_tasks_blocked()
        assert session.has_work
        assert tasks() > before
        backend = session.backends["lazy"]
        manager.end(session, "DELETE")
        await wait_all_tasks_blocked()
        assert backend.ended.is_set()  # told to leave, not cut
        await trio.sleep(6)
        assert tasks() == before
        assert session.questions.open("elicitation") == []
        with pytest.raises(SessionGone):
            call.slot.peek()


async def test_leaving_the_block_leaves_nothing_running(autojump_clock: MockClock) -> None:
    before = tasks()
    async with open_sessions(config()) as manager:
        for number in range(5):
            session = await manager.ensure(str(number), "ada")
            session.timers.set(1000, "x", interval=True)
            session.calls.begin("x", "t", {}, Peer().send, patience=9, ttl=60)
    assert tasks() == before
    assert manager.sessions() == []


async def test_an_error_in_the_block_ends_the_sessions_too(autojump_clock: MockClock) -> None:
    before = tasks()
    with pytest.RaisesGroup(ValueError, flatten_subgroups=True):
        async with open_sessions(config()) as manager:
            session = await manager.ensure("a", "ada")
            session.timers.set(1000, "x", interval=True)
            raise ValueError
    assert tasks() == before
    assert manager.get("a") is None


def test_nobody_opens_a_session_while_the_daemon_stops() -> None:
    async def race(order: int) -> tuple[bool, list[str]]:
        refused: list[str] = []
        # Whether the one who comes just now has asked before the daemon stops, or asks after that.
        in_time = order % 2 == 0
        stopping = trio.Event()

        async def open_one(manager: SessionManager, name: str, after: float) -> None:
            if after or not in_time:
                await stopping.wait()
                await trio.sleep(after)
            try:
                await manager.ensure(name, "ada")
            except SessionFailed:
                refused.append(name)

        with trio.fail_after(60):
            async with trio.open_nursery() as requests:
                async with open_sessions(config()) as manager:
                    session = await manager.ensure("a", "ada")
                    session.at_end(stopping.set)
                    session.outer.start_soon(trio.sleep, 1)  # takes its time to end
                    requests.start_soon(open_one, manager, "just now", 0)  # noqa: ASYNC111 - they must outlive it
                    requests.start_soon(open_one, manager, "too late", 0.5)  # noqa: ASYNC111 - they must outlive it
                    if in_time:
                        await wait_all_tasks_blocked()
                        assert manager.get("just now") is not None
        assert manager._sessions == {}
        return in_time, refused

    for in_time, refused in in_many_orders(race):
        # Who came just in time got a session, and saw its end.
        assert refused == (["too late"] if in_time else ["just now", "too late"])


def test_racing_openers_get_one_session() -> None:
    async def race(order: int) -> None:
        got: list[Session] = []
        async with open_sessions(config()) as manager:

            async def opener(hops: int) -> None:
                await hop(hops)
                got.append(await manager.ensure("a", "ada"))

            async with trio.open_nursery() as nursery:
                for number in range(4):
                    nursery.start_soon(opener, late(order + number))
            assert got == [manager.get("a")] * 4

    in_many_orders(race)


def test_nobody_is_handed_a_session_that_ends_meanwhile() -> None:
    async def race(order: int) -> str:
        async with open_sessions(config()) as manager:
            old = await manager.ensure("a", "ada")
            handed: list[str] = []

            async def opener(hops: int) -> None:
                await trio.sleep_until(MOMENT)
                await hop(hops)
                session = await manager.ensure("a", "ada")
                session.check_open()
                assert manager.get("a") is session
                handed.append("old" if session is old else "new")

            async def ender() -> None:
                await trio.sleep_until(MOMENT)
                manager.end(old, "DELETE")

            async with trio.open_nursery() as nursery:
                nursery.start_soon(opener, late(order))
                nursery.start_soon(opener, 0)
                nursery.start_soon(ender)
            return handed[0]

    assert "new" in in_many_orders(race)


async def test_a_name_can_be_used_again_while_the_old_session_closes(
    autojump_clock: MockClock,
) -> None:
    closed = trio.Event()

    async def slow_to_close() -> None:
        try:
            await trio.sleep_forever()
        finally:
            with trio.CancelScope(shield=True):
                await trio.sleep(3)
            closed.set()

    async with open_sessions(config()) as manager:
        old = await manager.ensure("a", "ada")
        old.inner.start_soon(slow_to_close)
        await wait_all_tasks_blocked()
        manager.end(old, "DELETE")
        new = await manager.ensure("a", "ada")
        assert new is not old
        assert not closed.is_set()
        await closed.wait()
        await trio.sleep(10)
        assert manager.get("a") is new  # the end of the old one took nothing along
        new.check_open()


def bug(*_: object) -> NoReturn:
    raise KeyError("a bug")


async def crash() -> None:
    bug()


@pytest.mark.parametrize("nursery", ["inner", "outer"])
async def test_a_crash_ends_one_session_and_is_logged(
    nursery: str, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_sessions(config()) as manager:
        one, other = await manager.ensure("a", "ada"), await manager.ensure("b", "ada")
        getattr(one, nursery).start_soon(crash)
        await trio.sleep(6)
        assert manager.get("a") is None
        assert manager.get("b") is other
        other.check_open()
        assert one.events.triggers.is_closed
        assert "session_crashed" in [record.message for record in caplog.records]
        new = await manager.ensure("a", "ada")
        assert new is not one


async def test_a_session_that_cannot_be_made_says_so_and_blocks_nothing(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_sessions(config()) as manager:
        with monkeypatch.context() as patch:
            patch.setattr(Backends, "start", bug)
            with pytest.raises(SessionFailed, match="session a"):
                await manager.ensure("a", "ada")
        assert manager.get("a") is None
        assert manager.sessions() == []
        assert (await manager.ensure("a", "ada")).id == "a"


async def test_who_waits_in_another_nursery_is_let_go(autojump_clock: MockClock) -> None:
    async with open_sessions(config()) as manager:
        session = await manager.ensure("a", "ada")
        ended: list[str] = []
        session.at_end(lambda: ended.append("first"))
        session.at_end(lambda: ended.append("second"))
        triggers = session.events.triggers
        with trio.fail_after(60):
            async with trio.open_nursery() as requests:
                requests.start_soon(triggers.wait_after, triggers.last)
                await wait_all_tasks_blocked()
                manager.end(session, "DELETE")
                assert sorted(ended) == ["first", "second"]
                manager.end(session, "again")
        assert len(ended) == 2
