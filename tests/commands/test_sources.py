"""Files that an operator names and that are none, or none that can be read: told, in no time."""

from __future__ import annotations

import json
import os
import pwd
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import pytest

from emceepee_client import COMMAND
from emceepee_lines import run
from emceepee_trio.config import load_default
from emceepee_trio.sources import Sources, Unreadable
from emceepee_trio.web.token_file import BadToken, state_directory
from served import serve

TOKEN = "t0ken-of-somebody"


def fifo(path: Path) -> None:
    os.mkfifo(path, 0o600)


def device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def loop(path: Path) -> None:
    path.symlink_to(path.name)


def dangling(path: Path) -> None:
    path.symlink_to("nowhere")


def text(content: bytes) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        path.write_bytes(content)

    return write


NO_FILES: dict[str, tuple[Callable[[Path], None], str]] = {
    "a pipe": (fifo, "not a regular file"),
    "a device": (device, "not a regular file"),
    "a folder": (Path.mkdir, "Is a directory"),
    "a loop": (loop, "Too many levels of symbolic links"),
    "leading nowhere": (dangling, "No such file"),
}
NO_CONFIGS: dict[str, tuple[Callable[[Path], None], str]] = NO_FILES | {
    "no UTF-8": (text(b'{"x": "\xff"}'), "not UTF-8"),
    "deep": (text(b"[" * 100_000), "nested deeper than 200 levels"),
    "deep, in a place for anything": (
        text(b'{"mcpServers": {"x": ' + b'{"a":' * 500 + b"1" + b"}" * 502),
        "",
    ),
    "digits": (text(b'{"limits": {"calls": ' + b"9" * 9000 + b"}}"), "more than 308 digits"),
    "huge": (text(b" " * (16 * 1024 * 1024 + 1)), "longer than"),
}


@pytest.mark.parametrize("kind", NO_FILES)
@pytest.mark.parametrize("option", ["--config", "--token-file"])
def test_what_is_no_file_is_told_at_once(option: str, kind: str, tmp_path: Path) -> None:
    make, said = NO_FILES[kind]
    make(tmp_path / "f")
    # Nobody opens the other end of the pipe.
    told = run(
        "serve", option, tmp_path / "f", "--bind", "127.0.0.1:0", XDG_CONFIG_HOME="/dev/null"
    )
    assert (told.returncode, told.stdout) == (1, "")
    (line,) = told.stderr.splitlines()
    assert said in line
    assert "cannot read " in line


@pytest.mark.parametrize("folder", ["x" * 300, "a/" * 2100, "loop"])
@pytest.mark.parametrize("words", [("serve", "--no-auth"), ("stdio",), ("check",)], ids=" ".join)
def test_a_place_for_the_configuration_that_cannot_be_is_told(
    words: tuple[str, ...], folder: str, tmp_path: Path
) -> None:
    loop(tmp_path / "loop")
    told = run(*words, XDG_CONFIG_HOME=str(tmp_path / folder))
    assert (told.returncode, told.stdout) == (1, "")
    (line,) = told.stderr.splitlines()
    assert line.startswith("cannot read ")


def test_who_has_no_home_has_no_default_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a container whose user nobody knows."""

    def unknown(uid: int) -> NoReturn:
        raise KeyError(uid)

    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr(pwd, "getpwuid", unknown)
    assert load_default({}) is None
    with pytest.raises(BadToken, match="--state-dir"):
        state_directory({})


def waited_for(log: Path, event: str, count: int = 1) -> Any:
    """A line of that event; waits for it, as the process that writes it tells nobody."""
    while True:
        complete, _, _ = log.read_text("utf-8").rpartition("\n")
        found = [line for line in map(json.loads, complete.splitlines()) if line["event"] == event]
        if len(found) >= count:
            return found[count - 1]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Of the daemon of a test."""
    return tmp_path / "stderr"


