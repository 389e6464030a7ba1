"""Questions and tasks of a real daemon, from the shell: what a client's servers ask is answered."""

from __future__ import annotations

import json
import os
import pty
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import Any

import attrs
import pytest

import warm
from emceepee_lines import run
from emceepee_trio.commands.common.remote import RemoteDaemon, RemoteSession
from emceepee_trio.web.page.now import MAX_SHOWN
from served import serve

pytestmark = pytest.mark.once
TOKEN = "token-of-the-operator"


@attrs.frozen
class Asked:
    """A client, and what its server asks."""

    url: str
    client: RemoteSession

    def call(self, tool: str, **args: str) -> tuple[str, str]:
        """The task that the call has become, and the question for which it waits."""
        result = self.client.call(
            "execute_tool", {"server": "demo", "tool": tool, "args": args, "timeout_ms": 30_000}
        )
        said: dict[str, Any] = {}
        for block in result["content"]:
            with suppress(ValueError):
                said |= json.loads(block["text"])
        open_ = self.told("questions")
        return said["proxy_task"]["task_id"], open_[-1]["question"]

    def told(self, what: str) -> list[dict[str, Any]]:
        is_asked = what == "questions"
        ran = self.run("answer" if is_asked else "tasks", "--json")
        assert (ran.returncode, ran.stderr) == (0, "")
        said = json.loads(ran.stdout)
        found: list[dict[str, Any]] = said if is_asked else said[what]
        return found

    def run(self, *words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        return run(*words, "--url", self.url, stdin=stdin, EMCEEPEE_TOKEN=TOKEN)

    def result(self, task: str) -> str:
        said = self.client.call("get_task_result", {"task_id": task, "timeout_ms": 30_000})
        return str(said["content"][0]["text"])


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("served")
    with serve(folder, "--demo", EMCEEPEE_TOKEN=TOKEN) as daemon:
        yield daemon.url.removesuffix("/mcp")


@pytest.fixture
def asked(url: str) -> Iterator[Asked]:
    with RemoteSession.connected(RemoteDaemon(url, TOKEN), "a-client") as client:
        yield Asked(url, client)


def test_a_form_is_answered_by_what_stands_behind_its_id(asked: Asked) -> None:
    task, question = asked.call("ask_name", question="Who are you?")
    listed = asked.run("answer").stdout
    assert question in listed
    assert "Who are you?" in listed
    ran = asked.run("answer", question, "name=Ada", "excited=yes")
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "demo has your answer: accepted.\n", "")
    assert asked.result(task) == "Hello, Ada!"
    assert "no open questions" in asked.run("answer").stdout


def test_what_does_not_fit_is_said_and_stays_open(asked: Asked) -> None:
    _, question = asked.call("ask_name", question="Who?")
    ran = asked.run("answer", question, "excited=maybe")
    assert ran.returncode == 1
    assert "name" in ran.stderr
    assert asked.told("questions")[0]["question"] == question
    ran = asked.run("answer", question, "nmae=Ada", "excited=yes")
    assert ran.returncode == 2
    assert ran.stderr.startswith(
        """emceepee answer: no field 'nmae', did you mean "name"? there are: excited, name"""
    )
    assert asked.run("answer", question[-6:].lower(), "--decline").returncode == 0
    assert asked.told("questions") == []


def test_a_completion_is_what_somebody_wrote(asked: Asked) -> None:
    task, question = asked.call("ask_model", prompt="A haiku")
    assert asked.run("answer", question, "-", stdin="two\nlines").returncode == 0
    assert "two\nlines" in asked.result(task)


def test_a_page_is_agreed_to(asked: Asked) -> None:
    _, question = asked.call("ask_url")
    ran = asked.run("answer", question, "x=y")
    assert ran.returncode == 2
    assert "--accept" in ran.stderr
    assert asked.run("answer", question, "--accept").returncode == 0


def test_what_there_is_not_is_told(asked: Asked) -> None:
    ran = asked.run("answer", "no-such", "--decline")
    assert ran.returncode == 1
    assert "no question 'no-such'; there are: none" in ran.stderr
    assert asked.run("answer", "--decline").returncode == 2


