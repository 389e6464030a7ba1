"""Opening a connection: the only place that builds transports and negotiates an era.

A connection is opened and closed in one task, innermost first; whoever enters :func:`open_client`
leaves it, uncancelled if the backend shall hear of it (a DELETE, the end of its standard input).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import AsyncGenerator, Callable, Collection, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Self

import anyio
import attrs
import trio
from mcp import MCPError
from mcp.shared.dispatcher import CallOptions
from mcp.shared.message import SessionMessage
from mcp_types import UNSUPPORTED_PROTOCOL_VERSION, JSONRPCError, JSONRPCResponse
from mcp_types.version import (
    HANDSHAKE_PROTOCOL_VERSIONS,
    LATEST_HANDSHAKE_VERSION,
    LATEST_MODERN_VERSION,
    MODERN_PROTOCOL_VERSIONS,
)

from ...config import Server
from ...errors import ConnectFailed
from ...model.json.intake import Measure
from ...model.text.brief import brief
from ..children.process import Process, open_process
from ..children.spec import child_environment, command_line
from ..http.old import open_old
from ..http.streamable import open_streamable
from ..http.transport import HttpTransport
from ..shared import Era, Shared
from .callbacks import Callbacks, Over, Params
from .client import CLIENT_INFO, Client, Negotiated, modern_meta, our_capabilities
from .sdk import Dispatcher
from .traced import TracedConnection
from .witness import Unanswered, Witness

PROBE = 2.0
"""Seconds a stdio server has to answer `server/discover` before it is taken for an older one. An
older server may stay silent on a method it does not know."""

UNREAD = 1000
"""Answers of ours that may wait to be written. A backend that goes on asking and does not read is
cut off."""


@attrs.frozen
class Transport:
    """A transport, ready for a dispatcher."""

    reads: Any
    writes: Any
    process: Process | None = None
    http: HttpTransport | None = None
    exchanges: bool = False
    """Who writes a request waits there for what answers it."""
    environment: Collection[str] = ()
    """Names of the variables of a child."""


class _DiedOfProbe(Exception):
    """The server ended when it was asked something it did not know.

    Who has not read it has ended for another reason, and would again.
    """


@asynccontextmanager
async def open_client(
    server: Server,
    callbacks: Callbacks,
    shared: Shared,
    session: str,
    *,
    measure: Measure,
    restricted: bool,
    on_streams: Callable[[Transport], None],
) -> AsyncGenerator[Client]:
    """Connect, negotiate, yield the client, close.

    The client's :attr:`~.client.Client.over` is set when the connection is lost; leaving is up
    to the caller. *on_streams* is told of the transport before anything is said on it.

    Raises:
        ConnectFailed: the command does not exist, or the server is not one.
        LimitReached: there are too many children.
        MCPError: the server refused.
    """

    def open_streams() -> AbstractAsyncContextManager[Transport]:
        return _open_streams(server, callbacks, shared, session, measure, restricted)

    def open_connection(era: Era | None) -> AbstractAsyncContextManager[Client]:
        if shared.tracing is not None:
            name, version = server.name, LATEST_HANDSHAKE_VERSION
            callbacks.traced = TracedConnection(shared.tracing, name, session, server.url, version)
        return _open_connection(open_streams, callbacks, era, on_streams)

    key = _reached_by(server)
    era = shared.eras.get(key) if server.era == "auto" else server.era
    if era is None and server.transport == "sse":
        era = "handshake"  # that transport is older than the question
    works = died = dies = False
    try:
        async with open_connection(era) as client:
            works = True
            shared.remember(key, "modern" if client.negotiated.is_modern else "handshake")
            yield client
    except* _DiedOfProbe:
        died = True
    except* Unanswered:
        dies = True
        raise
    finally:
        # It may have been replaced by another version: ask again next time. But who dies without
        # having been asked, and was once asked, would die of that, too: in vain, and twice.
        if not works and not (dies and era == "handshake"):
            shared.eras.pop(key, None)
    if died:
        shared.remember(key, "handshake")
        async with open_connection("handshake") as client:
            yield client


def has_worked(server: Server, shared: Shared) -> bool:
    """Whether it has been connected since we are here, and not failed since."""
    return _reached_by(server) in shared.eras


def _reached_by(server: Server) -> tuple[str | None, ...]:
    return (server.url, server.command, *server.args)


@asynccontextmanager
async def _open_connection(
    open_streams: Callable[[], AbstractAsyncContextManager[Transport]],
    callbacks: Callbacks,
    era: Era | None,
    on_streams: Callable[[Transport], None],
) -> AsyncGenerator[Client]:
    over = callbacks.renew()
    async with open_streams() as streams:
        on_streams(streams)
        witness = Witness(over)
        reads, writes = _Reads(streams.reads, witness), _Writes(streams.writes, over)
        dispatcher = Dispatcher(reads, writes)
        dispatcher.exchanges = streams.exchanges

        def settles(item: SessionMessage) -> bool:
            if not isinstance(item.message, JSONRPCResponse | JSONRPCError):
                return False
            witness.read(item)
            dispatcher.settle(item.message)
            return True

        if streams.process is not None:
            streams.process.settles = settles
        if streams.http is not None:
            streams.http.settles = settles
        async with trio.open_nursery() as nursery:
            await nursery.start(_run_dispatcher, dispatcher, callbacks)
            negotiated = await _negotiate(
                _Asking(dispatcher, witness, callbacks), era, streams.process
            )
            traced = callbacks.traced
            client = Client(dispatcher, callbacks, negotiated, witness, streams.http, traced)
            if traced is not None:
                traced.version = negotiated.protocol_version
            if streams.http is not None:
                streams.http.on_over = over.set
            if not negotiated.is_modern:
                done = "notifications/initialized"
                await dispatcher.notify(
                    done,
                    None if traced is None else traced.saying(done, None, None),
                    {"headers": {"mcp-protocol-version": negotiated.protocol_version}},
                )
            nursery.start_soon(client.deliver_outbox)
            yield client
            nursery.cancel_scope.cancel("connection is closed")


async def _run_dispatcher(  # noqa: ASYNC128 - the dispatcher says when it has started
    dispatcher: Dispatcher,
    callbacks: Callbacks,
    *,
    task_status: trio.TaskStatus[None],
) -> None:
    async def on_notify(*_: object) -> None:
        raise AssertionError("heard() consumes every notification")

    await dispatcher.run(callbacks.asked, on_notify, callbacks.heard, task_status=task_status)


@asynccontextmanager
async def _open_streams(
    server: Server,
    callbacks: Callbacks,
    shared: Shared,
    session: str,
    measure: Measure,
    restricted: bool,
) -> AsyncGenerator[Transport]:
    if server.transport == "stdio":
        environment = child_environment(server, tokens=shared.tokens)
        command = command_line(server, environment)

        with shared.place_for_child():
            async with open_process(
                command,
                env=environment,
                cwd=server.cwd,
                measure=measure,
                on_stderr=callbacks.wrote_to_stderr,
                on_noise=callbacks.made_noise,
                reaper=shared.reaper,
            ) as process:
                yield Transport(process.reads, process.writes, process, environment=environment)
    else:
        auth = shared.auth_for(server, callbacks.host.principal)
        is_old = server.transport == "sse"
        open_http = open_old if is_old else open_streamable
        opened = open_http(server, session, measure, restricted=restricted, auth=auth)
        async with opened as (reads, writes, http):
            yield Transport(reads, writes, http=http, exchanges=not is_old)


@attrs.define(eq=False)
class _Reads:
    """A transport's messages; says that they are over before the dispatcher fails the calls."""

    _inner: Any
    _witness: Witness

    @property
    def last_context(self) -> Any:
        return getattr(self._inner, "last_context", None)

    async def receive(self) -> Any:
        return await self._inner.receive()

    async def aclose(self) -> None:
        await self._inner.aclose()

    def __aiter__(self) -> _Reads:
        return self

    async def __anext__(self) -> Any:
        item = await self._inner.__anext__()
        self._witness.read(item)
        return item

    async def __aenter__(self) -> Self:
        await self._inner.__aenter__()
        return self

    async def __aexit__(self, *exc: object) -> None:
        # Nobody reads any more, and this is the last that happens before the calls fail for it.
        self._witness.over.set()
        await self._inner.__aexit__(*exc)  # noqa: ASYNC102 - as it does itself


