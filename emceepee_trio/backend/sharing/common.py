"""The backend that sessions have together: kept connected like any other, for all of its leases."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING

import attrs

from ..connections.callbacks import Callbacks
from ..connections.client import Client
from ..link import Link
from ..preferences import Preferences
from ..private import Private
from .wire import Wire

if TYPE_CHECKING:
    from .hub import Hub


@attrs.define(eq=False)
class _CommonPreferences(Preferences):
    """What any of the leases wants of each new connection."""

    hub: Hub = attrs.field(kw_only=True)

    def subscribed(self) -> frozenset[str]:
        return frozenset().union(*(each.preferences.subscribed() for each in self.hub.leases))


@attrs.define(eq=False, repr=False)
class Common(Private):
    hub: Hub = attrs.field(kw_only=True)

    def __attrs_post_init__(self) -> None:
        Private.__attrs_post_init__(self)
        self.preferences = _CommonPreferences(self.server.name, self.session_id, hub=self.hub)

    def callbacks(self, link: Link) -> Callbacks:
        return Wire(
            self.server.name,
            self.hub.audience,
            self._list_changed,
            link.why_over,
            link.over,
            self.uses.one,
            hub=self.hub,
        )

    def connected(
        self, link: Link, client: Client, before: Link | None
    ) -> AbstractAsyncContextManager[None]:
        self.preferences.log_level = self.hub.loudest()
        wire = link.callbacks
        assert isinstance(wire, Wire)
        wire.works(client)
        return Private.connected(self, link, client, before)

    def lost(self) -> None:
        self.hub.lost()
        Private.lost(self)
