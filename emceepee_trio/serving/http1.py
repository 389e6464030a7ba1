"""HTTP/1.1 as bytes on a connection: hypercorn's protocol, without its ways to anything else.

Owns no socket and no task; `connection.py` has both. What is used of hypercorn beyond what it
promises is here, each with its reason; ``tests/test_foundations.py`` asserts it, since most would
break in silence.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

import h11
import trio
from hypercorn.config import Config
from hypercorn.events import Closed, Event, RawData
from hypercorn.protocol.events import Event as StreamEvent
from hypercorn.protocol.events import Request, Response
from hypercorn.protocol.h11 import STREAM_ID, H11Protocol
from hypercorn.protocol.http_stream import HTTPStream
from hypercorn.trio.worker_context import WorkerContext
from hypercorn.typing import ConnectionState, H11SendableEvent

from ..model.wire import dumps
from .asgi import Message, Refused, Scope

MAX_HEAD = 32 * 1024
"""Bytes of a request's target and headers together; more is answered with 431."""

_LENGTH = re.compile(
    rb"^content-length[ \t]*:([^\r\n]*(?:\r?\n[ \t][^\r\n]*)*)", re.IGNORECASE | re.MULTILINE
)
"""As it was written: h11 makes one of several that say the same."""

BAD_REQUEST = "the request is not HTTP/1.1"
REASONS = {
    408: "the request did not arrive in time",
    431: f"the request's headers are too long together (limit {MAX_HEAD} bytes)",
    501: "only chunked transfer-encoding is understood",
}


def settings(stopping: trio.Event) -> tuple[Config, WorkerContext]:
    """What all connections of a listener share; they finish what is under way once *stopping*."""
    config = Config()
    config.errorlog = None
    config.include_server_header = False
    # Also of a head that never ends: nothing of ours sees it before it is whole.
    config.h11_max_incomplete_size = MAX_HEAD
    context = WorkerContext(None)
    # The protocol asks whether it is set, before each next request, and nothing else.
    context.terminated = stopping  # type: ignore[assignment]  # see above
    return config, context


class Owner(Protocol):
    """The connection, as far as the protocol knows it."""

    config: Config
    context: WorkerContext
    is_over: bool

    async def send(self, event: Event) -> None: ...

    async def spawn_app(
        self, app: object, config: Config, scope: Scope, send: Callable[[Any], Awaitable[None]]
    ) -> Callable[[Message], Awaitable[None]]: ...


class _Framed(h11.Connection):
    """Takes no request whose length could be read in two ways.

    A proxy in front of us may have read it in the other one, and takes what we find behind its end
    for somebody else's.
    """

    def next_event(self) -> type[h11.NEED_DATA | h11.PAUSED] | h11.Event:
        before = self.trailing_data[0] if self.their_state is h11.IDLE else b""
        event = super().next_event()
        if isinstance(event, h11.Request):
            lengths = _LENGTH.findall(before[: len(before) - len(self.trailing_data[0])])
            is_chunked = any(name == b"transfer-encoding" for name, _ in event.headers)
            if len(lengths) + is_chunked > 1 or b"," in b"".join(lengths):
                raise h11.RemoteProtocolError("its length is ambiguous", error_status_hint=400)
        return event


class Http1(H11Protocol):
    """hypercorn's, for plain HTTP/1.1 only: in no other protocol would our bounds hold."""

    def __init__(
        self,
        owner: Owner,
        peer: tuple[str, int] | None,
        us: tuple[str, int] | None,
    ) -> None:
        super().__init__(
            None,  # type: ignore[arg-type]  # the app, which our spawn_app knows
            owner.config,
            owner.context,
            owner,  # type: ignore[arg-type]  # as a TaskGroup, of which only spawn_app is used
            ConnectionState({}),
            False,
            peer,
            us,
            owner.send,
        )
        self.connection = _Framed(h11.SERVER, owner.config.h11_max_incomplete_size)
        self._owner = owner
        self._refused = False
        self._bodiless = False
        """The request under way is a HEAD."""
        self._held = b""

    async def refuse(self, status: int) -> None:
        """Answer with an error, if there is still time for one, and hang up."""
        if self.connection.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            await self._send_error_response(status)
        await self.send(Closed())

    # What follows overrides what hypercorn calls; were one renamed, its own would be back.

    async def _send_error_response(self, status_code: int) -> None:
        """With a body that says what is wrong; hypercorn's is empty."""
        # Before the first checkpoint: the request's app may be about to answer.
        self._refused = True
        body = dumps(Refused(status_code, REASONS.get(status_code, BAD_REQUEST)).body).encode()
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", b"%d" % len(body)),
            (b"connection", b"close"),
        ]
        await self._send_h11_event(h11.Response(status_code=status_code, headers=headers))
        if not self._bodiless:
            await self._send_h11_event(h11.Data(data=body))
        await self._send_h11_event(h11.EndOfMessage())

    async def stream_send(self, event: StreamEvent) -> None:
        """What the app of a request says."""
        if self._refused or self._owner.is_over:
            # Or an app that does nothing but send would never hear that it should stop.
            await trio.lowlevel.checkpoint()
            return
        # Nobody reads the rest of a request that is answered before its end: hypercorn hangs up.
        is_last = self.context.terminated.is_set() or self.connection.their_state is h11.SEND_BODY
        if isinstance(event, Response) and is_last:
            headers = [*event.headers, (b"connection", b"close")]
            event = Response(event.stream_id, headers, event.status_code)
        await super().stream_send(event)

    async def _send_h11_event(self, event: H11SendableEvent) -> None:
        """A head that announces its body waits for it, so that both are one write."""
        try:
            data = self.connection.send(event) or b""
        except h11.LocalProtocolError:
            if self.connection.their_state is not h11.ERROR:
                raise
            return
        if isinstance(event, h11.Response) and b"content-length" in dict(event.headers):
            self._held = data
            return
        data, self._held = self._held + data, b""
        if data:
            await self.send(RawData(data))

    async def _check_protocol(self, event: h11.Request) -> None:
        """Upgrades to HTTP/2 are not offered; the request is answered as it is."""

    async def _create_stream(self, request: h11.Request) -> None:
        """Nor are WebSockets; and hypercorn knows no bound for a head that comes in one piece."""
        self._bodiless = request.method == b"HEAD"
        size = len(request.target) + sum(len(n) + len(v) for n, v in request.headers)
        if size > MAX_HEAD:
            await self.refuse(431)
            return
        self.stream = HTTPStream(
            self.app,
            self.config,
            self.context,
            self.task_group,
            self.ssl,
            self.client,
            self.server,
            self.stream_send,
            STREAM_ID,
        )
        await self.stream.handle(
            Request(
                stream_id=STREAM_ID,
                headers=list(request.headers),
                http_version=request.http_version.decode(),
                method=request.method.decode("ascii").upper(),
                raw_path=request.target,
                state=self.connection_state,
            )
        )