@attrs.define(eq=False)
class _Writes:
    """Messages to a transport. A bound for those that nobody of ours waits for."""

    _inner: Any
    _over: Over
    _unread: int = attrs.field(default=0, init=False)

    async def send(self, item: SessionMessage) -> None:
        if not isinstance(item.message, JSONRPCResponse | JSONRPCError):
            await self._send(item)
            return
        if self._unread >= UNREAD:
            self._over.set(f"did not read {UNREAD} answers to its requests")
            raise anyio.BrokenResourceError  # for the dispatcher: drop it
        self._unread += 1
        try:
            await self._send(item)
        finally:
            self._unread -= 1

    async def _send(self, item: SessionMessage) -> None:
        try:
            await self._inner.send(item)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            self._over.set()  # who hears of the loss finds it published
            raise

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def __aenter__(self) -> Self:
        await self._inner.__aenter__()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._inner.__aexit__(*exc)  # noqa: ASYNC102 - as it does itself


@attrs.define(eq=False)
class _Asking:
    """Requests before there is a client."""

    _dispatcher: Dispatcher
    _witness: Witness
    _callbacks: Callbacks
    _ids: Iterator[int] = attrs.field(factory=lambda: itertools.count(1), init=False)

    @property
    def capabilities(self) -> Params:
        """What we can; what its client can is known only once that has said it."""
        return our_capabilities(self._callbacks.host.extensions)

    async def ask(self, method: str, params: dict[str, Any], **headers: str) -> dict[str, Any]:
        request_id = next(self._ids)
        options: CallOptions = {"request_id": request_id}
        if headers:
            options["headers"] = {name.replace("_", "-"): text for name, text in headers.items()}
        if (traced := self._callbacks.traced) is None:
            return await self._send(request_id, method, params, options)
        with traced.asking(method, params, request_id, None) as sent:
            return await self._send(request_id, method, sent.params, options)

    async def _send(
        self, request_id: int, method: str, params: Mapping[str, Any], options: CallOptions
    ) -> dict[str, Any]:
        with self._witness.asking(request_id):
            return await self._dispatcher.send_raw_request(method, params, options)


