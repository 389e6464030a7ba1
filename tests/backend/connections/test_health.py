"""Silent peers: found out by a question, told, and given up after the third one in vain."""

from __future__ import annotations

import os
import signal
from functools import partial
from typing import Any, Literal

import attrs
import pytest
import trio
from mcp import MCPError
from trio.testing import MockClock, wait_all_tasks_blocked

from emceepee_trio.backend.connections.client import CHECK
from emceepee_trio.backend.connections.health import AGAIN, JITTER, MISSES
from emceepee_trio.config import Reconnect
from emceepee_trio.config.settings import Health
from emceepee_trio.model.events import (
    ServerDisconnected,
    ServerHealthDegraded,
    ServerHealthRestored,
    ServerReconnecting,
)
from emceepee_trio.model.states import BackendState
from fake_backends import raw, until
from http_server import QUIET, HttpServer, Reply, Request, open_http_server
from recording import Running, running

pytestmark = QUIET

GUARD = 1000
"""Seconds of a clock that is moved on by more than ten minutes altogether."""
INTERVAL = Health().interval_ms / 1000
LATER: dict[str, Any] = {"reconnect": Reconnect(base_delay_ms=3_600_000, max_delay_ms=3_600_000)}


@pytest.fixture
def clock(mock_clock: MockClock) -> MockClock:
    """Runs, and can be moved on."""
    mock_clock.rate = 1
    return mock_clock


@attrs.define(eq=False)
class Peer:
    """Answers or not, or with a status."""

    era: Literal["handshake", "modern"] = "handshake"
    mood: str = "well"
    server: HttpServer = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.server = HttpServer(self.era, spoil=self.spoil)

    @property
    def question(self) -> str:
        return "server/discover" if self.era == "modern" else "ping"

    async def spoil(self, request: Request, reply: Reply) -> bool:
        is_call = "id" in request.message and request.method != "initialize"
        if not is_call or self.mood == "well":
            return False
        if self.mood == "busy" and request.method != self.question:
            return False
        if self.mood == "broken":
            await reply.whole(503)
        elif self.mood == "refusing":
            error = {"code": -32601, "message": "Method not found"}
            await reply.json({"jsonrpc": "2.0", "id": request.message["id"], "error": error})
        else:
            await trio.sleep_forever()
        return True


async def next_check(peer: Peer, clock: MockClock, after: float) -> None:
    asked = len(peer.server.of(peer.question))
    clock.jump(after)
    await peer.server.wait_for(peer.question, asked + 1)


async def miss_check(it: Running, peer: Peer, clock: MockClock, after: float) -> None:
    failures = it.backend.health.failures
    await next_check(peer, clock, after)
    clock.jump(CHECK)
    await until(lambda: it.backend.health.failures > failures or it.backend.client is None)


@pytest.mark.parametrize("era", ["handshake", "modern"])
async def test_a_silent_peer_is_degraded_and_then_connected_again(
    era: Literal["handshake", "modern"], clock: MockClock
) -> None:
    peer = Peer(era)
    with trio.fail_after(GUARD):
        async with open_http_server(peer.server), running({"url": peer.server.url} | LATER) as it:
            await it.call("echo")
            if era == "modern":  # what still connects would take too long when the clock jumps
                await peer.server.wait_for("subscriptions/listen", 1)
            peer.mood = "silent"
            await miss_check(it, peer, clock, INTERVAL * (1 + JITTER))
            assert it.backend.state is BackendState.DEGRADED
            wrong = f"no answer to {peer.question} within {CHECK:g} s"
            assert it.host.all(ServerHealthDegraded) == [ServerHealthDegraded("it", 1, wrong)]
            shown = it.backend.health.to_json()
            assert shown.keys() == {"checked_at", "consecutive_failures", "last_error"}
            assert (shown["consecutive_failures"], shown["last_error"]) == (1, wrong)
            for _ in range(MISSES - 1):
                assert it.backend.client is not None
                await miss_check(it, peer, clock, AGAIN)
            assert it.backend.next_try is not None
            (lost,) = it.host.all(ServerDisconnected)
            assert lost.reason == f"{MISSES} health checks failed: {wrong}"
            clock.jump(10)  # so long may it take to say goodbye
            assert (await it.host.wait_for(ServerReconnecting)).attempt == 1
            peer.mood = "well"
            await it.call("echo")  # does not wait for the time of the next try
            await it.host.connected(2)
            assert it.backend.health.to_json()["consecutive_failures"] == 0
            assert not it.host.all(ServerHealthRestored)


def failed_at_least(it: Running, times: int) -> bool:
    return it.backend.health.failures >= times


