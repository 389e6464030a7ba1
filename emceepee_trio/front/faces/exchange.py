"""One request of a client that is shown one server: what that answers, in the client's words.

A request goes to the server as it came. A call may be sent again by a client that has lost the
stream of its answer, and become a task where its client knows those; all else just waits.
"""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import attrs
import outcome
from mcp import MCPError
from mcp_types import (
    CLIENT_CAPABILITIES_META_KEY,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
)

from ...backend.backend import Backend
from ...backend.catalogue.catalog import SOURCES, Entries, List
from ...backend.connections.callbacks import OnProgress, Params, working_for
from ...backend.connections.client import Client, Negotiated
from ...backend.connections.tasks import call_as_task, must_be_task, to_its_end
from ...backend.connections.witness import NotRun, Unanswered
from ...errors import LimitReached, NotFound, ToolError
from ...model.json.spelling import spell
from ...model.protocol.eras import (
    LOG_LEVEL,
    NOT_FOUND,
    code_for,
    meta_of,
    params_for,
    result_for,
)
from ...model.protocol.levels import LEVELS
from ...session.buffers import LogEntry
from ...session.calls.call import Call, Task
from ...session.questions.question import Kind
from ...tools.common.asking import as_tool_error
from ...tools.common.following import subscribe, unsubscribe
from ...tools.common.pages import with_pages
from ...waits.slices import in_slices
from .. import tasks
from ..asking.interrupted import continued
from ..log_messages import on_its_stream
from ..news import News, log_params
from .face import Incoming, Result
from .listening import listen
from .passed import ANSWERS, STATE, Round

if TYPE_CHECKING:
    from ..mcp import Front

LISTS: Mapping[str, List] = {source.method: name for name, source in SOURCES.items()}

INTERRUPTED = ("tools/call", "prompts/get", "resources/read")
"""Requests that a question may interrupt."""


async def connected(backend: Backend) -> Client:
    try:
        return await backend.connection()
    except ToolError as error:
        raise MCPError(code=INTERNAL_ERROR, message=error.message) from None


def as_mcp_error(error: ToolError, asked: Incoming) -> MCPError:
    """What answers a request that met it."""
    code = INTERNAL_ERROR
    if isinstance(error, LimitReached):
        code = INVALID_REQUEST
    elif isinstance(error, NotFound):
        is_old_resource = asked.method == "resources/read" and not asked.is_modern
        code = NOT_FOUND if is_old_resource else INVALID_PARAMS
    return MCPError(code=code, message=error.message, data=error.to_json()["error"])


