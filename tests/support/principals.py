"""Sessions of two principals, the servers that come to them and leave them, and what they hear."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import attrs
import trio

from emceepee_trio.config import Config, Limits, Server
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
    await until(lambda: len(session.backends.running) == count)
