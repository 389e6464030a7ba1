"""What we rely on of others beyond what they promise, asserted: an upgrade shall fail here, loudly.

Most of it would else break in silence: a bound stops holding, a policy is not asked any more. What
is relied on is named in `backend/connections/sdk.py`, `backend/http/network.py`, `front/sdk.py` and
`serving/requests.py`, and nowhere else in the package.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Self

import anyio
import attrs
import httpx2
import pytest
import trio
from mcp import MCPError
from mcp.client.sse import sse_client
from mcp.server import Server
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.mcpserver import MCPServer
from mcp.server.runner import serve_loop
from mcp.shared.dispatcher import CallOptions
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp.shared.message import SessionMessage
from mcp_types import (
    CONNECTION_CLOSED,
    ErrorData,
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
)
from trio.testing import wait_all_tasks_blocked

import emceepee_trio
from emceepee_trio.backend.connections import sdk
from emceepee_trio.backend.http.network import Forbidden, RestrictedTransport, through_proxy
from emceepee_trio.front.sdk import raw_notify
from emceepee_trio.serving.asgi import Receive, Scope, Send
from emceepee_trio.serving.requests import MAX_HEAD
from http_server import QUIET, HttpServer, Reply, Request, open_http_server
from raw_http import Peer, serving

pytestmark = QUIET

GUARD = 60
PACKAGE = Path(emceepee_trio.__file__).parent
PROJECT = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text())
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {}}

# The SDK's transport of old.

sender: ContextVar[str] = ContextVar("sender", default="nobody")


@attrs.define(eq=False)
class Counted(httpx2.AsyncByteStream):
    """As our bodies are: in place of what the response had, and counting."""

    inner: Any
    count: Callable[[int], None]

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self.inner:
            self.count(len(chunk))
            yield chunk

    async def aclose(self) -> None:
        await self.inner.aclose()


class Watched(httpx2.AsyncClient):
    """As ours is: sees each request of the SDK, and replaces the body of each response."""

    def __init__(self) -> None:
        super().__init__(event_hooks={"response": [self.replace]}, timeout=GUARD)
        self.sent: list[tuple[str, str]] = []
        """Each request's verb, and whose it is."""
        self.read = 0

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        self.sent.append((request.method, sender.get()))
        assert options["stream"] is True  # or its body would be read before we see it
        return await super().send(request, **options)

    async def replace(self, response: httpx2.Response) -> None:
        def count(size: int) -> None:
            self.read += size

        response.stream = Counted(response.stream, count)


@asynccontextmanager
async def transport(server: HttpServer, client: Watched) -> AsyncGenerator[Any]:
    url = server.url.replace("/mcp", "/sse")
    async with sse_client(url, httpx_client_factory=lambda *_, **__: client) as streams:
        yield streams


def message(method: str, request_id: int | None = None, **params: Any) -> SessionMessage:
    if request_id is None:
        return SessionMessage(JSONRPCNotification(jsonrpc="2.0", method=method, params=params))
    return SessionMessage(
        JSONRPCRequest(jsonrpc="2.0", id=request_id, method=method, params=params)
    )


async def test_each_message_is_sent_in_the_context_of_its_sender_and_its_answer_is_read_by_us() -> (
    None
):
    client = Watched()
    with trio.fail_after(GUARD):
        async with (
            open_http_server(HttpServer()) as server,
            transport(server, client) as (reads, writes),
        ):
            for number, who in enumerate(("ann", "bob", "cleo")):
                token = sender.set(who)
                if number == 1:
                    await writes.send(message("notifications/initialized"))
                else:
                    await writes.send(message("initialize", number, **HELLO))
                sender.reset(token)
                if number != 1:
                    answer = await reads.receive()
                    assert answer.message.id == number
            while len([verb for verb, _ in client.sent if verb == "POST"]) < 3:
                await wait_all_tasks_blocked()
            posts = [who for verb, who in client.sent if verb == "POST"]
            assert sorted(posts) == ["ann", "bob", "cleo"]
            assert client.read > 100
            assert len(client.sent) >= len(server.requests)  # there is no other way out


