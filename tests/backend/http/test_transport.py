"""The HTTP transports: what travels in headers, what may grow, what must not end a connection."""

from __future__ import annotations

import hashlib
import json
import logging
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import pytest
import trio
import trio.testing
from mcp import MCPError
from mcp.shared.message import SessionMessage
from mcp_types import INVALID_PARAMS, JSONRPCRequest

from emceepee_trio.backend.connections import listening
from emceepee_trio.backend.connections.witness import NotRun, Unanswered
from emceepee_trio.backend.http.streamable import open_streamable
from emceepee_trio.config import Limits, Reconnect, Server
from emceepee_trio.errors import ConnectFailed
from emceepee_trio.model.events import ServerDisconnected
from emceepee_trio.model.json.intake import Measure
from http_child import open_http_child
from http_server import GONE, QUIET, HttpServer, Reply, Request, open_http_server
from play import MODERN
from recording import Running, running
from stalls import steps_measured

pytestmark = QUIET

GUARD = 60
SECRET = "hunter2"
LIMIT = 64 * 1024
SMALL = Limits(message=LIMIT)
LATER = {"reconnect": Reconnect(base_delay_ms=60_000)}
both_eras = pytest.mark.parametrize("era", ["handshake", "modern"])


def text(result: dict[str, Any]) -> Any:
    return json.loads(result["content"][0]["text"])


@pytest.mark.parametrize("path", ["/mcp", "/sse"])
async def test_nobody_waits_while_a_long_request_is_written(path: str, tmp_path: Path) -> None:
    many = [{"n": n} for n in range(200_000)]
    with trio.fail_after(GUARD):
        async with open_http_child(tmp_path) as server:
            async with running({"url": server.url.replace("/mcp", path)}) as it:
                with steps_measured() as longest:
                    assert text(await it.call("echo", a=many)) == {"a": many}
    assert longest() < 0.05


@pytest.mark.parametrize("kind", ["application/json", "text/event-stream"])
async def test_nobody_waits_while_the_answer_is_looked_for_among_very_many(kind: str) -> None:
    async def spoil(request: Request, reply: Reply) -> bool:
        if request.method != "tools/call":
            return False
        said: Any = {"jsonrpc": "2.0", "id": request.message["id"], "result": {"content": ["it"]}}
        others = [{"jsonrpc": "2.0", "id": n, "result": {}} for n in range(5000)]
        text = json.dumps([*others, said]).encode()
        is_stream = kind.endswith("stream")
        await reply.whole(200, b"data: %b\n\n" % text if is_stream else text, kind)
        return True

    with trio.fail_after(GUARD):
        async with open_http_server(HttpServer(spoil=spoil)) as server:
            async with running({"url": server.url}) as it:
                with steps_measured() as longest:
                    assert (await it.call("any"))["content"] == ["it"]
    assert longest() < 0.05


async def test_who_is_cancelled_leaves_no_connection_open() -> None:
    """The server's session cannot be ended then, but what is kept for further requests is ours."""
    said = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x"}}
    measure, at_once = Measure(LIMIT, LIMIT), 3
    with trio.fail_after(GUARD):
        async with open_http_server(HttpServer()) as server, trio.open_nursery() as nursery:
            entry = Server("one", url=server.url)
            with trio.CancelScope() as scope:
                opened = open_streamable(entry, "s", measure, restricted=False, auth=None)
                async with opened as (reads, writes, peer):
                    async with trio.open_nursery() as sending:
                        for n in range(at_once):
                            first = JSONRPCRequest(
                                jsonrpc="2.0", id=n, method="initialize", params=said
                            )
                            nursery.start_soon(reads.receive)
                            sending.start_soon(writes.send, SessionMessage(first))
                    assert peer.session_id is not None
                    (kept,) = writes._courier.channels._idle.values()
                    sockets = [channel.socket for channel in kept]
                    scope.cancel()
                    await trio.lowlevel.checkpoint()
            assert [each.fileno() for each in sockets] == [-1] * at_once


