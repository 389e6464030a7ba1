"""``emceepee call``: one tool call from the shell."""

from __future__ import annotations

import json
import os
import pty
import re
import shlex
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import trio

import warm
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
    assert (told.returncode, told.stdout) == (1, "")
    (line,) = told.stderr.splitlines()
    assert line.startswith("emceepee call: server 'raw' answered tools/call with an error: ")
    assert line.endswith("(code -32099)")


def test_what_cannot_be_called_is_exit_1(tmp_path: Path) -> None:
    servers = {"dying": raw("--exit-at-once", 3) | NO_RESTART, "missing": {"command": "no-such"}}
    config = write_config(tmp_path, servers | {"raw": raw()})
    for server, tool, words in (
        ("nobody", "echo", "no server 'nobody'; there are: dying, missing, raw"),
        ("rwa", "echo", "no server 'rwa', did you mean \"raw\"? there are: dying, missing, raw"),
        ("raw", "ecko", 'did you mean "echo"?; `emceepee tools raw` lists what it has'),
        ("dying", "echo", "process exited (code 3)"),
        ("missing", "echo", "command 'no-such' not found"),
        ("raw", "exit", "server 'raw' was lost before it answered tools/call; the outcome is"),
    ):
        told = run("call", server, tool, "--config", config)
        assert (told.returncode, told.stdout) == (1, "")
        (line,) = told.stderr.splitlines()
        assert line.startswith("emceepee call: ")
        assert words in line
        # Those are for models.
        assert not re.search(r"list_tools|list_servers|get_server_status|await_activity", line)


def test_arguments_are_words_of_a_shell(tmp_path: Path) -> None:
    config = write_config(tmp_path, {"demo": demo(), "raw": raw()})

    def sent(*words: str | Path, stdin: str = "") -> Any:
        told = run("call", "raw", "echo", *words, "--config", config, stdin=stdin)
        assert (told.returncode, told.stderr) == (0, "")
        return json.loads(told.stdout)["x-arguments"]

    (tmp_path / "all.json").write_text('{"text": "from a file", "n": 1}')
    (tmp_path / "text").write_text("a=b\n[1]\n")
    assert sent("text=a=b", "n=5", "on=true", "list=[1, 2]") == {
        "text": "a=b",
        "n": 5,
        "on": True,
        "list": [1, 2],
    }
    assert sent("text:=5", 'more:={"a": null}') == {"text": 5, "more": {"a": None}}
    assert sent(f"text=@{tmp_path}/text") == {"text": "a=b\n[1]\n"}
    assert sent(f"@{tmp_path}/all.json", "m=2") == {"text": "from a file", "n": 1, "m": 2}
    assert sent("-", stdin='{"text": "from stdin"}') == {"text": "from stdin"}
    # What is a string to the tool stays one.
    told = run("call", "demo", "echo", "text=5", "--text", "--config", config)
    assert (told.returncode, told.stdout) == (0, "5\n")
    told = run("call", "demo", "add", "a=1", "b=2.5", "--text", "--config", config)
    assert (told.returncode, json.loads(told.stdout)) == (0, {"sum": 3.5})


def test_text_alone_is_printed_if_that_is_asked_for() -> None:
    told = run("call", "demo", "echo", "text=hello", "--text", "--demo")
    assert (told.returncode, told.stdout, told.stderr) == (0, "hello\n", "")
    told = run("call", "demo", "fail", "--text", "--demo")
    assert (told.returncode, told.stdout) == (1, "")
    assert told.stderr == "emceepee call: this tool always fails\n"


def test_a_call_has_a_time_out() -> None:
    told = run("call", "demo", "slow", "seconds=3600", "--timeout", "0.2", "--demo")
    assert (told.returncode, told.stdout) == (1, "")
    assert told.stderr == "emceepee call: no answer within 0.2 s; it is cancelled\n"
    for wrong in ("0", "-1", "soon", "nan", "4000"):
        assert run("call", "demo", "slow", "--timeout", wrong, "--demo").returncode == 2


def test_a_question_is_told_where_nobody_can_answer() -> None:
    told = run("call", "demo", "ask_name", "--demo")
    assert (told.returncode, told.stdout) == (1, "")
    (line,) = told.stderr.splitlines()
    said = "emceepee call: server 'demo' asks: What is your name?; nobody is here to answer. "
    assert line.startswith(said)
    assert "--url" in line


@contextmanager
def at_a_terminal(*words: str, **environment: str) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """A command that somebody has typed, and where that one sits."""
    ours, theirs = pty.openpty()
    command = [*warm.command("emceepee_trio"), *words]
    environment = {"PATH": os.environ["PATH"], "TERM": "xterm"} | environment
    with subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment
    ) as process:
        os.close(theirs)
        try:
            yield process, ours
        finally:
            os.close(ours)  # which ends it, if it is still there


def seen(terminal: int, until: str = "\0") -> str:
    """What stands there from now on, to *until* or the end."""
    told = b""
    with suppress(OSError):
        while until not in told.decode(errors="ignore"):
            if not (chunk := os.read(terminal, 65536)):
                break
            told += chunk
    return told.decode().replace("\r\n", "\n")


def test_who_sits_there_is_asked(tmp_path: Path) -> None:
    words = ("call", "demo", "ask_name", "question=Who?", "--text", "--demo")
    with at_a_terminal(*words, HOME=str(tmp_path)) as (process, terminal):
        assert "demo asks:\n\nWho?" in seen(terminal, "> ")
        os.write(terminal, b"Ada\n\n\n")
        assert "Hello, Ada" in seen(terminal)
    assert process.returncode == 0


