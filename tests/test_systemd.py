from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from emceepee_trio import systemd

PACKAGING = Path(__file__).parent.parent / "packaging"
UNITS = ("emceepee.service", "emceepee.system.service")


@pytest.fixture
def heard(monkeypatch: pytest.MonkeyPatch) -> Iterator[socket.socket]:
    """The service manager's end."""
    with TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        path = f"{folder}/notify"
        sock.bind(path)
        sock.setblocking(False)
        monkeypatch.setenv("NOTIFY_SOCKET", path)
        yield sock


def test_the_service_manager_is_told(heard: socket.socket) -> None:
    systemd.ready()
    systemd.stopping()
    assert [heard.recv(100) for _ in range(2)] == [b"READY=1", b"STOPPING=1"]


def test_a_reload_says_when_it_began(heard: socket.socket) -> None:
    before = time.monotonic_ns() // 1000
    systemd.reloading()
    match = re.fullmatch(rb"RELOADING=1\nMONOTONIC_USEC=(\d+)", heard.recv(100))
    assert match
    assert before <= int(match[1]) <= time.monotonic_ns() // 1000


def test_an_abstract_socket_is_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.bind("\0emceepee-notify")
        sock.setblocking(False)
        monkeypatch.setenv("NOTIFY_SOCKET", "@emceepee-notify")
        systemd.ready()
        assert sock.recv(100) == b"READY=1"


def test_without_a_service_manager_nobody_is_told(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)
    opened: list[object] = []
    monkeypatch.setattr(socket, "socket", lambda *how: opened.append(how))
    systemd.ready()
    assert not opened
    assert not caplog.messages


def test_a_service_manager_that_has_gone_is_no_reason_to_end(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "gone"))
    systemd.ready()
    assert "notify_failed" in caplog.messages


def test_sockets_are_taken_once_and_not_handed_on() -> None:
    environ = {
        "LISTEN_PID": str(os.getpid()),
        "LISTEN_FDS": "2",
        "LISTEN_FDNAMES": "a:b",
        "LISTEN_PIDFDID": "1",
        "PATH": "/bin",
    }
    assert systemd.passed_sockets(environ) == [3, 4]
    assert environ == {"PATH": "/bin"}
    assert systemd.passed_sockets(environ) == []


@pytest.mark.parametrize("pid", ["1", "", "x"])
def test_sockets_of_another_process_are_left_alone(pid: str) -> None:
    environ = {"LISTEN_PID": pid, "LISTEN_FDS": "1"}
    assert systemd.passed_sockets(environ) == []
    assert environ["LISTEN_FDS"] == "1"


@pytest.mark.parametrize("count", ["", "x", "-1"])
def test_a_count_that_is_none_means_no_sockets(count: str) -> None:
    assert systemd.passed_sockets({"LISTEN_PID": str(os.getpid()), "LISTEN_FDS": count}) == []


@pytest.mark.parametrize("unit", UNITS)
def test_systemd_accepts_the_unit(unit: str, tmp_path: Path) -> None:
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("there is no systemd-analyze here")
    # What it starts must exist; the rest is as it is shipped.
    text = re.sub(r"(?m)^ExecStart=\S+", f"ExecStart={sys.executable}", read(unit))
    (tmp_path / "emceepee.service").write_text(text)
    whose = [] if "system" in unit else ["--user"]
    done = subprocess.run(
        [analyze, *whose, "verify", "--man=no", str(tmp_path / "emceepee.service")],
        env={**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    # It only warns of keys that it does not know; of the units of this machine, too.
    assert [line for line in done.stderr.splitlines() if "emceepee.service" in line] == []


@pytest.mark.parametrize("unit", UNITS)
def test_the_unit_keeps_its_promises(unit: str) -> None:
    lines = read(unit).splitlines()
    assert "Type=notify" in lines
    assert "KillMode=control-group" in lines
    assert "ExecReload=/bin/kill -HUP $MAINPID" in lines
    (path,) = (line for line in lines if line.startswith("Environment=PATH="))
    assert {"/usr/local/bin", "/usr/bin"} <= set(path.removeprefix("Environment=PATH=").split(":"))


@pytest.mark.parametrize("key", ["MemoryDenyWriteExecute", "NoExecPaths", "PrivateNetwork"])
def test_servers_can_still_run_under_the_unit(key: str) -> None:
    assert not any(line.startswith(key) for unit in UNITS for line in read(unit).splitlines())


def read(unit: str) -> str:
    return (PACKAGING / unit).read_text("utf-8")
