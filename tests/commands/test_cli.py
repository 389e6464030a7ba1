"""The command line as such."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from emceepee_lines import run
from emceepee_trio.cli import COMMANDS, main


@pytest.mark.parametrize("option", ["--version", "-V"])
def test_the_version_is_told(option: str) -> None:
    told = run(option)
    assert (told.returncode, told.stdout, told.stderr) == (0, f"{version('emceepee-trio')}\n", "")


def test_without_a_command_help_is_printed() -> None:
    told = run()
    assert (told.returncode, told.stderr) == (0, "")
    assert told.stdout == run("--help").stdout


INTERRUPTED = """
import sys, trio
from emceepee_trio.cli import main

def broken_off(*_):
    raise BaseExceptionGroup("of a nursery", [OSError("closed meanwhile"), KeyboardInterrupt()])

trio.run = broken_off
sys.exit(main(["demo"]))
"""


def test_who_interrupts_sees_no_traceback() -> None:
    command = [sys.executable, "-c", INTERRUPTED]
    told = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (told.returncode, told.stderr) == (130, "")


@pytest.mark.parametrize("command", [(), *((name,) for name in COMMANDS)])
def test_help_is_everywhere(command: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([*command, "--help"])
    assert ended.value.code == 0
    told = capsys.readouterr()
    assert told.err == ""
    assert told.out.startswith(f"usage: {' '.join(('emceepee', *command))}")
    if not command:
        assert all(name in told.out for name in ("stdio", "demo", "check", "call"))


WRONG = {
    ("sing",): "no command 'sing'",
    ("srve",): "no command 'srve', did you mean \"serve\"?",
    ("--vresion",): 'unrecognized arguments: --vresion, did you mean "--version"?',
    ("stdio", "--confg", "x"): '--confg x, did you mean "--config"?',
    ("serve", "--port", "8081"): "--port 8081; use --bind 127.0.0.1:PORT",
    ("serve", "--prot=8081"): "--prot=8081",
    ("completion", "ksh"): "ksh",
    ("stdio", "--log-level", "loud"): "loud",
    ("stdio", "--config"): "--config",
    ("check", "a", "b"): "b",
    ("call", "raw"): "TOOL",
    ("call", "raw", "echo", "{}", "more"): "more",
    ("call", "raw", "echo", "{oops"): "JSON",
    ("call", "raw", "echo", "[1]"): "JSON: expected an object",
    ("call", "raw", "echo", '"text"'): "JSON: expected an object",
}


@pytest.mark.parametrize("arguments", WRONG, ids=" ".join)
def test_a_wrong_command_line_is_told_in_one_line(arguments: tuple[str, ...]) -> None:
    told = run(*arguments)
    assert (told.returncode, told.stdout) == (2, "")
    (line,) = told.stderr.splitlines()
    assert line.startswith("emceepee")
    assert WRONG[arguments] in line


BAD_CONFIG = """{
    "mcpServers": {
        "one": {"command": "a", "restart": {"max_attempts": "x"}},
        "two": {"url": "ftp://localhost/"},
        "emceepee": {"comand": "b"}
    },
    "limits": {"tasks": 0}
}"""

PROBLEMS = [
    'mcpServers.one.restart.max_attempts: expected an integer, got "x"',
    "mcpServers.two.url: expected an http or https URL",
    'mcpServers.emceepee: unknown key "comand"',
    "limits.tasks: out of range, expected 1 to 100000, got 0",
]


@pytest.mark.parametrize("command", ["stdio", "check", "call"])
def test_every_problem_of_a_configuration_is_told(tmp_path: Path, command: str) -> None:
    """On stderr, one to a line; and nothing is started."""
    bad = tmp_path / "bad.json"
    bad.write_text(BAD_CONFIG)
    told = {
        "stdio": lambda: run("stdio", "--config", bad),
        "check": lambda: run("check", bad),
        "call": lambda: run("call", "one", "echo", "--config", bad),
    }[command]()
    assert (told.returncode, told.stdout) == (1, "")
    lines = told.stderr.splitlines()
    for problem in PROBLEMS:
        assert [line for line in lines if line.startswith(f"{bad}: {problem}")], problem
    assert len(lines) <= len(PROBLEMS) + 2  # of the third server there may be more to say


@pytest.mark.parametrize("command", ["stdio", "check", "call"])
@pytest.mark.parametrize("content", [None, "", "{", "[1]", '"text"', "\x00"])
def test_a_file_that_is_no_configuration_is_told(
    tmp_path: Path, command: str, content: str | None
) -> None:
    bad = tmp_path / "bad.json"
    if content is not None:
        bad.write_text(content)
    arguments = {"stdio": ("--config", bad), "check": (bad,), "call": ("a", "b", "--config", bad)}
    told = run(command, *arguments[command])
    assert (told.returncode, told.stdout) == (1, "")
    (line,) = told.stderr.splitlines()
    assert "Traceback" not in line
    assert str(bad) in line
