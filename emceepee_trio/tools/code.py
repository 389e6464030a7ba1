"""Scripts: many calls in one, in a sandbox.

A script's calls are made here, in the session, by the same tools that a client has; it waits for
each, so none of them becomes a task. The script itself does, like any call that takes long.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Annotated, Any, Literal

import attrs
import trio

from .. import logs
from ..codemode.data import complaint, data, part
from ..codemode.run import Done, Failed, Raised, Script
from ..config import OUR_NAME
from ..config.bounds import (
    KIB,
    MAX_EXECUTE_TIMEOUT_MS,
    MAX_STATUS_MESSAGE,
    MAX_TASK_TTL_MS,
    MIN_TASK_TTL_MS,
    SECOND,
)
from ..config.server import A_NAME
from ..errors import ExecutionFailed, InvalidArguments, TimedOut, ToolError
from ..model.json.fields import Bounds, Doc, MaxLength, frozen
from ..model.json.long.text import LongText
from ..model.json.problems import Problem
from ..model.wire import dumps, loads
from ..session.calls.call import Call, Result, Task
from ..session.kept import text_pieces
from .common.registry import CALLS, Request, Tool, tool
from .common.response import Reply, text
from .execution import ExecuteTool, execute_tool, promoted
from .finding import list_tools
from .prompts import get_prompt, list_prompts
from .resources import list_resource_templates, list_resources, read_resource
from .results.preview import JSON, RESULT, TEXT, next_of
from .results.reading import read_result
from .search import codemode_search
from .servers import list_servers

CODE = 256 * KIB
"""Characters of a script."""
VALUE = 11 * KIB
LOGS = 4 * KIB
"""Bytes of a script's value, and of its log, in an answer; the beginning of the one, the end of the
other."""


@frozen
class CallTool:
    server: Annotated[str, A_NAME]
    tool: Annotated[str, A_NAME]
    args: Mapping[str, Any] = attrs.field(factory=dict)


@tool("Call a tool of a server.", CallTool, CALLS)
async def call_tool(request: Request, asked: CallTool) -> Reply:
    longest = MAX_EXECUTE_TIMEOUT_MS, MAX_TASK_TTL_MS  # it ends with its script
    return await execute_tool.handler(
        request, ExecuteTool(asked.server, asked.tool, asked.args, *longest)
    )


OURS: Mapping[str, Tool] = {
    "call_tool": call_tool,
    "list_servers": list_servers,
    "search": attrs.evolve(codemode_search, name="search"),
    "list_tools": list_tools,
    "list_resources": list_resources,
    "list_resource_templates": list_resource_templates,
    "read_resource": read_resource,
    "list_prompts": list_prompts,
    "get_prompt": get_prompt,
    "read_result": read_result,
}
"""What does a script's functions, but for those that need no server."""
_OF_ALL = {name for name in OURS if name == "search" or name.startswith("list_")}
"""These ask many servers; of those that do not answer, they say so beside the rest."""


@frozen
class CodemodeExecute:
    code: Annotated[str, MaxLength(CODE), Doc("its last line's value is the result")]
    timeout_ms: Annotated[int | None, Bounds(0, MAX_EXECUTE_TIMEOUT_MS), Doc("default 120000")] = (
        None
    )
    ttl_ms: int | None = None
    on_timeout: Literal["promote", "end"] = "promote"

    def problems(self) -> Iterator[Problem]:
        if not self.code.strip():
            yield Problem("code", "it is empty; write Python whose last line is what you want")


@tool(
    "Run Python that calls tools: await servers.git.log(max_count=3), await call_tool(server, "
    "tool, args); asyncio.gather; ToolError. Also search, list_tools, read_resource, log, sleep.",
    CodemodeExecute,
    CALLS,
)
async def codemode_execute(request: Request, asked: CodemodeExecute) -> Reply:
    session, limits = request.session, request.session.config.limits
    timeout_ms = limits.execute_timeout_ms if asked.timeout_ms is None else asked.timeout_ms
    ttl_ms = limits.task_ttl_ms if asked.ttl_ms is None else asked.ttl_ms
    wait_ms = min(timeout_ms, request.answer_ms)
    ends = asked.on_timeout == "end"
    if ends and timeout_ms == 0:
        raise InvalidArguments("codemode_execute: timeout_ms 0 leaves no time before the end")
    running = _Running(request, asked.code, timeout_ms)
    name, args = "codemode_execute", attrs.asdict(asked, filter=lambda _, value: value is not None)
    call = await request.call(
        (name, OUR_NAME, name),
        args,
        lambda: session.calls.begin(
            OUR_NAME,
            name,
            args,
            running.send,
            patience=wait_ms / SECOND,
            ttl=min(max(ttl_ms, MIN_TASK_TTL_MS), MAX_TASK_TTL_MS) / SECOND,
            hard_timeout=timeout_ms / SECOND if ends else math.inf,
            overdue=running.overdue,
        ),
        joins=True,
    )
    if request.on_progress is not None:
        call.listeners.append(request.on_progress)
    if timeout_ms == 0:
        session.calls.promote(call)
    request.can_go_on(lambda: session.calls.promote(call))
    # What ends does so by its own deadline, which comes first.
    patience = math.inf if ends and wait_ms == timeout_ms else wait_ms / SECOND
    try:
        with request.waiting(call):
            outcome = await session.calls.wait(
                call, patience, request.move_on_after, lambda: request.stays
            )
    finally:
        call.listeners.clear()
    if isinstance(outcome, Task):
        return promoted(request, call, outcome, wait_ms, is_cut=wait_ms < timeout_ms)
    return Reply(outcome, lapsed=call.lapsed)