async def test_a_call_whose_rest_cannot_be_asked_for_may_have_run() -> None:
    async def spoil(request: Request, reply: Reply) -> bool:
        if request.method != "tools/call":
            return False
        await reply.events()
        await reply.event("", more="id: 1\nretry: 0\n")
        await server.stop()
        return True

    server = HttpServer(spoil=spoil)
    with trio.fail_after(GUARD):
        async with open_http_server(server):
            async with running({"url": server.url, **OFTEN}) as it:
                with pytest.raises(Unanswered) as caught:
                    await it.call("any")
                assert not isinstance(caught.value, NotRun)


async def test_nobody_waits_while_a_body_comes_byte_by_byte() -> None:
    async def spoil(request: Request, reply: Reply) -> bool:
        if request.method != "tools/call":
            return False
        said: Any = {"jsonrpc": "2.0", "id": request.message["id"], "result": {"content": ["it"]}}
        body = json.dumps(said).encode() + b" " * 20_000
        head = "HTTP/1.1 200 OK", "content-type: application/json", "transfer-encoding: chunked"
        chunks = b"".join(b"1\r\n%c\r\n" % byte for byte in body)
        await reply.raw("\r\n".join((*head, "", "")).encode() + chunks + b"0\r\n\r\n")
        await reply.hang_up()
        return True

    with trio.fail_after(GUARD):
        async with open_http_server(HttpServer(spoil=spoil)) as server:
            async with running({"url": server.url}) as it:
                await it.backend.connection()
                with steps_measured() as longest:
                    assert (await it.call("any"))["content"] == ["it"]
    assert longest() < 0.02


# -- headers -------------------------------------------------------------------------------------


@pytest.mark.parametrize("named", ["\u00e9", "a\tb"])
async def test_a_session_whose_id_cannot_be_sent_back_is_none(named: str) -> None:
    async def spoil(request: Request, reply: Reply) -> bool:
        if request.method != "initialize":
            return False
        result = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {}}
        said = {"jsonrpc": "2.0", "id": request.message["id"], "result": result}
        body = json.dumps(said).encode()
        head = "HTTP/1.1 200 OK", "content-type: application/json", f"mcp-session-id: {named}"
        size = f"content-length: {len(body)}"
        await reply.raw("\r\n".join((*head, size, "", "")).encode("latin-1") + body)
        await reply.hang_up()
        return True

    with trio.fail_after(GUARD):
        async with open_http_server(HttpServer(spoil=spoil)) as server:
            async with running({"url": server.url} | LATER) as it:
                with pytest.raises(ConnectFailed, match="is not of visible ASCII characters"):
                    await it.backend.connection()


async def test_the_headers_of_an_entry_go_with_every_request() -> None:
    headers = {"Authorization": f"Bearer {SECRET}", "X-Trace": "on"}
    with trio.fail_after(GUARD):
        async with open_http_server(HttpServer(listens=True)) as server:
            async with running({"url": server.url, "headers": headers}) as it:
                await it.call("echo")
                await server.wait_for_listener()
            assert {r.verb for r in server.requests} == {"POST", "GET", "DELETE"}
            for request in server.requests:
                assert request.headers["authorization"] == f"Bearer {SECRET}"
                assert request.headers["x-trace"] == "on"
                assert request.headers["accept-encoding"] == "identity"
    assert SECRET not in str(it.host.happened)


@pytest.mark.parametrize("era", ["handshake", "modern"])
async def test_a_server_may_be_told_which_session_calls(
    era: Literal["handshake", "modern"],
) -> None:
    """By a hash: the id is enough to join a session."""
    with trio.fail_after(GUARD):
        async with open_http_server(HttpServer(era)) as server:
            entry = {"url": server.url, "propagate_session": "X-Caller"}
            for session in ("one", "one", "two", "default", "pending-1"):
                async with running(entry, session=session) as it:
                    await it.call("echo")
            calls = [r.headers.get("x-caller") for r in server.of("tools/call")]
            assert calls[0] == calls[1] == hashlib.sha256(b"one").hexdigest()
            assert calls[2] == hashlib.sha256(b"two").hexdigest()
            assert calls[3:] == [None, None]
            assert {r.headers.get("x-caller") for r in server.requests} == {*calls}