@attrs.define
class Forwarded:
    """One request of a client, which the server answers."""

    front: Front
    asked: Incoming
    backend: Backend
    before: Round | None = attrs.field(default=None, init=False)
    """What a modern server has asked the client for the same request."""
    call: Call | None = attrs.field(default=None, init=False)

    async def answer(self) -> Result:
        if not self._has_tasks and (said := await tasks.answer(self.front, self.asked)) is not None:
            return said
        match self.asked.method:
            case "subscriptions/listen":
                if self.backend.agreed is None:
                    await connected(self.backend)
                promised = self._agreed.capabilities
                listened = listen(
                    self.front, self.asked, self.backend, promised, are_between=self._has_tasks
                )
                return self._told(await listened)
            case "resources/subscribe":
                await subscribe(self.asked.entry.request, self.backend, self._uri())
                return {}
            case "resources/unsubscribe":
                await unsubscribe(self.asked.entry.request, self.backend, self._uri())
                return {}
            case "logging/setLevel":
                return await self._set_log_level()
        async with self._news() as news:
            result = await outcome.acapture(self._continued, news)
            if news is not None:
                await news.sent()
        said = self._told(result.unwrap())
        if self.asked.is_modern and self._agreed.is_modern and self.asked.method in INTERRUPTED:
            return await self.front.passed_on.told(self.asked, self.before, said)
        return said

    def _told(self, result: Mapping[str, Any]) -> Result:
        agreed = self._agreed
        if agreed.is_modern and self.asked.is_modern:
            return {"resultType": "complete", **result}  # which some forget
        return result_for(
            self.asked.method, result, agreed.server_info, is_modern=self.asked.is_modern
        )

    @property
    def _agreed(self) -> Negotiated:
        agreed = self.backend.agreed or self.backend.knowledge.negotiated
        assert agreed is not None  # it has answered
        return agreed

    @property
    def _is_modern(self) -> bool:
        """Whether the server is, as far as that is known."""
        agreed = self.backend.agreed or self.backend.knowledge.negotiated
        return agreed is not None and agreed.is_modern

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
            result = await self._send(client)
        self.backend.preferences.log_level = level
        return result

    # Lists, reads, prompts, completion, calls, and whatever else there may be.

    async def _continued(self, news: News | None) -> Mapping[str, Any]:
        """Of a server of the other era a client of this one is asked in rounds of ours."""
        if self.asked.is_modern and self.asked.method in INTERRUPTED:
            agreed = self.backend.agreed or (await connected(self.backend)).negotiated
            if not agreed.is_modern:
                work = partial(self._ask, news)
                return await continued(self.front, self.asked, lambda _: work())
            self.before = await self.front.passed_on.again(self.asked)
        return await self._ask(news)

    async def _ask(self, news: News | None) -> Mapping[str, Any]:
        if self.asked.method == "tools/call":
            return await self._call(news)
        name = LISTS.get(self.asked.method)
        # How long a list holds is a modern server's to say, to who hears it.
        is_told_whole = self.asked.is_modern and self._is_modern
        known = None if name is None or is_told_whole else self.backend.remembered(name)
        if name is not None and known is not None:
            # A server that nobody has needed yet need not start for it.
            if self.backend.server.transport != "stdio":
                self.front.stream(self.asked.id, "begins")  # as most of them do
            return {SOURCES[name].key: known.entries}
        self._check_shown()
        with self.front.session.calls.place(), self.asked.entry.request.working():
            heard = self._on_progress(news)
            result = await self._asked(lambda client: self._send(client, heard))
        return result if name is None else self._only_shown(name, result)

    async def _asked(self, exchange: Callable[[Client], Any]) -> Result:
        try:
            result: Result = await self.backend.ask(exchange)
        except MCPError as error:
            raise self._failure(error) from None
        return result

    def _failure(self, error: MCPError) -> MCPError | ToolError:
        """What the server said; or that it has said nothing, in our words."""
        if isinstance(error, NotRun | Unanswered):
            return as_tool_error(error, self.backend.server.name, self.asked.method)
        said = error.error
        code = code_for(
            self.asked.method, said.code, of_modern=self._is_modern, is_modern=self.asked.is_modern
        )
        return MCPError(code=code, message=said.message, data=said.data)

    async def _send(
        self,
        client: Client,
        heard: OnProgress | None = None,
        tool: Mapping[str, Any] | None = None,
    ) -> Result:
        asked, is_modern = self.asked, client.negotiated.is_modern
        params = params_for(asked.params, is_modern=is_modern)
        if not (is_modern and asked.is_modern):
            ask = partial(
                client.request,
                asked.method,
                params,
                on_progress=heard,
                tool=tool,
                on_stream=partial(self.front.stream, asked.id),
            )
            if not asked.is_modern:
                return await ask()
            # This era knows no such error: what that says is asked, too.
            return await with_pages(self.front.session, client, self.backend.server.name, ask)
        # What the server wants to know is between it and the client: both speak of it alike.
        params.pop(STATE, None)
        if self.before is not None and self.before.state is not None:
            params[STATE] = self.before.state
        return await client.request(
            asked.method,
            params,
            on_progress=heard,
            tool=tool,
            capabilities=self._capabilities(),
            is_there=lambda: self.call is None or self.call.task is None,
        )

    @property
    def _may_be_task(self) -> bool:
        """Whether a call need not be waited for to its end."""
        is_call = self.asked.method == "tools/call" and not self._has_tasks
        return is_call and tasks.are_declared(self.front, self.asked)

    @property
    def _has_tasks(self) -> bool:
        """Whether tasks are between the client and the server, which both know them."""
        agreed = self.backend.agreed or self.backend.knowledge.negotiated
        if not self.asked.is_modern or agreed is None or not agreed.is_modern:
            return False
        extensions = agreed.capabilities.get("extensions")
        return isinstance(extensions, Mapping) and tasks.EXTENSION in extensions

    def _on_progress(self, news: News | None) -> OnProgress | None:
        token = self.asked.progress_token
        if news is None or token is None:
            return None

        def heard(said: Params) -> None:
            news.tell("notifications/progress", {**said, "progressToken": token}, self.asked.id)

        return heard

    async def _call(self, news: News | None) -> Mapping[str, Any]:
        name, arguments = self.asked.call_params()
        if not self.backend.catalog.allows(name):
            raise MCPError(code=INVALID_PARAMS, message=f"Unknown tool: {name}")
        session, server, request = self.front.session, self.backend.server, self.asked.entry.request
        calls, limit = session.calls, server.call_timeout_ms
        patience = tasks.PATIENCE if self._may_be_task else math.inf
        # Of a modern server's round with its client, each is a call of its own.
        others = [v for k, v in self.asked.params.items() if k in (STATE, ANSWERS)]
        round_ = await in_slices(spell(others)) if others else ""
        call = self.call = await request.call(
            (f"as it is {round_}", server.name, name),
            arguments,
            lambda: calls.begin(
                server.name,
                name,
                arguments,
                self._send_call,
                patience=patience,
                ttl=session.config.limits.task_ttl_ms / 1000,
                hard_timeout=math.inf if limit is None else limit / 1000,
            ),
            joins=server.reissue == "join",
        )
        if (heard := self._on_progress(news)) is not None:
            call.listeners.append(heard)
        try:
            with request.waiting(call):
                if not self._may_be_task:
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

    async def _send_call(self, call: Call) -> Result:
        """In a task of its own, which may outlive this request."""
        working_for.set(call.id)
        calls = self.front.session.calls

        def heard(said: Params) -> None:
            calls.progressed(call, said)

        async def exchange(client: Client) -> Result:
            tool = await self._listed(client, call.tool)
            calls.sent(call)
            try:
                if (
                    client.negotiated.has_tasks
                    and must_be_task(tool)
                    and "task" not in self.asked.params
                ):
                    params = {"name": call.tool, "arguments": call.args}
                    return await call_as_task(client, params, call.scope.deadline, heard)
                result = await self._send(client, heard, tool)
                return result if self._has_tasks else await to_its_end(client, result)
            except NotRun:
                calls.returned(call)
                raise

        try:
            # Whoever fetches it as a task's has it as anybody of that era has it.
            return self._told(await self._asked(exchange))
        except MCPError as error:
            call.refusal = error.with_traceback(None)  # which leads to all that was asked
            raise as_tool_error(error, self.backend.server.name, "tools/call") from None

    async def _listed(self, client: Client, name: str) -> Mapping[str, Any] | None:
        """The tool's entry, where it decides how the call is made."""
        needs_headers = client.negotiated.is_modern and self.backend.server.transport != "stdio"
        if not (needs_headers or client.negotiated.has_tasks):
            return None
        tools = await self.backend.catalog.last("tools", client)
        return next((tool for tool in tools if tool.get("name") == name), None)

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

    # What is said before the answer, and without one.

    @asynccontextmanager
    async def _news(self) -> AsyncGenerator[News | None]:
        """Where to say it."""
        front, asked = self.front, self.asked
        if (following := front.following) is not None:
            following.under_way[asked.id] = None
            try:
                yield following.news
            finally:
                following.under_way.pop(asked.id, None)
            return
        level = meta_of(asked.params).get(LOG_LEVEL)
        if asked.progress_token is None and level not in LEVELS:
            yield None
            return

        def is_its(entry: LogEntry) -> bool:
            return entry.server == self.backend.server.name

        async with on_its_stream(front, asked.id, level, is_its, log_params) as news:
            yield news

    def _capabilities(self) -> Mapping[str, Any]:
        """What its client can, but for what it is not to be asked."""
        said = self.asked.meta.get(CLIENT_CAPABILITIES_META_KEY)
        can = dict(said) if isinstance(said, Mapping) else {}
        session, server = self.front.session, self.backend.server.name
        kinds: tuple[Kind, ...] = ("elicitation", "sampling")
        for kind in kinds:
            if not session.is_relayed(server, kind, self.front.face.view):
                can.pop(kind, None)
        return can
