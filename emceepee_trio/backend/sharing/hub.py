"""One connection that the sessions of a principal have together, and who has it.

It lives in a task of its own beside the sessions, from the first lease on until the last one is
given back, and a while longer.

Once it is *split* nobody new comes: each lease has a connection of its own, what was under way here
ends here, and so does the hub when that is over, or lost.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

import attrs
import trio

from ...config import Config, Server
from ...model import events, facts
from ...model.facts import Unanswerable
from ...waits.bell import Bell
from ...waits.firewall import Firewall, begin
from ..children.process import PATIENCE
from ..connections.callbacks import LogLine
from ..connections.client import Client
from ..shared import Shared
from .audience import Audience
from .common import Common
from .places import FairPlaces
from .wire import Wire, loudest

if TYPE_CHECKING:
    from .lease import Lease

ADVICE = {
    "elicitation": "it asked its user something",
    "sampling": "it asked for a model",
    "roots": "it asked for its folders, which are not the same for all",
}


class Owner(Protocol):
    """Who knows all hubs."""

    def forget(self, hub: Hub) -> None:
        """Nobody gets a lease of it any more."""
        ...

    def split(self, hub: Hub) -> None:
        """Nor of another one, as long as its server's entry is the same."""
        ...

    @property
    def unshown(self) -> Callable[[str, LogLine], object]:
        """Given what may be of any session of that principal, and none is shown."""
        ...


