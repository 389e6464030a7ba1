"""Backends in memory, behind the real parser of lines: honest ones, and one that is not.

:func:`scripted` puts them in the place of every transport, so no process is started and no network
used, whatever a configuration or a client names; time may jump.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import AsyncGenerator, Generator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Any
from unittest import mock

import anyio
import attrs
import trio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage

from emceepee_trio.backend.children import lines
from emceepee_trio.backend.connections import connect
from emceepee_trio.backend.connections.callbacks import Callbacks
from emceepee_trio.backend.connections.connect import Transport
from emceepee_trio.backend.connections.messages import parse
from emceepee_trio.config import Server
from emceepee_trio.model.json.intake import Measure, finished

Json = dict[str, Any]

VERSION, MODERN = "2025-11-25", "2026-07-28"
ID, TOKEN = b'"@ID@"', b'"@TOKEN@"'
"""In what a backend is told to say: the id and the progress token of the request it answers."""

TOOLS = [
    {"name": "echo", "inputSchema": {"type": "object", "properties": {"text": {}}}},
    {"name": "ask", "description": "Asks. Then answers.", "inputSchema": {"type": "object"}},
    {"name": "never", "inputSchema": {"type": "object"}},
]
FORM = {
    "mode": "form",
    "message": "name?",
    "requestedSchema": {
        "type": "object",
        "properties": {"name": {"type": "string"}, "age": {"type": "integer", "minimum": 0}},
        "required": ["name"],
    },
}
SAMPLE = {
    "messages": [{"role": "user", "content": {"type": "text", "text": "?"}}],
    "maxTokens": 5,
    "modelPreferences": {"hints": [{"name": "m"}]},
}
CAPABILITIES: Json = {
    "tools": {"listChanged": True},
    "resources": {"subscribe": True},
    "prompts": {},
    "completions": {},
    "logging": {},
}

RESULTS: Mapping[str, Json] = {
    "initialize": {
        "protocolVersion": VERSION,
        "capabilities": CAPABILITIES,
        "serverInfo": {"name": "scripted", "version": "0"},
        "instructions": "none",
    },
    "server/discover": {
        "supportedVersions": [MODERN],
        "capabilities": CAPABILITIES,
        "resultType": "complete",
        "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "scripted", "version": "0"}},
    },
    "ping": {},
    "tools/list": {"tools": TOOLS, "ttlMs": 1000},
    "tools/call": {
        "content": [
            {"type": "text", "text": "hello"},
            {"type": "image", "data": "AAAA", "mimeType": "image/png"},
            {"type": "resource", "resource": {"uri": "demo://one", "text": "x"}},
        ],
        "structuredContent": {"a": [1, 2.5, None]},
        "isError": False,
        "_meta": {"x": 1},
    },
    "resources/list": {"resources": [{"uri": "demo://one", "name": "one"}]},
    "resources/templates/list": {"resourceTemplates": [{"uriTemplate": "demo://{x}", "name": "x"}]},
    "resources/read": {"contents": [{"uri": "demo://one", "text": "one"}, {"blob": "AAAA"}]},
    "prompts/list": {"prompts": [{"name": "greet", "arguments": [{"name": "whom"}]}]},
    "prompts/get": {
        "messages": [{"role": "user", "content": {"type": "text", "text": "hi"}}],
        "description": "d",
    },
    "completion/complete": {"completion": {"values": ["ada"], "total": 1, "hasMore": False}},
    "logging/setLevel": {},
    "resources/subscribe": {},
    "resources/unsubscribe": {},
}
"""What an honest server answers, by method."""


def echoed(params: Json) -> Json:
    said = params.get("arguments", {}).get("text")
    return {"content": [{"type": "text", "text": json.dumps(said)}], "isError": False}


@attrs.define(eq=False)
class Play:
    """What the server named `bad` says instead of what it should; all others are honest."""

    instead: dict[str, list[bytes]] = attrs.field(factory=dict)
    """Lines by method, in which :data:`ID` stands for the id of the request; "start": first."""
    era: str = "handshake"
    at_last: Json | None = None
    """Whether an error or a result: what answers a call of `never`, once anything else is asked."""
    heard: list[Json] = attrs.field(factory=list, init=False)
    connections: Iterator[int] = attrs.field(factory=itertools.count, init=False)


@attrs.define(eq=False)
class _Peer:
    play: Play
    is_bad: bool
    callbacks: Callbacks
    measure: Measure
    says: MemoryObjectSendStream[SessionMessage | Exception]
    hears: MemoryObjectReceiveStream[SessionMessage]
    questions: Iterator[int] = attrs.field(factory=lambda: itertools.count(1), init=False)
    unanswered: Any = attrs.field(default=None, init=False)
    """The last call of `never`."""
    asking: dict[str, Json] = attrs.field(factory=dict, init=False)
    """Calls that wait for an answer of the client, by the id of our question."""

    async def write(self, line: bytes) -> None:
        """As a program does, which ends when it says too much."""
        for part in line.split(b"\n"):
            if len(part) > self.measure.size:
                self.says.close()
                return
            said = finished(parse(part, self.measure))
            if said.why_not is not None:
                self.callbacks.made_noise(lines.text(part))
            for message in said.messages:
                await self.says.send(SessionMessage(message))

    async def run(self) -> None:
        # Either end may be closed at any time: by the client, or because a line was too long.
        try:
            for line in self.play.instead.get("start", ()) if self.is_bad else ():
                await self.write(line)
            async for item in self.hears:
                message = item.message.model_dump(by_alias=True, exclude_unset=True)
                if self.is_bad:
                    self.play.heard.append(message)
                await self._hear(message)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            pass

    async def _hear(self, message: Json) -> None:
        method, request_id = message.get("method"), message.get("id")
        if method is None:
            call = self.asking.pop(str(request_id), None)
            if call is not None:
                await self._answer(call, {"content": [], "structuredContent": {"got": message}})
            return
        if request_id is None:
            return
        params = message.get("params") or {}
        if self.is_bad and method in self.play.instead:
            token = json.dumps(params.get("_meta", {}).get("progressToken")).encode()
            for line in self.play.instead[method]:
                said = line.replace(ID, json.dumps(request_id).encode()).replace(TOKEN, token)
                await self.write(said)
            return
        era = self.play.era if self.is_bad else "handshake"
        if method not in RESULTS or (method == "server/discover" and era == "handshake"):
            error = {"code": -32601, "message": "Method not found"}
            await self._say({"jsonrpc": "2.0", "id": request_id, "error": error})
            return
        tool = params.get("name") if method == "tools/call" else None
        if tool == "never":
            self.unanswered = request_id
            return
        if self.play.at_last is not None:
            await self._say({"jsonrpc": "2.0", "id": self.unanswered, **self.play.at_last})
        if tool == "ask" and era == "handshake":
            question = f"q{next(self.questions)}"
            self.asking[question] = message
            asked = {"method": "elicitation/create", "params": FORM}
            await self._say({"jsonrpc": "2.0", "id": question, **asked})
            return
        await self._answer(message, echoed(params) if tool == "echo" else RESULTS[method])

    async def _answer(self, message: Json, result: Json) -> None:
        await self._say({"jsonrpc": "2.0", "id": message["id"], "result": result})

    async def _say(self, message: Json) -> None:
        await self.write(json.dumps(message).encode())


@contextmanager
def scripted(play: Play | None = None) -> Generator[Play]:
    """Until the block is left, every backend is one of these."""
    play = play or Play()

    @asynccontextmanager
    async def open_streams(
        server: Server, callbacks: Callbacks, _: object, __: str, measure: Measure, ___: bool
    ) -> AsyncGenerator[Transport]:
        says, reads = anyio.create_memory_object_stream[SessionMessage | Exception](100)
        writes, hears = anyio.create_memory_object_stream[SessionMessage](100)
        peer = _Peer(play, server.name == "bad", callbacks, measure, says, hears)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(peer.run)
            try:
                yield Transport(reads, writes)
            finally:
                for end in (says, reads, writes, hears):
                    end.close()
                nursery.cancel_scope.cancel("closed")

    with mock.patch.object(connect, "_open_streams", open_streams):
        yield play
