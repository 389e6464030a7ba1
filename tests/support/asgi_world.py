"""An MCP endpoint in memory with its sessions, and requests that say what their test wants.

Such a request is one of ``test/speak``, a method that exists only here; see :class:`Speaker`.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import Any

import attrs
import outcome
import pytest
import trio
from mcp.server.context import ServerRequestContext
from mcp_types import RequestParams
from trio.testing import wait_all_tasks_blocked

from asgi_client import LATEST, Client, Exchange, Json
from emceepee_trio.backend.children import footprint
from emceepee_trio.config import Config
from emceepee_trio.front.by_the_sdk import mcp_server
from emceepee_trio.front.faces.views import FACES
from emceepee_trio.front.http import McpEndpoint
from emceepee_trio.session.manager import SessionManager, open_sessions
from emceepee_trio.tracing import Tracing
from emceepee_trio.waits.slot import Slot

GUARD = 7200.0
"""Seconds on trio's clock, which may be a quick one, after which a test hangs."""


@attrs.define(eq=False)
class Speaker:
    """A request of ``test/speak`` that waits to be told what to say."""

    context: ServerRequestContext[Any, Any]
    done: Slot[Json] = attrs.field(factory=Slot, init=False)

    async def say(self, text: str, *, standalone: bool = False) -> None:
        """A notification, in the request's stream or in the standalone one."""
        related: Any = None if standalone else self.context.request_id
        send = self.context.session.send_progress_notification
        await send("test", 1.0, message=text, related_request_id=related)

    def answer(self, text: str) -> None:
        self.done.set({"text": text})


class _Speak(RequestParams):
    key: str


@attrs.define(eq=False)
class World:
    endpoint: McpEndpoint
    manager: SessionManager
    nursery: trio.Nursery
    speakers: dict[str, Speaker] = attrs.field(factory=dict, init=False)
    _arrived: trio.Event = attrs.field(factory=trio.Event, init=False)

    def client(self, principal: str = "local") -> Client:
        return Client(self.endpoint, self.nursery, principal)

    async def joined(
        self, version: str = LATEST, principal: str = "local", **capabilities: Json
    ) -> Client:
        """A client of the handshake era with a session of its own."""
        client = self.client(principal)
        client.capabilities = capabilities
        assert (await client.initialize(version)).status == 200
        return client

    async def speaker(self, key: str) -> Speaker:
        while key not in self.speakers:
            await self._arrived.wait()
        return self.speakers[key]

    async def _speak(self, context: ServerRequestContext[Any, Any], params: _Speak) -> Json:
        speaker = self.speakers[params.key] = Speaker(context)
        arrived, self._arrived = self._arrived, trio.Event()
        arrived.set()
        return await speaker.done.wait_result()


@asynccontextmanager
async def open_world(
    config: Config | None = None, guard: float = GUARD, tracing: Tracing | None = None
) -> AsyncGenerator[World]:
    """An endpoint and its sessions; leaving it drops every connection."""
    config = config or Config()
    with trio.fail_after(guard):
        async with _open_world(config, tracing) as world:
            yield world


@contextmanager
def threads_hold_the_clock() -> Generator[None]:
    """A clock that jumps does so when no task has anything to do; what a thread does it cannot see.

    So while one works, also for somebody who is cancelled meanwhile, a task beside it has something
    to do.
    """
    in_thread = trio.to_thread.run_sync

    async def held(work: Callable[..., Any], *args: Any, **options: Any) -> Any:
        done = False

        async def busy() -> None:
            with trio.CancelScope(shield=True):
                while not done:  # noqa: ASYNC110 - to have something to do is what it is for
                    await trio.lowlevel.checkpoint()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(busy)
            found = await outcome.acapture(partial(in_thread, work, *args, **options))
            done = True
        return found.unwrap()

    async def at_once(work: Callable[[], Any]) -> Any:
        await trio.lowlevel.checkpoint()
        return work()

    with pytest.MonkeyPatch.context() as patch:
        # Asked for with every status: the ticks that a thread takes would decide the order of
        # tasks from then on, and no order could be had again.
        patch.setattr(footprint, "on_disk", at_once)
        patch.setattr(trio.to_thread, "run_sync", held)
        yield


@asynccontextmanager
async def _open_world(config: Config, tracing: Tracing | None) -> AsyncGenerator[World]:
    with threads_hold_the_clock():
        async with _opened(config, tracing) as world:
            yield world


@asynccontextmanager
async def _opened(config: Config, tracing: Tracing | None) -> AsyncGenerator[World]:
    async with open_sessions(config, tracing=tracing) as manager, trio.open_nursery() as nursery:
        endpoint = McpEndpoint(manager, config, FACES)
        world = World(endpoint, manager, nursery)
        mcp_server().add_request_handler("test/speak", _Speak, world._speak)
        yield world
        nursery.cancel_scope.cancel("end of the test")


def texts(messages: Sequence[Any]) -> list[str]:
    """What speakers said, of notifications and answers alike."""
    return [m.get("params", {}).get("message") or m["result"]["text"] for m in messages]


async def listening(client: Client, last_event_id: str | None = None) -> Exchange:
    """A GET whose connection stands, and has brought what there was."""
    exchange = client.get(last_event_id)
    assert await exchange.begun() == 200
    await wait_all_tasks_blocked()
    return exchange


async def speaking(world: World, client: Client, key: str) -> tuple[Exchange, Speaker]:
    """A request whose response is a stream already."""
    exchange = client.request("test/speak", key=key)
    await exchange.until(lambda: exchange.primed)
    return exchange, await world.speaker(key)
