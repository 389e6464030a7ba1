from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from effort import effort
from emceepee_trio.config.bounds import MAX_DELIVERY_BYTES, MAX_DELIVERY_EVENTS
from emceepee_trio.model.events import (
    ElicitationRequest,
    Event,
    Notification,
    ServerConnected,
    TaskFailed,
    TimerExpired,
)
from emceepee_trio.session.events import Delivery, Events, Trigger
from parts import new_ids

TOOLS_CHANGED = "notifications/tools/list_changed"


@attrs.define(eq=False)
class Desk:
    """Events of a session without one; its clock is moved by hand."""

    keep: int = 100
    keep_bytes: int = 1_000_000
    keep_for: float = 60.0
    now: float = 0.0
    due: list[float] = attrs.field(factory=list)
    events: Events = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.events = Events(
            new_ids(),
            lambda: self.now,
            lambda: 1_700_000_000.0,
            self.keep,
            self.keep_bytes,
            self.keep_for,
            self.due.append,
            "session",
        )

    def publish(self, *numbers: int) -> None:
        for number in numbers:
            self.events.publish("emceepee", TimerExpired("t", "", number))

    def notify(
        self,
        method: str = TOOLS_CHANGED,
        server: str = "files",
        params: Mapping[str, Any] | None = None,
    ) -> None:
        self.events.publish(server, Notification(method, "now", params))

    def take(self) -> list[int]:
        """The numbers of what a response that is written brings."""
        delivery = self.events.take()
        delivery.commit()
        return numbers(delivery.events)


def told_by(delivery: Delivery) -> list[Any]:
    return [json.loads(text) for _, text in delivery.texts()]


def numbers(events: Sequence[Event]) -> list[int]:
    return [e.happening.fire_count for e in events if isinstance(e.happening, TimerExpired)]


def test_every_event_is_delivered_once_and_in_order() -> None:
    desk = Desk()
    desk.publish(1, 2)
    assert desk.events.has_pending
    assert desk.take() == [1, 2]
    assert not desk.events.has_pending
    desk.publish(3)
    assert desk.take() == [3]
    assert desk.take() == []


def test_what_one_response_has_taken_no_other_gets() -> None:
    desk = Desk()
    desk.publish(1)
    first = desk.events.take()
    desk.publish(2)
    second = desk.events.take()
    assert numbers(first.events) == [1]
    assert numbers(second.events) == [2]
    assert not desk.events.has_pending


def test_events_of_a_response_that_is_not_written_come_back_in_their_place() -> None:
    desk = Desk()
    desk.publish(1, 2)
    unwritten = desk.events.take()
    desk.publish(3)
    unwritten.give_back()
    assert desk.events.has_pending
    assert desk.take() == [1, 2, 3]


async def test_who_waits_while_they_are_away_wakes_when_they_come_back() -> None:
    desk = Desk()
    desk.publish(1)
    unwritten = desk.events.take()
    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(desk.events.wait_news, None, desk.events.triggers.last)
            await wait_all_tasks_blocked()
            assert len(nursery.child_tasks) == 1
            unwritten.give_back()
    assert desk.take() == [1]


async def test_what_somebody_else_takes_at_once_wakes_nobody() -> None:
    desk = Desk()
    desk.publish(1)
    unwritten = desk.events.take()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(desk.events.wait_news, None, desk.events.triggers.last)
        await wait_all_tasks_blocked()
        unwritten.give_back()
        assert desk.take() == [1]
        await wait_all_tasks_blocked()
        assert len(nursery.child_tasks) == 1
        nursery.cancel_scope.cancel("over")


def test_a_cursor_does_not_pass_over_what_came_back() -> None:
    desk = Desk()
    desk.publish(1)
    unwritten = desk.events.take()
    desk.publish(2)
    second = desk.events.take()
    second.commit()
    assert not desk.events.has_after(second.last_event_id)
    unwritten.give_back()
    assert desk.events.has_after(second.last_event_id)
    first = desk.events.take_after(second.last_event_id)
    assert numbers(first.events) == [1]
    first.commit()
    # The newest that has been told: to ask for what is after it repeats nothing.
    assert first.last_event_id == second.last_event_id
    assert not desk.events.has_after(first.last_event_id)


