"""A client of the SDK whose messages are written down, to be compared with those of another."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, Self

import attrs
import mcp_types as types
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

Json = dict[str, Any]

NAMES = {"requestState", "io.modelcontextprotocol/subscriptionId", "progressToken"}
"""Of values that somebody makes up, and that mean nothing by themselves."""


@attrs.define(eq=False)
class Tape:
    """What went out and what came in, in order, with all that is made up named in that order."""

    lines: list[tuple[str, Json]] = attrs.field(factory=list)
    _names: dict[str, list[Any]] = attrs.field(factory=dict)

    def note(self, way: str, item: Any) -> None:
        if not isinstance(item, Exception):
            said = item.message.model_dump(by_alias=True, mode="json", exclude_unset=True)
            # Ids are each side's own.
            asks = "method" in said
            sender = way if asks else {"->": "<-", "<-": "->"}[way]
            if "id" in said:
                said["id"] = self._name(f"{sender} id", said["id"])
            self.lines.append((way, self._named(said)))

    def _named(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._named(each) for each in value]
        if isinstance(value, dict):
            return {
                key: self._name(key, each) if key in NAMES else self._named(each)
                for key, each in value.items()
            }
        return value

    def _name(self, kind: str, value: Any) -> str:
        ours = self._names.setdefault(kind, [])
        if value not in ours:
            ours.append(value)
        return f"{kind} #{ours.index(value)}"


@attrs.define(eq=False)
class Taped:
    """One of the two streams of a transport."""

    stream: Any
    tape: Tape

    async def send(self, item: Any) -> None:
        self.tape.note("->", item)
        await self.stream.send(item)

    async def receive(self) -> Any:
        item = await self.stream.receive()
        self.tape.note("<-", item)
        return item

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        item = await self.stream.__anext__()
        self.tape.note("<-", item)
        return item

    async def aclose(self) -> None:
        await self.stream.aclose()

    async def __aenter__(self) -> Self:
        await self.stream.__aenter__()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.stream.__aexit__(*error)  # noqa: ASYNC102 - it is only handed on

    @property
    def last_context(self) -> Any:
        return getattr(self.stream, "last_context", None)


@asynccontextmanager
async def taped(url: str, mode: str, **callbacks: Any) -> AsyncGenerator[tuple[Client, Tape]]:
    tape = Tape()

    @asynccontextmanager
    async def transport() -> AsyncGenerator[Any]:
        async with streamable_http_client(url) as (reads, writes):
            yield Taped(reads, tape), Taped(writes, tape)

    info = types.Implementation(name="taped", version="0")
    async with Client(transport(), mode=mode, client_info=info, **callbacks) as client:
        yield client, tape