@pytest.mark.parametrize("by", ["check", "call"])
async def test_an_answer_of_any_kind_is_health(by: str, clock: MockClock) -> None:
    peer = Peer()
    with trio.fail_after(GUARD):
        async with open_http_server(peer.server), running({"url": peer.server.url} | LATER) as it:
            await it.call("echo")
            peer.mood = "silent"
            await miss_check(it, peer, clock, INTERVAL * (1 + JITTER))
            if by == "call":
                peer.mood = "busy"  # with anything but health checks
                await it.call("echo")
            else:
                peer.mood = "refusing"
                await next_check(peer, clock, AGAIN)
            restored = await it.host.wait_for(ServerHealthRestored)
            assert restored == ServerHealthRestored(
                "it", 1, f"no answer to ping within {CHECK:g} s"
            )
            assert it.backend.state is BackendState.CONNECTED
            assert it.host.story == [
                "server_connected",
                "server_health_degraded",
                "server_health_restored",
            ]


async def test_an_answer_that_comes_after_the_loss_is_no_health(clock: MockClock) -> None:
    """Told that the session is gone, others are still waited for; one of them was answered."""
    asked, go = trio.Event(), trio.Event()

    async def spoil(request: Request, reply: Reply) -> bool:
        if request.method == "tools/call" and request.message["params"]["name"] == "late":
            asked.set()
            await go.wait()
            await reply.json({"jsonrpc": "2.0", "id": request.message["id"], "result": {}})
            return True
        return await peer.spoil(request, reply)

    peer = Peer()
    peer.server.spoil = spoil
    with trio.fail_after(GUARD):
        async with open_http_server(peer.server), running({"url": peer.server.url} | LATER) as it:
            await it.call("echo")
            peer.mood = "silent"
            await miss_check(it, peer, clock, INTERVAL * (1 + JITTER))
            peer.mood = "well"
            async with trio.open_nursery() as nursery:
                nursery.start_soon(it.call, "late")
                await asked.wait()
                peer.server.sessions.clear()
                with pytest.raises(MCPError):
                    await it.call("echo")
                go.set()
            assert not it.host.all(ServerHealthRestored)


async def test_a_peer_that_is_called_is_not_asked(clock: MockClock) -> None:
    peer = Peer()
    with trio.fail_after(GUARD):
        async with open_http_server(peer.server), running({"url": peer.server.url}) as it:
            for _ in range(10):
                await it.call("echo")
                clock.jump(INTERVAL * (1 - JITTER) / 2)
            assert peer.server.of("ping") == []


async def test_a_peer_that_answers_calls_while_a_check_waits_is_well(clock: MockClock) -> None:
    peer = Peer()
    with trio.fail_after(GUARD):
        async with open_http_server(peer.server), running({"url": peer.server.url}) as it:
            await it.call("echo")
            peer.mood = "busy"
            await next_check(peer, clock, INTERVAL * (1 + JITTER))
            await it.call("echo")
            clock.jump(CHECK)
            await wait_all_tasks_blocked()
            await next_check(peer, clock, INTERVAL * (1 + JITTER))
            assert it.host.story == ["server_connected"]


async def test_a_status_of_the_server_is_no_answer(clock: MockClock) -> None:
    peer = Peer()
    with trio.fail_after(GUARD):
        async with open_http_server(peer.server), running({"url": peer.server.url}) as it:
            await it.call("echo")
            peer.mood = "broken"
            await next_check(peer, clock, INTERVAL * (1 + JITTER))
            degraded = await it.host.wait_for(ServerHealthDegraded)
            assert degraded.last_error == "answered ping with status 503"


async def test_a_program_that_only_computes_is_degraded_but_not_ended(clock: MockClock) -> None:
    with trio.fail_after(GUARD):
        async with running(raw() | {"era": "handshake"}) as it:
            await it.call("echo")
            client = it.backend.client
            assert it.backend.process is not None
            pid = it.backend.process.pid
            os.kill(pid, signal.SIGSTOP)
            try:
                clock.jump(INTERVAL * (1 + JITTER))
                for missed in range(1, MISSES + 2):
                    await wait_all_tasks_blocked()  # the question is written
                    clock.jump(CHECK)
                    await until(partial(failed_at_least, it, missed))
                    clock.jump(AGAIN)
            finally:
                os.kill(pid, signal.SIGCONT)
            await it.host.wait_for(ServerHealthRestored)
            assert it.backend.client is client
            assert it.host.story == [
                "process_started",
                "server_connected",
                "server_health_degraded",
                "server_health_restored",
            ]
