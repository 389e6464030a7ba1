"""Whose a question is: known, or the only one it can be; otherwise nobody is asked."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from emceepee_trio.config import Config, Server
from emceepee_trio.config.roots import as_roots
from sharers import ELICITATION, SAMPLING, Sharer, Sharers, at_url, open_sharers, shared

PATH = [{"uri": "file:///one"}]
both_kinds = pytest.mark.parametrize("method", [ELICITATION, SAMPLING])


async def two_at_work(world: Sharers) -> tuple[Sharer, Sharer]:
    one, two = await world.at_work("one", "two", timeout_ms=0)
    return one, two


def request_of(world: Sharers, tool: str) -> int:
    (found,) = [request for request, name in world.peer.calls.items() if name == tool]
    return found


async def test_who_alone_has_a_call_under_way_is_asked(autojump_clock: MockClock) -> None:
    async with open_sharers(shared()) as world:
        one, two = await world.connected("one", "two")
        two.begin("of two")
        await wait_all_tasks_blocked()
        world.ask(1)
        await wait_all_tasks_blocked()
        assert (one.questions, two.questions) == ([], ["question 1"])
        two.answer(name="Ada")
        await wait_all_tasks_blocked()
        (answer,) = world.peer.answers
        assert answer["result"] == {"action": "accept", "content": {"name": "Ada"}}
        assert "share_conflict" not in one.told + two.told


@both_kinds
async def test_where_it_could_be_of_two_nobody_is_asked_and_the_server_is_split(
    method: str, autojump_clock: MockClock
) -> None:
    async with open_sharers(shared()) as world:
        one, two = await two_at_work(world)
        idle = await world.come("idle")
        await wait_all_tasks_blocked()
        world.ask(1, method)
        await wait_all_tasks_blocked()
        (answer,) = world.peer.answers
        assert "nobody was asked" in answer["error"]["message"]
        for each in (one, two, idle):
            assert each.questions == []
            (conflict,) = each.data("share_conflict")
            assert conflict["sessions"] == 3
            assert conflict["reason"] == ("elicitation" if method == ELICITATION else "sampling")
            assert "call again" in conflict["advice"]
        # What was under way ends where it is, and is not asked again.
        assert world.peer.is_open
        assert len(world.peers.all) == 1
        world.answer("of one", "for one")
        world.answer("of two", "for two")
        await trio.sleep(1)
        for each in (one, two):
            assert [e for e in each.told if e.startswith("task_")] == [
                "task_created",
                "task_completed",
            ]
        assert not world.peer.is_open  # nobody needs it any more, and nobody waits for who may come
        assert world.hubs() == []
        # From now on each has its own.
        one.begin("again one")
        two.begin("again two")
        await wait_all_tasks_blocked()
        assert [peer.began for peer in world.peers.all[1:]] in (
            [["again one"], ["again two"]],
            [["again two"], ["again one"]],
        )
        for peer in world.peers.all[1:]:
            (request_id,) = peer.calls
            peer.answer(request_id, {"content": [{"type": "text", "text": peer.began[0]}]})
        await wait_all_tasks_blocked()
        assert one.got["again one"] == "again one"
        assert two.got["again two"] == "again two"
        assert one.session.backends["x"].shared_with is None


async def test_who_comes_after_a_split_has_its_own_until_the_entry_changes(
    autojump_clock: MockClock,
) -> None:
    async with open_sharers(shared()) as world:
        await two_at_work(world)
        world.ask(1)
        await wait_all_tasks_blocked()
        new = await world.come("new")
        assert new.session.backends["x"].shared_with is None
        bobs = await world.come("bobs", "bob")
        assert bobs.session.backends["x"].shared_with == []  # it is no business of his
        world.manager.reload(Config(servers=(shared(description="another one"),)))
        await wait_all_tasks_blocked()
        assert new.session.backends["x"].shared_with == ["one", "two"]


async def test_a_question_in_the_answer_to_a_call_is_of_that_call(
    autojump_clock: MockClock,
) -> None:
    async with open_sharers(at_url()) as world:
        one, two = await two_at_work(world)
        world.ask(1, about=request_of(world, "of two"))
        world.ask(2, about=request_of(world, "of one"))
        await wait_all_tasks_blocked()
        assert (one.questions, two.questions) == (["question 2"], ["question 1"])
        one.answer(name="One")
        two.answer(name="Two")
        await wait_all_tasks_blocked()
        names = {said["id"]: said["result"]["content"]["name"] for said in world.peer.answers}
        assert names == {1: "Two", 2: "One"}
        assert "share_conflict" not in one.told + two.told


async def test_a_question_in_the_answer_to_what_is_over_is_nobodys(
    autojump_clock: MockClock,
) -> None:
    async with open_sharers(at_url()) as world:
        one, two = await world.connected("one", "two")
        one.begin("of one", timeout_ms=1000, ttl_ms=1000)
        await wait_all_tasks_blocked()
        request = request_of(world, "of one")
        await trio.sleep(30)
        two.begin("of two")
        await wait_all_tasks_blocked()
        world.ask(1, about=request)
        await wait_all_tasks_blocked()
        assert world.peer.answers[0]["error"]
        assert (one.questions, two.questions) == ([], [])
        assert "share_conflict" not in two.told  # it was known whose it was


async def test_what_was_given_up_may_still_ask(autojump_clock: MockClock) -> None:
    """Nobody else is asked what belongs to a call that its session does not want any more."""
    async with open_sharers(shared()) as world:
        one, two = await world.connected("one", "two")
        one.begin("of one", timeout_ms=1000, ttl_ms=1000)
        await wait_all_tasks_blocked()
        await trio.sleep(30)
        assert world.peer.cancelled
        two.begin("of two")
        await wait_all_tasks_blocked()
        world.ask(1)
        await wait_all_tasks_blocked()
        assert "nobody was asked" in world.peer.answers[0]["error"]["message"]
        assert (one.questions, two.questions) == ([], [])
        assert two.told[-1] == "share_conflict"


async def test_so_may_that_of_a_session_that_has_ended(autojump_clock: MockClock) -> None:
    async with open_sharers(shared()) as world:
        one, two = await world.connected("one", "two")
        one.begin("of one")
        await wait_all_tasks_blocked()
        await one.end()
        two.begin("of two")
        await wait_all_tasks_blocked()
        world.ask(1)
        await wait_all_tasks_blocked()
        assert world.peer.answers[0]["error"]
        assert two.questions == []


async def test_what_was_given_up_and_answered_is_over(autojump_clock: MockClock) -> None:
    async with open_sharers(shared()) as world:
        one, two = await world.connected("one", "two")
        one.begin("of one", timeout_ms=1000, ttl_ms=1000)
        await wait_all_tasks_blocked()
        request = request_of(world, "of one")
        await trio.sleep(30)
        world.peer.refuse(request, "cancelled, as you like")
        two.begin("of two")
        await wait_all_tasks_blocked()
        world.ask(1)
        await wait_all_tasks_blocked()
        assert two.questions == ["question 1"]


async def test_a_question_that_names_a_task_is_of_who_has_that(
    autojump_clock: MockClock,
) -> None:
    async with open_sharers(shared()) as world:
        one, two = await two_at_work(world)
        task = {"taskId": "t-1", "status": "working", "pollInterval": 1000}
        world.peer.answer(request_of(world, "of one"), {"task": task, "content": []})
        await wait_all_tasks_blocked()
        meta = {"io.modelcontextprotocol/related-task": {"taskId": "t-1"}}
        world.ask(1, _meta=meta)
        await wait_all_tasks_blocked()
        assert (one.questions, two.questions) == (["question 1"], [])
        one.answer(name="One")
        # It works on, although no request is under way: so the next one could be of either.
        world.ask(2)
        await wait_all_tasks_blocked()
        assert one.told[-1] == two.told[-1] == "share_conflict"


async def test_a_task_of_another_session_is_not_there(autojump_clock: MockClock) -> None:
    async with open_sharers(shared()) as world:
        one, two = await two_at_work(world)
        task = {"taskId": "t-1", "status": "working"}
        world.peer.answer(request_of(world, "of one"), {"task": task, "content": []})
        await wait_all_tasks_blocked()
        client = await two.lease.connection()
        for method in ("tasks/get", "tasks/result", "tasks/cancel"):
            with pytest.raises(Exception, match="Task not found"):
                await client.request(method, {"taskId": "t-1"})
        assert world.peer.asked("tasks/get", "tasks/result", "tasks/cancel") == []
        world.notify("tasks/status", taskId="t-1", status="working")
        await wait_all_tasks_blocked()
        assert [n["taskId"] for n in one.notices] == ["t-1"]
        assert two.notices == []
        await one.end()
        await wait_all_tasks_blocked()
        assert world.peer.asked("tasks/cancel") == [{"taskId": "t-1"}]


async def test_the_end_of_a_session_ends_its_question(autojump_clock: MockClock) -> None:
    async with open_sharers(shared()) as world:
        one, two = await world.connected("one", "two")
        one.begin("of one")
        await wait_all_tasks_blocked()
        world.ask(1)
        await wait_all_tasks_blocked()
        assert one.questions == ["question 1"]
        await one.end()
        await wait_all_tasks_blocked()
        (answer,) = world.peer.answers
        assert "error" in answer
        assert two.questions == []
        assert world.peer.is_open


async def test_a_server_that_only_one_ever_had_may_ask_at_any_time(
    autojump_clock: MockClock,
) -> None:
    async with open_sharers(shared()) as world:
        (one,) = await world.connected("one")
        world.ask(1)
        await wait_all_tasks_blocked()
        assert one.questions == ["question 1"]
        assert one.told == ["elicitation_request"]


async def test_one_that_asks_at_rest_is_split_where_there_were_others(
    autojump_clock: MockClock,
) -> None:
    async with open_sharers(shared()) as world:
        one, two = await world.connected("one", "two")
        await one.end()
        world.ask(1)
        await wait_all_tasks_blocked()
        assert two.questions == []
        assert two.told == ["share_conflict"]


# -- roots


def ask_roots(world: Sharers, number: int = 1) -> None:
    world.peer.say({"jsonrpc": "2.0", "id": number, "method": "roots/list"})


async def set_roots(sharer: Sharer, *uris: str) -> Any:
    return await sharer.use("set_roots", roots=[{"uri": uri} for uri in uris])


@pytest.mark.parametrize("entry", [shared(), at_url()], ids=["stdio", "http"])
async def test_roots_that_are_the_same_for_all_are_told(
    entry: Server, autojump_clock: MockClock
) -> None:
    async with open_sharers(entry, roots=("file:///all",)) as world:
        one, two = await world.connected("one", "two")
        ask_roots(world)
        await wait_all_tasks_blocked()
        assert world.peer.answers[0]["result"]["roots"] == [
            root.to_json() for root in as_roots(("file:///all",))
        ]
        assert "share_conflict" not in one.told + two.told


async def test_roots_that_differ_are_told_to_nobody_and_split_the_server(
    autojump_clock: MockClock,
) -> None:
    async with open_sharers(shared()) as world:
        one, two = await world.connected("one", "two")
        await set_roots(one, "file:///one")
        await wait_all_tasks_blocked()
        assert "share_conflict" not in one.told  # it has not asked
        assert world.peer.asked("notifications/roots/list_changed") == [None]
        ask_roots(world)
        await wait_all_tasks_blocked()
        assert "different roots" in world.peer.answers[0]["error"]["message"]
        assert one.data("share_conflict")[0]["reason"] == "roots"
        two.begin("of two")
        await wait_all_tasks_blocked()
        assert world.peer.began == []
        assert world.peers.all[1].began == ["of two"]


async def test_what_one_is_told_is_not_believed_of_another(autojump_clock: MockClock) -> None:
    """The server has asked, and the roots of one session change: it does nothing for that one."""
    async with open_sharers(shared()) as world:
        one, two = await world.connected("one", "two")
        ask_roots(world)
        await wait_all_tasks_blocked()
        await set_roots(two, "file:///two")
        await wait_all_tasks_blocked()
        assert [*one.told, *two.told] == ["share_conflict"] * 2
        two.begin("of two")
        await wait_all_tasks_blocked()
        assert world.peer.began == []


async def test_who_comes_with_other_roots_than_those_before_gets_another_connection(
    autojump_clock: MockClock,
) -> None:
    async with open_sharers(shared()) as world:
        (one,) = await world.connected("one")
        await set_roots(one, "file:///one")
        ask_roots(world)
        await wait_all_tasks_blocked()
        assert world.peer.answers[0]["result"]["roots"] == PATH
        await one.end()
        two = await world.come("two")
        two.begin("of two")
        await trio.sleep(1)
        assert world.peer.began == []
        assert not world.peer.is_open
        assert world.peers.all[1].began == ["of two"]
        assert "share_conflict" not in two.told


async def test_one_alone_tells_others_as_it_likes(autojump_clock: MockClock) -> None:
    async with open_sharers(shared()) as world:
        (one,) = await world.connected("one")
        ask_roots(world)
        await wait_all_tasks_blocked()
        await set_roots(one, "file:///one")
        await wait_all_tasks_blocked()
        assert world.peer.asked("notifications/roots/list_changed") == [None]
        ask_roots(world, 2)
        await wait_all_tasks_blocked()
        assert world.peer.answers[1]["result"]["roots"] == PATH
        one.begin("of one")
        await wait_all_tasks_blocked()
        assert world.peer.began == ["of one"]
