"""One session on standard input and output: its beginning, its end, and what is no message."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import trio

from emceepee_client import (
    GUARD,
    MODERN,
    Like,
    is_running,
    log_lines,
    open_lines,
    request,
    write_config,
)
from fake_backends import Journal, demo, raw, until

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
        assert len(tools) == 35
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
        assert len((await lines.request(1, "tools/list"))["result"]["tools"]) == 35
        listed = (await lines.call(2, "list_servers")).json["servers"]
        assert [server["name"] for server in listed] == list(servers)
        assert "connected" not in [server["status"] for server in listed]
        assert "result" in await lines.request(3, "ping")


async def test_requests_may_come_in_any_pieces(tmp_path: Path) -> None:
    async with open_lines(tmp_path) as lines:
        await lines.initialize()
        for end in (b"\n", b"\r\n", b" \n\n\n"):
            line = json.dumps(request("pieces", "ping")).encode() + end
            for start in range(0, len(line), 7):
                await lines.write(line[start : start + 7])
                await trio.sleep(0.001)  # so that the reader wakes in between
            assert (await lines.answer("pieces"))["result"] == {}
        await lines.send(*(request(n, "ping") for n in range(500)))
        assert sorted([(await lines.receive() or {})["id"] for _ in range(500)]) == list(range(500))


# -- the end ---------------------------------------------------------------------------------------


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
        assert await lines.end() == 0
        (answer,) = [m for m in lines.other if m.get("id") == "call"]
        assert answer["error"]["code"] == CLOSED
        # The server's input has ended, too.
        assert journal.entries()[-1] == {"eof": True}


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
    async with open_lines(tmp_path, {"raw": raw()}) as lines:
        await lines.initialize()
        pid = await lines.pid("raw")
        arguments = {"server": "raw", "tool": "big", "args": {"size": 300_000}}
        call = {"name": "execute_tool", "arguments": arguments}
        await lines.send(*(request(n, "tools/call", call) for n in range(10)))
        assert lines.child.stdin is not None
        await lines.child.stdin.aclose()
        assert await lines.child.wait() == 0
        assert not is_running(pid)


CRASHING = """
import sys
import trio
from emceepee_trio.cli import main
from emceepee_trio.session.sweeper import Sweeper

async def run(self):
    await trio.sleep(0.2)
    raise LookupError("a bug")

Sweeper.run = run
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


# -- nonsense --------------------------------------------------------------------------------------

NONSENSE: list[tuple[bytes, Any, int]] = [
    (b"hello", None, PARSE_ERROR),
    (b'{"jsonrpc": "2.0", "id": 1, "method": "ping"', None, PARSE_ERROR),
    (b"\xff\xfe\x00", None, PARSE_ERROR),
    (b'"\xc3\x28"', None, PARSE_ERROR),
    (b"[" * 100_000, None, PARSE_ERROR),
    (b"7", None, INVALID_REQUEST),
    (b'"ping"', None, INVALID_REQUEST),
    (b"null", None, INVALID_REQUEST),
    (b"[]", None, INVALID_REQUEST),
    (b"{}", None, INVALID_REQUEST),
    (b'{"id": 1, "method": "ping"}', 1, INVALID_REQUEST),
    (b'{"jsonrpc": "1.0", "id": "a", "method": "ping"}', "a", INVALID_REQUEST),
    (b'{"jsonrpc": "2.0", "id": 2, "method": 7}', 2, INVALID_REQUEST),
    (b'{"jsonrpc": "2.0", "id": 3, "method": "ping", "params": [1]}', 3, INVALID_REQUEST),
    (b'{"jsonrpc": "2.0", "id": true, "method": "ping"}', None, INVALID_REQUEST),
    (b'{"jsonrpc": "2.0", "id": [], "method": "ping"}', None, INVALID_REQUEST),
    (b'{"jsonrpc": "2.0", "id": null, "method": "ping"}', None, INVALID_REQUEST),
    (b'{"jsonrpc": "2.0", "id": 1.5, "method": "ping"}', None, INVALID_REQUEST),
    (b'{"jsonrpc": "2.0", "id": 4, "method": "no/such"}', 4, -32601),
    (b'{"jsonrpc": "2.0", "id": 5, "method": "tools/call"}', 5, INVALID_PARAMS),
    (b'{"jsonrpc": "2.0", "id": 6, "method": "tools/call", "params": {}}', 6, INVALID_PARAMS),
    (b'{"jsonrpc": "2.0", "id": 7, "method": "resources/read"}', 7, INVALID_PARAMS),
]


