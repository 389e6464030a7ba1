"""Sessions whose servers are scripted peers, and what can happen to such a server."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import Any

import attrs

from emceepee_trio.config import Config, Server
from emceepee_trio.errors import ToolError
from emceepee_trio.session.manager import SessionManager, open_sessions
from emceepee_trio.session.session import Session
from emceepee_trio.tools import TOOLBOX
from emceepee_trio.tools.common.registry import Request
from memory_peers import Peer, Peers


def server(version: str = "1", name: str = "x") -> Server:
    return Server(name, command="program", args=(version,), era="handshake")


@attrs.define(eq=False)
class World:
    """Three sessions of one principal, all connected to a server "x" unless there is none."""

    manager: SessionManager
    peers: Peers
    one: Session
    two: Session
    onlooker: Session

    @property
    def peer(self) -> Peer:
        """Of the first session, which was the first to connect."""
        return self.peers.all[0]

    async def call(self, tool: str = "dig", **arguments: Any) -> Any:
        """The result, or the error."""
        request = Request(self.one, self.manager)
        asked = {"server": "x", "tool": tool, **arguments}
        try:
            reply = await TOOLBOX.get("execute_tool").call(request, asked)
        except ToolError as error:
            return error
        return reply.result

    def check_servers(self) -> None:
        """Each session has just the servers that it should have, and no connection is left over."""
        visible = self.manager.registry.visible("ada")
        sessions = self.manager.sessions()
        for session in sessions:
            assert {n: b.server for n, b in session.backends.items()} == visible
            assert {*session.backends.values()} == session.backends.running
        assert len(self.peers.open()) == len(visible) * len(sessions)


@asynccontextmanager
async def open_world(*servers: Server, peers: Peers | None = None) -> AsyncGenerator[World]:
    peers = peers or Peers()
    with peers.in_place():
        async with open_sessions(Config(servers=servers)) as manager:
            sessions = []
            for name in ("one", "two", "onlooker"):
                session = await manager.ensure(name, "ada")
                for backend in session.backends.values():
                    await backend.connection()
                sessions.append(session)
            yield World(manager, peers, *sessions)


def reload_replaces(world: World) -> None:
    world.manager.reload(Config(servers=(server("2"),)))


def reload_removes(world: World) -> None:
    world.manager.reload(Config())


def tool_removes(world: World) -> None:
    world.two.inner.start_soon(world.manager.servers.remove, world.two, "x")


def dies(world: World) -> None:
    world.peer.end()


def reconnects(world: World) -> None:
    async def reconnect() -> None:
        with suppress(ToolError):  # the world ends, perhaps before it is connected
            await world.one.backends["x"].reconnect()

    world.one.outer.start_soon(reconnect)


def session_ends(world: World) -> None:
    world.manager.end(world.one, "DELETE")