@pytest.mark.parametrize("first", [Delivery.commit, Delivery.give_back])
@pytest.mark.parametrize("second", [Delivery.commit, Delivery.give_back])
def test_a_delivery_is_settled_once(first: Any, second: Any) -> None:
    desk = Desk()
    desk.publish(1)
    delivery = desk.events.take()
    first(delivery)
    with pytest.raises(AssertionError):
        second(delivery)


def test_beyond_the_count_the_oldest_go_and_the_next_delivery_says_how_many() -> None:
    desk = Desk(keep=3)
    desk.publish(1, 2, 3, 4, 5)
    delivery = desk.events.take()
    assert numbers(delivery.events) == [3, 4, 5]
    assert delivery.lost == 2
    delivery.commit()
    assert desk.events.take().lost == 0


def test_beyond_the_bytes_the_oldest_go() -> None:
    desk = Desk(keep_bytes=3000)
    for _ in range(4):
        desk.notify("notifications/x", params={"text": "x" * 1000})
    delivery = desk.events.take()
    assert (len(delivery.events), delivery.lost) == (2, 2)


def test_bytes_are_counted_as_they_travel() -> None:
    desk = Desk(keep_bytes=3000)
    for _ in range(4):
        desk.notify("notifications/x", params={"text": "本" * 334})
    delivery = desk.events.take()
    assert (len(delivery.events), delivery.lost) == (2, 2)


def test_the_newest_stays_however_large() -> None:
    desk = Desk(keep_bytes=500)
    desk.publish(1)
    desk.notify("notifications/x", params={"text": "x" * 10_000})
    delivery = desk.events.take()
    assert (len(delivery.events), delivery.lost) == (1, 1)
    # The very next one takes its place.
    delivery.commit()
    desk.publish(2)
    assert desk.take() == [2]
    assert len(desk.events._kept) == 1


def test_old_events_are_forgotten_and_counted() -> None:
    desk = Desk(keep_for=60)
    desk.publish(1)
    desk.now = 30
    desk.publish(2)
    assert desk.events.next_due() == 60
    desk.now = 59.9
    desk.events.sweep()
    desk.now = 60
    desk.events.sweep()
    assert desk.events.next_due() == 90
    delivery = desk.events.take()
    assert (numbers(delivery.events), delivery.lost) == ([2], 1)
    desk.now = 90
    desk.events.sweep()
    assert desk.events.next_due() is None
    assert desk.due == [60, 90]  # the sweeper was told of both


def test_losses_alone_are_news() -> None:
    desk = Desk()
    desk.publish(1)
    desk.now = 60
    desk.events.sweep()
    assert desk.events.has_pending
    delivery = desk.events.take()
    assert (delivery.events, delivery.lost) == ([], 1)
    assert not desk.events.has_pending
    delivery.give_back()
    assert desk.events.has_pending
    assert desk.events.take().lost == 1


def test_what_was_delivered_is_no_loss_when_it_goes() -> None:
    desk = Desk(keep=2)
    desk.publish(1, 2)
    assert desk.take() == [1, 2]
    desk.publish(3, 4)
    assert desk.events.take().lost == 0


@pytest.mark.parametrize("written", [True, False])
def test_what_is_evicted_on_its_way_is_lost_only_if_it_does_not_arrive(written: bool) -> None:
    desk = Desk(keep=2)
    desk.publish(1, 2)
    on_its_way = desk.events.take()
    desk.publish(3)  # evicts 1
    if written:
        on_its_way.commit()
    else:
        on_its_way.give_back()
    delivery = desk.events.take()
    assert numbers(delivery.events) == ([3] if written else [2, 3])
    assert delivery.lost == (0 if written else 1)


