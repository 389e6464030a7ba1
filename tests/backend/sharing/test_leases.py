"""Sessions that have one connection together: who calls is who is answered."""

from __future__ import annotations

import attrs
import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from connected import server
from emceepee_trio.config import Config, Limits
from emceepee_trio.errors import ServerDisconnected
from emceepee_trio.model.states import BackendState
from sharers import Sharer, at_url, open_sharers, shared


async def test_calls_are_answered_to_whom_they_belong(autojump_clock: MockClock) -> None:
    async with open_sharers(shared()) as world:
        one, two = await world.at_work("one", "two")
        assert len(world.peers.all) == 1
        world.answer("of two", "for two")
        world.answer("of one", "for one")
        await wait_all_tasks_blocked()
        assert one.got == {"of one": "for one"}
        assert two.got == {"of two": "for two"}


async def test_nothing_is_shared_with_another_principal(autojump_clock: MockClock) -> None:
    async with open_sharers(shared()) as world:
        (one,) = await world.connected("one")
        bobs = await world.come("bobs", "bob")
        await bobs.lease.connection()
        assert len(world.peers.all) == 2
        assert one.lease.hub is not bobs.lease.hub
        assert one.lease.shared_with == bobs.lease.shared_with == []
        bobs.begin("of bob")
        await wait_all_tasks_blocked()
        assert world.peer.began == []
        assert world.peers.all[1].began == ["of bob"]


async def test_another_entry_of_the_same_name_is_another_connection(
    autojump_clock: MockClock,
) -> None:
    async with open_sharers(shared()) as world:
        one, two = await world.connected("one", "two")
        hub = one.lease.hub
        world.manager.reload(Config(servers=(attrs.evolve(shared(), args=("2",)),)))
        await wait_all_tasks_blocked()
        assert one.lease.hub is two.lease.hub is not hub
        assert hub.ended.is_set()  # nobody can come for it
        assert [peer.is_open for peer in world.peers.all] == [False, True]


async def test_without_scope_each_session_has_its_own(autojump_clock: MockClock) -> None:
    async with open_sharers(server()) as world:
        sessions = [await world.come(name) for name in ("one", "two")]
        for each in sessions:
            await each.session.backends["x"].connection()
            assert each.session.backends["x"].shared_with is None
        assert len(world.peers.all) == 2
        assert world.hubs() == []


async def test_it_starts_with_the_first_use_and_ends_a_while_after_the_last(
    autojump_clock: MockClock,
) -> None:
    async with open_sharers(shared(start="lazy", linger_ms=5000)) as world:
        one, two = await world.come("one"), await world.come("two")
        await trio.sleep(10)
        assert world.peers.all == []
        assert [each.lease.state.value for each in (one, two)] == ["not_connected"] * 2
        await two.lease.connection()
        assert one.lease.state is BackendState.CONNECTED
        await two.end()
        await trio.sleep(10)
        assert world.peer.is_open
        await one.end()
        await trio.sleep(4.9)
        assert world.peer.is_open
        await trio.sleep(0.2)
        assert not world.peer.is_open
        assert world.hubs() == []


async def test_who_comes_again_in_time_finds_it_warm(autojump_clock: MockClock) -> None:
    async with open_sharers(shared(linger_ms=5000)) as world:
        (one,) = await world.connected("one")
        await one.end()
        await trio.sleep(4)
        (again,) = await world.connected("again")
        await trio.sleep(100)
        assert len(world.peers.all) == 1
        assert again.lease.state is BackendState.CONNECTED


async def test_who_comes_to_what_is_connected_expects_nothing_else(
    autojump_clock: MockClock,
) -> None:
    async with open_sharers(shared()) as world:
        _, two = await world.connected("one", "two")
        assert two.told == []
        world.peer.end()
        await trio.sleep(60)
        assert two.told == [
            *("process_crashed", "server_disconnected", "restarting"),
            *("process_started", "restarted", "server_reconnected"),
        ]


async def test_what_one_gives_up_is_cancelled_and_nothing_else_is(
    autojump_clock: MockClock,
) -> None:
    async with open_sharers(shared()) as world:
        one, two = await world.connected("one", "two")
        one.begin("slow", timeout_ms=1000, ttl_ms=1000)
        two.begin("slow too")
        await wait_all_tasks_blocked()
        (task,) = [request for request, tool in world.peer.calls.items() if tool == "slow"]
        await trio.sleep(100)
        assert world.peer.cancelled == [task]
        world.answer("slow too", "done")
        await wait_all_tasks_blocked()
        assert two.got == {"slow too": "done"}


