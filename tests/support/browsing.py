"""A real browser, headless, that looks at the page of a real daemon.

It is the one that the machine has: playwright brings none, and downloads none.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import attrs
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Error,
    Page,
    expect,
    sync_playwright,
)

from outside import BROWSERS, find

GUARD = 60.0
"""Seconds after which something is not going to come."""
HUNG = 240.0
"""Seconds after which a browser is not going to answer its driver, which waits for ever: that
happens once in some hundred times, and no wait of a test has an end then."""
LEAVING = 60.0
"""The same, when all has been seen and it only has to close a window."""

FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage"),
)

PHONE = {"width": 390, "height": 800}
DESK = {"width": 1200, "height": 900}


def yes_or_no(message: str, title: str) -> dict[str, Any]:
    schema = {
        "type": "object",
        "properties": {"go": {"type": "boolean", "title": title}},
        "required": ["go"],
    }
    return {"mode": "form", "message": message, "requestedSchema": schema}


YES_OR_NO = yes_or_no("Shall I go on?", "Go on")
"""What is asked by ``raw/ask``."""

Json = dict[str, Any]


@attrs.define(eq=False)
class Chromium:
    """A browser; another one, after it hung as it was left, and was ended."""

    _launch: Callable[[], Browser]
    _now: Browser = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._now = self._launch()

    def new_context(self, **options: Any) -> BrowserContext:
        if not self._now.is_connected():
            self._now = self._launch()
        return self._now.new_context(**options)

    def close(self) -> None:
        self._now.close()


@contextmanager
def chromium() -> Iterator[Chromium]:
    program = find(*BROWSERS)
    expect.set_options(timeout=GUARD * 1000)
    with sync_playwright() as playwright:
        browser = Chromium(
            partial(playwright.chromium.launch, executable_path=program, args=list(FLAGS))
        )
        try:
            yield browser
        finally:
            browser.close()


@attrs.define(eq=False)
class Window:
    """One person, whose browser says nothing but what the page means to say."""

    context: BrowserContext
    complaints: list[str] = attrs.field(factory=list)
    """What the browser has refused or found wrong."""

    def open(self, url: str) -> Page:
        page = self.context.new_page()
        page.set_default_timeout(GUARD * 1000)
        said = self._said  # of an object with slots, on which playwright would put an attribute
        page.on("console", lambda message: said(message))  # noqa: PLW0108 - see above
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.goto(url)
        return page

    def _said(self, message: ConsoleMessage) -> None:
        # What is answered with an error is what some tests ask for.
        if message.type in ("error", "warning") and "status of 4" not in message.text:
            self.complaints.append(message.text)


@contextmanager
def window(browser: Chromium, **options: Any) -> Iterator[Window]:
    with _ended_after(HUNG):
        context = browser.new_context(**{"viewport": DESK, **options})
        opened = Window(context)
    try:
        with _ended_after(HUNG):
            yield opened
    finally:
        _leave(context)
    assert opened.complaints == [], opened.complaints


def _leave(context: BrowserContext) -> None:
    """What hangs here is no part of what is tested: nothing is shown any more."""
    with _ended_after(LEAVING) as is_hung:
        try:
            context.close()
        except Error:
            if not is_hung.is_set():
                raise
    if is_hung.is_set():
        for folder in Path(tempfile.gettempdir()).glob("org.chromium.Chromium.*"):
            shutil.rmtree(folder)


@contextmanager
def _ended_after(patience: float) -> Iterator[threading.Event]:
    """Browsers, so that what waits for one fails."""
    is_hung = threading.Event()

    def end() -> None:
        is_hung.set()
        _end_programs(find(*BROWSERS))

    timer = threading.Timer(patience, end)
    timer.start()
    try:
        yield is_hung
    finally:
        timer.cancel()


def _end_programs(browser: str) -> None:
    """Of browsers that are below this process."""
    wanted = [os.getpid()]
    for parent in wanted:
        for task in Path(f"/proc/{parent}/task").glob("*/children"):
            with suppress(OSError):
                wanted += map(int, task.read_text().split())
    for pid in wanted[1:]:
        with suppress(OSError):
            if Path(f"/proc/{pid}/exe").readlink().name == Path(browser).name:
                os.kill(pid, signal.SIGKILL)


SERIOUS = ("serious", "critical")


def obstacles(page: Page) -> list[str]:
    """What keeps somebody from using a page, as axe-core sees it."""
    found = Axe().run(page, options={"resultTypes": ["violations"]}).response["violations"]
    return [
        f"{each['id']}: {node['html'][:200]} ({node['failureSummary'][:300]})"
        for each in found
        if each["impact"] in SERIOUS
        for node in each["nodes"]
    ]


def link(endpoint: str, token: str) -> str:
    """One that logs a browser in, as `emceepee open` has it."""
    url = endpoint.removesuffix("/mcp")
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    with urlopen(Request(f"{url}/api/links", b"{}", headers), timeout=GUARD) as response:
        path: str = json.loads(response.read())["path"]
    return url + path


@attrs.define(eq=False)
class HttpClient:
    """A client of a daemon that is no browser, with a session of its own."""

    url: str
    """Of the endpoint."""
    token: str
    name: str = "claude-code"
    _session: str = attrs.field(default="", init=False)

    def __attrs_post_init__(self) -> None:
        hello = {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": self.name, "version": "1"},
        }
        self.request("initialize", hello)
        self._post({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def end(self) -> None:
        """Its session ends, and all that is open in it."""
        headers = {"Authorization": f"Bearer {self.token}", "Mcp-Session-Id": self._session}
        with urlopen(Request(self.url, None, headers, method="DELETE"), timeout=GUARD):
            pass

    def request(self, method: str, params: Mapping[str, Any]) -> Any:
        said = self._post({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        lines = said.decode().splitlines()
        data = [line.removeprefix("data: ") for line in lines if line.startswith("data: {")]
        return json.loads(data[-1] if data else said)["result"]

    def call(self, tool: str, /, **arguments: Any) -> Json:
        """A tool of the daemon; what its answer says as JSON."""
        result = self.request("tools/call", {"name": tool, "arguments": arguments})
        said: Json = json.loads(result["content"][0]["text"])
        return said

    def begin(self, server: str, tool: str, /, **args: Any) -> str:
        """A call of a server's tool that goes on; its task."""
        asked = {"server": server, "tool": tool, "args": args, "timeout_ms": 0}
        result = self.request("tools/call", {"name": "execute_tool", "arguments": asked})
        task: str = json.loads(result["content"][1]["text"])["proxy_task"]["task_id"]
        return task

    def result(self, task: str) -> Any:
        """What its server has answered in the end, as text."""
        asked = {"task_id": task, "timeout_ms": round(GUARD * 1000)}
        result = self.request("tools/call", {"name": "get_task_result", "arguments": asked})
        return result["content"][0]["text"]

    def _post(self, message: Json) -> bytes:
        headers = {
            "Accept": "application/json, text/event-stream",
            "Authorization": f"Bearer {self.token}",
            "Content-Type": "application/json",
        }
        if self._session:
            headers["Mcp-Session-Id"] = self._session
        with urlopen(
            Request(self.url, json.dumps(message).encode(), headers), timeout=GUARD
        ) as response:
            self._session = response.headers.get("Mcp-Session-Id") or self._session
            body: bytes = response.read()
        return body
