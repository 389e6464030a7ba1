"""``emceepee check``: is this configuration right?"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from emceepee_client import write_config
from emceepee_lines import run
from emceepee_trio.config import file_schema
from emceepee_trio.front.faces.views import FACES
from fake_backends import Journal, raw

NO_RESTART = {"restart": {"enabled": False}}


def test_a_good_configuration_is_summed_up(tmp_path: Path) -> None:
    servers: dict[str, Any] = {
        "files": {"command": "sh", "args": ["--token", "s3cr3t", "/srv"]},
        "web": {"url": "https://user:pass@example.com/mcp?key=s3cr3t", "disabled": True},
    }
    config = write_config(tmp_path, servers)
    told = run("check", config)
    assert (told.returncode, told.stderr) == (0, "")
    first, files, web = told.stdout.splitlines()
    assert first == f"{config}: 2 servers"
    assert files.startswith("  files: stdio sh --token ")
    assert web.startswith("  web: http https://")
    assert web.endswith(" (disabled)")
    assert "s3cr3t" not in told.stdout
    assert "pass" not in told.stdout


def test_it_names_what_could_be_shared(tmp_path: Path) -> None:
    fetch: dict[str, Any] = {"command": "uvx", "args": ["mcp-server-fetch"]}
    servers = {"web": fetch, "off": fetch | {"disabled": True}, "git": {"command": "mcp-git"}}
    servers["all"] = fetch | {"scope": "principal"}
    told = run("check", write_config(tmp_path, servers))
    *_, shared, could_be = told.stdout.splitlines()
    assert shared == "  all: stdio uvx mcp-server-fetch (shared)"
    assert could_be.startswith("web: known to keep nothing between two calls;")


def test_one_server_is_not_called_servers(tmp_path: Path) -> None:
    config = write_config(tmp_path, {"one": {"command": "x"}})
    assert run("check", config).stdout.splitlines()[0] == f"{config}: 1 server"


def test_warnings_are_told_and_harm_nothing(tmp_path: Path) -> None:
    config = write_config(tmp_path, {"one": {"command": "sh", "autoApprove": ["y"]}})
    told = run("check", config)
    assert told.returncode == 0
    (warning,) = told.stderr.splitlines()
    assert warning.startswith("warning: ")
    assert "autoApprove" in warning


def test_a_view_that_there_is_not_is_a_mistake(tmp_path: Path) -> None:
    tokens = {"ann": {"token": "s3cret", "view": "cor"}, "bob": {"token": "0ther", "view": "core"}}
    told = run("check", write_config(tmp_path, {}, http={"tokens": tokens}))
    assert told.returncode == 1
    (problem,) = told.stderr.splitlines()
    assert problem.endswith(f"http.tokens.ann.view: no view 'cor'; there are {', '.join(FACES)}")
    assert "s3cret" not in told.stderr


def test_a_variable_as_shells_have_it_is_warned_of(tmp_path: Path) -> None:
    servers: dict[str, Any] = {
        "web": {
            "url": "https://h/$PLACE",
            "headers": {"Authorization": "Bearer $TOKEN", "X-Price": "5$ or a$b, $$x, \\$y"},
        },
        "program": {
            "command": "sh",
            "args": ["$HERE", "--key=$KEY", "-c", "echo $HOME"],
            "env": {"A": "$B", "C": "${HOME}"},
        },
    }
    told = run("check", write_config(tmp_path, servers))
    assert told.returncode == 0
    assert told.stderr.splitlines() == [
        f"warning: mcpServers.{where}: ${name} is taken as it is written; "
        f"the variable would be ${{{name}}}"
        for where, name in (
            ("web.headers.Authorization", "TOKEN"),
            ("web.url", "PLACE"),
            ("program.env.A", "B"),
            ("program.args[0]", "HERE"),
            ("program.args[1]", "KEY"),
        )
    ]


def test_an_argument_that_is_a_token_is_not_shown(tmp_path: Path) -> None:
    token = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"
    told = run("check", write_config(tmp_path, {"hub": {"command": "sh", "args": [token]}}))
    assert told.returncode == 0
    assert token not in told.stdout + told.stderr
    assert "ghp_***" in told.stdout


def test_what_a_variable_stands_for_is_not_shown_wherever_it_stands(tmp_path: Path) -> None:
    """Many services have a secret in the path of their URL."""
    servers: dict[str, Any] = {
        "web": {"url": "http://127.0.0.1:1/s/${PART}/mcp"},
        "files": {"command": "sh", "args": ["--exit", "${PART}/x"], **NO_RESTART, "disabled": True},
    }
    config = write_config(tmp_path, servers)
    told = run("check", config, "--connect", PART="hush")
    assert told.returncode == 1
    assert "hush" not in told.stdout + told.stderr
    assert "  files: stdio sh --exit ${PART}/x (disabled)" in told.stdout
    assert "cannot reach http://127.0.0.1:1/s/${PART}/mcp" in told.stdout


def test_a_command_that_is_not_there_is_warned_of(tmp_path: Path) -> None:
    """Where a server would look for it: on the PATH of its entry, if that has one."""
    servers: dict[str, Any] = {
        "gone": {"command": "no-such-program"},
        "lost": {"command": "sh", "env": {"PATH": "/no/such/folder"}},
        "away": {"command": "./no-such-file"},
        "off": {"command": "no-such-program", "disabled": True},
        "here": {"command": "sh"},
    }
    told = run("check", write_config(tmp_path, servers), PATH=str(tmp_path) + ":/bin:/usr/bin")
    assert (told.returncode, len(told.stdout.splitlines())) == (0, 6)
    gone, lost, away = told.stderr.splitlines()
    assert gone.startswith("warning: server 'gone': command 'no-such-program' not found")
    assert f"searched PATH {tmp_path}:/bin:/usr/bin" in gone
    assert "searched PATH /no/such/folder" in lost
    assert str(tmp_path / "no-such-file") in away
    assert "PATH" not in away


def test_the_default_is_checked_if_it_is_there(tmp_path: Path) -> None:
    home = {"XDG_CONFIG_HOME": str(tmp_path)}
    path = tmp_path / "emceepee" / "config.json"
    told = run("check", **home)
    assert told.returncode == 0
    assert str(path) in told.stdout
    path.parent.mkdir()
    path.write_text('{"servers": [{"name": "x"}]}')
    told = run("check", **home)
    assert (told.returncode, told.stdout) == (1, "")
    assert told.stderr.startswith(f"{path}: servers[0]: needs a url or a command")


def test_variables_come_from_the_environment(tmp_path: Path) -> None:
    config = write_config(
        tmp_path, {"one": {"command": "${env:PROGRAM}"}, "two": {"command": "sh"}}
    )
    told = run("check", config)
    assert told.returncode == 0
    lacks = "environment variable PROGRAM is not set"
    assert told.stderr.splitlines() == [
        f"warning: mcpServers.one.command: {lacks}; so it is disabled"
    ]
    one, two = told.stdout.splitlines()[1:]
    assert one.endswith(f" (disabled: {lacks} (command))")
    assert two == "  two: stdio sh"
    told = run("check", config, PROGRAM="found")
    assert told.returncode == 0
    assert told.stdout.splitlines()[1:] == ["  one: stdio ${env:PROGRAM}", "  two: stdio sh"]


def test_every_dialect_is_taken(tmp_path: Path) -> None:
    entry = {"command": "x"}
    for n, shape in enumerate(
        (
            {"servers": [{"name": "a", **entry}]},
            {"mcpServers": {"a": entry}},
            {"mcpClients": {"a": {"type": "stdio", **entry}}},
            {"servers": {"a": entry}},
            {"mcp": {"a": {"type": "local", "command": ["x"]}}},
            {"mcp": {"servers": {"a": entry}}},
            {"context_servers": {"a": {"source": "custom", **entry}}},
            {"amp.mcpServers": {"a": entry}},
        )
    ):
        config = tmp_path / f"{n}.json"
        config.write_text(json.dumps(shape))
        assert run("check", config).stdout.splitlines()[1] == "  a: stdio x"
    config = tmp_path / "config.toml"
    config.write_text('[mcp_servers.a]\ncommand = "x"\n')
    assert run("check", config).stdout.splitlines()[1] == "  a: stdio x"


def test_our_own_entry_harms_nothing(tmp_path: Path) -> None:
    """As a client's file has it after ``claude mcp add emceepee -- emceepee stdio``."""
    servers: dict[str, Any] = {
        "emceepee": {"type": "stdio", "command": "emceepee", "args": ["stdio"], "env": {}},
        "git": {"command": "sh"},
    }
    config = write_config(tmp_path, servers)
    told = run("check", config)
    assert told.returncode == 0
    assert told.stderr == "warning: mcpServers.emceepee: skipped, it is emceepee itself\n"
    assert told.stdout.splitlines() == [f"{config}: 1 server", "  git: stdio sh"]


def test_servers_are_started_if_that_is_asked_for(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.jsonl")
    servers: dict[str, Any] = {
        "raw": raw(*journal.flags),
        "dying": raw("--exit-at-once", 3) | NO_RESTART,
        "off": raw() | {"disabled": True},
        "lacking": {"command": "sh", "env": {"KEY": "${NOT_SET_ANYWHERE}"}},
    }
    config = write_config(tmp_path, servers)
    told = run("check", config, "--connect")
    assert told.returncode == 1
    found = told.stdout.splitlines()
    assert found[5] == "started:"
    dying, good = sorted(found[6:])
    assert re.fullmatch(r"  raw: \d+ tools, after [\d.]+ s, [\d.]+ MB for each session", good)
    assert dying.startswith("  dying: does not work: process exited (code 3)")
    assert journal.entries()[-1] == {"eof": True}
    told = run("check", write_config(tmp_path, {"raw": raw()}), "--connect")
    assert told.returncode == 0
    assert run("check", "--connect", XDG_CONFIG_HOME=str(tmp_path)).returncode == 0


def test_a_schema_is_printed() -> None:
    told = run("check", "--schema")
    assert (told.returncode, told.stderr) == (0, "")
    assert json.loads(told.stdout) == file_schema()
