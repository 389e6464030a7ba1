from __future__ import annotations

import resource
import socket
from collections.abc import Callable

import attrs
import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from emceepee_trio.front import http1, listen
from emceepee_trio.front.connection import PATIENCE, PIECE, SEND_PATIENCE, Phase
from emceepee_trio.front.wire import (
    ClientGone,
    Message,
    Receive,
    Scope,
    Send,
    read_body,
    send_bytes,
)
from fake_backends import until
from raw_http import Peer, serving

GET = "GET / HTTP/1.1\nHost: x"
GUARD = 60
SHORT = 0.05
"""Seconds."""


@attrs.define(eq=False)
class App:
    """Answers with the body it got; what else depends on the path."""

    size: int = 3_000_000
    gone: trio.Event = attrs.field(factory=trio.Event)
    """Somebody's client has gone."""
    busy: trio.Event = attrs.field(factory=trio.Event)
    """Somebody is being served."""
    go_on: trio.Event = attrs.field(factory=trio.Event)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        match scope["path"]:
            case "/deaf":
                await send_bytes(send, 401)
            case "/endless":
                await self.endless(receive, send)
            case "/wait":
                self.busy.set()
                await self.go_on.wait()
                await send_bytes(send, 200, b"waited")
            case "/forever":
                self.busy.set()
                await disconnected(receive)
                self.gone.set()
            case "/crash":
                raise ValueError("a bug")
            case "/large":
                await send_bytes(send, 200, b"x" * self.size)
            case _:
                await self.echo(receive, send)

    async def echo(self, receive: Receive, send: Send) -> None:
        try:
            await send_bytes(send, 200, await read_body(receive, 1_000_000))
        except ClientGone:
            self.gone.set()

    async def endless(self, receive: Receive, send: Send) -> None:
        async with trio.open_nursery() as nursery:

            async def stop_when_gone() -> None:
                await disconnected(receive)
                nursery.cancel_scope.cancel()

            nursery.start_soon(stop_when_gone)
            await send({"type": "http.response.start", "status": 200, "headers": []})
            while True:
                self.busy.set()
                piece: Message = {
                    "type": "http.response.body",
                    "body": b"x" * 65536,
                    "more_body": True,
                }
                await send(piece)
        self.gone.set()


async def disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def test_a_connection_serves_more_than_a_thousand_requests() -> None:
    with trio.fail_after(GUARD):
        async with serving(App()) as served, served.peer() as peer:
            for number in range(1100):
                answer = await peer.ask(
                    "POST / HTTP/1.1\nHost: x\nContent-Length: 4", f"{number:4}"
                )
                assert answer.body == b"%4d" % number


async def test_requests_sent_at_once_are_answered_in_order() -> None:
    with trio.fail_after(GUARD):
        async with serving(App()) as served, served.peer() as peer:
            request = "POST / HTTP/1.1\nHost: x\nContent-Length: 1\n\n"
            await peer.send(f"{request}1{request}2{request}3")
            assert [(await peer.answer()).body for _ in range(3)] == [b"1", b"2", b"3"]


async def test_a_chunked_body_arrives() -> None:
    with trio.fail_after(GUARD):
        async with serving(App()) as served:
            head = "POST / HTTP/1.1\nHost: x\nTransfer-Encoding: chunked"
            assert (await served.ask(head, "2\nab\n1\nc\n0\n\n")).body == b"abc"


async def test_a_body_that_waits_to_be_asked_for_is_asked_for() -> None:
    with trio.fail_after(GUARD):
        async with serving(App()) as served, served.peer() as peer:
            await peer.send("POST / HTTP/1.1\nHost: x\nExpect: 100-continue\nContent-Length: 2\n\n")
            assert (await peer.until(b"\r\n\r\n")).startswith(b"HTTP/1.1 100 ")
            await peer.send(b"ok")
            assert (await peer.answer()).body == b"ok"


async def test_a_head_request_is_answered_without_a_body() -> None:
    with trio.fail_after(GUARD):
        async with serving(App()) as served, served.peer() as peer:
            await peer.send(f"HEAD /large HTTP/1.1\nHost: x\n\n{GET}\n\n")
            assert (await peer.answer(bodiless=True)).headers["content-length"] == "3000000"
            assert (await peer.answer()).status == 200


