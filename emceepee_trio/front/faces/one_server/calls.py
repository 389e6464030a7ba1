"""A tools/call that is forwarded: a call of the session, which may outlive its request.

It may be sent again by a client that has lost the stream of its answer, and become a task where its
client knows those.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import attrs
from mcp import MCPError
from mcp_types import INVALID_PARAMS

from ....backend.connections.callbacks import OnProgress, Params, working_for
from ....backend.connections.client import Client
from ....backend.connections.tasks import call_as_task, must_be_task, to_its_end
from ....backend.connections.witness import NotRun
from ....errors import ToolError
from ....model.json.spelling import spell
from ....session.calls.call import Call, Task
from ....tools.common.asking import as_tool_error
from ....waits.slices import in_slices
from ... import tasks
from ..face import Result
from .forwarded import Forwarded
from .passed import ANSWERS, STATE


@attrs.define
class ForwardedCall:
    """One such request, and the call that it waits for."""

    _forwarded: Forwarded

    async def answer(self, heard: OnProgress | None) -> Mapping[str, Any]:
        """Its result, or a task in the place of that; progress is *heard* for as long as it waits.

        Raises:
            MCPError: the error that answers it.
            ToolError: so does this.
        """
        front, asked, backend = (
            self._forwarded.front,
            self._forwarded.asked,
            self._forwarded.backend,
        )
        name, arguments = asked.call_params()
        if not backend.catalog.allows(name):
            raise MCPError(code=INVALID_PARAMS, message=f"Unknown tool: {name}")
        session, server, request = front.session, backend.server, asked.entry.request
        calls, limit = session.calls, server.call_timeout_ms
        # Whether it need not be waited for to its end.
        may_be_task = not self._forwarded.has_tasks and tasks.are_declared(front, asked)
        patience = tasks.PATIENCE if may_be_task else math.inf
        # Of a modern server's round with its client, each is a call of its own.
        others = [v for k, v in asked.params.items() if k in (STATE, ANSWERS)]
        round_ = await in_slices(spell(others)) if others else ""
        call = await request.call(
            (f"as it is {round_}", server.name, name),
            arguments,
            lambda: calls.begin(
                server.name,
                name,
                arguments,
                self._send,
                patience=patience,
                ttl=session.config.limits.task_ttl_ms / 1000,
                hard_timeout=math.inf if limit is None else limit / 1000,
            ),
            joins=server.reissue == "join",
        )
        if heard is not None:
            call.listeners.append(heard)
        try:
            with request.waiting(call):
                if not may_be_task:
                    why = "request cancelled by the client"
                    return await calls.complete(call, why, lambda: request.stays)
                request.can_go_on(lambda: calls.promote(call))
                outcome = await calls.wait(
                    call, patience, request.move_on_after, lambda: request.stays
                )
                return tasks.created(outcome) if isinstance(outcome, Task) else outcome
        except ToolError:
            if call.refusal is not None:
                raise call.refusal from None
            raise
        finally:
            call.listeners.clear()

    async def _send(self, call: Call) -> Result:
        """In a task of its own, which may outlive this request."""
        working_for.set(call.id)
        forwarded, calls = self._forwarded, self._forwarded.front.session.calls

        def heard(said: Params) -> None:
            calls.progressed(call, said)

        async def exchange(client: Client) -> Result:
            tool = await self._listed(client, call.tool)
            calls.sent(call)
            try:
                if (
                    client.negotiated.has_tasks
                    and must_be_task(tool)
                    and "task" not in forwarded.asked.params
                ):
                    params = {"name": call.tool, "arguments": call.args}
                    return await call_as_task(client, params, call.scope.deadline, heard)
                result = await forwarded.send(client, heard, tool, lambda: call.task is None)
                return result if forwarded.has_tasks else await to_its_end(client, result)
            except NotRun:
                calls.returned(call)
                raise

        try:
            # Whoever fetches it as a task's has it as anybody of that era has it.
            return forwarded.told(await forwarded.ask(exchange))
        except MCPError as error:
            call.refusal = error.with_traceback(None)  # which leads to all that was asked
            raise as_tool_error(error, forwarded.backend.server.name, "tools/call") from None

    async def _listed(self, client: Client, name: str) -> Mapping[str, Any] | None:
        """The tool's entry, where it decides how the call is made."""
        backend = self._forwarded.backend
        needs_headers = client.negotiated.is_modern and backend.server.transport != "stdio"
        if not (needs_headers or client.negotiated.has_tasks):
            return None
        tools = await backend.catalog.last("tools", client)
        return next((tool for tool in tools if tool.get("name") == name), None)
