"""A page in a real browser that speaks MCP with fetch, and is reloaded while its calls run."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from urllib.request import Request, urlopen

import attrs
import pytest

from fake_backends import demo, raw
from outside import BROWSERS, find
from served import Daemon, serve

HERE = Path(__file__).parent
TOKEN = "token-of-the-page"

GUARD = 120.0
"""Seconds after which a page hangs."""

FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"),
    *("--disable-quic", "--disable-background-networking", "--disable-component-update"),
    "--disable-sync",
)

Json = dict[str, Any]


@attrs.define(eq=False)
class Site:
    """Where pages come from, and what they tell the test."""

    origin: str
    reports: queue.Queue[Any] = attrs.field(factory=queue.Queue)
    hooks: dict[str, Callable[[Any], None]] = attrs.field(factory=dict)
    """By path: what is done before a page that tells something is answered."""

    def told(self, path: str, said: Any) -> None:
        if path == "/report":
            self.reports.put(said)
        else:
            self.hooks[path](said)


@contextmanager
def open_site() -> Iterator[Site]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            name = self.path.lstrip("/")
            found = (HERE / name).read_bytes() if name.endswith(".html") else None
            self.answer(200 if found else 404, found or b"")

        def do_POST(self) -> None:
            said = json.loads(self.rfile.read(int(self.headers["content-length"])))
            opened.told(self.path, said)
            self.answer(200, b"")

        def answer(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("content-type", "text/html")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        opened = Site(f"http://127.0.0.1:{server.server_port}")
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield opened
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def browsing(folder: Path, site: Site, page: str, **parameters: str) -> Iterator[Callable[[], Any]]:
    """A browser of its own that shows this page, whose fragment are the parameters.

    Yields what waits for the page's report.
    """
    browser = find(*BROWSERS)
    folder.mkdir()
    url = f"{site.origin}/{page}#{urlencode(parameters)}"
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [browser, *FLAGS, f"--user-data-dir={folder}", url],
            cwd=folder,
            # Relative: it makes a socket there, whose path must not be long.
            env={**os.environ, "TMPDIR": ".", "HOME": str(folder)},
            process_group=0,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )

    def report() -> Any:
        deadline = time.monotonic() + GUARD
        while process.poll() is None and time.monotonic() < deadline:
            with suppress(queue.Empty):
                return site.reports.get(timeout=0.5)
        pytest.fail(f"nothing from the page:\n{(folder / 'log').read_text('utf-8', 'replace')}")

    with process:
        try:
            yield report
        finally:
            process.terminate()
            try:
                process.wait(GUARD)
            finally:
                with suppress(ProcessLookupError):  # as a rule it has ended its helpers
                    os.killpg(process.pid, signal.SIGKILL)


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with open_site() as site:
        yield site


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory, site: Site) -> Iterator[Daemon]:
    find(*BROWSERS)
    folder = tmp_path_factory.mktemp("served")
    config = folder / "config.json"
    settings = {
        "mcpServers": {"demo": demo(), "raw": raw()},
        "http": {"allowed_origins": [site.origin]},
        "context": "off",  # events come with await_activity only, so that none goes elsewhere
    }
    config.write_text(json.dumps(settings), "utf-8")
    with serve(folder, "--config", str(config), EMCEEPEE_TOKEN=TOKEN) as daemon:
        yield daemon


def call(daemon: Daemon, session: str, server: str, tool: str, args: Mapping[str, Any]) -> None:
    """Call a tool of a server in a session that is somebody else's."""
    arguments = {"server": server, "tool": tool, "args": args}
    params = {"name": "execute_tool", "arguments": arguments}
    request = Request(
        daemon.url,
        json.dumps(
            {"jsonrpc": "2.0", "id": tool, "method": "tools/call", "params": params}
        ).encode(),
        {
            "Accept": "application/json, text/event-stream",
            "Authorization": f"Bearer {TOKEN}",
            "Content-Type": "application/json",
            "Mcp-Session-Id": session,
        },
    )
    with urlopen(request, timeout=GUARD) as response:
        response.read()


def test_a_reloaded_page_loses_neither_notifications_nor_results(
    daemon: Daemon, site: Site, tmp_path: Path
) -> None:
    file = tmp_path / "now"

    def away(said: Json) -> None:
        call(daemon, said["session"], "raw", "log_many", {"n": 20})
        call(daemon, said["session"], "raw", "notify_many", {"n": 3, "k": 0})
        # As long as a few steps of the call that the page has left.
        call(daemon, said["session"], "demo", "slow", {"seconds": 0.5, "steps": 1})

    site.hooks = {"/away": away, "/finish": lambda _: file.touch()}
    parameters = {"url": daemon.url, "token": TOKEN, "file": str(file)}
    with browsing(tmp_path / "browser", site, "client.html", **parameters) as report:
        found = report()
    assert "error" not in found, found["error"]

    assert found["same"]
    heard = found["heard"]
    logged = [said["params"] for said in heard if said.get("method") == "notifications/message"]
    assert [said["data"] for said in logged] == [{"n": n} for n in range(20)]
    assert {said["logger"] for said in logged} == {"raw/raw"}
    assert not [said for said in heard[: found["lost"]] if said["name"] == "standalone"]

    progress = [said for said in heard if said.get("method") == "notifications/progress"]
    steps = [said["params"]["progress"] for said in progress]
    assert steps == sorted(set(steps))
    assert progress[0] in heard[: found["lost"]]
    assert progress[-1] in heard[found["lost"] :]
    assert {said["params"]["progressToken"] for said in progress} == {"steps"}

    assert {(task["server"], task["status"]) for task in found["tasks"]} == {
        ("demo", "working"),
        ("raw", "working"),
    }
    events = found["events"]
    types = [event["type"] for event in events]
    assert (types.count("task_created"), types.count("task_completed")) == (2, 1)
    things = [event["data"] for event in events if event["type"] == "notification"]
    assert [thing["params"]["n"] for thing in things] == [0, 1, 2]
    assert found["result"]["content"][0] == {"type": "text", "text": "the file is there"}


def test_a_page_from_elsewhere_is_told_nothing(daemon: Daemon, tmp_path: Path) -> None:
    with open_site() as elsewhere:
        parameters = {"url": daemon.url, "token": TOKEN}
        with browsing(tmp_path / "browser", elsewhere, "stranger.html", **parameters) as report:
            assert report() == "TypeError"
