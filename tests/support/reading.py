"""Reading configurations in tests: from data, and what is said of what is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from emceepee_trio.config import (
    ConfigError,
    Loaded,
    Server,
    parse,
)

FILES = Path(__file__).parents[1] / "configs"
FOLDER = Path("/etc/emceepee")
ENVIRON = {"HOME": "/home/ada", "API_KEY": "s3cret", "NUMBER": "5", "NAME": "named"}


def read(data: object) -> Loaded:
    return parse(data, folder=FOLDER, environ=ENVIRON)


def servers(data: object) -> tuple[Server, ...]:
    return read(data).config.servers


def only(entry: Mapping[str, object]) -> Server:
    (server,) = servers({"servers": [{"name": "s", **entry}]})
    return server


def said(data: object) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        read(data)
    assert str(caught.value) == "\n".join(map(str, caught.value.problems))
    return str(caught.value).split("\n")