# -- what is no request --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        ("nonsense\n\n", 400),
        ("GET / HTTP/1.1\n\n", 400),  # without a Host
        ("GET / HTTP/1.1\nHost: a\nHost: b\n\n", 400),
        ("POST / HTTP/1.1\nHost: x\nContent-Length: 1\nContent-Length: 2\n\n", 400),
        ("POST / HTTP/1.1\nHost: x\nTransfer-Encoding: gzip\n\n", 501),
        (f"GET / HTTP/1.1\nHost: x\nX: {'x' * http1.MAX_HEAD}\n\n", 431),
        (f"GET /{'x' * http1.MAX_HEAD} HTTP/1.1\nHost: x\n\n", 431),
        ("HEAD / HTTP/1.1\nHost: x\n" + "X: 1234567\n" * 5000 + "\n", 431),
        (f"GET / HTTP/1.1\nHost: x\nX: {'x' * 2 * http1.MAX_HEAD}", 431),  # and no end
    ],
)
async def test_what_is_no_request_is_refused_and_nobody_else_hears_of_it(
    sent: str, status: int
) -> None:
    with trio.fail_after(GUARD):
        async with serving(App()) as served, served.peer() as peer:
            await peer.send(sent)
            answer = await peer.answer(bodiless=sent.startswith("HEAD"))
            assert answer.status == status
            assert answer.headers["connection"] == "close"
            assert await peer.rest() == b""
            assert (await served.ask(GET)).status == 200


async def test_many_headers_that_stay_below_the_bound_are_fine() -> None:
    with trio.fail_after(GUARD):
        async with serving(App()) as served:
            assert (await served.ask(GET + "\nX: 1234567" * 3000)).status == 200


@pytest.mark.parametrize(
    "offer",
    [
        "Connection: Upgrade, HTTP2-Settings\nUpgrade: h2c\nHTTP2-Settings: AAMAAABkAAQAAP__",
        (
            "Connection: Upgrade\nUpgrade: websocket\nSec-WebSocket-Version: 13\n"
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="
        ),
        "Connection: Upgrade\nUpgrade: websocket",  # and not even a correct one
    ],
)
async def test_upgrades_are_not_taken(offer: str) -> None:
    with trio.fail_after(GUARD):
        async with serving(App()) as served, served.peer() as peer:
            assert (await peer.ask(f"{GET}\n{offer}")).status == 200
            assert (await peer.ask(GET)).status == 200


async def test_http_2_is_not_spoken() -> None:
    with trio.fail_after(GUARD):
        async with serving(App()) as served, served.peer() as peer:
            await peer.send("PRI * HTTP/2.0\n\nSM\n\n")
            said = await peer.rest()
            assert said.startswith(b"HTTP/1.1 "), said


# -- peers that are slow, on a clock that goes when it is told to ----------------------------------


async def seen(what: Callable[[], object]) -> None:
    """Wait for what comes over a socket; the clock of the test stands still meanwhile."""
    while not what():
        await wait_all_tasks_blocked()


async def test_a_peer_that_says_nothing_is_left(mock_clock: MockClock) -> None:
    async with serving(App()) as served, served.peer() as peer:
        await seen(lambda: served.drain.connections)
        mock_clock.jump(PATIENCE[Phase.HEAD] + 1)
        assert await peer.rest() == b""


async def test_a_head_must_arrive_in_time_however_it_trickles_in(mock_clock: MockClock) -> None:
    async with serving(App()) as served, served.peer() as peer:
        await peer.send("GET / HTTP/1.1\nX: ")
        for _ in range(int(PATIENCE[Phase.HEAD])):
            assert served.connection.phase is Phase.HEAD
            await peer.send("x")
            await wait_all_tasks_blocked()
            mock_clock.jump(1)
        answer = await peer.answer()
        assert answer.status == 408
        assert b"did not arrive in time" in answer.body
        assert await peer.rest() == b""


async def test_the_second_head_of_a_connection_must_arrive_in_time_too(
    mock_clock: MockClock,
) -> None:
    async with serving(App()) as served, served.peer() as peer:
        await peer.ask(GET)
        await peer.send("GET / HTT")
        await seen(lambda: served.connection.phase is Phase.HEAD)
        mock_clock.jump(PATIENCE[Phase.HEAD] + 1)
        assert (await peer.answer()).status == 408


