from __future__ import annotations

import socket
from collections.abc import Callable

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from echo_app import GET, App
from emceepee_trio.serving.asgi import GONE, Receive, Scope, Send
from emceepee_trio.serving.connection import PATIENCE, PIECE, SEND_PATIENCE, Phase
from emceepee_trio.web.wire import read_body, send_bytes
from fake_backends import until
from raw_http import GUARD, serving


@pytest.fixture
def clock() -> MockClock:
    return MockClock(rate=1.0)


async def seen(what: Callable[[], object]) -> None:
    """Wait for what comes over a socket."""
    with trio.fail_after(GUARD):
        while not what():
            await wait_all_tasks_blocked(0.001)


async def test_a_peer_that_says_nothing_is_left(clock: MockClock) -> None:
    async with serving(App()) as served, served.peer() as peer:
        await seen(lambda: served.drain.connections)
        clock.jump(PATIENCE[Phase.HEAD] + 1)
        assert await peer.rest() == b""


async def test_a_head_must_arrive_in_time_however_it_trickles_in(clock: MockClock) -> None:
    async with serving(App()) as served, served.peer() as peer:
        await peer.send("GET / HTTP/1.1\nX: ")
        for _ in range(int(PATIENCE[Phase.HEAD] / 2)):
            await peer.send("x")
            await wait_all_tasks_blocked()
            clock.jump(1)
            assert served.connection.phase is Phase.HEAD
        clock.jump(PATIENCE[Phase.HEAD] / 2)
        answer = await peer.answer()
        assert answer.status == 408
        assert b"did not arrive in time" in answer.body
        assert await peer.rest() == b""


async def test_the_second_head_of_a_connection_must_arrive_in_time_too(
    clock: MockClock,
) -> None:
    async with serving(App()) as served, served.peer() as peer:
        await peer.ask(GET)
        await peer.send("GET / HTT")
        await seen(lambda: served.connection.phase is Phase.HEAD)
        clock.jump(PATIENCE[Phase.HEAD] + 1)
        assert (await peer.answer()).status == 408


async def test_a_body_must_arrive_in_time_and_its_app_is_told(clock: MockClock) -> None:
    app = App()
    async with serving(app) as served, served.peer() as peer:
        await peer.send("POST / HTTP/1.1\nHost: x\nContent-Length: 10\n\nhalf")
        await seen(lambda: served.connection.phase is Phase.BODY)
        clock.jump(PATIENCE[Phase.BODY] + 1)
        assert (await peer.answer()).status == 408
        assert await peer.rest() == b""
        await app.gone.wait()


async def test_an_answer_may_take_any_time(clock: MockClock) -> None:
    app = App()
    async with serving(app) as served, served.peer() as peer:
        await peer.send("POST /wait HTTP/1.1\nHost: x\nContent-Length: 8\n\nhalf")
        await seen(lambda: served.connection.phase is Phase.BODY)
        await peer.send("half")
        await seen(lambda: served.connection.phase is Phase.ANSWER)
        clock.jump(1_000_000)
        await wait_all_tasks_blocked()
        app.go_on.set()
        assert (await peer.answer()).body == b"waited"


async def test_an_idle_connection_is_closed_after_a_while(clock: MockClock) -> None:
    async with serving(App()) as served, served.peer() as peer:
        await peer.ask(GET)
        await seen(lambda: served.connection.phase is Phase.IDLE)
        clock.jump(PATIENCE[Phase.IDLE] / 2)
        assert (await peer.ask(GET)).status == 200
        await seen(lambda: served.connection.phase is Phase.IDLE)
        clock.jump(PATIENCE[Phase.IDLE] + 1)
        assert await peer.rest() == b""


