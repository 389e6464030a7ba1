"""Sessions that share a server of the modern era, which asks in the results of calls."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from memory_peers import Peer
from sharers import ELICITATION, FORM, Sharers, modern, open_sharers

FILTERS = {"toolsListChanged": True, "promptsListChanged": True, "resourcesListChanged": True}


def request_of(peer: Peer, tool: str) -> int:
    (found,) = [request for request, name in peer.calls.items() if name == tool]
    return found


def need(world: Sharers, tool: str, number: int = 1, method: str = ELICITATION) -> None:
    params: Any = {"message": f"question {number}", "requestedSchema": FORM}
    if method == "roots/list":
        params = {}
    world.peer.needs(request_of(world.peer, tool), number, method, params)


async def test_whose_a_question_is_is_known_whoever_else_is_at_work(
    autojump_clock: MockClock,
) -> None:
    async with open_sharers(modern()) as world:
        one, two = await world.at_work("one", "two", timeout_ms=0)
        need(world, "of two", 1)
        need(world, "of one", 2)
        await wait_all_tasks_blocked()
        assert (one.questions, two.questions) == (["question 2"], ["question 1"])
        one.answer(name="One")
        two.answer(name="Two")
        await wait_all_tasks_blocked()
        assert {said["id"]: said["result"]["content"] for said in world.peer.answers} == {
            1: {"name": "Two"},
            2: {"name": "One"},
        }
        world.answer("of one", "for one")
        world.answer("of two", "for two")
        await wait_all_tasks_blocked()
        assert "share_conflict" not in one.told + two.told
        assert len(world.peers.all) == 1


async def test_each_tells_the_roots_of_the_session_that_calls(autojump_clock: MockClock) -> None:
    async with open_sharers(modern()) as world:
        sharers = await world.connected("one", "two")
        for number, each in enumerate(sharers):
            name = each.session.id
            await each.use("set_roots", roots=[{"uri": f"file:///{name}"}])
            each.begin(name)
            await wait_all_tasks_blocked()
            need(world, name, number, "roots/list")
            await wait_all_tasks_blocked()
            said = world.peer.answers[number]["result"]
            assert [root["uri"] for root in said["roots"]] == [f"file:///{name}"]
            assert "share_conflict" not in each.told


async def test_the_end_of_a_session_ends_its_questions_alone(autojump_clock: MockClock) -> None:
    async with open_sharers(modern()) as world:
        one, two = await world.at_work("one", "two", timeout_ms=0)
        need(world, "of one", 1)
        need(world, "of two", 2)
        await wait_all_tasks_blocked()
        await one.end()
        await wait_all_tasks_blocked()
        assert world.peer.answers == []
        two.answer(name="Two")
        await wait_all_tasks_blocked()
        assert [said["id"] for said in world.peer.answers] == [2]
        assert sorted(world.peer.began) == ["of one", "of two"]


async def test_what_any_of_them_follows_is_listened_for(autojump_clock: MockClock) -> None:
    async with open_sharers(modern()) as world:
        one, two = await world.connected("one", "two")
        for each, uri in ((one, "file:///a"), (two, "file:///b")):
            assert not isinstance(await each.follow(uri), Exception)
            await trio.sleep(10)
        last = world.peer.asked("subscriptions/listen")[-1]["notifications"]
        assert last == {**FILTERS, "resourceSubscriptions": ["file:///a", "file:///b"]}
        world.notify("resources/updated", uri="file:///a")
        world.notify("tools/list_changed")
        await wait_all_tasks_blocked()
        assert one.notices == [{"uri": "file:///a"}, {}]
        assert two.notices == [{}]
        await one.end()
        await trio.sleep(10)
        last = world.peer.asked("subscriptions/listen")[-1]["notifications"]
        assert last["resourceSubscriptions"] == ["file:///b"]


async def test_logs_are_of_the_session_of_their_call(autojump_clock: MockClock) -> None:
    async with open_sharers(modern()) as world:
        one, two = await world.connected("one", "two")
        await one.use("set_log_level", server="x", level="error")
        one.begin("of one")
        two.begin("of two")
        await wait_all_tasks_blocked()
        levels = [
            request["params"]["_meta"]["io.modelcontextprotocol/logLevel"]
            for request in world.peer.requests.values()
            if request["method"] == "tools/call"
        ]
        assert sorted(levels) == ["error", "info"]
        for each in ("one", "two"):
            world.log(f"for {each}", "alert", about=request_of(world.peer, f"of {each}"))
        world.log("for nobody", "alert")
        await wait_all_tasks_blocked()
        assert (one.logs, two.logs) == (["for one"], ["for two"])


@pytest.mark.parametrize("is_lost", [False, True])
async def test_a_loss_is_each_ones_own(is_lost: bool, autojump_clock: MockClock) -> None:
    async with open_sharers(modern()) as world:
        one, two = await world.connected("one", "two")
        one.begin("of one")
        two.begin("of two", timeout_ms=0)
        await wait_all_tasks_blocked()
        need(world, "of two")
        await wait_all_tasks_blocked()
        if is_lost:
            world.peer.end()
        else:
            await one.use("reconnect_server", name="x")
        await trio.sleep(100)
        assert one.got["of one"].code == "TOOL_ERR_SERVER_DISCONNECTED"
        assert two.questions == []
        (mine,), (theirs,) = one.data("server_reconnected"), two.data("server_reconnected")
        assert mine.get("invalidatedElicitations", 0) == 0
        assert theirs["invalidatedElicitations"] == 1
        assert len(world.peers.all) == 2
