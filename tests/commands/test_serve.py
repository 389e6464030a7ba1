"""``emceepee serve`` and ``emceepee status`` as processes of their own, as a user starts them."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import attrs
import httpx  # noqa: ASYNC127 - the client that shares no code with us
import pytest

import warm
from emceepee_client import COMMAND
from emceepee_trio import logs
from emceepee_trio.cli import main
from emceepee_trio.commands.common.client_entry import ENTRIES
from stalls import check_daemon

GUARD = 60

AS_SYSTEMD = """
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.environ |= {"LISTEN_FDS": "1", "LISTEN_PID": str(os.getpid())}
os.execv(sys.argv[2], sys.argv[2:])
"""
"""The first socket is number 3, and the pid is that of the daemon."""


@attrs.define(eq=False)
class Serving:
    process: subprocess.Popen[str]
    printed: str
    folder: Path

    @property
    def url(self) -> str:
        match = re.search(r"http://127\.0\.0\.1:\d+", self.printed)
        assert match, self.printed
        return match[0]

    @property
    def entry(self) -> Any:
        """What a user pastes."""
        start, end = self.printed.index("{"), self.printed.rindex("}")
        return json.loads(self.printed[start : end + 1])["mcpServers"]["emceepee"]

    def status(self, *options: str) -> subprocess.CompletedProcess[str]:
        return emceepee(self.folder, "status", "--url", self.url, *options)


def environment(folder: Path, **more: str) -> dict[str, str]:
    """Of a user who has nothing yet."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("EMCEEPEE_", "LISTEN_"))}
    for name in ("PORT", "STATE_DIRECTORY", "NOTIFY_SOCKET"):
        kept.pop(name, None)
    home = {"XDG_CONFIG_HOME": str(folder / "config"), "XDG_STATE_HOME": str(folder / "state")}
    return kept | home | more