async def test_the_end_of_a_session_cancels_what_it_had_under_way(
    autojump_clock: MockClock,
) -> None:
    async with open_sharers(shared()) as world:
        one, two = await world.at_work("one", "two")
        (mine,) = [request for request, tool in world.peer.calls.items() if tool == "of one"]
        await one.end()
        await wait_all_tasks_blocked()
        assert world.peer.cancelled == [mine]
        assert world.peer.is_open
        world.peer.answer(mine, {"content": [], "isError": False})  # too late
        world.answer("of two", "done")
        await wait_all_tasks_blocked()
        assert two.got == {"of two": "done"}
        assert two.lease.shared_with == []


async def test_removing_a_server_ends_it_for_all_and_says_so(autojump_clock: MockClock) -> None:
    async with open_sharers(shared()) as world:
        one, two = await world.at_work("one", "two")
        leases = one.lease, two.lease
        assert (await one.use("remove_server", name="x"))["isError"] is False
        assert not world.peer.is_open  # nobody waits for who may come
        await wait_all_tasks_blocked()
        for each, tool in ((one, "of one"), (two, "of two")):
            assert isinstance(each.got[tool], ServerDisconnected)
            assert each.told == ["server_disconnected", "process_stopped", "server_removed"]
        for lease in leases:
            assert lease.state is BackendState.DISCONNECTED
            with pytest.raises(ServerDisconnected, match="no longer here"):
                await lease.connection()


async def test_a_burst_of_one_session_does_not_keep_another_waiting(
    autojump_clock: MockClock,
) -> None:
    async with open_sharers(shared(max_concurrent=2)) as world:
        one, two = await world.connected("one", "two")
        for number in range(6):
            one.begin(f"one {number}")
            await wait_all_tasks_blocked()
        two.begin("two")
        await wait_all_tasks_blocked()
        assert world.peer.began == ["one 0", "one 1"]
        world.answer("one 0", "")
        await wait_all_tasks_blocked()
        world.answer("one 1", "")
        await wait_all_tasks_blocked()
        assert world.peer.began == ["one 0", "one 1", "one 2", "two"]
        await one.end()
        await wait_all_tasks_blocked()
        world.answer("two", "")
        await wait_all_tasks_blocked()
        assert two.got == {"two": ""}


async def test_each_session_has_as_many_calls_under_way_as_ever(
    autojump_clock: MockClock,
) -> None:
    async with open_sharers(shared(), limits=Limits(calls=2)) as world:
        one, two = await world.connected("one", "two")
        for number in range(3):
            one.begin(f"one {number}")
            two.begin(f"two {number}")
            await wait_all_tasks_blocked()
        for each, name in ((one, "one"), (two, "two")):
            assert each.got.keys() == {f"{name} 2"}
            assert "limits.calls" in str(each.got[f"{name} 2"])
        assert sorted(world.peer.began) == ["one 0", "one 1", "two 0", "two 1"]


async def test_a_program_that_nobody_uses_is_stopped_for_all(autojump_clock: MockClock) -> None:
    async with open_sharers(shared(idle_stop_ms=1000)) as world:
        one, two = await world.connected("one", "two")
        one.begin("long", timeout_ms=60_000)
        await trio.sleep(30)
        assert world.peer.is_open
        world.answer("long", "")
        await trio.sleep(2)
        assert not world.peer.is_open
        for each in (one, two):
            assert each.lease.state is BackendState.IDLE
            assert each.told == ["process_stopped"]
        await two.lease.connection()
        assert one.lease.state is BackendState.CONNECTED


async def test_calls_to_a_url_are_told_apart_like_any_others(autojump_clock: MockClock) -> None:
    async with open_sharers(at_url()) as world:
        one, two = await world.at_work("one", "two")
        world.answer("of one", "for one")
        world.answer("of two", "for two")
        await wait_all_tasks_blocked()
        assert (one.got, two.got) == ({"of one": "for one"}, {"of two": "for two"})


async def test_progress_is_told_to_who_asked(autojump_clock: MockClock) -> None:
    heard: dict[str, list[object]] = {"one": [], "two": []}

    async def ask(sharer: Sharer, name: str) -> None:
        client = await sharer.lease.connection()
        params = {"name": name, "arguments": {}}
        await client.request("tools/call", params, on_progress=heard[name].append)

    async with open_sharers(shared()) as world:
        one, two = await world.connected("one", "two")
        world.nursery.start_soon(ask, one, "one")
        world.nursery.start_soon(ask, two, "two")
        await wait_all_tasks_blocked()
        for request_id, name in list(world.peer.calls.items()):
            token = world.peer.requests[request_id]["params"]["_meta"]["progressToken"]
            world.notify("progress", progressToken=token, progress=1, message=name)
        await wait_all_tasks_blocked()
        for name, said in heard.items():
            assert [each["message"] for each in said] == [name]  # type: ignore[index]
