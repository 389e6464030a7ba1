"""A session's events against lists: each delivered once and in order, or counted as lost."""

from __future__ import annotations

import json
import re
from collections import Counter
from functools import partial
from itertools import zip_longest

import attrs
import trio
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    consumes,
    invariant,
    precondition,
    rule,
)

from emceepee_trio.config.bounds import MAX_DELIVERY_BYTES, MAX_DELIVERY_EVENTS
from emceepee_trio.journal import Journal
from emceepee_trio.model import events as happened
from emceepee_trio.model.events import Happening, Notification, TimerExpired
from emceepee_trio.model.wire import event_type
from emceepee_trio.session.events import Delivery, Events
from parts import new_ids
from replay import Replay
from trio_machine import TrioMachine

LIFE: list[Happening] = [
    happened.ProcessCrashed("n", 1),
    happened.ServerDisconnected("n", "lost", False),
    happened.Restarting("n", 1, 1),
    happened.ServerReconnecting("n", 1, 1),
    happened.ProcessStarted("n", 1),
    happened.Restarted("n", 1, 1),
    happened.ServerConnected("n", {}, "v"),
    happened.ServerReconnected("n", {}, "v", "restart", 1, True, True, True, 0, 0, 0),
    happened.ServerRemoved("n", "t", "me"),
    happened.TimerExpired("t", "m", 1),
]
LETTERS = {
    "process_crashed": "L",
    "server_disconnected": "L",
    "server_connected": "B",
    "server_reconnected": "B",
    "server_removed": "G",
}
"""Lost, gone, back."""
KEEP, KEEP_BYTES, KEEP_FOR = 60, 40_000, 100.0
NOTICES = ["notifications/tools/list_changed", "notifications/prompts/list_changed"]


@attrs.define(eq=False)
class Item:
    """What the model knows of an event."""

    number: int
    notice: tuple[str, str] | None
    size: int
    until: float
    count: int = 1
    kept: bool = True
    on_its_way: int = 0
    delivered: bool = False
    lost: bool = False

    @property
    def is_pending(self) -> bool:
        return self.kept and not self.on_its_way and not self.delivered


@attrs.define(eq=False)
class Response:
    """On its way to the client."""

    delivery: Delivery
    items: list[Item]
    lost: int


@attrs.define(eq=False)
class Waiter:
    """As await_activity is one."""

    since: str | None
    cursor: int
    scope: trio.CancelScope = attrs.field(factory=trio.CancelScope)
    is_over: bool = False

    async def run(self, events: Events) -> None:
        with self.scope:
            await events.wait_news(self.since, self.cursor)
        self.is_over = True


