"""Calls and tasks: what they were asked and have come to, for who asks for that; and their end."""

from __future__ import annotations

import heapq
from typing import Any

import trio
from quart import request

from ...errors import Denied, ToolError
from ...model.json.intake import Steps
from ...model.json.weight import cut, weigh
from ...model.text.redact import label
from ...session.calls.call import Call, Task
from ...session.session import Session
from ...waits.slices import in_slices
from .common.pages import Changed, Data, Done, Pages
from .common.requests import visit, wants_json
from .now import BREATH, MAX_SHOWN
from .waiting import REASON, wait_of

PAYLOAD = 256 * 1024
"""Bytes of arguments or of a result that are shown, about."""

CALL = "/calls/<session>/<call>"


def add_to(pages: Pages) -> None:
    pages.section("/tasks", "Tasks")

    def find(session: str, call: str) -> tuple[Session, Call]:
        theirs = pages.names.session(session, visit().visitor.whose)
        return theirs, theirs.calls.known(call)

    @pages.view("/tasks", "tasks.html")
    async def tasks() -> Data:
        found = await in_slices(_newest(pages.manager.sessions(visit().visitor.whose)))
        return {
            "tasks": [{**_whose(pages, session), **_task(pages, task)} for session, task in found]
        }

    @pages.view(CALL, "call.html")
    async def call(session: str, call: str) -> Data:
        theirs, found = find(session, call)
        shows = request.args.get("show")
        if shows is not None and not pages.manager.config.page.payloads:
            raise Denied("arguments and results are not shown on this page (page.payloads)")
        return {**_whose(pages, theirs), **_call(pages, theirs, found), **_payload(found, shows)}

    @pages.act(f"{CALL}/cancel")
    async def cancel(session: str, call: str) -> Changed:
        theirs, found = find(session, call)
        why = "cancelled by the operator"
        if found.slot.is_settled:
            return Done("/", "It was over already.")
        if found.task is not None:
            theirs.calls.cancel(call, why)
        else:
            theirs.calls.abandon(found, why)
        return Done("/", f"{found.server}/{found.tool} is cancelled; its server is told.")


def _newest(sessions: list[Session]) -> Steps[list[tuple[Session, Task]]]:
    """Those that work first."""
    found: list[tuple[Session, Task]] = []
    for n, session in enumerate(sessions, 1):
        both = [*found, *((session, task) for task in session.calls.tasks())]
        found = heapq.nlargest(MAX_SHOWN, both, key=_rank)
        if n % BREATH == 0:
            yield
    return found


def _rank(each: tuple[Session, Task]) -> tuple[bool, str]:
    return each[1].status.value == "working", each[1].last_updated_at


def _whose(pages: Pages, session: Session) -> dict[str, str]:
    return {
        "session": pages.names.of(session.id),
        "label": label(session.id),
        "client": session.client_name,
    }


def _task(pages: Pages, task: Task) -> dict[str, Any]:
    """What its server says of it may tell what it was asked."""
    is_told = pages.manager.config.page.payloads
    error = task.error if is_told else None
    return {
        "call": task.task_id,
        "server": task.server,
        "tool": task.tool,
        "status": task.status.value,
        "created_at": task.created_at,
        "last_updated_at": task.last_updated_at,
        "status_message": task.status_message if is_told else None,
        "error": None if error is None else cut(error, REASON),
    }


def _call(pages: Pages, session: Session, call: Call) -> dict[str, Any]:
    now, task = trio.current_time(), call.task
    is_over = call.slot.is_settled
    return {
        "call": call.id,
        "server": call.server,
        "tool": call.tool,
        "started_at": call.started_at,
        "seconds": round(now - call.started, 1),
        "is_over": is_over,
        "waits": None if is_over else wait_of(session, call).to_json(now),
        "args_bytes": call.args_bytes,
        "task": None if task is None else _task(pages, task),
        "args": None,
        "result": None,
        "texts": [],
        "too_long": False,
    }


def _payload(call: Call, shows: str | None) -> dict[str, Any]:
    """What was asked for by name."""
    found: Any
    if shows == "args":
        found = dict(call.args)
    elif shows == "result" and call.slot.is_settled:
        try:
            found = call.slot.peek()
        except ToolError as error:
            found = error.to_json()
    else:
        return {}
    if weigh(found) > PAYLOAD:
        return {"too_long": True}
    return {shows: found, "texts": [] if shows == "args" or wants_json() else texts_of(found)}


def texts_of(result: Any) -> list[str]:
    """What people read of it first."""
    content = result.get("content")
    return [
        block["text"]
        for block in (content if isinstance(content, list) else [])
        if isinstance(block, dict) and isinstance(block.get("text"), str)
    ]