@attrs.define(eq=False, repr=False)
class Hub:
    server: Server
    principal: str
    config: Config
    shared: Shared
    id: str
    """For the log and for what is noted, as a session has one."""
    wall: Callable[[], float]
    restricted: bool
    once: bool
    owner: Owner
    audience: Audience = attrs.field(init=False)
    backend: Common = attrs.field(init=False)
    places: FairPlaces | None = attrs.field(init=False)
    leases: dict[Lease, None] = attrs.field(factory=dict, init=False)
    """In the order in which they came; those that were moved, too, while something of them is
    under way."""
    is_split: bool = attrs.field(default=False, init=False)
    ended: trio.Event = attrs.field(factory=trio.Event, init=False)
    _ever: int = attrs.field(default=0, init=False)
    """Leases that there were."""
    _changed: Bell = attrs.field(factory=Bell, init=False)
    _nursery: trio.Nursery | None = attrs.field(default=None, init=False)
    _patience: float = attrs.field(default=PATIENCE, init=False)
    _is_hurried: bool = attrs.field(default=False, init=False)
    _does_linger: bool = attrs.field(default=True, init=False)
    """Once nobody has it."""

    def __attrs_post_init__(self) -> None:
        most = self.server.max_concurrent
        self.places = None if most is None else FairPlaces(most)
        self.audience = Audience(self)
        self.backend = Common(
            self.server,
            self.audience,
            self.config,
            self.shared,
            self.id,
            self.wall,
            self.restricted,
            self.once,
            self.principal,
            True,
            hub=self,
        )

    # The task.

    async def run(self) -> None:
        """Until nobody has a lease any more, and nobody comes for one."""
        try:
            async with trio.open_nursery() as self._nursery:
                begin(self._nursery, self._wall("sharing_crashed"), self._end_when_unused)
                await self.backend.run()
                self._nursery.cancel_scope.cancel("it has ended")
        finally:
            self._nursery = None
            self.owner.forget(self)
            self.shared.journal.note(facts.SharingOver, self.id, self.server.name)
            self.ended.set()
            self._changed.ring()

    def _wall(self, event: str) -> Firewall:
        return Firewall(event, fields=self.backend.supervisor.who)

    async def _end_when_unused(self) -> None:
        while True:
            while self.leases and not self._is_over:
                self.audience.departing.clear()  # it goes on without them
                await self._changed.wait()
            if self._does_linger and not self.is_split:
                with trio.move_on_after(self.server.linger_ms / 1000):
                    while not self.leases and self._does_linger:
                        await self._changed.wait()
            # No checkpoint from this look to the end: who comes in this tick is in time, or takes
            # another one.
            if self._is_over or not self.leases:
                return self.close("no session has it any more")

    @property
    def _is_over(self) -> bool:
        """It is split, and nothing of it works any more."""
        return self.is_split and self.backend.client is None

    def close(self, reason: str) -> None:
        self.owner.forget(self)
        self.backend.leave(reason, self._patience)

    def hurry(self, patience: float) -> None:
        """It does not stay longer than its leases, and a child gets *patience* for each step."""
        self._patience, self._is_hurried, self._does_linger = patience, True, False
        self._changed.ring()

    # Who has it.

    def take(self, lease: Lease) -> None:
        self.leases[lease] = None
        self._ever += 1
        self._does_linger = not self._is_hurried
        self._changed.ring()

    def give_back(self, lease: Lease, *, is_wanted: bool) -> None:
        """What is under way of it is cancelled. *is_wanted*: somebody may come for the server."""
        if lease not in self.leases:
            return
        del self.leases[lease]
        if (wire := self.wire) is not None and self._nursery is not None:
            tasks = wire.drop(lease)
            begin(self._nursery, self._wall("unsubscribe_crashed"), wire.tidy, tasks)
        if not is_wanted:
            self._does_linger = False
            self.audience.departing.append(lease)
        self._changed.ring()

    @property
    def alone(self) -> Lease | None:
        """The lease, if there was never another one."""
        return next(iter(self.leases), None) if self._ever == 1 else None

    @property
    def here(self) -> list[Lease]:
        """Leases that have not moved."""
        return [lease for lease in self.leases if not lease.has_moved]

    async def until_over(self) -> None:
        """It has ended for those who have given it back for good, or others still have it."""
        while not (self.leases or self._does_linger or self.ended.is_set()):
            await self._changed.wait()

    @property
    def wire(self) -> Wire | None:
        """Of the connection that there is."""
        client = self.backend.client
        if client is None:
            return None
        assert isinstance(client.callbacks, Wire)
        return client.callbacks

    def client_of(self, lease: Lease, client: Client) -> Client:
        """*client* as that lease has it."""
        assert isinstance(client.callbacks, Wire)
        return client.callbacks.client_of(lease, client)

    def levels(self, but: Lease | None = None) -> list[str | None]:
        """Of logs, that leases have chosen."""
        return [each.preferences.log_level for each in self.leases if each is not but]

    def loudest(self) -> str | None:
        """None: nobody has chosen any."""
        levels = self.levels()
        level: str | None = loudest(levels) if any(levels) else None
        return level

    def lost(self) -> None:
        """The connection; nobody knows it yet."""
        if (wire := self.wire) is not None:
            wire.is_lost()
        for lease in self.leases:
            lease.lost()

    def disconnected(self) -> None:
        """All have been told; if it is split nothing follows."""
        self._changed.ring()

    # Roots: a server has one set of them, whoever asks it for something.

    def common_roots(self) -> list[dict[str, Any]] | None:
        """What all of them have chosen; None if that is not the same."""
        found = [each.tenant.roots(self.server.name) for each in self.leases]
        if not found:
            return [] if self.wire is None else self.wire.told_roots or []
        return found[0] if all(each == found[0] for each in found) else None

    def suits(self, lease: Lease) -> bool:
        """Whether the server believes what this lease would tell it."""
        told = None if self.wire is None else self.wire.told_roots
        return told is None or told == lease.tenant.roots(self.server.name)

    def roots_changed(self, lease: Lease) -> None:
        """Of that lease."""
        wire = self.wire
        if wire is None or wire.common is None:
            return
        if not self.suits(lease):
            if len(self.leases) > 1:
                self.split("roots")
                return
            wire.told_roots = lease.tenant.roots(self.server.name)  # it is about to ask for them
        if not wire.common.negotiated.is_modern:
            wire.common.notify("notifications/roots/list_changed")

    def part(self, lease: Lease) -> None:
        """It does not suit *lease*: the server believes other roots, of who is here or was."""
        if len(self.leases) > 1:
            self.split("roots")
            return
        self.is_split = True
        self.owner.forget(self)
        lease.move()
        self._changed.ring()

    def split(self, asked: Unanswerable) -> None:
        """Each has a connection of its own from now on."""
        if self.is_split:
            return
        self.is_split = True
        self.owner.split(self)
        name, count = self.server.name, len(self.leases)
        advice = (
            f"{ADVICE[asked]}, and {count} sessions have shared server {name!r}: nobody was asked, "
            "and it was told so. Each session has a connection of its own from now on, where the "
            "server has nothing in memory; call again what has failed. Its operator can say "
            '"scope": "session" in its entry'
        )
        self.shared.journal.note(facts.SharingSplit, self.id, name, asked, count)
        for lease in tuple(self.leases):
            lease.tenant.publish(name, events.ShareConflict(name, asked, count, advice))
            lease.move()
        self._changed.ring()

    @property
    def who(self) -> dict[str, Any]:
        return self.backend.supervisor.who
