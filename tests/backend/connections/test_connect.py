"""Which era a backend speaks, how that is found out, and what it is told of us."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
import trio

from emceepee_trio.backend.connections import connect
from emceepee_trio.backend.shared import ERAS, Shared
from emceepee_trio.config import Retry
from emceepee_trio.errors import ConnectFailed
from emceepee_trio.model.events import ProcessStarted, ProcessStopped, Restarting
from fake_backends import Journal, raw
from http_server import QUIET, HttpServer, open_http_server
from play import MODERN, Play, program
from recording import running

pytestmark = QUIET

GUARD = 60
HANDSHAKE = "2025-11-25"


def names(journal: Journal) -> list[str]:
    return [entry.get("method") or next(iter(entry)) for entry in journal.entries()]


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path / "journal")


async def test_a_server_of_the_handshake_era_refuses_the_probe_and_is_initialized(
    journal: Journal,
) -> None:
    shared = Shared()
    with trio.fail_after(GUARD):
        async with running(raw(*journal.flags), shared=shared) as it:
            client = await it.backend.connection()
            await client.request("ping")
            agreed = client.negotiated
    assert names(journal)[:5] == [
        "started",
        "server/discover",
        "initialize",
        "notifications/initialized",
        "ping",
    ]
    assert agreed.protocol_version == HANDSHAKE
    assert not agreed.is_modern
    assert agreed.server_info["x-vendor"] == 1
    assert agreed.instructions == "Raw instructions."
    assert agreed.capabilities["experimental"] == {"vendor/thing": {"x": 1}}
    assert list(shared.eras.values()) == ["handshake"]


async def test_everything_we_can_do_is_declared(journal: Journal) -> None:
    with trio.fail_after(GUARD):
        async with running(raw(*journal.flags)) as it:
            await it.backend.connection()
    told = journal.of("initialize")[0]["params"]
    assert told["capabilities"] == {
        "sampling": {"tools": {}, "context": {}},
        "elicitation": {"form": {}, "url": {}},
        "roots": {"listChanged": True},
    }
    assert told["protocolVersion"] == HANDSHAKE
    assert told["clientInfo"]["name"] == "emceepee"


async def test_a_modern_server_is_told_so_with_every_request(journal: Journal) -> None:
    shared = Shared()
    with trio.fail_after(GUARD):
        async with running(raw("--discover", "modern", *journal.flags), shared=shared) as it:
            client = await it.backend.connection()
            await client.request("tools/list")
    assert client.negotiated.is_modern
    assert client.negotiated.protocol_version == MODERN
    assert client.negotiated.server_info["name"] == "raw"
    assert "initialize" not in names(journal)
    for method in ("server/discover", "tools/list", "subscriptions/listen"):
        meta = journal.of(method)[0]["params"]["_meta"]
        assert meta["io.modelcontextprotocol/protocolVersion"] == MODERN
        assert meta["io.modelcontextprotocol/clientInfo"]["name"] == "emceepee"
        assert meta["io.modelcontextprotocol/clientCapabilities"]["sampling"] == {
            "tools": {},
            "context": {},
        }
    assert list(shared.eras.values()) == ["modern"]


async def test_a_server_that_is_silent_on_the_probe_is_initialized_in_the_same_process(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert connect.PROBE == 2.0
    monkeypatch.setattr(connect, "PROBE", 0.2)
    shared = Shared()
    entry = raw("--discover", "silent", *journal.flags)
    with trio.fail_after(GUARD):
        async with running(entry, shared=shared) as it:
            await it.backend.connection()
        assert names(journal)[:3] == ["started", "server/discover", "initialize"]
        # What it turned out to speak is remembered, also for other sessions.
        async with running(entry, shared=shared) as it:
            await it.backend.connection()
    assert names(journal).count("server/discover") == 1
    assert names(journal).count("initialize") == 2


async def test_a_server_that_dies_of_the_probe_is_started_again(journal: Journal) -> None:
    shared = Shared()
    entry = raw("--discover", "die", *journal.flags)
    with trio.fail_after(GUARD):
        async with running(entry, shared=shared) as it:
            await it.backend.connection()
            assert it.host.story == [
                "process_started",
                "process_stopped",
                "process_started",
                "server_connected",
            ]
            stopped = it.host.all(ProcessStopped)[0]
            assert (stopped.pid, stopped.exit_code) == (it.host.all(ProcessStarted)[0].pid, 1)
            await it.call("echo")
            assert len(it.host.story) == 4
        assert list(shared.eras.values()) == ["handshake"]
        async with running(entry, shared=shared) as it:
            await it.backend.connection()
    assert names(journal).count("started") == 3
    assert names(journal).count("server/discover") == 1


ENDS = "import sys; sys.stderr.write('no token'); sys.exit(1)"
READS = f"import sys; sys.stdin.readline(); {ENDS}"


async def test_a_program_that_ends_before_it_is_asked_anything_is_started_once_per_try() -> None:
    entry = {"command": sys.executable, "args": ["-c", ENDS], "restart": Retry(base_delay_ms=10)}
    with trio.fail_after(GUARD):
        async with running(entry) as it:
            with pytest.raises(ConnectFailed, match="no token"):
                await it.backend.connection()
            await it.host.wait_for(Restarting, 2)
            of_one_try = ["process_started", "process_crashed", "restarting"]
            assert it.host.story[:6] == 2 * of_one_try


async def test_a_program_that_reads_and_ends_is_tried_without_the_question_from_then_on() -> None:
    entry = {"command": sys.executable, "args": ["-c", READS], "restart": Retry(base_delay_ms=10)}
    with trio.fail_after(GUARD):
        async with running(entry) as it:
            await it.host.wait_for(Restarting, 3)
            assert len(it.host.all(ProcessStarted)) == 4


async def test_a_verdict_that_no_longer_holds_is_forgotten(journal: Journal) -> None:
    entry = raw("--discover", "modern", *journal.flags)
    async with running(entry) as it:
        key = connect._reached_by(it.backend.server)
    shared = Shared(eras={key: "handshake"})
    with trio.fail_after(GUARD):
        async with running(entry, shared=shared) as it:
            with pytest.raises(ConnectFailed, match="unsupported version"):
                await it.backend.connection()
            assert key not in shared.eras
            client = await it.backend.connection()
            assert client.negotiated.is_modern
    assert shared.eras[key] == "modern"


@pytest.mark.parametrize("era", ["handshake", "modern"])
async def test_an_era_that_is_configured_is_not_asked_for(era: str, journal: Journal) -> None:
    entry = raw("--discover", "modern" if era == "modern" else "die", *journal.flags)
    with trio.fail_after(GUARD):
        async with running(entry | {"era": era}) as it:
            client = await it.backend.connection()
    assert client.negotiated.is_modern is (era == "modern")
    assert ("initialize" in names(journal)) is (era == "handshake")
    assert ("server/discover" in names(journal)) is (era == "modern")


async def test_verdicts_are_not_collected_for_ever() -> None:
    shared = Shared()
    for number in range(ERAS + 10):
        shared.remember((str(number),), "modern")
    assert len(shared.eras) == ERAS
    assert ("0",) not in shared.eras
    assert (str(ERAS + 9),) in shared.eras


@pytest.mark.parametrize("era", ["handshake", "modern"])
async def test_both_eras_are_found_out_over_http(era: Any) -> None:
    with trio.fail_after(GUARD):
        async with open_http_server(HttpServer(era)) as server, running({"url": server.url}) as it:
            client = await it.backend.connection()
            assert client.negotiated.is_modern is (era == "modern")
            result = await it.call("echo", text="grüße")
    assert result["content"][0]["text"] == '{"text": "gr\\u00fc\\u00dfe"}'
    assert result["x-vendor"] == 1


async def test_odd_values_in_the_answer_to_initialize_are_as_if_missing(tmp_path: Path) -> None:
    odd = {"capabilities": [1], "serverInfo": "me", "instructions": {"a": 1}}
    results = {"initialize": {"protocolVersion": "2025-06-18", **odd}}
    with trio.fail_after(GUARD):
        async with running(program(Play(results=results), tmp_path)) as it:
            agreed = (await it.backend.connection()).negotiated
    assert (agreed.protocol_version, agreed.capabilities) == ("2025-06-18", {})
    assert (agreed.server_info, agreed.instructions) == ({}, None)
