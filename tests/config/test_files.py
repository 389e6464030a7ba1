from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from emceepee_trio.config import (
    Config,
    ConfigError,
    Reconnect,
    Server,
    bounds,
    load,
    server_from_arguments,
)
from reading import ENVIRON, only, read, said, servers


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "line 1, column 1: expecting value"),
        (b'{\n  "servers": [}\n}', "line 2, column 15: expecting value"),
        (b'{"servers": [NaN]}', "NaN is not JSON"),
        (b"[" * 100_000, "nested deeper than 200 levels"),
        ('{"a": "ä"}'.encode("latin-1"), "not UTF-8, see byte 7"),
        ("{}".encode("utf-16"), "not UTF-8, see its first byte"),
    ],
)
def test_a_file_that_is_not_json_is_told_with_its_place(
    tmp_path: Path, content: bytes, words: str
) -> None:
    path = tmp_path / "config.json"
    path.write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        load(path, ENVIRON)
    assert str(caught.value) == f"{path}: {words}"


def test_a_byte_order_mark_is_no_mistake(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_bytes(b'\xef\xbb\xbf{"context": "off"}')
    assert load(path, ENVIRON).config == Config(context="off")


def test_a_file_that_is_missing_is_told(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    with pytest.raises(ConfigError) as caught:
        load(path, ENVIRON)
    assert str(caught.value) == f"cannot read {path}: No such file or directory"


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, ENVIRON)
    assert str(caught.value) == f"cannot read {tmp_path}: Is a directory"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_told(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.touch(mode=0)
    with pytest.raises(ConfigError) as caught:
        load(path, ENVIRON)
    assert str(caught.value) == f"cannot read {path}: Permission denied"


def test_a_file_without_end_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    with path.open("wb") as file:
        file.truncate(bounds.MAX_CONFIG_BYTES + 1)
    with pytest.raises(ConfigError, match=f"longer than {bounds.MAX_CONFIG_BYTES} bytes"):
        load(path, ENVIRON)


def test_relative_paths_start_at_the_files_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/config.json").write_text('{"mcpServers": {"a": {"command": "./run"}}}')
    monkeypatch.chdir(tmp_path)
    (server,) = load(Path("sub/config.json"), {}).config.servers
    assert server.command == str(tmp_path / "sub/run")


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
