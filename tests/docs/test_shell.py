"""The pages, done as a reader does them: in a shell, in a home that is empty.

What is shown below a command is what it prints. Only what would be downloaded is here already:
``uvx mcp-server-time`` starts a stand-in, and programs of others are not run.
"""

from __future__ import annotations

import json
import os
import random
import shlex
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import attrs
import pytest
import trio

import demo_picture
import pages
import time_server
import warm
from emceepee_lines import Lines, open_pipes
from pages import Command, looks_like
from stalls import check_daemon

pytestmark = pytest.mark.once

GUARD = 60
TUTORIAL = pages.ROOT / "docs" / "tutorial.rst"
AT_HOME_PAGE = pages.ROOT / "docs" / "howto" / "import-connect.rst"
AT_HOME = {
    ".claude.json": '{"startups": 1}',
    ".cursor/mcp.json": json.dumps(
        {
            "mcpServers": {
                "git": {"command": "uvx", "args": ["mcp-server-git"]},
                "hub": {"command": "npx", "args": ["-y", "hub"]},
            }
        }
    ),
    ".codex/config.toml": """
[mcp_servers.git]
command = "uvx"
args = ["mcp-server-git", "--repository", "/src"]

[mcp_servers.tickets]
url = "https://tickets.example/mcp"
""",
}
"""What clients of others have, in the example of that page."""
OURS = {"emceepee", "cat", "mkdir", "kill", "echo"}
"""What is run; what a reader installs, or has from others, is not."""
NOT_RUN = {
    "answer": "a question has to be open",
    "connect": "it asks",
    "disconnect": "likewise",
    "doctor": "it finds something",
    "import": "it asks",
    "install-service": "it reaches for systemd",
    "open": "it reaches for a browser",
    "serve": "it lasts",
    "stdio": "likewise",
}
"""What is run by tests of its own."""
PORT = "8080"
"""As pages have it; of a test it is another."""


@attrs.define(eq=False)
class Shell:
    """Somebody's, who has nothing but emceepee."""

    home: Path
    port: int
    daemon: subprocess.Popen[str] | None = None

    @property
    def environment(self) -> dict[str, str]:
        folder = self.home / ".local/bin"
        return {"HOME": str(self.home), "PATH": f"{folder}:{os.environ['PATH']}"} | {
            "PORT": str(self.port)
        }

    def here(self, text: str) -> str:
        return text.replace(PORT, str(self.port))

    def run(self, command: Command) -> str:
        """Has to do what the page says, and print what it shows."""
        done = self.do(command.typed)
        assert done.returncode == 0, f"{command}\n{done.stdout}"
        self.compare(command, done.stdout)
        return done.stdout

    def run_and_agree(self, command: Command) -> None:
        """As above, of one that asks first: it has shown all by then."""
        done = self.do(command.typed)
        asked, _, nobody = done.stdout.rstrip().rpartition("\n")
        assert done.returncode == 1
        assert nobody.endswith("nobody is here to ask, so nothing is written without --yes")
        self.compare(command, asked)
        assert self.do(f"{command.typed} --yes").returncode == 0

    def do(self, typed: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "-c", self.here(typed)],
            env=self.environment,
            cwd=self.home,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=GUARD,
            check=False,
        )

    def compare(self, command: Command, printed: str) -> None:
        shown = [self.here(line) for line in command.shown]
        elsewhere = f"http://127.0.0.1:{self.port}"  # not where one is without a PORT
        for written in ("--connect {}", '"{}"'):
            here, there = written.format("auto"), written.format(elsewhere)
            shown = [line.replace(here, there) for line in shown]
        if shown and shown[-1].endswith("[y/N]"):
            del shown[-2:]
        assert not shown or looks_like(shown, printed), f"{command}\n{printed}"

    @contextmanager
    def serving(self, command: Command) -> Iterator[None]:
        """In a terminal of its own, until the block is left."""
        log = self.home / "log"
        with (
            log.open("w") as stderr,
            subprocess.Popen(
                ["bash", "-c", f"exec {self.here(command.typed)} --log-format json"],
                env=self.environment,
                cwd=self.home,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
            ) as daemon,
        ):
            assert daemon.stdout is not None
            self.daemon = daemon
            hangs = threading.Timer(GUARD, daemon.kill)
            hangs.start()
            try:
                shown, printed = [self.here(line) for line in command.shown or ["…"]], ""
                while line := daemon.stdout.readline():
                    printed += line
                    if looks_like(shown, printed):
                        break
                assert looks_like(shown, printed), f"{printed}\n{log.read_text('utf-8')}"
                threading.Thread(target=daemon.stdout.read).start()
                yield
            finally:
                hangs.cancel()
                daemon.send_signal(signal.SIGTERM)
                status = daemon.wait(GUARD)
        assert status == 0
        lines = [json.loads(line) for line in log.read_text("utf-8").splitlines()]
        assert not [line for line in lines if "traceback" in line]
        check_daemon(lines)


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    programs = {
        "emceepee": warm.command("emceepee_trio"),
        "uvx": (sys.executable, time_server.__file__),
    }
    folder = tmp_path / ".local" / "bin"
    folder.mkdir(parents=True)
    for name, words in programs.items():
        path = folder / name
        path.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n', "utf-8")
        path.chmod(0o755)
    return Shell(tmp_path, next(free_ports()))