def emceepee(folder: Path, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
    """A command that ends by itself."""
    return subprocess.run(
        [*warm.command("emceepee_trio"), *words],
        env=environment(folder, **more),
        capture_output=True,
        text=True,
        timeout=GUARD,
        check=False,
    )


@contextmanager
def serving(
    folder: Path,
    *options: str,
    command: Sequence[str] = (),
    pass_fds: Sequence[int] = (),
    **more: str,
) -> Iterator[Serving]:
    """A daemon that is ready; told to stop at the end, which it must do well."""
    with TemporaryDirectory() as short, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as hears:
        hears.bind(f"{short}/notify")
        hears.settimeout(0.1)
        out = folder / "out"
        with out.open("w") as stdout, (folder / "log").open("w") as stderr:
            process = subprocess.Popen(
                [*(command or (*warm.command("emceepee_trio"), "serve")), *options],
                env=environment(folder, NOTIFY_SOCKET=f"{short}/notify", **more),
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                pass_fds=pass_fds,
                text=True,
            )
        try:
            assert heard(hears, process) == b"READY=1", (folder / "log").read_text("utf-8")
            yield Serving(process, out.read_text("utf-8"), folder)
            process.terminate()
            assert process.wait(GUARD) == 0
        finally:
            process.kill()
            process.wait()
    log = list(map(json.loads, (folder / "log").read_text("utf-8").splitlines()))
    assert not [line for line in log if "traceback" in line]
    check_daemon(log)


def heard(hears: socket.socket, process: subprocess.Popen[str]) -> bytes | None:
    """What the service manager is told first, unless the daemon ends."""
    while process.poll() is None:
        try:
            return hears.recv(100)
        except TimeoutError:
            pass
    return None


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    """With the demo server, at its first start."""
    folder = tmp_path_factory.mktemp("daemon")
    with serving(folder, "--demo", "--bind", "127.0.0.1:0") as found:
        yield found


def test_it_says_which_servers_and_entries_of_clients(daemon: Serving) -> None:
    assert re.search(r"^(1 server|no servers) (of|without)", daemon.printed, re.MULTILINE)
    url = re.escape(daemon.url)
    assert re.search(
        rf"claude mcp add --transport http emceepee '{url}/mcp\?session=\w+'"
        rf" --header 'Authorization: Bearer \S+'",
        daemon.printed,
    )
    assert re.search(
        rf"codex mcp add emceepee --url '{url}/mcp\?session=\w+'"
        rf" --bearer-token-env-var EMCEEPEE_TOKEN",
        daemon.printed,
    )


def test_who_has_no_token_is_told_where_it_is(daemon: Serving) -> None:
    refused = httpx.post(f"{daemon.url}/mcp", json={})
    assert refused.status_code == 401
    path = daemon.folder / "state" / "emceepee" / "token"
    assert path.exists()
    assert f"it is in {path}" in refused.json()["error"]["message"]


def printed(tmp_path: Path, client: str, *options: str) -> str:
    """What is printed alone, by a command that ends, where somebody listens already."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        bind = f"127.0.0.1:{taken.getsockname()[1]}"
        done = emceepee(tmp_path, "serve", "--print-entry", client, "--bind", bind, *options)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.replace(f"http://{bind}", "URL")


@pytest.mark.once
@pytest.mark.parametrize("client", ENTRIES)
def test_one_entry_alone_is_printed_for_a_client(client: str, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("s3cret-s3cret-s3cret\n")
    (tmp_path / "token").chmod(0o600)
    said = printed(tmp_path, client, "--token-file", str(tmp_path / "token"))
    assert "s3cret" not in said
    words = shlex.split(said)
    if client in ("claude-code", "codex", "vscode"):
        assert said.count("\n") == 1
        if client == "vscode":
            assert words[:2] == ["code", "--add-mcp"]
            assert json.loads(words[2])["headers"] == {"Authorization": "Bearer TOKEN"}
        else:
            assert words[:3] == [client.partition("-")[0], "mcp", "add"]
            assert [word for word in words if re.fullmatch(r"URL/mcp\?session=\w+", word)]
        return
    ((key, servers),) = json.loads(said).items()
    entry = servers["emceepee"]
    assert key == ("context_servers" if client == "zed" else "mcpServers")
    if client == "claude-desktop":
        assert entry == {"command": "emceepee", "args": ["stdio", "--connect", "URL"]}
    else:
        (url,) = (entry[name] for name in ("url", "httpUrl", "serverUrl") if name in entry)
        assert re.fullmatch(r"URL/mcp\?session=\w+", url)
        assert entry["headers"] == {"Authorization": "Bearer TOKEN"}


@pytest.mark.once
@pytest.mark.parametrize(
    ("shown", "url"),
    [
        (("--view", "native"), r"URL/mcp\?session=\w+&view=native"),
        (("--server", "demo"), r"URL/servers/demo/mcp\?session=\w+"),
    ],
)
def test_an_entry_is_printed_for_what_is_to_be_seen(
    shown: tuple[str, str], url: str, tmp_path: Path
) -> None:
    words = shlex.split(printed(tmp_path, "codex", "--no-auth", "--demo", *shown))
    assert words[3] == ("demo" if "demo" in shown else "emceepee")
    assert re.fullmatch(url, words[5])
    bridge = json.loads(printed(tmp_path, "claude-desktop", "--no-auth", "--demo", *shown))
    (entry,) = bridge["mcpServers"].values()
    assert entry["args"] == ["stdio", "--connect", "URL", *shown]


def test_an_entry_needs_an_address(tmp_path: Path) -> None:
    for bind in (f"unix:{tmp_path}/s", "127.0.0.1:0"):
        done = emceepee(tmp_path, "serve", "--print-entry", "json", "--bind", bind)
        assert (done.returncode, done.stdout) == (2, "")
        assert "--bind HOST:PORT" in one_line(done.stderr)


def test_what_is_to_be_seen_is_said_of_an_entry(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["serve", "--view", "core"]) == 2
    assert "--print-entry" in capsys.readouterr().err


def test_the_snippet_that_is_printed_works(daemon: Serving) -> None:
    for view in ("&view=core", "&view=code", "&view=native"):
        assert re.search(rf"{daemon.url}/mcp\?session=\w+{view}\n", daemon.printed)
    assert re.search(rf"{daemon.url}/servers/demo/mcp\?session=\w+\n", daemon.printed)
    entry = daemon.entry
    assert entry["type"] == "http"
    assert re.fullmatch(re.escape(daemon.url) + r"/mcp\?session=[0-9a-f]{8}", entry["url"])
    asked = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "a client\x1b[31m", "version": "0"},
        },
    }
    accept = {"accept": "application/json, text/event-stream"}
    with httpx.Client(headers=entry["headers"] | accept, trust_env=False, timeout=GUARD) as client:
        answer = client.post(entry["url"], json=asked)
        assert answer.status_code == 200
        session = {"mcp-session-id": answer.headers["mcp-session-id"]}
        told = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        client.post(entry["url"], json=told, headers=session)
        shown = daemon.status()
        assert (shown.returncode, shown.stderr) == (0, "")
        assert "a client\\u001b[31m" in shown.stdout
        assert re.search(r"(?m)^\S{9}  demo +connect", shown.stdout)
        status = json.loads(daemon.status("--json").stdout)
        assert [s["principal"] for s in status["sessions"]] == ["token"]
        assert status["slow_steps"].keys() == {"count", "longest_ms"}
        assert session["mcp-session-id"] not in shown.stdout + json.dumps(status)
        assert client.delete(entry["url"], headers=session).status_code == 200
        destroyed = wait_for_log(daemon.folder, "session_destroyed")
        assert destroyed["session"] in shown.stdout
        assert session["mcp-session-id"] not in (daemon.folder / "log").read_text("utf-8")
    assert "no sessions" in daemon.status().stdout


def test_the_token_is_kept_for_its_user_alone_and_is_in_no_log(daemon: Serving) -> None:
    path = daemon.folder / "state" / "emceepee" / "token"
    assert f"It is in {path}." in daemon.printed
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    token = path.read_text().strip()
    assert daemon.entry["headers"] == {"Authorization": f"Bearer {token}"}
    assert token not in (daemon.folder / "log").read_text()
    assert httpx.get(f"{daemon.url}/status", trust_env=False).status_code == 401


def test_a_status_with_the_wrong_token_says_so(daemon: Serving) -> None:
    done = emceepee(daemon.folder, "status", "--url", daemon.url, EMCEEPEE_TOKEN="wrong")
    assert (done.returncode, done.stdout) == (1, "")
    assert "wants another token" in one_line(done.stderr)


def test_a_second_start_shows_no_token_and_a_unix_socket_needs_none(tmp_path: Path) -> None:
    state = tmp_path / "state" / "emceepee"
    state.mkdir(parents=True)
    (state / "token").write_text("t0ken")
    (state / "token").chmod(0o600)
    with TemporaryDirectory() as short:
        binds = ("--bind", "127.0.0.1:0", "--bind", f"unix:{short}/s")
        with serving(tmp_path, *binds) as daemon:
            assert "t0ken" not in daemon.printed
            assert f"The token is in {state / 'token'}." in daemon.printed
            assert f"  unix:{short}/s\n" in daemon.printed
            done = emceepee(tmp_path, "status", "--url", f"unix:{short}/s")
            assert "no sessions" in done.stdout, done.stderr
        assert list(Path(short).iterdir()) == []


def test_sockets_of_systemd_are_served_and_only_those(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as given:
        port = given.getsockname()[1]
        fd = given.fileno()
        command = (sys.executable, "-c", AS_SYSTEMD, str(fd), *COMMAND, "serve")
        with serving(tmp_path, "--no-auth", command=command, pass_fds=[fd]) as daemon:
            assert re.findall(r"(?m)^  (.*:\d+/mcp)$", daemon.printed) == [
                f"http://127.0.0.1:{port}/mcp"
            ]
            assert "headers" not in daemon.entry
            assert httpx.get(f"http://127.0.0.1:{port}/status", trust_env=False).is_success


def test_a_hangup_reads_the_configuration_again(tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    config.write_text('{"http": {"tokens": {"ada": "one"}}}')
    with serving(tmp_path, "--config", str(config), "--bind", "127.0.0.1:0") as daemon:
        assert "http.tokens" in daemon.printed

        def ask(token: str) -> int:
            headers = {"authorization": f"Bearer {token}"}
            return httpx.get(f"{daemon.url}/status", headers=headers, trust_env=False).status_code

        assert (ask("one"), ask("two")) == (200, 401)
        config.write_text('{"http": {"tokens": {"ada": "two"}}}')
        daemon.process.send_signal(signal.SIGHUP)
        wait_for_log(tmp_path, "reloaded")
        assert (ask("one"), ask("two")) == (401, 200)
        config.write_text('{"http": {"tokens": {"ada": "three"}}, "limits": {"calls": "x"}}')
        daemon.process.send_signal(signal.SIGHUP)
        said = wait_for_log(tmp_path, "reload_failed")
        assert said["problem"] == f'{config}: limits.calls: expected an integer, got "x"'
        assert (ask("two"), ask("three")) == (200, 401)


def wait_for_log(folder: Path, event: str) -> Any:
    """The first line of that event; waits for it, as the process that writes it tells nobody."""
    with (folder / "log").open() as log:
        text = ""
        while True:
            text += log.read()
            complete, _, _ = text.rpartition("\n")
            for line in map(json.loads, complete.splitlines()):
                if line["event"] == event:
                    return line


# -- what ends at once, in the process of the test -----------------------------------------------


@pytest.fixture
def run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str]]:
    """The status of a command, and its one line on stderr; there is nothing on stdout."""
    monkeypatch.setattr(logs, "configure", lambda *_, **__: None)
    for name, value in environment(tmp_path).items():
        monkeypatch.setenv(name, value)
    for name in ("PORT", "STATE_DIRECTORY", "NOTIFY_SOCKET", "EMCEEPEE_TOKEN"):
        monkeypatch.delenv(name, raising=False)

    def run(*words: str, **more: str) -> tuple[int, str]:
        for name, value in more.items():
            monkeypatch.setenv(name, value)
        try:
            status = main(words)
        except SystemExit as stopped:
            status = int(str(stopped.code))
        out, err = capsys.readouterr()
        assert out == ""
        return status, one_line(err)

    return run


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["--no-auth", "--bind", "0.0.0.0:0"], 1, "--no-auth is only for loopback"),
        (["--bind", "unix:/no/such/folder/s"], 1, "cannot listen on unix:/no/such/folder/s"),
        (["--bind", "nonsense:x"], 2, "expected HOST:PORT"),
        (["--token-file", "/no/such/file"], 1, "cannot read the token file"),
        (["--config", "/no/such/file"], 1, "cannot read /no/such/file"),
        (["--nonsense"], 2, "--nonsense"),
    ],
)
def test_what_cannot_be_served_is_told_in_one_line(
    words: list[str], status: int, said: str, run: Callable[..., tuple[int, str]]
) -> None:
    ended, told = run("serve", *words)
    assert ended == status
    assert said in told


def test_who_listens_there_already_is_to_be_found_out(run: Callable[..., tuple[int, str]]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        status, told = run("serve", "--no-auth", "--bind", f"127.0.0.1:{taken.getsockname()[1]}")
    assert status == 1
    assert "Address already in use; `emceepee doctor` says who does" in told


@pytest.mark.parametrize("name", ["token", "local"])
def test_nobody_is_made_the_operator_by_a_name(name: str, tmp_path: Path) -> None:
    """Whose status is everybody's, and whose servers are those of the daemon's own token."""
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"http": {"tokens": {name: "s3cret"}}}))
    done = emceepee(tmp_path, "serve", "--config", str(config), "--bind", "127.0.0.1:0")
    assert (done.returncode, done.stdout) == (1, "")
    assert one_line(done.stderr).startswith(f"{config}: http.tokens.{name}: ")


@pytest.mark.parametrize("command", ["serve", "status"])
@pytest.mark.parametrize("port", ["x", "65536", "-1"])
def test_a_default_port_that_is_none_is_told(
    command: str, port: str, run: Callable[..., tuple[int, str]]
) -> None:
    assert run(command, PORT=port) == (
        2,
        f"emceepee {command}: PORT: expected a port, got {port!r}",
    )


@pytest.mark.parametrize("url", ["localhost:80", "ftp://x", "http://", "http://x:y"])
def test_a_url_that_is_none_is_told(url: str, run: Callable[..., tuple[int, str]]) -> None:
    status, told = run("status", "--url", url)
    assert status == 2
    assert "--url: " in told


def test_a_status_of_nobody_says_so(run: Callable[..., tuple[int, str]]) -> None:
    with socket.socket() as unheard:
        unheard.bind(("127.0.0.1", 0))
        port = str(unheard.getsockname()[1])
        status, told = run("status", PORT=port)
    assert status == 1
    assert f"no daemon answers at http://127.0.0.1:{port} (" in told


@pytest.mark.parametrize("answer", [b"HTTP/1.1 200 OK\r\n\r\n{}", b"HTTP/1.1 302 OK\r\n\r\n", b"?"])
def test_a_status_of_somebody_else_says_so(
    answer: bytes, run: Callable[..., tuple[int, str]]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def reply() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(1000)
                connection.sendall(answer)

        thread = threading.Thread(target=reply)
        thread.start()
        status, told = run("status", "--url", f"http://127.0.0.1:{server.getsockname()[1]}")
        thread.join()
    assert status == 1
    assert "daemon" in told


def one_line(text: str) -> str:
    (line,) = text.splitlines()
    return line