async def test_a_reader_that_stops_reading_is_dropped(clock: MockClock) -> None:
    app = App()
    async with serving(app) as served, served.peer() as peer:
        await peer.send("GET /endless HTTP/1.1\nHost: x\n\n")
        await app.busy.wait()
        while not app.gone.is_set():
            await wait_all_tasks_blocked(0.01)
            clock.jump(SEND_PATIENCE + 1)
            assert clock.current_time() < 1000 * SEND_PATIENCE
        await seen(lambda: not served.drain.connections)


async def test_a_slow_reader_of_a_long_answer_is_not(clock: MockClock) -> None:
    size = 40 * PIECE
    async with serving(App(size)) as served, served.narrow_peer() as peer:
        await peer.send("GET /large HTTP/1.1\nHost: x\n\n")
        await peer.until(b"\r\n\r\n")
        for part in range(2 * PIECE, size, 2 * PIECE):
            while len(peer.came) < part:
                assert await peer.more()
            await wait_all_tasks_blocked()
            clock.jump(SEND_PATIENCE / 2)
        while len(peer.came) < size:
            assert await peer.more()


async def test_requests_that_are_sent_at_once_leave_others_their_turn() -> None:
    served_so_far = longest = 0

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        nonlocal served_so_far
        served_so_far += 1
        await send_bytes(send, 200)

    async with serving(app) as served, served.peer() as peer, trio.open_nursery() as nursery:
        await peer.send(f"{GET}\n\n" * 1000)
        nursery.start_soon(peer.rest)
        while served_so_far < 1000:
            before = served_so_far
            await trio.lowlevel.checkpoint()
            longest = max(longest, served_so_far - before)
        nursery.cancel_scope.cancel()
    assert longest <= 2  # once in a round of all tasks, late in one and early in the next


# -- peers that go -------------------------------------------------------------------------------


async def test_an_app_may_answer_without_reading_a_large_body() -> None:
    """In hypercorn the app and its connection then wait for each other, for ever."""
    app = App()
    async with serving(app) as served, served.peer() as peer, trio.open_nursery() as nursery:
        await peer.send("POST /deaf HTTP/1.1\nHost: x\nContent-Length: 8000000\n\n")
        nursery.start_soon(peer.send, b"x" * 8_000_000)
        await app.busy.wait()
        await wait_all_tasks_blocked(0.05)  # all is full
        app.go_on.set()
        assert (await peer.answer()).status == 401
        assert await peer.rest() == b""


async def test_an_answer_is_not_taken_away_from_a_peer_that_still_sends() -> None:
    """Closed at once, the connection would be reset, and what was on its way be lost."""
    app = App()
    app.go_on.set()
    async with serving(app) as served, served.peer() as peer:
        await peer.send("POST /deaf HTTP/1.1\nHost: x\nContent-Length: 8000000\n\n")
        await seen(lambda: served.connection.phase is Phase.LAST_BYTES)
        await peer.send(b"x" * 8_000_000)
        answer = await peer.answer()
        assert answer.status == 401
        assert answer.headers["connection"] == "close"


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


@pytest.mark.parametrize("behind", [0, 1])
async def test_an_app_may_look_whether_its_client_has_gone(behind: int) -> None:
    """Without a checkpoint; what is sent behind the request is kept, and is no good-bye."""
    asks, asked, found = trio.Event(), 0, list[bool]()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        nonlocal asked
        asked += 1
        is_gone = scope["extensions"][GONE]
        await read_body(receive, 1)
        found.append(is_gone())
        asks.set()
        while asked == 1 and not is_gone():  # noqa: ASYNC110 - it is looked at, not waited for
            await trio.lowlevel.checkpoint()
        await send_bytes(send, 200)
        found.append(is_gone())

    with trio.fail_after(GUARD):
        async with serving(app) as served, served.peer() as peer:
            await peer.send(f"{GET}\n\n" * (1 + behind))
            await asks.wait()
            await peer.stream.send_eof()
            for _ in range(1 + behind):
                assert (await peer.answer()).status == 200
    assert found == [False, True] + [True, True] * behind


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
