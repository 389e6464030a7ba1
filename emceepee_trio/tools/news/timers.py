"""Timers that a client sets for itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from ...config.bounds import MAX_TIMER_MESSAGE, MAX_TIMER_MS, MIN_INTERVAL_MS, MIN_TIMER_MS
from ...config.server import A_NAME
from ...model.json.fields import Bounds, Doc, MaxLength, frozen
from ...model.json.problems import Problem
from ...session.timers import Timer
from ..common.listing import Group, by_age
from ..common.registry import ACTS, ENDS, READS, Request, tool
from ..common.response import Reply, json_reply


@frozen
class SetTimer:
    duration_ms: Annotated[int, Bounds(MIN_TIMER_MS, MAX_TIMER_MS)]
    message: Annotated[str, MaxLength(MAX_TIMER_MESSAGE)]
    interval: Annotated[bool, Doc("repeats; then at least 1000")] = False

    def problems(self) -> Iterator[Problem]:
        if self.interval and self.duration_ms < MIN_INTERVAL_MS:
            yield Problem(
                "duration_ms",
                f"out of range, expected {MIN_INTERVAL_MS} to {MAX_TIMER_MS} with interval, "
                f"got {self.duration_ms}",
            )


@tool("Be reminded later: await_activity returns when it fires.", SetTimer, ACTS)
async def set_timer(request: Request, asked: SetTimer) -> Reply:
    timer = request.session.timers.set(asked.duration_ms, asked.message, interval=asked.interval)
    return json_reply({"timer": timer.to_json()})


@frozen
class ListTimers:
    include_inactive: bool = False
    cursor: Annotated[str | None, A_NAME] = None


@tool("Active timers.", ListTimers, READS)
async def list_timers(request: Request, asked: ListTimers) -> Reply:
    timers = request.session.timers.list(include_inactive=asked.include_inactive)
    groups = [Group(timer.timer_id, map(Timer.to_json, (timer,))) for timer in timers]
    reply, _ = await by_age(request, "timers", groups, asked)
    return reply


@frozen
class OfTimer:
    timer_id: Annotated[str, A_NAME]


@tool("One timer.", OfTimer, READS)
async def get_timer(request: Request, asked: OfTimer) -> Reply:
    return json_reply({"timer": request.session.timers.get(asked.timer_id).to_json()})


@tool("Stop a timer.", OfTimer, ENDS)
async def delete_timer(request: Request, asked: OfTimer) -> Reply:
    request.session.timers.delete(asked.timer_id)
    return json_reply({"deleted": asked.timer_id})


TOOLS = (set_timer, list_timers, get_timer, delete_timer)
