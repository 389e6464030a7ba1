"""Commands whose standard streams are closed, full, or read by nobody, and terminals' safety."""

from __future__ import annotations

import json
import logging
import os
import pty
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import httpx  # noqa: ASYNC127 - the client that shares no code with us
import pytest

import warm
from emceepee_client import COMMAND, GUARD, write_config
from emceepee_lines import request, run
from emceepee_trio.commands.common import remote
from emceepee_trio.logs.lines import OURS, JsonLines, LineFormatter, TextLines
from fake_backends import raw
from served import serve

EVIL = "x\n2026-01-01T00:00:00.000Z info forged\r\x1b]0;owned\x07\x9b2J\u202e\u200b\u2028"
"""What moves lines and terminals."""

SHAPELESS = [c for c in EVIL if not " " <= c <= "~" and c != "\n"]

HELLO = json.dumps(
    request(
        1,
        "initialize",
        {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "pipes", "version": "0"},
        },
    )
)


@contextmanager
def output(kind: str) -> Iterator[int | IO[bytes]]:
    """A standard output that does not work."""
    if kind == "full":
        with Path("/dev/full").open("wb") as full:
            yield full
    else:
        reader, writer = os.pipe()
        os.close(reader)
        try:
            yield writer
        finally:
            os.close(writer)


def command(*words: str, closed: int | None = None) -> list[str]:
    """As a shell starts it, with one of its streams closed."""
    if closed is None:
        return [*warm.command("emceepee_trio"), *words]
    redirect = "<&-" if closed == 0 else f"{closed}>&-"
    return ["sh", "-c", f'exec "$@" {redirect}', "sh", *COMMAND, *words]


def ended(
    *words: str, kind: str, stdin: str = "", cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    closed = {"no input": 0, "closed": 1, "no stderr": 2}.get(kind)
    environment = {"PATH": os.environ["PATH"], "HOME": "/nonexistent"}

    def go(out: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command(*words, closed=closed),
            input=stdin,
            stdout=out,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
            timeout=GUARD,
            check=False,
            cwd=cwd,
        )

    if closed is not None:
        return go(subprocess.PIPE)
    with output(kind) as out:
        return go(out)


@pytest.mark.parametrize("kind", ["closed", "full", "broken"])
@pytest.mark.parametrize(
    "words", [("--version",), ("call", "--help"), ("check",), ("demo",)], ids=" ".join
)
def test_what_cannot_be_printed_is_no_success(words: tuple[str, ...], kind: str) -> None:
    done = ended(*words, kind=kind)
    lines = done.stderr.splitlines()
    if kind == "broken":
        assert (done.returncode, lines) == (141, [])
    else:
        assert done.returncode == 1
        (line,) = lines
        assert line.startswith("emceepee: cannot write to standard output: ")


@pytest.mark.parametrize("kind", ["closed", "full", "broken"])
def test_a_call_that_cannot_be_printed_is_no_success(kind: str, tmp_path: Path) -> None:
    config = write_config(tmp_path, {"raw": raw()})
    done = ended("call", "raw", "echo", "--config", str(config), kind=kind)
    assert done.returncode == (141 if kind == "broken" else 1)
    assert len(done.stderr.splitlines()) == (0 if kind == "broken" else 1)


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("closed", "emceepee stdio: standard output is closed"),
        ("no input", "emceepee stdio: standard input is closed"),
        ("full", "emceepee stdio: cannot write to standard output: No space left on device"),
    ],
)
def test_a_session_on_pipes_that_do_not_work_says_so(kind: str, said: str) -> None:
    done = ended("stdio", kind=kind, stdin=HELLO + "\n")
    assert (done.returncode, done.stderr.splitlines()) == (1, [said])


def test_a_session_needs_no_stderr() -> None:
    done = ended("stdio", kind="no stderr", stdin=HELLO + "\n")
    assert done.returncode == 0
    assert json.loads(done.stdout)["id"] == 1


def test_input_and_output_may_be_one_socket() -> None:
    """Which is not blocking as soon as one of its ends is not."""
    ours, theirs = socket.socketpair()
    with (
        ours,
        theirs,
        subprocess.Popen(
            [*COMMAND, "stdio"],
            stdin=theirs.fileno(),
            stdout=theirs.fileno(),
            env={"PATH": os.environ["PATH"], "HOME": "/nonexistent"},
        ) as process,
    ):
        try:
            theirs.close()
            ours.settimeout(GUARD)
            with ours.makefile("rw", encoding="utf-8") as both:
                for number in range(3):
                    message = HELLO if number == 0 else json.dumps(request(1, "ping"))
                    both.write(message + "\n")
                    both.flush()
                    assert json.loads(both.readline())["id"] == 1
                ours.shutdown(socket.SHUT_WR)
                assert both.read() == ""
            assert process.wait(GUARD) == 0
        finally:
            process.kill()