async def test_a_body_must_arrive_in_time_and_its_app_is_told(mock_clock: MockClock) -> None:
    app = App()
    async with serving(app) as served, served.peer() as peer:
        await peer.send("POST / HTTP/1.1\nHost: x\nContent-Length: 10\n\nhalf")
        await seen(lambda: served.connection.phase is Phase.BODY)
        mock_clock.jump(PATIENCE[Phase.BODY] + 1)
        assert (await peer.answer()).status == 408
        assert await peer.rest() == b""
        await app.gone.wait()


async def test_an_answer_may_take_any_time(mock_clock: MockClock) -> None:
    app = App()
    async with serving(app) as served, served.peer() as peer:
        await peer.send("POST /wait HTTP/1.1\nHost: x\nContent-Length: 8\n\nhalf")
        await seen(lambda: served.connection.phase is Phase.BODY)
        await peer.send("half")
        await seen(lambda: served.connection.phase is Phase.ANSWER)
        mock_clock.jump(1_000_000)
        await wait_all_tasks_blocked()
        app.go_on.set()
        assert (await peer.answer()).body == b"waited"


async def test_an_idle_connection_is_closed_after_a_while(mock_clock: MockClock) -> None:
    async with serving(App()) as served, served.peer() as peer:
        await peer.ask(GET)
        await seen(lambda: served.connection.phase is Phase.IDLE)
        mock_clock.jump(PATIENCE[Phase.IDLE] - 1)
        assert (await peer.ask(GET)).status == 200
        await seen(lambda: served.connection.phase is Phase.IDLE)
        mock_clock.jump(PATIENCE[Phase.IDLE] + 1)
        assert await peer.rest() == b""


async def test_a_reader_that_stops_reading_is_dropped(mock_clock: MockClock) -> None:
    app = App()
    async with serving(app) as served, served.peer() as peer:
        await peer.send("GET /endless HTTP/1.1\nHost: x\n\n")
        await app.busy.wait()
        while not app.gone.is_set():
            await wait_all_tasks_blocked()
            mock_clock.jump(SEND_PATIENCE + 1)
        await seen(lambda: not served.drain.connections)


async def test_a_slow_reader_of_a_long_answer_is_not(mock_clock: MockClock) -> None:
    size = 40 * PIECE
    async with serving(App(size)) as served, served.peer() as peer:
        await seen(lambda: served.drain.connections)
        # In large buffers one would not see who is slow.
        served.connection.stream.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, PIECE // 4)
        peer.stream.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, PIECE // 4)
        await peer.send("GET /large HTTP/1.1\nHost: x\n\n")
        await peer.until(b"\r\n\r\n")
        for part in range(2 * PIECE, size, 2 * PIECE):
            while len(peer.came) < part:
                assert await peer.more()
            await wait_all_tasks_blocked()
            mock_clock.jump(SEND_PATIENCE - 1)
        while len(peer.came) < size:
            assert await peer.more()


# -- peers that go -------------------------------------------------------------------------------


async def test_an_app_may_answer_without_reading_a_large_body() -> None:
    """In hypercorn the app and its connection then wait for each other, for ever."""
    with trio.fail_after(GUARD):
        async with serving(App()) as served, served.peer() as peer, trio.open_nursery() as nursery:

            async def upload() -> None:
                try:
                    await peer.send("POST /deaf HTTP/1.1\nHost: x\nContent-Length: 20000000\n\n")
                    await peer.send(b"x" * 20_000_000)
                except trio.BrokenResourceError:
                    pass

            nursery.start_soon(upload)
            # It arrives although the peer is still sending: no reset takes it away.
            assert (await peer.answer()).status == 401
            await peer.rest()
        await until(lambda: not served.drain.connections)


@pytest.mark.parametrize("path", ["/forever", "/endless"])
async def test_an_app_is_told_when_its_client_has_gone(path: str) -> None:
    app = App()
    with trio.fail_after(GUARD):
        async with serving(app) as served:
            async with served.peer() as peer:
                await peer.send(f"GET {path} HTTP/1.1\nHost: x\n\n")
                await app.busy.wait()
            await app.gone.wait()
            await until(lambda: not served.drain.connections)


async def test_a_client_may_be_gone_before_it_is_looked_at() -> None:
    with trio.fail_after(GUARD):
        async with serving(App()) as served:
            for _ in range(50):
                sock = socket.create_connection(("127.0.0.1", served.port))
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                sock.close()
            assert (await served.ask(GET)).status == 200


