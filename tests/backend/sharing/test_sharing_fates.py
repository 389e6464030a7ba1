"""Shared connections, and two things that happen to one of them in the same tick.

Whatever wins, each session is told the same story as its calls, and nothing is asked twice.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Any

import trio
from trio.testing import wait_all_tasks_blocked

from emceepee_trio.backend.sharing.lease import Lease
from emceepee_trio.model.states import BackendState
from parts import MOMENT, at_the_moment, hop, in_many_orders, mock_clock
from sharers import Sharer, Sharers, open_sharers, result, shared

ORDERS = 60


def lateness(order: int) -> tuple[int, int]:
    return (order % 7, 0) if order % 2 else (0, order % 7)


def began(world: Sharers) -> Counter[str]:
    """How often each call came to any of the programs."""
    return Counter(tool for peer in world.peers.all for tool in peer.began)


def answers_all(world: Sharers) -> None:
    for peer in world.peers.open():
        for request_id, tool in list(peer.calls.items()):
            peer.answer(request_id, result(f"for {tool}"))


def test_the_end_of_the_last_lease_and_a_new_one() -> None:
    """Who comes has a connection that works: the one that there was, or another one."""

    async def race(order: int) -> int:
        entry = shared(linger_ms=round(MOMENT * 1000))
        async with open_sharers(entry) as world:
            (one,) = await world.connected("one")
            await one.end()
            await trio.sleep(MOMENT - 1)
            mock_clock().jump(1)  # it is due from here on, and nobody has been woken for it yet
            await hop(order % 9)
            new = await world.come("new")
            new.begin("of new")
            await wait_all_tasks_blocked()
            answers_all(world)
            await wait_all_tasks_blocked()
            assert new.got == {"of new": "for of new"}
            assert len(world.peers.open()) == 1
            assert began(world) == {"of new": 1}
            assert len(world.hubs()) == 1
            assert list(new.lease.hub.leases) == [new.lease]
            return len(world.peers.all)

    assert set(in_many_orders(race, ORDERS)) == {1, 2}


def test_removing_a_server_and_a_session_that_comes() -> None:
    async def race(order: int) -> bool:
        async with open_sharers(shared()) as world:
            one, _ = await world.connected("one", "two")
            new: list[Sharer] = []

            async def come(hops: int) -> None:
                await trio.sleep_until(MOMENT)
                await hop(hops)
                new.append(await world.come("new"))

            async def remove(hops: int) -> None:
                await trio.sleep_until(MOMENT)
                await hop(hops)
                assert (await one.use("remove_server", name="x"))["isError"] is False

            early, later = lateness(order)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(come, early)
                nursery.start_soon(remove, later)
            await trio.sleep(1)
            assert world.peers.open() == []
            assert world.hubs() == []
            assert all(not session.backends for session in world.manager.sessions())
            return bool(new[0].told)

    assert set(in_many_orders(race, ORDERS)) == {False, True}


def ask_of_two(world: Sharers) -> None:
    world.ask(1)


def test_a_split_and_the_answer_to_a_call() -> None:
    """If the answer is first the question is of the other call; else nobody is asked."""

    async def race(order: int) -> bool:
        async with open_sharers(shared()) as world:
            one, two = await world.at_work("one", "two")
            early, later = lateness(order)
            async with trio.open_nursery() as nursery:
                answer = partial(world.answer, "of one", "for of one")
                nursery.start_soon(at_the_moment, answer, early)
                nursery.start_soon(at_the_moment, partial(ask_of_two, world), later)
            await wait_all_tasks_blocked()
            assert one.questions == []
            is_split = "share_conflict" in one.told
            told = [event for event in two.told if event != "task_created"]  # for it is asked
            assert told == (["share_conflict"] if is_split else ["elicitation_request"])
            assert two.questions == ([] if is_split else ["question 1"])
            answers_all(world)
            await wait_all_tasks_blocked()
            assert one.got == {"of one": "for of one"}
            assert is_split <= (two.got == {"of two": "for of two"})
            assert set(began(world).values()) == {1}
            two.begin("again")
            await wait_all_tasks_blocked()
            assert began(world)["again"] == 1
            assert len(world.peers.open()) == 1
            return is_split

    assert set(in_many_orders(race, ORDERS)) == {False, True}


def test_a_split_and_the_beginning_of_a_call() -> None:
    """It runs once: on the connection that there was, or on its own."""

    async def race(order: int) -> int:
        async with open_sharers(shared()) as world:
            one, two = await world.at_work("one", "two")
            early, later = lateness(order)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(at_the_moment, partial(one.begin, "another"), early)
                nursery.start_soon(at_the_moment, partial(ask_of_two, world), later)
            await wait_all_tasks_blocked()
            assert began(world) == {"of one": 1, "of two": 1, "another": 1}
            where = [n for n, peer in enumerate(world.peers.all) if "another" in peer.began]
            answers_all(world)
            await wait_all_tasks_blocked()
            assert one.got == {"of one": "for of one", "another": "for another"}
            assert two.got == {"of two": "for of two"}
            await trio.sleep(1)
            assert not world.peer.is_open
            return where[0]

    assert set(in_many_orders(race, ORDERS)) == {0, 1}


def test_a_crash_and_a_split() -> None:
    """Both are told or one is; the calls are lost once, and nobody is started for nobody."""

    async def race(order: int) -> tuple[str, ...]:
        async with open_sharers(shared()) as world:
            one, two = await world.at_work("one", "two", timeout_ms=0)
            early, later = lateness(order)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(at_the_moment, world.peer.end, early)
                nursery.start_soon(at_the_moment, partial(ask_of_two, world), later)
            await trio.sleep(100)
            is_split = "share_conflict" in one.told
            for each in (one, two):
                assert ("share_conflict" in each.told) == is_split
                tasks = [event for event in each.told if event.startswith("task_")]
                assert tasks == ["task_created", "task_failed"]
                backend = each.session.backends["x"]
                assert isinstance(backend, Lease)
                assert backend.has_moved == is_split
                assert each.questions == []
            assert began(world) == {"of one": 1, "of two": 1}
            assert len(world.hubs()) == (not is_split)
            one.begin("again")
            await wait_all_tasks_blocked()
            assert began(world)["again"] == 1
            return tuple(one.told)

    assert len(set(in_many_orders(race, ORDERS))) > 1


def test_a_stop_of_what_nobody_uses_and_a_call() -> None:
    """The call runs once, on the program that there was or on the next one."""

    async def race(order: int) -> int:
        entry = shared(idle_stop_ms=round(MOMENT * 1000))
        async with open_sharers(entry) as world:
            one, two = await world.connected("one", "two")
            await trio.sleep(MOMENT / 2)
            since = world.hubs()[0].backend.uses.last

            if order % 2:
                await trio.sleep_until(since + MOMENT)
                await hop(order % 9)
                two.begin("of two")
            else:  # a few ticks ahead
                await trio.sleep_until(since + MOMENT - 1)
                two.begin("of two")
                await hop(order % 9)
                mock_clock().jump(1)
            await wait_all_tasks_blocked()
            answers_all(world)
            await trio.sleep(1)
            assert two.got == {"of two": "for of two"}
            assert began(world) == {"of two": 1}
            stops = len(world.peers.all) - 1
            assert one.told.count("process_stopped") == two.told.count("process_stopped") == stops
            assert "server_disconnected" not in one.told + two.told
            await trio.sleep(2 * MOMENT)
            assert world.peers.open() == []
            assert one.lease.state is two.lease.state is BackendState.IDLE
            return stops

    assert set(in_many_orders(race, ORDERS)) == {0, 1}


def test_the_end_of_a_session_and_the_answer_to_its_question() -> None:
    """The server gets one answer, and the other session is not concerned."""

    async def race(order: int) -> bool:
        async with open_sharers(shared()) as world:
            one, two = await world.connected("one", "two")
            one.begin("of one")
            await wait_all_tasks_blocked()
            world.ask(1)
            await wait_all_tasks_blocked()
            (question,) = one.session.questions.open("elicitation")

            def answer() -> None:
                if question.is_open:
                    one.answer(name="One")

            early, later = lateness(order)
            end: Any = partial(world.manager.end, one.session, "over")
            async with trio.open_nursery() as nursery:
                nursery.start_soon(at_the_moment, answer, early)
                nursery.start_soon(at_the_moment, end, later)
            await trio.sleep(1)
            assert world.peer.is_open
            (said,) = world.peer.answers
            assert two.told == two.questions == []
            two.begin("of two")
            await wait_all_tasks_blocked()
            answers_all(world)
            await wait_all_tasks_blocked()
            assert two.got == {"of two": "for of two"}
            return "result" in said

    in_many_orders(race, ORDERS)
