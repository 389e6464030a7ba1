"""``emceepee call``: one tool call from the shell."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import trio

from emceepee_client import COMMAND, GUARD, is_running, write_config
from emceepee_lines import run
from fake_backends import Journal, demo, raw
from served import serve

NO_RESTART = {"restart": {"enabled": False}}


def test_a_result_is_printed_as_the_server_gave_it(tmp_path: Path) -> None:
    config = write_config(tmp_path, {"raw": raw(), "hanging": raw("--silent")})
    told = run("call", "raw", "echo", '{"text": "grüße"}', "--config", config)
    assert told.returncode == 0
    assert json.loads(told.stdout) == {
        "content": [{"type": "text", "text": "grüße", "x-vendor": {"block": 1}}],
        "_meta": {"vendor/trace": "t-1"},
        "x-vendor": "top",
        "x-arguments": {"text": "grüße"},
    }
    assert "grüße" in told.stdout
    assert told.stderr == ""


def test_arguments_may_be_left_out_and_the_demo_asked(tmp_path: Path) -> None:
    told = run("call", "demo", "echo", '{"text": "hi"}', "--demo")
    assert told.returncode == 0
    assert json.loads(told.stdout)["content"][0]["text"] == "hi"
    config = write_config(tmp_path, {"raw": raw()})
    told = run("call", "raw", "structured_only", "--config", config)
    assert json.loads(told.stdout)["structuredContent"]["answer"] == 42


def test_a_tool_that_fails_is_exit_1(tmp_path: Path) -> None:
    config = write_config(tmp_path, {"raw": raw(), "demo": demo()})
    told = run("call", "demo", "fail", "--config", config)
    assert told.returncode == 1
    assert json.loads(told.stdout)["isError"] is True
    assert json.loads(told.stdout)["content"][0]["text"] == "this tool always fails"
    told = run("call", "raw", "rpc_error", "--config", config)
    assert told.returncode == 1
    error = json.loads(json.loads(told.stdout)["content"][0]["text"])["error"]
    assert error["code"] == "TOOL_ERR_EXECUTION_FAILED"
    assert error["details"]["code"] == -32099


def test_what_cannot_be_called_is_exit_1(tmp_path: Path) -> None:
    servers = {"dying": raw("--exit-at-once", 3) | NO_RESTART, "missing": {"command": "no-such"}}
    config = write_config(tmp_path, servers | {"raw": raw()})
    for server, tool, code in (
        ("nobody", "echo", "TOOL_ERR_SERVER_NOT_FOUND"),
        ("raw", "ecko", "TOOL_ERR_NOT_FOUND"),
        ("dying", "echo", "TOOL_ERR_CONNECT_FAILED"),
        ("missing", "echo", "TOOL_ERR_CONNECT_FAILED"),
        ("raw", "exit", "TOOL_ERR_SERVER_DISCONNECTED"),
    ):
        told = run("call", server, tool, "--config", config)
        assert told.returncode == 1
        result = json.loads(told.stdout)
        assert result["isError"] is True
        assert json.loads(result["content"][0]["text"])["error"]["code"] == code
        assert "Traceback" not in told.stderr


def test_only_the_server_that_is_called_is_started(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.jsonl")
    config = write_config(tmp_path, {"raw": raw(), "other": raw(*journal.flags)})
    assert run("call", "raw", "echo", "--config", config).returncode == 0
    assert journal.entries() == []


def test_the_default_configuration_is_used(tmp_path: Path) -> None:
    (tmp_path / "emceepee").mkdir()
    write_config(tmp_path, {"raw": raw()}).rename(tmp_path / "emceepee" / "config.json")
    told = run("call", "raw", "echo", XDG_CONFIG_HOME=str(tmp_path))
    assert told.returncode == 0


async def test_an_interrupt_ends_it_quietly_with_its_child(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.jsonl")
    config = write_config(tmp_path, {"raw": raw("--stubborn", *journal.flags)})
    command = [*COMMAND, "call", "raw", "never", "--config", str(config)]
    stderr = tmp_path / "stderr"
    with trio.fail_after(GUARD), stderr.open("w") as errlog:
        child = await trio.lowlevel.open_process(
            command, stdin=subprocess.DEVNULL, stdout=errlog, stderr=errlog
        )
        try:
            await journal.wait_for_marker("never started")
            pid = (await journal.wait_for(lambda entry: "started" in entry))["started"]
            child.send_signal(signal.SIGINT)
            assert await child.wait() == 130
        finally:
            child.kill()
    assert stderr.read_text() == ""
    assert not is_running(pid)


# -- of a running daemon ---------------------------------------------------------------------------


def sessions(url: str, state: Path) -> Any:
    told = run("status", "--json", "--url", url, "--state-dir", state)
    return json.loads(told.stdout)["sessions"]


def test_a_running_daemon_is_asked_in_a_session_that_ends(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.jsonl")
    config = write_config(tmp_path, {"raw": raw(*journal.flags)})
    # An address may be copied from wherever it is printed.
    with serve(tmp_path, "--config", str(config)) as daemon:
        how = ("--url", daemon.url, "--state-dir", tmp_path)
        told = run("call", "raw", "echo", '{"text": "grüße"}', *how)
        assert (told.returncode, told.stderr) == (0, "")
        # Nothing but what the tool answered.
        assert json.loads(told.stdout) == {
            "content": [{"type": "text", "text": "grüße", "x-vendor": {"block": 1}}],
            "_meta": {"vendor/trace": "t-1"},
            "x-vendor": "top",
            "x-arguments": {"text": "grüße"},
        }
        told = run("call", "raw", "rpc_error", *how)
        assert told.returncode == 1
        error = json.loads(json.loads(told.stdout)["content"][0]["text"])["error"]
        assert error["code"] == "TOOL_ERR_EXECUTION_FAILED"
        told = run("call", "nobody", "echo", *how)
        assert told.returncode == 1
        error = json.loads(json.loads(told.stdout)["content"][0]["text"])["error"]
        assert error["code"] == "TOOL_ERR_SERVER_NOT_FOUND"
        assert "there are: emceepee, raw" in error["message"]
        assert sessions(daemon.url, tmp_path) == []
    assert journal.entries()[-1] == {"eof": True}


def test_a_slow_call_of_a_daemon_is_waited_for(tmp_path: Path) -> None:
    """Also by a socket, and where the answer comes as a stream with progress in it."""
    with TemporaryDirectory() as short:
        with serve(tmp_path, "--demo", "--bind", f"unix:{short}/s"):
            how = ("--url", f"unix:{short}/s", "--state-dir", tmp_path)
            told = run("call", "demo", "slow", '{"seconds": 0.5}', *how)
            assert (told.returncode, told.stderr) == (0, "")
            assert "done after 0.5 s" in told.stdout


def test_a_daemon_that_does_not_answer_is_told_in_one_line(tmp_path: Path) -> None:
    with socket.socket() as unheard:
        unheard.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unheard.getsockname()[1]}"
        told = run("call", "demo", "echo", "--url", url)
    assert (told.returncode, told.stdout) == (1, "")
    (line,) = told.stderr.splitlines()
    assert f"no daemon answers at {url}" in line
    assert "`emceepee serve` starts one" in line
    with serve(tmp_path) as daemon:
        told = run("call", "demo", "echo", "--url", daemon.url, EMCEEPEE_TOKEN="wrong")
        assert (told.returncode, told.stdout) == (1, "")
        (line,) = told.stderr.splitlines()
        assert "wants another token; set EMCEEPEE_TOKEN" in line
        token = (tmp_path / "token").read_text().strip()
        told = run("call", "demo", "echo", "--url", daemon.url, EMCEEPEE_TOKEN=token)
        assert "TOOL_ERR_SERVER_NOT_FOUND" in told.stdout


def test_a_daemon_has_servers_of_its_own() -> None:
    told = run("call", "demo", "echo", "--demo", "--url", "http://127.0.0.1:1")
    assert told.returncode == 2
    assert "leave --config and --demo out" in told.stderr
    told = run("call", "demo", "echo", "--url", "127.0.0.1:1")
    assert told.returncode == 2
    assert "expected http://HOST:PORT or unix:PATH" in told.stderr