def test_who_sits_there_and_says_no_ends_its_call(tmp_path: Path) -> None:
    words = ("call", "demo", "ask_name", "--demo")
    with at_a_terminal(*words, HOME=str(tmp_path)) as (process, terminal):
        seen(terminal, "> ")
        os.write(terminal, b"\x04")  # Ctrl-D
        assert "it was not answered, so the call is cancelled" in seen(terminal)
    assert process.returncode == 1
    with at_a_terminal(*words, HOME=str(tmp_path)) as (process, terminal):
        seen(terminal, "> ")
        process.send_signal(signal.SIGINT)
        seen(terminal)
    assert process.returncode == 130


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
    other = Journal(tmp_path / "other.jsonl")
    entries = {"raw": raw(*journal.flags), "other": raw(*other.flags)}
    config = write_config(tmp_path, entries)
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
        assert (told.returncode, told.stdout) == (1, "")
        assert "server 'raw' answered tools/call with an error" in told.stderr
        told = run("call", "nobody", "echo", *how)
        assert (told.returncode, told.stdout) == (1, "")
        assert told.stderr == "emceepee call: no server 'nobody'; there are: other, raw\n"
        told = run("call", "raw", "echo", "text=7", "--text", *how)
        assert (told.returncode, told.stdout, told.stderr) == (0, "7\n", "")
        assert sessions(daemon.url, tmp_path) == []
        # The others of the daemon were not started, known or not.
        assert not other.entries()
        told = run("tools", "raw", *how)
        assert told.returncode == 0
        assert not other.entries()
    assert journal.entries()[-1] == {"eof": True}


def test_who_closes_the_terminal_leaves_nothing_with_the_daemon(tmp_path: Path) -> None:
    with serve(tmp_path, "--demo") as daemon:
        how = ("--url", daemon.url, "--state-dir", str(tmp_path))
        for number in (signal.SIGHUP, signal.SIGTERM):
            with subprocess.Popen(
                [*warm.command("emceepee_trio"), "call", "demo", "ask_name", *how],
                stdin=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
            ) as process:
                try:
                    assert process.stderr is not None
                    assert "asks: What is your name?" in process.stderr.readline()
                    process.send_signal(number)
                    assert process.wait(GUARD) == 128 + number
                finally:
                    process.kill()
        assert sessions(daemon.url, tmp_path) == []


def test_a_slow_call_of_a_daemon_is_waited_for(tmp_path: Path) -> None:
    """Also by a socket, and where the answer comes as a stream with progress in it."""
    with TemporaryDirectory() as short:
        with serve(tmp_path, "--demo", "--bind", f"unix:{short}/s"):
            how = ("--url", f"unix:{short}/s", "--state-dir", tmp_path)
            told = run("call", "demo", "slow", '{"seconds": 0.5}', *how)
            assert (told.returncode, told.stderr) == (0, "")
            assert "done after 0.5 s" in told.stdout


def test_a_question_of_a_daemons_is_answered_elsewhere(tmp_path: Path) -> None:
    """By another command, whether somebody sits here or not; the first answer counts."""
    with serve(tmp_path, "--demo", EMCEEPEE_TOKEN="t") as daemon:
        where = ("--url", daemon.url.removesuffix("/mcp"))
        asks = ("call", "demo", "ask_name", "--text", *where)
        with subprocess.Popen(
            [*warm.command("emceepee_trio"), *asks],
            env={**os.environ, "EMCEEPEE_TOKEN": "t"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            try:
                assert process.stderr is not None
                line = process.stderr.readline()
                assert "asks: What is your name?; `emceepee answer " in line
                words = shlex.split(line.split("`")[1])[1:]
                said = run(*words, "name=Ada", EMCEEPEE_TOKEN="t")
                assert (said.stdout, said.stderr) == ("demo has your answer: accepted.\n", "")
                told, complained = process.communicate()
            finally:
                process.kill()
        assert (process.returncode, told, complained) == (0, "Hello, Ada\n", "")

        with at_a_terminal(*asks, EMCEEPEE_TOKEN="t") as (typed, terminal):
            offered = seen(terminal, "elsewhere.")
            assert "Press Enter to answer it here" in offered
            words = shlex.split(offered.split("`")[1])[1:]
            run(*words, "name=Eve", EMCEEPEE_TOKEN="t")
            rest = seen(terminal)
        assert "Somebody else has answered" in rest
        assert "Hello, Eve" in rest
        assert typed.returncode == 0

        with at_a_terminal(*asks, EMCEEPEE_TOKEN="t") as (typed, terminal):
            seen(terminal, "elsewhere.")
            os.write(terminal, b"\n")
            seen(terminal, "> ")
            os.write(terminal, b"Bob\n\n\n")
            assert "Hello, Bob" in seen(terminal)
        assert typed.returncode == 0


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
        assert "no server 'demo'; there are none" in told.stderr


def test_a_daemon_has_servers_of_its_own() -> None:
    told = run("call", "demo", "echo", "--demo", "--url", "http://127.0.0.1:1")
    assert told.returncode == 2
    assert "leave --config and --demo out" in told.stderr
    told = run("call", "demo", "echo", "--url", "127.0.0.1:1")
    assert told.returncode == 2
    assert "expected http://HOST:PORT or unix:PATH" in told.stderr
