"""Calling tools of backends; `finding.py` finds them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any

import attrs
from mcp import MCPError

from ..backend.backend import Backend
from ..backend.catalogue.catalog import name_of
from ..backend.connections.callbacks import working_for
from ..backend.connections.client import Client
from ..backend.connections.tasks import call_as_task, must_be_task, to_its_end
from ..backend.connections.witness import NotRun
from ..config.bounds import (
    MAX_EXECUTE_TIMEOUT_MS,
    MAX_TASK_TTL_MS,
    MIN_TASK_TTL_MS,
)
from ..config.server import A_NAME
from ..errors import Denied, NotFound, ServerDisconnected, ToolError
from ..model.json.fields import Bounds, Doc, frozen
from ..model.json.problems import did_you_mean
from ..model.protocol.eras import params_for
from ..model.wire import dumps
from ..session.calls.call import Call, Result, Task
from .common.asking import as_tool_error, asks, is_asked
from .common.deliveries import references
from .common.pages import with_pages
from .common.registry import CALLS, READS, Request, tool
from .common.response import LONGEST, Reply, text
from .results.shown import shown
from .servers import task_items


@frozen
class ExecuteTool:
    server: Annotated[str, A_NAME]
    tool: Annotated[str, A_NAME]
    args: Mapping[str, Any] = attrs.field(factory=dict)
    timeout_ms: Annotated[
        int | None, Bounds(0, MAX_EXECUTE_TIMEOUT_MS), Doc("default 120000; 0: do not wait")
    ] = None
    ttl_ms: Annotated[int | None, Doc("of the task, default 600000")] = None


@tool(
    "Call a tool of a server; list_tools shows its schema. After timeout_ms it goes on as a task: "
    "await_activity tells when it is done, get_task_result has the result.",
    ExecuteTool,
    CALLS,
    by_call=True,
    hint="call run a tool of any MCP server",
)
async def execute_tool(request: Request, asked: ExecuteTool) -> Reply:
    return await execute(request, asked)


@frozen
class CallRead:
    server: Annotated[str, A_NAME]
    tool: Annotated[str, A_NAME]
    args: Mapping[str, Any] = attrs.field(factory=dict)
    timeout_ms: Annotated[int | None, Bounds(0, MAX_EXECUTE_TIMEOUT_MS)] = None
    ttl_ms: int | None = None


@tool(
    "execute_tool for tools with readOnlyHint only, so that it can be allowed for good.",
    CallRead,
    {**READS, **CALLS},
    by_call=True,
)
async def call_read(request: Request, asked: CallRead) -> Reply:
    return await execute(request, asked, only_reads=True)


async def execute(
    request: Request, asked: ExecuteTool | CallRead, *, only_reads: bool = False
) -> Reply:
    """A call of a tool of a server, whatever its client calls that."""
    session, limits = request.session, request.session.config.limits
    backend = session.backend(asked.server)
    if not backend.catalog.allows(asked.tool):
        raise _no_such_tool(backend, asked.tool, ())
    timeout_ms = limits.execute_timeout_ms if asked.timeout_ms is None else asked.timeout_ms
    ttl_ms = limits.task_ttl_ms if asked.ttl_ms is None else asked.ttl_ms
    wait_ms = min(timeout_ms, request.answer_ms)
    hard_ms = backend.server.call_timeout_ms
    what = ("call_read" if only_reads else "execute_tool", asked.server, asked.tool)
    call = await request.call(
        what,
        asked.args,
        lambda: session.calls.begin(
            asked.server,
            asked.tool,
            asked.args,
            _Sending(request, backend, only_reads).send,
            patience=wait_ms / 1000,
            ttl=min(max(ttl_ms, MIN_TASK_TTL_MS), MAX_TASK_TTL_MS) / 1000,
            hard_timeout=math.inf if hard_ms is None else hard_ms / 1000,
            within=request.within,
        ),
        joins=backend.server.reissue == "join",
    )
    if request.within is not None:
        return Reply(await session.calls.complete(call))
    if request.on_progress is not None:
        call.listeners.append(request.on_progress)
    if timeout_ms == 0:
        # At once: another call that came in this very tick could take the last place of a task.
        session.calls.promote(call)
    request.waits_for(backend)
    request.can_go_on(lambda: session.calls.promote(call))
    try:
        with request.waiting(call):
            outcome = await session.calls.wait(
                call, wait_ms / 1000, request.move_on_after, lambda: request.stays
            )
    finally:
        call.listeners.clear()
    if isinstance(outcome, Task):
        return promoted(request, call, outcome, wait_ms, is_cut=wait_ms < timeout_ms)
    session.events.forget_wakes(asked.server)
    return Reply(outcome, lapsed=call.lapsed, of=asked.server, call=call.id)


@attrs.frozen
class _Sending:
    """What a call does in its own task."""

    request: Request
    backend: Backend
    only_reads: bool = False
    """A tool that does not say that it only reads is refused."""

    async def send(self, call: Call) -> Result:
        working_for.set(call.id)  # in a task of its own
        try:
            result = await self.backend.ask(lambda client: self._send(call, client))
        except NotRun as error:
            raise as_tool_error(error, call.server, "tools/call") from None
        # Here, so that it is kept once, however often it is asked for, and is not in memory, too.
        return await shown(self.request, call.server, result)

    async def _send(self, call: Call, client: Client) -> Result:
        calls = self.request.session.calls
        try:
            said = {"name": call.tool, "arguments": call.args, "_meta": self.request.meta}
            params = params_for(said, is_modern=client.negotiated.is_modern)
            tool = await self._listed(client, call.tool)
            if self.only_reads:
                self._check_reads(call.tool, tool)
            calls.sent(call)
            if client.negotiated.has_tasks and must_be_task(tool):
                result = await call_as_task(
                    client,
                    params,
                    call.scope.deadline,
                    lambda said: calls.progressed(call, said),
                )
            else:
                ask = partial(
                    client.request,
                    "tools/call",
                    params,
                    on_progress=lambda said: calls.progressed(call, said),
                    tool=tool,
                    leaves_long=True,
                )
                result = await with_pages(self.request.session, client, call.server, ask)
                result = await to_its_end(client, result)
        except NotRun:
            calls.returned(call)
            raise
        except MCPError as error:
            failure = as_tool_error(error, call.server, "tools/call")
            if not isinstance(failure, ServerDisconnected):  # which nobody answered
                await self._check_exists(client, call.tool, failure)  # noqa: ASYNC120 - then it is the cancellation that counts
            raise failure from None
        if result.get("isError"):
            await self._check_exists(client, call.tool, None)
        return result

    async def _listed(self, client: Client, name: str) -> Mapping[str, Any] | None:
        """The tool's entry, where it decides how the call is made: with which headers, as what."""
        needs_headers = client.negotiated.is_modern and self.backend.server.transport != "stdio"
        if not (needs_headers or client.negotiated.has_tasks or self.only_reads):
            return None
        tools = await self.backend.catalog.last("tools", client)
        return next((tool for tool in tools if tool.get("name") == name), None)

    def _check_reads(self, name: str, tool: Mapping[str, Any] | None) -> None:
        if tool is None:
            raise _no_such_tool(self.backend, name, ())
        annotations = tool.get("annotations")
        if not isinstance(annotations, Mapping) or annotations.get("readOnlyHint") is not True:
            raise Denied(
                f"tool {name!r} of server {self.backend.server.name!r} does not say that it only "
                "reads (readOnlyHint); execute_tool calls it"
            )

    async def _check_exists(self, client: Client, name: str, failure: ToolError | None) -> None:
        """Servers say in many ways that they know no such tool; their list says it in one."""
        if client.over.is_set():
            return
        try:
            tools = await self.backend.catalog.get("tools", client)
        except (MCPError, ToolError):
            return
        names = list(map(name_of, tools))
        if names and name not in names:
            raise _no_such_tool(self.backend, name, names, failure)