async def test_every_kind_of_nonsense_gets_an_error_and_the_session_goes_on(
    tmp_path: Path,
) -> None:
    async with open_lines(tmp_path, {"raw": raw()}) as lines:
        await lines.initialize()
        task = (await lines.execute("raw", "never", timeout_ms=0)).task_id
        for line, request_id, code in NONSENSE:
            await lines.write(line + b"\n")
            answer = await lines.receive()
            assert answer is not None
            assert (answer["id"], answer["error"]["code"]) == (request_id, code), line
            assert answer["error"]["message"]
        (left,) = (await lines.call("tasks", "list_tasks")).json["tasks"]
        assert left["task_id"] == task


UNANSWERED = [
    b"",
    b"   \t",
    b'{"jsonrpc": "2.0", "method": "no/such/notification"}',
    b'{"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": 1}}',
    b'{"jsonrpc": "2.0", "method": 5}',
    b'{"jsonrpc": "2.0", "id": 99, "result": {}}',
    b'{"jsonrpc": "2.0", "id": "no-such-request", "result": {"action": "accept"}}',
    b'{"jsonrpc": "2.0", "id": 99, "error": {"code": 1, "message": "m"}}',
]


async def test_what_needs_no_answer_gets_none(tmp_path: Path) -> None:
    async with open_lines(tmp_path) as lines:
        await lines.initialize()
        for n, line in enumerate(UNANSWERED):
            await lines.write(line + b"\n")
            await lines.send(request(n, "ping"))
            assert await lines.receive() == {"jsonrpc": "2.0", "id": n, "result": {}}, line


async def test_a_request_before_the_handshake_is_refused(tmp_path: Path) -> None:
    async with open_lines(tmp_path) as lines:
        early = await lines.request(1, "tools/list")
        assert early["error"]["code"] == INVALID_PARAMS
        assert "result" in await lines.initialize()
        assert "result" in await lines.request(2, "tools/list")


async def test_a_list_of_messages_is_taken_apart(tmp_path: Path) -> None:
    async with open_lines(tmp_path, {"raw": raw()}) as lines:
        await lines.initialize()
        call = {"name": "list_timers", "arguments": {}}
        await lines.send(
            [
                request(1, "ping"),
                {"jsonrpc": "2.0", "method": "notifications/whatever"},
                7,
                request("two", "tools/call", call),
                {"id": 3, "method": "ping"},
                [request(4, "ping")],
                request(5, "ping"),
            ]
        )
        answers = [await lines.receive() or {} for _ in range(6)]
        assert {a["id"] for a in answers if "result" in a} == {1, "two", 5}
        refused = [(a["id"], a["error"]["code"]) for a in answers if "error" in a]
        assert sorted(refused, key=str) == [
            (3, INVALID_REQUEST),
            (None, INVALID_REQUEST),
            (None, INVALID_REQUEST),
        ]


LIMIT = 10_000


def padded(size: int, start: str, end: str) -> bytes:
    text = f'{start}"method": "ping", "params": {{"x": "{{}}"}}{end}'
    return text.replace("{}", "x" * (size - len(text) + 2), 1).encode()


async def test_a_message_that_is_too_long_is_refused_by_its_id(tmp_path: Path) -> None:
    """Wherever known clients write the id; the text in between is nobody's id."""
    first = '{"jsonrpc": "2.0", "id": 1, '
    last = ', "jsonrpc": "2.0", "id": "b-2"}'
    too_long = "message too long (limits.body 10000 bytes)"
    async with open_lines(tmp_path, limits={"body": LIMIT}) as lines:
        await lines.initialize()
        fitting = padded(LIMIT, first, "}")
        assert len(fitting) == LIMIT
        await lines.write(fitting + b"\n")
        assert (await lines.receive() or {})["id"] == 1
        for size in (LIMIT + 1, 70_000, 1_000_000):
            for line, request_id in (
                (padded(size, first, "}"), 1),
                (padded(size, '{"id":"a",', "}"), "a"),
                (padded(size, "{", last), "b-2"),
                (padded(size, "{", "}"), None),
                (b'{"method": "x", "params": {"id": 5, "y": "' + b"z" * size + b'"}}', None),
                (b'{"y": "' + b"z" * size + b'\\"id": 5}', None),
            ):
                assert len(line) >= size
                await lines.write(line + b"\n")
                answer = await lines.receive()
                assert answer == {
                    "jsonrpc": "2.0",
                    "id": request_id,
                    "error": {"code": INVALID_REQUEST, "message": too_long},
                }
        assert (await lines.request(9, "ping"))["result"] == {}


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
