"""Servers of clients become ours, once, and only where nobody has that name."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from at_home import AtHome
from effort import effort
from emceepee_trio.commands.home.found import TheirServer
from emceepee_trio.commands.home.take_over import NEW, SAME, judge
from emceepee_trio.config import Server, load
from homes import GIT, HOMES, HUB, SECRET, TICKETS, HomeShape, snapshot

pytestmark = pytest.mark.once

READABLE = [shape for shape in HOMES if shape.imports]


def clients_with(at_home: AtHome, **servers: dict[str, object]) -> None:
    """Each server in the file of the client with that name."""
    files = {
        "cursor": ".cursor/mcp.json",
        "gemini": ".gemini/settings.json",
        "claude": ".claude.json",
    }
    for client, entries in servers.items():
        path = at_home.home / files[client]
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps({"mcpServers": entries}))


def written(at_home: AtHome) -> dict[str, object]:
    said: dict[str, object] = json.loads(at_home.config.read_text())["mcpServers"]
    return said


@pytest.mark.parametrize("shape", READABLE, ids=lambda shape: shape.name)
def test_what_clients_have_becomes_ours_once(shape: HomeShape, at_home: AtHome) -> None:
    at_home.make(shape)
    before = snapshot(at_home.home)
    ran = at_home.run("import", shape.client, "--yes")
    assert ran.status == 0, ran
    loaded = load(at_home.config)
    assert [server.name for server in loaded.config.servers] == list(shape.imports)
    assert SECRET not in ran.out + ran.err
    once = snapshot(at_home.home)
    assert {name: once[name] for name in before} == before

    again = at_home.run("import", shape.client, "--yes")
    assert again.status == 0
    assert "There is nothing to import." in again.out
    assert snapshot(at_home.home) == once


def test_many_take_as_much_longer_as_they_are_more(at_home: AtHome) -> None:
    def taken(many: int) -> int:
        clients_with(at_home, cursor={f"s{n}": {"command": f"c{n}"} for n in range(many)})
        ours = at_home.home / f"{many}.json"
        ours.write_text('{"limits": {"servers": 1000}}')
        words = ("import", "cursor", "--yes", "--config", str(ours))
        took = effort(lambda: at_home.run(*words))
        assert len(json.loads(ours.read_text())["mcpServers"]) == many
        return took

    taken(1)  # what is done once
    assert taken(800) < 5 * taken(200)


@pytest.mark.parametrize("shape", HOMES, ids=lambda shape: shape.name)
def test_no_home_is_changed_by_looking(shape: HomeShape, at_home: AtHome) -> None:
    at_home.make(shape)
    before = snapshot(at_home.home)
    for command in ("import", "connect", "disconnect"):
        ran = at_home.run(command)
        assert SECRET not in ran.out + ran.err
    assert snapshot(at_home.home) == before


def test_variables_stay_variables(at_home: AtHome) -> None:
    clients_with(
        at_home,
        cursor={"tickets": TICKETS},
        gemini={"hub": {**HUB, "env": {"HUB_TOKEN": "$MY_TOKEN", "URL": "http://${HOST}:1"}}},
    )
    at_home.set({"TICKETS_TOKEN": "s3cret", "MY_TOKEN": "s3cret", "HOST": "h"})
    at_home.run("import", "--all", "--yes")
    assert "s3cret" not in at_home.config.read_text()
    servers = {server.name: server for server in load(at_home.config).config.servers}
    assert servers["tickets"].headers == {"Authorization": "Bearer s3cret"}
    assert servers["hub"].env == {"HUB_TOKEN": "s3cret", "URL": "http://h:1"}


def test_what_a_program_fills_in_itself_is_left_to_it(at_home: AtHome) -> None:
    args = ["mcp-remote", "https://h", "--header", "Authorization:${AUTH}"]
    entry = {"command": "npx", "args": args, "env": {"AUTH": "Bearer x"}}
    clients_with(at_home, cursor={"remote": entry})
    at_home.run("import", "--all", "--yes")
    (server,) = load(at_home.config).config.servers
    assert server.args == tuple(args)
    assert not server.disabled


def test_secrets_that_stand_there_are_told_by_name_and_kept_for_the_owner(at_home: AtHome) -> None:
    clients_with(at_home, cursor={"hub": HUB})
    at_home.config.parent.mkdir(parents=True)
    at_home.config.write_text("{}")
    at_home.config.chmod(0o644)
    ran = at_home.run("import", "cursor", "--yes")
    assert "hub (HUB_TOKEN)" in ran.out
    assert SECRET not in ran.out + ran.err
    modes = {stat.S_IMODE(path.stat().st_mode) for path in at_home.config.parent.iterdir()}
    assert modes == {0o600}


def test_who_has_a_name_keeps_it(at_home: AtHome) -> None:
    other = {"command": "other"}
    clients_with(at_home, claude={"git": GIT, "a": GIT}, cursor={"git": other, "a": GIT, "b": GIT})
    at_home.config.parent.mkdir(parents=True)
    at_home.config.write_text(json.dumps({"mcpServers": {"b": other}}))
    ran = at_home.run("import", "claude-code", "cursor", "--yes")
    assert ran.status == 0
    assert written(at_home) == {"b": other, "git": GIT, "a": GIT}
    assert "2 new, 1 same, 2 conflict" in ran.out
    assert "another one than that of claude-code" in ran.out
    assert "another one than ours" in ran.out


SERVERS = st.sampled_from([Server(name, command=c) for name in "abc" for c in ("x", "y")])


@given(st.lists(SERVERS, max_size=8), st.lists(SERVERS, max_size=3, unique_by=lambda s: s.name))
def test_imported_twice_is_imported_once(theirs: list[Server], ours: list[Server]) -> None:
    found = [TheirServer("cursor", "cursor", each.name, {}, each) for each in theirs]
    known = {server.name: server for server in ours}
    first = judge(found, known)
    new = {each.found.name: each.found.server for each in first if each.state == NEW}
    assert not new.keys() & known.keys()
    assert len(new) == sum(each.state == NEW for each in first)
    after = {name: server for name, server in new.items() if server is not None} | known
    again = judge(found, after)
    assert [each.state for each in again] == [
        SAME if each.state == NEW else each.state for each in first
    ]


def test_comments_of_ours_stay_and_what_it_was_is_kept(at_home: AtHome) -> None:
    clients_with(at_home, cursor={"git": GIT})
    ours = '{\n  // mine\n  "limits": {"sessions": 5}, /* few */\n}\n'
    at_home.config.parent.mkdir(parents=True)
    at_home.config.write_text(ours)
    ran = at_home.run("import", "cursor", "--yes")
    assert at_home.config.read_text() == (
        '{\n  // mine\n  "limits": {"sessions": 5}, /* few */\n'
        '  "mcpServers": {\n    "git": {\n      "command": "uvx",\n      "args": [\n'
        '        "mcp-server-git"\n      ]\n    }\n  },\n}\n'
    )
    (kept,) = (path for path in at_home.config.parent.iterdir() if path != at_home.config)
    assert kept.read_text() == ours
    assert kept.name in ran.out


def test_another_file_may_be_ours_be_it_toml(at_home: AtHome, tmp_path: Path) -> None:
    clients_with(at_home, cursor={"git": GIT, "tickets": TICKETS})
    path = tmp_path / "emceepee.toml"
    path.write_text("[limits]\nsessions = 5 # few\n")
    assert at_home.run("import", "cursor", "--yes", "--config", str(path)).status == 0
    assert path.read_text().startswith("[limits]\nsessions = 5 # few\n")
    assert [server.name for server in load(path).config.servers] == ["git", "tickets"]


def test_what_only_its_editor_knows_is_left_out_or_waits(at_home: AtHome) -> None:
    clients_with(
        at_home,
        cursor={
            "here": {"command": "x", "args": ["${workspaceFolder}/a"]},
            "asks": {"command": "x", "args": ["${input:token}"]},
            "us": {"command": "emceepee", "args": ["stdio"]},
            "none": {"note": "nothing"},
            "bad name!": GIT,
            "odd": "x",
        },
    )
    ran = at_home.run("import", "cursor", "--yes")
    assert set(written(at_home)) == {"asks", "bad-name"}
    assert "${workspaceFolder} is not supported" in ran.out
    assert "disabled until then: ${input:…} is asked for by VS Code only" in ran.out
    assert "it is emceepee itself" in ran.out


def test_a_file_that_is_broken_stops_no_other(at_home: AtHome) -> None:
    clients_with(at_home, cursor={"git": GIT})
    (at_home.home / ".claude.json").write_text("{")
    ran = at_home.run("import", "--all", "--yes")
    assert ran.status == 1
    assert "mend that first" in ran.err
    assert set(written(at_home)) == {"git"}


def test_our_own_file_is_not_touched_if_it_is_broken(at_home: AtHome) -> None:
    clients_with(at_home, cursor={"git": GIT})
    at_home.config.parent.mkdir(parents=True)
    at_home.config.write_text('{"limits": {"sesions": 5}}')
    before = snapshot(at_home.home)
    ran = at_home.run("import", "cursor", "--yes")
    assert ran.status == 1
    assert "emceepee check" in ran.err
    assert snapshot(at_home.home) == before


def test_numbers_in_variables_are_texts_as_elsewhere(at_home: AtHome) -> None:
    env = {"PORT": 8080, "DEBUG": True, "NAME": "x"}
    clients_with(at_home, cursor={"a": {"command": "a", "env": env}})
    at_home.run("import", "--all", "--yes")
    (server,) = load(at_home.config).config.servers
    assert server.env == {"PORT": "8080", "DEBUG": "true", "NAME": "x"}


def test_what_is_lost_is_said(at_home: AtHome) -> None:
    entry = {"url": "https://h", "oauth": {"clientId": "c"}, "timeout": 60}
    clients_with(at_home, cursor={"a": entry})
    ran = at_home.run("import", "--all", "--yes")
    assert "oauth: ignored, it means nothing here; put a token into headers" in ran.out
    assert "seconds" not in ran.out
    (server,) = load(at_home.config).config.servers
    assert server.call_timeout_ms == 60_000


def test_paths_start_where_they_started(at_home: AtHome) -> None:
    clients_with(at_home, cursor={"a": {"command": "./bin/a", "cwd": "work"}})
    at_home.run("import", "cursor", "--yes")
    (server,) = load(at_home.config).config.servers
    assert server.command == str(at_home.home / ".cursor/bin/a")
    assert server.cwd == str(at_home.home / ".cursor/work")