def _no_such_tool(
    backend: Backend,
    name: str,
    names: tuple[str, ...] | list[str],
    failure: ToolError | None = None,
) -> NotFound:
    return NotFound(
        f"server {backend.server.name!r} has no tool {name!r}{did_you_mean(name, names)}; "
        "list_tools shows what it has",
        failure.details if failure is not None else None,
    )


def promoted(request: Request, call: Call, task: Task, waited_ms: int, *, is_cut: bool) -> Reply:
    session, server = request.session, task.server
    asked = call.open_questions
    open_, full = references(session, server, asked)
    # Who is asked is told what else waits: the task and its questions are what this is about.
    tasks = [t for t in session.calls.working(server) if not (asked and t is task)]
    shown = {
        "proxy_task": {
            "task_id": task.task_id,
            "status": "working",
            "created_at": task.created_at,
            "server": server,
            "tool": task.tool,
        },
        "pending_on_server": {
            **task_items(tasks, "tasks"),
            "elicitations_for_server": open_,
        },
    }
    if call.needs_answers:
        said = f"Promoted to task {task.task_id}: {asks(call)}."
    else:
        said = (
            f"Tool call exceeded timeout ({waited_ms}ms). Promoted to task {task.task_id}. "
            f"{is_asked(call)}Use get_task_result to retrieve the result when ready."
        )
        if is_cut:
            said += f" It goes on; {LONGEST.format(waited_ms)}."
        backend = session.backends.get(server)
        if not call.is_sent and backend is not None and backend.starting_still is not None:
            said += f" Server {server!r} is {backend.starting_still}."
            session.planned.discard(server)
    content = [text(said), text(dumps(shown))]
    return Reply({"content": content, "isError": False}, full=full, task=task)


TOOLS = (execute_tool, call_read)