def free_ports() -> Iterator[int]:
    """Below those that the kernel gives to others meanwhile, as a daemon is told of one by PORT."""
    while True:
        port = random.SystemRandom().randrange(20_000, 32_000)
        with socket.socket() as attempt:
            try:
                attempt.bind(("127.0.0.1", port))
            except OSError:
                continue
        yield port


def is_ours(command: Command) -> bool:
    return {words[0] for words in command.programs} <= OURS


def test_the_tutorial_can_be_done_word_by_word(shell: Shell) -> None:
    steps = [
        each
        for each in pages.commands()
        if each.block.page == TUTORIAL and is_ours(each) and "emceepee connect" not in each.typed
    ]
    at = next(n for n, each in enumerate(steps) if "daemon" in each.block.classes)
    (entry,) = (
        json.loads(block.text)["mcpServers"]["emceepee"]
        for block in pages.blocks()
        if block.page == TUTORIAL and block.kind == "json"
    )
    for step in steps[:at]:
        printed = shell.run(step)
        if step.typed == "emceepee demo":
            check_picture(printed)
    with shell.serving(steps[at]):
        trio.run(go_on_with_a_client, shell, entry["args"], steps[at + 1 :])


def check_picture(printed: str) -> None:
    """That the README shows the tour as it is."""
    shown = demo_picture.FILE.read_text("utf-8")
    now = demo_picture.lines_of(demo_picture.drawn(printed))
    assert now == demo_picture.lines_of(shown), "run: python tests/support/demo_picture.py"


async def go_on_with_a_client(shell: Shell, args: list[str], steps: list[Command]) -> None:
    """That has the tutorial's entry, and whose model does what the tutorial asks it to do."""
    home = {"HOME": str(shell.home), "PORT": str(shell.port)}
    for name in ("CONFIG", "STATE"):
        home[f"XDG_{name}_HOME"] = ""
    async with open_pipes(shell.home / "client", *args, **home) as client:
        await client.initialize()
        first = next(n for n, each in enumerate(steps) if "meanwhile" in each.block.classes)
        for step in steps[:first]:
            await trio.to_thread.run_sync(shell.run, step)
        assert await names(client) == {"time", "demo"}
        time = await client.execute("time", "get_current_time", {"timezone": "Asia/Tokyo"})
        assert json.loads(time.text)["timezone"] == "Asia/Tokyo"
        slow = await client.execute("demo", "slow", {"seconds": 90}, timeout_ms=0)
        assert "Promoted to task" in slow.texts[0]
        asked = await client.execute("demo", "ask_name")
        assert "server demo asks" in asked.texts[0]
        for step in steps[first:]:
            await trio.to_thread.run_sync(shell.run, step)
        assert await names(client) == {"time", "demo", "paris"}


async def names(client: Lines) -> set[str]:
    return {each["name"] for each in (await client.call("names", "list_servers")).json["servers"]}


def test_servers_are_imported_and_clients_connected_as_shown(shell: Shell) -> None:
    for name, text in AT_HOME.items():
        (shell.home / name).parent.mkdir(parents=True, exist_ok=True)
        (shell.home / name).write_text(text, "utf-8")
    offer, connect, undo = (each for each in pages.commands() if each.block.page == AT_HOME_PAGE)
    shell.run_and_agree(offer)
    with shell.serving(Command(connect.block, "emceepee serve", ())):
        shell.run_and_agree(connect)
    changed = json.loads((shell.home / ".claude.json").read_text("utf-8"))
    (shell.home / ".claude.json").write_text(json.dumps(changed | {"startups": 2}), "utf-8")
    shell.run_and_agree(undo)


def test_every_other_command_does_what_its_page_says(shell: Shell) -> None:
    config = shell.home / ".config" / "emceepee" / "config.json"
    config.parent.mkdir(parents=True)
    config.write_text('{"mcpServers": {"time": {"command": "uvx", "args": []}}}', "utf-8")
    found = [
        each
        for each in pages.commands()
        if each.block.page not in (TUTORIAL, AT_HOME_PAGE) and is_ours(each)
    ]
    ours = [each for each in found if any(words[0] == "emceepee" for words in each.programs)]
    daemon = next(each for each in ours if each.typed == "emceepee serve --demo" and each.shown)
    with shell.serving(daemon):
        for each in ours:
            if not any(words[1] in NOT_RUN for words in each.programs):
                shell.run(each)
    assert len(ours) > 15


def test_what_is_shown_is_compared() -> None:
    assert looks_like(["a … c", "…", "z"], "a b c\nx\ny\nz\n")
    assert looks_like(["a", "…"], "a\n")
    assert not looks_like(["a"], "a\nb\n")
    assert not looks_like(["a … c"], "a b d\n")
    assert not looks_like(["…", "b"], "a\n")
