"""Requests of the view ``native`` that are no calls: lists, resources, prompts and completion.

Errors are the protocol's; see `errors`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import attrs
from mcp import MCPError
from mcp_types import INVALID_PARAMS, METHOD_NOT_FOUND

from ....backend.backend import Backend
from ....backend.catalogue.catalog import SOURCES, Entries
from ....backend.connections.turns import Turns
from ....config.bounds import MAX_LIST_BYTES
from ....errors import NotFound, ToolError
from ....model.json.weight import weigh
from ....model.native.places import in_update
from ....model.native.uris import native_uri
from ....model.protocol.apps import UI
from ....tools.common.asking import ask
from ....tools.common.following import check_shown, subscribe, unsubscribe
from ....tools.common.registry import Request
from ....tools.prompts import check_prompt_shown
from ....tools.results.shown import native_result
from ...asking.interrupted import continued
from ...progress import Progress
from ..face import Incoming, Result, extensions_of
from .errors import as_answer, as_it_came
from .listening import listen
from .lists import lists_of
from .news import readings_of
from .owners import prompt_of, resource_of
from .readings import digest_of

if TYPE_CHECKING:
    from ...mcp import Front


@attrs.frozen
class NativeRequest:
    """One request, and what answers it."""

    front: Front
    asked: Incoming
    request: Request
    """As the tools that do the work know it."""

    async def answer(self, work: Callable[[NativeRequest], Awaitable[Result]]) -> Result:
        """What *work* comes to, within what one request may take."""
        front, asked, request = self.front, self.asked, self.asked.entry.request

        async def one(request: Request) -> Result:
            return await work(attrs.evolve(self, request=request))

        # Of what else there is no server asks anything.
        is_asked = asked.method in ("resources/read", "prompts/get")
        do = partial(continued, front, asked, one) if is_asked else partial(one, request)
        request.answer_ms = front.client.answer_ms(front.session.config.limits)
        front.session.presence.used = True
        try:
            with front.session.while_open():
                if (token := asked.progress_token) is None:
                    return await do()
                progress = Progress(asked.report, token, request.missing)
                request.on_progress = progress.heard
                return await progress.report_while(do)
        except ToolError as error:
            raise as_answer(error, asked.method, is_modern=asked.is_modern) from None

    async def list(self) -> Result:
        method = self.asked.method
        with self.front.session.calls.place():
            entries = await self.look(method)
        cursor = self.asked.params.get("cursor")
        if cursor is None:
            readings_of(self.front).read(method, await digest_of(entries))
        return await _page(KEYS[method], entries, cursor)

    async def look(self, method: str) -> Entries:
        """A whole list, as its client may see it."""
        extensions = extensions_of(self.front.capabilities_of(self.asked))
        lists = lists_of(self.front.session)
        return await lists.whole(self.request, method, for_apps=UI in extensions)

    async def read(self) -> Result:
        backend, uri = self._resource()
        check_shown(backend, uri)
        return await self._ask(backend, {"uri": uri})

    async def prompt(self) -> Result:
        backend, name = await self._prompt(self.text("name"))
        given = self.asked.params.get("arguments")
        arguments = {} if given is None else {"arguments": given}
        return await self._ask(backend, {"name": name, **arguments})

    async def complete(self) -> Result:
        match self.asked.params.get("ref"):
            case {"type": "ref/prompt", "name": str(native), **others}:
                backend, name = await self._prompt(native)
                ref = {**others, "type": "ref/prompt", "name": name}
            case {"type": "ref/resource", "uri": str(native), **others}:
                backend, uri = resource_of(self.request, native)
                ref = {**others, "type": "ref/resource", "uri": uri}
            case _:
                said = "expected a ref to a prompt or a resource template"
                raise MCPError(code=INVALID_PARAMS, message=said)
        given = self.asked.params
        params = {key: given[key] for key in ("argument", "context") if key in given}
        return await self._ask(backend, {"ref": ref, **params})

    async def subscribe(self) -> Result:
        followed = self._followed()
        backend, uri = self._resource()
        is_new = (backend.server.name, uri) not in followed
        # Before, so that no change is missed that comes with the answer.
        followed.add((backend.server.name, uri))
        try:
            with self.front.session.calls.place():
                await subscribe(self.request, backend, uri)
        except BaseException:
            if is_new:
                followed.discard((backend.server.name, uri))
            raise
        return {}

    async def unsubscribe(self) -> Result:
        followed = self._followed()
        backend, uri = self._resource()
        followed.discard((backend.server.name, uri))
        with self.front.session.calls.place():
            await unsubscribe(self.request, backend, uri)
        return {}

    async def listen(self) -> Result:
        if not self.asked.is_modern:
            raise self._unknown()
        return await listen(self.front, self.asked, self.look)

    def _followed(self) -> set[tuple[str, str]]:
        """By this connection; in the modern era, which has none, streams follow."""
        changes = self.front.changes
        if changes is None:
            raise self._unknown()
        return changes.followed

    def _unknown(self) -> MCPError:
        return MCPError(code=METHOD_NOT_FOUND, message="Method not found", data=self.asked.method)

    def _resource(self) -> tuple[Backend, str]:
        return resource_of(self.request, self.text("uri"))

    async def _prompt(self, native: str) -> tuple[Backend, str]:
        found = await prompt_of(self.request, native)
        if found is None:
            raise NotFound(f"no prompt {native!r}; prompts/list shows what there is")
        server, name = found
        backend = self.front.session.backend(server)
        check_prompt_shown(backend, name)
        return backend, name

    async def _ask(self, backend: Backend, params: Mapping[str, Any]) -> Result:
        """What that server answers, in native words."""
        server = backend.server.name
        try:
            with self.front.session.calls.place():
                result = await ask(self.request, backend, self.asked.method, params)
        except ToolError as error:
            details = dict(error.details or {})
            if isinstance(data := details.get("data"), dict):
                details["data"] = in_update(data, partial(native_uri, server))
            if backend.agreed is not None and backend.agreed.is_modern == self.asked.is_modern:
                raise as_it_came(details) or type(error)(error.message, details) from None
            raise type(error)(error.message, details) from None
        return await native_result(server, result)

    def text(self, key: str) -> str:
        said = self.asked.params.get(key)
        if not isinstance(said, str):
            raise MCPError(code=INVALID_PARAMS, message=f"expected {key}, a string")
        return said


KEYS: Mapping[str, str] = {source.method: source.key for source in SOURCES.values()}
"""Under which the entries of a list are, by its method."""

WORK: Mapping[str, Callable[[NativeRequest], Awaitable[Result]]] = {
    **dict.fromkeys(KEYS, NativeRequest.list),
    "resources/read": NativeRequest.read,
    "resources/subscribe": NativeRequest.subscribe,
    "resources/unsubscribe": NativeRequest.unsubscribe,
    "prompts/get": NativeRequest.prompt,
    "completion/complete": NativeRequest.complete,
    "subscriptions/listen": NativeRequest.listen,
}


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
    return {key: shown} | ({"nextCursor": str(end)} if end < len(entries) else {})
