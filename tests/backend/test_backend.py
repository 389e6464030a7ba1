"""The loop: when it tries, what callers hear meanwhile, and that no caller waits for ever."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest
import trio
import trio.testing
from mcp import MCPError

from emceepee_trio.backend import retries as module
from emceepee_trio.backend.children.process import Process
from emceepee_trio.backend.connections.client import Client
from emceepee_trio.config import Limits, Retry
from emceepee_trio.errors import ConnectFailed, ServerDisconnected, ToolError
from emceepee_trio.model.events import ProcessStarted
from emceepee_trio.model.events import ServerDisconnected as Lost
from emceepee_trio.model.states import BackendState
from fake_backends import raw, until
from play import Play, program
from recording import Running, running
from stalls import steps_measured

GUARD = 60
LATER = {"restart": Retry(base_delay_ms=3_600_000, max_delay_ms=3_600_000, jitter=0)}
SOON = {"restart": Retry(base_delay_ms=10)}
BROKEN = raw("--exit-at-once", 3)


def kill(it: Running) -> None:
    process: Process | None = it.backend.process
    assert process is not None
    os.kill(process.pid, signal.SIGKILL)


async def outcomes(it: Running, callers: int) -> list[Client | ToolError]:
    """What that many callers hear who come now."""
    heard: list[Client | ToolError] = []

    async def caller() -> None:
        try:
            heard.append(await it.backend.connection())
        except ToolError as error:
            heard.append(error)

    async with trio.open_nursery() as nursery:
        for _ in range(callers):
            nursery.start_soon(caller)
    return heard


async def test_a_lost_child_comes_back_by_itself() -> None:
    with trio.fail_after(GUARD):
        async with running(raw() | SOON) as it:
            first = await it.backend.connection()
            kill(it)
            await it.host.connected(2)
            assert it.backend.client is not first
            assert it.backend.state is BackendState.CONNECTED
            assert it.host.story == [
                "process_started",
                "server_connected",
                "process_crashed",
                "server_disconnected",
                "restarting",
                "process_started",
                "restarted",
                "server_reconnected",
            ]
            assert (await it.call("echo", text="hi"))["x-arguments"] == {"text": "hi"}


async def test_a_failed_try_tells_everybody_who_waits_when_the_next_one_is() -> None:
    with trio.fail_after(GUARD):
        async with running(BROKEN | LATER) as it:
            heard = await outcomes(it, 3)
            for error in heard:
                assert isinstance(error, ConnectFailed)
                assert error.details is not None
                assert 3_500_000 < error.details["next_retry_ms"] <= 3_600_000
                assert "next try in 3" in error.message
            assert it.backend.state is BackendState.RECONNECTING
            assert it.backend.retries.attempt == 1


async def test_a_caller_does_not_wait_for_the_time_of_the_next_try(tmp_path: Path) -> None:
    server, go = raw(), tmp_path / "go"
    words = ["-c", 'test -e "$0" || exit 3; exec "$@"', str(go), server["command"], *server["args"]]
    entry = {"command": "sh", "args": words} | LATER
    with trio.fail_after(GUARD):
        async with running(entry) as it:
            await outcomes(it, 1)
            assert it.backend.next_try is not None
            (again,) = await outcomes(it, 1)  # the hour has not passed
            assert isinstance(again, ConnectFailed)
            assert it.backend.retries.attempt == 2
            go.touch()
            (client, other) = await outcomes(it, 2)
            assert client is other is it.backend.client
            assert it.backend.next_try is None
            assert it.backend.last_error is None


async def test_a_caller_who_comes_while_the_lost_child_is_still_being_ended() -> None:
    """It wants the next try at once, though its time has not been waited for yet."""
    small = Limits(message=64 * 1024)
    with trio.fail_after(GUARD):
        async with running(raw("--stubborn") | LATER, limits=small) as it:
            with pytest.raises(MCPError):
                await it.call("big", size=small.message)
            assert it.backend.process is not None  # still there
            assert it.backend.state is BackendState.RECONNECTING
            assert it.backend.next_try is not None
            (client,) = await outcomes(it, 1)
            assert client is it.backend.client


async def test_tries_end_at_their_limit_and_a_caller_starts_another() -> None:
    entry = BROKEN | {"restart": Retry(base_delay_ms=10, max_delay_ms=20, max_attempts=3)}
    with trio.fail_after(GUARD):
        async with running(entry) as it:
            # The one at the start, and three by itself; each asks first which era it is.
            await until(lambda: it.backend.state is BackendState.ERROR)
            assert it.backend.retries.attempt == 4
            assert it.backend.next_try is None
            (error,) = await outcomes(it, 1)
            assert isinstance(error, ConnectFailed)
            assert error.message.endswith("; correct it, then call reconnect_server")
            assert "next_retry_ms" not in (error.details or {})
            assert it.backend.retries.attempt == 5


async def test_without_restarts_a_loss_is_an_error_until_somebody_calls() -> None:
    with trio.fail_after(GUARD):
        async with running(raw() | {"restart": Retry(enabled=False)}) as it:
            await it.backend.connection()
            kill(it)
            await it.host.wait_for(Lost)
            assert it.backend.state is BackendState.ERROR
            assert it.backend.next_try is None
            (client,) = await outcomes(it, 1)
            assert client is it.backend.client


async def test_the_count_starts_again_after_a_minute_connected(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with trio.fail_after(GUARD):
        async with running(raw() | SOON) as it:
            for lost in (1, 2):
                await it.host.connected(lost)
                kill(it)
                await it.host.wait_for(Lost, lost)
                assert it.backend.retries.attempt == lost
            await it.host.connected(3)
            monkeypatch.setattr(module, "RETRY_RESET_MS", 0)
            kill(it)
            await it.host.wait_for(Lost, 3)
            assert it.backend.retries.attempt == 1


async def test_a_lazy_server_starts_with_its_first_caller() -> None:
    with trio.fail_after(GUARD):
        async with running(raw() | {"start": "lazy"}) as it:
            await trio.testing.wait_all_tasks_blocked()
            assert it.backend.state is BackendState.NOT_CONNECTED
            assert not it.host.happened
            assert len({*await outcomes(it, 3)}) == 1
            assert len(it.host.all(ProcessStarted)) == 1


async def test_a_lazy_server_that_nobody_called_just_leaves() -> None:
    with trio.fail_after(GUARD):
        async with running(raw() | {"start": "lazy"}) as it:
            it.backend.leave("removed", 1)
            await it.backend.ended.wait()
            assert it.backend.state is BackendState.DISCONNECTED
    assert not it.host.happened


async def test_a_disabled_server_is_left_alone() -> None:
    with trio.fail_after(GUARD):
        async with running(raw() | {"disabled": True}) as it:
            (error,) = await outcomes(it, 1)
            assert "disabled in its configuration" in str(error)
            await it.backend.ended.wait()
            assert it.backend.state is BackendState.DISABLED
    assert not it.host.happened


@pytest.mark.parametrize("when", ["starting", "waiting", "final"])
async def test_whoever_waits_for_a_server_that_is_removed_hears_of_it(when: str) -> None:
    entry = {"starting": raw("--silent"), "waiting": BROKEN, "final": {"command": "no-such"}}[when]
    with trio.fail_after(GUARD):
        async with running(entry | LATER) as it:
            if when == "starting":
                await it.host.wait_for(ProcessStarted)
            else:
                await outcomes(it, 1)
            async with trio.open_nursery() as nursery:

                async def caller() -> None:
                    with pytest.raises(ServerDisconnected, match=r"no longer here .removed.") as e:
                        await it.backend.connection()
                    assert e.value.details == {"may_have_run": False}

                nursery.start_soon(caller)
                if when == "starting":
                    await trio.testing.wait_all_tasks_blocked()
                it.backend.leave("removed", 1)
            with pytest.raises(ServerDisconnected):
                await it.backend.connection()
            await it.backend.ended.wait()


async def test_a_cancelled_caller_takes_nothing_with_it(tmp_path: Path) -> None:
    with trio.fail_after(GUARD):
        async with running(raw("--start-when", tmp_path / "go")) as it:
            with trio.move_on_after(0.1) as scope:
                await it.backend.connection()
            assert scope.cancelled_caught
            (tmp_path / "go").touch()
            await it.backend.connection()
    assert len(it.host.all(ProcessStarted)) == 1


async def test_nobody_waits_while_very_many_answers_come_at_once(tmp_path: Path) -> None:
    many = [{"jsonrpc": "2.0", "id": n, "result": {}} for n in range(30_000)]
    batch = [*many, {"jsonrpc": "2.0", "id": "@ID@", "result": {"content": ["it"]}}]
    entry = program(Play({"tools/call": [json.dumps(batch).encode()]}), tmp_path)
    with trio.fail_after(GUARD):
        async with running(entry | {"era": "handshake"}) as it:
            await it.backend.connection()
            with steps_measured() as longest:
                assert (await it.call("any"))["content"] == ["it"]
    assert longest() < 0.02
