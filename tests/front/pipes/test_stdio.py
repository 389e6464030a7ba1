"""One session on standard input and output: its beginning, its end, and what is no message."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio

from emceepee_client import GUARD, MODERN, Answer, is_running, log_lines, write_config
from emceepee_lines import open_lines, request
from fake_backends import Journal, demo, raw, until
from like import Like

PARSE_ERROR, INVALID_REQUEST, INVALID_PARAMS = -32700, -32600, -32602
CLOSED = -32000


# -- the beginning ---------------------------------------------------------------------------------


async def test_a_handshake_tells_who_we_are_and_how_to_go_on(tmp_path: Path) -> None:
    async with open_lines(tmp_path) as lines:
        result = (await lines.initialize())["result"]
        assert result["protocolVersion"] == "2025-11-25"
        assert result["serverInfo"] == {"name": "emceepee", "version": Like(r"\d+\.\d+\.\d+")}
        assert {"tools", "resources"} <= result["capabilities"].keys()
        # What we are told of servers goes through await_activity; our own lists never change.
        assert not result["capabilities"]["tools"].get("listChanged")
        for tool in ("list_servers", "add_server", "execute_tool", "await_activity"):
            assert tool in result["instructions"]
        assert {"respond_to_elicitation", "get_task_result"} <= set(
            result["instructions"].replace(".", " ").split()
        )


async def test_a_modern_client_discovers_the_same(tmp_path: Path) -> None:
    async with open_lines(tmp_path) as lines:
        found = (await lines.request(1, "server/discover", {"_meta": META}))["result"]
        assert MODERN in found["supportedVersions"]
        assert "await_activity" in found["instructions"]
        info = found["_meta"]["io.modelcontextprotocol/serverInfo"]
        assert info["name"] == "emceepee"
        tools = (await lines.request(2, "tools/list", {"_meta": META}))["result"]["tools"]
        assert len(tools) == 39
        # One era to a connection.
        refused = await lines.request(3, "initialize", {"protocolVersion": "2025-11-25"})
        assert "error" in refused


META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": {"name": "pipes", "version": "0"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


async def test_nothing_waits_for_servers_that_hang(tmp_path: Path, journal: Journal) -> None:
    servers = {
        "silent": raw("--silent", *journal.flags),
        "slow": raw("--start-when", tmp_path / "never"),
        "garbage": raw("--garbage"),
        "missing": {"command": "no-such-program"},
    }
    async with open_lines(tmp_path, servers) as lines:
        assert "result" in await lines.initialize()
        assert len((await lines.request(1, "tools/list"))["result"]["tools"]) == 39
        listed = (await lines.call(2, "list_servers")).json["servers"]
        assert [server["name"] for server in listed] == list(servers)
        assert "connected" not in [server["status"] for server in listed]
        assert "result" in await lines.request(3, "ping")


# -- the end ---------------------------------------------------------------------------------------


@asynccontextmanager
async def no_longer_than_a_second() -> AsyncGenerator[None]:
    """And however much longer this machine takes for everything: fifty starts of a bare Python."""
    starts = []

    async def measure() -> None:
        while True:
            began = trio.current_time()
            await trio.run_process([sys.executable, "-I", "-S", "-c", ""])
            starts.append(trio.current_time() - began)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(measure)
        began = trio.current_time()
        yield
        took = trio.current_time() - began
        nursery.cancel_scope.cancel("measured")
    assert took < 1 + 50 * max(starts, default=0)


@pytest.mark.parametrize(
    "how", [None, signal.SIGTERM, signal.SIGINT, signal.SIGHUP], ids=lambda how: how and how.name
)
async def test_nothing_is_left_running_at_the_end(
    tmp_path: Path, how: signal.Signals | None
) -> None:
    """Whatever the servers are doing then, also those that want to stay."""
    servers = {
        "raw": raw(),
        "modern": raw("--discover", "modern"),
        "stubborn": raw("--stubborn"),
        "silent": raw("--silent", "--stubborn"),
        "demo": demo(),
    }
    async with open_lines(tmp_path, servers) as lines:
        await lines.initialize()
        for server in servers:
            if server != "silent":
                text = {"text": "hello"}
                assert (await lines.execute(server, "echo", text)).content[0]["text"] == "hello"
        await lines.execute("raw", "never", timeout_ms=0)
        await lines.execute("modern", "string_id_question", timeout_ms=0)
        await lines.execute("silent", "echo", timeout_ms=0)
        await lines.call("timer", "set_timer", duration_ms=3_600_000, message="never")
        pids = [await lines.pid(server) for server in servers]
        assert all(map(is_running, pids))
        await lines.send(request("waiting", "tools/call", {"name": "await_activity"}))
        async with no_longer_than_a_second():
            assert await lines.end(how) == 0
        assert [pid for pid in pids if is_running(pid)] == []
        assert lines.child.returncode == 0


@pytest.mark.parametrize("how", [None, signal.SIGTERM], ids=["end of input", "SIGTERM"])
async def test_it_may_end_before_anything_has_begun(
    tmp_path: Path, how: signal.Signals | None
) -> None:
    async with open_lines(tmp_path, {"silent": raw("--silent", "--stubborn")}) as lines:
        if how is not None:  # it is up once it says that it has a session
            await until(lambda: "session_created" in lines.stderr.read_text("utf-8"))
        assert await lines.end(how) == 0
        assert lines.other == []


async def test_calls_under_way_at_the_end_of_input_are_answered(
    tmp_path: Path, journal: Journal
) -> None:
    async with open_lines(tmp_path, {"raw": raw(*journal.flags)}) as lines:
        await lines.initialize()
        arguments = {"server": "raw", "tool": "never"}
        await lines.send(
            request("call", "tools/call", {"name": "execute_tool", "arguments": arguments})
        )
        await journal.wait_for_marker("never started")
        async with no_longer_than_a_second():
            assert await lines.end() == 0
        (answer,) = [m for m in lines.other if m.get("id") == "call"]
        assert answer["error"]["code"] == CLOSED
        # The server's input has ended, too.
        assert journal.entries()[-1] == {"eof": True}


async def test_who_waits_for_activity_is_told_that_it_is_over(tmp_path: Path) -> None:
    async with open_lines(tmp_path) as lines:
        await lines.initialize()
        arguments = {"timeout_ms": 900_000}
        await lines.send(
            request("wait", "tools/call", {"name": "await_activity", "arguments": arguments})
        )
        assert await lines.end() == 0
        (answer,) = [m for m in lines.other if m.get("id") == "wait"]
        assert Answer.of(answer["result"]).error["code"] == "TOOL_ERR_TIMEOUT"


async def test_it_ends_when_nobody_reads_its_output(tmp_path: Path) -> None:
    async with open_lines(tmp_path, {"raw": raw(), "stubborn": raw("--stubborn")}) as lines:
        await lines.initialize()
        pids = [await lines.pid(server) for server in ("raw", "stubborn")]
        assert lines.child.stdout is not None
        await lines.child.stdout.aclose()
        await lines.send(request(1, "ping"))
        assert await lines.child.wait() == 0
        assert [pid for pid in pids if is_running(pid)] == []


async def test_a_client_that_does_not_read_cannot_keep_it(tmp_path: Path) -> None:
    async with open_lines(tmp_path, {"raw": raw()}, results={"inline_bytes": 0}) as lines:
        await lines.initialize()
        pid = await lines.pid("raw")
        arguments = {"server": "raw", "tool": "big", "args": {"size": 300_000}}
        call = {"name": "execute_tool", "arguments": arguments}
        await lines.send(*(request(n, "tools/call", call) for n in range(10)))
        assert lines.child.stdin is not None
        async with no_longer_than_a_second():
            await lines.child.stdin.aclose()
            assert await lines.child.wait() == 0
        assert not is_running(pid)


CRASHING = """
import sys
import trio
from emceepee_trio.cli import main
from emceepee_trio.session.session import Session

