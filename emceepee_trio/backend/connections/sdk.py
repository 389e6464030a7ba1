"""What we use of the SDK's client beyond what it promises: private names, and its habits.

All of it is here, each with its reason, so that an upgrade is a look at one page.
``tests/test_foundations.py`` asserts each, since most would break in silence: a bound that no
longer holds says nothing. Knows nothing of ours.
"""

from __future__ import annotations

import logging
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

import httpx2
from mcp.shared._httpx_utils import next_request_within_origin

# Habits, which have no name:
# - Each message is sent in the context of whoever handed it over (`posts.posting`). Without that a
#   POST is not known to be the call that it carries: it is neither judged nor abandoned.
# - Every request goes through `send` of the client that its transport was given (`http._Client`),
#   with `stream=True` and its event hooks, and what is read is the `stream` of the response, which
#   a hook may replace (`posts.Body`). Without that no body has a bound.
# - The dispatcher takes `request_id` and `cancel_on_abandon` of `CallOptions` at their word. Or
#   nobody would know which call progress is of, and each would be cancelled twice.
# - The old transport raises a RuntimeError if its stream ends before it names an endpoint, and
#   nothing else does in there (`http._open_sse`).
# - The dispatcher leaves the stream that it reads before it fails the calls for that
#   (`connect._Reads`). Without that they would fail before their loss is told.
# - A stream that ended before the answer that it owed is told with the code of a closed connection.

LOGGERS = (
    *("mcp.client.sse", "mcp.client.streamable_http"),
    *("httpx2", "httpcore2.connection", "httpcore2.http11"),
)
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
    """Whether the transports follow this redirect, so that the next response is the answer.

    Their rule is their own: it depends on origin, method and userinfo.
    """
    return next_request_within_origin(response) is not None
