"""One message on its way over HTTP: how long it is waited for, and what counts as its answer.

What a server says is taken from its responses here, where they pass, and by the rules that hold for
every transport. The SDK, which would parse them by its own, is told no more of them than that a
request has its answer, and where a stream can be resumed.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any, Literal

import attrs
import httpx2
import trio
from mcp.shared.dispatcher import coerce_request_id
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCResponse,
)

from ...model.json.intake import Measure, Steps
from ...waits.slices import in_slices
from ..connections.messages import Said, note, parse
from .event_stream import EventStream, ServerSentEvent, TooLong
from .pace import Pace

NOTICE_PATIENCE = 5.0
"""Seconds for a peer to take what wants no answer. Others wait behind it, and health checks, which
are patient for longer, must not fail for that."""

Say = Callable[[JSONRPCMessage, str | int | None], Awaitable[None]]
"""Hands what a server says to whom it concerns, with the request in the answer to which it came."""


OnStream = Callable[[Literal["begins", "pauses"]], None]
"""Told of the stream in which an answer comes, and when its server would be asked for the rest."""

Kind = Literal["events", "answer", "refusal", "other"]
"""Of a response: a stream of events, JSON that answers a request, the same with the status of an
error, or what nobody looks at."""


_SENDING = {
    "connection.connect_tcp.started": True,
    "connection.connect_unix_socket.started": True,
    "http11.send_request_headers.started": False,
}
"""What is done next, and whether nothing is sent until the next of these."""

_HEAD, _HEADERS = "http11.receive_response_headers.complete", 3
"""Where httpcore tells what it has read, and the place of the headers in it."""
MANY = 100
"""Headers, for others to run before they are looked at again; and pieces of a body."""
MANY_SAID = 1000
"""Messages of one text that are gone through in one step."""


@attrs.define(eq=False)
class Post:
    id: int | str | None = None
    """Of a request; everything else wants no answer."""
    is_initialize: bool = False
    on_stream: OnStream | None = None
    body: bytes | None = attrs.field(default=None, init=False)
    """What goes out, if the SDK has not the whole message."""
    is_unsent: bool = attrs.field(default=False, init=False)
    """There is no connection yet to send it on; if it stays so, nobody has run it."""
    abandoned: bool = attrs.field(default=False, init=False)
    broke_off: bool = attrs.field(default=False, init=False)
    """The last stream that could have carried its answer has ended."""
    pace: Pace | None = attrs.field(default=None, init=False)
    """At which its answer is asked for, if it comes in pieces."""
    _scope: trio.CancelScope | None = attrs.field(default=None, init=False)

    async def trace(self, event: str, details: Mapping[str, Any]) -> None:
        """Told by httpcore what it does with it."""
        if event in _SENDING:
            self.is_unsent = _SENDING[event]
        if event == _HEAD and len(details["return_value"][_HEADERS]) > MANY:
            await trio.lowlevel.checkpoint()  # all of them are looked at again
        await trio.lowlevel.checkpoint_if_cancelled()

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

    def done(self) -> bytes:
        """An answer for the SDK, which waits for one; whoever asked has had the peer's."""
        return json.dumps({"jsonrpc": "2.0", "id": self.id, "result": {}}).encode()

    def event(self) -> bytes:
        """The end of a stream of events; the SDK asks for no more of it then."""
        return b"\n\ndata: " + self.done() + b"\n\n"

    def instead(self, request: httpx2.Request) -> httpx2.Response:
        """What the SDK is told in place of a response that was not waited for."""
        if self.id is None:
            return httpx2.Response(202, request=request)
        headers = {"content-type": "text/event-stream"}
        return httpx2.Response(200, headers=headers, content=self.event(), request=request)

    def answer(self, said: Said, *, is_all: bool) -> Steps[JSONRPCResponse | JSONRPCError | None]:
        """The answer to this request, or an error if no other will come; takes it from *said*.

        *is_all*: there is nothing else in the response.
        """
        found: JSONRPCResponse | JSONRPCError | None = None
        others: list[JSONRPCMessage] = []
        for n, message in enumerate(said.messages, 1):
            if n % MANY_SAID == 0:
                yield
            if not isinstance(message, JSONRPCResponse | JSONRPCError):
                others.append(message)
            # An error of no id is of a request whose id could not be read.
            elif found is None and (message.id is None or coerce_request_id(message.id) == self.id):
                found = message
        is_answers = len(others) < len(said.messages)
        said.messages[:] = others
        if found is not None:
            found.id = self.id
            return found
        if said.why_not is not None and not others and not is_answers:
            why, code = f"the server's message {said.why_not}", INTERNAL_ERROR
        elif is_all or is_answers:
            why = "the server sent something that is no answer to this request"
            code = INVALID_REQUEST
        else:
            return None
        return JSONRPCError(jsonrpc="2.0", id=self.id, error=ErrorData(code=code, message=why))


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
    """A response on its way to the SDK; what the server says in it turns off here."""

    _inner: Any
    _measure: Measure
    _failed: Callable[[httpx2.RequestError], None]
    _say: Say
    _kind: Kind
    _post: Post | None
    """What it answers, if that is one of our requests."""
    _chunks: AsyncIterator[bytes] = attrs.field(init=False)
    _size: int = attrs.field(default=0, init=False)
    """So far."""
    _pieces: int = attrs.field(default=0, init=False)
    _stream: EventStream = attrs.field(init=False)
    _is_told: bool = attrs.field(default=False, init=False)
    _events: Iterator[ServerSentEvent | None] = attrs.field(factory=lambda: iter(()), init=False)
    """Of the last chunk, that are not handed on yet."""

    def __attrs_post_init__(self) -> None:
        self._stream = EventStream(self._measure.size)

    # Not a generator: the SDK leaves its loops in the middle, and nobody would close it.
    def __aiter__(self) -> AsyncIterator[bytes]:
        self._chunks = aiter(self._inner)
        if self._post is not None and self._kind == "events":
            self._post.broke_off = False
            if self._post.on_stream is not None:
                self._post.on_stream("begins")
        return self

    async def __anext__(self) -> bytes:
        if self._post is None or self._post.id is None:
            return await self._next()
        with self._post.waiting():
            return await self._next()
        return self._post.event()

    async def _next(self) -> bytes:
        try:
            match self._kind:
                case "events":
                    return await self._next_event()
                case "answer" | "refusal" if self._post is not None:
                    return await self._whole(self._post)
                case _:
                    return await self._next_chunk()
        except (StopAsyncIteration, httpx2.RequestError) as error:
            if self._post is not None and self._kind == "events":
                self._post.broke_off = True
                if isinstance(error, StopAsyncIteration) and self._post.on_stream is not None:
                    self._post.on_stream("pauses")
            if isinstance(error, httpx2.RequestError):
                self._failed(error)
            raise

    async def _next_chunk(self) -> bytes:
        chunk = await anext(self._chunks)
        self._pieces += 1
        if self._pieces % MANY == 0:  # of what was read at once, there may be one for each byte
            await trio.lowlevel.checkpoint()
        self._size += len(chunk)
        if self._kind != "events" and self._size > self._measure.size:
            raise self._too_long()
        return chunk

    def _too_long(self) -> Ended:
        return Ended(f"message too long (limit {self._measure.size} bytes)")

    async def _next_event(self) -> bytes:
        try:
            while True:
                for event in self._events:
                    if event is None:
                        await trio.lowlevel.checkpoint()
                    elif passed_on := await self._take(event):
                        return passed_on
                self._events = self._stream.feed(await self._next_chunk())
        except TooLong:
            raise self._too_long() from None

    async def _take(self, event: ServerSentEvent) -> bytes:
        """What the SDK is told of it."""
        if event.kind == "endpoint":
            lines = b"".join(b"data: " + line + b"\n" for line in event.data.split(b"\n"))
            return event.head + b"event: endpoint\n" + lines + b"\n"
        if event.kind == "message" and event.data:
            said = await in_slices(parse(event.data, self._measure))
            if await self._is_answered(said, is_all=False):
                assert self._post is not None
                return event.head + b"data: " + self._post.done() + b"\n\n"
        return event.head + b"\n" if event.head else b""

    async def _whole(self, post: Post) -> bytes:
        """The SDK collects it anyway."""
        if self._is_told:
            raise StopAsyncIteration
        self._is_told, body = True, bytearray()
        with suppress(StopAsyncIteration):
            while True:
                body += await self._next_chunk()
        said = await in_slices(parse(body, self._measure))
        if self._kind == "refusal":
            said = Said([m for m in said.messages if isinstance(m, JSONRPCError)])
            if not said.messages:
                return b"{}"  # the SDK makes an error of the status
        await self._is_answered(said, is_all=True)
        return post.done()

    async def _is_answered(self, said: Said, *, is_all: bool) -> bool:
        """Hand on what was said; whether the request has its answer."""
        answer = request_id = None
        if self._post is not None and self._post.id is not None:
            request_id = self._post.id
            answer = await in_slices(self._post.answer(said, is_all=is_all))
        for message in said.messages:
            await self._say(message, request_id)
        if answer is not None:
            await self._say(answer, request_id)
        elif said.why_not is not None and not said.messages:
            await self._say(note(f"the server's message {said.why_not}"), request_id)
        return answer is not None

    async def aclose(self) -> None:
        await self._inner.aclose()
