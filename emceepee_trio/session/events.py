"""The events of one session: each delivered once and in order, or counted as lost.

An event is *pending* until a response takes it (:meth:`Events.take`), *taken* until that response
is handed to its transport (`Delivery.commit`) or turns out not to be written
(`Delivery.give_back`, which puts it back in its place), then *delivered* and kept for a client
that asks again with ``last_event_id``. Bounded by count, bytes and age; what is evicted before
anybody got it is counted, and the next delivery says so.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from itertools import islice, takewhile
from typing import Any

import attrs

from .. import logs
from ..config.bounds import MAX_DELIVERY_BYTES, MAX_DELIVERY_EVENTS
from ..journal import Journal
from ..model import facts
from ..model.events import Event, Happening, abridged
from ..model.facts import Fact
from ..model.incidents import event_texts
from ..model.wire import event_json, event_type, new_event, timestamp
from ..waits.feed import Feed
from .pending import KeptEvent, Pending, notice_of

TRIGGERS = 1000
"""Wake-ups remembered for waiters that are slow to run."""


@attrs.frozen
class Trigger:
    server: str
    event_type: str


@attrs.define(eq=False)
class Delivery:
    """Events on their way out in one response: exactly one of `commit` and `give_back`."""

    events: Sequence[Event]
    more: int
    """Pending events that did not fit."""
    lost: int
    cursor_lost: bool
    last_event_id: str
    """The newest that the client has been told of, with these."""
    _owner: Events
    _shown: Sequence[KeptEvent]
    _repeated: frozenset[str] = frozenset()
    """Ids of those that were taken before, and not given back."""
    without: Callable[[], str | None] = attrs.field(default=lambda: None, init=False)
    """What the response is if they are given back; None if nothing would be left of it."""
    _number: int = attrs.field(default=0, init=False)
    """For the journal; none if there is nothing to note."""
    _settled: bool = attrs.field(default=False, init=False)
    _else: list[Callable[[], None]] = attrs.field(factory=list, init=False)
    """To be called if what is told beside them is not."""

    def on_give_back(self, act: Callable[[], None]) -> None:
        """The response tells something else, too."""
        self._else.append(act)

    @property
    def is_empty(self) -> bool:
        """Nothing is lost if the response is."""
        return not self.events and not self.lost and not self._else

    def commit(self) -> None:
        """The response is handed to the transport."""
        self._settle(facts.DeliveryHandedOver)
        for kept in self._shown:
            kept.delivered = True
        self._owner._newest_told = max(self._owner._newest_told, self.last_event_id)

    def give_back(self) -> None:
        """The response will not be written."""
        self._settle(facts.DeliveryGivenBack)
        self._owner._lost += self.lost
        for kept in self._shown:
            if kept.is_pending:
                if kept.event.id in self._owner._kept:
                    self._owner._pending.add(kept)
                else:
                    self._owner.evicted(kept.event)  # while it was on its way
        self._take_back()
        if not self.is_empty:
            # Somebody may have begun to wait while they were away.
            self._owner.triggers.nudge()

    def lose(self) -> None:
        """They cannot be written down: forgotten, and counted, or no response ever could be."""
        self._settle(facts.DeliveryLost)
        self._take_back()
        pending = [kept for kept in self._shown if kept.is_pending]
        for kept in pending:
            if self._owner._kept.pop(kept.event.id, None) is not None:
                self._owner._bytes -= kept.event.size
        self._owner.lose(self.lost + len(pending))

    def _settle(self, noted: Callable[[float, str, int], Fact]) -> None:
        assert not self._settled, "a delivery is settled once"
        self._settled = True
        if self._number:
            self._owner.journal.note(noted, self._owner.session_id, self._number)
        for kept in self._shown:
            kept.outgoing -= 1

    def texts(self) -> list[tuple[Event, str]]:
        """The events that it tells, and their JSON."""
        return event_texts(self.events, self._repeated)

    def _take_back(self) -> None:
        for act in self._else:
            act()


@attrs.define(eq=False)
class Events:
    """Also tells waiters what happened, and the session's sweeper when to look."""

    new_id: Callable[[], str]
    now: Callable[[], float]
    wall: Callable[[], float]
    keep: int
    keep_bytes: int
    keep_for: float
    on_kept: Callable[[float], None]
    session_id: str
    journal: Journal = attrs.field(factory=Journal)
    triggers: Feed[Trigger] = attrs.field(factory=lambda: Feed[Trigger](TRIGGERS), init=False)
    _kept: OrderedDict[str, KeptEvent] = attrs.field(factory=OrderedDict, init=False)
    _pending: Pending = attrs.field(factory=Pending, init=False)
    """Those of them that are."""
    _bytes: int = attrs.field(default=0, init=False)
    _lost: int = attrs.field(default=0, init=False)
    _newest_told: str = attrs.field(default="", init=False)
    _wakes: dict[Trigger, None] = attrs.field(factory=dict, init=False)
    """Each once, and for one response."""

    def publish(self, server: str, happening: Happening, at: str | None = None) -> None:
        """Synchronous: whoever notices something tells it before anything else can run."""
        notice = notice_of(server, happening)
        first = self._pending.like(notice) if notice is not None else None
        if first is not None:
            first.event = attrs.evolve(first.event, count=first.event.count + 1)
        else:
            happening = abridged(happening, MAX_DELIVERY_BYTES - 1000)
            event = new_event(self.new_id(), server, at or timestamp(self.wall()), happening)
            kept = self._kept[event.id] = KeptEvent(event, self.now() + self.keep_for, notice)
            self._pending.add(kept)
            self._bytes += event.size
            self._evict()
            self.on_kept(kept.until)
        self.triggers.publish(Trigger(server, event_type(happening)))

    def wake(self, server: str, happening: Happening) -> None:
        """Wake who waits, or who is the next to, for what is not told as an event."""
        trigger = Trigger(server, event_type(happening))
        self._wakes[trigger] = None
        self.triggers.publish(trigger)

    def take_wakes(self) -> list[Trigger]:
        wakes, self._wakes = list(self._wakes), {}
        return wakes

    def forget_wakes(self, server: str) -> None:
        """Another answer has told of it."""
        for trigger in [each for each in self._wakes if each.server == server]:
            del self._wakes[trigger]

    def put_back(self, wakes: Iterable[Trigger]) -> None:
        """Nobody was told of them."""
        self._wakes |= dict.fromkeys(wakes)
        self.triggers.nudge()

    def lose(self, count: int) -> None:
        """So many will not be told; the next delivery says so."""
        self._lost += count
        self.triggers.nudge()

    def evicted(self, event: Event) -> None:
        """It is gone, and nobody has been told of it."""
        self._lost += 1
        self.journal.note(facts.EventEvicted, self.session_id, event.server)

    def _evict(self) -> None:
        """Down to the bounds, oldest first; the newest stays, however large."""
        while len(self._kept) > 1 and (
            len(self._kept) > self.keep or self._bytes > self.keep_bytes
        ):
            too_many = len(self._kept) > self.keep
            self._drop_oldest("limits.events" if too_many else "limits.events_bytes")

    def _drop_oldest(self, reason: str) -> None:
        _, kept = self._kept.popitem(last=False)
        self._bytes -= kept.event.size
        if kept.is_pending:
            self._pending.pop()  # older than anything else that is pending, too
            self.evicted(kept.event)
            logs.often(
                "warn",
                "event_store_eviction",
                sums={"evicted_count": 1},
                session=self.session_id,
                server=kept.event.server,
                reason=reason,
            )

    def next_due(self) -> float | None:
        """When the oldest is too old."""
        oldest = next(iter(self._kept.values()), None)
        return oldest.until if oldest is not None else None

    def sweep(self) -> None:
        """Forget what is too old."""
        now = self.now()
        while (due := self.next_due()) is not None and due <= now:
            self._drop_oldest("limits.events_ms")

    @property
    def has_pending(self) -> bool:
        return self._lost > 0 or len(self._pending) > 0

    def has_after(self, last_event_id: str) -> bool:
        """Whether :meth:`take_after` would have anything to say."""
        if self.has_pending or last_event_id not in self._kept:
            return True
        return next(reversed(self._kept)) != last_event_id

    def has_news(self, since: str | None) -> bool:
        """Whether there is something to take, after that id if there is one, or to wake for."""
        if self._wakes:
            return True
        return self.has_pending if since is None else self.has_after(since)

    async def wait_news(self, since: str | None, cursor: int) -> None:
        """Park until there is, or anything has happened after *cursor*, or nothing will."""
        feed = self.triggers
        # What a response had that is not written comes back without a trigger.
        while not (feed.last > cursor or feed.is_closed or self.has_news(since)):
            await feed.wait_after(cursor)

    def take(self, room: int = MAX_DELIVERY_BYTES) -> Delivery:
        """The oldest pending events, as many as one delivery carries.

        The first always fits, unless there is less *room* than usual.
        """
        size, is_all = room, room >= MAX_DELIVERY_BYTES
        taken: list[KeptEvent] = []
        while self._pending and len(taken) < MAX_DELIVERY_EVENTS:
            size -= self._pending.oldest().event.size
            if size < 0 and (taken or not is_all):
                break
            taken.append(self._pending.pop())
        return self._deliver(taken, len(self._pending))

    def take_after(self, last_event_id: str) -> Delivery:
        """Every kept event after that one, delivered before or not: the only repetition.

        Those before it as well that are pending: they came back after newer ones had been told.
        """
        known = last_event_id in self._kept
        newer = takewhile(
            lambda kept: kept.event.id > last_event_id or not known, reversed(self._kept.values())
        )
        wanted = {kept.event.id: kept for kept in (*newer, *self._pending.pop_all())}
        return self._deliver([wanted[id_] for id_ in sorted(wanted)], 0, cursor_lost=not known)

    def _deliver(self, taken: list[KeptEvent], more: int, *, cursor_lost: bool = False) -> Delivery:
        lost, self._lost = self._lost, 0
        events = [kept.event for kept in taken]
        last_event_id = max(self._newest_told, events[-1].id) if events else self._newest_told
        repeated = frozenset(kept.event.id for kept in taken if not kept.is_pending)
        delivery = Delivery(events, more, lost, cursor_lost, last_event_id, self, taken, repeated)
        for kept in taken:
            kept.outgoing += 1
        if taken or lost:
            number = delivery._number = self.journal.number()
            counts = len(taken), more, lost
            self.journal.note(facts.DeliveryMade, self.session_id, number, *counts)
        return delivery

    def recent(self, server: str, at_most: int) -> list[dict[str, Any]]:
        """The newest events of one server, oldest first, delivered or not. Takes nothing."""
        of_server = (k.event for k in reversed(self._kept.values()) if k.event.server == server)
        return [event_json(event) for event in islice(of_server, at_most)][::-1]
