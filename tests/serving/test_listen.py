from __future__ import annotations

import json
import resource

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from echo_app import GET, App
from emceepee_trio.serving import listen
from emceepee_trio.serving.connection import SEND_PATIENCE
from raw_http import GUARD, Peer, serving

SHORT = 0.05
"""Seconds."""


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
                refused = await third.answer()
                assert (refused.status, refused.headers["retry-after"]) == (503, "1")
                assert refused.headers["content-type"] == "application/json"
                said = json.loads(refused.body)
                assert said.keys() == {"jsonrpc", "id", "error"}
                assert (said["id"], said["error"]["code"]) == (None, -32600)
                assert await third.rest() == b""
            app.go_on.set()
            for peer in (one, two):
                assert (await peer.answer()).body == b"waited"
            assert (await served.ask(GET)).status == 200


async def test_requests_that_come_in_pieces_have_nobody_look_at_everybodys_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looks, sweep = 0, listen.Drain.sweep

    def counted(drain: listen.Drain) -> None:
        nonlocal looks
        looks += 1
        sweep(drain)

    monkeypatch.setattr(listen.Drain, "sweep", counted)
    with trio.fail_after(GUARD):
        async with serving(App()) as served, served.peer() as peer:
            for _ in range(20):
                await peer.send(GET[:10])
                await wait_all_tasks_blocked()  # it has been read
                await peer.send(GET[10:] + "\n\n")
                assert (await peer.answer()).status == 200
    assert looks <= 3  # one for each time that is nearer than all before


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


@pytest.mark.parametrize("path", ["/large", "/forever"])
async def test_a_drain_ends_with_its_grace(path: str) -> None:
    app = App()
    with trio.fail_after(SEND_PATIENCE / 2):
        async with serving(app, grace=SHORT) as served, served.narrow_peer() as peer:
            await peer.send(f"GET {path} HTTP/1.1\nHost: x\n\n")
            await app.busy.wait()
            await wait_all_tasks_blocked(0.01)  # what is written waits for its reader
            served.drain.begin()
            await served.drain.finished.wait()


async def test_a_second_signal_skips_the_grace() -> None:
    app = App()
    with trio.fail_after(SEND_PATIENCE / 2):
        async with serving(app, grace=1000) as served, served.narrow_peer() as peer:
            await peer.send("GET /large HTTP/1.1\nHost: x\n\n")
            await app.busy.wait()
            await wait_all_tasks_blocked(0.01)  # what is written waits for its reader
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
