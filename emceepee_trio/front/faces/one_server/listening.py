"""What a client of the modern era listens to of one server: what that promises to tell."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

from ....backend.backend import Backend
from ....backend.connections.callbacks import Params
from ....config.bounds import MAX_SUBSCRIPTIONS, MAX_WAITERS
from ....errors import ToolError
from ....model.protocol.eras import notice_for
from ....tools.common.following import followed
from ... import tasks
from ...news import News
from ..face import Incoming, Result

if TYPE_CHECKING:
    from ...mcp import Front

CHANGES = {
    "toolsListChanged": ("tools", "notifications/tools/list_changed"),
    "promptsListChanged": ("prompts", "notifications/prompts/list_changed"),
    "resourcesListChanged": ("resources", "notifications/resources/list_changed"),
}
"""What a stream may ask for: the capability that promises it, and how it is told."""
UPDATED = "notifications/resources/updated"


async def listen(
    front: Front,
    asked: Incoming,
    backend: Backend,
    promised: Mapping[str, Any],
    *,
    are_between: bool,
) -> Result:
    """Acknowledge what is delivered, first of all; at drain a cancellation, and the result.

    Tasks *are between* client and server where both know them, else they are ours.

    Raises:
        LimitReached: too many listen.
    """
    filters = asked.params.get("notifications")
    wanted: Mapping[str, Any] = filters if isinstance(filters, Mapping) else {}
    honoured: Result = {
        each: True
        for each, (capability, _) in CHANGES.items()
        if wanted.get(each) is True and _says(promised, capability, "listChanged")
    }
    methods = {CHANGES[each][1] for each in honoured}
    uris: list[str] = []
    news = News(front.send)

    def heard(server: str, method: str, params: Params | None) -> None:
        if server != backend.server.name:
            return
        uri = (params or {}).get("uri")
        is_followed = method == UPDATED and isinstance(uri, str) and uri.startswith(tuple(uris))
        if method in methods or is_followed:
            news.tell(method, notice_for(params, asked.id), asked.id)

    async with AsyncExitStack() as stack:
        stack.enter_context(front.session.presence.wait_in(MAX_WAITERS))
        stack.enter_context(front.session.announcements.heard_by(heard))
        for uri in _to_follow(wanted, promised):
            try:
                await stack.enter_async_context(followed(asked.entry.request, backend, uri))
            except ToolError:
                continue  # which the acknowledgement says by not naming it
            uris.append(uri)
        if uris:
            honoured["resourceSubscriptions"] = list(uris)
        follow = tasks.followed(front, asked, news)
        if are_between:
            follow = tasks.theirs_followed(front, asked, backend, news)
        of_tasks = await stack.enter_async_context(follow)
        return await news.listen(front.closing, asked.id, honoured | of_tasks)


def _to_follow(wanted: Mapping[str, Any], promised: Mapping[str, Any]) -> list[str]:
    uris = wanted.get("resourceSubscriptions")
    if not isinstance(uris, list) or not _says(promised, "resources", "subscribe"):
        return []
    return list(dict.fromkeys(map(str, uris)))[:MAX_SUBSCRIPTIONS]


def _says(capabilities: Mapping[str, Any], name: str, what: str) -> bool:
    said = capabilities.get(name)
    return isinstance(said, Mapping) and said.get(what) is True
