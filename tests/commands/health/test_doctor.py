"""What is wrong in a home that something is wrong with."""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from at_home import AtHome
from emceepee_trio.commands.health import daemon, machine
from served import serve

pytestmark = pytest.mark.once

DEMO = {"command": sys.executable, "args": ["-m", "emceepee_trio.demo_backend"]}


@pytest.fixture
def at_home(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> AtHome:
    home = AtHome.of(tmp_path, capsys, monkeypatch)
    # No systemd of the machine is asked.
    home.set({"PATH": f"{Path(sys.executable).parent}"})
    return home


def found(at_home: AtHome, *options: str) -> dict[tuple[str, str], str]:
    """By what they are about, and how bad it is; with what to do."""
    ran = at_home.run("doctor", "--json", *options)
    said = json.loads(ran.out)
    assert ran.err == ""
    assert ran.status == int(any(each["state"] == "broken" for each in said))
    assert all(each["remedy"] for each in said if each["state"] != "ok")
    return {
        (each["about"], each["state"]): f"{each['message']} -> {each['remedy']}" for each in said
    }


def configure(at_home: AtHome, config: object) -> None:
    at_home.config.parent.mkdir(parents=True, exist_ok=True)
    at_home.config.write_text(config if isinstance(config, str) else json.dumps(config))


def states(at_home: AtHome, *options: str) -> set[tuple[str, str]]:
    return set(found(at_home, *options))


@contextmanager
def stranger(body: bytes, status: int = 200) -> Iterator[int]:
    """Somebody else, on a port that one would look at."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()


def test_in_a_new_home_nothing_is_wrong(at_home: AtHome) -> None:
    ran = at_home.run("doctor")
    assert (ran.status, ran.err) == (0, "")
    assert ran.out.endswith("\nNothing is wrong.\n")
    assert "-> `emceepee import` makes one of what your clients have\n" in ran.out


def test_a_configuration_that_is_broken_is_told_whole(at_home: AtHome) -> None:
    configure(at_home, {"limits": {"sesions": 5}, "mcpServers": {"a b": {"command": "x"}}})
    ran = at_home.run("doctor", "--quick")
    assert ran.status == 1
    assert ran.out.count("broken   configuration: ") == 2
    assert "2 broken, 0 warnings" in ran.out


def test_servers_are_tried(at_home: AtHome) -> None:
    configure(
        at_home,
        {"mcpServers": {"demo": DEMO, "gone": {"command": "no-such"}, "off": {"url": "${NO_URL}"}}},
    )
    said = found(at_home)
    assert "tools, after" in said["server demo", "ok"]
    assert "not found" in said["server gone", "broken"]
    assert "NO_URL is not set" in said["configuration", "warning"]
    assert ("server gone", "broken") not in states(at_home, "--quick")


def test_what_a_program_repeats_of_its_secrets_is_not_shown(at_home: AtHome) -> None:
    """What doctor says is pasted into reports."""
    secret = "hunter2-and-more"
    tells = {
        "command": "/bin/sh",
        "args": ["-c", 'echo "I have $API_KEY and PASSWORD=opensesame" >&2'],
    }
    configure(at_home, {"mcpServers": {"tells": tells | {"env": {"API_KEY": secret}}}})
    said = found(at_home)["server tells", "broken"]
    assert "I have *** and PASSWORD=***" in said


@pytest.mark.parametrize(
    ("content", "mode", "state"),
    [("secret\n", 0o600, "ok"), ("secret", 0o640, "broken"), ("two words", 0o600, "broken")],
)
def test_a_token_is_for_its_owner(at_home: AtHome, content: str, mode: int, state: str) -> None:
    path = at_home.state / "emceepee/token"
    path.parent.mkdir(parents=True)
    path.write_text(content)
    path.chmod(mode)
    said = found(at_home, "--quick")
    assert ("token", state) in said
    assert "secret" not in json.dumps(list(said.values()))


def test_a_token_of_an_earlier_daemon_is_told(at_home: AtHome) -> None:
    path = at_home.state / "emceepee/token"
    path.parent.mkdir(parents=True)
    path.touch(mode=0o600)
    path.write_text("this")
    at_home.set({"EMCEEPEE_TOKEN": "that"})
    assert ("token", "warning") in states(at_home, "--quick")


def test_what_is_kept_has_a_place(at_home: AtHome) -> None:
    at_home.state.mkdir()
    (at_home.state / "emceepee").touch()
    assert ("state directory", "broken") in states(at_home, "--quick")


def test_a_daemon_that_runs_is_seen_and_its_token_tried(at_home: AtHome, tmp_path: Path) -> None:
    folder = tmp_path / "daemon"
    folder.mkdir()
    with serve(folder) as running:
        url = running.url.removesuffix("/mcp")
        said = found(at_home, "--quick", "--url", url, "--state-dir", str(folder))
        assert f"pid {running.pid}" in said["daemon", "ok"] or "pid" in said["daemon", "ok"]

        at_home.set({"PORT": url.rpartition(":")[2]})
        said = found(at_home, "--quick")
        assert "takes no token of ours" in said["daemon", "broken"]
        assert "--state-dir" in said["daemon", "broken"]

        entry = {"url": running.url, "headers": {"Authorization": "Bearer old"}}
        path = at_home.home / ".cursor/mcp.json"
        path.parent.mkdir()
        path.write_text(json.dumps({"mcpServers": {"emceepee": entry}}))
        said = found(at_home, "--quick")
        assert "its token is not taken any more" in said["cursor", "broken"]
        entry["headers"] = {"Authorization": f"Bearer {(folder / 'token').read_text().strip()}"}
        path.write_text(json.dumps({"mcpServers": {"emceepee": entry}}))
        assert ("cursor", "ok") in states(at_home, "--quick")


def test_somebody_else_on_the_port_is_named(at_home: AtHome) -> None:
    with stranger(b"<html>hello</html>") as port:
        at_home.set({"PORT": str(port)})
        said = found(at_home, "--quick")
    assert f"pid {os.getpid()}: " in said["daemon", "broken"]
    assert "set PORT" in said["daemon", "broken"]


def test_a_daemon_of_another_version_is_told(at_home: AtHome) -> None:
    with stranger(b'{"version": "0.0.0", "pid": 7, "sessions": []}') as port:
        at_home.set({"PORT": str(port)})
        said = found(at_home, "--quick")
    assert "version 0.0.0" in said["daemon", "warning"]


def test_who_listens_is_found_by_port() -> None:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port = sock.getsockname()[1]
        assert daemon.listener(port) is None
        sock.listen()
        who = daemon.listener(port)
    assert who is not None
    assert who[0] == os.getpid()


@pytest.mark.parametrize(
    ("entry", "state", "says"),
    [
        ({"command": "/no/emceepee", "args": ["stdio"]}, "broken", "not found"),
        ({"command": "emceepee", "args": ["stdio"]}, "warning", "which only your shell finds"),
        ({"url": "http://127.0.0.1:1/mcp?session=a"}, "warning", "no daemon runs"),
    ],
)
def test_entries_of_clients_are_looked_at(
    at_home: AtHome, entry: object, state: str, says: str
) -> None:
    path = at_home.home / ".cursor/mcp.json"
    path.parent.mkdir()
    path.write_text(json.dumps({"mcpServers": {"emceepee": entry, "git": {"command": "/no"}}}))
    said = found(at_home, "--quick")
    assert says in said["cursor", state]
    assert "emceepee connect cursor" in said["cursor", state]


def test_a_program_without_a_shell_finds_what_the_shell_finds_or_it_is_told(
    at_home: AtHome, tmp_path: Path
) -> None:
    (tmp_path / "my-server").write_text("#!/bin/sh\n")
    (tmp_path / "my-server").chmod(0o755)
    at_home.set({"PATH": f"{os.environ['PATH']}{os.pathsep}{tmp_path}"})
    configure(at_home, {"mcpServers": {"mine": {"command": "my-server"}}})
    at_home.run("connect", "zed", "codex", "--yes")
    said = found(at_home, "--quick")
    assert (
        f"would not find my-server of server 'mine' ({tmp_path}/my-server)"
        in (said["zed", "warning"])
    )
    assert ("codex", "warning") not in said


def test_who_was_connected_by_us_is_well(at_home: AtHome) -> None:
    at_home.run("connect", "cursor", "codex", "--yes")
    assert {("cursor", "ok"), ("codex", "ok")} <= states(at_home, "--quick")


SYSTEMCTL = "#!/bin/sh\necho {state}\n"


def service(at_home: AtHome, state: str) -> None:
    """A unit that is installed, of which systemctl says that."""
    folder = at_home.home.parent / "bin"
    folder.mkdir()
    program = folder / "systemctl"
    program.write_text("#!/bin/sh\nexit 0\n")
    program.chmod(0o755)
    at_home.set({"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}{os.pathsep}/usr/bin:/bin"})
    assert at_home.run("install-service", "--user").status == 0
    program.write_text(SYSTEMCTL.format(state=state))


def test_a_service_that_failed_is_told_with_what_to_look_at(at_home: AtHome) -> None:
    service(at_home, "failed")
    said = found(at_home, "--quick")
    assert "installed, and failed" in said["service", "broken"]
    assert "journalctl --user -u emceepee.service" in said["service", "broken"]


def test_where_systemd_does_not_run_it_is_told(at_home: AtHome) -> None:
    service(at_home, '"No medium found" >&2')
    assert "No medium found" in found(at_home, "--quick")["service", "warning"]


def test_a_service_finds_what_the_shell_finds_or_it_is_told(
    at_home: AtHome, tmp_path: Path
) -> None:
    service(at_home, "active")
    assert ("service", "ok") in states(at_home, "--quick")

    newer = tmp_path / "newer"
    newer.mkdir()
    (newer / "my-server").write_text("#!/bin/sh\n")
    (newer / "my-server").chmod(0o755)
    at_home.set({"PATH": f"{os.environ['PATH']}{os.pathsep}{newer}"})
    configure(at_home, {"mcpServers": {"mine": {"command": "my-server"}}})
    said = found(at_home, "--quick")
    assert f"lacks {newer}" in said["service", "broken"]
    assert "emceepee install-service --user" in said["service", "broken"]


def test_what_only_the_service_is_told_is_known(at_home: AtHome) -> None:
    service(at_home, "active")
    configure(at_home, {"mcpServers": {"t": {"url": "https://t/${T_PATH}"}}})
    assert ("configuration", "warning") in states(at_home, "--quick")
    (at_home.config.parent / "environment").write_text('# secrets\nT_PATH="mcp"\n')
    assert ("configuration", "warning") not in states(at_home, "--quick")


def test_a_service_whose_program_has_moved_is_told(at_home: AtHome) -> None:
    service(at_home, "active")
    unit = at_home.home / ".config/systemd/user/emceepee.service"
    text = unit.read_text()
    unit.write_text(text.replace("ExecStart=", "ExecStart=/gone"))
    assert "which is not there" in found(at_home, "--quick")["service", "broken"]


def test_a_machine_without_proc_is_told(tmp_path: Path) -> None:
    assert [each.state for each in machine.machine(tmp_path)] == ["warning", "ok"]