@pytest.mark.parametrize("kind", ["closed", "full", "broken"])
def test_a_daemon_serves_although_nobody_hears_where(kind: str, tmp_path: Path) -> None:
    notified = tmp_path / "n"
    words = ("serve", "--bind", f"unix:{tmp_path}/s", "--state-dir", str(tmp_path))
    environment = {"PATH": os.environ["PATH"], "XDG_CONFIG_HOME": str(tmp_path)}
    environment["NOTIFY_SOCKET"] = str(notified)
    closed = 1 if kind == "closed" else None
    with (
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as hears,
        output("full" if kind == "closed" else kind) as out,
        (tmp_path / "log").open("w") as log,
    ):
        hears.bind(str(notified))
        hears.settimeout(GUARD)
        with subprocess.Popen(
            command(*words, closed=closed),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=log,
            env=environment,
        ) as process:
            try:
                assert hears.recv(100) == b"READY=1"
                status = run("status", "--url", f"unix:{tmp_path}/s", "--state-dir", str(tmp_path))
                assert "no sessions" in status.stdout, status.stderr
                process.terminate()
                assert process.wait(GUARD) == 0
            finally:
                process.kill()
    lines = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    (told,) = [line for line in lines if line["event"] == "not_announced"]
    assert told["reason"]
    assert not [line for line in lines if "traceback" in line]


# -- what peers write ------------------------------------------------------------------------------


@pytest.mark.parametrize("style", ["text", "json"])
def test_what_a_server_says_moves_neither_lines_nor_terminals(style: str, tmp_path: Path) -> None:
    dying = {"command": "printf", "args": [EVIL.replace("\n", " ")], "restart": {"enabled": False}}
    config = write_config(tmp_path, {"raw": raw(), "dying": dying})
    how = ("--config", config, "--log-level", "debug", "--log-format", style)
    error = json.dumps({"message": EVIL})
    for asked in (("raw", "rpc_error", error), ("raw", EVIL), ("dying", "echo"), (EVIL, "echo")):
        done = run("call", *asked, *how)
        for shown in (done.stdout, done.stderr):
            assert not [c for c in SHAPELESS if c in shown]
            assert not [line for line in shown.splitlines() if line.startswith("2026-01-01")]
        *log, told = done.stderr.splitlines()
        assert told.startswith("emceepee call: ")
        if style == "json":
            assert all(map(json.loads, log))
        if asked[0] == "raw":
            assert "forged" in told  # it is all there


@pytest.mark.parametrize("lines", [TextLines(), JsonLines()], ids=["text", "json"])
def test_a_log_has_no_lines_but_its_own(lines: LineFormatter) -> None:
    def line(name: str, said: str, bug: Exception | None = None, /, **fields: Any) -> str:
        exc_info = (type(bug), bug, None) if bug is not None else None
        record = logging.LogRecord(name, logging.INFO, "", 0, said, (), exc_info)
        record.fields = fields
        return lines.format(record)

    told = line(OURS, "told", error=EVIL, plain="grüße", empty="", more=["a b", EVIL])
    crashed = line(OURS, EVIL, ValueError(EVIL))
    for text in (told, crashed, line(EVIL, EVIL)):
        assert not [c for c in SHAPELESS if c in text]
        assert "forged" in text
        first, *rest = text.split("\n")
        assert all(part.startswith("    ") for part in rest)
        if isinstance(lines, JsonLines):
            assert json.loads(first)
            assert not rest
    if isinstance(lines, JsonLines):
        assert (json.loads(told)["error"], json.loads(told)["more"]) == (EVIL, ["a b", EVIL])
    else:
        assert 'plain=grüße empty="" more=["a b", "x\\n' in told


