"""Whatever bytes come over a socket: a whole HTTP answer or none, and others are served meanwhile.

Our listeners with the whole app behind them, over loopback. A neighbour with a connection of his
own asks after every one that was opened for nonsense.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import trio
from hypothesis import given
from hypothesis import strategies as st

from asgi_client import BOTH, HELLO, LATEST, MODERN, request, stamp
from asgi_world import open_world
from emceepee_trio.config import Config, Limits, Server
from emceepee_trio.web.app import App, pages
from emceepee_trio.web.metrics.scrape import Metrics
from emceepee_trio.web.security import Security
from memory_peers import scripted
from messages import CALLS
from mistakes import MORE, SMALL, Body, bodies
from raw_http import Peer, Served, serving
from watching import ids_in, no_bugs, strict

GUARD = 60
PATIENCE = 0.2
"""Seconds for a server that may wait for more; only what is tried depends on it."""
LAST = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nConnection: close\r\n\r\n"
CONFIG = Config((Server("good", command="/nowhere"),), limits=Limits(body=SMALL))
STATUSES = {
    *(200, 202, 204, 400, 401, 403, 404, 405, 406, 408, 411, 413, 414, 415, 417, 426, 431),
    *(501, 503, 505),
}

# -- requests, nearly right ----------------------------------------------------------------------

TARGETS = [
    *("/", "*", "/mcp?session=a", "http://127.0.0.1/mcp", "mcp"),
    *("/healthz", "/status", "/%00", "/%zz", "//mcp", "/mcp#x", "/m cp", "/\xff", "", "/../mcp"),
    *("/" + "a" * 9000, "http://evil.example/mcp", "https:///", "/mcp?" + "a=1&" * 3000),
]
VERBS = ["GET", "OPTIONS", "DELETE", "CONNECT", "TRACE", "PRI", "p\xff", ""]
VERSIONS = ["HTTP/1.0", "HTTP/2.0", "HTTP/0.9", "HTTP/9.9", "http/1.1", "", "X"]
LINES = [
    *("Content-Length: -1", "Content-Length: 0", "Content-Length: 5", "Content-Length: x"),
    *("Content-Length: 99999999999999999999", "Content-Length: 1, 1", "Content-Length: +4"),
    *("Transfer-Encoding: chunked", "Transfer-Encoding: gzip, chunked", "Transfer-Encoding: x"),
    *("Transfer-Encoding : chunked", "Expect: 100-continue", "Expect: x", "Connection: close"),
    *("Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk", "Host: x"),
    *(
        "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13",
        " folded",
        ":",
        "x",
    ),
    *("X-Long: " + "a" * 40_000, "X-NUL: \x00", "X-Bare: a\rb", "X-Latin: \xff", "X y: z", "X:"),
    *("Origin: http://evil.example", "Mcp-Session-Id: x", "Content-Type: x", "Accept: x"),
    *("Mcp-Protocol-Version: " + MODERN, "Cookie: a=b", "Trailer: x", "Keep-Alive: timeout=0"),
    "\r\n".join(f"X-{n}: a" for n in range(500)),
]
ORIGINALS = [
    *(request(n, "tools/call", **call, _meta=stamp()) for n, call in enumerate(CALLS[4:8])),
    request(1, "initialize", protocolVersion=LATEST, **HELLO),
    request(1, "server/discover", _meta=stamp()),
]
BYTES = [b"\x00", b"\xff", b"\r", b"\n", b"\r\n", b"\r\n\r\n", b" ", b":", b"\t", b"\x16\x03\x01"]


@st.composite
def requests(draw: st.DrawFn) -> bytes:
    """One or two of them, as bytes."""
    data = b"".join(draw(_request()) for _ in range(draw(st.sampled_from([1, 1, 1, 2]))))
    for _ in range(draw(st.sampled_from([0, 0, 0, 0, 1, 2]))):
        start = draw(st.integers(0, min(len(data), 500)))
        end = start + draw(st.sampled_from([0, 0, 1, 10, len(data)]))
        data = data[:start] + draw(st.sampled_from([b"", *BYTES])) + data[end:]
    return Body(data)


MISTAKES = ["verb", "target", "version", "line", "line", "drop", "chunks", "body", "body"]


@st.composite
def _request(draw: st.DrawFn) -> bytes:
    wrong = draw(st.sets(st.sampled_from(MISTAKES), max_size=2))
    verb = draw(st.sampled_from(VERBS)) if "verb" in wrong else "POST"
    target = draw(st.sampled_from(TARGETS)) if "target" in wrong else "/mcp"
    version = draw(st.sampled_from(VERSIONS)) if "version" in wrong else "HTTP/1.1"
    message = draw(st.sampled_from(ORIGINALS))
    body = draw(bodies(st.just(message), 1)) if "body" in wrong else json.dumps(message).encode()
    head = ["Host: 127.0.0.1", f"Accept: {BOTH}", "Content-Type: application/json"]
    if message["method"] != "initialize":
        head += [f"Mcp-Protocol-Version: {MODERN}", f"Mcp-Method: {message['method']}"]
    if "name" in message["params"]:
        head.append(f"Mcp-Name: {message['params']['name']}")
    if "chunks" in wrong:
        head.append("Transfer-Encoding: chunked")
        right = f"{len(body):x}"
        size = draw(st.sampled_from([right, right, right, f"{right};x=y", "-1", "x", "f" * 17]))
        end = draw(st.sampled_from([b"0\r\n\r\n", b"0\r\nX: y\r\n\r\n", b"0\r\n", b""]))
        body = size.encode() + b"\r\n" + body + b"\r\n" + end
    else:
        head.append(f"Content-Length: {len(body)}")
    if "line" in wrong:
        head.insert(draw(st.integers(0, len(head))), draw(st.sampled_from(LINES)))
    if "drop" in wrong:
        head.pop(draw(st.integers(0, len(head) - 1)))
    first = f"{verb} {target} {version}"
    return "\r\n".join([first, *head, "", ""]).encode("latin-1") + body


# -- what comes back -----------------------------------------------------------------------------

STATUS_LINE = re.compile(rb"HTTP/1\.1 (\d{3}) [^\r\n]*\r\n")


def check(data: bytes, sent: bytes) -> None:
    """Whole answers, one behind the other."""
    while data:
        found = STATUS_LINE.match(data)
        assert found, data[:200]
        status = int(found[1])
        head, end, data = data.partition(b"\r\n\r\n")
        assert end, head
        if status == 100:
            continue
        assert status in STATUSES, (head, data[:500])
        named = (line.partition(b": ") for line in head.lower().split(b"\r\n")[1:])
        headers = {name: value for name, _, value in named}
        if b"content-length" in headers:
            size = int(headers[b"content-length"])
            body, data = data[:size], data[size:]
            assert len(body) == size
            if body:
                said = strict(body)
                assert isinstance(said, dict)
                assert "internal error" not in body.decode()
                assert said.get("id") in [None, *ids_in(sent)]
        elif headers.get(b"transfer-encoding") == b"chunked":
            _, end, data = data.partition(b"0\r\n\r\n")


@asynccontextmanager
async def open_served() -> AsyncGenerator[tuple[Served, Peer]]:
    """Our listeners, and the neighbour's connection."""
    with no_bugs(), scripted():
        async with open_world(CONFIG, GUARD) as world:
            quart = pages(
                world.manager,
                dict,
                lambda: True,
                Metrics(world.manager),
            )
            app = App(Security.of(CONFIG.http, None), world.endpoint, quart)
            async with serving(app) as served, served.peer() as neighbour:
                yield served, neighbour