@attrs.define(eq=False)
class _Running:
    """What the call of a script does in its own task."""

    _request: Request
    _code: str
    _timeout_ms: int
    _since: float = attrs.field(factory=trio.current_time, init=False)
    _script: Script | None = attrs.field(default=None, init=False)

    async def send(self, call: Call) -> Result:
        session = self._request.session
        limits = session.config.limits
        script = self._script = Script(
            self._code,
            session.config.codemode,
            VALUE,
            _Calls(Request(session, self._request.manager, within=call, shortens=False)).do,
            partial(self._tell, call),
            {"session": session.id},
        )
        if not session.scripts.available_tokens:
            session.calls.queued(call)
        async with session.scripts:
            session.calls.sent(call)
            try:
                value = await script.run(session.shared, limits.of_servers)
            except Failed as failed:
                raise ExecutionFailed(f"the script failed: {failed}", self._so_far()) from None
        said = {"result": value.get("value"), **self._so_far()}
        if "of" in value:
            said["result_omitted"] = {"bytes": value.get("omitted"), "of": value["of"]}
            said["result_omitted"] |= await self._keep(value)
        return {"content": [text(dumps(said))], "structuredContent": said, "isError": False}

    async def _keep(self, value: Mapping[str, Any]) -> dict[str, Any]:
        """Where all of it is, unless it was too long to cross, or there is no place for it."""
        whole = value.get("whole")
        if not isinstance(whole, str | LongText):
            return {"hint": "return less, or a part of it"}
        kind = TEXT if value.get("is_text") else JSON
        results = self._request.session.results
        try:
            kept = await results.keep(kind, text_pieces([whole]), len(whole), text=True)
        except OSError as error:
            why = error.strerror or str(error)
            logs.write("warn", "result_not_kept", session=self._request.session.id, error=why)
            return {"hint": "return less, or a part of it"}
        return {"result": kept.id, "uri": RESULT + kept.id, "next": next_of(kept)}

    def _tell(self, call: Call, script: Script) -> None:
        progress = _progress(script)
        call.said = progress["message"][:MAX_STATUS_MESSAGE]
        self._request.session.calls.progressed(call, progress)

    def overdue(self) -> ToolError:
        return TimedOut(
            f"the script was ended after {self._timeout_ms} ms (timeout_ms, on_timeout), and with "
            "it all calls under way; what servers have done by then is done. Give it more time, or "
            "a part of the work",
            self._so_far(),
        )

    def _so_far(self) -> dict[str, Any]:
        script = self._script
        logged, lines, size = _end(script) if script is not None else ([], 0, 0)
        said: dict[str, Any] = {"logs": logged, "calls": script.calls if script is not None else 0}
        said["duration_ms"] = round((trio.current_time() - self._since) * SECOND)
        if lines or size:
            said["logs_omitted"] = {"lines": lines, "bytes": size}
        return said


@attrs.frozen
class _Calls:
    """What a script asks for, done as a client would have it done."""

    _request: Request

    async def do(self, name: str, given: Mapping[str, Any]) -> Done:
        ours = OURS.get(name)
        if ours is None:
            raise Raised(f"TOOL_ERR_NOT_FOUND: there is no {name}() here")
        given = {key: value for key, value in given.items() if value is not None}
        assert self._request.within is not None
        if self._request.within.slot.is_settled:
            raise Raised("the script has ended; it makes no call any more")
        request = attrs.evolve(self._request)  # each has its own
        try:
            reply = await ours.call(request, given)
        except ToolError as error:
            raise Raised(f"{error.code}: {error.message}") from None
        if reply.result.get("isError"):
            raise Raised(complaint(reply.result))
        if ours is read_result:
            return part(reply.result)
        done = data(reply.result)
        if missed := _missed(name, done):
            done["warnings"] = missed
        return done


def _missed(name: str, done: Done) -> list[str]:
    """What a list does not have, which a script may well not look at."""
    said = done.get("text", "") if name in _OF_ALL else ""
    if '"errors"' not in said:
        return []
    errors = loads(said).get("errors", ())
    return [f"{name}: without {e['server']}, {e['error']}" for e in errors if "server" in e]


def _progress(script: Script) -> dict[str, Any]:
    last = f": {script.logged[-1]}" if script.logged else ""
    return {
        "progress": script.calls + len(script.logged),
        "message": f"{script.calls} calls{last}",
    }


def _end(script: Script) -> tuple[list[str], int, int]:
    """The last lines that there is room for; how many others, and how many bytes."""
    kept: list[str] = []
    room = LOGS
    for line in reversed(script.logged):
        room -= len(line.encode()) + 3
        if room < 0:
            break
        kept.insert(0, line)
    others = list(script.logged)[: len(script.logged) - len(kept)]
    size = sum(len(line.encode()) for line in others)
    return kept, script.lost_lines + len(others), script.lost_bytes + size


TOOLS = (codemode_execute,)
