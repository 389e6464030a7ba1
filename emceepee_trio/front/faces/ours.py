"""The views of our own tools: which of them are shown, how they are called and answered."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import cache, partial
from typing import TYPE_CHECKING

import attrs
import trio
from mcp import MCPError
from mcp_types import CLIENT_INFO_META_KEY, INVALID_PARAMS, JSONRPCResponse
from mcp_types.methods import serialize_server_result

from ...errors import ToolError, UnknownTool
from ...model.wire import dumps, loads
from ...session.session import Session
from ...tools.common.registry import Request, Toolbox
from ...tools.common.response import Reply, finish
from ...tools.results.shown import answered, shown_error
from ...waits.firewall import Firewall
from ...web.wire import dump
from .. import tasks
from ..asking.interrupted import continued
from ..asking.rounds import InputRequired
from ..lists import TTL_MS, enveloped
from ..progress import Progress
from .face import Incoming, Result

if TYPE_CHECKING:
    from ..mcp import Front


@attrs.frozen(eq=False)
class OurFace:
    view: str
    toolbox: Toolbox
    server: None = attrs.field(default=None, init=False)

    def at_once(self, method: str, version: str) -> str | None:
        return _tools_listed(self.toolbox, version) if method == "tools/list" else None

    async def greet(self, front: Front, said: Result, version: str) -> Result:
        return {**said, "instructions": self.toolbox.instructions(front.session)}

    async def answer(self, front: Front, asked: Incoming) -> Result | None:
        match asked.method:
            case "tools/call":
                return await call_tool(front, asked, self.toolbox)
            case "tools/list":
                listed: Result = loads(_tools_listed(self.toolbox, asked.version))
                return listed
            case "subscriptions/listen" if asked.is_modern:
                # A URI alone does not say which server it is of, and our own lists never change.
                return await tasks.listen(front, asked)
        return await tasks.answer(front, asked)

    async def schema_of(self, session: Session, tool: str) -> None:
        """No argument of ours is also in a header, so there is nothing to compare."""


CACHED = {"ttlMs": TTL_MS, "cacheScope": "private"}


@cache
def _tools_listed(toolbox: Toolbox, version: str) -> str:
    """The result of tools/list as it goes out."""
    tools = {"tools": [tool.to_json() for tool in toolbox.tools], **CACHED}
    return dumps(serialize_server_result("tools/list", version, enveloped(version, tools)))


async def call_tool(front: Front, asked: Incoming, toolbox: Toolbox) -> Result:
    """The answer to a tools/call of a tool of ours."""
    name, arguments = asked.call_params()
    front.remember_client(asked.meta.get(CLIENT_INFO_META_KEY))
    try:
        tool = toolbox.get(name)
    except UnknownTool as error:
        raise MCPError(code=INVALID_PARAMS, message=str(error)) from None
    work = partial(answered, tool, arguments=arguments)
    reply = await run_tool(front, name, asked, work, by_call=tool.by_call)
    return await told(front, asked, reply)


async def told(front: Front, asked: Incoming, reply: Reply) -> Result:
    """The whole result, with the context blocks, whose delivery its transport now has."""
    if reply.task is not None and tasks.are_declared(front, asked) and not asked.entry.cancelled:
        return {**enveloped(asked.version, {}), **tasks.created(reply.task)}
    # No checkpoint from here to the return: the events are taken, and the response that
    # carries them is as good as written, or they are given back.
    ignored = asked.entry.request.ignored
    result, delivery = finish(front.session, reply, ignored, front.client)
    if asked.entry.cancelled:
        # Whoever answers is about to learn it, and will write nothing.
        delivery.give_back()
        await trio.sleep_forever()
    if delivery.is_empty:
        delivery.commit()
    else:
        if reply.claim is None:
            bare = enveloped(asked.version, reply.result)
            delivery.without = lambda: dump(
                JSONRPCResponse(jsonrpc="2.0", id=asked.id, result=bare)
            )
        front.deliver(asked.id, delivery)
    return enveloped(asked.version, result)


EXPECTED = (ToolError, MCPError, InputRequired)
"""What is no bug of a tool."""


async def run_tool(
    front: Front,
    name: str,
    asked: Incoming,
    work: Callable[[Request], Awaitable[Reply]],
    *,
    by_call: bool = False,
) -> Reply:
    """What the *work* of a tool of that name comes to, or why it came to nothing.

    That of one which waits *by a call* alone hears from it that the session ends.
    """
    request = asked.entry.request
    request.answer_ms = front.client.answer_ms(front.session.config.limits)
    request.shortens = not front.client.wants_whole
    request.meta = asked.meta
    fields = {"session": front.session.id, "tool": name}
    try:
        with Firewall("tool_crashed", None, EXPECTED, fields=fields) as wall:
            front.session.check_open()
            if by_call and asked.progress_token is None:
                return await continued(front, asked, work)
            with front.session.while_open():
                if (token := asked.progress_token) is None:
                    return await continued(front, asked, work)
                progress = Progress(asked.report, token, request.missing)
                request.on_progress = progress.heard
                return await progress.report_while(partial(continued, front, asked, work))
    except ToolError as error:
        # Its traceback leads to this frame, as that of what it came of may, and this frame to all
        # that was asked: nobody would free that before garbage is collected, while all wait.
        failure = error.with_traceback(None)
        failure.__context__ = None
    else:
        raise front.bug(wall)
    return await shown_error(request, failure)
