"""Events that are kept, and those of them that wait to be told, in their order."""

from __future__ import annotations

import heapq

import attrs

from ..model.events import Event, Happening, Notification
from ..model.wire import dumps


@attrs.define(eq=False)
class KeptEvent:
    event: Event
    until: float
    """On trio's clock."""
    notice: str | None
    """What further ones like it say, which are counted and not kept."""
    outgoing: int = 0
    """Responses that are on their way with it; more than one only if asked for again."""
    delivered: bool = False

    @property
    def is_pending(self) -> bool:
        return not self.outgoing and not self.delivered


@attrs.define(eq=False)
class Pending:
    """What waits to be taken, oldest first; costs nothing for what is kept beside it.

    Heaps, since what comes back belongs in its place. Only the oldest leaves, or all of them do:
    so whatever leaves is the oldest among those like it, too, and neither heap has holes.
    """

    _waiting: list[tuple[str, KeptEvent]] = attrs.field(factory=list, init=False)
    _notices: dict[str, list[tuple[str, KeptEvent]]] = attrs.field(factory=dict, init=False)

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, kept: KeptEvent) -> None:
        heapq.heappush(self._waiting, (kept.event.id, kept))
        if kept.notice is not None:
            heapq.heappush(self._notices.setdefault(kept.notice, []), (kept.event.id, kept))

    def oldest(self) -> KeptEvent:
        return self._waiting[0][1]

    def like(self, notice: str) -> KeptEvent | None:
        """The oldest of those that say the same."""
        alike = self._notices.get(notice)
        return alike[0][1] if alike else None

    def pop(self) -> KeptEvent:
        """The oldest."""
        _, kept = heapq.heappop(self._waiting)
        if kept.notice is not None:
            alike = self._notices[kept.notice]
            heapq.heappop(alike)
            if not alike:
                del self._notices[kept.notice]
        return kept

    def pop_all(self) -> list[KeptEvent]:
        """In no order."""
        waiting, self._waiting = self._waiting, []
        self._notices.clear()
        return [kept for _, kept in waiting]


def notice_of(server: str, happening: Happening) -> str | None:
    """The same text for whatever says no more than the one before it."""
    if isinstance(happening, Notification) and happening.method.endswith("/list_changed"):
        return dumps([server, happening.method, happening.params])
    return None
