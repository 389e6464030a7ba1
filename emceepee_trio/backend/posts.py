"""One message on its way over HTTP: how long it is waited for, and what counts as its answer.

The SDK ends a POST of the handshake era for no reason but the end of the connection, and takes
any JSON for its answer. So it is told of an answer here, where its requests and bodies pass.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Callable, Generator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any

import attrs
import httpx2
import trio
from mcp_types import INVALID_REQUEST

_BLANK_LINE = re.compile(rb"\n\r?\n|\r\r")

NOTICE_PATIENCE = 5.0
"""Seconds for a peer to take what wants no answer. Others wait behind it, and health checks, which
are patient for longer, must not fail for that."""


@attrs.define(eq=False)
class Post:
    id: int | None = None
    """Of a request; everything else wants no answer."""
    abandoned: bool = attrs.field(default=False, init=False)
    _scope: trio.CancelScope | None = attrs.field(default=None, init=False)

    def abandon(self) -> None:
        """Nobody wants its answer any more."""
        self.abandoned = True
        if self._scope is not None:
            self._scope.cancel("the answer is not wanted any more")

    @contextmanager
    def waiting(self) -> Generator[trio.CancelScope]:
        """Around each wait for the peer, one at a time."""
        with trio.CancelScope() as self._scope:
            if self.abandoned:
                self._scope.cancel("the answer is not wanted any more")
            try:
                yield self._scope
            finally:
                self._scope = None

    def error(self, why: str) -> bytes:
        """An answer in place of the peer's."""
        error = {"code": INVALID_REQUEST, "message": why}
        return json.dumps({"jsonrpc": "2.0", "id": self.id, "error": error}).encode()

    def event(self) -> bytes:
        """The end of a stream of events that nobody wants; the SDK asks for no more of it then."""
        return b"\n\ndata: " + self.error("no longer wanted") + b"\n\n"

    def instead(self, request: httpx2.Request) -> httpx2.Response:
        """What the SDK is told in place of a response that was not waited for."""
        if self.id is None:
            return httpx2.Response(202, request=request)
        headers = {"content-type": "text/event-stream"}
        return httpx2.Response(200, headers=headers, content=self.event(), request=request)

    def judged(self, body: bytes) -> bytes:
        """*body*, if it answers this request, or an error: the SDK would wait for ever."""
        if re.search(rb'"id"\s*:\s*%d\b' % (self.id or 0), body):
            return body  # parsed once only
        try:
            message = json.loads(body)
        except ValueError:
            return body  # the SDK says what is wrong with it
        if not isinstance(message, dict) or message.get("id") == self.id:
            return body
        if message.get("id") is None and "error" in message:
            return json.dumps({**message, "id": self.id}).encode()
        return self.error("the server sent something that is no answer to this request")


posting: ContextVar[Post | None] = ContextVar("posting", default=None)
"""The message on its way. The SDK sends each in the context in which it was handed to it."""


@contextmanager
def as_post(post: Post) -> Generator[Post]:
    token = posting.set(post)
    try:
        yield post
    finally:
        posting.reset(token)


class Ended(httpx2.TransportError):
    """What the peer said, or how long it was, ends the connection."""


@attrs.define(eq=False)
class Body(httpx2.AsyncByteStream):
    """A body that may not grow for ever, or a stream whose events may not."""

    _inner: Any
    _limit: int
    _failed: Callable[[httpx2.RequestError], None]
    _is_stream: bool
    _is_success: bool
    _post: Post | None
    """What it answers, if that is one of our calls."""
    _chunks: AsyncIterator[bytes] = attrs.field(init=False)
    _size: int = attrs.field(default=0, init=False)
    """So far, of the body or of the event."""
    _end: bytes = attrs.field(default=b"", init=False)

    # Not a generator: the SDK leaves its loops in the middle, and nobody would close it.
    def __aiter__(self) -> AsyncIterator[bytes]:
        self._chunks = aiter(self._inner)
        return self

    async def __anext__(self) -> bytes:
        if self._post is None or self._post.id is None:
            return await self._next()
        with self._post.waiting():
            if self._is_success and not self._is_stream:
                return await self._whole(self._post)
            return await self._next()
        return self._post.event()

    async def _next(self) -> bytes:
        try:
            chunk = await anext(self._chunks)
            self._measure(chunk)
        except httpx2.RequestError as error:
            self._failed(error)
            raise
        return chunk

    async def _whole(self, post: Post) -> bytes:
        """The SDK collects it anyway."""
        chunks = []
        with suppress(StopAsyncIteration):
            while True:
                chunks.append(await self._next())
        if not chunks:
            raise StopAsyncIteration
        return post.judged(b"".join(chunks))

    def _measure(self, chunk: bytes) -> None:
        if self._is_stream:
            # The end of an event may be cut in two.
            seen = self._end + chunk
            first, *others = _BLANK_LINE.split(seen)
            longest = self._size - len(self._end) + len(first)
            self._size = len(others[-1]) if others else longest
            self._end = seen[-2:]
        else:
            longest = self._size = self._size + len(chunk)
        if longest > self._limit:
            raise Ended(f"message too long (limit {self._limit} bytes)")

    async def aclose(self) -> None:
        await self._inner.aclose()