async def ask(neighbour: Peer, port: int, number: int) -> None:
    args = {"server": "good", "tool": "echo", "args": {"text": "mine"}}
    params = {"name": "execute_tool", "arguments": args, "_meta": stamp()}
    body = json.dumps(request(number, "tools/call", **params))
    head = (
        f"POST /mcp?session=mine HTTP/1.1\nHost: 127.0.0.1:{port}\nAccept: {BOTH}\n"
        f"Content-Type: application/json\nMcp-Protocol-Version: {MODERN}\nMcp-Method: tools/call\n"
        f"Mcp-Name: execute_tool\nContent-Length: {len(body)}"
    )
    answer = await neighbour.ask(head, body)
    assert (answer.status, json.loads(answer.body)["id"]) == (200, number)
    assert json.loads(answer.body)["result"]["content"][0]["text"] == '{"text": "mine"}'


@MORE
@given(st.lists(requests(), min_size=1, max_size=4))
def test_any_bytes_over_a_socket(sent: list[bytes]) -> None:
    async def scenario() -> None:
        async with open_served() as (served, neighbour):
            for number, data in enumerate(sent):
                # Where the listeners are is not known when the bytes are made.
                data = data.replace(b"Host: 127.0.0.1\r", b"Host: 127.0.0.1:%d\r" % served.port)
                async with served.peer() as peer:
                    came = await talk(peer, data, LAST % served.port)
                check(came, data)
                await ask(neighbour, served.port, number)

    trio.run(scenario)


async def talk(peer: Peer, data: bytes, last: bytes) -> bytes:
    """Say it all and something to end with, and listen to the end."""
    came = b""
    try:
        await peer.send(data + last)
        with trio.move_on_after(PATIENCE):
            came = await peer.rest()
        await peer.stream.send_eof()  # what it said may want to go on
    except trio.BrokenResourceError:
        pass  # it has heard enough
    return came + await peer.rest()
