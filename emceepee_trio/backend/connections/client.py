"""One negotiated connection: requests go out, and what the backend answers comes back as it came.

It sits directly on the SDK's dispatcher, because the SDK's client session parses answers into
models that drop vendor fields and whole results. What the session would have done is done here:
the envelope that a modern backend wants on every request, the headers of its HTTP transport, and
the rounds in which it asks for input. Knows no session, and of transports that HTTP answers a call
with a POST, which can be abandoned, and with a status.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cached_property, partial
from importlib.metadata import version
from typing import Any

import attrs
import trio
from mcp import MCPError
from mcp.shared.dispatcher import CallOptions
from mcp.shared.inbound import (
    MCP_METHOD_HEADER,
    MCP_NAME_HEADER,
    MCP_PROTOCOL_VERSION_HEADER,
    NAME_BEARING_METHODS,
    encode_header_value,
    find_invalid_x_mcp_header,
    mcp_param_headers,
    x_mcp_header_map,
)
from mcp_types import (
    CLIENT_CAPABILITIES_META_KEY,
    CLIENT_INFO_META_KEY,
    CONNECTION_CLOSED,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    LOG_LEVEL_META_KEY,
    PROTOCOL_VERSION_META_KEY,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from ..http.posts import OnStream, Post, as_post
from ..http.transport import HttpTransport
from .callbacks import Abandoned, Callbacks, OnProgress, Over, Params, asked_as, working_for
from .sdk import Dispatcher
from .traced import TracedConnection
from .witness import BrokeOff, NotRun, Unanswered, Witness

CLIENT_INFO = {"name": "emceepee", "version": version("emceepee-trio")}
CAPABILITIES: dict[str, Any] = {
    "sampling": {"tools": {}, "context": {}},
    "elicitation": {"form": {}, "url": {}},
    "roots": {"listChanged": True},
}
"""What we can do for a backend: everything, because a person or a model answers in the end."""


TASKS = "io.modelcontextprotocol/tasks"
"""The extension by which a modern server makes a task of a call: see `tasks.py`."""
OF_TASKS = {"tasks/get": "taskId", "tasks/update": "taskId", "tasks/cancel": "taskId"}
"""Its requests, and what a header says of each."""


def our_capabilities(extensions: Params) -> Params:
    """The same, with what else a client of ours can."""
    return {**CAPABILITIES, "extensions": dict(extensions)} if extensions else CAPABILITIES


OUTBOX = 256
"""Notifications on their way to the backend. One that finds the box full is dropped: it is a
courtesy (a cancellation, roots have changed) to a peer that has stopped reading."""

ROUNDS = 1000
"""Times that a backend may ask for more input before it answers. One that goes on asks itself."""
ASKED = 100
"""Things that it may ask for at once; each is a task."""
PAUSES = (0.05, 0.25)
"""Seconds, the first and the longest, before it is asked again if it wants nothing but that."""

NOT_CARRIED: AbstractContextManager[object] = nullcontext()
"""In place of `as_post`, where nothing is."""

CHECK = 10.0
"""Seconds to answer whether it is still there."""

DEFAULT_LOG_LEVEL = "info"
"""Modern backends log only what a request asks for."""


@attrs.frozen
class Negotiated:
    """What both sides agreed on, and what the backend says of itself."""

    protocol_version: str
    capabilities: Mapping[str, Any]
    server_info: Mapping[str, Any]
    instructions: str | None

    @cached_property
    def is_modern(self) -> bool:
        return self.protocol_version in MODERN_PROTOCOL_VERSIONS

    @cached_property
    def has_tasks(self) -> bool:
        """Whether some tools may have to be called as tasks, as in that era: see `tasks.py`."""
        found: Any = self.capabilities
        for name in ("tasks", "requests", "tools", "call"):
            found = found.get(name) if isinstance(found, Mapping) else None
        return found is not None and not self.is_modern


@attrs.define(eq=False, repr=False)
class Client:
    """Callable from any task; its lifetime belongs to `connect.open_client`."""

    dispatcher: Dispatcher
    callbacks: Callbacks
    negotiated: Negotiated
    witness: Witness
    http: HttpTransport | None = None
    traced: TracedConnection | None = None
    log_level: str = DEFAULT_LOG_LEVEL
    on_answer: Callable[[], None] | None = attrs.field(default=None, init=False)
    """Told of every result."""
    _ids: Iterator[int] = attrs.field(factory=lambda: itertools.count(1_000_000), init=False)
    """Ours, so that a call knows its id before its answer. Plain integers, far above those the
    dispatcher takes: some servers choke on strings."""
    _outbox: tuple[trio.MemorySendChannel[Any], trio.MemoryReceiveChannel[Any]] = attrs.field(
        factory=lambda: trio.open_memory_channel[Any](OUTBOX), init=False
    )
    _under_way: int = attrs.field(default=0, init=False)
    _idle: trio.Event = attrs.field(factory=trio.Event, init=False)

    @property
    def over(self) -> Over:
        """Of its transport."""
        return self.witness.over

    async def request(
        self,
        method: str,
        params: Params | None = None,
        *,
        on_progress: OnProgress | None = None,
        tool: Params | None = None,
        capabilities: Params | None = None,
        is_there: Callable[[], bool] = lambda: True,
        on_stream: OnStream | None = None,
        leaves_long: bool = False,
    ) -> dict[str, Any]:
        """Send, wait, and answer the backend's questions on the way.

        *tool* is the listed entry of a tool that is called; its schema may name arguments that
        travel as headers too. With *capabilities* a modern backend is asked in the name of a client
        that has those: what it asks for comes back as the result, as long as the client *is there*,
        and what *params* say of input and of logging is the client's own. *on_stream* hears of the
        stream that the answer comes in, if it does. Who *leaves long* texts in it where they are
        may get a `Partly`. Cancelling this sends the backend a cancellation.

        Raises:
            MCPError: the backend's error, as it came, or that the connection is gone.
        """
        exchange = partial(
            self._exchange if self.traced is None else self._traced,
            method,
            on_progress=on_progress,
            tool=tool,
            capabilities=capabilities,
            on_stream=on_stream,
            leaves_long=leaves_long,
        )
        result = await exchange(params)
        again, pause, rounds = dict(params or {}), PAUSES[0], 0
        while self.negotiated.is_modern and result.get("resultType") == "input_required":
            if capabilities is not None and result.get("inputRequests") and is_there():
                return result
            rounds += 1
            if rounds > ROUNDS:
                raise MCPError(
                    code=INTERNAL_ERROR, message=f"asked for input more than {ROUNDS} times"
                )
            for key in ("inputResponses", "requestState"):
                again.pop(key, None)
            if asked := result.get("inputRequests"):
                again["inputResponses"] = await self.answer_all(asked)
                pause = PAUSES[0]
            else:
                await trio.sleep(pause)
                pause = min(2 * pause, PAUSES[1])
            if "requestState" in result:
                again["requestState"] = result["requestState"]
            result = await exchange(again)
        return result

    @contextmanager
    def progress(self, on_progress: OnProgress) -> Generator[int]:
        """A token for progress that goes on when the request that brought it is answered."""
        token = next(self._ids)
        self.callbacks.progress[token] = on_progress
        try:
            yield token
        finally:
            self.callbacks.progress.pop(token, None)

    async def _traced(
        self, method: str, params: Params | None, *, on_progress: OnProgress | None, **how: Any
    ) -> dict[str, Any]:
        """The same, for somebody who wants to know of it."""
        assert self.traced is not None
        request_id = next(self._ids)
        with self.traced.asking(method, params or {}, request_id, working_for.get()) as sent:
            how["on_progress"] = on_progress and _both(sent.moved_on, on_progress)
            result = await self._exchange(method, sent.params, request_id=request_id, **how)
            sent.answered(result)
            return result

    async def _exchange(
        self,
        method: str,
        params: Params | None,
        *,
        on_progress: OnProgress | None,
        tool: Params | None,
        capabilities: Params | None,
        on_stream: OnStream | None,
        leaves_long: bool,
        request_id: int | None = None,
    ) -> dict[str, Any]:
        if request_id is None:
            request_id = next(self._ids)
        body, headers = self._envelope(method, dict(params or {}), tool, capabilities)
        options: CallOptions = {"request_id": request_id, "headers": headers}
        if on_progress is not None:
            body["_meta"] = {**body.get("_meta", {}), "progressToken": request_id}
            self.callbacks.progress[request_id] = on_progress
        self.callbacks.calls[request_id] = working_for.get()
        self._under_way += 1
        post = Post(request_id, on_stream=on_stream)
        try:
            carried = NOT_CARRIED if self.http is None else as_post(post)
            with carried, self.witness.asking(request_id):
                result = await self.dispatcher.send_raw_request(
                    method, body or None, options, leaves_long=leaves_long
                )
        except trio.Cancelled:
            gone = {"requestId": request_id, "reason": "no longer wanted"}
            self.notify("notifications/cancelled", gone)
            self._gave_up(request_id, method)
            raise
        except MCPError as error:
            if self.http is not None and request_id in self.http.not_run:
                raise NotRun from None
            if isinstance(error, Unanswered) and post.is_unsent:
                raise NotRun from None
            if not (post.broke_off and error.error.code == CONNECTION_CLOSED):
                raise
            half = BrokeOff(error.error.code, error.error.message)
        else:
            if self.on_answer is not None:
                self.on_answer()
            # The dispatcher holds the last message until the next one comes, however long it is.
            mine = result.copy()
            result.clear()
            return mine
        finally:
            self.callbacks.progress.pop(request_id, None)
            del self.callbacks.calls[request_id]
            if self.http is not None:
                self.http.not_run.discard(request_id)
            self._under_way -= 1
            if not self._under_way:
                self._idle.set()
        await self.check()  # only the stream of this answer broke off, or its server is gone
        raise Unanswered if self.over.is_set() else half

    def _gave_up(self, request_id: int, method: str) -> None:
        """The backend may still work on it."""

    def speaks_with(self, other: Client) -> None:
        """On the same connection: no two requests of ours have one id."""
        self._ids, self._outbox = other._ids, other._outbox

    @contextmanager
    def counted(self) -> Generator[None]:
        """Around a request that :meth:`idle` waits for, too."""
        self._under_way += 1
        try:
            yield
        finally:
            self._under_way -= 1
            if not self._under_way:
                self._idle.set()

    async def check(self) -> str | None:
        """Ask the backend whether it is there; what is wrong if it does not say so.

        Never raises for it: an error is an answer, too.
        """
        method = "server/discover" if self.negotiated.is_modern else "ping"
        body, headers = self._envelope(method, {}, None)
        options: CallOptions = {"request_id": next(self._ids), "headers": headers}
        with trio.move_on_after(CHECK):
            try:
                await self.dispatcher.send_raw_request(method, body or None, options)
            except MCPError:
                status = self.http.status if self.http is not None else None
                if status is not None and status >= 500:
                    return f"answered {method} with status {status}"
            return None
        return f"no answer to {method} within {CHECK:g} s"

    async def idle(self) -> None:
        """Wait until no request is under way."""
        self._idle = trio.Event()
        if self._under_way:
            await self._idle.wait()

    def _envelope(
        self,
        method: str,
        params: dict[str, Any],
        tool: Params | None,
        capabilities: Params | None = None,
    ) -> tuple[dict[str, Any], dict[str, str]]:
        """What is sent, and the headers that it is sent with, where it has some."""
        agreed = self.negotiated
        if agreed.is_modern:
            extensions = self.callbacks.host.extensions
            if method == "tools/call" or method in OF_TASKS:
                extensions = {**extensions, TASKS: {}}
            ours = our_capabilities(extensions)
            logs = {LOG_LEVEL_META_KEY: self.log_level} if capabilities is None else {}
            params["_meta"] = {
                **logs,
                **params.get("_meta", {}),
                **modern_meta(
                    agreed.protocol_version, ours if capabilities is None else capabilities
                ),
            }
        if self.http is None:
            return params, {}
        headers = {MCP_PROTOCOL_VERSION_HEADER: agreed.protocol_version}
        if agreed.is_modern:
            try:
                headers |= _copied(method, params, tool)
            except UnicodeError as error:
                raise MCPError(code=INVALID_PARAMS, message=f"not Unicode: {error}") from None
        return params, headers

    async def answer_all(self, asked: Any) -> dict[str, Any]:
        """Put the questions to whom they concern, all at once; fails if one of them is refused."""
        if not isinstance(asked, dict) or not all(isinstance(v, dict) for v in asked.values()):
            raise MCPError(code=INTERNAL_ERROR, message="inputRequests is not a map of requests")
        if len(asked) > ASKED:
            raise MCPError(code=INTERNAL_ERROR, message=f"asked more than {ASKED} things at once")
        answers: dict[str, Any] = {}
        refused: list[MCPError] = []

        def abandoned() -> Abandoned:
            return self.callbacks.why_over() if self.over.is_set() else "call_ended"

        async def answer(key: str, method: Any, params: Any) -> None:
            asked_as.set(key)  # in a task of its own
            try:
                answers[key] = await self.callbacks.answer(method, params, abandoned)
            except MCPError as error:
                # The modern era has no error answers; for a question, "cancel" is closest.
                answers[key] = {"action": "cancel"}
                if method != "elicitation/create":
                    refused.append(error)
                    asking.cancel_scope.cancel("one of the questions was refused")

        async def until_over() -> None:
            await self.over.wait()
            asking.cancel_scope.cancel("connection is over")

        async with trio.open_nursery() as watching:
            watching.start_soon(until_over)
            async with trio.open_nursery() as asking:
                for key, request in asked.items():
                    asking.start_soon(answer, key, request.get("method"), request.get("params"))
            watching.cancel_scope.cancel("all are answered")
        if self.over.is_set():
            raise Unanswered
        if refused:
            raise refused[0]
        return answers

    def notify(self, method: str, params: Params | None = None) -> None:
        """Put a notification into the outbox. Synchronous: also callable while cancelled."""
        if self.traced is not None:
            params = self.traced.saying(method, params, working_for.get())
        try:
            self._outbox[0].send_nowait((method, params))
        except (trio.WouldBlock, trio.BrokenResourceError):
            pass

    async def deliver_outbox(self) -> None:
        """Write what :meth:`notify` collects; one task of the connection runs this."""
        async with self._outbox[1] as outbox:
            async for method, params in outbox:
                await self.dispatcher.notify(method, params)


def _both(moved_on: Callable[[], None], on_progress: OnProgress) -> OnProgress:
    def told(params: Params) -> None:
        moved_on()
        on_progress(params)

    return told


def _copied(method: str, params: Params, tool: Params | None) -> dict[str, str]:
    """What the modern HTTP transport wants in headers, too."""
    headers = {MCP_METHOD_HEADER: method}
    named = params.get({**NAME_BEARING_METHODS, **OF_TASKS}.get(method, ""))
    if isinstance(named, str):
        headers[MCP_NAME_HEADER] = encode_header_value(named)
    schema = tool.get("inputSchema") if tool is not None else None
    if isinstance(schema, dict) and find_invalid_x_mcp_header(schema) is None:
        headers |= mcp_param_headers(x_mcp_header_map(schema), params.get("arguments", {}))
    return headers


def modern_meta(protocol_version: str, capabilities: Params) -> dict[str, Any]:
    return {
        PROTOCOL_VERSION_META_KEY: protocol_version,
        CLIENT_INFO_META_KEY: CLIENT_INFO,
        CLIENT_CAPABILITIES_META_KEY: capabilities,
    }
