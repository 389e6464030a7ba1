"""Whatever clients send over HTTP: an answer that is one, or a refusal, and nobody else notices.

The whole ASGI app in memory, with security in front, on a clock that jumps; the backends are
scripted. A neighbour, who has a token of his own, works on after every request.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import attrs
import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import MockClock

from asgi_client import BATCHING, BOTH, LATEST, MODERN, Client, Exchange
from asgi_world import open_world
from emceepee_trio.config import Config, Limits, Policy, Server
from emceepee_trio.serving.asgi import Receive, Scope, Send
from emceepee_trio.web.app import App, pages
from emceepee_trio.web.metrics.scrape import Metrics
from emceepee_trio.web.security import Security, Tokens
from memory_peers import scripted
from messages import BATCH, HANDSHAKE, INITIALIZE, STAMPED
from mistakes import MORE, SMALL, bodies
from watching import check_message, ids_in, no_bugs, strict

CONFIG = Config(
    servers=(Server("good", command="/nowhere"), Server("bad", command="/nowhere")),
    limits=Limits(body=SMALL, message=SMALL),
    policy=Policy(spawn="allow"),
)
TOKENS = {"fuzzer": "f", "neighbour": "n"}
STRANGER = ("stranger", "s")
"""Whose token the fuzzer may have; who has the neighbour's is the neighbour."""
STATUSES = {200, 202, 204, 400, 401, 403, 404, 405, 406, 413, 415, 503}
PATIENCE = 100.0
"""Seconds, on a clock that jumps, until a client gives up."""

TEXTS = st.text(st.characters(min_codepoint=0x20, max_codepoint=0xFF), max_size=8)
HEADERS: Mapping[str, list[str | None]] = {
    "mcp-session-id": [None, "", "x", "default", "pending-1", "local/main", "\xff", "a, a"],
    "x-mcp-reconnect-session": [None, "", "x", "default"],
    "mcp-protocol-version": [None, "", LATEST, MODERN, BATCHING, "2024-11-05", "1", "9999-99-99"],
    "accept": [None, "", "*/*", "text/event-stream", "application/json", BOTH, ",;q=,", "*/x"],
    "content-type": [
        None,
        "",
        "text/plain",
        "application/json; charset=utf-16",
        "application/JSON",
    ],
    "last-event-id": [None, "", "x", "x.1", "0.0", ".", "1.-1", "1." + "9" * 5000, "standalone.1"],
    "mcp-method": [None, "", "tools/call", "x", "\xff", "initialize"],
    "mcp-name": [None, "", "echo", "=?base64?AAAA?=", "=?base64?//79?=", "=?base64?x?="],
    "mcp-param-server": [None, "", "good"],
    "authorization": [None, "", "Bearer", "Bearer s", "Bearer \xff", "Basic Zg==", "Bearer f f"],
    "host": [None, "", "localhost", "evil.example", "[::1", "localhost:99999", "a:b:c", "\xff"],
    "origin": [None, "null", "http://localhost:80", "http://evil.example", "://", "http://[", ""],
    "access-control-request-headers": ["authorization", "mcp-x, a b", ","],
}
VERBS = ["POST"] * 12 + ["GET", "DELETE", "OPTIONS", "PUT", "HEAD", "PATCH", "", "post", "\xff"]
PATHS = ["/mcp"] * 20 + ["/mcp/", "/", "", "/status", "/logs", "/healthz", "/readyz", "/x"]
PATHS += ["/.well-known/"]
QUERIES = [
    *("", "session=main", "session=", "session=a&session=b", "session=%ff", "session=..", "x"),
    *("session=%00", "session=" + "a" * 65, "&" * 2000, "session", "a=" + "%" * 500, "\xff"),
    *("server=raw", "server=%ff"),
]


@attrs.frozen
class Asked:
    """One request of a client."""

    body: bytes
    verb: str = "POST"
    path: str = "/mcp"
    query: str = ""
    headers: Mapping[str, str | None] = attrs.field(factory=dict)
    patience: float = PATIENCE


@st.composite
def asked(draw: st.DrawFn, originals: list[Any]) -> Asked:
    body = draw(bodies(st.sampled_from(originals)))
    if draw(st.integers(0, 2)):
        return Asked(body)
    name = st.sampled_from(sorted(HEADERS))
    names = draw(st.sets(name, max_size=2))
    changed = {key: draw(st.sampled_from(HEADERS[key]) | TEXTS) for key in sorted(names)}
    return Asked(
        body,
        draw(st.sampled_from(VERBS)),
        draw(st.sampled_from(PATHS)),
        draw(st.sampled_from(QUERIES)),
        changed,
        draw(st.sampled_from([PATIENCE, PATIENCE, 0.0, 1.0])),
    )


def fitting(body: bytes) -> dict[str, str | None]:
    """The headers that a modern client sends with *body*, so that what is behind them is tried."""
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        data = None
    data = data if isinstance(data, dict) else {}
    params = data.get("params")
    params = params if isinstance(params, dict) else {}
    named = params.get("name", params.get("uri"))
    return {
        "mcp-protocol-version": MODERN,
        "mcp-method": _header(data.get("method")),
        "mcp-name": _header(named),
    }


