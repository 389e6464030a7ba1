"""Connections that drop, come back and take over in the very tick of a message, in many orders.

Whatever meets, every message is read once and in order by those who count, or is counted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from asgi_world import listening, open_world, speaking, texts
from emceepee_trio.front.handshake.stream import StreamReader
from emceepee_trio.front.handshake.streams import Streams
from parts import MOMENT, at_the_moment, hop, in_many_orders, late


@attrs.define(eq=False)
class Log:
    """One stream, and what its connections have written."""

    streams: Streams
    read: list[tuple[int, str]] = attrs.field(factory=list)
    """By whom, and what."""
    ended: list[int] = attrs.field(factory=list)
    readers: int = 0

    def say(self, *texts: str) -> None:
        for text in texts:
            self.streams.add(self.streams.standalone, text)

    async def follow(self, reader: StreamReader) -> None:
        number, self.readers = self.readers, self.readers + 1
        while (entry := await reader.next()) is not None:
            if reader.is_current:
                self.read.append((number, entry.data))
                reader.took(entry)
            await hop(1)  # a write takes its time
        self.ended.append(number)
        reader.close()


def race_of(rivals: Callable[[Log, trio.Nursery], list[Callable[[], object]]]) -> list[Log]:
    async def race(order: int) -> Log:
        log = Log(Streams("s"))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(log.follow, log.streams.standalone.open_reader())
            log.say("a", "b")
            for shift, rival in enumerate(rivals(log, nursery)):
                nursery.start_soon(at_the_moment, rival, late(order // 3**shift))
            await trio.sleep_until(MOMENT + 1)
            await wait_all_tasks_blocked()
            nursery.cancel_scope.cancel("all is said")
        return log

    return in_many_orders(race)


def test_a_take_over_and_a_message() -> None:
    def rivals(log: Log, nursery: trio.Nursery) -> list[Callable[[], object]]:
        standalone = log.streams.standalone
        return [
            lambda: log.say("c", "d"),
            lambda: nursery.start_soon(log.follow, standalone.open_reader()),
        ]

    splits = set()
    for log in race_of(rivals):
        assert [text for _, text in log.read] == ["a", "b", "c", "d"]
        assert log.ended == [0]
        splits.add(tuple(number for number, _ in log.read))
    assert len(splits) > 1


def test_two_take_overs() -> None:
    def rivals(log: Log, nursery: trio.Nursery) -> list[Callable[[], object]]:
        standalone = log.streams.standalone

        def take_over() -> None:
            nursery.start_soon(log.follow, standalone.open_reader())

        return [take_over, take_over, lambda: log.say("c")]

    for log in race_of(rivals):
        assert [text for _, text in log.read] == ["a", "b", "c"]
        assert len(log.ended) == 2  # one is left
        assert log.streams.standalone.has_reader


def test_a_resumption_and_an_eviction() -> None:
    """Who comes back gets what is kept; what is not is counted once."""

    def rivals(log: Log, nursery: trio.Nursery) -> list[Callable[[], object]]:
        streams = log.streams
        streams.keep = 3

        def say() -> None:
            log.say("c", "d", "e")
            nursery.start_soon(streams.wait_for_room)

        def resume() -> None:
            reader = streams.resume(streams.standalone.event_id(0))
            nursery.start_soon(log.follow, reader)

        return [say, resume]

    seen = set()
    for log in race_of(rivals):
        texts = [text for number, text in log.read if number == 1]
        assert texts == list("abcde")[5 - len(texts) :]  # no hole behind where it goes on
        assert log.streams.evicted == 5 - len(texts)
        seen.add(len(texts))
    assert seen == {3, 5}


@pytest.mark.parametrize("standalone", [True, False])
def test_a_drop_a_resumption_and_a_message(standalone: bool) -> None:
    """Over the endpoint: a client that comes back in that tick has everything, once."""

    async def race(order: int) -> int:
        async with open_world() as world:
            client = await world.joined()
            exchange, speaker = await speaking(world, client, "k")
            first = await listening(client) if standalone else exchange
            await speaker.say("a", standalone=standalone)
            await first.message()
            came_back: list[Any] = []

            def come_back() -> None:
                came_back.append(client.get(first.events[-1].id))
                came_back.append(len(first.messages))

            async def say(hops: int) -> None:
                await trio.sleep_until(MOMENT)
                await hop(hops)
                for text in "bc":
                    await speaker.say(text, standalone=standalone)

            async with trio.open_nursery() as nursery:
                nursery.start_soon(at_the_moment, come_back, order // 3 % 12)
                nursery.start_soon(say, late(order // 36))
                nursery.start_soon(at_the_moment, first.drop, late(order) * 2)
            again, had = came_back
            if had < 3:
                await again.message(2 - had)
            assert texts(first.messages[:had] + again.messages) == ["a", "b", "c"]
            return int(had)

    assert len(set(in_many_orders(race))) > 1
