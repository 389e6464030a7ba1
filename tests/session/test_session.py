from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest
import trio
from trio.testing import MockClock

from emceepee_trio.backend.connections.callbacks import LogLine
from emceepee_trio.config import Config, Server
from emceepee_trio.errors import LimitReached, ServerNotFound
from emceepee_trio.model import events
from emceepee_trio.model.json.intake import finished
from emceepee_trio.model.states import BackendState, QuestionState
from emceepee_trio.session.manager import open_sessions
from emceepee_trio.session.session import Session

LAZY = Server("lazy", command="no-such-command", start="lazy")
DISABLED = Server("off", command="no-such-command", disabled=True)


@asynccontextmanager
async def open_session() -> AsyncGenerator[Session]:
    async with open_sessions(Config(servers=(LAZY, DISABLED))) as manager:
        yield await manager.ensure("a", "ada")


async def test_backends_are_found_by_their_exact_name(autojump_clock: MockClock) -> None:
    async with open_session() as session:
        assert session.backend("lazy").server is LAZY
        assert session.backend("off").state is BackendState.DISABLED
        for unknown in ("laz", "LAZY", ".*", ""):
            with pytest.raises(ServerNotFound, match="there are: lazy, off"):
                session.backend(unknown)


async def test_a_notification_is_kept_and_told(autojump_clock: MockClock) -> None:
    async with open_session() as session:
        session.notified("x", "notifications/resources/updated", {"uri": "a:b"})
        (kept,) = session.buffers.take_notifications(None, None)
        (told,) = session.events.take().events
        assert isinstance(told.happening, events.Notification)
        assert (kept.server, kept.method, kept.params) == (
            "x", "notifications/resources/updated", {"uri": "a:b"}
        )  # fmt: skip
        assert told.happening.timestamp == kept.timestamp
        assert told.happening.params == {"uri": "a:b"}


async def test_logs_are_kept_and_wake_nobody(autojump_clock: MockClock) -> None:
    async with open_session() as session:
        session.logged(LogLine("x", "protocol", "error", {"a": 1}, "root"))
        assert not session.events.has_pending
        assert session.events.triggers.last == 0
        ((entry,), dropped, _) = finished(
            session.buffers.take_logs(lambda _: True, None, 10, clear=True)
        )
        assert (entry.source, entry.level, entry.logger, entry.data) == (
            "protocol", "error", "root", {"a": 1}
        )  # fmt: skip
        assert dropped == 0


async def test_one_waiter_too_many_is_refused(autojump_clock: MockClock) -> None:
    async with open_session() as session:
        with session.presence.wait_in(2), session.presence.wait_in(2):
            with pytest.raises(LimitReached, match="2 requests of this session wait"):
                with session.presence.wait_in(2):
                    raise AssertionError("was let in")
            assert session.presence.waiters == 2
        with session.presence.wait_in(2):
            assert session.presence.waiters == 1
        assert session.presence.waiters == 0


async def test_a_waiter_that_is_cancelled_makes_room(autojump_clock: MockClock) -> None:
    async with open_session() as session:
        with trio.move_on_after(1):
            with session.presence.wait_in(1):
                await trio.sleep_forever()
        assert session.presence.waiters == 0


async def test_a_backend_that_asks_is_parked_until_the_client_answers(
    autojump_clock: MockClock,
) -> None:
    async with open_session() as session:
        got: list[object] = []

        async def ask() -> None:
            got.append(await session.ask("x", "elicitation", {}, lambda: "server_removed"))

        session.outer.start_soon(ask)
        await trio.sleep(1)
        assert session.has_work
        (question,) = session.questions.open("elicitation")
        session.questions.answer(question, QuestionState.DECLINED, {"action": "decline"})
        await trio.sleep(1)
        assert got == [{"action": "decline"}]
        assert not session.has_work


async def test_roots_are_what_was_set_and_a_copy(autojump_clock: MockClock) -> None:
    async with open_session() as session:
        assert session.roots() == []
        given = [{"uri": "file:///a", "name": "a"}]
        session.set_roots(given)
        given[0]["uri"] = "file:///changed"
        session.roots().clear()
        assert session.roots() == [{"uri": "file:///a", "name": "a"}]


async def test_a_dropped_backend_is_out_at_once_and_ends_in_its_own_time(
    autojump_clock: MockClock,
) -> None:
    async with open_session() as session:
        backend = session.backend("lazy")
        assert session.backends.drop("lazy", "removed", 1) is backend
        assert session.backends.drop("lazy", "removed", 1) is None
        assert list(session.backends) == ["off"]
        await backend.ended.wait()
        assert session.backend("off").ended.is_set()  # it has never run
        await trio.sleep(1)
        assert session.backends.running == set()
