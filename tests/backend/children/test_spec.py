"""What a child is started with."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
import trio

from emceepee_client import Json, write_config
from emceepee_lines import run
from emceepee_trio.backend.children.spec import child_environment, command_line
from emceepee_trio.config import Config, Server, server_from_arguments
from emceepee_trio.errors import ConnectFailed
from emceepee_trio.model.inherited import is_usual
from emceepee_trio.session.manager import open_sessions
from emceepee_trio.session.session import Session
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
    others = {name for name in here["env"] if not is_usual(name)}
    assert others - {"EMCEEPEE_TAG"} == {"ITS_TOKEN"}


FROM_THE_SHELL = {
    "HTTPS_PROXY": "http://proxy.example",
    "no_proxy": "localhost",
    "SSL_CERT_FILE": "/ca.pem",
    "NODE_EXTRA_CA_CERTS": "/ca.pem",
    "NPM_CONFIG_REGISTRY": "https://npm.example",
    "npm_config_cache": "/cache",
    "UV_INDEX_URL": "https://pypi.example",
    "PIP_INDEX_URL": "https://pypi.example",
    "SSH_AUTH_SOCK": "/agent",
    "XDG_CACHE_HOME": "/cache",
    "LANGUAGE": "de",
    "DOCKER_HOST": "unix:///docker",
}
SECRETS = {"CORP_TOKEN": "s3cret", "OTHER_TOKEN": "hunter2", "ADA": "token-of-ada"}
OF_THE_DAEMON = {
    "EMCEEPEE_TOKEN": "ours",
    "EMCEEPEE_LOG": "debug",
    "NOTIFY_SOCKET": "",
    "LISTEN_FDNAMES": "x",
}


def inherits(tmp_path: Path, entry: Json, **settings: Any) -> Json:
    """What a server sees whose daemon was started in the environment above."""
    config = write_config(tmp_path, {"raw": raw() | entry}, **settings)
    environment = FROM_THE_SHELL | SECRETS | OF_THE_DAEMON
    told = run("call", "raw", "where", "--config", config, **environment)
    assert told.returncode == 0, told.stderr
    seen: Json = json.loads(json.loads(told.stdout)["content"][0]["text"])["env"]
    assert not seen.keys() & OF_THE_DAEMON.keys()
    return seen


def test_what_installers_need_is_inherited_and_nothing_that_is_secret(tmp_path: Path) -> None:
    seen = inherits(tmp_path, {})
    assert seen.items() >= FROM_THE_SHELL.items()
    assert not seen.keys() & SECRETS.keys()


def test_the_operator_may_have_more_inherited_by_all_or_by_one(tmp_path: Path) -> None:
    seen = inherits(tmp_path, {"inherit_env": ["CORP_*"]}, inheritEnv=["OTHER_TOKEN"])
    assert seen.items() >= FROM_THE_SHELL.items()
    assert seen.keys() & SECRETS.keys() == {"CORP_TOKEN", "OTHER_TOKEN"}


@pytest.mark.parametrize("is_of_all", [True, False])
def test_all_is_all_but_our_own_and_our_tokens(tmp_path: Path, is_of_all: bool) -> None:
    whom = {"inherit_env": "all"}
    http = {"tokens": {"ada": "${ADA}"}}
    if is_of_all:
        seen = inherits(tmp_path, {}, http=http, **whom)
    else:
        seen = inherits(tmp_path, whom, http=http)
    assert seen.items() >= FROM_THE_SHELL.items()
    assert seen.keys() & SECRETS.keys() == {"CORP_TOKEN", "OTHER_TOKEN"}


def test_a_server_that_says_what_it_gets_does_not_get_all(tmp_path: Path) -> None:
    seen = inherits(tmp_path, {"inherit_env": []}, inherit_env="all")
    assert not seen.keys() & SECRETS.keys()


async def test_what_clients_add_gets_what_the_operator_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OUR_TOKEN", "hunter2")
    monkeypatch.setenv("CORP_NAME", "x")
    asked = server_from_arguments({"name": "it", **raw()})
    async with open_sessions(Config(inherit_env=("CORP_*",))) as sessions:
        with trio.fail_after(GUARD):
            session = await sessions.ensure("s", "p")
            await sessions.servers.add(session, asked, keep_on_failure=False)
            assert await whose(session) == {"CORP_NAME"}
            sessions.reload(Config(inherit_env=("OUR_*",)))
            assert await whose(session) == {"OUR_TOKEN"}
            sessions.reload(Config())
            assert await whose(session) == set()


async def whose(session: Session) -> set[str]:
    client = await session.backend("it").connection()
    result = await client.request("tools/call", {"name": "where", "arguments": {}})
    environment: Json = json.loads(result["content"][0]["text"])["env"]
    return {"OUR_TOKEN", "CORP_NAME"} & environment.keys()


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
