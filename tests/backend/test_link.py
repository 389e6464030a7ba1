"""The end of a connection: lost or left, told once, and before anybody can see an effect of it."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing
from mcp import MCPError

from emceepee_trio.backend.connections.witness import Unanswered
from emceepee_trio.config import Limits, Reconnect, Retry
from emceepee_trio.model.events import (
    Happening,
    ProcessCrashed,
    ProcessStarted,
    ProcessStopped,
    ServerDisconnected,
)
from emceepee_trio.model.states import BackendState
from fake_backends import Journal, raw, until
from http_server import QUIET, HttpServer, Reply, Request, open_http_server
from play import coded
from recording import Running, running

pytestmark = QUIET

GUARD = 60
SMALL = Limits(message=64 * 1024)
LATER = {"restart": Retry(base_delay_ms=60_000), "reconnect": Reconnect(base_delay_ms=60_000)}
"""Nothing comes after the loss."""


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path / "journal")


async def seen_by_a_call(it: Running, tool: str, **arguments: Any) -> list[Happening]:
    """What has been told by the time a call fails for the loss of its connection."""
    await it.backend.connection()
    before = len(it.host.happened)
    with pytest.raises(MCPError) as caught:
        await it.call(tool, **arguments)
    seen = it.host.happened[before:]
    assert isinstance(caught.value, Unanswered), caught.value
    assert it.backend.client is None
    assert it.backend.state is BackendState.RECONNECTING
    return seen


async def test_a_child_that_ends_in_the_middle_of_a_call_is_told_before_the_call_fails() -> None:
    with trio.fail_after(GUARD):
        async with running(raw() | LATER) as it:
            seen = await seen_by_a_call(it, "exit", code=7)
            pid = it.host.all(ProcessStarted)[0].pid
            assert seen == [
                ProcessCrashed("it", pid, 7, None),
                ServerDisconnected("it", "process exited with code 7", False),
            ]
            assert it.backend.last_error == "process exited with code 7"
            assert it.backend.last_process is not None
            assert it.backend.last_process[0] == pid
            assert it.backend.process is None
        assert it.host.happened[-1] is seen[-1]


async def test_all_calls_of_a_child_that_is_killed_fail_at_once(journal: Journal) -> None:
    failed: list[tuple[MCPError, list[str]]] = []

    async def call(it: Running) -> None:
        with pytest.raises(MCPError) as caught:
            await it.call("never")
        failed.append((caught.value, it.host.story))

    with trio.fail_after(GUARD):
        async with running(raw(*journal.flags) | LATER) as it, trio.open_nursery() as nursery:
            for _ in range(5):
                nursery.start_soon(call, it)
            await journal.wait_for_marker("never started", 5)
            assert it.backend.process is not None
            os.kill(it.backend.process.pid, signal.SIGKILL)
    assert len(failed) == 5
    for error, story in failed:
        assert isinstance(error, Unanswered)
        assert story[-2:] == ["process_crashed", "server_disconnected"]
    crash = it.host.all(ProcessCrashed)[0]
    assert (crash.exit_code, crash.signal) == (None, "SIGKILL")
    assert it.host.all(ServerDisconnected)[0].reason == "process was killed by SIGKILL"


async def test_the_end_of_an_idle_child_is_noticed_without_a_call() -> None:
    with trio.fail_after(GUARD):
        async with running(raw() | LATER) as it:
            await it.backend.connection()
            assert it.backend.process is not None
            os.kill(it.backend.process.pid, signal.SIGTERM)
            lost = await it.host.wait_for(ServerDisconnected)
            assert it.backend.state is BackendState.RECONNECTING
            assert it.backend.client is None
            assert lost == ServerDisconnected("it", "process was killed by SIGTERM", False)
            assert it.host.story[-2] == "process_crashed"


async def test_a_line_that_is_too_long_ends_the_connection_and_says_so() -> None:
    with trio.fail_after(GUARD):
        async with running(raw() | LATER, limits=SMALL) as it:
            seen = await seen_by_a_call(it, "big", size=SMALL.message)
            assert seen == [
                ServerDisconnected("it", f"message too long (limit {SMALL.message} bytes)", False)
            ]
            await it.host.wait_for(ProcessStopped)  # by us: it had not crashed
            assert not it.host.all(ProcessCrashed)


async def test_what_is_left_is_told_once_its_child_is_gone() -> None:
    with trio.fail_after(GUARD):
        async with running(raw()) as it:
            await it.backend.connection()
            assert it.backend.process is not None
            pid = it.backend.process.pid
            it.backend.leave("removed", 5)
            assert it.host.story == ["process_started", "server_connected"]
            await it.backend.ended.wait()
            assert it.host.happened[2:] == [
                ProcessStopped("it", pid, 0, None),
                ServerDisconnected("it", "removed", True),
            ]
            assert it.backend.state is BackendState.DISCONNECTED
            assert it.backend.last_error is None


async def test_what_is_lost_first_and_left_then_is_told_only_as_lost() -> None:
    with trio.fail_after(GUARD):
        async with running(raw("--stubborn"), limits=SMALL) as it:
            it.backend.supervisor.patience = 0.2
            await seen_by_a_call(it, "big", size=SMALL.message)
            it.backend.leave("removed", 0.2)  # while the child is still being ended
            await it.backend.ended.wait()
    assert [d.was_intentional for d in it.host.all(ServerDisconnected)] == [False]
    assert [stop.signal for stop in it.host.all(ProcessStopped)] == ["SIGKILL"]


async def test_a_child_that_is_ended_while_it_starts_has_not_crashed() -> None:
    with trio.fail_after(GUARD):
        async with running(raw("--silent")) as it:
            await it.host.wait_for(ProcessStarted)
            it.backend.leave("removed", 5)
            await it.backend.ended.wait()
    assert it.host.story == ["process_started", "process_stopped"]


async def test_a_child_that_never_says_hello_is_stopped_and_has_not_crashed(
    mock_clock: trio.testing.MockClock,
) -> None:
    mock_clock.rate = 1
    never = {"restart": Retry(base_delay_ms=1000 * GUARD)}
    async with running(raw("--silent") | never | {"era": "handshake"}) as it:
        await it.host.wait_for(ProcessStarted)
        mock_clock.jump(30)  # connect_timeout_ms
        with trio.fail_after(GUARD):
            await it.host.wait_for(ProcessStopped)
            # Told to leave just before the loop sees that the try failed, or just after.
            it.backend.leave("removed", 1)
            await it.backend.ended.wait()
    assert it.host.story[:2] == ["process_started", "process_stopped"]


async def test_a_child_that_closes_its_output_is_lost_before_it_is_ended() -> None:
    mute = "hello()\nfor _ in range(2): sys.stdin.readline()\nos.close(1)\nsys.stdin.read()"
    entry = coded(mute) | {"era": "handshake"}
    with trio.fail_after(GUARD):
        async with running(entry | LATER) as it:
            seen = await seen_by_a_call(it, "echo")
            assert seen == [ServerDisconnected("it", "closed its output", False)]
            await it.host.wait_for(ProcessStopped)


# -- over HTTP -----------------------------------------------------------------------------------


@pytest.mark.parametrize("era", ["handshake", "modern"])
@pytest.mark.parametrize("streams", [False, True])
async def test_a_server_that_dies_in_the_middle_of_a_call(era: Any, streams: bool) -> None:
    with trio.fail_after(GUARD):
        async with (
            open_http_server(HttpServer(era, streams)) as server,
            running({"url": server.url} | LATER) as it,
        ):
            seen: list[Happening] = []

            async def call() -> None:
                seen.extend(await seen_by_a_call(it, "never"))

            async with trio.open_nursery() as nursery:
                nursery.start_soon(call)
                await server.wait_for("tools/call")
                await server.stop()
            (lost,) = seen
            assert isinstance(lost, ServerDisconnected)
            assert lost.reason.startswith(f"cannot reach {server.url}: ")
            assert not lost.was_intentional


async def test_a_server_that_is_gone_between_two_calls() -> None:
    with trio.fail_after(GUARD):
        async with (
            open_http_server(HttpServer()) as server,
            running({"url": server.url} | LATER) as it,
        ):
            await it.call("echo")
            await server.stop()
            (lost,) = await seen_by_a_call(it, "echo")
            assert isinstance(lost, ServerDisconnected)
            assert lost.reason.startswith(f"cannot reach {server.url}: ")


@pytest.mark.parametrize("era", ["handshake", "modern"])
async def test_who_listens_notices_the_end_of_a_server_without_a_call(era: Any) -> None:
    again = {"reconnect": Reconnect(base_delay_ms=10)}  # it asks once more for what has ended
    with trio.fail_after(GUARD):
        async with (
            open_http_server(HttpServer(era, listens=True)) as server,
            running({"url": server.url} | again) as it,
        ):
            await it.backend.connection()
            await server.wait_for_listener()
            await server.stop()
            lost = await it.host.wait_for(ServerDisconnected)
            assert lost.reason.startswith(f"cannot reach {server.url}: ")


async def test_a_session_that_the_server_has_forgotten_is_a_loss_and_a_new_one_is_made() -> None:
    with trio.fail_after(GUARD):
        async with (
            open_http_server(HttpServer()) as server,
            running({"url": server.url} | LATER) as it,
        ):
            await it.call("echo")
            server.sessions.clear()
            (lost,) = await seen_by_a_call(it, "echo")
            assert isinstance(lost, ServerDisconnected)
            assert lost.reason == "the server has ended our session (HTTP status 404)"
            await it.call("echo")  # does not wait for the next try's time
            await it.host.connected(2)


async def test_a_server_that_answers_404_to_whoever_listens_is_not_lost() -> None:
    async def spoil(request: Request, reply: Reply) -> bool:
        if request.verb == "GET":
            await reply.whole(404)
        return request.verb == "GET"

    with trio.fail_after(GUARD):
        async with (
            open_http_server(HttpServer(spoil=spoil)) as server,
            running({"url": server.url}) as it,
        ):
            await it.backend.connection()
            await server.wait_for("GET")
            await it.call("echo")
            await it.call("echo")
            assert not it.host.all(ServerDisconnected)


async def test_a_credential_that_is_refused_later_ends_in_an_error_that_names_it() -> None:
    refuse = trio.Event()

    async def spoil(request: Request, reply: Reply) -> bool:
        if refuse.is_set():
            await reply.whole(401)
        return refuse.is_set()

    entry = {"reconnect": Reconnect(base_delay_ms=10)}
    with trio.fail_after(GUARD):
        async with (
            open_http_server(HttpServer(spoil=spoil)) as server,
            running({"url": server.url} | entry) as it,
        ):
            await it.call("echo")
            refuse.set()
            (lost,) = await seen_by_a_call(it, "echo")
            assert isinstance(lost, ServerDisconnected)
            assert lost.reason == f"{server.url} answered 401"
            await until(lambda: it.backend.state is BackendState.ERROR)
            assert "'Authorization'" in (it.backend.last_error or "")


async def test_what_is_left_over_http_is_ended_there_too() -> None:
    with trio.fail_after(GUARD):
        async with open_http_server(HttpServer()) as server, running({"url": server.url}) as it:
            await it.backend.connection()
            (session,) = server.sessions
            it.backend.leave("removed", 5)
            assert it.host.happened[1:] == [ServerDisconnected("it", "removed", True)]
            await it.backend.ended.wait()
            (delete,) = server.of("DELETE")
            assert delete.headers["mcp-session-id"] == session
            assert not server.sessions
    assert len(it.host.happened) == 2


async def test_an_answer_that_comes_while_its_session_is_ended_does_no_harm() -> None:
    async def spoil(request: Request, reply: Reply) -> bool:
        if request.verb == "DELETE":
            server.release.set()
            await trio.testing.wait_all_tasks_blocked(0.05)  # by then the client has the answer
            deleting.set()
        return False

    deleting = trio.Event()
    server = HttpServer(spoil=spoil)
    with trio.fail_after(GUARD):
        async with (
            open_http_server(server),
            running({"url": server.url}) as it,
            trio.open_nursery() as nursery,
        ):
            nursery.start_soon(seen_by_a_leaver, it)
            await server.wait_for("tools/call")
            it.backend.leave("removed", 5)
            await it.backend.ended.wait()
            assert deleting.is_set()
            assert not server.sessions


async def seen_by_a_leaver(it: Running) -> None:
    with pytest.raises(MCPError, match="Connection closed"):
        await it.call("slow")