class Deliveries(TrioMachine):
    responses = Bundle("responses")

    def __init__(self) -> None:
        self.waiters: list[Waiter] = []
        self.newest_told = ""
        self.under_way: list[Response] = []
        self.now = 0.0
        journal, self.replay = Journal(), Replay()
        self.replay.reads(journal)
        clocks = (lambda: self.now), (lambda: 0.0)
        self.events = Events(
            new_ids(), *clocks, KEEP, KEEP_BYTES, KEEP_FOR, self.keep, "s", journal
        )
        self.due: list[float] = []
        self.items: list[Item] = []
        self.lost = 0
        self.lost_told = 0
        self.ids: dict[str, Item] = {}
        super().__init__()

    def keep(self, until: float) -> None:
        self.due.append(until)

    @property
    def kept(self) -> list[Item]:
        return [item for item in self.items if item.kept]

    @property
    def pending(self) -> list[Item]:
        return [item for item in self.items if item.is_pending]

    def drop(self, item: Item) -> None:
        item.kept = False
        self.lose(item)

    def lose(self, item: Item) -> None:
        """If nobody has got it nor will."""
        if not item.kept and not item.on_its_way and not item.delivered:
            assert not item.lost
            item.lost = True
            self.lost += 1

    @rule(server=st.sampled_from("ab"), steps=st.lists(st.sampled_from(LIFE), min_size=1))
    def lives(self, server: str, steps: list[Happening]) -> None:
        """In any order: more than can be true, and nothing that is would be missing."""
        for step in steps:
            self.do_sync(partial(self.events.publish, server, step))
            self.add(None)

    def add(self, notice: tuple[str, str] | None) -> None:
        (event,) = [kept.event for kept in self.events._kept.values()][-1:]
        item = Item(len(self.items), notice, event.size, self.now + KEEP_FOR)
        self.items.append(item)
        self.ids[event.id] = item
        while len(self.kept) > 1 and (
            len(self.kept) > KEEP or sum(i.size for i in self.kept) > KEEP_BYTES
        ):
            self.drop(self.kept[0])

    @rule(size=st.sampled_from([0, 1, 100, 5000, MAX_DELIVERY_BYTES, 50_000]))
    def publish(self, size: int) -> None:
        happening = TimerExpired("t", "x" * size, len(self.items))
        self.do_sync(partial(self.events.publish, "emceepee", happening))
        self.add(None)

    @rule(count=st.integers(10, 70))
    def publish_many(self, count: int) -> None:
        for _ in range(count):
            self.publish(0)

    @rule(method=st.sampled_from(NOTICES), server=st.sampled_from("ab"))
    def notify(self, method: str, server: str) -> None:
        self.do_sync(partial(self.events.publish, server, Notification(method, "now")))
        first = next((i for i in self.pending if i.notice == (server, method)), None)
        if first is not None:
            first.count += 1
        else:
            self.add((server, method))

    @rule(target=responses)
    def take(self) -> Response:
        expected: list[Item] = []
        room = MAX_DELIVERY_BYTES
        for item in self.pending[:MAX_DELIVERY_EVENTS]:
            room -= item.size
            if room < 0 and expected:
                break
            expected.append(item)
        more = len(self.pending) - len(expected)
        return self.check(self.events.take(), expected, more, cursor_lost=False)

    @precondition(lambda self: self.ids)
    @rule(target=responses, data=st.data())
    def take_after(self, data: st.DataObject) -> Response:
        cursor = data.draw(st.sampled_from([*list(self.ids)[-80:], "unknown"]))
        item = self.ids.get(cursor)
        known = item is not None and item.kept
        number = item.number if item is not None else 0
        expected = [i for i in self.kept if not known or i.is_pending or i.number > number]
        delivery = self.events.take_after(cursor)
        return self.check(delivery, expected, 0, cursor_lost=not known)

    def check(
        self, delivery: Delivery, expected: list[Item], more: int, *, cursor_lost: bool
    ) -> Response:
        assert [self.ids[event.id] for event in delivery.events] == expected
        assert [event.count for event in delivery.events] == [item.count for item in expected]
        self.check_incidents(delivery, expected)
        assert (delivery.more, delivery.lost) == (more, self.lost)
        assert delivery.cursor_lost is cursor_lost
        told = [self.newest_told, *(event.id for event in delivery.events[-1:])]
        assert delivery.last_event_id == max(told)
        response = Response(delivery, expected, self.lost)
        self.under_way.append(response)
        self.lost = 0
        for item in expected:
            item.on_its_way += 1
        return response

    def check_incidents(self, delivery: Delivery, expected: list[Item]) -> None:
        """Each event is told once: by itself, or by the return of its server."""
        kinds = {event.id: (event.server, event_type(event.happening)) for event in delivery.events}
        repeated = {
            event.id
            for event, item in zip(delivery.events, expected, strict=True)
            if not item.is_pending
        }
        told, said = (
            list[tuple[str, str, str]](),
            [json.loads(text) for _, text in delivery.texts()],
        )
        for shown in said:
            server = shown["server"]
            if (incident := shown["data"].get("incident")) is not None:
                first = incident["firstEventId"]
                parts = [
                    id_
                    for id_, (of, kind) in kinds.items()
                    if of == server
                    and kind in incident["events"]
                    and first <= id_ < shown["id"]
                    and id_ not in repeated
                ]
                assert Counter(kinds[id_][1] for id_ in parts) == incident["events"]
                assert shown["id"] not in repeated
                told += [(id_, server, kinds[id_][1]) for id_ in parts]
            told.append((shown["id"], server, shown["type"]))
        assert sorted(told) == [(id_, *kind) for id_, kind in kinds.items()]
        # And no return is told beside what it is the return from.
        for server in "ab":
            lived = "".join(
                LETTERS.get(shown["type"], "")
                for shown in said
                if shown["server"] == server and shown["id"] not in repeated
            )
            assert not re.search("L[^GB]*B", lived), lived

    @rule(response=consumes(responses))
    def written(self, response: Response) -> None:
        self.do_sync(response.delivery.commit)
        self.newest_told = max(self.newest_told, response.delivery.last_event_id)
        self.under_way.remove(response)
        self.lost_told += response.lost
        for item in response.items:
            item.on_its_way -= 1
            item.delivered = True

    @rule(response=consumes(responses))
    def not_written(self, response: Response) -> None:
        self.do_sync(response.delivery.give_back)
        self.under_way.remove(response)
        self.lost += response.lost
        for item in response.items:
            item.on_its_way -= 1
            self.lose(item)

    @rule(seconds=st.integers(1, 60))
    def time_passes(self, seconds: int) -> None:
        self.now += seconds
        self.do_sync(self.events.sweep)
        for item in self.kept:
            if item.until <= self.now:
                self.drop(item)

    @rule(data=st.data())
    def wait(self, data: st.DataObject) -> None:
        since = data.draw(st.sampled_from([None, *list(self.ids)[-3:]]))
        waiter = Waiter(since, self.events.triggers.last)
        self.waiters.append(waiter)
        self.do_sync(lambda: self.nursery.start_soon(waiter.run, self.events))

    @rule(fates=st.lists(st.booleans(), max_size=4))
    def wait_while_all_is_on_its_way(self, fates: list[bool]) -> None:
        responses = []
        while self.pending or self.lost:
            responses.append(self.take())
        waiter = Waiter(None, self.events.triggers.last)
        self.waiters.append(waiter)
        self.do_sync(lambda: self.nursery.start_soon(waiter.run, self.events))
        for response, is_written in zip_longest(responses, fates[: len(responses)]):
            if is_written:
                self.written(response)
            else:
                self.not_written(response)

    @rule()
    def stop_waiting(self) -> None:
        for waiter in self.waiters:
            self.do_sync(waiter.scope.cancel)
            assert waiter.is_over
        self.waiters.clear()

    @invariant()
    def who_waits_has_nothing_to_take_and_who_has_does_not_wait(self) -> None:
        for waiter in self.waiters:
            if not waiter.is_over:
                assert not self.pending
                assert not self.lost
                assert self.events.triggers.last == waiter.cursor
                item = None if waiter.since is None else self.ids[waiter.since]
                # Or it has been forgotten meanwhile, which is no news.
                assert item is None or not item.kept or self.kept[-1] is item

    @invariant()
    def what_was_noted_says_what_is_on_its_way(self) -> None:
        self.replay.check()
        assert len(self.replay.deliveries) == len(
            [response for response in self.under_way if response.items or response.lost]
        )

    @invariant()
    def it_keeps_what_it_should(self) -> None:
        assert [self.ids[event_id] for event_id in self.events._kept] == self.kept
        assert self.events.has_pending == bool(self.pending or self.lost)
        assert self.events.next_due() == (self.kept[0].until if self.kept else None)
        assert self.events._bytes == sum(item.size for item in self.kept)

    @invariant()
    def nothing_is_lost_without_a_word(self) -> None:
        for item in self.items:
            fates = [item.is_pending, item.on_its_way > 0, item.delivered, item.lost]
            # Only what was delivered before can also be on its way again.
            assert sum(fates) == 1 or (item.delivered and fates == [False, True, True, False])
        about_to_be_told = sum(response.lost for response in self.under_way)
        lost = sum(item.lost for item in self.items)
        assert lost == self.lost + self.lost_told + about_to_be_told


TestDeliveries = Deliveries.TestCase
