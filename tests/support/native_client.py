"""Clients of the view `native`, of either era."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import attrs

from asgi_client import META, Client, Json
from asgi_world import World, open_world
from emceepee_trio.config import parse

NATIVE = "view=native"
VIEW_OF_APPS = "ui://apps/chart/view.html"
Era = Literal["handshake", "modern"]


@attrs.define(eq=False)
class Native:
    """A client of the view."""

    world: World
    client: Client
    era: Era
    hello: Json
    extensions: Json

    async def answer(self, method: str, /, **params: Any) -> Json:
        if self.era == "handshake":
            return await self.client.request(method, **params).answer()
        meta = {f"{META}clientCapabilities": {"extensions": self.extensions}}
        return await self.client.modern(method, query=NATIVE, meta=meta, **params).answer()

    async def ask(self, method: str, /, **params: Any) -> Json:
        answer = await self.answer(method, **params)
        assert "result" in answer, answer
        result: Json = answer["result"]
        return result

    async def fails(self, method: str, /, **params: Any) -> Json:
        answer = await self.answer(method, **params)
        assert "error" in answer, answer
        error: Json = answer["error"]
        return error

    async def call(self, tool: str, /, **arguments: Any) -> Json:
        return await self.ask("tools/call", name=tool, arguments=arguments)

    async def tools(self) -> dict[str, Json]:
        return {tool["name"]: tool for tool in (await self.ask("tools/list"))["tools"]}


async def joined(world: World, era: Era, extensions: Json | None = None) -> Native:
    client, extensions = world.client(), extensions or {}
    if era == "handshake":
        client.capabilities = {"extensions": extensions}
        hello = await client.initialize(query=NATIVE)
        said = (await hello.answer())["result"]
    else:
        meta = {f"{META}clientCapabilities": {"extensions": extensions}}
        discovered = client.modern("server/discover", query=NATIVE, meta=meta)
        said = (await discovered.answer())["result"]
    return Native(world, client, era, said, extensions)


@asynccontextmanager
async def natively(
    era: Era, servers: Mapping[str, Json], extensions: Json | None = None, **settings: Any
) -> AsyncGenerator[Native]:
    config = parse({"mcpServers": servers, **settings}, folder=Path.cwd(), environ={}).config
    async with open_world(config) as world:
        yield await joined(world, era, extensions)
