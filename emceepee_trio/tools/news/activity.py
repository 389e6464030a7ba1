"""await_activity: one wait for everything."""

from __future__ import annotations

from typing import Annotated, Any

import trio

from ...config.bounds import MAX_AWAIT_TIMEOUT_MS, MAX_WAITERS
from ...errors import TimedOut
from ...model.json.fields import Bounds, Doc, frozen
from ...model.wire import dumps, list_of, object_of
from ...session.calls.call import Task
from ...session.events import Delivery, Trigger
from ...session.session import Session
from ..common.deliveries import NOTHING_PENDING, event_texts, pending, remarks
from ..common.registry import ACTS, Request, tool
from ..common.response import LONGEST, Reply, text
from ..servers import task_items


@frozen
class AwaitActivity:
    timeout_ms: Annotated[int | None, Bounds(0, MAX_AWAIT_TIMEOUT_MS), Doc("default 30000")] = None
    last_event_id: Annotated[str | None, Doc("repeat all kept events after this one")] = None


@tool(
    "Wait until anything happens: a task ends, a server asks, notifies, connects or is lost, a "
    "timer fires. Returns at once if there is news.",
    AwaitActivity,
    ACTS,
    hint="wait for tasks events questions",
)
async def await_activity(request: Request, asked: AwaitActivity) -> Reply:
    session, since = request.session, asked.last_event_id
    timeout_ms = asked.timeout_ms
    if timeout_ms is None:
        timeout_ms = session.config.limits.await_timeout_ms
    wait_ms = min(timeout_ms, request.answer_ms)
    feed = session.events.triggers
    cursor = feed.last
    if not session.events.has_news(since):
        with session.presence.wait_in(MAX_WAITERS), trio.move_on_after(wait_ms / 1000):
            await session.events.wait_news(since, cursor)
        session.check_open()
        if session.draining.is_set() and not session.events.has_news(since):
            raise TimedOut(
                "nothing more is waited for: the daemon is stopping; call again when it is back"
            )
    wakes = session.events.take_wakes()
    triggers = _distinct([*wakes, *feed.after(cursor)])
    if not triggers:
        triggers = [{"type": "immediate" if session.events.has_news(since) else "timeout"}]
    is_cut = wait_ms < timeout_ms and triggers == [{"type": "timeout"}]
    note = {"waited_ms": wait_ms, "note": _GOES_ON.format(LONGEST.format(wait_ms))}

    def claim() -> tuple[dict[str, Any], Delivery]:
        events = session.events
        delivery = events.take() if since is None else events.take_after(since)
        if since is not None:
            session.questions.tell_again()  # it may not have had them either
        if wakes:
            delivery.on_give_back(lambda: events.put_back(wakes))
        try:
            said = _report(session, triggers, delivery, note if is_cut else {})
            return {"content": [text(said)], "isError": False}, delivery
        except BaseException:
            delivery.lose()
            raise

    return Reply(claim=claim)


_GOES_ON = "{}; what works goes on. Call await_activity again to wait on"


def _distinct(seen: list[Trigger]) -> list[dict[str, Any]]:
    return [
        {"type": "server_disconnected", "server": trigger.server}
        if trigger.event_type == "server_disconnected"
        else {"type": "event", "server": trigger.server, "eventType": trigger.event_type}
        for trigger in dict.fromkeys(seen)
    ]


def _report(
    session: Session, triggers: list[dict[str, Any]], delivery: Delivery, note: dict[str, Any]
) -> str:
    new, known = pending(session, delivery)
    by_server: dict[str, list[str]] = {}
    for server, event in event_texts(session, delivery):
        by_server.setdefault(server, []).append(event)
    working: dict[str, list[Task]] = {}
    for task in session.calls.working():
        working.setdefault(task.server, []).append(task)
    events = (
        object_of({"server": dumps(server), "events": list_of(texts)})
        for server, texts in by_server.items()
    )
    said: dict[str, Any] = {
        "pending_server": [
            {"server": server} | task_items(tasks, "working_tasks")
            for server, tasks in working.items()
        ],
        "pending_client": new or NOTHING_PENDING,
        **known,
    }
    if delivery.events:
        said["lastEventId"] = delivery.last_event_id
    said |= remarks(delivery) | note
    first = {"triggers": dumps(triggers), "events": list_of(events)}
    return object_of(first | {name: dumps(value) for name, value in said.items()})


TOOLS = (await_activity,)
