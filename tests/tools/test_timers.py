"""Timers."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from emceepee_client import Open
from like import TIMESTAMP, ULID, Between, Like


def moment(timer: dict[str, Any], key: str) -> float:
    return datetime.fromisoformat(timer[key]).timestamp() * 1000


async def test_a_timer_fires_once(connect_as_either: Open) -> None:
    async with connect_as_either() as emceepee:
        said = await emceepee.says("set_timer", duration_ms=100, message="tea 🍵")
        assert list(said) == ["timer"]
        timer = said["timer"]
        assert timer == {
            "timer_id": ULID,
            "message": "tea 🍵",
            "duration_ms": 100,
            "interval": False,
            "status": "active",
            "created_at": TIMESTAMP,
            "fires_at": TIMESTAMP,
            "fire_count": 0,
        }
        assert moment(timer, "fires_at") - moment(timer, "created_at") == Between(99, 101)
        waited = await emceepee.says("await_activity")
        assert waited["triggers"] == [
            {"type": "event", "server": "emceepee", "eventType": "timer_expired"}
        ]
        assert waited["events"] == [
            {
                "server": "emceepee",
                "events": [
                    {
                        "id": ULID,
                        "type": "timer_expired",
                        "server": "emceepee",
                        "createdAt": TIMESTAMP,
                        "data": {
                            "timerId": timer["timer_id"],
                            "message": "tea 🍵",
                            "fireCount": 1,
                        },
                    }
                ],
            }
        ]
        fired = timer | {"status": "fired", "fire_count": 1}
        assert await emceepee.says("get_timer", timer_id=timer["timer_id"]) == {"timer": fired}
        assert await emceepee.says("list_timers") == {"timers": []}
        assert await emceepee.says("list_timers", include_inactive=True) == {"timers": [fired]}


async def test_an_interval_fires_until_it_is_deleted(connect: Open) -> None:
    async with connect() as emceepee:
        said = await emceepee.says("set_timer", duration_ms=1000, message="m", interval=True)
        timer_id = said["timer"]["timer_id"]
        for count in (1, 2):
            await emceepee.event("timer_expired", fireCount=count)
        timer = (await emceepee.says("get_timer", timer_id=timer_id))["timer"]
        assert timer["status"] == "active"
        assert timer["fire_count"] == Between(2)
        assert await emceepee.says("delete_timer", timer_id=timer_id) == {"deleted": timer_id}
        assert await emceepee.says("list_timers") == {"timers": []}
        (timer,) = (await emceepee.says("list_timers", include_inactive=True))["timers"]
        assert timer["status"] == "deleted"


async def test_a_deleted_timer_never_fires(connect: Open) -> None:
    async with connect() as emceepee:
        first = await emceepee.says("set_timer", duration_ms=700, message="never")
        await emceepee.says("delete_timer", timer_id=first["timer"]["timer_id"])
        await emceepee.says("set_timer", duration_ms=900, message="after")
        fired = await emceepee.event("timer_expired")
        assert fired["data"]["message"] == "after"


async def test_timers_are_kept_in_bounds(connect: Open) -> None:
    good: dict[str, Any] = {"duration_ms": 100, "message": "m"}
    bad: list[tuple[dict[str, Any], str]] = [
        ({"duration_ms": 99}, "duration_ms: out of range, expected 100 to 86400000, got 99"),
        ({"duration_ms": 86_400_001}, "duration_ms: out of range, expected 100 to 86400000, .*"),
        ({"interval": True}, "duration_ms: out of range, expected 1000 to 86400000 with .*"),
        ({"message": "m" * 501}, "message: too long: 501 characters, at most 500"),
        ({"message": None}, "message: expected a string, got null"),
        ({"duration_ms": "100ms"}, 'duration_ms: expected an integer, got "100ms"'),
    ]
    async with connect() as emceepee:
        for wrong, problem in bad:
            error = await emceepee.fails("set_timer", **good | wrong)
            assert error["code"] == "TOOL_ERR_INVALID_ARGUMENTS"
            assert error["details"] == {"problems": [Like(problem)]}
        for fine in (
            {"duration_ms": 86_400_000},
            {"message": "m" * 500, "duration_ms": 86_400_000},
        ):
            assert (await emceepee.says("set_timer", **good | fine))["timer"]["status"] == "active"


async def test_there_is_a_limit_of_timers(connect: Open) -> None:
    async with connect() as emceepee:
        timers = []
        for n in range(100):
            said = await emceepee.says("set_timer", duration_ms=3_600_000, message=str(n))
            timers.append(said["timer"]["timer_id"])
        assert await emceepee.fails("set_timer", duration_ms=3_600_000, message="m") == {
            "code": "TOOL_ERR_LIMIT",
            "message": Like("100 timers are active in this session; .*"),
        }
        await emceepee.says("delete_timer", timer_id=timers[50])
        await emceepee.says("set_timer", duration_ms=3_600_000, message="m")
        listed = await emceepee.all_of("list_timers", "timers")
        assert [timer["message"] for timer in listed] == [
            *(str(n) for n in range(100) if n != 50),
            "m",
        ]


@pytest.mark.parametrize("tool", ["get_timer", "delete_timer"])
async def test_a_timer_that_is_not_there_is_an_error(connect: Open, tool: str) -> None:
    async with connect() as emceepee:
        assert await emceepee.fails(tool, timer_id="none") == {
            "code": "TOOL_ERR_NOT_FOUND",
            "message": "no timer 'none'; list_timers shows what there is",
        }
        error = await emceepee.fails(tool)
        assert error["details"] == {"problems": ["timer_id: missing"]}
