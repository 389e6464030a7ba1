"""What a client of the modern era listens to: changes of lists, and of resources that it names."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

from ....config.bounds import MAX_SUBSCRIPTIONS, MAX_WAITERS
from ....errors import ToolError
from ....tools.common.following import followed
from ... import tasks
from ...news import News
from ..face import Incoming, Result
from .lists import lists_of
from .news import LISTENED, Changes, Look
from .owners import resource_of

if TYPE_CHECKING:
    from ...mcp import Front


async def listen(front: Front, asked: Incoming, look: Look) -> Result:
    """Acknowledge what is delivered, first of all; at drain a cancellation, and the result.

    Raises:
        LimitReached: too many listen.
    """
    session, request = front.session, asked.entry.request
    filters = asked.params.get("notifications")
    wanted: Mapping[str, Any] = filters if isinstance(filters, Mapping) else {}
    lists = {name: told for name, told in LISTENED.items() if wanted.get(name) is True}
    news, readings = News(front.send), lists_of(session).readings
    changes = Changes(session, news, look, readings, frozenset(lists.values()), asked.id)
    honoured: Result = dict.fromkeys(lists, True)
    async with AsyncExitStack() as stack:
        stack.enter_context(session.presence.wait_in(MAX_WAITERS))
        uris = []
        for native in _to_follow(wanted):
            try:
                backend, uri = resource_of(request, native)
                await stack.enter_async_context(followed(request, backend, uri))
            except ToolError:
                continue  # which the acknowledgement says by not naming it
            changes.followed.add((backend.server.name, uri))
            uris.append(native)
        if uris:
            honoured["resourceSubscriptions"] = uris
        of_tasks = await stack.enter_async_context(tasks.followed(front, asked, news))
        return await news.listen(front.closing, asked.id, honoured | of_tasks, changes.run)


def _to_follow(wanted: Mapping[str, Any]) -> list[str]:
    uris = wanted.get("resourceSubscriptions")
    return list(dict.fromkeys(map(str, uris)))[:MAX_SUBSCRIPTIONS] if isinstance(uris, list) else []