async def run():
    await trio.sleep(0.2)
    raise LookupError("a bug")

opened = Session.__attrs_post_init__

def open_one(self):
    opened(self)
    self.inner.start_soon(run)  # around every firewall

Session.__attrs_post_init__ = open_one
sys.exit(main(sys.argv[1:]))
"""


async def test_a_bug_that_ends_the_session_ends_the_process(tmp_path: Path) -> None:
    """A client starts its servers again; it would never come out of a session that is dead."""
    config = write_config(tmp_path, {"raw": raw()})
    command = [sys.executable, "-c", CRASHING, "stdio", "--config", str(config)]
    stderr = tmp_path / "stderr.log"
    with trio.fail_after(GUARD), stderr.open("w") as errlog:
        child = await trio.lowlevel.open_process(command, stdin=subprocess.PIPE, stderr=errlog)
        try:
            assert await child.wait() == 1
        finally:
            child.kill()
            assert child.stdin is not None
            await child.stdin.aclose()
    (logged,) = log_lines(stderr)
    assert (logged["level"], logged["event"]) == ("error", "session_crashed")
    assert "LookupError: a bug" in logged["traceback"]


async def test_stderr_carries_logs_and_stdout_messages(tmp_path: Path) -> None:
    """Also of servers that talk; both are looked at by whoever leaves `open_lines`."""
    async with open_lines(tmp_path, {"raw": raw(), "noisy": raw("--garbage")}) as lines:
        await lines.initialize()
        await lines.execute("raw", "garbage")
        await lines.execute("raw", "stderr")
        await lines.end()
    logged = [line["event"] for line in log_lines(lines.stderr)]
    assert logged[0] == "session_created"
    assert logged[-1] == "registry_shutdown_complete"
    assert {"server_connected", "session_destroyed", "registry_shutdown_start"} <= set(logged)


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path / "journal.jsonl")
