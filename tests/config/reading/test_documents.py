from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from emceepee_trio.config import (
    ConfigError,
    Reconnect,
    Server,
    load,
    server_from_arguments,
)
from reading import ENVIRON, only, read, said, servers


def test_every_problem_is_told_at_once() -> None:
    assert said(
        {
            "servers": [
                {"name": "a", "url": "http://h", "headers": {"A": "${NOPE}"}},
                {"name": "a", "command": "x"},
                {"name": "b", "command": "x", "restart": {"max_attempts": "x", "jitter": 2}},
                5,
            ],
            "limits": {"tasks": "x"},
            "colour": 1,
        }
    ) == [
        "servers[0].headers.A: environment variable NOPE is not set",
        'servers[1].name: duplicate name "a", also at servers[0]',
        'servers[2].restart.max_attempts: expected an integer, got "x"',
        "servers[2].restart.jitter: out of range, expected 0 to 1, got 2.0",
        "servers[3]: expected an object, got an integer",
        'unknown key "colour"',
        'limits.tasks: expected an integer, got "x"',
    ]


def test_a_name_is_taken_across_shapes() -> None:
    assert said(
        {"servers": [{"name": "a", "command": "x"}], "mcpServers": {"a": {"command": "x"}}}
    ) == ['mcpServers.a: duplicate name "a", also at servers[0]']


def test_keys_that_stand_twice_are_told(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(
        """{
          "limits": {"tasks": 1, "tasks": 2},
          "mcpServers": {
            "a": {"command": "x"},
            "a": {"command": "y", "env": {"A": "1", "A": "2"}, "cwd": "/", "cwd": "/"}
          },
          "context": "off", "context": "full"
        }"""
    )
    with pytest.raises(ConfigError) as caught:
        load(path, ENVIRON)
    assert list(map(str, caught.value.problems)) == [
        "context: given twice",
        "limits.tasks: given twice",
        "mcpServers.a: given twice",
        "mcpServers.a.cwd: given twice",
        "mcpServers.a.env.A: given twice",
    ]


def test_what_nests_without_end_is_a_problem() -> None:
    data: Any = []
    for _ in range(100_000):
        data = [data]
    assert said({"limits": data}) == ["nested too deeply"]


def test_the_shapes_may_stand_together_in_their_order() -> None:
    data = {
        "mcpClients": {"a": {"type": "stdio", "command": "x"}},
        "servers": {"b": {"command": "x"}},
        "mcpServers": {"c": {"command": "x"}},
        "context": "off",
    }
    assert [server.name for server in servers(data)] == ["a", "b", "c"]


def test_variables_are_filled_in_everywhere() -> None:
    data = {
        "servers": [{"name": "${NAME}", "url": "http://${NONE:-h}/", "headers": {"A": "${NAME}"}}],
        "context": "${NONE:-off}",
    }
    config = read(data).config
    assert config.servers == (Server("named", url="http://h/", headers={"A": "named"}),)
    assert config.context == "off"


def test_a_name_that_is_a_key_is_not_expanded() -> None:
    (line,) = said({"mcpServers": {"${NAME}": {"command": "x"}}})
    assert line.startswith('mcpServers["${NAME}"]: a name is 1 to 64')


@pytest.mark.parametrize(
    ("written", "resolved"),
    [
        ("npx", "npx"),
        ("/bin/x", "/bin/x"),
        ("./x", "/etc/emceepee/x"),
        ("bin/x", "/etc/emceepee/bin/x"),
        ("~/x", "/home/ada/x"),
    ],
)
def test_a_command_is_looked_up_from_the_folder(written: str, resolved: str) -> None:
    assert only({"command": written}).command == resolved


@pytest.mark.parametrize(
    ("written", "resolved"),
    [("x", "/etc/emceepee/x"), ("/x", "/x"), ("~", "/home/ada"), ("~/x", "/home/ada/x")],
)
def test_a_working_directory_is_looked_up_from_the_folder(written: str, resolved: str) -> None:
    assert only({"command": "x", "cwd": written}).cwd == resolved


def test_a_server_is_made_of_arguments() -> None:
    assert server_from_arguments(
        {
            "name": "s",
            "url": "https://h/mcp",
            "headers": {"A": "${NAME}"},
            "command": None,
            "reconnect": {"maxAttempts": 2},
            "allowed_tools": ["a"],
        }
    ) == Server(
        "s",
        url="https://h/mcp",
        headers={"A": "${NAME}"},
        reconnect=Reconnect(max_attempts=2),
        allowed_tools=("a",),
    )


@pytest.mark.parametrize(
    ("arguments", "lines"),
    [
        ({"name": "s"}, ["needs a url or a command"]),
        ({"url": "http://h"}, ["name: missing"]),
        ({"name": "emceepee", "command": "x"}, ['name: "emceepee" is our own name, take another']),
        (
            {"name": "s", "command": "./x", "cwd": "y"},
            [
                'cwd: expected an absolute path, got "y"',
                "command: expected an absolute path, or a name on the PATH",
            ],
        ),
        (
            {"name": "s", "url": "http://h", "env": {"A": "b"}, "args": ["x"]},
            [
                "args: means nothing to a server with a url",
                "env: means nothing to a server with a url",
            ],
        ),
        ({"name": "s", "url": "http://h", "autoApprove": []}, ['unknown key "autoApprove"']),
    ],
)
def test_arguments_that_make_no_server_are_told(
    arguments: dict[str, object], lines: list[str]
) -> None:
    with pytest.raises(ConfigError) as caught:
        server_from_arguments(arguments)
    assert str(caught.value).split("\n") == lines


def test_the_same_entry_is_the_same_server() -> None:
    arguments = {"name": "s", "command": "x", "env": {"A": "1", "B": "2"}}
    other = {"env": {"B": "2", "A": "1"}, "command": "x", "name": "s", "cwd": None}
    assert server_from_arguments(arguments) == server_from_arguments(other)
    assert server_from_arguments(arguments) != server_from_arguments({**other, "args": ["x"]})
