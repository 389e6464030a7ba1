"""What clients' settings are before, with, and after our entry."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import sys
import tomllib
from pathlib import Path
from textwrap import dedent

import pytest

from at_home import AtHome
from emceepee_lines import request
from emceepee_trio.model.json import jsonc
from homes import GIT, HOMES, HomeShape, snapshot
from served import serve

pytestmark = pytest.mark.once

TO_CONNECT = [shape for shape in HOMES if shape.connected]
REFUSED = [shape for shape in HOMES if shape.says]


def name_of(shape: HomeShape) -> str:
    return shape.name


def entry_in(path: Path) -> object:
    text = path.read_text("utf-8-sig")
    said = tomllib.loads(text) if path.suffix == ".toml" else jsonc.loads(text)
    assert isinstance(said, dict)
    keys = ("mcpServers", "servers", "mcp_servers", "context_servers")
    servers: dict[str, object] = next((said[key] for key in keys if key in said), {})
    return servers.get("emceepee")


def shown_in(out: str) -> list[object]:
    """The entries that are shown before they are written."""
    found = re.findall(r"What is written there for [^\n]*:\n\n((?:  .*\n)+)", out)
    texts = [dedent(text) for text in found]
    said = [tomllib.loads(text) if text.startswith("[") else json.loads(text) for text in texts]
    return [servers["emceepee"] for each in said for servers in each.values()]


def test_there_are_homes_of_each_kind_and_client() -> None:
    assert len(HOMES) >= 30
    assert len({shape.client for shape in HOMES}) == 10


@pytest.mark.parametrize("shape", TO_CONNECT, ids=name_of)
def test_connect_then_disconnect_gives_back_every_byte(shape: HomeShape, at_home: AtHome) -> None:
    at_home.make(shape)
    before = snapshot(at_home.home)

    ran = at_home.run("connect", shape.client, "--yes")
    assert (ran.status, ran.err) == (0, "")
    for name in shape.connected:
        entry = entry_in(at_home.home / name)
        assert isinstance(entry, dict)
        assert Path(entry["command"]).is_absolute()
        assert "stdio" in entry["args"]
        assert entry in shown_in(ran.out)
    connected = snapshot(at_home.home)
    assert {name for name in connected if "emceepee" in str(connected[name][-1])} >= {
        str((at_home.home / name).resolve().relative_to(at_home.home)) for name in shape.connected
    }

    again = at_home.run("connect", shape.client, "--yes")
    assert again.status == 0
    assert "There is nothing to do." in again.out
    assert snapshot(at_home.home) == connected

    ran = at_home.run("disconnect", shape.client, "--yes")
    assert (ran.status, ran.err) == (0, "")
    assert snapshot(at_home.home) == before
    assert not list(at_home.state.rglob("*.before"))


@pytest.mark.parametrize("shape", REFUSED, ids=name_of)
def test_what_cannot_be_written_is_said_and_left_as_it_is(
    shape: HomeShape, at_home: AtHome
) -> None:
    at_home.make(shape)
    before = snapshot(at_home.home)
    ran = at_home.run("connect", shape.client, "--yes")
    assert ran.status == 1
    assert shape.says in ran.out + ran.err
    assert snapshot(at_home.home) == before
    assert not list(at_home.state.rglob("*"))


@pytest.mark.parametrize("shape", TO_CONNECT, ids=name_of)
def test_what_has_changed_since_loses_only_our_entry(shape: HomeShape, at_home: AtHome) -> None:
    at_home.make(shape)
    at_home.run("connect", shape.client, "--yes")
    paths = [at_home.home / name for name in shape.connected]
    for path in paths:
        sign = b"#" if path.suffix == ".toml" else b"//"
        path.write_bytes(path.read_bytes() + b"\n" + sign + b" a note\n")

    ran = at_home.run("disconnect", "--all", "--yes")
    assert ran.status == 0
    assert "only that: the file has changed since" in ran.out
    for path in paths:
        assert entry_in(path) is None
        assert path.read_bytes().endswith(b" a note\n")
    assert "nothing to undo" in at_home.run("disconnect", "--all", "--yes").out


def test_each_client_is_told_what_stops_it_from_deferring_our_tools(at_home: AtHome) -> None:
    said = {}
    for client in ("claude-code", "copilot", "vscode", "cursor", "zed"):
        at_home.run("connect", client, "--yes")
    at_home.run("connect", "codex", "--yes")
    codex = entry_in(at_home.home / ".codex/config.toml")
    for path in at_home.home.rglob("*.json"):
        said[path.name + path.parent.name[:5]] = entry_in(path)
    command = said["mcp.json.curs"]
    assert isinstance(command, dict)
    assert codex == {**command, "required": True}
    assert said == {
        ".claude.jsonhome": {"type": "stdio", **command, "alwaysLoad": True},
        "mcp-config.json.copi": {
            "type": "local",
            **command,
            "tools": ["*"],
            "deferTools": "never",
        },
        "mcp.jsonUser": {"type": "stdio", **command},
        "mcp.json.curs": command,
        "settings.jsonzed": {**command, "env": {}},
    }


def test_all_are_those_that_are_installed(at_home: AtHome) -> None:
    (at_home.home / ".codex").mkdir()
    (at_home.home / ".config/zed").mkdir(parents=True)
    assert at_home.run("connect", "--all", "--yes").status == 0
    made = {path.name for path in at_home.home.rglob("*") if path.is_file()}
    assert made == {"config.toml", "settings.json"}


def test_without_a_name_it_shows_what_there_is_and_changes_nothing(at_home: AtHome) -> None:
    (at_home.home / ".codex").mkdir()
    before = snapshot(at_home.home)
    ran = at_home.run("connect")
    assert ran.status == 2
    assert "not connected" in ran.out
    assert "--all" in ran.err
    assert snapshot(at_home.home) == before


def test_without_a_name_and_a_client_it_says_which_there_could_be(at_home: AtHome) -> None:
    ran = at_home.run("connect")
    assert (ran.status, ran.err) == (0, "")
    assert ran.out.startswith("none of these is installed here: claude-code, ")


def test_where_nobody_can_be_asked_nothing_is_written(at_home: AtHome) -> None:
    ran = at_home.run("connect", "cursor")
    assert ran.status == 1
    assert "--yes" in ran.err
    assert snapshot(at_home.home) == {}


def test_a_client_that_there_is_not_is_told(at_home: AtHome) -> None:
    ran = at_home.run("connect", "cursr")
    assert ran.status == 2
    assert "no client 'cursr', did you mean \"cursor\"?" in ran.err


def test_who_is_connected_by_an_entry_of_his_own_keeps_it(at_home: AtHome) -> None:
    path = at_home.home / ".cursor/mcp.json"
    path.parent.mkdir()
    written = {"command": "emceepee", "args": ["stdio", "--view", "code"]}
    path.write_text(json.dumps({"mcpServers": {"emceepee": written}}))
    before = snapshot(at_home.home)
    ran = at_home.run("connect", "cursor", "--yes")
    assert ran.status == 0
    assert "which somebody else wrote" in ran.out
    assert snapshot(at_home.home) == before


def test_an_entry_of_ours_that_is_out_of_date_is_changed_and_undone_to_the_beginning(
    at_home: AtHome,
) -> None:
    path = at_home.home / ".cursor/mcp.json"
    path.parent.mkdir()
    path.write_text('{"mcpServers": {}}')
    before = snapshot(at_home.home)
    at_home.run("connect", "cursor", "--yes")
    unit = at_home.home / ".config/systemd/user/emceepee.service"
    unit.parent.mkdir(parents=True)
    unit.touch()

    assert "change" in at_home.run("connect", "cursor", "--yes").out
    entry = entry_in(path)
    assert isinstance(entry, dict)
    # It says what no client knows: where the daemon listens, and where its token is.
    assert entry["args"][:3] == ["stdio", "--connect", "http://127.0.0.1:1"]
    assert entry["args"][3:] == ["--state-dir", str(at_home.state / "emceepee")]

    at_home.run("disconnect", "cursor", "--yes")
    for folder in (unit, *list(unit.parents)[:3]):
        folder.unlink() if folder == unit else folder.rmdir()
    assert snapshot(at_home.home) == before


def test_where_a_daemon_runs_clients_share_it(at_home: AtHome, tmp_path: Path) -> None:
    folder = at_home.state / "emceepee"
    folder.mkdir(parents=True)
    with serve(folder) as daemon:
        port = daemon.url.split(":")[2].partition("/")[0]
        at_home.set({"PORT": port})
        at_home.run("connect", "cursor", "--yes")
        entry = entry_in(at_home.home / ".cursor/mcp.json")
        assert isinstance(entry, dict)
        hello = request(
            1,
            "initialize",
            {
                "protocolVersion": "2025-11-25",
                "capabilities": {},
                "clientInfo": {"name": "cursor", "version": "0"},
            },
        )
        # As a client that knows neither the port nor where the token is.
        told = subprocess.run(
            [entry["command"], *entry["args"]],
            input=json.dumps(hello) + "\n",
            env={"HOME": "/nonexistent", "PATH": "/usr/bin"},
            capture_output=True,
            text=True,
            check=True,
        )
    assert json.loads(told.stdout)["result"]["serverInfo"]["name"] == "emceepee"


def test_what_is_put_away_some_day_is_no_program_to_be_named(
    at_home: AtHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = at_home.home / ".cache/uv/archive-v0/x/bin/emceepee"
    program.parent.mkdir(parents=True)
    program.touch()
    monkeypatch.setattr(sys, "argv", [str(program)])
    assert "that is in a cache" in at_home.run("connect", "cursor", "--yes").err


def test_a_file_that_changes_under_our_hands_is_not_overwritten(
    at_home: AtHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = at_home.home / ".cursor/mcp.json"
    path.parent.mkdir()
    path.write_text("{}")
    sync = os.fsync

    def meanwhile(fd: int) -> None:
        sync(fd)
        path.write_text('{"theirs": 1}')

    monkeypatch.setattr(os, "fsync", meanwhile)
    ran = at_home.run("connect", "cursor", "--yes")
    assert ran.status == 1
    assert "somebody else has just written it; try again" in ran.err
    assert path.read_text() == '{"theirs": 1}'
    assert [each.name for each in path.parent.iterdir()] == ["mcp.json"]
    assert not list(at_home.state.rglob("*.json"))


def test_a_disk_that_is_full_leaves_what_was_there(
    at_home: AtHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = at_home.home / ".cursor/mcp.json"
    path.parent.mkdir()
    path.write_text("{}")
    before = snapshot(at_home.home)

    def full(fd: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    ran = at_home.run("connect", "cursor", "--yes")
    assert ran.status == 1
    assert "No space left on device; it is as it was" in ran.err
    assert snapshot(at_home.home) == before


def test_without_a_place_for_the_backup_nothing_is_written(at_home: AtHome) -> None:
    path = at_home.home / ".cursor/mcp.json"
    path.parent.mkdir()
    path.write_text("{}")
    at_home.state.mkdir()
    (at_home.state / "emceepee").touch()
    ran = at_home.run("connect", "cursor", "--yes")
    assert ran.status == 1
    assert "without a backup nothing is written" in ran.err
    assert path.read_text() == "{}"


def test_a_backup_that_is_damaged_is_not_put_back(at_home: AtHome) -> None:
    path = at_home.home / ".cursor/mcp.json"
    path.parent.mkdir()
    path.write_text(json.dumps({"mcpServers": {"git": GIT}}))
    at_home.run("connect", "cursor", "--yes")
    connected = path.read_bytes()
    (before,) = at_home.state.rglob("*.before")
    assert stat.S_IMODE(before.stat().st_mode) == 0o600
    before.write_text("{}")
    ran = at_home.run("disconnect", "cursor", "--yes")
    assert ran.status == 1
    assert "is not what it was" in ran.out
    assert path.read_bytes() == connected


def test_what_is_connected_elsewhere_is_found_when_all_is_undone(at_home: AtHome) -> None:
    at_home.set({"CODEX_HOME": str(at_home.home / "elsewhere")})
    at_home.run("connect", "codex", "--yes")
    assert (at_home.home / "elsewhere/config.toml").exists()
    at_home.set({"CODEX_HOME": str(at_home.home / "other")})
    assert at_home.run("disconnect", "--all", "--yes").status == 0
    assert snapshot(at_home.home) == {}