def test_in_a_terminal_it_is_asked_field_by_field(asked: Asked) -> None:
    task, question = asked.call("ask_name", question="Who \x1b[31mare you?")
    ours, theirs = pty.openpty()
    command = [*warm.command("emceepee_trio"), "answer", question, "--url", asked.url]
    environment = {"PATH": os.environ["PATH"], "EMCEEPEE_TOKEN": TOKEN, "TERM": "xterm"}
    with subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment
    ) as process:
        os.close(theirs)
        # As somebody types who knows what comes: nothing for what is needed, a name, a number.
        os.write(ours, b"\nAda\n7\n1\ny\n")
        told = b""
        with suppress(OSError):
            while chunk := os.read(ours, 65536):
                told += chunk
    os.close(ours)
    assert process.returncode == 0, told
    said = told.decode().replace("\r\n", "\n")
    assert "It is required." in said
    assert "Take one of the numbers" in said
    assert "\x1b[31m" not in said
    assert "demo has your answer: accepted." in said
    assert asked.result(task) == "Hello, Ada!"


def test_who_leaves_leaves_it_open(asked: Asked) -> None:
    _, question = asked.call("ask_name", question="Who?")
    ran = asked.run("answer", question)
    assert ran.returncode == 2
    assert "what is the answer?" in ran.stderr
    asked.run("answer", question, "--cancel")


def test_tasks_are_listed_shown_and_ended(asked: Asked) -> None:
    task, question = asked.call("ask_name", question="Who?")
    (line,) = (line for line in asked.run("tasks").stdout.split("\n") if task in line)
    assert line.endswith(f"your answer to what demo asks (`emceepee answer {question[-8:]}`)")
    waits = asked.run("tasks", task, "--result")
    assert waits.returncode == 1
    assert "your answer to what demo asks" in waits.stderr
    asked.run("answer", question, "name=Ada")
    asked.result(task)
    shown = asked.run("tasks", task, "--result")
    assert json.loads(shown.stdout)["content"][0]["text"] == "Hello, Ada"

    other, _ = asked.call("ask_name", question="Who?")
    ran = asked.run("tasks", other, "--cancel")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "demo/ask_name is cancelled" in ran.stdout
    (about,) = (each for each in asked.told("tasks") if each["call"] == other)
    assert about["status"] == "cancelled"
    assert asked.run("tasks", "--cancel").returncode == 2


def test_a_call_that_is_no_task_is_listed_with_what_it_waits_for_and_ended(asked: Asked) -> None:
    """As the page does."""
    result: dict[str, Any] = {}
    args = {"server": "demo", "tool": "slow", "args": {"seconds": 3600}, "timeout_ms": 600_000}
    waiting = Thread(target=lambda: result.update(asked.client.call("execute_tool", args)))
    waiting.start()
    while not ((calls := asked.told("calls")) and calls[0]["waits"]["for"] == "answer"):
        pass  # each look is a program of its own
    (call,) = calls
    _, line, *_ = asked.run("tasks").stdout.split("\n")
    assert line.split()[:5] == [call["call"], "call", "demo", "slow", "a-client"]
    assert line.endswith("an answer of demo")
    ran = asked.run("tasks", call["call"], "--result")
    assert "it waits for an answer of demo" in ran.stderr
    assert "demo/slow is cancelled" in asked.run("tasks", call["call"][-6:], "--cancel").stdout
    waiting.join()
    assert result["isError"]
    assert asked.told("calls") == []


def test_of_too_many_calls_the_younger_tasks_are_not_taken_for_over(asked: Asked) -> None:
    args = {"server": "demo", "tool": "slow", "args": {"seconds": 3600}, "timeout_ms": 1}
    for _ in range(MAX_SHOWN):  # as many as a session may have
        asked.client.call("execute_tool", args)
    with RemoteSession.connected(RemoteDaemon(asked.url, TOKEN), "another") as other:
        other.call("execute_tool", args)
        look_at_younger_tasks(asked)


def look_at_younger_tasks(asked: Asked) -> None:
    said = json.loads(asked.run("tasks", "--json").stdout)
    assert (len(said["calls"]), said["calls_in_all"]) == (MAX_SHOWN, MAX_SHOWN + 1)
    assert "working" not in {task["status"] for task in said["tasks"]}
    (younger,) = said["younger_tasks"]
    assert younger["status"] == "working"
    listed = asked.run("tasks").stdout
    before, line, _ = listed.partition(younger["call"])
    assert line
    assert "and 1 more, which are younger" in before
    assert asked.run("tasks", younger["call"], "--cancel").returncode == 0


def test_where_no_daemon_is_it_is_said(tmp_path: Path) -> None:
    for command in ("tasks", "answer"):
        ran = run(command, "--url", f"unix:{tmp_path}/none")
        assert ran.returncode == 1
        assert "no daemon answers" in ran.stderr
