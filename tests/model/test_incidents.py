"""What is told as one: a server that was lost and is back."""

from __future__ import annotations

import json
from typing import Any

from emceepee_trio.model import events
from emceepee_trio.model.events import Happening
from emceepee_trio.model.incidents import event_texts
from emceepee_trio.model.wire import new_event

CRASHED = events.ProcessCrashed("x", 7, None, "SIGKILL")
LOST = events.ServerDisconnected("x", "process was killed by SIGKILL", False)
AGAIN = events.Restarting("x", 1, 1000, 7, None, "SIGKILL")
STARTED = events.ProcessStarted("x", 8)
RESTARTED = events.Restarted("x", 8, 1)
BACK = events.ServerReconnected("x", {}, "v", "restart", 1, True, False, False, 0, 0, 0)
CONNECTED = events.ServerConnected("x", {}, "v")
FAILED = events.TaskFailed("t", "dig", "lost")
CRASH = (CRASHED, LOST, AGAIN, STARTED, RESTARTED, BACK)


def told(*happenings: Happening, repeated: frozenset[str] = frozenset()) -> list[dict[str, Any]]:
    """Their ids are their numbers."""
    made = [new_event(str(n), "x", f"at {n}", each) for n, each in enumerate(happenings)]
    return [json.loads(text) for _, text in event_texts(made, repeated)]


def kinds(*happenings: Happening) -> list[str]:
    return [event["type"] for event in told(*happenings)]


def test_a_crash_with_its_return_is_one_event() -> None:
    (event,) = told(*CRASH)
    assert (event["id"], event["type"]) == ("5", "server_reconnected")
    assert event["data"]["attempts"] == 1
    assert event["data"]["incident"] == {
        "firstEventId": "0",
        "since": "at 0",
        "reason": "process was killed by SIGKILL",
        "events": dict.fromkeys(
            ("process_crashed", "server_disconnected", "restarting", "process_started"), 1
        )
        | {"restarted": 1},
    }


def test_what_it_has_cost_stands_beside_it() -> None:
    assert kinds(CRASHED, FAILED, LOST, FAILED, AGAIN, STARTED, RESTARTED, BACK, FAILED) == [
        *("task_failed", "task_failed", "server_reconnected", "task_failed")
    ]


def test_tries_are_counted() -> None:
    tried = events.ServerReconnecting("x", 1, 1000)
    (event,) = told(LOST, *[tried] * 5, BACK)
    assert event["data"]["incident"]["events"] == {
        "server_disconnected": 1,
        "server_reconnecting": 5,
    }
    (event,) = told(CRASHED, AGAIN, STARTED, RESTARTED, CONNECTED)  # its first connection
    assert event["type"] == "server_connected"
    assert "reason" not in event["data"]["incident"]


def test_one_that_is_not_back_is_told_as_it_goes() -> None:
    assert kinds(*CRASH[:3]) == ["process_crashed", "server_disconnected", "restarting"]
    assert kinds(*CRASH[2:]) == ["restarting", *kinds(*CRASH[3:])]
    assert kinds(*CRASH[3:]) == ["process_started", "restarted", "server_reconnected"]
    again = kinds(*CRASH, *CRASH, *CRASH[:2])
    assert again == ["server_reconnected"] * 2 + ["process_crashed", "server_disconnected"]


def test_the_next_one_is_another() -> None:
    first, second = told(*CRASH, *CRASH)
    assert first["data"]["incident"]["events"] == second["data"]["incident"]["events"]
    assert second["data"]["incident"]["firstEventId"] == "6"


def test_another_server_of_that_name_has_not_come_back() -> None:
    gone = events.ProcessStopped("x", 7, 0)
    removed, added = events.ServerRemoved("x", "t", "me"), events.ServerAdded("x", "t", "me")
    whole = (gone, LOST, removed, added, STARTED, CONNECTED)
    assert [event["data"].get("incident") for event in told(*whole)] == [None] * len(whole)
    ill = events.ServerHealthDegraded("x", 1, "silent")
    well = events.ServerHealthRestored("x", 1, "silent")
    assert kinds(ill, well, LOST, BACK) == [
        *("server_health_degraded", "server_health_restored", "server_reconnected")
    ]


def test_what_is_repeated_is_told_one_by_one() -> None:
    assert len(told(*CRASH, repeated=frozenset(map(str, range(6))))) == 6
    # Also where only some of it is.
    said = told(*CRASH, repeated=frozenset("0"))
    assert [event["id"] for event in said] == ["0", "5"]
    assert said[1]["data"]["incident"]["firstEventId"] == "1"
