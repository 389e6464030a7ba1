"""One message on its way over HTTP, and what counts as its answer."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Literal

import attrs
import httpx2
from mcp.shared.dispatcher import coerce_request_id
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCResponse,
)

from ...model.json.intake import Steps
from ..connections.messages import Said

OnStream = Callable[[Literal["begins", "pauses"]], None]
"""Told of the stream in which an answer comes, and when its server would be asked for the rest."""

_SENDING = {
    "connection.connect_tcp.started": True,
    "connection.connect_unix_socket.started": True,
    "http11.send_request_headers.started": False,
}
"""What httpcore does next, and whether nothing is sent until the next of these."""

MANY_SAID = 1000
"""Messages of one text that are gone through in one step."""


@attrs.define(eq=False)
class Post:
    id: int | str | None = None
    """Of a request; everything else wants no answer."""
    is_initialize: bool = False
    on_stream: OnStream | None = None
    is_unsent: bool = attrs.field(default=False, init=False)
    """There is no connection yet to send it on; if it stays so, nobody has run it."""
    broke_off: bool = attrs.field(default=False, init=False)
    """The last stream that could have carried its answer has ended."""

    async def trace(self, event: str, _: Mapping[str, Any]) -> None:
        """Told by httpcore what it does with it, where that brings it."""
        if event in _SENDING:
            self.is_unsent = _SENDING[event]

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
"""The message on its way, for whoever sends it."""


@contextmanager
def as_post(post: Post) -> Generator[Post]:
    token = posting.set(post)
    try:
        yield post
    finally:
        posting.reset(token)


class Ended(httpx2.TransportError):
    """What the peer said, or how long it was, ends the connection."""
