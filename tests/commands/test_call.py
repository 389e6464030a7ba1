"""``emceepee call``: one tool call from the shell."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path

import trio

from emceepee_client import COMMAND, GUARD, is_running, write_config
from emceepee_lines import run
from fake_backends import Journal, demo, raw

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
