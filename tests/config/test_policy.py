"""What is said of entries of an allowlist that allow more than they seem to."""

from __future__ import annotations

import pytest

from emceepee_trio.config import AllowedProgram, Policy
from reading import read

ANYTHING = (
    ("*",),
    ("/usr/bin/*", "x"),
    ("sh",),
    ("bash", "-c", "*"),
    ("/bin/sh", "-c", "*"),
    ("node",),
    ("node", "*"),
    ("node22", "*.mjs"),
    ("python3.12", "-c", "*"),
    ("python", "-m", "*"),
    ("npx", "-y", "*"),
    ("npx", "*", "@scope/x"),
    ("npm", "exec", "mcp-*"),
    ("uvx", "mcp-*"),
    ("env", "*=*", "files"),
    ("docker", "run", "image", "*"),
)

LIMITED = (
    ("files", "*"),
    ("files", "**"),
    ("/opt/files",),
    ("node", "/opt/server.mjs", "*"),
    ("python3", "-m", "files", "--root", "*"),
    ("npx", "-y", "@scope/server-*"),
    ("docker", "run", "image"),
    ("bash", "-c", "exec files"),
)


@pytest.mark.parametrize("words", ANYTHING, ids=" ".join)
def test_an_entry_that_allows_anything_is_told(words: tuple[str, ...]) -> None:
    loaded = read({"policy": {"spawn": "allowlist", "spawn_allowlist": [list(words)]}})
    (warning,) = loaded.warnings
    assert warning.startswith("policy.spawn_allowlist[0]: ")


@pytest.mark.parametrize("words", LIMITED, ids=" ".join)
def test_an_entry_that_allows_what_it_says_is_not(words: tuple[str, ...]) -> None:
    policy = Policy("allowlist", (words,))
    assert list(policy.doubts()) == []
    assert list(Policy("deny", ANYTHING).doubts()) == []


@pytest.mark.parametrize("name", ["NODE_OPTIONS", "LD_PRELOAD", "PYTHONPATH", "BASH_ENV"])
def test_a_variable_that_loads_code_is_told(name: str) -> None:
    policy = Policy("allowlist", (AllowedProgram(("files",), ("TOKEN", name)),))
    (doubt,) = policy.doubts()
    assert name in doubt.message


def test_programs_and_folders_are_spelled_as_those_of_servers() -> None:
    entry = {"command": ["~/bin/x", "~"], "env": ["A"], "cwd": "work"}
    given = [entry, ["./y", "./z"], ["z", "./*"]]
    loaded = read({"policy": {"spawn": "allowlist", "spawn_allowlist": given}})
    assert loaded.config.policy.spawn_allowlist == (
        AllowedProgram(("/home/ada/bin/x", "~"), ("A",), "/etc/emceepee/work"),
        ("/etc/emceepee/y", "./z"),
        ("z", "./*"),
    )
