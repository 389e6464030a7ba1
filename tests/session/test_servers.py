"""Servers that come to sessions and leave them, with real processes behind them."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio

from emceepee_trio.config import Config, Limits, Server
from emceepee_trio.errors import (
    ConnectFailed,
    InvalidArguments,
    LimitReached,
    ServerNotFound,
    ToolError,
)
from emceepee_trio.model.states import BackendState
from emceepee_trio.session.manager import SessionManager, open_sessions
from emceepee_trio.session.session import Session
from fake_backends import raw, until


def server(name: str, *flags: str | os.PathLike[str], **more: Any) -> Server:
    entry = raw(*flags)
    return Server(name, command=entry["command"], args=tuple(entry["args"]), **more)


@attrs.define(eq=False)
class World:
    """Two sessions of Ada's and one of Bob's."""

    manager: SessionManager
    one: Session
    two: Session
    bobs: Session


@asynccontextmanager
async def open_world(*servers: Server, **limits: int) -> AsyncGenerator[World]:
    config = Config(servers=servers, limits=attrs.evolve(Limits(), **limits))
    with trio.fail_after(60):
        async with open_sessions(config) as manager:
            one, two = await manager.ensure("one", "ada"), await manager.ensure("two", "ada")
            one.client_name = "claude"
            yield World(manager, one, two, await manager.ensure("bobs", "bob"))


def told(session: Session, name: str = "x") -> list[str]:
    return [event["type"] for event in session.events.recent(name, 100)]


def data(session: Session, event_type: str, name: str = "x") -> list[dict[str, Any]]:
    return [e["data"] for e in session.events.recent(name, 100) if e["type"] == event_type]


async def running(session: Session, count: int) -> None:
    """Wait until so many backends of the session run, named or not."""
    await until(lambda: len(session._running) == count)


async def test_a_server_that_is_added_comes_to_all_sessions_of_its_principal() -> None:
    async with open_world() as world:
        x = server("x")
        client, replaced = await world.manager.add_server(world.one, x, keep_on_failure=False)
        assert client is world.one.backends["x"].client
        assert not replaced
        assert told(world.one) == ["process_started", "server_connected"]
        await world.two.backends["x"].connection()
        assert told(world.two) == ["server_added", "process_started", "server_connected"]
        assert data(world.two, "server_added") == [
            {"name": "x", "target": x.target, "addedBy": "claude"}
        ]
        assert world.bobs.backends == {}
        assert told(world.bobs) == []
        later = await world.manager.ensure("later", "ada")
        assert list(later.backends) == ["x"]


async def test_a_server_that_cannot_be_added_leaves_nothing_behind() -> None:
    async with open_world() as world:
        broken = server("x", "--exit-at-once", "3")
        with pytest.raises(ConnectFailed):
            await world.manager.add_server(world.one, broken, keep_on_failure=False)
        assert world.one.backends == world.two.backends == {}
        assert world.manager.registry.visible("ada") == {}
        await running(world.one, 0)


async def test_a_server_that_is_to_be_kept_keeps_trying() -> None:
    async with open_world() as world:
        broken = server("x", "--exit-at-once", "3")
        client, _ = await world.manager.add_server(world.one, broken, keep_on_failure=True)
        assert client is None
        assert world.one.backends["x"].state is BackendState.RECONNECTING
        assert world.manager.registry.visible("ada") == {"x": broken}
        assert list(world.two.backends) == ["x"]


async def test_adding_the_very_same_again_changes_nothing() -> None:
    async with open_world() as world:
        client, _ = await world.manager.add_server(world.one, server("x"), keep_on_failure=False)
        first, second = world.one.backends["x"], world.two.backends["x"]
        await second.connection()
        for session in (world.one, world.two):
            again = await world.manager.add_server(session, server("x"), keep_on_failure=False)
            assert again == (session.backends["x"].client, False)
        assert (world.one.backends["x"], world.two.backends["x"]) == (first, second)
        assert first.client is client
        assert "server_disconnected" not in told(world.one) + told(world.two)


async def test_another_target_replaces_the_old_one_everywhere() -> None:
    async with open_world() as world:
        await world.manager.add_server(world.one, server("x"), keep_on_failure=False)
        old = world.one.backends["x"], world.two.backends["x"]
        await old[1].connection()
        new = server("x", "--tools", "1")
        client, replaced = await world.manager.add_server(world.one, new, keep_on_failure=False)
        assert replaced
        assert client is world.one.backends["x"].client
        for backend in old:
            await backend.ended.wait()
        await world.two.backends["x"].connection()
        assert world.two.backends["x"].server == new
        assert told(world.two)[3:5] == ["server_removed", "server_added"]
        assert [said["wasIntentional"] for said in data(world.one, "server_disconnected")] == [True]
        assert len(world.one._running) == len(world.two._running) == 1


async def test_a_replacement_that_fails_leaves_the_old_one() -> None:
    async with open_world() as world:
        await world.manager.add_server(world.one, server("x"), keep_on_failure=False)
        old = world.one.backends["x"]
        broken = server("x", "--exit-at-once", "3")
        with pytest.raises(ConnectFailed):
            await world.manager.add_server(world.one, broken, keep_on_failure=False)
        assert world.one.backends["x"] is old
        assert old.state is BackendState.CONNECTED


async def add_at_once(world: World, *adds: tuple[Session, Server]) -> list[Any]:
    """Add in parallel; what each was told."""
    got: list[Any] = [None] * len(adds)

    async def add(index: int, session: Session, new: Server) -> None:
        try:
            got[index] = await world.manager.add_server(session, new, keep_on_failure=False)
        except ToolError as error:
            got[index] = error

    async with trio.open_nursery() as nursery:
        for index, (session, new) in enumerate(adds):
            nursery.start_soon(add, index, session, new)
    return got


async def test_of_racing_servers_of_one_name_one_remains() -> None:
    async with open_world() as world:
        kinds = [server("x", "--tools", str(n)) for n in range(3)]
        await add_at_once(world, *((world.one, kind) for kind in kinds))
        winner = world.one.backends["x"].server
        assert world.manager.registry.visible("ada") == {"x": winner}
        assert world.two.backends["x"].server == winner
        for session in (world.one, world.two):
            await running(session, 1)
            await session.backends["x"].connection()


async def test_racing_for_the_very_same_server_disturbs_nobody() -> None:
    async with open_world() as world:
        x = server("x")
        adds = [(world.one, x), (world.two, x), (world.one, x)]
        clients = [client for client, _ in await add_at_once(world, *adds)]
        assert clients[0] is clients[2] is world.one.backends["x"].client
        assert clients[1] is world.two.backends["x"].client
        for session in (world.one, world.two):
            await running(session, 1)
            assert session.backends["x"].state is BackendState.CONNECTED


async def test_racing_for_the_last_place_one_is_refused() -> None:
    async with open_world(servers=1) as world:
        adds = [(world.one, server(name)) for name in ("x", "y")]
        got = await add_at_once(world, *adds)
        refused = [error for error in got if isinstance(error, LimitReached)]
        assert len(refused) == 1
        assert len(world.manager.registry.visible("ada")) == 1
        await running(world.one, 1)


async def when_it_connects(
    world: World, file: Path, before: Callable[[], object], *, keep: bool = False
) -> Any:
    """Add a server that waits for *file*; something happens *before* it is there."""
    slow = server("x", "--start-when", file, connect_timeout_ms=60_000)
    got: list[Any] = []

    async def add() -> None:
        try:
            got.append(await world.manager.add_server(world.one, slow, keep_on_failure=keep))
        except ToolError as error:
            got.append(error)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(add)
        await running(world.one, len(world.one.backends) + 1)
        before()
        await trio.Path(file).touch()
    return got[0]


@pytest.mark.parametrize("keep", [True, False])
async def test_a_session_that_ends_meanwhile_gets_no_server(tmp_path: Path, keep: bool) -> None:
    async with open_world() as world:
        error = await when_it_connects(
            world, tmp_path / "go", lambda: world.manager.end(world.one, "DELETE"), keep=keep
        )
        assert isinstance(error, ToolError)
        assert world.manager.registry.visible("ada") == {}
        assert world.one.backends == world.two.backends == {}
        await running(world.one, 0)


async def test_a_name_that_is_configured_meanwhile_is_taken(tmp_path: Path) -> None:
    async with open_world() as world:
        configured = server("x", start="lazy")
        error = await when_it_connects(
            world,
            tmp_path / "go",
            lambda: world.manager.reload(Config(servers=(configured,))),
        )
        assert isinstance(error, InvalidArguments)
        assert world.one.backends["x"].server == configured
        await running(world.one, 1)


async def test_adding_can_be_cancelled(tmp_path: Path) -> None:
    async with open_world() as world:
        slow = server("x", "--start-when", tmp_path / "go")
        async with trio.open_nursery() as nursery:

            async def add() -> None:
                await world.manager.add_server(world.one, slow, keep_on_failure=True)

            nursery.start_soon(add)
            await running(world.one, 1)
            nursery.cancel_scope.cancel("the client has changed its mind")
        await trio.Path(tmp_path / "go").touch()  # it has not looked at its input before
        assert world.one.backends == {}
        assert world.manager.registry.visible("ada") == {}
        await running(world.one, 0)


async def test_no_server_comes_to_a_session_that_is_over() -> None:
    async with open_world() as world:
        world.manager.end(world.one, "DELETE")
        with pytest.raises(ToolError, match="session has ended"):
            await world.manager.add_server(world.one, server("x"), keep_on_failure=True)
        assert world.two.backends == {}


REMOVAL = ["process_stopped", "server_disconnected", "server_removed"]


async def test_a_server_that_is_removed_leaves_every_session_in_order() -> None:
    async with open_world() as world:
        await world.manager.add_server(world.one, server("x"), keep_on_failure=False)
        await world.two.backends["x"].connection()
        await world.manager.remove_server(world.one, "x")
        assert told(world.one)[2:] == REMOVAL
        assert world.one.backends == world.two.backends == {}
        await until(lambda: told(world.two)[3:] == REMOVAL)
        assert data(world.two, "server_removed")[0]["removedBy"] == "claude"
        assert data(world.two, "server_disconnected")[0]["wasIntentional"]
        with pytest.raises(ServerNotFound):
            await world.manager.remove_server(world.one, "x")


async def test_a_configured_server_that_is_removed_leaves_everybody() -> None:
    async with open_world(server("x")) as world:
        sessions = (world.one, world.two, world.bobs)
        for session in sessions:
            await session.backends["x"].connection()
        await world.manager.remove_server(world.one, "x")
        assert all(session.backends == {} for session in sessions)
        await until(lambda: all(told(session)[2:] == REMOVAL for session in sessions))
        assert (await world.manager.ensure("later", "bob")).backends == {}


async def test_a_server_of_that_name_somebody_else_added_stays() -> None:
    async with open_world() as world:
        for session in (world.one, world.bobs):
            await world.manager.add_server(session, server("x"), keep_on_failure=False)
        await world.manager.remove_server(world.one, "x")
        assert world.bobs.backends["x"].state is BackendState.CONNECTED


async def test_removing_goes_on_when_its_request_is_cancelled() -> None:
    async with open_world() as world:
        await world.manager.add_server(world.one, server("x"), keep_on_failure=False)
        with trio.CancelScope() as scope:
            scope.cancel("the client has gone")
            await world.manager.remove_server(world.one, "x")
        assert world.one.backends == world.two.backends == {}
        await until(lambda: told(world.one)[2:] == REMOVAL)


async def test_a_name_can_be_added_again_while_the_old_one_leaves() -> None:
    async with open_world() as world:
        await world.manager.add_server(world.one, server("x"), keep_on_failure=False)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(world.manager.remove_server, world.one, "x")
            await until(lambda: not world.one.backends)
            new = server("x", "--tools", "1")
            await world.manager.add_server(world.two, new, keep_on_failure=False)
        assert world.two.backends["x"].server == new
        assert world.one.backends["x"].server == new
        for session in (world.one, world.two):
            await running(session, 1)


async def test_removing_while_it_is_replaced_leaves_what_came_last(tmp_path: Path) -> None:
    async with open_world() as world:
        await world.manager.add_server(world.one, server("x"), keep_on_failure=False)
        old = world.one.backends["x"]

        def remove() -> None:
            world.one.inner.start_soon(world.manager.remove_server, world.two, "x")

        client, replaced = await when_it_connects(world, tmp_path / "go", remove)
        await old.ended.wait()
        assert client is world.one.backends["x"].client
        assert world.two.backends["x"].server == world.one.backends["x"].server
        await running(world.one, 1)
        await running(world.two, 1)
        assert not replaced
