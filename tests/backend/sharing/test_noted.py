"""What is noted of a shared connection: each session's timeline has what concerns it, no more."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from emceepee_trio.config import Server
from emceepee_trio.journal import Reader
from emceepee_trio.model import facts
from emceepee_trio.model.timeline.records import Records
from emceepee_trio.model.timeline.rows import Row
from scripted_peer import NOBODY
from sharers import Sharer, Sharers, open_sharers, shared
from standing import check_standing


@asynccontextmanager
async def open_recorded(entry: Server) -> AsyncGenerator[tuple[Sharers, Records]]:
    async with open_sharers(entry) as world:
        records = Records(1000, 10_000)
        for read, kinds in records.readers():
            world.manager.journal.add(Reader("timeline", read, kinds))
        yield world, records


def rows(records: Records, sharer: Sharer, kind: str = "connection") -> list[Row]:
    record = records.get(sharer.session.id)
    assert record is not None
    if sharer.manager.get(sharer.session.id) is sharer.session:
        check_standing(sharer.session, record.timeline)
    return [row for row in record.timeline.rows.values() if row.kind == kind]


def outcomes(records: Records, sharer: Sharer) -> list[tuple[str, str | None]]:
    return [(row.outcome, row.phase) for row in rows(records, sharer)]


async def test_what_becomes_of_the_connection_is_in_the_timeline_of_each_who_has_it(
    autojump_clock: MockClock,
) -> None:
    async with open_recorded(shared()) as (world, records):
        one, two = await world.come("one"), await world.come("two")
        await one.lease.connection()
        await wait_all_tasks_blocked()
        assert outcomes(records, one) == outcomes(records, two) == [("under way", "up")]
        world.peer.end()
        await trio.sleep(60)
        for each in (one, two):
            lost, now = rows(records, each)
            assert (lost.outcome, now.outcome) == ("lost", "under way")
            noted = [type(fact) for fact in lost.facts]
            assert noted == [
                *(facts.ConnectionTrying, facts.ChildStarted, facts.ConnectionUp),
                *(facts.ConnectionLost, facts.ChildEnded, facts.ConnectionEnded),
            ]
            assert lost.name == f"program {NOBODY + 1}"


async def test_who_comes_later_sees_that_it_is_there_and_nothing_of_before(
    autojump_clock: MockClock,
) -> None:
    async with open_recorded(shared()) as (world, records):
        (one,) = await world.connected("one")
        world.peer.end()
        await trio.sleep(60)
        one.begin("of one")
        (two,) = await world.connected("two")
        (row,) = rows(records, two)
        assert (row.name, row.phase) == (f"program {NOBODY + 2}", "up")
        assert rows(records, two, "call") == []
        assert len(rows(records, one)) == 2


async def test_a_call_waits_for_the_connection_that_others_wait_for(
    autojump_clock: MockClock,
) -> None:
    async with open_recorded(shared(start="lazy")) as (world, records):
        one, two = await world.come("one"), await world.come("two")
        world.peers.mood = "waits"
        one.begin("of one")
        await wait_all_tasks_blocked()
        two.begin("of two")
        await wait_all_tasks_blocked()
        for each in (one, two):
            (call,) = rows(records, each, "call")
            assert call.phase == "connection"
        world.peer.greet(kindly=True)
        await wait_all_tasks_blocked()
        for each in (one, two):
            (call,) = rows(records, each, "call")
            assert call.phase == "server"
            assert outcomes(records, each) == [("under way", "up")]


async def test_who_gives_it_back_hears_no_more_of_it(autojump_clock: MockClock) -> None:
    async with open_recorded(shared(linger_ms=0)) as (world, records):
        one, two = await world.connected("one", "two")
        one.begin("of one")
        await wait_all_tasks_blocked()
        await one.end()
        await trio.sleep(1)
        world.peer.end()
        await trio.sleep(60)
        (row,) = rows(records, one)
        assert (row.outcome, row.phase) == ("left", None)
        assert isinstance(row.facts[-1], facts.ConnectionLeft)
        assert outcomes(records, two) == [("lost", None), ("under way", "up")]
        await two.end()
        await trio.sleep(1)
        assert records._shared == {}


async def test_after_a_split_each_has_its_own(autojump_clock: MockClock) -> None:
    split: list[Any] = []
    async with open_recorded(shared()) as (world, records):
        world.manager.journal.add(Reader("test", split.append, (facts.SharingSplit,)))
        one, two = await world.at_work("one", "two")
        world.ask(1)
        await wait_all_tasks_blocked()
        one.begin("again")
        await wait_all_tasks_blocked()
        assert outcomes(records, one) == [("left", None), ("under way", "up")]
        assert outcomes(records, two) == [("left", None)]
        (fact,) = split
        assert (fact.server, fact.why, fact.sessions) == ("x", "elicitation", 2)


async def test_health_that_comes_and_goes_is_not_kept_for_who_comes(
    autojump_clock: MockClock,
) -> None:
    async with open_recorded(shared()) as (world, records):
        (one,) = await world.connected("one")
        link = one.lease.hub.backend.supervisor.life.current
        assert link is not None
        for _ in range(100):
            link.note(facts.ConnectionDegraded)
            link.note(facts.ConnectionRestored)
        (two,) = await world.connected("two")
        assert [len(row.facts) for each in (one, two) for row in rows(records, each)] == [203, 4]
        assert outcomes(records, two) == [("under way", "up")]