def _header(value: Any) -> str | None:
    return value if isinstance(value, str) and value.isascii() and value.isprintable() else None


@attrs.define(eq=False)
class World:
    client: Client
    neighbour: Client

    async def ask(self, asked: Asked, headers: Mapping[str, str | None]) -> None:
        sent = {"content-type": "application/json", "accept": BOTH, **headers, **asked.headers}
        exchange = self.client.open(asked.verb, sent, asked.body, asked.query)
        exchange.scope["path"] = asked.path
        with trio.move_on_after(asked.patience):
            await exchange.complete()
        exchange.drop()
        check(exchange, ids_in(asked.body))
        await self.undisturbed()

    async def undisturbed(self) -> None:
        """The neighbour's call to his server of the same name is answered with nothing else."""
        args = {"server": "bad", "tool": "echo", "args": {"text": "secret"}}
        result = await self.neighbour.call("execute_tool", **args)
        assert result == {
            "content": [{"type": "text", "text": '{"text": "secret"}'}],
            "isError": False,
        }


def check(exchange: Exchange, ids: list[Any]) -> None:
    if not exchange.status:
        assert not exchange.is_complete  # nothing yet, which is for calls that wait
        return
    assert exchange.status in STATUSES, exchange.body
    if exchange.is_stream:
        for event in exchange.events:
            if event.data:
                check_message(strict(event.data), ids)
    elif exchange.headers.get("content-type", "").startswith("text/html"):
        assert exchange.scope["path"] == "/"  # the first page, which shows no payloads of anybody
        assert b"secret" not in exchange.body
    elif exchange.is_complete and exchange.body:
        said = strict(bytes(exchange.body))
        assert exchange.headers["content-type"] == "application/json"
        if exchange.status >= 400 or exchange.scope["path"].startswith("/mcp"):
            check_message(said, ids)
    elif exchange.is_complete and exchange.scope["method"] != "HEAD":
        assert exchange.status in {200, 202, 204}


@asynccontextmanager
async def open_fuzzed(version: str = LATEST) -> AsyncGenerator[World]:
    with no_bugs(), scripted():
        async with open_world(CONFIG) as world:
            tokens = Tokens.of([*TOKENS.items(), STRANGER])
            quart = pages(
                world.manager,
                dict,
                lambda: True,
                Metrics(world.manager),
            )
            app = App(Security.of(CONFIG.http, tokens), world.endpoint, quart)

            async def door(scope: Scope, receive: Receive, send: Send, principal: str) -> None:
                named = dict(scope["headers"])
                default = {
                    b"host": b"localhost",
                    b"authorization": f"Bearer {TOKENS[principal]}".encode(),
                }
                scope["headers"] = [
                    *((name, value) for name, value in default.items() if name not in named),
                    # An ASGI server hands on what HTTP allows, in its encoding.
                    *((name, value.decode().encode("latin-1")) for name, value in named.items()),
                ]
                more: Any = {"http_version": "1.1", "scheme": "http", "server": ("127.0.0.1", 80)}
                more |= {"raw_path": b"", "root_path": "", "client": None}
                await app({**scope, **more}, receive, send)

            fuzzer, neighbour = (Client(door, world.nursery, name) for name in TOKENS)  # type: ignore[arg-type]  # has its shape
            assert (await fuzzer.initialize(version)).status == 200
            assert (await neighbour.initialize()).status == 200
            while True:  # he hears of his own connections first
                said = await neighbour.call("await_activity", timeout_ms=100)
                if json.loads(said["content"][0]["text"])["triggers"] == [{"type": "timeout"}]:
                    break
            opened = World(fuzzer, neighbour)
            await opened.undisturbed()
            yield opened


def fuzz(
    requests: list[Asked],
    version: str = LATEST,
    headers: Callable[[bytes], Mapping[str, str | None]] = lambda body: {},
) -> None:
    async def scenario() -> None:
        async with open_fuzzed(version) as world:
            for each in requests:
                await world.ask(each, headers(each.body))

    trio.run(scenario, clock=MockClock(autojump_threshold=0))


@MORE
@given(st.lists(asked(HANDSHAKE), min_size=1, max_size=8))
def test_any_request_of_the_handshake_era(requests: list[Asked]) -> None:
    fuzz(requests)


@MORE
@given(st.lists(asked(BATCH), min_size=1, max_size=4))
def test_any_batch(requests: list[Asked]) -> None:
    fuzz(requests, BATCHING)


@MORE
@given(st.lists(asked(STAMPED), min_size=1, max_size=8))
def test_any_request_of_the_modern_era(requests: list[Asked]) -> None:
    no_session = {"mcp-session-id": None}
    fuzz(requests, headers=lambda body: fitting(body) | no_session)


@given(st.lists(asked([INITIALIZE]), min_size=1, max_size=8), st.booleans())
def test_any_handshake(requests: list[Asked], again: bool) -> None:
    fuzz(requests, headers=lambda body: {} if again else {"mcp-session-id": None})
