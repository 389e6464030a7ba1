"""What a child is started with."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import trio

from emceepee_trio.backend.spec import INHERITED, child_environment, command_line
from emceepee_trio.config import Server
from emceepee_trio.errors import ConnectFailed
from fake_backends import raw
from recording import running

GUARD = 60
OURS = {"HOME": "/home/us", "PATH": "/bin", "LANG": "C.UTF-8", "OUR_TOKEN": "hunter2"}


def executable(path: Path) -> str:
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return str(path)


def test_of_our_environment_a_child_sees_what_is_harmless() -> None:
    server = Server("it", command="x", env={"LANG": "de", "ITS_TOKEN": "abc"})
    assert child_environment(server, OURS) == {
        "HOME": "/home/us",
        "PATH": "/bin",
        "LANG": "de",
        "ITS_TOKEN": "abc",
    }


async def test_a_child_has_its_environment_its_folder_and_its_arguments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OUR_TOKEN", "hunter2")
    monkeypatch.setenv("LOGNAME", "us")
    entry = raw("--page", 7) | {"cwd": str(tmp_path), "env": {"ITS_TOKEN": "grüße"}}
    with trio.fail_after(GUARD):
        async with running(entry) as it:
            here = json.loads((await it.call("where"))["content"][0]["text"])
    assert here["cwd"] == str(tmp_path)
    assert here["argv"][1:] == ["--page", "7"]
    assert here["env"]["ITS_TOKEN"] == "grüße"
    assert here["env"]["LOGNAME"] == "us"
    assert "OUR_TOKEN" not in here["env"]
    # LC_CTYPE may come from Python itself.
    assert here["env"].keys() <= {*INHERITED, "ITS_TOKEN", "LC_CTYPE", *tagged(here["env"])}


def tagged(environment: dict[str, str]) -> set[str]:
    """What we add to find a child again."""
    return {name for name in environment if name.startswith("EMCEEPEE_")}


def test_a_command_is_looked_for_on_the_path_of_the_child(tmp_path: Path) -> None:
    there = executable(tmp_path / "serve")
    server = Server("it", command="serve", args=("-x", "a b"), env={"PATH": str(tmp_path)})
    assert command_line(server, child_environment(server)) == [there, "-x", "a b"]
    elsewhere = Server("it", command="serve")
    with pytest.raises(ConnectFailed, match=r"'serve' not found.*searched PATH /nowhere"):
        command_line(elsewhere, {"PATH": "/nowhere"})


def test_a_path_that_is_not_executable_is_not_looked_for_elsewhere(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.touch()
    server = Server("it", command=str(plain))
    with pytest.raises(ConnectFailed) as caught:
        command_line(server, {"PATH": "/nowhere"})
    assert f"{str(plain)!r} not found or not executable. Correct" in caught.value.message


def test_without_a_path_there_is_the_usual_one() -> None:
    assert Path(command_line(Server("it", command="sh"), {})[0]).name == "sh"
    with pytest.raises(ConnectFailed) as caught:
        command_line(Server("it", command="no-such"), {})
    assert os.defpath in caught.value.message


def test_a_relative_command_is_ours_and_not_relative_to_the_folder_of_the_child(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = executable(tmp_path / "serve")
    monkeypatch.chdir(tmp_path)
    server = Server("it", command="./serve", cwd="/")
    assert command_line(server, {"PATH": "/nowhere"}) == [there]