async def test_a_bug_costs_only_its_own_connection(caplog: pytest.LogCaptureFixture) -> None:
    with trio.fail_after(GUARD):
        async with serving(App()) as served, served.peer() as peer, served.peer() as other:
            assert (await other.ask(GET)).status == 200
            await peer.send("GET /crash HTTP/1.1\nHost: x\n\n")
            assert await peer.rest() == b""
            assert (await other.ask(GET)).status == 200
    assert "connection_crashed" in caplog.messages


# -- floods --------------------------------------------------------------------------------------


async def test_a_flood_of_silent_connections_locks_nobody_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(listen, "MOST_CONNECTIONS", 8)
    app = App()
    with trio.fail_after(GUARD):
        async with serving(app) as served, served.peer() as busy:
            await busy.send("GET /wait HTTP/1.1\nHost: x\n\n")
            await app.busy.wait()
            peers = [Peer(await trio.open_tcp_stream("127.0.0.1", served.port)) for _ in range(100)]
            assert (await served.ask(GET)).status == 200
            assert len(served.drain.connections) <= 8
            assert await peers[0].rest() == b""
            app.go_on.set()
            assert (await busy.answer()).body == b"waited"
            for peer in peers:
                await peer.stream.aclose()


async def test_when_all_connections_are_busy_another_is_told_to_come_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(listen, "MOST_CONNECTIONS", 2)
    app = App()
    with trio.fail_after(GUARD):
        async with serving(app) as served, served.peer() as one, served.peer() as two:
            for peer in (one, two):
                app.busy = trio.Event()
                await peer.send("GET /wait HTTP/1.1\nHost: x\n\n")
                await app.busy.wait()
            async with served.peer() as third:
                assert (await third.answer()).status == 503
                assert await third.rest() == b""
            app.go_on.set()
            for peer in (one, two):
                assert (await peer.answer()).body == b"waited"
            assert (await served.ask(GET)).status == 200


def test_half_of_what_may_be_open_is_left_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (100, 1000))
    assert listen.most_connections() == 50
    monkeypatch.setattr(resource, "getrlimit", lambda _: (-1, -1))
    assert listen.most_connections() == listen.MOST_CONNECTIONS


# -- the end -------------------------------------------------------------------------------------


async def test_a_drain_ends_at_once_when_nothing_is_under_way() -> None:
    with trio.fail_after(GUARD):
        async with serving(App(), grace=1000) as served:
            async with served.peer() as idle, served.peer() as silent, served.peer() as half:
                await idle.ask(GET)
                await half.send("GET / HT")
                served.drain.begin()
                await served.drain.finished.wait()
                assert await idle.rest() == await silent.rest() == await half.rest() == b""
            with pytest.raises(OSError, match="connect"):
                await trio.open_tcp_stream("127.0.0.1", served.port)


async def test_a_drain_lets_what_is_under_way_finish() -> None:
    app = App()
    with trio.fail_after(GUARD):
        async with serving(app, grace=1000) as served, served.peer() as peer:
            await peer.send("GET /wait HTTP/1.1\nHost: x\n\n")
            await app.busy.wait()
            served.drain.begin()
            await trio.sleep(SHORT)
            assert not served.drain.finished.is_set()
            app.go_on.set()
            answer = await peer.answer()
            assert (answer.body, answer.headers["connection"]) == (b"waited", "close")
            assert await peer.rest() == b""
            await served.drain.finished.wait()


@pytest.mark.parametrize("path", ["/endless", "/forever"])
async def test_a_drain_ends_with_its_grace(path: str) -> None:
    app = App()
    with trio.fail_after(GUARD):
        async with serving(app, grace=SHORT) as served, served.peer() as peer:
            await peer.send(f"GET {path} HTTP/1.1\nHost: x\n\n")
            await app.busy.wait()
            served.drain.begin()
            await served.drain.finished.wait()


async def test_a_second_signal_skips_the_grace() -> None:
    app = App()
    with trio.fail_after(GUARD):
        async with serving(app, grace=1000) as served, served.peer() as peer:
            await peer.send("GET /endless HTTP/1.1\nHost: x\n\n")
            await app.busy.wait()
            served.drain.begin()
            await trio.sleep(SHORT)
            assert not served.drain.finished.is_set()
            served.drain.begin(skip_grace=True)
            await served.drain.finished.wait()


async def test_a_drain_can_begin_before_anything_else() -> None:
    with trio.fail_after(GUARD):
        async with serving(App(), grace=1000) as served:
            served.drain.begin()
            await served.drain.finished.wait()
