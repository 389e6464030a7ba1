"""Tools that a server runs as tasks of its own: started, polled, fetched, cancelled.

One of 2025-11-25 is asked for that; a modern one makes a task of a call if it likes.

For whoever calls, it is one request, which takes as long as the task. Questions that the task puts
come while its result is waited for, as those of any other request.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import trio
from mcp import MCPError
from mcp_types import INTERNAL_ERROR

from ...config.bounds import MAX_TASK_TTL_MS
from ...errors import ToolError
from ...model.json.long.partly import Partly, unfolded
from ...waits.slices import in_slices
from .callbacks import OnProgress, Params
from .client import Client

POLLS = (0.05, 60.0)
"""Seconds between two looks at a task, at least and at most; between them its server says."""
USUAL = 1.0
"""Seconds, if it says nothing."""
TERMINAL = ("completed", "failed", "cancelled")
AT_WORK = ("working", "input_required")
"""States of a task that is over, and of one that goes on. No sets: what a server says may have no
hash."""
FAREWELL = 0.5
"""Seconds to tell a server that a task is not wanted any more."""


def must_be_task(tool: Params | None) -> bool:
    execution = tool.get("execution") if tool is not None else None
    return isinstance(execution, Mapping) and execution.get("taskSupport") == "required"


async def call_as_task(
    client: Client, params: Params, until: float, on_progress: OnProgress
) -> dict[str, Any]:
    """The result of the tool, once its task is over; by then, on trio's clock, it is given up.

    Raises:
        MCPError: what the server said instead.
    """
    with client.progress(on_progress) as token:
        ttl = round(min((until - trio.current_time()) * 1000, MAX_TASK_TTL_MS))
        asked = {**params, "task": {"ttl": ttl}, "_meta": {"progressToken": token}}
        created = await client.request("tools/call", asked)
        task = created.get("task")
        if not isinstance(task, Mapping):
            return created  # it has run it at once
        named = {"taskId": task.get("taskId")}
        if not isinstance(named["taskId"], str):
            raise MCPError(code=INTERNAL_ERROR, message="the server made a task without an id")
        try:
            while task.get("status") == "working":
                await trio.sleep(pause(task))
                task = await client.request("tasks/get", named)
            if task.get("status") == "cancelled":
                said = f"the server has cancelled its task: {task.get('statusMessage')}"
                raise MCPError(code=INTERNAL_ERROR, message=said)
            return await client.request("tasks/result", named, leaves_long=True)
        except trio.Cancelled:
            with trio.move_on_after(FAREWELL, shield=True), suppress(MCPError, ToolError):
                await client.request("tasks/cancel", named)
            raise


async def to_its_end(client: Client, result: dict[str, Any]) -> dict[str, Any]:
    """What a call has come to in the end, if a modern server has answered that it is a task.

    Raises:
        MCPError: what the server said instead.
    """
    if not client.negotiated.is_modern or result.get("resultType") != "task":
        return result
    named, task, answered = {"taskId": result.get("taskId")}, result, set[str]()
    if not isinstance(named["taskId"], str):
        raise MCPError(code=INTERNAL_ERROR, message="the server made a task without an id")
    try:
        while (status := task.get("status")) in AT_WORK:
            asked = task.get("inputRequests") if status == "input_required" else None
            if isinstance(asked, Mapping) and (new := asked.keys() - answered):
                answered |= new
                said = await client.answer_all({key: asked[key] for key in new})
                await client.request("tasks/update", {**named, "inputResponses": said})
            else:
                await trio.sleep(pause(task, "pollIntervalMs"))
            task = await client.request("tasks/get", named, leaves_long=True)
            if type(task) is Partly and task.get("status") != "completed":
                task = await in_slices(unfolded(task))
    except trio.Cancelled:
        with trio.move_on_after(FAREWELL, shield=True), suppress(MCPError, ToolError):
            await client.request("tasks/cancel", named)
        raise
    found, error = task.get("result"), task.get("error")
    if status == "completed" and isinstance(found, dict):
        return Partly(found) if type(task) is Partly else found
    if status == "failed" and isinstance(error, Mapping) and isinstance(error.get("code"), int):
        message = str(error.get("message"))
        raise MCPError(code=error["code"], message=message, data=error.get("data"))
    message = f"the server has ended its task as {status}: {task.get('statusMessage')}"
    raise MCPError(code=INTERNAL_ERROR, message=message)


def pause(task: Mapping[str, Any], key: str = "pollInterval") -> float:
    """Seconds until it is worth to look at it again."""
    said = task.get(key)
    if not isinstance(said, int | float) or isinstance(said, bool):
        return USUAL
    return min(max(said / 1000, POLLS[0]), POLLS[1])
