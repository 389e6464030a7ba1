"""Pages that a user has to open before a server does what it is asked: its error -32042.

Servers of the handshake era answer a call with it, and say which pages. Each becomes a question to
the user, as if the server had asked; once all are accepted, and the server says that what was done
there is done, it is asked again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

import trio
from mcp import MCPError

from ...backend.connections.callbacks import Abandoned, Params
from ...backend.connections.client import Client
from ...session.session import Session

T = TypeVar("T")

PAGES_FIRST = -32042
AT_ONCE = 10
"""Pages of one error; with more it is passed on as an error."""
TIMES = 5
"""That a server may want pages for one request."""
DONE_WITHIN = 60.0
"""Seconds for a server to say that it is done, from when the user has agreed to open a page. Not
all say so; then it is asked again in any case."""
DONE = "notifications/elicitation/complete"


async def with_pages(
    session: Session, client: Client, server: str, exchange: Callable[[], Awaitable[T]]
) -> T:
    """What *exchange* comes to, which asks that server, after as many pages as it wants.

    Raises:
        MCPError: the server's, also where the user has not agreed.
    """
    for _ in range(TIMES):
        try:
            return await exchange()
        except MCPError as error:
            pages = _pages(error)
            if not pages:
                raise
            wanted = error
        if not await _are_done(session, client, server, pages):
            raise wanted
    return await exchange()


def _pages(error: MCPError) -> list[Mapping[str, Any]]:
    """Params of a question for each; none if it is another error, or says too much."""
    data = error.error.data
    said = data.get("elicitations") if isinstance(data, Mapping) else None
    if error.error.code != PAGES_FIRST or not isinstance(said, list) or len(said) > AT_ONCE:
        return []
    pages: list[Mapping[str, Any]] = [
        {"message": "", **each} for each in said if isinstance(each, Mapping)
    ]
    are_pages = all(page.get("mode") == "url" and "url" in page for page in pages)
    return pages if are_pages and len(pages) == len(said) else []


async def _are_done(
    session: Session, client: Client, server: str, pages: list[Mapping[str, Any]]
) -> bool:
    """Whether the user has agreed to all of them; then after the server has said it is done."""
    ids = (page.get("elicitationId") for page in pages)
    waiting = {id_ for id_ in ids if isinstance(id_, str)}
    done, is_agreed = trio.Event(), False

    def heard(of: str, method: str, params: Params | None) -> None:
        if of == server and method == DONE:
            waiting.discard(str((params or {}).get("elicitationId")))
            if not waiting:
                done.set()

    def abandoned() -> Abandoned:
        return "server_disconnected" if client.over.is_set() else "call_ended"

    async with trio.open_nursery() as nursery:

        async def until_over() -> None:
            await client.over.wait()
            nursery.cancel_scope.cancel("the server is lost")

        nursery.start_soon(until_over)
        with session.announcements.heard_by(heard):
            for page in pages:
                try:
                    answer = await session.ask(server, "elicitation", page, abandoned)
                except MCPError:  # nobody has answered, or nobody may any more
                    break
                if answer.get("action") != "accept":
                    break
            else:
                is_agreed = True
                with trio.move_on_after(DONE_WITHIN if waiting else 0):
                    await done.wait()
        nursery.cancel_scope.cancel("over")
    return is_agreed