def test_a_delivery_has_at_most_so_many_events_and_announces_the_rest() -> None:
    desk = Desk(keep=1000)
    desk.publish(*range(2 * MAX_DELIVERY_EVENTS + 1))
    first = desk.events.take()
    assert (len(first.events), first.more) == (MAX_DELIVERY_EVENTS, MAX_DELIVERY_EVENTS + 1)
    first.commit()
    second, third = desk.events.take(), desk.events.take()
    assert (second.more, third.more) == (1, 0)
    assert numbers([*first.events, *second.events, *third.events]) == list(range(101))


def test_a_delivery_has_at_most_so_many_bytes() -> None:
    desk = Desk()
    for size in (15_000, 6000, 6000, 6000):
        desk.notify("notifications/x", params={"text": "x" * size})
    assert [len(desk.events.take().events) for _ in range(4)] == [1, 2, 1, 0]


def test_no_event_is_larger_than_a_delivery() -> None:
    desk = Desk()
    desk.notify("notifications/x", params={"text": "x" * MAX_DELIVERY_BYTES})
    desk.events.publish("s", ElicitationRequest("q", {"message": "x" * MAX_DELIVERY_BYTES}))
    desk.events.publish("s", TaskFailed("t", "tool", "x" * MAX_DELIVERY_BYTES))
    desk.events.publish("s", ServerConnected("s", {"x": "x" * MAX_DELIVERY_BYTES}, "2025-11-25"))
    told = [event["data"] for event in told_by(desk.events.take())]
    assert told == [
        {"method": "notifications/x", "timestamp": "now", "tooLarge": True},
        {"requestId": "q", "tooLarge": True},
        {"taskId": "t", "toolName": "tool", "error": "x" * 1000 + "…"},
        {"name": "s", "protocolVersion": "2025-11-25", "tooLarge": True},
    ]


def test_equal_list_changed_notices_collapse_into_the_first() -> None:
    desk = Desk()
    desk.notify()
    desk.publish(1)
    desk.notify()
    desk.notify()
    first, timer = told_by(desk.events.take())
    assert first["data"] == {"method": TOOLS_CHANGED, "timestamp": "now", "count": 3}
    assert timer["data"]["fireCount"] == 1
    assert desk.events.triggers.last == 4  # each of them wakes


@pytest.mark.parametrize(
    "other",
    [
        {"method": "notifications/prompts/list_changed"},
        {"server": "web"},
        {"params": {"_meta": {"x": 1}}},
    ],
)
def test_notices_that_differ_do_not_collapse(other: Mapping[str, Any]) -> None:
    desk = Desk()
    desk.notify()
    desk.notify(**other)
    assert [event.count for event in desk.events.take().events] == [1, 1]


def test_other_notifications_do_not_collapse() -> None:
    desk = Desk()
    for _ in range(3):
        desk.notify("notifications/resources/updated", params={"uri": "x:y"})
    assert len(desk.events.take().events) == 3


def test_notices_collapse_only_while_the_first_is_undelivered() -> None:
    desk = Desk()
    desk.notify()
    on_its_way = desk.events.take()
    desk.notify()
    assert [event.count for event in on_its_way.events] == [1]
    on_its_way.give_back()
    desk.notify()  # the first is back in its place, and first again
    delivery = desk.events.take()
    assert [event.count for event in delivery.events] == [2, 1]
    delivery.commit()
    desk.notify()
    assert [event.count for event in desk.events.take().events] == [1]


def test_after_a_cursor_everything_comes_delivered_before_or_not() -> None:
    desk = Desk()
    desk.publish(1, 2)
    seen = desk.events.take()
    seen.commit()
    desk.publish(3)
    assert desk.events.has_after(seen.events[0].id)
    again = desk.events.take_after(seen.events[0].id)
    assert (numbers(again.events), again.cursor_lost) == ([2, 3], False)
    again.commit()
    assert not desk.events.has_pending
    assert not desk.events.has_after(again.events[-1].id)
    assert desk.events.take_after(again.events[-1].id).events == []


