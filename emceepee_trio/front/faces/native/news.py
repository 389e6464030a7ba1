"""What a client of the view hears without having asked: that a list which it has read is another
one, and that a resource which it follows has changed.

Servers say that lists change whenever they like. So whether one has is looked at, at most once a
second, and told only if it has. A connection of the handshake era hears it for as long as it
lasts, one of the modern era on the streams that it listens to.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import attrs
import trio
from mcp_types import RequestId

from ....backend.catalogue.catalog import Entries
from ....backend.connections.callbacks import Params
from ....model import events
from ....model.events import Happening
from ....model.native.places import in_update
from ....model.native.uris import native_uri
from ....model.protocol.apps import UI
from ....model.protocol.eras import notice_for
from ....session.session import Session
from ....tools.common.registry import Request
from ....waits.bell import Bell
from ....waits.firewall import begin_lasting
from ...news import News
from ..face import extensions_of
from .lists import lists_of
from .readings import Readings, digest_of

if TYPE_CHECKING:
    from ...mcp import Front

EVERY = 1.0
"""Seconds between two looks at lists, for one client, and so at least between what it is told."""

Look: TypeAlias = Callable[[str], Awaitable[Entries]]
"""The list of that method, as the client would read it now."""

CHANGES: Mapping[str, tuple[str, ...]] = {
    "notifications/tools/list_changed": ("tools/list",),
    "notifications/resources/list_changed": ("resources/list", "resources/templates/list"),
    "notifications/prompts/list_changed": ("prompts/list",),
}
"""Which lists are other ones then, by their methods."""
UPDATED = "notifications/resources/updated"

COMINGS = (
    events.ServerAdded,
    events.ServerConnected,
    events.ServerReconnected,
    events.ServerRemoved,
    events.Restarted,
)
"""Whereupon any list may be another one. What is lost stays listed."""


@attrs.define(eq=False)
class Changes:
    """What is told on one connection, or on one stream of the modern era."""

    session: Session
    news: News
    look: Look
    readings: Readings
    wanted: frozenset[str] = frozenset(CHANGES)
    """The notifications that are."""
    about: RequestId | None = None
    """The request whose stream it is."""
    followed: set[tuple[str, str]] = attrs.field(factory=set, init=False)
    """Servers and URIs of resources."""
    _told: dict[str, bytes] = attrs.field(factory=dict, init=False)
    """Lists as the client knows them to be, or may: as it first read them, or was told since."""
    _due: set[str] = attrs.field(factory=set, init=False)
    """Lists that may be other ones."""
    _news: Bell = attrs.field(factory=Bell, init=False)

    async def run(self, over: trio.Event) -> None:
        """Tell until *over*."""
        self.readings.listeners.add(self.begin)
        try:
            # Also of what has changed since they were read, whoever was told of that.
            for method, digest in self.readings.digests.items():
                self.begin(method, digest)
            with (
                self.session.announcements.heard_by(self._heard),
                self.session.announcements.watched_by(self._happened),
            ):
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self.news.run, over)
                    nursery.start_soon(self._tell)
                    await over.wait()
                    nursery.cancel_scope.cancel("the connection is over")
        finally:
            self.readings.listeners.discard(self.begin)

    def begin(self, method: str, digest: bytes) -> None:
        """The client has read that; it may have changed since, without anybody to be told."""
        if method not in self._told:
            self._told[method] = digest
            self._look_at(method)

    def _heard(self, server: str, method: str, params: Params | None) -> None:
        if method in self.wanted:
            self._look_at(*CHANGES[method])
        elif method == UPDATED and self._follows(server, params):
            said = in_update(dict(params or {}), lambda uri: native_uri(server, uri))
            self.news.tell(UPDATED, notice_for(said, self.about), self.about)

    def _follows(self, server: str, params: Params | None) -> bool:
        uri = (params or {}).get("uri")
        # Of a folder, whatever is in there.
        return isinstance(uri, str) and any(
            server == its and uri.startswith(followed) for its, followed in self.followed
        )

    def _happened(self, server: str, happening: Happening) -> None:
        if isinstance(happening, COMINGS):
            for notification in self.wanted:
                self._look_at(*CHANGES[notification])

    def _look_at(self, *methods: str) -> None:
        self._due.update(methods)
        self._news.ring()

    async def _tell(self) -> None:
        while True:
            # What nobody has read is nothing to anybody.
            while self._due.isdisjoint(self._told):
                await self._news.wait()
            due, self._due = self._due, set()
            for notification in CHANGES:
                if notification in self.wanted:
                    await self._tell_if_changed(notification, due)
            await trio.sleep(EVERY)

    async def _tell_if_changed(self, notification: str, due: set[str]) -> None:
        is_changed = False
        for method in CHANGES[notification]:
            if method in due and method in self._told:
                digest = await digest_of(await self.look(method))
                is_changed |= digest != self._told[method]
                self._told[method] = digest
        if is_changed:
            self.news.tell(notification, notice_for(None, self.about), self.about)


LISTENED: Mapping[str, str] = {
    "toolsListChanged": "notifications/tools/list_changed",
    "resourcesListChanged": "notifications/resources/list_changed",
    "promptsListChanged": "notifications/prompts/list_changed",
}
"""What a stream may ask for, and the notification that it is told by."""


def begin_to_tell(front: Front, request: Request) -> None:
    """A connection that lasts hears what changes, for so long; once, though it greet twice."""
    session = front.session
    if front.changes is not None or session.inner.cancel_scope.cancel_called:
        return
    for_apps = UI in extensions_of(front.capabilities)
    look = partial(lists_of(session).whole, request, for_apps=for_apps)
    front.changes = changes = Changes(session, News(front.send), look, Readings())
    begin_lasting(session.inner, "news_crashed", changes.run, front.closing, session=session.id)


def readings_of(front: Front) -> Readings:
    """What its client has read; of the modern era, all of its session."""
    changes = front.changes
    return lists_of(front.session).readings if changes is None else changes.readings