async def test_a_server_may_be_handed_our_session_id_to_begin_with() -> None:
    with trio.fail_after(GUARD):
        async with open_http_server(HttpServer()) as server:
            entry = {"url": server.url, "propagate_session": "Mcp-Session-Id", "era": "handshake"}
            async with running(entry, session="ours") as it:
                await it.call("echo", a="initialize")  # which is no handshake
            assert server.of("initialize")[0].headers["mcp-session-id"] == "ours"
            given = {r.headers["mcp-session-id"] for r in server.requests[1:]}
            assert len(given) == 1
            assert given.isdisjoint({"ours"})
            assert server.of("DELETE")
            async with running(entry, session="default") as it:
                await it.call("echo")
            assert "mcp-session-id" not in server.of("initialize")[1].headers


@pytest.mark.parametrize("path", ["mcp", "sse"])
@pytest.mark.parametrize("status", [307, 500])
async def test_neither_secrets_nor_tracebacks_get_into_logs(
    path: str, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    async def spoil(request: Request, reply: Reply) -> bool:
        if request.method == "tools/call":
            await reply.whole(status, location=f"http://elsewhere.example/?key={SECRET}")
        return request.method == "tools/call"

    caplog.set_level("DEBUG")
    with trio.fail_after(GUARD):
        async with open_http_server(HttpServer(spoil=spoil)) as server:
            url = server.url.replace("mcp", path).replace("//", f"//user:{SECRET}@")
            entry = {"url": f"{url}?key={SECRET}", "headers": {"X-Api-Key": SECRET}}
            async with running(entry | LATER) as it:
                with pytest.raises(MCPError) as caught:
                    await it.call("echo")
                await server.stop()
                with pytest.raises((MCPError, ConnectFailed)):
                    await it.call("echo")
        logging.getLogger("mcp.client.sse").warning("of somebody who uses the SDK beside us")
    said = [str(record.__dict__) + record.getMessage() for record in caplog.records]
    assert any("server_disconnected" in line for line in said)
    assert any("beside us" in line for line in said)
    assert not [line for line in said if SECRET in line]
    assert not [record for record in caplog.records if record.exc_info]
    assert SECRET not in f"{caught.value} {it.host.happened} {it.backend.last_error}"


async def test_the_modern_era_repeats_in_headers_what_a_gateway_wants_to_see() -> None:
    place = {"type": "string", "x-mcp-header": "Place"}
    tool = {"inputSchema": {"type": "object", "properties": {"at": place}}}
    bad = {"inputSchema": {"properties": {"at": {"x-mcp-header": "Pla ce\r\nX-Evil: 1"}}}}
    with trio.fail_after(GUARD):
        async with (
            open_http_server(HttpServer("modern")) as server,
            running({"url": server.url}) as it,
        ):
            client = await it.backend.connection()
            params = {"name": "echo", "arguments": {"at": "here"}}
            await client.request("tools/call", params, tool=tool)
            await client.request("tools/call", {"name": "grüße"}, tool=None)
            assert text(await client.request("tools/call", params, tool=bad)) == {"at": "here"}
            first, second, third = (request.headers for request in server.of("tools/call"))
    assert first["mcp-protocol-version"] == MODERN
    assert (first["mcp-method"], first["mcp-name"]) == ("tools/call", "echo")
    assert first["mcp-param-place"] == "here"
    assert second["mcp-name"] == "=?base64?Z3LDvMOfZQ==?="
    assert not [name for name in third if "pla" in name or "evil" in name]


async def test_the_handshake_era_says_its_version_and_its_session() -> None:
    with trio.fail_after(GUARD):
        async with open_http_server(HttpServer()) as server, running({"url": server.url}) as it:
            await it.call("echo")
            (call,) = server.of("tools/call")
            assert call.headers["mcp-protocol-version"] == "2025-11-25"
            assert {call.headers["mcp-session-id"]} == server.sessions


# -- what must not end a connection --------------------------------------------------------------


def nested(levels: int) -> Any:
    value: Any = []
    for _ in range(levels):
        value = [value]
    return value


@both_eras
@pytest.mark.parametrize("argument", ["\ud800", nested(400)], ids=["surrogate", "deep"])
async def test_what_json_cannot_say_fails_its_own_call_only(era: Any, argument: Any) -> None:
    with trio.fail_after(GUARD):
        async with (
            open_http_server(HttpServer(era)) as server,
            running({"url": server.url}) as it,
            trio.open_nursery() as nursery,
        ):
            nursery.start_soon(it.call, "slow")
            await server.wait_for("tools/call")
            with pytest.raises(MCPError) as caught:
                await it.call("echo", x=argument)
            assert caught.value.error.code == INVALID_PARAMS
            if isinstance(argument, str):
                with pytest.raises(MCPError):
                    await it.call(argument)
            server.release.set()
            assert text(await it.call("echo", a=1)) == {"a": 1}
            assert not it.host.all(ServerDisconnected)


async def test_an_answer_that_json_cannot_say_is_an_error_for_the_backend() -> None:
    with trio.fail_after(GUARD):
        async with (
            open_http_server(HttpServer()) as server,
            running({"url": server.url}) as it,
            trio.open_nursery() as nursery,
        ):
            heard: list[Any] = []

            async def call() -> None:
                heard.append(text(await it.call("ask")))

            nursery.start_soon(call)
            (await it.host.question()).respond({"action": "accept", "content": {"x": "\ud800"}})
        assert heard[0]["error"]["code"] == INVALID_PARAMS


async def test_more_calls_at_once_than_a_pool_has_connections() -> None:
    with trio.fail_after(GUARD):
        async with (
            open_http_server(HttpServer()) as server,
            running({"url": server.url}) as it,
            trio.open_nursery() as nursery,
        ):
            for _ in range(120):
                nursery.start_soon(it.call, "slow")
            await server.wait_for("tools/call", 120)
            server.release.set()


@pytest.mark.parametrize("streams", [False, True])
async def test_a_call_may_be_silent_for_hours(
    streams: bool, mock_clock: trio.testing.MockClock
) -> None:
    async with (
        open_http_server(HttpServer(streams=streams, listens=True)) as server,
        running({"url": server.url}) as it,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(it.call, "slow")
        await server.wait_for("tools/call")
        await server.wait_for_listener()
        for _ in range(10):
            mock_clock.jump(3600)
            await trio.testing.wait_all_tasks_blocked(0.01)
        server.release.set()


async def test_a_stream_that_breaks_off_under_a_server_that_lives_fails_one_call() -> None:
    async def spoil(request: Request, reply: Reply) -> bool:
        if request.method == "tools/call" and not server.of("ping"):
            await reply.events()
            await reply.data(b": one moment\n\n")
            raise trio.BrokenResourceError
        return False

    server = HttpServer(spoil=spoil)
    with trio.fail_after(GUARD):
        async with open_http_server(server), running({"url": server.url}) as it:
            with pytest.raises(MCPError, match="ended without a response"):
                await it.call("echo")
            assert len(server.of("ping")) == 1  # it was looked for
            await it.call("echo")
            assert not it.host.all(ServerDisconnected)


async def test_an_answer_may_come_on_another_stream_and_ends_the_wait_for_it_on_its_own() -> None:
    async def spoil(request: Request, reply: Reply) -> bool:
        if request.method != "tools/call":
            return False
        listener = await server.wait_for_listener()
        said = {"content": [{"type": "text", "text": "elsewhere"}]}
        await listener.event({"jsonrpc": "2.0", "id": request.message["id"], "result": said})
        await trio.sleep_forever()
        raise AssertionError

    with trio.fail_after(GUARD):
        async with open_http_server(HttpServer(listens=True, spoil=spoil)) as server:
            async with running({"url": server.url}) as it:
                result = await it.call("any")
                assert result["content"][0]["text"] == "elsewhere"
                await server.of("tools/call")[0].aborted.wait()


async def test_whoever_is_gone_leaves_nothing_under_way() -> None:
    with trio.fail_after(GUARD):
        async with open_http_server(HttpServer()) as server:
            async with running({"url": server.url}) as it, trio.open_nursery() as nursery:
                nursery.start_soon(it.call, "never")
                call = await server.wait_for("tools/call")
                nursery.cancel_scope.cancel()
            await call.aborted.wait()


# -- what may grow -------------------------------------------------------------------------------


async def too_long(it: Running, call: Any) -> None:
    await it.backend.connection()
    with pytest.raises(MCPError, match="Connection closed"):
        await call
    (lost,) = it.host.all(ServerDisconnected)
    assert lost.reason == f"message too long (limit {LIMIT} bytes)"


@both_eras
@pytest.mark.parametrize("streams", [False, True])
async def test_an_answer_that_is_too_long_ends_the_connection(era: Any, streams: bool) -> None:
    with trio.fail_after(GUARD):
        async with (
            open_http_server(HttpServer(era, streams)) as server,
            running({"url": server.url} | LATER, limits=SMALL) as it,
        ):
            assert len((await it.call("big", size=LIMIT - 1000))["content"][0]["text"]) > LIMIT // 2
            await too_long(it, it.call("big", size=LIMIT))


@pytest.mark.parametrize("end", [b"\n\n", b"\r\r", b"\r\n\r\n"])
@pytest.mark.parametrize("cut", [False, True])
async def test_a_stream_may_be_of_any_length_but_its_events_may_not(end: bytes, cut: bool) -> None:
    half = b'event: message\ndata: {"jsonrpc":"2.0","method":"notifications/x","params":{"x":"'
    half = half.replace(b"\n", end[: len(end) // 2]) + b"x" * (LIMIT // 2) + b'"}}'
    with trio.fail_after(GUARD):
        async with (
            open_http_server(HttpServer(listens=True)) as server,
            running({"url": server.url} | LATER, limits=SMALL) as it,
        ):
            await it.backend.connection()
            stream = await server.wait_for_listener()
            for n in range(1, 6):
                if cut:
                    for piece in (half, *(end[i : i + 1] for i in range(len(end)))):
                        await stream.data(piece)
                        await trio.testing.wait_all_tasks_blocked(0.005)
                else:
                    await stream.data(half + end)
                await stream.data(b":\n")  # a CR might still be half of a line's end
                await it.host.until(lambda: len(it.host.notices) == n)  # noqa: B023 - called in this round only
            assert not it.host.all(ServerDisconnected)
            with suppress(*GONE):
                await stream.data(b"data: " + b"x" * (LIMIT // 2))
                await stream.data(b"x" * LIMIT)
            lost = await it.host.wait_for(ServerDisconnected)
            assert lost.reason == f"message too long (limit {LIMIT} bytes)"


# -- how often a stream is asked for -------------------------------------------------------------

PAUSE = 0.1
OFTEN = {"reconnect": Reconnect(base_delay_ms=round(PAUSE * 1000), max_delay_ms=300)}


def pauses(times: list[float]) -> list[float]:
    return [later - sooner for sooner, later in pairwise(times)]


@pytest.mark.parametrize("retry", ["retry: 0\n", "retry: 0\nid: 1\n", "retry: 99999999999\n", ""])
async def test_a_stream_that_ends_at_once_is_asked_for_no_faster_than_configured(
    retry: str,
) -> None:
    asked: list[float] = []

    async def spoil(request: Request, reply: Reply) -> bool:
        if request.verb != "GET":
            return False
        asked.append(trio.current_time())
        await reply.events()
        await reply.data(f"{retry}data:\n\n".encode())
        await reply.end()
        return True

    with trio.fail_after(GUARD):
        async with (
            open_http_server(HttpServer(spoil=spoil)) as server,
            running({"url": server.url, **OFTEN}) as it,
        ):
            await it.call("echo")
            await server.wait_for("GET", 4)
            assert it.backend.client is not None
    assert min(pauses(asked)) >= PAUSE * 0.99
    assert pauses(asked)[2] >= 2 * PAUSE


async def test_an_answer_that_comes_in_pieces_is_asked_for_no_faster_either() -> None:
    asked: list[float] = []

    async def spoil(request: Request, reply: Reply) -> bool:
        if request.method != "tools/call" and "last-event-id" not in request.headers:
            return False
        asked.append(trio.current_time())
        await reply.events()
        await reply.data(b"retry: 0\nid: 1\ndata:\n\n")
        await reply.end()
        return True

    with trio.fail_after(GUARD):
        async with (
            open_http_server(HttpServer(spoil=spoil)) as server,
            running({"url": server.url, **OFTEN}) as it,
            trio.open_nursery() as nursery,
        ):
            await it.backend.connection()
            nursery.start_soon(it.call, "slow")
            while len(asked) < 5:
                await server.wait_for("GET", len(server.of("GET")) + 1)
            nursery.cancel_scope.cancel("enough")
    assert min(pauses(asked)) >= PAUSE * 0.99


async def test_a_modern_stream_that_ends_at_once_is_asked_for_ever_more_slowly(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(listening, "AGAIN", 0)
    asked: list[float] = []

    async def spoil(request: Request, reply: Reply) -> bool:
        if request.method != "subscriptions/listen":
            return False
        asked.append(trio.current_time())
        message = request.message
        told = {"notifications": message["params"]["notifications"]}
        method = "notifications/subscriptions/acknowledged"
        await reply.events()
        await reply.event({"jsonrpc": "2.0", "method": method, "params": told})
        await reply.event({"jsonrpc": "2.0", "id": message["id"], "result": {}})
        await reply.end()
        return True

    with trio.fail_after(GUARD):
        async with (
            open_http_server(HttpServer("modern", spoil=spoil)) as server,
            running({"url": server.url, **OFTEN}),
        ):
            await server.wait_for("subscriptions/listen", 4)
    assert min(pauses(asked)) >= PAUSE * 0.99
    assert pauses(asked)[2] >= 2 * PAUSE


# -- what was not run ------------------------------------------------------------------------------


async def test_what_nobody_was_there_for_has_not_run_and_is_asked_again() -> None:
    async def echo(it: Running) -> dict[str, Any]:
        asked = {"name": "echo", "arguments": {"text": "hi"}}
        return await it.backend.ask(lambda client: client.request("tools/call", asked))

    with trio.fail_after(GUARD):
        async with open_http_server(HttpServer()) as server, trio.open_nursery() as nursery:
            async with running({"url": server.url} | LATER) as it:
                await echo(it)
                await gone(server)
                client = await it.backend.connection()
                with pytest.raises(NotRun):
                    await client.request("tools/call", {"name": "echo", "arguments": {}})
                with pytest.raises(ConnectFailed) as caught:
                    await echo(it)
                assert caught.value.details is not None
                assert caught.value.details["may_have_run"] is False
                await nursery.start(server.run)
                assert text(await echo(it)) == {"text": "hi"}
            await server.stop()


async def gone(server: HttpServer) -> None:
    """Whoever has a connection to it has heard of that, too."""
    await server.stop()
    await trio.testing.wait_all_tasks_blocked(0.05)
