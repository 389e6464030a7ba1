"""What is shown of an answer: all of it, or, where it is too long to be read, a preview."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import attrs

from ... import logs
from ...backend.connections.turns import Turns
from ...config import OUR_NAME
from ...config.bounds import KIB, MAX_PAGE_BYTES
from ...errors import ToolError
from ...model.json.long.partly import Partly, unfolded
from ...model.json.weight import is_more_than
from ...model.native.places import in_result
from ...model.native.uris import native_uri
from ...model.wire import dumps
from ..common.registry import Request, Tool
from ..common.response import Reply, Result, error_reply, text
from .preview import Preview, are_long


def inline_bytes(request: Request, server: str) -> int:
    """How long answers of that server may be that are shown whole; 0: any."""
    if not request.shortens:
        return 0
    session = request.session
    backend = session.backends.get(server)
    own = backend.server.results.inline_bytes if backend is not None else None
    return session.config.results.inline_bytes if own is None else own


async def shown(request: Request, server: str, result: Result) -> Result:
    """A *result* of that server as its client sees it, whole or with previews."""
    if request.is_native:
        result = await native_result(server, result)
    most = inline_bytes(request, server)
    content, structured = result.get("content"), result.get("structuredContent")
    blocks = content if isinstance(content, list) else []
    if not isinstance(content, list) and most and is_more_than(content, most):
        blocks = [content]  # whatever that is
    if most and (are_long(blocks, most) or is_more_than(structured, most)):
        try:
            result = await Preview(request.session.results, most).of(result, blocks)
        except OSError as error:
            _not_kept(request, error)
    return await whole(result)


async def whole(result: Result) -> Result:
    """The same without long texts, which nobody knows beyond this."""
    if type(result) is dict:
        return result
    async with Turns() as turns:
        return dict(await turns.through(unfolded(result)))


async def native_result(server: str, result: Result) -> Result:
    """The same with URIs that say whose they are."""
    async with Turns() as turns:
        # Of the same kind: there may be long texts in it.
        return type(result)(await turns.through(in_result(result, partial(native_uri, server))))


async def shown_json(request: Request, server: str, value: Result) -> Result | None:
    """The same of what we would write as JSON; None if it is short."""
    most = inline_bytes(request, server)
    if not most or not is_more_than(value, most):
        return None
    return await shown(request, server, Partly(content=[], structuredContent=dict(value)))


async def answered(tool: Tool, request: Request, arguments: Mapping[str, Any]) -> Reply:
    """What a tool of ours says, and of what is too long for any answer a preview.

    What servers answer has been looked at; events have a bound of their own.
    """
    reply = await tool.call(request, arguments)
    most = inline_bytes(request, OUR_NAME)
    most = max(most, MAX_PAGE_BYTES) if most else 0
    content: list[Any] = reply.result.get("content", [])
    if not most or reply.claim is not None or reply.of is not None or not are_long(content, most):
        return reply
    try:
        result = await Preview(request.session.results, most).of(reply.result, content)
    except OSError as error:
        _not_kept(request, error)
        return reply
    return attrs.evolve(reply, result=result, full=())


def _not_kept(request: Request, error: OSError) -> None:
    why = error.strerror or str(error)
    logs.write("warn", "result_not_kept", session=request.session.id, error=why)


async def shown_error(request: Request, error: ToolError) -> Reply:
    """An error, and of long details of it a preview."""
    most = request.session.config.results.inline_bytes if request.shortens else 0
    details = dict(error.details or {})
    if not most or not is_more_than(details, most):
        return error_reply(error)
    try:
        about = await Preview(request.session.results, most).of_details(details)
    except OSError:
        return error_reply(error)
    short = {key: value for key, value in details.items() if not is_more_than(value, KIB)}
    said = error.to_json()["error"] | {"details": {**short, "long": about}}
    return Reply({"content": [text(dumps({"error": said}))], "isError": True})