@contextmanager
def liar(answer: bytes, *, more: bytes = b"") -> Iterator[str]:
    """Where every request is answered so; *more* follows until it is not read any more."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        over = threading.Event()

        def serve_it() -> None:
            while not over.is_set():
                connection, _ = server.accept()
                with connection:
                    try:
                        connection.recv(65536)
                        connection.sendall(answer)
                        while more and not over.is_set():
                            connection.sendall(more)
                    except OSError:
                        pass

        thread = threading.Thread(target=serve_it, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.getsockname()[1]}"
        finally:
            over.set()
            socket.create_connection(server.getsockname()).close()
            thread.join(GUARD)


def http(body: bytes, *headers: str, status: str = "200 OK") -> bytes:
    head = [f"HTTP/1.1 {status}", "Content-Type: application/json", *headers]
    return "\r\n".join([*head, "", ""]).encode() + body


ASK = {"status": ("status",), "call": ("call", "demo", "echo")}
"""How commands ask a daemon."""


@pytest.mark.parametrize("ask", ASK)
def test_what_somebody_else_answers_is_shown_escaped(ask: str) -> None:
    error = json.dumps({"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": EVIL}})
    for status in ("200 OK", "400 Bad\x1b[2J"):
        with liar(http(error.encode(), status=status)) as url:
            done = run(*ASK[ask], "--url", url)
        assert (done.returncode, done.stdout) == (1, "")
        (line,) = done.stderr.splitlines()
        assert not [c for c in SHAPELESS if c in line]


DEEP = b"[" * 200_000
STATUS = b'{"sessions": [{"session": 1}], "ready": 1}'
STREAM = "Content-Type: text/event-stream"
LIES = {
    "an endless body": (http(b""), b" " * 65536),
    "an endless line of a stream": (http(b"", STREAM), b"x" * 65536),
    "an endless message of a stream": (http(b"", STREAM), b"data: " + b"x" * 9000 + b"\n"),
    "an endless header": (b"HTTP/1.1 200 OK\r\nX: ", b"x" * 65536),
    "endless headers": (b"HTTP/1.1 200 OK\r\n", b"X: y\r\n" * 1000),
    "a length that is none": (http(b"{}", "Content-Length: " + "9" * 5000), b""),
    "a huge chunk": (http(b"F" * 4000 + b"\r\n{}", "Transfer-Encoding: chunked"), b""),
    "deep JSON": (http(DEEP), b""),
    "deep JSON that ends": (http(DEEP + b"]" * 200_000), b""),
    "a number that is none": (http(b'{"id": 1, "result": ' + b"9" * 9000 + b"}"), b""),
    "a status that is none": (http(STATUS), b""),
    "what is no UTF-8": (http(b'{"sessions": "\xff"}'), b""),
    "another place": (http(b"", "Location: http://127.0.0.1:1/", status="302 Found"), b""),
    "nothing": (b"", b""),
}


@pytest.mark.parametrize("ask", ASK)
@pytest.mark.parametrize("lie", LIES)
def test_a_liar_is_told_in_one_line(lie: str, ask: str) -> None:
    answer, more = LIES[lie]
    with liar(answer, more=more) as url:
        done = run(*ASK[ask], "--url", url)
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"emceepee {ask}: ")


def test_a_liar_cannot_go_on_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each byte is a sign of life, but there is an end to it."""
    monkeypatch.setattr(remote, "PATIENCE", 0.5)
    for answer, more in ((b"", b"HTTP/1.1 100 Continue\r\n\r\n"), (b"HTTP/1.1 ", b" ")):
        with liar(answer, more=more) as url, pytest.raises(remote.NoAnswer):
            with remote.RemoteDaemon(url, None).request("GET", "/status") as response:
                response.read()


def test_on_a_terminal_nothing_is_obeyed(tmp_path: Path) -> None:
    """And ``status`` shows what clients call themselves in one line each."""
    main, sub = pty.openpty()
    config = write_config(tmp_path, {"raw": raw()})
    with os.fdopen(main, "rb", buffering=0) as terminal:
        with subprocess.Popen(
            [*COMMAND, "call", "raw", "echo", json.dumps({"text": EVIL}), "--config", str(config)],
            stdin=subprocess.DEVNULL,
            stdout=sub,
            stderr=sub,
            env={"PATH": os.environ["PATH"], "HOME": "/nonexistent"},
        ) as process:
            os.close(sub)
            said = b""
            try:
                while chunk := terminal.read(65536):
                    said += chunk
            except OSError:
                pass  # the other end is closed
            assert process.wait(GUARD) == 0
    shown = said.decode().replace("\r\n", "\n")
    assert not [c for c in SHAPELESS if c in shown]
    assert EVIL in json.loads(shown)["content"][0]["text"]


def test_json_of_a_status_is_safe_and_the_same(tmp_path: Path) -> None:
    with serve(tmp_path, "--no-auth") as daemon:
        hello = json.loads(HELLO)
        hello["params"]["clientInfo"]["name"] = EVIL
        accept = {"accept": "application/json, text/event-stream"}
        with httpx.Client(headers=accept, trust_env=False, timeout=GUARD) as client:
            assert client.post(daemon.url, json=hello).status_code == 200
        done = run("status", "--json", "--url", daemon.url)
        assert not [c for c in SHAPELESS if c in done.stdout]
        (session,) = json.loads(done.stdout)["sessions"]
        table = run("status", "--url", daemon.url).stdout
        assert not [c for c in SHAPELESS if c in table]
        assert session["client"].startswith("x")
