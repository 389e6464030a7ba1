from __future__ import annotations

import pytest

from emceepee_trio.commands.status import _table

DAEMON = {
    "version": "1.0",
    "pid": 7,
    "started_at": "2026-01-01T00:00:00.000Z",
    "ready": True,
    "sessions": [],
}


@pytest.mark.parametrize(
    ("slow", "lines"),
    [
        ({}, []),  # of an older daemon
        ({"slow_steps": {"count": 0, "longest_ms": 0}}, []),
        (
            {"slow_steps": {"count": 3, "longest_ms": 120}},
            ["all had to wait 3 times, up to 120 ms"],
        ),
    ],
)
def test_it_tells_if_all_had_to_wait_for_one(slow: dict[str, object], lines: list[str]) -> None:
    _, *more, blank, rest = _table("http://here", DAEMON | slow).split("\n")
    assert (more, blank, rest) == (lines, "", "no sessions")


def test_without_a_session_it_tells_what_each_would_have() -> None:
    servers = [
        {"name": "a", "transport": "stdio", "target": "sh", "disabled": False},
        {"name": "b", "transport": "http", "target": "http://h", "disabled": True}
        | {"last_error": "environment variable B is not set (url)"},
    ]
    *_, none, blank, each, head, a, b = _table("http://h", DAEMON | {"servers": servers}).split(
        "\n"
    )
    assert (none, blank, each) == ("no sessions", "", "Each session that comes has:")
    assert head.split() == ["SERVER", "TRANSPORT", "TARGET", "NOTE"]
    assert a.split() == ["a", "stdio", "sh"]
    assert b.endswith("http://h  disabled: environment variable B is not set (url)")