def test_after_a_cursor_nobody_knows_everything_kept_comes() -> None:
    desk = Desk(keep=2)
    desk.publish(1)
    (first,) = desk.events.take().events
    desk.publish(2, 3)
    for cursor in (first.id, "nonsense", ""):
        assert desk.events.has_after(cursor)
        delivery = desk.events.take_after(cursor)
        assert (numbers(delivery.events), delivery.cursor_lost) == ([2, 3], True)
        delivery.give_back()
    assert desk.take() == [2, 3]


def test_events_that_came_with_a_cursor_stay_delivered_when_another_response_fails() -> None:
    desk = Desk()
    desk.publish(1)
    unwritten = desk.events.take()
    resumed = desk.events.take_after("unknown")
    assert numbers(resumed.events) == [1]
    resumed.commit()
    unwritten.give_back()
    assert desk.take() == []


def test_a_failed_response_with_a_cursor_does_not_undo_that_of_another() -> None:
    desk = Desk()
    desk.publish(1)
    under_way = desk.events.take()
    resumed = desk.events.take_after("unknown")
    resumed.give_back()
    assert desk.take() == []
    under_way.give_back()
    assert desk.take() == [1]


def test_triggers_say_who_and_what() -> None:
    desk = Desk()
    cursor = desk.events.triggers.last
    desk.publish(1)
    desk.notify()
    assert desk.events.triggers.after(cursor) == [
        Trigger("emceepee", "timer_expired"),
        Trigger("files", "notification"),
    ]


def test_recent_events_of_one_server_are_shown_without_being_taken() -> None:
    desk = Desk()
    desk.publish(1, 2)
    desk.notify()
    desk.publish(3)
    assert [e["data"]["fireCount"] for e in desk.events.recent("emceepee", 2)] == [2, 3]
    assert len(desk.events.recent("files", 20)) == 1
    assert desk.events.recent("nobody", 20) == []
    assert desk.take() == [1, 2, 3]


def test_nothing_grows_while_nobody_listens() -> None:
    desk = Desk(keep=10)
    for number in range(5000):
        desk.publish(number)
    assert len(desk.events._kept) == 10
    assert desk.events._bytes == sum(kept.event.size for kept in desk.events._kept.values())
    assert len(desk.events.triggers._items) <= 1000
    delivery = desk.events.take()
    assert len(delivery.events) + delivery.lost == 5000


@pytest.mark.parametrize("give_back", [False, True])
def test_what_is_kept_and_delivered_makes_no_response_dearer(give_back: bool) -> None:
    def of_a_response(kept: int) -> int:
        desk = Desk(keep=2000)
        desk.publish(*range(kept))
        while desk.take():
            pass
        cursor = desk.events.triggers.last

        def respond() -> None:
            desk.notify()
            desk.notify()
            desk.publish(1)
            delivery = desk.events.take()
            assert not desk.events.has_pending
            if give_back:
                delivery.give_back()
                delivery = desk.events.take()
            delivery.commit()
            assert len(desk.events.triggers.after(cursor)) == 3
            assert desk.events.has_news(delivery.events[0].id)
            desk.events.take_after(delivery.events[0].id).commit()
            assert len(desk.events.recent("emceepee", 5)) == 5

        return effort(respond)

    few = min(of_a_response(10) for _ in range(2))  # the first time prepares things for ever
    assert of_a_response(1900) <= few + 20  # a step for each would be 1890 more


def test_an_eviction_costs_the_same_whatever_is_kept() -> None:
    def of_a_publish(keep: int) -> int:
        desk = Desk(keep=keep)
        desk.publish(*range(keep))
        # The least of them: one a minute writes a line of the log.
        return min(effort(lambda: desk.publish(0)) for _ in range(3))

    few = min(of_a_publish(10) for _ in range(2))
    assert of_a_publish(1900) <= few + 20
