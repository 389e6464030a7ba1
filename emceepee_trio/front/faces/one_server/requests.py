"""Requests of a client that is shown one server, as that server is shown.

Lists, resources, prompts, completion and whatever else there may be are forwarded and waited for,
within what the entry of the server allows. What a client follows, or wants logged, is also kept:
the server is told again when it has another connection.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import attrs
import outcome
from mcp import MCPError
from mcp_types import INVALID_PARAMS

from ....backend.backend import Backend
from ....backend.catalogue.catalog import SOURCES, Entries, List
from ....model.protocol.eras import NOT_FOUND
from ....model.protocol.levels import LEVELS
from ....tools.common.following import subscribe, unsubscribe
from ... import tasks
from ...asking.interrupted import continued
from ...news import News
from ..face import Incoming, Result
from .calls import ForwardedCall
from .forwarded import Forwarded, connected
from .listening import listen
from .news import progress_to, told_before_the_answer

if TYPE_CHECKING:
    from ...mcp import Front

LISTS: Mapping[str, List] = {source.method: name for name, source in SOURCES.items()}

INTERRUPTED = ("tools/call", "prompts/get", "resources/read")
"""Requests that a question may interrupt."""


@attrs.define
class OneServerRequest:
    """One request, and what answers it."""

    front: Front
    asked: Incoming
    backend: Backend
    _forwarded: Forwarded = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._forwarded = Forwarded(self.front, self.asked, self.backend)

    async def answer(self) -> Result:
        """The finished result.

        Raises:
            MCPError: the error that answers it.
            ToolError: so does this.
        """
        front, asked, forwarded = self.front, self.asked, self._forwarded
        if not forwarded.has_tasks and (said := await tasks.answer(front, asked)) is not None:
            return said
        match asked.method:
            case "subscriptions/listen":
                return forwarded.told(await self._listen())
            case "resources/subscribe":
                await subscribe(asked.entry.request, self.backend, self._uri())
                return {}
            case "resources/unsubscribe":
                await unsubscribe(asked.entry.request, self.backend, self._uri())
                return {}
            case "logging/setLevel":
                return await self._set_log_level()
        async with told_before_the_answer(front, asked, self.backend.server.name) as news:
            result = await outcome.acapture(self._in_rounds, news)
            if news is not None:
                await news.sent()
        said = forwarded.told(result.unwrap())
        if asked.is_modern and forwarded.is_to_modern and asked.method in INTERRUPTED:
            return await front.passed_on.told(asked, forwarded.before, said)
        return said

    async def _listen(self) -> Result:
        if self.backend.agreed is None:
            await connected(self.backend)
        agreed = self._forwarded.agreed
        assert agreed is not None
        return await listen(
            self.front,
            self.asked,
            self.backend,
            agreed.capabilities,
            are_between=self._forwarded.has_tasks,
        )

    def _uri(self) -> str:
        uri = self.asked.params.get("uri")
        if not isinstance(uri, str):
            raise MCPError(code=INVALID_PARAMS, message="expected the uri of a resource")
        return uri

    async def _set_log_level(self) -> Result:
        level = self.asked.params.get("level")
        if level not in LEVELS:
            raise MCPError(code=INVALID_PARAMS, message=f"expected a level of {', '.join(LEVELS)}")
        client = await connected(self.backend)
        if client.negotiated.is_modern:
            client.log_level = level  # goes with every request from now on
            result: Result = {}
        else:
            result = await self._forwarded.send(client)
        self.backend.preferences.log_level = level
        return result

    async def _in_rounds(self, news: News | None) -> Mapping[str, Any]:
        """Of a server of the other era a client of this one is asked in rounds of ours."""
        if self.asked.is_modern and self.asked.method in INTERRUPTED:
            agreed = self.backend.agreed or (await connected(self.backend)).negotiated
            if not agreed.is_modern:
                work = partial(self._result, news)
                return await continued(self.front, self.asked, lambda _: work())
            self._forwarded.before = await self.front.passed_on.again(self.asked)
        return await self._result(news)

    async def _result(self, news: News | None) -> Mapping[str, Any]:
        asked, forwarded = self.asked, self._forwarded
        heard = progress_to(news, asked)
        if asked.method == "tools/call":
            return await ForwardedCall(forwarded).answer(heard)
        name = LISTS.get(asked.method)
        # How long a list holds is a modern server's to say, to who hears it.
        is_told_whole = asked.is_modern and forwarded.is_to_modern
        known = None if name is None or is_told_whole else self.backend.remembered(name)
        if name is not None and known is not None:
            # A server that nobody has needed yet need not start for it.
            if self.backend.server.transport != "stdio":
                self.front.stream(asked.id, "begins")  # as most of them do
            return {SOURCES[name].key: known.entries}
        self._check_shown()
        with self.front.session.calls.place(), asked.entry.request.working():
            result = await forwarded.ask(lambda client: forwarded.send(client, heard))
        return result if name is None else self._only_shown(name, result)

    def _check_shown(self) -> None:
        catalog, params = self.backend.catalog, self.asked.params
        name, uri = params.get("name"), params.get("uri")
        if self.asked.method == "prompts/get" and catalog.hides_prompt(str(name)):
            raise MCPError(code=INVALID_PARAMS, message=f"Unknown prompt: {name}")
        if self.asked.method == "resources/read" and catalog.hides_resource(str(uri)):
            code = INVALID_PARAMS if self.asked.is_modern else NOT_FOUND
            raise MCPError(code=code, message=f"Unknown resource: {uri}", data={"uri": uri})

    def _only_shown(self, name: List, result: Result) -> Result:
        key, entries = SOURCES[name].key, result.get(SOURCES[name].key)
        if not isinstance(entries, list) or not self.backend.catalog.hides_something:
            return result
        shown: Entries = [
            entry
            for entry in entries
            if isinstance(entry, dict) and self.backend.catalog.shows(name, entry)
        ]
        return {**result, key: shown}
