"""The JSON Schema of configuration files: it takes what we take, and names the same mistakes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from emceepee_trio.config import file_schema
from emceepee_trio.model.json import jsonc
from reading import FILES, read, said

SCHEMA = file_schema()
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


def test_it_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("path", sorted(FILES.glob("*.json")), ids=lambda path: path.name)
def test_every_file_that_we_know_passes(path: Path) -> None:
    data = json.loads(json.dumps(jsonc.loads(path.read_text("utf-8"))))
    assert [error.message for error in VALIDATOR.iter_errors(data)] == []


GOOD: list[Any] = [
    {},
    {"$schema": "https://example.com/s.json", "context": "${MODE:-full}"},
    {"servers": [{"name": "a", "command": "x", "restart": {"max_attempts": None}}]},
    {"servers": {"a": {"url": "${URL}", "type": "streamable-http", "timeout": 0.5}}},
    {"mcpServers": {"a": {"command": "x", "env": None, "autoApprove": [], "enabled": True}}},
    {"mcpServers": {}, "numStartups": 5},
    {"limits": {"executeTimeoutMs": 5}, "shutdownGraceMs": 0},
    {"http": {"allowed_hosts": ["${HOST_NAME:-h}"], "tokens": {"ada": "${TOKEN:-t}"}}},
    {"policy": {"spawn_allowlist": [["uvx", "a"], {"command": ["x"], "env": ["A"]}]}},
]


@pytest.mark.parametrize("data", GOOD, ids=json.dumps)
def test_what_we_take_passes(data: Any) -> None:
    read(data)
    assert [error.message for error in VALIDATOR.iter_errors(data)] == []


BAD: list[Any] = [
    [],
    {"colour": 1},
    {"limits": {"tasks": 0}},
    {"limits": {"task": 1}},
    {"context": "of"},
    {"servers": [{"command": "x"}]},
    {"mcpServers": {"a": {"comand": "x"}}},
    {"mcpServers": {"a": {"command": 5}}},
    {"servers": {"a": {"command": "x", "connect_timeout_ms": 1}}},
    {"servers": {"a": {"command": "x", "start": "now"}}},
    {"http": {"allowed_hosts": ["http://h"]}},
]


@pytest.mark.parametrize("data", BAD, ids=json.dumps)
def test_what_is_a_mistake_does_not(data: Any) -> None:
    assert said(data)
    assert not VALIDATOR.is_valid(data)
