"""What shells can ask: ``emceepee tools``, ``servers``, ``logs``, ``sessions``, ``completion``."""

from __future__ import annotations

import json
import os
import pty
import re
import shutil
import subprocess
from pathlib import Path
from select import select
from termios import tcsetwinsize
from typing import Any

import pytest

import warm
from emceepee_client import GUARD, write_config
from emceepee_lines import run
from emceepee_trio.cli import COMMANDS
from emceepee_trio.commands.common import remote
from emceepee_trio.commands.common.remote import RemoteSession
from fake_backends import Journal, demo, raw
from outside import find
from served import serve

NO_RESTART = {"restart": {"enabled": False}}


def test_tools_of_all_servers_are_listed(tmp_path: Path) -> None:
    config = write_config(tmp_path, {"raw": raw(), "demo": demo()})
    told = run("tools", "--config", config)
    assert (told.returncode, told.stderr) == (0, "")
    head, *rows = told.stdout.splitlines()
    assert head.split() == ["SERVER", "TOOL", "DESCRIPTION"]
    found = [row.split(maxsplit=2)[:2] for row in rows]
    assert ["raw", "echo"] in found
    assert ["demo", "slow"] in found
    told = run("tools", "--json", "--config", config)
    tools = json.loads(told.stdout)
    assert [[tool["server"], tool["name"]] for tool in tools] == found
    assert all("inputSchema" in tool for tool in tools)


