"""The view ``native``: what it answers.

A call of a server's tool is a call as `execute_tool` makes it; some tools of ours stand beside
those of the servers. Errors of what is no call are the protocol's: see `errors`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import attrs
from mcp import MCPError
from mcp_types import CLIENT_CAPABILITIES_META_KEY, CLIENT_INFO_META_KEY, INVALID_PARAMS

from ....backend.backend import Backend
from ....backend.catalogue.catalog import Entries, List
from ....backend.connections.turns import Turns
from ....config import OUR_NAME
from ....config.bounds import MAX_LIST_BYTES
from ....errors import NotFound, ToolError
from ....model.json.problems import did_you_mean
from ....model.json.weight import weigh
from ....model.native.places import in_update
from ....model.native.uris import native_uri
from ....session.session import Session
from ....tools import BESIDE
from ....tools.common.asking import ask
from ....tools.common.following import check_shown, subscribe, unsubscribe
from ....tools.common.registry import Request, Toolbox
from ....tools.common.response import Reply
from ....tools.execution import ExecuteTool, execute
from ....tools.prompts import check_prompt_shown
from ....tools.results.preview import answered, native_result
from ...asking.interrupted import continued
from ...lists import enveloped
from ...progress import Progress
from ..face import Incoming, Result
from ..ours import run_tool, told
from .errors import as_answer
from .lists import UI, lists_of
from .owners import prompt_of, resource_of, tool_of

if TYPE_CHECKING:
    from ...mcp import Front

T = TypeVar("T")

LISTS: Mapping[str, tuple[str, List]] = {
    "tools/list": ("tools", "tools"),
    "resources/list": ("resources", "resources"),
    "resources/templates/list": ("resourceTemplates", "resource_templates"),
    "prompts/list": ("prompts", "prompts"),
}
"""By method: under which key they are in the result, and which list of servers it is."""

CAPABILITIES: Mapping[str, Any] = {
    "tools": {"listChanged": True},
    "resources": {"subscribe": True, "listChanged": True},
    "prompts": {"listChanged": True},
    "completions": {},
}

NOT_PASSED_ON = ("io.modelcontextprotocol/tasks",)
"""Extensions by which who is between would have to do something."""

NO_CACHE = {"ttlMs": 0, "cacheScope": "private"}
"""Of lists that may be others a moment later."""


@attrs.frozen(eq=False)
class NativeFace:
    beside: Toolbox = BESIDE
    server: None = attrs.field(default=None, init=False)

    def at_once(self, method: str, version: str) -> str | None:
        return None

    async def greet(self, front: Front, said: Result, version: str) -> Result:
        session = front.session
        session.extensions = _passed_on(front.capabilities)
        await lists_of(session).greeted()
        extensions: dict[str, Any] = {}
        for backend in session.backends.values():
            if backend.agreed is not None:
                extensions = {**_passed_on(backend.agreed.capabilities), **extensions}
        capabilities = {**said.get("capabilities", {}), **CAPABILITIES}
        if extensions:
            capabilities["extensions"] = extensions
        instructions = self.beside.instructions(session)
        return {**said, "capabilities": capabilities, "instructions": instructions}

    async def answer(self, front: Front, asked: Incoming) -> Result | None:
        asked.entry.request.is_native = True
        if asked.is_modern:
            front.session.extensions = _passed_on(asked.meta.get(CLIENT_CAPABILITIES_META_KEY))
        match asked.method:
            case "tools/call":
                return await self._call(front, asked)
            case "resources/read" if _text(asked, "uri").startswith(f"{OUR_NAME}:"):
                return None
        work = _WORK.get(asked.method)
        if work is None and asked.method not in LISTS:
            return None
        result = await _answered(front, asked, work or partial(_listed, self))
        return enveloped(asked.version, result)

    async def schema_of(self, session: Session, tool: str) -> Mapping[str, Any] | None:
        for each in self.beside.tools:
            if each.name == tool:
                return each.schema
        chosen = lists_of(session).chosen
        for native in () if chosen is None else chosen.listed:
            if native.name == tool:
                schema = native.tool.get("inputSchema")
                return schema if isinstance(schema, Mapping) else None
        return None

    async def _call(self, front: Front, asked: Incoming) -> Result:
        name, arguments = asked.call_params()
        front.remember_client(asked.meta.get(CLIENT_INFO_META_KEY))
        ours = self.beside.find(name)
        if ours is not None:
            work: Callable[[Request], Awaitable[Reply]]
            work = partial(answered, ours, arguments=arguments)
        else:
            work = partial(self._execute, name, arguments)
        return await told(front, asked, await run_tool(front, name, asked, work))

    async def _execute(self, native: str, arguments: Mapping[str, Any], request: Request) -> Reply:
        found = await tool_of(request, native)
        if found is None:
            names = [tool.name for tool in self.beside.tools]
            chosen = lists_of(request.session).chosen
            names += [] if chosen is None else [each.name for each in chosen.listed]
            said = f"Unknown tool: {native}{did_you_mean(native, names)}"
            raise MCPError(
                code=INVALID_PARAMS, message=f"{said}; list_tools finds those of servers"
            )
        server, tool = found
        return await execute(request, ExecuteTool(server, tool, arguments))


def _passed_on(capabilities: Any) -> dict[str, Any]:
    """The extensions that are between a client and a server, and nothing to us."""
    said = capabilities.get("extensions") if isinstance(capabilities, Mapping) else None
    extensions = said if isinstance(said, Mapping) else {}
    return {name: value for name, value in extensions.items() if name not in NOT_PASSED_ON}


async def _answered(
    front: Front,
    asked: Incoming,
    work: Callable[[Front, Incoming, Request], Awaitable[Result]],
) -> Result:
    """What *work* comes to, within what one request may take and for as long as the session is."""
    request = asked.entry.request
    request.answer_ms = front.client.answer_ms(front.session.config.limits)
    try:
        with front.session.while_open(), front.session.calls.place():
            if (token := asked.progress_token) is None:
                return await continued(front, asked, partial(work, front, asked))
            progress = Progress(asked.report, token, request.missing)
            request.on_progress = progress.heard
            return await progress.report_while(
                partial(continued, front, asked, partial(work, front, asked))
            )
    except ToolError as error:
        raise as_answer(error, asked.method, is_modern=asked.is_modern) from None


async def _listed(face: NativeFace, front: Front, asked: Incoming, request: Request) -> Result:
    key, name = LISTS[asked.method]
    entries = await entries_of(face, front, asked, name)
    page = await _page(key, entries, asked.params.get("cursor"))
    return {**page, **NO_CACHE} if asked.is_modern else page


async def entries_of(face: NativeFace, front: Front, asked: Incoming, name: List) -> Entries:
    """The whole list, as this client may see it."""
    lists, request = lists_of(front.session), asked.entry.request
    if name != "tools":
        return await lists.others(request, name)
    tools = await lists.tools(request, for_apps=front.declares(asked, UI))
    return [*tools, *(tool.to_json() for tool in face.beside.tools)]


async def _page(key: str, entries: Entries, cursor: Any) -> Result:
    """As many as there is room for, and one in any case."""
    start = 0
    if cursor is not None:
        if not isinstance(cursor, str) or not cursor.isascii() or not cursor.isdigit():
            raise MCPError(code=INVALID_PARAMS, message="not a cursor of this list")
        start = int(cursor[:9])
    shown: Entries = []
    room = MAX_LIST_BYTES
    async with Turns() as turns:
        for entry in entries[start:]:
            if turns.is_over:
                await turns.next()
            room -= weigh(entry)
            if room < 0 and shown:
                break
            shown.append(entry)
    end = start + len(shown)
    more = {"nextCursor": str(end)} if end < len(entries) else {}
    return {key: shown, **more}


async def _read(front: Front, asked: Incoming, request: Request) -> Result:
    backend, uri = resource_of(request, _text(asked, "uri"))
    check_shown(backend, uri)
    return await _asked(request, backend, "resources/read", {"uri": uri})


async def _get_prompt(front: Front, asked: Incoming, request: Request) -> Result:
    backend, name = await _prompt(request, _text(asked, "name"))
    params: dict[str, Any] = {"name": name}
    if (arguments := asked.params.get("arguments")) is not None:
        params["arguments"] = arguments
    return await _asked(request, backend, "prompts/get", params)


async def _complete(front: Front, asked: Incoming, request: Request) -> Result:
    match asked.params.get("ref"):
        case {"type": "ref/prompt", "name": str(native), **others}:
            backend, name = await _prompt(request, native)
            ref = {**others, "type": "ref/prompt", "name": name}
        case {"type": "ref/resource", "uri": str(native), **others}:
            backend, uri = resource_of(request, native)
            ref = {**others, "type": "ref/resource", "uri": uri}
        case _:
            said = "expected a ref to a prompt or a resource template"
            raise MCPError(code=INVALID_PARAMS, message=said)
    params = {key: asked.params[key] for key in ("argument", "context") if key in asked.params}
    return await ask(request, backend, "completion/complete", {"ref": ref, **params})


async def _subscribe(front: Front, asked: Incoming, request: Request) -> Result:
    backend, uri = resource_of(request, _text(asked, "uri"))
    await subscribe(request, backend, uri)
    return {}


async def _unsubscribe(front: Front, asked: Incoming, request: Request) -> Result:
    backend, uri = resource_of(request, _text(asked, "uri"))
    await unsubscribe(request, backend, uri)
    return {}


_WORK: Mapping[str, Callable[[Front, Incoming, Request], Awaitable[Result]]] = {
    "resources/read": _read,
    "resources/subscribe": _subscribe,
    "resources/unsubscribe": _unsubscribe,
    "prompts/get": _get_prompt,
    "completion/complete": _complete,
}


async def _prompt(request: Request, native: str) -> tuple[Backend, str]:
    found = await prompt_of(request, native)
    if found is None:
        raise NotFound(f"no prompt {native!r}; prompts/list shows what there is")
    server, name = found
    backend = request.session.backend(server)
    check_prompt_shown(backend, name)
    return backend, name


async def _asked(
    request: Request, backend: Backend, method: str, params: Mapping[str, Any]
) -> Result:
    """What that server answers, in native words."""
    server = backend.server.name
    try:
        return await native_result(server, await ask(request, backend, method, params))
    except ToolError as error:
        details = dict(error.details or {})
        if isinstance(data := details.get("data"), dict):
            details["data"] = in_update(data, partial(native_uri, server))
            raise type(error)(error.message, details) from None
        raise


def _text(asked: Incoming, key: str) -> str:
    said = asked.params.get(key)
    if not isinstance(said, str):
        raise MCPError(code=INVALID_PARAMS, message=f"expected {key}, a string")
    return said
