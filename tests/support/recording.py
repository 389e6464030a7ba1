"""A backend without a session: its host writes down what it is told and asked."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import attrs
import trio
from mcp import MCPError

from emceepee_trio.backend.connections.callbacks import Abandoned, Kind, LogLine, Params
from emceepee_trio.backend.private import Private
from emceepee_trio.backend.shared import Shared
from emceepee_trio.config import Config, Limits, Server
from emceepee_trio.model import wire
from emceepee_trio.model.events import Happening, Json, ServerConnected, ServerReconnected

H = TypeVar("H")


@attrs.define(eq=False)
class Question:
    kind: Kind
    params: Params
    answer: trio.Event = attrs.field(factory=trio.Event, init=False)
    result: dict[str, Any] | MCPError | None = attrs.field(default=None, init=False)
    abandoned: Abandoned | None = attrs.field(default=None, init=False)

    def respond(self, result: dict[str, Any] | MCPError) -> None:
        self.result = result
        self.answer.set()


@attrs.define(eq=False)
class Recorder:
    """The host of one backend."""

    happened: list[Happening] = attrs.field(factory=list, init=False)
    notices: list[tuple[str, Params | None]] = attrs.field(factory=list, init=False)
    logs: list[tuple[str, str, Json, str | None]] = attrs.field(factory=list, init=False)
    """Source, level, data, logger."""
    questions: list[Question] = attrs.field(factory=list, init=False)
    told_roots: list[dict[str, Any]] = attrs.field(factory=list, init=False)
    extensions: Json = attrs.field(factory=dict)
    principal: str = "ada"
    _news: trio.Event = attrs.field(factory=trio.Event, init=False)

    def _tell(self) -> None:
        news, self._news = self._news, trio.Event()
        news.set()

    async def until(self, seen: Callable[[], object]) -> None:
        while not seen():
            await self._news.wait()

    def all(self, kind: type[H]) -> list[H]:
        return [happening for happening in self.happened if isinstance(happening, kind)]

    async def wait_for(self, kind: type[H], count: int = 1) -> H:
        await self.until(lambda: len(self.all(kind)) >= count)
        return self.all(kind)[count - 1]

    async def connected(self, times: int = 1) -> None:
        await self.until(
            lambda: len([*self.all(ServerConnected), *self.all(ServerReconnected)]) >= times
        )

    async def question(self, count: int = 1) -> Question:
        await self.until(lambda: len(self.questions) >= count)
        return self.questions[count - 1]

    @property
    def story(self) -> list[str]:
        return [wire.event_type(happening) for happening in self.happened]

    # What backends call.

    async def list_roots(self, server: str) -> list[dict[str, Any]]:
        return self.roots(server)

    def publish(self, server: str, happening: Happening) -> None:
        assert server == "it"
        self.happened.append(happening)
        self._tell()

    def notified(self, server: str, method: str, params: Params | None) -> None:
        self.notices.append((method, params))
        self._tell()

    def logged(self, line: LogLine) -> None:
        self.logs.append((line.source, line.level, line.data, line.logger))
        self._tell()

    async def ask(
        self, server: str, kind: Kind, params: Params, abandoned: Callable[[], Abandoned]
    ) -> dict[str, Any]:
        question = Question(kind, params)
        self.questions.append(question)
        self._tell()
        try:
            await question.answer.wait()
        except trio.Cancelled:
            question.abandoned = abandoned()
            self._tell()
            raise
        assert question.result is not None
        if isinstance(question.result, MCPError):
            raise question.result
        return question.result

    def roots(self, server: str) -> list[dict[str, Any]]:
        return self.told_roots


@attrs.define(eq=False)
class Running:
    backend: Private
    host: Recorder

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """One tool call, unpromoted, unadorned."""
        client = await self.backend.connection()
        return await client.request("tools/call", {"name": tool, "arguments": arguments})


@asynccontextmanager
async def running(
    entry: Mapping[str, Any],
    *,
    limits: Limits | None = None,
    shared: Shared | None = None,
    restricted: bool = False,
    session: str = "test",
) -> AsyncGenerator[Running]:
    """A backend in a task of its own; told to leave at the end, and nothing of it stays."""
    fields: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in entry.items()}
    server = Server("it", **fields)
    host = Recorder()
    config = Config(limits=limits or Limits())
    backend = Private(server, host, config, shared or Shared(), session, time.time, restricted)
    backend.supervisor.patience = 0.3
    async with trio.open_nursery() as nursery:
        nursery.start_soon(backend.run)
        yield Running(backend, host)
        backend.leave("test is over", 0.3)
        await backend.ended.wait()
