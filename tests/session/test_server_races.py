"""Much can happen between the wish for a server and its first word."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trio

from emceepee_trio.config import Config, Server
from emceepee_trio.errors import InvalidArguments, LimitReached, ToolError
from emceepee_trio.model.states import BackendState
from emceepee_trio.session.session import Session
from principals import World, open_world, running, server, told


async def add_at_once(world: World, *adds: tuple[Session, Server]) -> list[Any]:
    """Add in parallel; what each was told."""
    got: list[Any] = [None] * len(adds)

    async def add(index: int, session: Session, new: Server) -> None:
        try:
            got[index] = await world.manager.servers.add(session, new, keep_on_failure=False)
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
            got.append(await world.manager.servers.add(world.one, slow, keep_on_failure=keep))
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


async def test_a_session_that_ends_in_the_tick_of_the_connection_gets_no_server() -> None:
    async with open_world() as world:
        for number in range(8):  # the two are woken in either order
            session = await world.manager.ensure(f"s{number}", "eve")

            async def end(session: Session) -> None:
                while "server_connected" not in told(session):
                    await session.events.triggers.wait_after(session.events.triggers.last)
                world.manager.end(session, "DELETE")

            async with trio.open_nursery() as nursery:
                nursery.start_soon(end, session)
                try:
                    await world.manager.servers.add(session, server("x"), keep_on_failure=True)
                except ToolError:
                    assert world.manager.registry.visible("eve") == {}
                else:
                    await world.manager.servers.remove(session, "x")
            assert session.backends == {}
            await running(session, 0)


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
                await world.manager.servers.add(world.one, slow, keep_on_failure=True)

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
            await world.manager.servers.add(world.one, server("x"), keep_on_failure=True)
        assert world.two.backends == {}


async def test_removing_while_it_is_replaced_leaves_what_came_last(tmp_path: Path) -> None:
    async with open_world() as world:
        await world.manager.servers.add(world.one, server("x"), keep_on_failure=False)
        old = world.one.backends["x"]

        def remove() -> None:
            world.one.inner.start_soon(world.manager.servers.remove, world.two, "x")

        client, replaced = await when_it_connects(world, tmp_path / "go", remove)
        await old.ended.wait()
        assert client is world.one.backends["x"].client
        assert world.two.backends["x"].server == world.one.backends["x"].server
        await running(world.one, 1)
        await running(world.two, 1)
        assert not replaced
