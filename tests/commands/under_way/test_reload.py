"""A real daemon is told to read its configuration again, and doctor knows whether it has."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import attrs
import httpx  # noqa: ASYNC127 - the client that shares no code with us
import pytest

from emceepee_lines import run
from served import serve

pytestmark = pytest.mark.once
OWN, ADAS = "token-of-the-operator", "token-of-ada"
SERVER = {"command": "true", "disabled": True}


@attrs.frozen
class Told:
    url: str
    config: Path
    state: Path

    def write(self, text: str) -> None:
        self.config.write_text(text)

    def configure(self, *servers: str) -> None:
        tokens = {"ada": ADAS}
        config = {"mcpServers": dict.fromkeys(servers, SERVER), "http": {"tokens": tokens}}
        self.write(json.dumps(config))

    def run(self, *words: str, token: str = OWN) -> CompletedProcess[str]:
        where = ("--url", self.url, "--state-dir", self.state)
        return run(*words, *where, EMCEEPEE_TOKEN=token, XDG_CONFIG_HOME=str(self.state))

    def servers(self) -> list[str]:
        said = json.loads(self.run("status", "--json").stdout)
        return [server["name"] for server in said["servers"]]

    def configuration(self, token: str) -> Any:
        """As the page of servers has it."""
        headers = {"authorization": f"Bearer {token}"}
        answer = httpx.get(f"{self.url}/api/servers", headers=headers, timeout=60)
        return answer.json()["configuration"]

    def doctor(self, *options: str) -> dict[str, str]:
        """What is not well with the daemon, by how bad it is."""
        ran = self.run("doctor", "--quick", "--json", *(options or ("--config", str(self.config))))
        said = [each for each in json.loads(ran.stdout) if each["about"] == "daemon"]
        return {
            each["state"]: f"{each['message']} -> {each['remedy']}"
            for each in said
            if each["state"] != "ok"
        }


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Told]:
    folder = tmp_path_factory.mktemp("served")
    said = Told("", folder / "own.json", folder)
    said.configure("one")
    with serve(folder, "--config", str(said.config), EMCEEPEE_TOKEN=OWN) as daemon:
        yield attrs.evolve(said, url=daemon.url.removesuffix("/mcp"))


def test_who_may_have_it_read_sees_from_where_and_with_what_mistakes(told: Told) -> None:
    told.configure("one")
    told.run("reload")
    assert told.configuration(ADAS) is None
    said = told.configuration(OWN)
    assert (said["path"], said["problems"]) == (str(told.config), [])
    told.write('{"mcpServers": {"one": {}}}')
    told.run("reload")
    assert "mcpServers.one" in told.configuration(OWN)["problems"][0]
    told.configure("one")


def test_it_goes_by_what_is_there_now(told: Told) -> None:
    told.configure("one")
    assert told.run("reload").stdout == "The configuration is read: 1 server.\n"
    assert told.doctor() == {}
    told.configure("one", "two")
    assert told.servers() == ["one"]
    said = told.doctor()["warning"]
    assert f"{told.config} has changed since it was read" in said
    assert f"`emceepee reload --url {told.url}`" in said
    ran = told.run("reload")
    assert (ran.returncode, ran.stdout, ran.stderr) == (
        0,
        "The configuration is read: 2 servers.\n",
        "",
    )
    assert told.servers() == ["one", "two"]
    assert told.doctor() == {}


def test_what_is_wrong_is_told_and_changes_nothing(told: Told) -> None:
    told.configure("one")
    assert told.run("reload").returncode == 0
    told.write('{"limits": {"tasks": 0, "sesions": 1}}')
    ran = told.run("reload")
    assert (ran.returncode, ran.stdout) == (1, "")
    first, second, last = ran.stderr.splitlines()
    assert 'did you mean "sessions"' in first
    assert "limits.tasks" in second
    assert last == "emceepee reload: so nothing has changed"
    assert told.servers() == ["one"]
    said = told.doctor()["broken"]
    assert "could not read its configuration again" in said
    assert "limits.tasks" in said  # as the last of both
    told.configure("one")
    assert told.run("reload").returncode == 0
    assert told.doctor() == {}


def test_it_is_for_who_runs_the_daemon(told: Told) -> None:
    told.configure("one", "two")
    assert told.run("reload").returncode == 0
    told.configure("three")
    ran = told.run("reload", token=ADAS)
    assert (ran.returncode, ran.stdout) == (1, "")
    assert "for the daemon's own token alone" in ran.stderr
    assert told.servers() == ["one", "two"]
    # Where its files are is nobody else's business.
    assert "configuration" not in json.loads(told.run("status", "--json", token=ADAS).stdout)


def test_another_file_than_the_daemons_is_told(told: Told) -> None:
    other = told.state / "other.json"
    other.write_text("{}")
    said = told.doctor("--config", str(other))["note"]
    assert f"it goes by {told.config}, not by {other}" in said


def test_a_file_that_came_later_is_told_and_read(tmp_path: Path) -> None:
    with serve(tmp_path, EMCEEPEE_TOKEN=OWN) as daemon:
        url = daemon.url.removesuffix("/mcp")
        told = Told(url, tmp_path / "emceepee/config.json", tmp_path)
        told.config.parent.mkdir()
        told.configure("one")
        # As somebody says it who names none, whose default this is.
        ran = told.run("doctor", "--quick", "--json")
        (said,) = (each for each in json.loads(ran.stdout) if "it has read no" in each["message"])
        assert said["state"] == "warning"
        assert told.run("reload").stdout == "The configuration is read: 1 server.\n"
        assert told.doctor() == {}
