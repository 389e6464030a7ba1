"""A server that is added in the very tick in which something else is done with its name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import pytest
import trio

from connected import World, open_world, reload_removes, reload_replaces, server, session_ends
from emceepee_trio.errors import ToolError
from parts import MOMENT, at_the_moment, hop, in_many_orders
from principals import told


def removes(world: World) -> None:
    async def remove() -> None:
        with suppress(ToolError):  # there is none, yet or any more
            await world.manager.servers.remove(world.two, "x")

    world.two.inner.start_soon(remove)


def adds(world: World, version: str = "1", name: str = "x") -> None:
    async def add() -> None:
        with suppress(ToolError):  # as a rival wants it
            await world.manager.servers.add(world.two, server(version, name), keep_on_failure=False)

    world.two.inner.start_soon(add)


RIVALS: Mapping[str, Callable[[World], None]] = {
    "it is removed": removes,
    "it is added, too": adds,
    "another one of that name is added": lambda world: adds(world, "2"),
    "another one is added": lambda world: adds(world, name="y"),
    "another one of that name is configured": reload_replaces,
    "everything is read again": reload_removes,
    "its session ends": session_ends,
    "another session ends": lambda world: world.manager.end(world.two, "DELETE"),
}


COME_AND_GO = ("server_added", "server_removed")


@pytest.mark.parametrize("rival", RIVALS)
@pytest.mark.parametrize("known", [False, True])
def test_a_server_that_is_added_and(rival: str, known: bool) -> None:
    """Whatever comes in between, it is there for all sessions in the end or for none."""

    async def race(order: int) -> None:
        async with open_world() as world:
            if known:
                await world.manager.servers.add(world.one, server(), keep_on_failure=False)
            got: list[Any] = []

            async def add(hops: int) -> None:
                await trio.sleep_until(MOMENT)
                await hop(hops)
                new = server("3" if known else "1")
                try:
                    client, _ = await world.manager.servers.add(
                        world.one, new, keep_on_failure=False
                    )
                except ToolError as error:
                    got.append(error)
                else:
                    got.append(client)

            early, later = (order % 9, 0) if order % 2 else (0, order % 48)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(add, early)
                nursery.start_soon(at_the_moment, lambda: RIVALS[rival](world), later)
            await trio.sleep(60)
            assert len(got) == 1
            world.check_servers()
            # Who only looks on hears of every coming and going, in turn.
            for name in ("x", "y"):
                heard = [e for e in told(world.onlooker, name) if e in COME_AND_GO]
                assert heard == [COME_AND_GO[n % 2] for n in range(len(heard))]
                assert len(heard) % 2 == (name in world.onlooker.backends)

    in_many_orders(race, orders=50)
