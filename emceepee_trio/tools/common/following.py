"""Following resources: for the session, which says so and undoes it, or for as long as a stream
of its client lasts. A server hears of the first who follows, and of the last who does no more.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from mcp import MCPError

from ...backend.backend import Backend
from ...config.bounds import MAX_SUBSCRIPTIONS
from ...errors import ExecutionFailed, LimitReached, NotFound, TimedOut, ToolError
from ...waits.firewall import Firewall, begin
from .asking import as_tool_error, ask
from .registry import Request


def check_shown(backend: Backend, uri: str) -> None:
    """Raises `NotFound` for a resource that its entry hides."""
    if backend.catalog.hides_resource(uri):
        raise NotFound(
            f"server {backend.server.name!r} has no resource {uri!r}; list_resources shows what "
            "it has"
        )


async def subscribe(request: Request, backend: Backend, uri: str) -> None:
    """Have the session follow it.

    Raises:
        ToolError: it cannot be followed.
    """
    wanted = backend.preferences
    check_shown(backend, uri)
    if uri in wanted.subscriptions:
        return
    _check_room(backend)
    is_followed = uri in wanted.streams
    # Remembered first, so that a connection made meanwhile restores it.
    wanted.subscriptions.add(uri)
    if is_followed:
        return
    try:
        await _tell(request, backend, "resources/subscribe", uri)
    except BaseException:
        wanted.subscriptions.discard(uri)
        raise


async def unsubscribe(request: Request, backend: Backend, uri: str) -> None:
    """Undo it; nothing if it is not followed."""
    wanted = backend.preferences
    if uri not in wanted.subscriptions:
        return
    wanted.subscriptions.discard(uri)
    if backend.client is not None and uri not in wanted.streams:
        await _tell(request, backend, "resources/unsubscribe", uri)


@asynccontextmanager
async def followed(request: Request, backend: Backend, uri: str) -> AsyncGenerator[None]:
    """It is, for as long as the block lasts.

    Raises:
        ToolError: it cannot be followed.
    """
    wanted = backend.preferences
    check_shown(backend, uri)
    if uri not in wanted.streams:
        _check_room(backend)
    is_followed = uri in wanted.subscribed()
    wanted.streams[uri] += 1
    try:
        if not is_followed:
            await _tell(request, backend, "resources/subscribe", uri)
        yield
    finally:
        wanted.streams[uri] -= 1
        if not wanted.streams[uri]:
            del wanted.streams[uri]
        inner = request.session.inner
        if (
            uri not in wanted.subscribed()
            and backend.client is not None
            and not inner.cancel_scope.cancel_called
        ):
            # In a task of the session: who has followed it is perhaps being cancelled.
            wall = Firewall("unsubscribe_crashed", None, fields={"session": request.session.id})
            begin(inner, wall, _let_go, request, backend, uri)


async def _let_go(request: Request, backend: Backend, uri: str) -> None:
    if uri not in backend.preferences.subscribed() and backend.client is not None:
        try:
            await _tell(request, backend, "resources/unsubscribe", uri)
        except ToolError:
            pass  # it is not told of it any more, or is gone


def _check_room(backend: Backend) -> None:
    if len(backend.preferences.subscribed()) >= MAX_SUBSCRIPTIONS:
        raise LimitReached(
            f"{MAX_SUBSCRIPTIONS} resources of server {backend.server.name!r} are followed in this "
            "session; unsubscribe_resource from some of them first"
        )


async def _tell(request: Request, backend: Backend, method: str, uri: str) -> None:
    client = await backend.connection()
    if not client.negotiated.is_modern:
        await ask(request, backend, method, {"uri": uri})
        return
    # The modern era has no such requests; what is followed is part of listening.
    try:
        agreed = await backend.follow_changes()
    except MCPError as error:
        raise as_tool_error(error, backend.server.name, "subscriptions/listen") from None
    except TimeoutError as error:
        raise TimedOut(str(error)) from None
    if uri in backend.preferences.subscribed() and uri not in (
        agreed.get("resourceSubscriptions") or ()
    ):
        raise ExecutionFailed(f"server {backend.server.name!r} does not follow changes of {uri!r}")