@pytest.mark.parametrize(
    ("verb", "status", "location", "is_followed"),
    [
        ("POST", 307, "/other", True),
        ("POST", 308, "http://here.example/other", True),
        ("POST", 302, "/other", False),
        ("POST", 307, "http://elsewhere.example/", False),
        ("POST", 307, "http://user:secret@here.example/", False),
        ("GET", 302, "/other", True),
        ("POST", 400, "/other", False),
    ],
)
async def test_the_transport_follows_what_stays_where_it_was(
    verb: str, status: int, location: str, is_followed: bool
) -> None:
    def answer(request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(status, headers={"location": location})

    async with httpx2.AsyncClient(transport=httpx2.MockTransport(answer)) as client:
        response = await client.request(verb, "http://here.example/mcp")
        assert sdk.is_followed(response) is is_followed


async def test_a_stream_that_ends_before_it_names_an_endpoint_is_a_runtime_error() -> None:
    async def cut(request: Request, reply: Reply) -> bool:
        await reply.events()
        await reply.end()
        return True

    with trio.fail_after(GUARD):
        async with open_http_server(HttpServer(spoil=cut)) as server:
            with pytest.RaisesGroup(RuntimeError, flatten_subgroups=True, allow_unwrapped=True):
                async with transport(server, Watched()):
                    raise AssertionError("it named none")


# The SDK's dispatcher.


@asynccontextmanager
async def dispatcher() -> AsyncGenerator[tuple[JSONRPCDispatcher[Any], Any, Any]]:
    """One that runs, and both ends of its peer."""
    to_it, reads = anyio.create_memory_object_stream[Any](10)
    writes, from_it = anyio.create_memory_object_stream[Any](10)
    one = JSONRPCDispatcher[Any](reads, writes)

    async def on_request(*_: object) -> dict[str, Any]:
        return {}

    async def on_notify(*_: object) -> None:
        raise AssertionError("nobody notifies")

    async with trio.open_nursery() as nursery, to_it, from_it:
        await nursery.start(one.run, on_request, on_notify)
        yield one, to_it, from_it
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("how", ["the end", "a cancellation", "a crash"])
async def test_the_dispatcher_leaves_what_it_reads_before_it_fails_the_calls(how: str) -> None:
    seen: list[str] = []
    to_it, inner = anyio.create_memory_object_stream[Any](10)
    writes, from_it = anyio.create_memory_object_stream[Any](10)

    @attrs.define(eq=False)
    class Reads:
        async def __aenter__(self) -> Self:
            return self

        async def __aexit__(self, *exc: object) -> None:
            seen.append("left")
            await inner.aclose()

        def __aiter__(self) -> Reads:
            return self

        async def __anext__(self) -> Any:
            item = await inner.__anext__()
            raise KeyError(item)

    one = JSONRPCDispatcher[Any](Reads(), writes)  # type: ignore[arg-type]  # as much as is used

    async def ask() -> None:
        with pytest.raises(MCPError) as caught:
            await one.send_raw_request("ping", None, {"cancel_on_abandon": False})
        assert caught.value.error.code == CONNECTION_CLOSED
        seen.append("failed")

    async def nothing(*_: object) -> Any:
        raise AssertionError("nobody says anything")

    async def run(  # noqa: ASYNC128 - the dispatcher says when it has started
        *, task_status: trio.TaskStatus[trio.CancelScope]
    ) -> None:
        with trio.CancelScope() as scope:
            try:
                started = _Told(task_status, scope)
                await one.run(nothing, nothing, task_status=started)
            except* KeyError:
                pass

    async with trio.open_nursery() as nursery, from_it, to_it:
        scope = await nursery.start(run)
        nursery.start_soon(ask)
        await wait_all_tasks_blocked()
        match how:
            case "the end":
                await to_it.aclose()
            case "a cancellation":
                scope.cancel()
            case _:
                await to_it.send("crash")
        await wait_all_tasks_blocked()
    assert seen == ["left", "failed"]


@attrs.frozen
class _Told:
    """The dispatcher's word that it has begun, with the scope in which it does."""

    _status: trio.TaskStatus[trio.CancelScope]
    _scope: trio.CancelScope

    def started(self, value: object = None) -> None:
        self._status.started(self._scope)


async def test_the_dispatcher_takes_our_ids_and_leaves_cancelling_to_us() -> None:
    async with dispatcher() as (one, _, from_it):
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:
                options: CallOptions = {"request_id": 1_000_007, "cancel_on_abandon": False}
                nursery.start_soon(one.send_raw_request, "ping", None, options)
                assert (await from_it.receive()).message.id == 1_000_007
                scope.cancel()
        await wait_all_tasks_blocked()
        with pytest.raises(anyio.WouldBlock):
            from_it.receive_nowait()


async def test_who_asks_is_told_an_answer_by_who_has_read_it() -> None:
    writes, from_it = anyio.create_memory_object_stream[Any](10)
    to_it, reads = anyio.create_memory_object_stream[Any](0)
    ours = sdk.Dispatcher(reads, writes)
    said: list[Any] = []

    async def ask(request_id: int) -> None:
        with suppress(MCPError):
            said.append(await ours.send_raw_request("ping", None, {"request_id": request_id}))
            return
        said.append("refused")

    async def nothing(*_: object) -> Any:
        raise AssertionError("nobody says anything")

    with trio.fail_after(GUARD):
        async with trio.open_nursery() as nursery, to_it, from_it:
            nursery.start_soon(ours.run, nothing, nothing)
            nursery.start_soon(ask, 1)
            nursery.start_soon(ask, 2)
            await wait_all_tasks_blocked()
            ours.settle(JSONRPCResponse(jsonrpc="2.0", id=1, result={"x": 1}))
            ours.settle(JSONRPCResponse(jsonrpc="2.0", id=3, result={}))  # nobody's
            await wait_all_tasks_blocked()
            assert said == [{"x": 1}]
            error = ErrorData(code=-32000, message="no")
            ours.settle(JSONRPCError(jsonrpc="2.0", id=2, error=error))
            await wait_all_tasks_blocked()
            assert said == [{"x": 1}, "refused"]
            nursery.cancel_scope.cancel()


# The SDK's server.


async def test_a_notification_goes_out_as_it_is_when_its_request_is_over() -> None:
    """As the log messages of servers do, with whatever fields they have."""
    server = Server[Any]("foundation")
    notifiers: list[Any] = []

    async def remember(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        notifiers.append(raw_notify(ctx))
        return await call_next(ctx)

    server.middleware.append(remember)
    to_it, reads = anyio.create_memory_object_stream[Any](10)
    writes, from_it = anyio.create_memory_object_stream[Any](10)
    with trio.fail_after(GUARD):
        async with trio.open_nursery() as nursery, to_it, from_it:

            async def serve() -> None:
                await serve_loop(server, reads, writes, lifespan_state=None)

            nursery.start_soon(serve)
            await to_it.send(message("initialize", 1, **HELLO | {"clientInfo": CLIENT}))
            assert (await from_it.receive()).message.id == 1
            odd = {"level": "no such level", "data": None, "x-vendor": [1]}
            await notifiers[0]("notifications/message", odd)
            told = (await from_it.receive()).message
            assert (told.method, told.params) == ("notifications/message", odd)
            nursery.cancel_scope.cancel()


CLIENT = {"name": "test", "version": "0"}


def test_the_demo_server_reaches_what_is_below_the_convenient_one() -> None:
    assert isinstance(MCPServer("demo")._lowlevel_server, Server)


# httpx2 and httpcore2.


class Everywhere(trio.abc.HostnameResolver):
    """Every name leads to the metadata of a cloud."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def getaddrinfo(self, host: Any, port: Any, *args: Any, **options: Any) -> Any:
        self.asked.append(host.decode() if isinstance(host, bytes) else host)
        return await trio.socket.getaddrinfo("169.254.169.254", port)

    async def getnameinfo(self, sockaddr: Any, flags: int) -> Any:
        raise AssertionError("nobody asks that")


@pytest.mark.parametrize("proxy", [None, "http://127.0.0.1:1"])
@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_our_network_is_asked_for_each_connection_and_proxies_for_none(
    scheme: str, proxy: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = Everywhere()
    trio.socket.set_custom_hostname_resolver(names)
    if proxy is not None:
        monkeypatch.setenv("ALL_PROXY", proxy)
        monkeypatch.setenv(f"{scheme.upper()}_PROXY", proxy)
    ours = RestrictedTransport(httpx2.create_ssl_context(), httpx2.Limits())
    with trio.fail_after(GUARD):
        async with httpx2.AsyncClient(transport=ours) as client:
            for _ in range(2):
                with pytest.raises(Forbidden, match=r"leads to 169\.254\.169\.254"):
                    await client.get(f"{scheme}://tools.example/")
    assert names.asked == ["tools.example", "tools.example"]


async def test_httpx_tells_for_which_urls_the_environment_names_a_proxy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    monkeypatch.setenv("no_proxy", "direct.example")
    async with httpx2.AsyncClient() as client:
        for url in ("https://tools.example/", "http://direct.example/"):
            assert through_proxy(client, httpx2.URL(url)) is None
        proxy = through_proxy(client, httpx2.URL("http://tools.example/"))
        assert isinstance(proxy, httpx2.AsyncHTTPTransport)
    async with httpx2.AsyncClient(trust_env=False) as client:
        assert through_proxy(client, httpx2.URL("http://tools.example/")) is None


async def test_our_network_is_asked_where_a_redirect_leads() -> None:
    async def elsewhere(request: Request, reply: Reply) -> bool:
        await reply.whole(307, location="http://169.254.169.254/latest")
        return True

    ours = RestrictedTransport(httpx2.create_ssl_context(), httpx2.Limits())
    with trio.fail_after(GUARD):
        async with (
            open_http_server(HttpServer(spoil=elsewhere)) as server,
            httpx2.AsyncClient(transport=ours, follow_redirects=True) as client,
        ):
            with pytest.raises(Forbidden, match=r"169\.254\.169\.254 is"):
                await client.get(server.url)


# llhttp; what else it takes and what it refuses is in serving/test_malformed.py.


async def hello(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] != "http":
        raise AssertionError(scope["type"])
    headers = [(b"content-length", b"5")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"hello"})


H2C = "upgrade: h2c\nconnection: upgrade, http2-settings\nhttp2-settings: AAMAAABkAAQAAP__"
WEBSOCKET = """upgrade: websocket
connection: upgrade
sec-websocket-version: 13
sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA=="""


@pytest.mark.parametrize(
    "head", [f"GET / HTTP/1.1\nhost: a\n{H2C}", f"GET / HTTP/1.1\nhost: a\n{WEBSOCKET}"]
)
async def test_nothing_but_http_1_is_spoken(head: str) -> None:
    async with serving(hello) as served:
        answer = await served.ask(head)
        assert (answer.status, answer.body) == (200, b"hello")


@pytest.mark.parametrize(
    ("head", "status"),
    [
        ("GET / HTTP/1.1\nhost: a\nx: " + "x" * MAX_HEAD, 431),  # in one piece
        ("GET / HTTP/1.1\nbad header", 400),
        ("PRI * HTTP/2.0", 400),
        ("POST / HTTP/1.1\nhost: a\ntransfer-encoding: gzip", 501),
    ],
)
async def test_what_is_refused_is_refused_in_our_words(head: str, status: int) -> None:
    async with serving(hello) as served:
        answer = await served.ask(head)
        assert answer.status == status
        assert b'"error"' in answer.body
        assert answer.headers["connection"] == "close"


async def test_a_head_that_never_ends_is_refused() -> None:
    async with serving(hello) as served, served.peer() as peer:
        await peer.send(b"GET / HTTP/1.1\r\nx: " + b"x" * (2 * MAX_HEAD))
        assert (await peer.answer()).status == 431


async def test_a_head_and_its_body_are_one_piece() -> None:
    async with serving(hello) as served, served.peer() as peer:
        await peer.send("GET / HTTP/1.1\nhost: a\n\n")
        with trio.fail_after(GUARD):
            came = bytes(await peer.stream.receive_some(65536))
        assert came.endswith(b"\r\n\r\nhello")


async def test_a_drain_ends_connections_with_their_answers() -> None:
    go_on, is_there = trio.Event(), trio.Event()

    async def slow(scope: Scope, receive: Receive, send: Send) -> None:
        is_there.set()
        await go_on.wait()
        await hello(scope, receive, send)

    async def ask(peer: Peer) -> None:
        answer = await peer.ask("GET / HTTP/1.1\nhost: a")
        assert answer.headers["connection"] == "close"
        assert not await peer.more()

    with trio.fail_after(GUARD):
        async with serving(slow, grace=GUARD) as served, served.peer() as peer:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(ask, peer)
                await is_there.wait()
                served.drain.begin()
                go_on.set()


# Where all of that is.

MAY = {
    "backend/connections/sdk.py": {"_httpx_utils"},
    "backend/http/network.py": {"_transport", "_transport_for_url"},
    "front/sdk.py": {"_connection"},
    "demo_backend.py": {"_lowlevel_server"},  # a program of its own
}
PRIVATE = {name for names in MAY.values() for name in names} | {"_pool"}


FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def private_names(source: str) -> set[str]:
    """What it imports from private places, and what it uses or overrides of PRIVATE."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and not node.level and node.module != "__future__":
            found |= {*(node.module or "").split("."), *(alias.name for alias in node.names)}
        elif isinstance(node, ast.Import):
            found |= {part for alias in node.names for part in alias.name.split(".")}
        elif isinstance(node, ast.Attribute) and node.attr in PRIVATE:
            if not (isinstance(node.value, ast.Name) and node.value.id == "self"):
                found.add(node.attr)  # else it may be one of ours
        elif isinstance(node, ast.ClassDef):
            found |= {part.name for part in node.body if isinstance(part, FUNCTIONS)} & PRIVATE
    return {name for name in found if re.match("_[^_]", name)}


@pytest.mark.parametrize(
    "path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: str(path.relative_to(PACKAGE))
)
def test_private_names_of_others_are_in_their_place(path: Path) -> None:
    where = str(path.relative_to(PACKAGE))
    assert private_names(path.read_text()) == MAY.get(where, set())


@pytest.mark.parametrize("name", ["mcp", "mcp-types", "hypercorn", "h11", "httpx2", "httpcore2"])
def test_whose_private_parts_are_used_is_capped_to_what_was_tested(name: str) -> None:
    wanted = PROJECT["project"]["dependencies"]
    (versions,) = (each.removeprefix(name) for each in wanted if re.match(rf"{name}[^\w-]", each))
    major, lowest, major_again, cap = re.findall(r"\d+", versions)
    assert versions == f">={major}.{lowest},<{major_again}.{cap}"
    assert (int(major_again), int(cap)) == (int(major), int(lowest) + 1)
