"""What holds for servers that say nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from emceepee_trio.config import Config, Defaults, Server, with_defaults
from reading import read, said

PROGRAM, URL = {"command": "x"}, {"url": "http://h"}


def of(entry: dict[str, Any], **defaults: Any) -> Server:
    (server,) = read({"servers": [{"name": "s", **entry}], "defaults": defaults}).config.servers
    return server


@pytest.mark.parametrize(
    ("entry", "defaults", "start"),
    [
        ({}, {}, "auto"),
        ({}, {"start": "eager"}, "eager"),
        ({"start": "auto"}, {"start": "eager"}, "auto"),
        ({"start": "lazy"}, {"start": "eager"}, "lazy"),
        ({"start": None}, {"start": "eager"}, "eager"),
    ],
)
def test_when_it_starts(entry: dict[str, Any], defaults: dict[str, Any], start: str) -> None:
    assert of(PROGRAM | entry, **defaults).start == start
    assert of(URL | entry, **defaults).start == start


@pytest.mark.parametrize(
    ("entry", "defaults", "idle_stop_ms"),
    [
        ({}, {}, None),
        ({}, {"idle_stop_ms": 7000}, 7000),
        ({}, {"idleStopMs": 7000}, 7000),
        ({"idle_stop_ms": 9000}, {"idle_stop_ms": 7000}, 9000),
        ({"idle_stop_ms": None}, {"idle_stop_ms": 7000}, 7000),
        ({"idle_stop_ms": 0}, {"idle_stop_ms": 7000}, 0),
    ],
)
def test_when_it_is_stopped(
    entry: dict[str, Any], defaults: dict[str, Any], idle_stop_ms: int | None
) -> None:
    assert of(PROGRAM | entry, **defaults).idle_stop_ms == idle_stop_ms


def test_what_has_no_program_is_not_stopped() -> None:
    assert of(URL, idle_stop_ms=7000).idle_stop_ms is None
    (problem,) = said({"servers": [{"name": "s", **URL, "idle_stop_ms": 7000}]})
    assert problem == "servers[0].idle_stop_ms: means nothing to a server with a url"


def test_what_is_said_of_one_that_a_client_adds() -> None:
    defaults = Defaults(start="eager", idle_stop_ms=7000)
    server = with_defaults(Server("s", command="x"), defaults)
    assert (server.start, server.idle_stop_ms) == ("eager", 7000)


def test_mistakes_are_said_once() -> None:
    entries = [{"name": "a", **PROGRAM}, {"name": "b", **PROGRAM}]
    wrong = {"start": "now", "idle_stop_ms": "soon"}
    assert said({"servers": entries, "defaults": wrong}) == [
        'defaults.start: expected one of "auto", "eager", "lazy", got "now"',
        'defaults.idle_stop_ms: expected an integer, got "soon"',
    ]
    assert Config().defaults == Defaults()
