"""The protocol's tasks, for clients that know that extension: ``io.modelcontextprotocol/tasks``.

A call that its request does not wait for any longer is answered with a task of the protocol in
place of our words for it; ``tasks/get``, ``tasks/update`` and ``tasks/cancel`` are about the same
tasks as our tools. It is of the modern era alone, and declared with each request.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import trio
from mcp import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND

from ..backend.backend import Backend
from ..backend.connections.tasks import AT_WORK, pause
from ..config.bounds import MAX_WAITERS
from ..errors import InvalidArguments, LimitReached, NotFound, ToolError
from ..model.protocol.eras import notice_for
from ..model.states import TaskState
from ..session.calls.call import Call, Task
from ..session.questions.answers import judged
from ..session.questions.question import Question
from ..session.questions.relay import takes
from ..tools.common.response import error_reply
from ..waits.firewall import Firewall, begin
from .faces.face import Incoming, Result
from .lists import enveloped
from .news import News

if TYPE_CHECKING:
    from .mcp import Front

EXTENSION = "io.modelcontextprotocol/tasks"
MISSING_CAPABILITY = -32021
NAMED = ("tasks/get", "tasks/update", "tasks/cancel")
"""Requests that say in a header, too, which task they are about."""
PATIENCE = 0.5
"""Seconds that a call may take of a server that is shown as it is; then it is a task."""
POLL_MS = 1000
"""How often a client is told to look."""
ASKED = {"elicitation": "elicitation/create", "sampling": "sampling/createMessage"}
STATUS = {
    TaskState.WORKING: "working",
    TaskState.COMPLETED: "completed",
    TaskState.FAILED: "failed",
    TaskState.CANCELLED: "cancelled",
    TaskState.EXPIRED: "failed",  # there is no word for it
}


def offered(capabilities: Mapping[str, Any], *, is_modern: bool) -> Result:
    """What a client is told that can be done: that as well, in the era that has it."""
    theirs = capabilities.get("extensions")
    extensions = dict(theirs) if isinstance(theirs, Mapping) else {}
    extensions.pop(EXTENSION, None)
    if is_modern:
        extensions[EXTENSION] = {}
    rest = {key: value for key, value in capabilities.items() if key != "extensions"}
    return {**rest, "extensions": extensions} if extensions else rest


def are_declared(front: Front, asked: Incoming) -> bool:
    extensions = front.capabilities_of(asked).get("extensions")
    return asked.is_modern and isinstance(extensions, Mapping) and EXTENSION in extensions


def created(task: Task) -> Result:
    """What answers the request in place of a result."""
    return {"resultType": "task", **_brief(task)}


async def answer(front: Front, asked: Incoming) -> Result | None:
    """The answer to a request that is about a task; None if it is about none.

    Raises:
        MCPError: the error that answers it.
    """
    if not (asked.is_modern and asked.method.startswith("tasks/")):
        return None
    if asked.method not in NAMED:
        raise MCPError(code=METHOD_NOT_FOUND, message="Method not found", data=asked.method)
    _check_declared(front, asked)
    call = _call(front, asked.params.get("taskId"))
    said: Result = {}
    if asked.method == "tasks/get":
        said = detailed(front, asked, call)
        if call.slot.is_settled:
            front.session.calls.finished.read(call)
    elif asked.method == "tasks/update":
        await _update(front, call, asked.params.get("inputResponses"))
    else:
        front.session.calls.cancel(call.id, "cancelled by tasks/cancel")
    return enveloped(asked.version, said)


def detailed(front: Front, asked: Incoming, call: Call) -> Result:
    """A task as it is at this moment, with all that it has come to or waits for."""
    task = call.task
    assert task is not None
    said = _brief(task)
    if not call.slot.is_settled:
        wanted = {
            question.id: {"method": ASKED[question.kind], "params": dict(question.params)}
            for question in call.open_questions
            if takes(front.capabilities_of(asked), question.kind, question.params)
        }
        if wanted:
            said |= {"status": "input_required", "inputRequests": wanted}
        return said
    if task.status is TaskState.CANCELLED:
        return said
    error = call.slot.error
    if not isinstance(error, ToolError):
        return said | {"result": call.slot.peek()}
    said["statusMessage"] = error.message
    if task.status is TaskState.FAILED and front.face.server is None:
        # Where our tools make the call, an error is a result that says so.
        return said | {"status": "completed", "result": error_reply(error).result}
    return said | {"error": _json_rpc(error)}


async def follow(front: Front, asked: Incoming, call: Call, news: News) -> None:
    """Tell of the task now, and whenever it is not as it was told, until it is over."""
    told: Result | None = None
    while True:
        if (said := detailed(front, asked, call)) != told:
            news.tell("notifications/tasks", notice_for(said, asked.id), asked.id)
            told = said
        if call.slot.is_settled:
            return
        await call.news.wait()


def to_follow(front: Front, asked: Incoming) -> list[Call]:
    """Those that a stream asks for, as far as they are there.

    Raises:
        MCPError: its client does not say that it knows tasks.
    """
    filters = asked.params.get("notifications")
    ids = filters.get("taskIds") if isinstance(filters, Mapping) else None
    if ids is None:
        return []
    _check_declared(front, asked)
    calls = front.session.calls
    at_most = calls.limits.tasks + calls.limits.results
    wanted = dict.fromkeys(map(str, ids)) if isinstance(ids, list) else {}
    found = (calls.find(task_id) for task_id in list(wanted)[:at_most])
    return [call for call in found if call is not None]


async def listen(front: Front, asked: Incoming) -> Result:
    """A stream that tells of tasks, and of nothing else."""
    news = News(front.send)
    try:
        with front.session.presence.wait_in(MAX_WAITERS):
            async with followed(front, asked, news) as honoured:
                said = await news.listen(front.closing, asked.id, honoured)
    except LimitReached as error:
        raise MCPError(code=INVALID_REQUEST, message=error.message) from None
    return enveloped(asked.version, said)


@asynccontextmanager
async def followed(front: Front, asked: Incoming, news: News) -> AsyncGenerator[Result]:
    """What of tasks a stream tells, which it does for as long as the block lasts."""
    calls = to_follow(front, asked)
    honoured: Result = {"taskIds": [call.id for call in calls]} if calls else {}
    async with trio.open_nursery() as nursery:
        for call in calls:
            wall = Firewall("notification_crashed", fields={"session": front.session.id})
            begin(nursery, wall, follow, front, asked, call, news)
        yield honoured
        nursery.cancel_scope.cancel("nobody listens any more")


@asynccontextmanager
async def theirs_followed(
    front: Front, asked: Incoming, backend: Backend, news: News
) -> AsyncGenerator[Result]:
    """The same of tasks that are between client and server, which both know them.

    The server is asked in its client's name, as often as it says.
    """
    filters = asked.params.get("notifications")
    ids = filters.get("taskIds") if isinstance(filters, Mapping) else None
    wanted = dict.fromkeys(map(str, ids)) if isinstance(ids, list) else {}
    if wanted:
        _check_declared(front, asked)
    capabilities = front.capabilities_of(asked)
    found: dict[str, Result] = {}
    for task_id in list(wanted)[:MAX_WAITERS]:
        with suppress(MCPError, ToolError):
            found[task_id] = await _look(backend, task_id, capabilities)
    honoured: Result = {"taskIds": list(found)} if found else {}
    async with trio.open_nursery() as nursery:
        for task_id, task in found.items():
            wall = Firewall("notification_crashed", fields={"session": front.session.id})
            follow = partial(_follow_theirs, asked, backend, news, capabilities)
            begin(nursery, wall, follow, task_id, task)
        yield honoured
        nursery.cancel_scope.cancel("nobody listens any more")


async def _look(backend: Backend, task_id: str, capabilities: Mapping[str, Any]) -> Result:
    params = {"taskId": task_id}
    return await backend.ask(
        lambda client: client.request("tasks/get", params, capabilities=capabilities)
    )


async def _follow_theirs(
    asked: Incoming,
    backend: Backend,
    news: News,
    capabilities: Mapping[str, Any],
    task_id: str,
    task: Result,
) -> None:
    told: Result | None = None
    while True:
        said = {key: value for key, value in task.items() if key != "resultType"}
        if said != told:
            news.tell("notifications/tasks", notice_for(said, asked.id), asked.id)
            told = said
        if task.get("status") not in AT_WORK:
            return
        await trio.sleep(pause(task, "pollIntervalMs"))
        try:
            task = await _look(backend, task_id, capabilities)
        except (MCPError, ToolError):
            return  # who asks for it is told why


def _check_declared(front: Front, asked: Incoming) -> None:
    if not are_declared(front, asked):
        raise MCPError(
            code=MISSING_CAPABILITY,
            message="Missing required client capability",
            data={"requiredCapabilities": {"extensions": {EXTENSION: {}}}},
        )


def _call(front: Front, task_id: Any) -> Call:
    try:
        return front.session.calls.get(task_id if isinstance(task_id, str) else "")
    except NotFound as error:
        raise MCPError(code=INVALID_PARAMS, message=error.message) from None


async def _update(front: Front, call: Call, responses: Any) -> None:
    """Answers to questions of the task; those to others, or to none, change nothing."""
    if not isinstance(responses, Mapping):
        raise MCPError(code=INVALID_PARAMS, message="expected inputResponses, an object")
    open_: dict[str, Question] = {question.id: question for question in call.open_questions}
    for key, response in responses.items():
        question = open_.get(key)
        if question is None or not isinstance(response, Mapping):
            continue
        try:
            state, result = await judged(question, response)
        except InvalidArguments as error:
            said = f"inputResponses.{key}: {error.message}"
            raise MCPError(code=INVALID_PARAMS, message=said) from None
        front.session.questions.take(question, state, result)


def _brief(task: Task) -> Result:
    said: Result = {
        "taskId": task.task_id,
        "status": STATUS[task.status],
        "createdAt": task.created_at,
        "lastUpdatedAt": task.last_updated_at,
        "ttlMs": task.ttl_ms,
        "pollIntervalMs": POLL_MS,
    }
    if task.status_message is not None:
        said["statusMessage"] = task.status_message
    return said


def _json_rpc(error: ToolError) -> Result:
    """What its server answered, as that came; else what we say."""
    details = error.details or {}
    if isinstance(details.get("code"), int) and isinstance(details.get("message"), str):
        return {key: details[key] for key in ("code", "message", "data") if key in details}
    return {
        "code": INTERNAL_ERROR,
        "message": error.message,
        "data": error.to_json()["error"],
    }
