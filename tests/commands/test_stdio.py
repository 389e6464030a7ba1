"""``emceepee stdio`` as a command; what it serves is looked at in ``tests/front``."""

from __future__ import annotations

import json
import os
import pty
import socket
import subprocess
from pathlib import Path
from typing import Any

import warm
from emceepee_client import GUARD, write_config
from emceepee_lines import request, run
from fake_backends import raw

HELLO = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "shell", "version": "0"},
}
SESSION = "".join(
    json.dumps(message) + "\n"
    for message in (
        request(1, "initialize", HELLO),
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        request(2, "tools/call", {"name": "list_servers", "arguments": {}}),
    )
)


def answers(stdout: str) -> dict[int, dict[str, Any]]:
    messages = [json.loads(line) for line in stdout.splitlines()]
    return {message["id"]: message for message in messages}


def test_input_may_come_from_a_pipe(tmp_path: Path) -> None:
    """What was asked before the end of input is answered."""
    config = write_config(tmp_path, {"raw": raw()})
    told = run("stdio", "--config", config, stdin=SESSION)
    assert told.returncode == 0
    found = answers(told.stdout)
    assert found.keys() == {1, 2}
    assert "result" in found[1]
    assert found[2]["result"]["isError"] is False


def test_a_single_question_is_answered() -> None:
    stamp = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "shell", "version": "0"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    asked = json.dumps(request(1, "server/discover", {"_meta": stamp}))
    for _ in range(3):  # whoever loses answers at the end loses about every other one
        told = run("stdio", stdin=asked + "\n")
        assert told.returncode == 0
        assert "instructions" in answers(told.stdout)[1]["result"]


def test_no_configuration_is_needed() -> None:
    told = run("stdio", stdin=SESSION)
    assert (told.returncode, told.stderr) == (0, "")
    assert "result" in answers(told.stdout)[1]


def test_the_log_is_json_or_text(tmp_path: Path) -> None:
    config = write_config(tmp_path, {"raw": raw(), "old": {"command": "x", "autoApprove": []}})
    told = run("stdio", "--config", config, "--log-level", "info", stdin="")
    assert (told.returncode, told.stdout) == (0, "")
    lines = [json.loads(line) for line in told.stderr.splitlines()]
    assert lines[0]["event"] == "config_warning"
    assert "autoApprove" in lines[0]["message"]
    assert {"session_created", "session_destroyed"} <= {line["event"] for line in lines}
    text = run("stdio", "--config", config, "--log-level", "info", "--log-format", "text", stdin="")
    assert text.returncode == 0
    assert not text.stderr.startswith("{")
    assert "config_warning" in text.stderr
    quiet = run("stdio", "--config", config, "--log-level", "error", stdin="")
    assert quiet.stderr == ""


def test_in_a_terminal_it_says_what_it_is_and_works() -> None:
    """Input and output are one open file, and input ends by a key."""
    ours, theirs = pty.openpty()
    child = subprocess.Popen(
        [*warm.command("emceepee_trio"), "stdio"],
        stdin=theirs,
        stdout=theirs,
        stderr=subprocess.PIPE,
        text=True,
    )
    with child, os.fdopen(ours, "r+b", buffering=0) as terminal:
        os.close(theirs)
        terminal.write(json.dumps(request(1, "initialize", HELLO)).encode() + b"\n")
        shown = b""
        while b'"result"' not in shown or not shown.endswith(b"\n"):
            shown += terminal.read(65536)
        terminal.write(b"\x04")
        assert child.wait(GUARD) == 0
        assert child.stderr is not None
        (line,) = child.stderr.read().splitlines()
    assert line.startswith("emceepee stdio: this waits for a client that speaks MCP")
    assert "emceepee --help" in line


def test_input_and_output_may_be_one_socket() -> None:
    ours, theirs = socket.socketpair()
    child = subprocess.Popen(
        [*warm.command("emceepee_trio"), "stdio"],
        stdin=theirs.fileno(),
        stdout=theirs.fileno(),
        stderr=subprocess.PIPE,
    )
    with child, ours, ours.makefile("r", encoding="utf-8") as lines:
        theirs.close()
        ours.sendall(SESSION.encode())
        ours.shutdown(socket.SHUT_WR)
        assert answers(lines.read()).keys() == {1, 2}
        assert child.wait(GUARD) == 0
        assert child.stderr is not None
        assert child.stderr.read() == b""
