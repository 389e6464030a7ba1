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
        ({"slow_steps": {"count": 1, "longest_ms": 24}}, ["all had to wait once, up to 24 ms"]),
    ],
)
def test_it_tells_if_all_had_to_wait_for_one(slow: dict[str, object], lines: list[str]) -> None:
    _, *more, blank, rest = _table("http://here", DAEMON | slow).split("\n")
    assert (more, blank, rest) == (lines, "", "no sessions")


def test_it_tells_what_programs_take_and_what_sharing_would_save() -> None:
    git: dict[str, object] = {
        "server": "git",
        "principal": "local",
        "scope": "session",
        "sessions": ["a", "b"],
        "programs": 2,
        "processes": 4,
        "resident_bytes": 90_000_000,
    }
    one = git | {"server": "all", "scope": "principal", "programs": 1, "resident_bytes": 300_000}
    git |= {"sharing_would_save_bytes": 45_000_000, "keeps_nothing": False}
    known = git | {"server": "time", "keeps_nothing": True}
    session: dict[str, object] = {"session": "a", "principal": "local", "client": "c"}
    session |= {"servers": [], "tasks": [], "questions": []}
    said = {"sessions": [session], "programs": [git, known, one]}
    *_, head, first, second, third = _table("http://here", DAEMON | said).split("\n")
    assert head.split() == [
        *("SERVER", "PRINCIPAL", "SCOPE", "PROGRAMS", "PROCESSES", "SESSIONS", "MEMORY", "NOTE"),
    ]
    assert first.split()[:8] == ["git", "local", "session", "2", "4", "2", "90", "MB"]
    would = '"scope": "principal" would save 45 MB'
    assert first.endswith(f"{would}, if it keeps nothing of a call")
    assert second.endswith(would)
    assert third.split() == ["all", "local", "principal", "1", "4", "2", "0.3", "MB"]


def test_tasks_that_work_are_told_from_those_that_are_over() -> None:
    def task(status: str) -> dict[str, str]:
        ids = {"task_id": "t", "server": "s", "tool": "t", "created_at": "now"}
        return ids | {"status": status}

    session: dict[str, object] = {"session": "a", "principal": "local", "client": "c"}
    session |= {"servers": [], "tasks": [], "questions": []}
    busy = session | {"tasks": [task("working")]}
    both = session | {"tasks": [task("working"), task("completed"), task("failed")]}
    said = {"sessions": [session, busy, both]}
    lines = _table("http://here", DAEMON | said).split("\n")
    counts = [line.split()[4:-1] for line in lines[3:6]]
    assert counts == [["0"], ["1"], ["1", "(2", "over)"]]


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