async def _negotiate(asking: _Asking, era: Era | None, process: Process | None) -> Negotiated:
    if era == "handshake":
        return await _initialize(asking)
    if era == "modern":
        return await _discover(asking)
    discovered = None
    # A bound only where silence is an answer; over HTTP an unknown method gets a status.
    with trio.move_on_after(PROBE if process is not None else math.inf):
        try:
            discovered = await _discover(asking)
        except MCPError as error:
            if isinstance(error, Unanswered) and process is not None:
                if not process.has_read:
                    raise
                raise _DiedOfProbe from None
        except ConnectFailed:
            pass
    if discovered is not None:
        return discovered
    try:
        return await _initialize(asking)
    except MCPError as error:
        lost = isinstance(error, Unanswered)
        if lost and process is not None and process.failure is None and process.has_read:
            raise _DiedOfProbe from None
        if error.error.code != UNSUPPORTED_PROTOCOL_VERSION:
            raise
        # It did understand the probe, but was slow to say so.
        return await _discover(asking)


async def _initialize(asking: _Asking) -> Negotiated:
    result = await asking.ask(
        "initialize",
        {
            "protocolVersion": LATEST_HANDSHAKE_VERSION,
            "capabilities": asking.capabilities,
            "clientInfo": CLIENT_INFO,
        },
    )
    chosen = result.get("protocolVersion")
    if not isinstance(chosen, str) or chosen not in HANDSHAKE_PROTOCOL_VERSIONS:
        raise ConnectFailed(
            f"the server speaks protocol version {brief(chosen)}; we speak "
            + ", ".join((*HANDSHAKE_PROTOCOL_VERSIONS, *MODERN_PROTOCOL_VERSIONS))
        )
    return Negotiated(
        chosen,
        _mapping(result.get("capabilities")),
        _mapping(result.get("serverInfo")),
        _text(result.get("instructions")),
    )


async def _discover(asking: _Asking) -> Negotiated:
    wanted, method = LATEST_MODERN_VERSION, "server/discover"
    params = {"_meta": modern_meta(wanted, asking.capabilities)}
    result = await asking.ask(method, params, mcp_protocol_version=wanted, mcp_method=method)
    offered = result.get("supportedVersions")
    mutual = [v for v in MODERN_PROTOCOL_VERSIONS if isinstance(offered, list) and v in offered]
    if not mutual:
        raise ConnectFailed(
            f"the server offers protocol versions {brief(offered)}; we speak {wanted}"
        )
    meta = _mapping(result.get("_meta"))
    return Negotiated(
        mutual[-1],
        _mapping(result.get("capabilities")),
        _mapping(meta.get("io.modelcontextprotocol/serverInfo")),
        _text(result.get("instructions")),
    )


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
