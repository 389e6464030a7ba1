"""What we use of the SDK's client beyond what it promises: private names, and its habits.

All of it is here, each with its reason, so that an upgrade is a look at one page.
``tests/test_foundations.py`` asserts each, since most would break in silence: a bound that no
longer holds says nothing. Of ours it knows how to wait, what long texts are, and nothing else.
"""

from __future__ import annotations

import logging
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import anyio
import httpx2
import trio
from mcp import MCPError
from mcp.shared._httpx_utils import next_request_within_origin
from mcp.shared.dispatcher import CallOptions
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp.shared.message import ClientMessageMetadata
from mcp_types import (
    CONNECTION_CLOSED,
    ErrorData,
    JSONRPCError,
    JSONRPCRequest,
    JSONRPCResponse,
)

from ...model.json.long.partly import Partly, unfolded
from ...waits.slices import in_slices
from ...waits.slot import Slot

# Habits, which have no name:
# - The old transport sends each message in the context of whoever handed it over (`old._sending`).
#   Without that a long one would be sent without what is in it.
# - Every request of it goes through `send` of the client that it was given (`old._Client`), with
#   `stream=True` and its event hooks, and what is read is the `stream` of the response, which a
#   hook may replace (`old._Body`). Without that no body has a bound.
# - It raises a RuntimeError if its stream ends before it names an endpoint, and nothing else does
#   in there (`old._open_sdk`).
# - The dispatcher leaves the stream that it reads before it fails the calls for that
#   (`connect._Reads`). Without that they would fail before their loss is told.

LOGGERS = (*("mcp.client.sse", "httpx2", "httpcore2.connection", "httpcore2.http11"),)
"""What they say of peers, with tracebacks, whole URLs and headers, is told to us as errors, too."""

_is_ours: ContextVar[bool] = ContextVar("is_ours", default=False)


def _is_for_others(_: logging.LogRecord) -> bool:
    return not _is_ours.get()


@contextmanager
def unheard() -> Generator[None]:
    """The transports, and what they stand on, log nothing of what is done in here, nor in tasks
    that are started in here.

    Whoever else uses them in this process hears of theirs as before.
    """
    for name in LOGGERS:
        logging.getLogger(name).addFilter(_is_for_others)  # once: it is the same one
    token = _is_ours.set(True)
    try:
        yield
    finally:
        _is_ours.reset(token)


def is_followed(response: httpx2.Response) -> bool:
    """Whether the old transport follows this redirect, so that the next response is the answer.

    Their rule is their own: it depends on origin, method and userinfo.
    """
    return next_request_within_origin(response) is not None


class _Answer(Slot[dict[str, Any] | ErrorData]):
    """What the dispatcher finds in its table for a request of ours."""

    on_progress: None = None
    asking: trio.CancelScope | None = None
    """In which it is waited for by whoever asks, if that is where it comes."""

    @property
    def send(self) -> _Answer:
        return self

    def send_nowait(self, outcome: dict[str, Any] | ErrorData) -> None:
        self.set(outcome)
        if self.asking is not None:
            self.asking.cancel("there is an answer")


class Dispatcher(JSONRPCDispatcher[Any]):
    """The SDK's, whose requests are no more than an entry in its table.

    Its own take a span, two scopes and a pair of streams each. Ours have an id of their own, no
    timeout and no handler of progress, and whoever gives one up says so to the peer.
    """

    exchanges = False
    """Writing a request takes until it is answered. An answer that comes elsewhere ends that."""

    async def send_raw_request(
        self,
        method: str,
        params: Any,
        opts: CallOptions | None = None,
        *,
        _related_request_id: object = None,
        leaves_long: bool = False,
    ) -> dict[str, Any]:
        """*leaves_long*: what is answered may have long texts in it."""
        options = opts or {}
        if self._closed:
            raise _closed()
        number, headers = options["request_id"], options.get("headers")
        answer = _Answer()
        self._pending[number] = answer  # type: ignore[assignment]  # as much of one as is used
        given = {"params": params} if params else {}
        message = JSONRPCRequest(jsonrpc="2.0", id=number, method=method, **given)
        try:
            try:
                about = ClientMessageMetadata(headers=headers) if headers else None
                if self.exchanges:
                    with trio.CancelScope() as answer.asking:
                        await self._write(message, about)
                else:
                    await self._write(message, about)
            except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                raise _closed() from None
            outcome = await answer.wait_result()
        finally:
            self._pending.pop(number, None)
        if isinstance(outcome, ErrorData):
            raise MCPError(code=outcome.code, message=outcome.message, data=outcome.data)
        is_whole = outcome.get("resultType", "complete") == "complete"
        if type(outcome) is Partly and not (leaves_long and is_whole):
            return dict[str, Any](await in_slices(unfolded(outcome)))
        return outcome

    def settle(self, answer: JSONRPCResponse | JSONRPCError) -> None:
        """At once, what :meth:`run` would do with it in a step of its own."""
        said = answer.result if isinstance(answer, JSONRPCResponse) else answer.error
        self._resolve_pending(answer.id, said)


def _closed() -> MCPError:
    return MCPError(code=CONNECTION_CLOSED, message="Connection closed")
