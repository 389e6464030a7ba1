"""Servers that come to sessions and leave them, with real processes behind them."""

from __future__ import annotations

import pytest
import trio

from emceepee_trio.errors import ConnectFailed, ServerNotFound
from emceepee_trio.model.states import BackendState
from fake_backends import until
from principals import data, open_world, running, server, told


async def test_a_server_that_is_added_comes_to_all_sessions_of_its_principal() -> None:
    async with open_world() as world:
        x = server("x")
        client, replaced = await world.manager.servers.add(world.one, x, keep_on_failure=False)
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
            await world.manager.servers.add(world.one, broken, keep_on_failure=False)
        assert world.one.backends == world.two.backends == {}
        assert world.manager.registry.visible("ada") == {}
        await running(world.one, 0)


async def test_a_server_that_is_to_be_kept_keeps_trying() -> None:
    async with open_world() as world:
        broken = server("x", "--exit-at-once", "3")
        client, _ = await world.manager.servers.add(world.one, broken, keep_on_failure=True)
        assert client is None
        assert world.one.backends["x"].state is BackendState.RECONNECTING
        assert world.manager.registry.visible("ada") == {"x": broken}
        assert list(world.two.backends) == ["x"]


async def test_adding_the_very_same_again_changes_nothing() -> None:
    async with open_world() as world:
        client, _ = await world.manager.servers.add(world.one, server("x"), keep_on_failure=False)
        first, second = world.one.backends["x"], world.two.backends["x"]
        await second.connection()
        for session in (world.one, world.two):
            again = await world.manager.servers.add(session, server("x"), keep_on_failure=False)
            assert again == (session.backends["x"].client, False)
        assert (world.one.backends["x"], world.two.backends["x"]) == (first, second)
        assert first.client is client
        assert "server_disconnected" not in told(world.one) + told(world.two)


async def test_another_target_replaces_the_old_one_everywhere() -> None:
    async with open_world() as world:
        await world.manager.servers.add(world.one, server("x"), keep_on_failure=False)
        old = world.one.backends["x"], world.two.backends["x"]
        await old[1].connection()
        new = server("x", "--tools", "1")
        client, replaced = await world.manager.servers.add(world.one, new, keep_on_failure=False)
        assert replaced
        assert client is world.one.backends["x"].client
        for backend in old:
            await backend.ended.wait()
        await world.two.backends["x"].connection()
        assert world.two.backends["x"].server == new
        assert told(world.two)[3:5] == ["server_removed", "server_added"]
        assert [said["wasIntentional"] for said in data(world.one, "server_disconnected")] == [True]
        assert len(world.one.backends.running) == len(world.two.backends.running) == 1


async def test_a_replacement_that_fails_leaves_the_old_one() -> None:
    async with open_world() as world:
        await world.manager.servers.add(world.one, server("x"), keep_on_failure=False)
        old = world.one.backends["x"]
        broken = server("x", "--exit-at-once", "3")
        with pytest.raises(ConnectFailed):
            await world.manager.servers.add(world.one, broken, keep_on_failure=False)
        assert world.one.backends["x"] is old
        assert old.state is BackendState.CONNECTED


REMOVAL = ["process_stopped", "server_disconnected", "server_removed"]


async def test_a_server_that_is_removed_leaves_every_session_in_order() -> None:
    async with open_world() as world:
        await world.manager.servers.add(world.one, server("x"), keep_on_failure=False)
        await world.two.backends["x"].connection()
        await world.manager.servers.remove(world.one, "x")
        assert told(world.one)[2:] == REMOVAL
        assert world.one.backends == world.two.backends == {}
        await until(lambda: told(world.two)[3:] == REMOVAL)
        assert data(world.two, "server_removed")[0]["removedBy"] == "claude"
        assert data(world.two, "server_disconnected")[0]["wasIntentional"]
        with pytest.raises(ServerNotFound):
            await world.manager.servers.remove(world.one, "x")


async def test_a_configured_server_that_is_removed_leaves_everybody() -> None:
    async with open_world(server("x")) as world:
        sessions = (world.one, world.two, world.bobs)
        for session in sessions:
            await session.backends["x"].connection()
        await world.manager.servers.remove(world.one, "x")
        assert all(session.backends == {} for session in sessions)
        await until(lambda: all(told(session) == REMOVAL for session in sessions))
        assert (await world.manager.ensure("later", "bob")).backends == {}


async def test_a_server_of_that_name_somebody_else_added_stays() -> None:
    async with open_world() as world:
        for session in (world.one, world.bobs):
            await world.manager.servers.add(session, server("x"), keep_on_failure=False)
        await world.manager.servers.remove(world.one, "x")
        assert world.bobs.backends["x"].state is BackendState.CONNECTED


async def test_removing_goes_on_when_its_request_is_cancelled() -> None:
    async with open_world() as world:
        await world.manager.servers.add(world.one, server("x"), keep_on_failure=False)
        with trio.CancelScope() as scope:
            scope.cancel("the client has gone")
            await world.manager.servers.remove(world.one, "x")
        assert world.one.backends == world.two.backends == {}
        await until(lambda: told(world.one)[2:] == REMOVAL)


async def test_a_name_can_be_added_again_while_the_old_one_leaves() -> None:
    async with open_world() as world:
        await world.manager.servers.add(world.one, server("x"), keep_on_failure=False)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(world.manager.servers.remove, world.one, "x")
            await until(lambda: not world.one.backends)
            new = server("x", "--tools", "1")
            await world.manager.servers.add(world.two, new, keep_on_failure=False)
        assert world.two.backends["x"].server == new
        assert world.one.backends["x"].server == new
        for session in (world.one, world.two):
            await running(session, 1)
