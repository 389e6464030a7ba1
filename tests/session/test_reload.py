"""What becomes of sessions when the configuration is read again."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import attrs
import pytest
import trio

from emceepee_trio.config import Config, Limits, Server
from emceepee_trio.errors import ServerNotFound
from emceepee_trio.model.wire import event_json
from emceepee_trio.session.manager import SessionManager, open_sessions
from emceepee_trio.session.session import Session
from fake_backends import raw, until

GUARD = 60


def server(name: str, *flags: str, **more: Any) -> Server:
    return Server(name, **raw(*flags), **more)


def config(*servers: Server) -> Config:
    return Config(servers=servers)


@asynccontextmanager
async def open_session(*servers: Server) -> AsyncGenerator[tuple[SessionManager, Session]]:
    """A session that is connected to all of them."""
    with trio.fail_after(GUARD):
        async with open_sessions(config(*servers)) as manager:
            session = await manager.ensure("s", "ada")
            for backend in session.backends.values():
                await backend.connection()
            session.events.take().commit()
            yield manager, session


def told(session: Session) -> list[tuple[str, str, str]]:
    """Which servers were added and removed since, and by whom."""
    delivery = session.events.take()
    delivery.commit()
    events = [event_json(event) for event in delivery.events]
    return [
        (event["type"], event["server"], event["data"].get("addedBy") or event["data"]["removedBy"])
        for event in events
        if event["type"] in {"server_added", "server_removed"}
    ]


async def test_what_has_not_changed_is_not_touched() -> None:
    async with open_session(server("a"), server("b")) as (manager, session):
        before = dict(session.backends)
        manager.reload(attrs.evolve(config(server("b"), server("a")), limits=Limits(calls=7)))
        assert session.backends == before
        assert all(backend.client is not None for backend in before.values())
        assert told(session) == []
        assert (await manager.ensure("t", "ada")).config.limits.calls == 7


async def test_servers_come_and_go() -> None:
    async with open_session(server("old"), server("kept")) as (manager, session):
        old = session.backends["old"]
        manager.reload(config(server("kept"), server("new")))
        assert set(session.backends) == {"kept", "new"}
        await session.backends["new"].connection()
        found: list[tuple[str, str, str]] = []

        def both_are_told() -> bool:
            found.extend(told(session))
            return len(found) > 1

        # That the old one is gone is told by a task that waits for it as this one could.
        await until(both_are_told)
        await until(lambda: old not in session.backends.running)
        found += told(session)
        assert sorted(found) == [
            ("server_added", "new", "config"),
            ("server_removed", "old", "config"),
        ]


async def test_a_changed_entry_is_a_new_connection() -> None:
    async with open_session(server("a")) as (manager, session):
        old = session.backends["a"]
        manager.reload(config(server("a", "--tools", "3")))
        assert session.backends["a"] is not old
        await session.backends["a"].connection()
        await old.ended.wait()
        assert told(session) == [("server_removed", "a", "config"), ("server_added", "a", "config")]


async def test_a_server_may_be_switched_off_and_on() -> None:
    async with open_session(server("a")) as (manager, session):
        manager.reload(config(server("a", disabled=True)))
        assert session.backends["a"].state.value == "disabled"
        manager.reload(config(server("a")))
        await session.backends["a"].connection()


async def test_every_session_is_told_and_new_ones_get_what_is_new() -> None:
    async with open_session(server("a")) as (manager, session):
        other = await manager.ensure("t", "bob")
        manager.reload(config(server("b")))
        third = await manager.ensure("u", "bob")
        for each in (session, other, third):
            assert set(each.backends) == {"b"}
        assert ("server_added", "b", "config") in told(other)


async def test_what_a_tool_added_lives_across_reloads() -> None:
    async with open_session() as (manager, session):
        await manager.servers.add(session, server("mine"), keep_on_failure=False)
        session.events.take().commit()
        backend = session.backends["mine"]
        manager.reload(config(server("a")))
        manager.reload(config())
        assert session.backends == {"mine": backend}
        assert "mine" in (await manager.ensure("t", "ada")).backends


async def test_a_configured_name_wins_over_an_added_one() -> None:
    async with open_session() as (manager, session):
        await manager.servers.add(session, server("a"), keep_on_failure=False)
        session.events.take().commit()
        configured = server("a", "--tools", "3")
        manager.reload(config(configured))
        assert session.backends["a"].server == configured
        assert told(session) == [("server_removed", "a", "config"), ("server_added", "a", "config")]
        assert (await manager.ensure("t", "bob")).backends["a"].server == configured


async def test_what_a_tool_removed_stays_away_until_its_entry_changes() -> None:
    async with open_session(server("a"), server("b")) as (manager, session):
        await manager.servers.remove(session, "a")
        manager.reload(config(server("a"), server("b"), server("c")))
        assert set(session.backends) == {"b", "c"}
        with pytest.raises(ServerNotFound):
            session.backend("a")
        manager.reload(config(server("a", "--tools", "3"), server("b")))
        assert set(session.backends) == {"a", "b"}


async def test_what_a_tool_removed_comes_back_with_a_new_entry() -> None:
    async with open_session(server("a")) as (manager, session):
        await manager.servers.remove(session, "a")
        manager.reload(config())
        manager.reload(config(server("a")))
        assert set(session.backends) == {"a"}


async def test_a_server_that_is_being_added_gives_way_to_a_configured_one(tmp_path: Any) -> None:
    gate = tmp_path / "gate"
    async with open_session() as (manager, session), trio.open_nursery() as nursery:
        slow = server("a", "--start-when", str(gate))
        refused = trio.Event()

        async def add() -> None:
            with pytest.raises(Exception, match="is configured"):
                await manager.servers.add(session, slow, keep_on_failure=False)
            refused.set()

        nursery.start_soon(add)
        await until(lambda: session.backends.running)
        configured = server("a")
        manager.reload(config(configured))
        gate.touch()
        await refused.wait()
        assert session.backends["a"].server == configured


async def test_a_server_that_the_operator_takes_over_is_no_longer_restricted() -> None:
    async with open_session(server("a")) as (manager, session):
        other = await manager.ensure("other", "ada")
        await manager.servers.add(session, server("b"), keep_on_failure=False)
        before = dict(session.backends)

        def restricted() -> list[list[bool]]:
            return [[s.backends[name].restricted for name in ("a", "b")] for s in (session, other)]

        assert restricted() == [[False, True]] * 2
        manager.reload(config(server("a"), server("b")))
        assert session.backends == before
        assert restricted() == [[False, False]] * 2
        manager.reload(config(server("b")))
        await manager.servers.add(session, server("a"), keep_on_failure=False)
        assert restricted() == [[True, False]] * 2
