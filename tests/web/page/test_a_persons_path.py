"""All that a person does with a daemon, from the servers of a client that are taken over to a
restart of the service: with a real client, which finds us by what we wrote for it, and a browser.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import attrs
import pytest
from playwright.sync_api import expect

from browsing import YES_OR_NO, chromium, window
from emceepee_lines import run
from fake_backends import HERE, demo, raw
from served import Daemon, serve

pytestmark = pytest.mark.once


@attrs.frozen
class Told:
    """A client in a process of its own."""

    process: subprocess.Popen[str]

    def call(self, tool: str, /, **arguments: Any) -> list[str]:
        """The texts of the answer."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps([tool, arguments]) + "\n")
        self.process.stdin.flush()
        result = json.loads(self.process.stdout.readline())
        return [block["text"] for block in result["content"]]

    def answer(self, tool: str, /, **arguments: Any) -> Any:
        return json.loads(self.call(tool, **arguments)[0])

    def begin(self, server: str, tool: str, /, **args: Any) -> str:
        """A call that goes on; its task."""
        asked = {"server": server, "tool": tool, "args": args, "timeout_ms": 0}
        promoted: str = json.loads(self.call("execute_tool", **asked)[1])["proxy_task"]["task_id"]
        return promoted

    def end(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


@contextmanager
def told(command: str, *args: str, **environment: str) -> Iterator[Told]:
    script = [sys.executable, str(HERE / "told_client.py"), command, *args]
    pipe, env = subprocess.PIPE, {"PATH": os.environ["PATH"], **environment}
    with subprocess.Popen(script, stdin=pipe, stdout=pipe, text=True, env=env) as process:
        client = Told(process)
        yield client
        client.end()
    assert process.returncode == 0


@attrs.frozen
class Home:
    folder: Path
    port: int

    @property
    def environment(self) -> dict[str, str]:
        return {
            "HOME": str(self.folder),
            "PORT": str(self.port),
            "XDG_CONFIG_HOME": str(self.folder / ".config"),
        }

    def run(self, *words: str) -> str:
        done = run(*words, **self.environment)
        assert (done.returncode, done.stderr) == (0, ""), done
        return done.stdout

    @contextmanager
    def serve(self) -> Iterator[Daemon]:
        state = self.folder / ".local/state/emceepee"
        state.mkdir(mode=0o700, parents=True, exist_ok=True)
        with serve(state, **self.environment) as daemon:
            yield daemon

    def link(self) -> str:
        return self.run("open", "--print").strip()


@pytest.fixture
def home(tmp_path: Path) -> Home:
    theirs = {"mcpServers": {"demo": demo(), "raw": raw()}}
    (tmp_path / ".claude.json").write_text(json.dumps(theirs), "utf-8")
    with socket.create_server(("127.0.0.1", 0)) as free:
        return Home(tmp_path, free.getsockname()[1])


def test_a_person_takes_over_connects_looks_answers_cancels_reloads_and_restarts(
    home: Home,
) -> None:
    home.run("import", "claude-code", "--yes")
    config = home.folder / ".config/emceepee/config.json"
    with ExitStack() as stack:
        browser = stack.enter_context(chromium())
        person = stack.enter_context(window(browser))
        with home.serve() as daemon:
            home.run("connect", "claude-code", "--yes")
            entry = json.loads((home.folder / ".claude.json").read_text())["mcpServers"]["emceepee"]
            words = (entry["command"], *entry["args"])
            assert "--connect" in words
            client = stack.enter_context(told(*words, **home.environment))

            # Something slow, and why it is stuck.
            slow = client.begin("demo", "slow", seconds=3600, steps=1000)
            page = person.open(home.link())
            row = page.locator(f"#call-{slow}")
            expect(row).to_contain_text("an answer of demo")
            expect(row.get_by_role("link", name="told")).to_be_visible()

            # A question, answered here.
            asks = client.begin("raw", "ask", params=YES_OR_NO)
            page.get_by_role("button", name="Yes").click()
            expect(page.get_by_text("raw has your answer")).to_be_visible()
            answer = client.answer("get_task_result", task_id=asks)
            assert answer == {"action": "accept", "content": {"go": True}}

            # The slow one is ended.
            page.locator(f"#call-{slow}").get_by_role("link", name="in detail").click()
            page.once("dialog", lambda dialog: dialog.accept())
            page.get_by_role("button", name="Cancel it").click()
            expect(page.get_by_text("Nothing is under way")).to_be_visible()
            assert client.answer("get_task", task_id=slow)["task"]["status"] == "cancelled"

            # The configuration is read again, while the page is open.
            page.get_by_role("link", name="Servers").click()
            expect(page.get_by_role("link", name="raw", exact=True)).to_be_visible()
            said = json.loads(config.read_text())
            said["mcpServers"]["later"] = demo()
            config.write_text(json.dumps(said))
            page.get_by_role("button", name="Read it again").click()
            expect(page.get_by_text("The configuration is read: 3 servers.")).to_be_visible()
            expect(page.get_by_role("link", name="later", exact=True)).to_be_visible()
            config.write_text("{")
            page.get_by_role("button", name="Read it again").click()
            expect(page.get_by_text("it is not gone by")).to_be_visible()
            config.write_text(json.dumps(said))
            os.kill(daemon.pid, signal.SIGHUP)  # by whomever: the page tells
            expect(page.get_by_text("it is not gone by")).to_be_hidden()

        # It is started again: nobody is logged in any more, and the client goes on.
        expect(page.get_by_text("reconnecting")).to_be_visible()
        with home.serve():
            expect(page.get_by_role("heading", name="Log in")).to_be_visible()
            page.goto(home.link())
            page.get_by_role("link", name="Servers").click()
            expect(page.get_by_role("link", name="later", exact=True)).to_be_visible()
            names = {each["name"] for each in client.answer("list_servers")["servers"]}
            assert names == {"demo", "raw", "later"}
            client.end()
        # While there was no daemon, its page was not to be had.
        assert all("net::ERR_" in each for each in person.complaints)
        person.complaints.clear()