def test_tools_of_one_server_are_listed_with_their_arguments(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.jsonl")
    config = write_config(tmp_path, {"demo": demo(), "demo2": raw(*journal.flags)})
    told = run("tools", "demo", "--config", config)
    assert (told.returncode, told.stderr) == (0, "")
    rows = told.stdout.splitlines()
    assert rows[0].split() == ["TOOL", "DESCRIPTION"]
    assert any(row.startswith("slow [seconds] [steps]  Work for a while") for row in rows)
    assert any(row.startswith("add a b ") for row in rows)
    # Nobody else was started for that.
    assert journal.entries() == []
    told = run("tools", "dmo", "--config", config)
    assert (told.returncode, told.stdout) == (1, "")
    assert told.stderr == (
        "emceepee tools: no server 'dmo', did you mean \"demo\"? there are: demo, demo2\n"
    )


def test_servers_are_listed_with_what_is_wrong(tmp_path: Path) -> None:
    servers: dict[str, Any] = {
        "raw": raw(),
        "dying": raw("--exit-at-once", 3) | NO_RESTART,
        "lacking": {"command": "sh", "env": {"KEY": "${NOT_SET_ANYWHERE}"}},
    }
    config = write_config(tmp_path, servers)
    told = run("servers", "--config", config)
    assert told.returncode == 1
    head, *rows = told.stdout.splitlines()
    assert head.split() == ["NAME", "STATUS", "TRANSPORT", "TARGET", "ERROR"]
    assert [row.split()[:2] for row in rows] == [
        ["raw", "connected"],
        ["dying", "error"],
        ["lacking", "disabled"],
    ]
    assert "process exited (code 3)" in rows[1]
    assert "environment variable NOT_SET_ANYWHERE is not set (env.KEY)" in rows[2]
    told = run("tools", "--config", config)
    assert told.returncode == 1
    assert "raw" in told.stdout
    assert "emceepee tools: dying: " in told.stderr
    for what in ("servers", "tools"):
        told = run(what, XDG_CONFIG_HOME=str(tmp_path))
        assert told.stdout == f"no {what}\n"
        # As where the daemon is the one that has them.
        assert "--url asks a daemon that runs" in told.stderr


def test_logs_are_printed(tmp_path: Path) -> None:
    talking = {"command": "sh", "args": ["-c", "echo 'cannot open the door' >&2; exit 3"]}
    config = write_config(tmp_path, {"talking": talking | NO_RESTART, "raw": raw()})
    told = run("logs", "talking", "--config", config)
    assert (told.returncode, told.stderr) == (0, "")
    (line,) = told.stdout.splitlines()
    assert line.endswith(" talking stderr info: cannot open the door")
    told = run("logs", "raw", "--config", config)
    assert told.stdout == ""
    assert told.stderr.startswith(f"emceepee logs: nothing was logged by servers of {config}; ")
    told = run("logs", "nobody", "--config", config)
    assert told.stderr == "emceepee logs: no server 'nobody'; there are: raw, talking\n"


def test_logs_are_followed(tmp_path: Path) -> None:
    """Until nobody reads them any more, which is no mistake."""
    talking = {"command": "sh", "args": ["-c", "while echo again >&2; do sleep 0.1; done"]}
    config = write_config(tmp_path, {"talking": talking})
    command = [*warm.command("emceepee_trio"), "logs", "-f", "--config", str(config)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        for _ in range(2):
            assert b"talking stderr" in process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(GUARD) == 141


def test_a_running_daemon_is_asked_for_them(tmp_path: Path) -> None:
    config = write_config(tmp_path, {"raw": raw(), "demo": demo()})
    with serve(tmp_path, "--config", str(config)) as daemon:
        how = ("--url", daemon.url, "--state-dir", tmp_path)
        assert "raw   connected  stdio" in run("servers", *how).stdout
        assert "echo text" in run("tools", "demo", *how).stdout
        assert run("logs", "raw", *how).returncode == 0
        told = run("logs", "nobody", *how)
        assert told.stderr.startswith("emceepee logs: no server 'nobody'; there are: ")
        told = run("tools", "nobody", *how)
        assert (told.returncode, told.stdout) == (1, "")
        assert told.stderr.startswith("emceepee tools: nobody: ")
        assert run("sessions", *how).stdout == "no sessions\n"
        assert json.loads(run("sessions", "--json", *how).stdout) == []
        idle = run("status", *how).stdout
        assert re.search(r"no sessions\n\n.*\n.*\nraw +stdio .*\ndemo +stdio ", idle)
        with RemoteSession.connected(
            remote.RemoteDaemon.find(daemon.url, tmp_path), "window"
        ) as client:
            client.call("remove_server", {"name": "demo"})
            talk = {"server": "raw", "tool": "stderr", "args": {"line": "hello"}}
            client.call("execute_tool", talk)
            hello = " raw stderr info: hello 0 (session "
            while hello not in run("logs", "raw", *how).stdout:
                pass  # stderr is a pipe of its own
            assert hello in run("logs", *how).stdout  # it stays where it is
            told = run("logs", "demo", *how)
            assert told.stderr == "emceepee logs: no server 'demo'; there are: raw\n"
            head, row = run("servers", *how).stdout.splitlines()
            assert head.split()[:3] == ["SESSION", "NAME", "STATUS"]
            assert row.split()[1] == "raw"
    told = run("tools", *how)
    assert told.returncode == 1
    assert told.stderr.startswith(f"emceepee tools: no daemon answers at {daemon.url}")


# -- completion ----------------------------------------------------------------------------------


def completed(*words: str) -> list[str]:
    """What bash would offer for the last of *words*."""
    script = run("completion", "bash").stdout + (
        'COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _emceepee; printf \'%s\\n\' "${COMPREPLY[@]}"\n'
    )
    told = subprocess.run(
        ["bash", "-c", script, "bash", *words], capture_output=True, text=True, check=True
    )
    return told.stdout.split()


def test_bash_completes_commands_and_options() -> None:
    assert completed("emceepee", "st") == ["stdio", "status"]
    assert set(COMMANDS) <= set(completed("emceepee", ""))
    assert completed("emceepee", "serve", "--no") == ["--no-auth"]
    assert completed("emceepee", "serve", "--log-format", "") == ["json", "text"]
    assert completed("emceepee", "serve", "--config", "") == []
    assert completed("emceepee", "completion", "z") == ["zsh"]
    assert completed("emceepee", "connect", "co") == ["codex", "copilot"]
    assert completed("emceepee", "--") == ["--help", "--version"]


# Lines, each with what is offered for its end, and what is not.
LINES: tuple[tuple[str, set[str], set[str]], ...] = (
    ("emceepee s", {"serve", "servers", "sessions", "status", "stdio"}, {"call", "script"}),
    ("emceepee --", {"--help", "--version"}, {"serve", "--demo"}),
    ("emceepee serve --", {"--bind", "--no-auth"}, {"--version", "--follow"}),
    ("emceepee serve --no-auth --", {"--bind"}, set()),
    ("emceepee serve --log-format ", {"json", "text"}, {"script"}),
    ("emceepee tools serve --", {"--json"}, {"--bind"}),
    ("emceepee completion ", {"bash", "fish", "zsh"}, {"script"}),
    ("emceepee check ", {"script"}, {"json"}),
    ("emceepee connect c", {"cursor", "codex"}, {"zed"}),
    ("emceepee install-service --", {"--user", "--remove"}, {"--json"}),
)


def test_fish_completes(tmp_path: Path) -> None:
    fish = find("fish")
    (tmp_path / "script").write_text(run("completion", "fish").stdout, "utf-8")
    asked = "; echo ==; ".join(f"complete -C '{line}'" for line, _, _ in LINES)
    told = subprocess.run(
        [fish, "--no-config", "-c", f"source script; {asked}"],
        capture_output=True,
        cwd=tmp_path,
        env={**os.environ, "HOME": str(tmp_path)},
        text=True,
        check=True,
    )
    assert told.stderr == ""
    for (line, wanted, others), said in zip(LINES, told.stdout.split("==\n"), strict=True):
        offered = {row.split("\t")[0] for row in said.splitlines()}
        assert wanted <= offered, line
        assert not others & offered, line


def test_zsh_completes(tmp_path: Path) -> None:
    zsh = find("zsh")
    (tmp_path / "script").write_text(run("completion", "zsh").stdout, "utf-8")
    (tmp_path / "other").touch()  # of files, too, there is more than one to list
    terminal, theirs = pty.openpty()
    tcsetwinsize(terminal, (200, 200))
    process = subprocess.Popen(
        [zsh, "-f", "-i"],
        cwd=tmp_path,
        env=os.environ | {"HOME": str(tmp_path), "TERM": "dumb"},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    said = ""

    def until(mark: str) -> str:
        nonlocal said
        while mark not in said:
            assert select([terminal], [], [], GUARD)[0], said
            said += os.read(terminal, 65536).decode("ascii", "replace").replace("\r", "")
        before, _, said = said.partition(mark)
        return before

    def write(text: str) -> None:
        os.write(terminal, text.encode())

    try:
        # Words with quotes inside, so that the echo of what is typed is none of them.
        write("unset zle_bracketed_paste; LISTMAX=1000; autoload -U compinit; compinit -D -u\n")
        write(". ./script; PS1=THE''PROMPT\n")
        for line, wanted, others in LINES:
            until("THEPROMPT")  # now it reads key by key
            write(f"{line}\t\t\x15print DO''NE\n")
            # The list stands between the line and the one that Tab has begun to fill in.
            offered = set(until("DONE").partition("\n")[2].rpartition("THEPROMPT")[0].split())
            assert wanted <= offered, line
            assert not others & offered, line
    finally:
        process.kill()
        process.wait()
        os.close(terminal)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_script_of_each_shell_has_all_commands(shell: str) -> None:
    told = run("completion", shell)
    assert (told.returncode, told.stderr) == (0, "")
    for name in COMMANDS:
        assert name in told.stdout
    for option in ("bind", "print-entry", "timeout", "follow"):
        assert option in told.stdout
    if shutil.which(shell) is not None:
        parsed = subprocess.run([shell, "-n"], input=told.stdout, text=True, check=False)
        assert parsed.returncode == 0


# -- terminals -----------------------------------------------------------------------------------


def test_a_log_on_a_terminal_is_text(tmp_path: Path) -> None:
    config = write_config(tmp_path, {"one": {"command": "sh", "autoApprove": ["y"]}})
    ours, theirs = pty.openpty()
    command = [*warm.command("emceepee_trio"), "stdio", "--config", str(config)]
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=theirs
    ) as process:
        os.close(theirs)
        line = os.read(ours, 4096).decode()
        assert process.wait(GUARD) == 0
    os.close(ours)
    assert " warn  config_warning path=" in line
