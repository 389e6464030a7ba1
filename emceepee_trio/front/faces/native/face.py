"""The view ``native``: what it answers, and what it says it can.

A call of a server's tool is a call as `execute_tool` makes it; some tools of ours stand beside
those of the servers.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import attrs
from mcp import MCPError
from mcp_types import CLIENT_INFO_META_KEY, INVALID_PARAMS
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from ....config import OUR_NAME
from ....model.json.problems import did_you_mean
from ....model.protocol.eras import result_for
from ....session.session import Session
from ....tools import BESIDE
from ....tools.common.registry import Request
from ....tools.common.response import Reply
from ....tools.execution import ExecuteTool, execute
from ....tools.results.shown import answered
from ... import tasks
from ...lists import SERVER_INFO
from ..face import Incoming, Result, extensions_of
from ..ours import run_tool, told
from .lists import lists_of
from .news import begin_to_tell
from .owners import tool_of
from .requests import WORK, NativeRequest

if TYPE_CHECKING:
    from ...mcp import Front

CAPABILITIES: Mapping[str, Any] = {
    "tools": {"listChanged": True},
    "resources": {"subscribe": True, "listChanged": True},
    "prompts": {"listChanged": True},
    "completions": {},
}
"""Whatever the servers can, of which more may come."""


@attrs.frozen(eq=False)
class NativeFace:
    view: str = attrs.field(default="native", init=False)
    server: None = attrs.field(default=None, init=False)

    def at_once(self, method: str, version: str) -> str | None:
        return None

    async def greet(self, front: Front, said: Result, version: str) -> Result:
        session = front.session
        session.extensions = extensions_of(front.capabilities)
        await lists_of(session).greeted()
        extensions: dict[str, Any] = {}
        for backend in session.backends.values():
            if backend.agreed is not None:
                extensions = {**extensions_of(backend.agreed.capabilities), **extensions}
        capabilities = {**said.get("capabilities", {}), **CAPABILITIES}
        if extensions:
            capabilities["extensions"] = extensions
        if version not in MODERN_PROTOCOL_VERSIONS:
            begin_to_tell(front, Request(session, front.manager))
        return {**said, "capabilities": capabilities, "instructions": BESIDE.instructions(session)}

    async def answer(self, front: Front, asked: Incoming) -> Result | None:
        asked.entry.request.is_native = True
        if asked.is_modern:
            front.session.extensions = extensions_of(front.capabilities_of(asked))
        if asked.method == "tools/call":
            return self._for_era(asked, await self._call(front, asked))
        if (said := await tasks.answer(front, asked)) is not None:
            return said
        request = NativeRequest(front, asked, asked.entry.request)
        work = WORK.get(asked.method)
        is_ours = asked.method == "resources/read" and request.text("uri").startswith(OURS)
        if work is None or is_ours:
            return None
        return self._for_era(asked, await request.answer(work))

    async def schema_of(self, session: Session, tool: str) -> Mapping[str, Any] | None:
        if BESIDE.find(tool) is not None:
            return None  # no argument of ours is in a header, either
        chosen = lists_of(session).chosen
        for native in () if chosen is None else chosen.listed:
            if native.name == tool:
                schema = native.tool.get("inputSchema")
                return schema if isinstance(schema, Mapping) else None
        return None

    def _for_era(self, asked: Incoming, result: Result) -> Result:
        return result_for(asked.method, result, SERVER_INFO, is_modern=asked.is_modern)

    async def _call(self, front: Front, asked: Incoming) -> Result:
        name, arguments = asked.call_params()
        front.remember_client(asked.meta.get(CLIENT_INFO_META_KEY))
        ours = BESIDE.find(name)
        if ours is not None:
            work: Callable[[Request], Awaitable[Reply]]
            work = partial(answered, ours, arguments=arguments)
        else:
            work = partial(self._execute, name, arguments)
        return await told(front, asked, await run_tool(front, name, asked, work))

    async def _execute(self, native: str, arguments: Mapping[str, Any], request: Request) -> Reply:
        found = await tool_of(request, native)
        if found is None:
            names = [tool.name for tool in BESIDE.tools]
            chosen = lists_of(request.session).chosen
            names += [] if chosen is None else [each.name for each in chosen.listed]
            said = f"Unknown tool: {native}{did_you_mean(native, names)}"
            raise MCPError(
                code=INVALID_PARAMS, message=f"{said}; list_tools finds those of servers"
            )
        server, tool = found
        return await execute(request, ExecuteTool(server, tool, arguments))


OURS = f"{OUR_NAME}:"
"""What URIs of our own resources begin with."""
