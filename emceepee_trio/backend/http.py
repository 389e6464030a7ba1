"""HTTP transports, the SDK's, with what it leaves open: bounded bodies, and statuses kept.

One HTTP client per connection. What it learns of the peer's mood (a refused credential, a session
that is gone) reaches us through a response hook, because the SDK reports a 404 without its status.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import attrs
import httpx2
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

from ..config import Server

PATIENCE = 30.0
"""Seconds to connect, to write, or to get a pooled connection. Reading has no bound of its own:
every request carries a deadline, and a stream may be silent for hours."""


@attrs.define(eq=False)
class HttpTransport:
    """What is known of the peer below the protocol."""

    limit: int
    status: int | None = None
    """Of the last response that was an error."""
    session_id: str | None = None
    on_session_lost: Callable[[], None] | None = None

    async def note(self, response: httpx2.Response) -> None:
        sent = response.request.headers.get("mcp-session-id")
        if sent:
            self.session_id = sent
        if response.status_code >= 400 and response.request.method != "DELETE":
            self.status = response.status_code
            if response.status_code == 404 and sent and self.on_session_lost is not None:
                self.on_session_lost()
        if not response.headers.get("content-type", "").startswith("text/event-stream"):
            response.stream = _BoundedBody(response.stream, self.limit)


class BodyTooLong(httpx2.TransportError):
    """A body longer than ``limits.message``; ends the connection."""


@attrs.define(eq=False)
class _BoundedBody(httpx2.AsyncByteStream):
    """A body that may not grow for ever. Event streams are bounded by event, in the SDK."""

    _inner: Any
    _limit: int

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for chunk in self._inner:
            size += len(chunk)
            if size > self._limit:
                raise BodyTooLong(f"message too long (limit {self._limit} bytes)")
            yield chunk

    async def aclose(self) -> None:
        await self._inner.aclose()


@asynccontextmanager
async def open_http(server: Server, limit: int) -> AsyncGenerator[tuple[Any, Any, HttpTransport]]:
    """The message streams of *server*, by the transport its entry names."""
    assert server.url is not None
    transport = HttpTransport(limit)

    def make_client(
        headers: dict[str, str] | None = None,
        timeout: httpx2.Timeout | None = None,
        auth: httpx2.Auth | None = None,
    ) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(
            headers=dict(server.headers),
            timeout=httpx2.Timeout(PATIENCE, read=None),
            event_hooks={"response": [transport.note]},
        )

    if server.transport == "sse":
        async with sse_client(server.url, httpx_client_factory=make_client) as (reads, writes):
            yield reads, writes, transport
    else:
        async with (
            make_client() as client,
            streamable_http_client(server.url, http_client=client, max_sse_event_size=limit) as (
                reads,
                writes,
            ),
        ):
            yield reads, writes, transport