def test_a_daemon_goes_on_with_what_it_had(tmp_path: Path, log: Path) -> None:
    """Whatever takes the place of its configuration; also that of its folder."""
    folder = tmp_path / "emceepee"
    folder.mkdir()
    config = folder / "config.json"
    config.write_text('{"servers": [{"name": "kept", "command": "true", "disabled": true}]}')
    with serve(tmp_path, "--log-level", "info") as daemon:
        count = 0

        def reloaded() -> Any:
            nonlocal count
            count += 1
            os.kill(daemon.pid, signal.SIGHUP)
            return waited_for(log, "reload_failed", count)

        for kind, (make, said) in NO_CONFIGS.items():
            config.unlink(missing_ok=True)
            make(config)
            problem = reloaded()["problem"]
            assert said in problem, kind
            if kind == "a folder":
                config.rmdir()
        config.unlink()
        assert "No such file" in reloaded()["problem"]
        folder.rmdir()
        folder.write_text("")
        assert "Not a directory" in reloaded()["problem"]
        folder.unlink()
        loop(folder)
        assert "symbolic links" in reloaded()["problem"]
        told = run("call", "kept", "x", "--url", daemon.url, "--state-dir", tmp_path)
        assert "kept" in told.stderr
        assert "disabled" in told.stderr


def test_a_daemon_whose_token_file_becomes_a_pipe_goes_on(tmp_path: Path, log: Path) -> None:
    token = tmp_path / "t"
    token.write_text(TOKEN)
    token.chmod(0o600)
    with serve(tmp_path, "--token-file", str(token), "--log-level", "info") as daemon:
        token.unlink()
        fifo(token)
        os.kill(daemon.pid, signal.SIGHUP)
        assert "a pipe is read at the start only" in waited_for(log, "reload_failed")["problem"]
        # Nor does it wait for somebody who has opened it.
        writer = os.open(token, os.O_RDWR)
        try:
            os.kill(daemon.pid, signal.SIGHUP)
            assert (
                "a pipe is read at the start only" in waited_for(log, "reload_failed", 2)["problem"]
            )
            told = run("status", "--url", daemon.url, EMCEEPEE_TOKEN=TOKEN)
            assert "no sessions" in told.stdout
        finally:
            os.close(writer)


def test_what_a_shell_passes_is_read_once_and_holds(tmp_path: Path, log: Path) -> None:
    """``--config <(…) --token-file <(…)``, and a SIGHUP."""
    shell = 'exec "$@" --config <(printf %s "$CONFIG") --token-file <(printf %s "$TOKEN")'
    given = {"CONFIG": '{"limits": {"tasks": 7}}', "TOKEN": TOKEN}
    command = ("bash", "-c", shell, "bash", *COMMAND)
    with serve(tmp_path, "--log-level", "info", command=command, **given) as daemon:
        os.kill(daemon.pid, signal.SIGHUP)
        waited_for(log, "reloaded")
        told = run("status", "--url", daemon.url, EMCEEPEE_TOKEN=TOKEN)
        assert "no sessions" in told.stdout


@pytest.mark.parametrize(
    ("mode", "said"),
    [(0o620, "writable"), (0o602, "writable"), (0o666, "writable"), (0o644, "readable")],
)
def test_a_token_file_of_others_is_told(mode: int, said: str, tmp_path: Path, log: Path) -> None:
    token = tmp_path / "t"
    token.write_text(TOKEN)
    token.chmod(mode)
    with serve(tmp_path, "--token-file", str(token)):
        assert waited_for(log, f"token_file_{said}_by_others")["path"] == str(token)


def test_a_configuration_that_everybody_may_write_is_told(tmp_path: Path) -> None:
    config = tmp_path / "c.json"
    config.write_text("{}")
    config.chmod(0o666)
    told = run("check", config)
    assert told.returncode == 0
    assert "every user of this machine can write to it" in told.stderr


def test_a_pipe_has_an_end_or_is_given_up(tmp_path: Path) -> None:
    path = tmp_path / "p"
    fifo(path)
    writer = os.open(path, os.O_RDWR)
    try:
        with pytest.raises(Unreadable, match=r"did not end in 0\.01 s"):
            Sources(0.01).read(path, 10)
        os.write(writer, b"x" * 100)
        assert Sources(0.01).read(path, 10).content == b"x" * 11  # more is not wanted
    finally:
        os.close(writer)
    with pytest.raises(Unreadable, match="without content"):
        Sources().read(path, 10)
