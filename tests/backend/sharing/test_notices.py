"""What a shared server says of its own accord: to whom it concerns, once and in order."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from emceepee_trio.backend.connections.callbacks import LogLine
from emceepee_trio.model.states import BackendState
from emceepee_trio.web.logged import newest_logs
from fake_backends import until
from sharers import Sharer, at_url, open_sharers, shared

LISTS = [f"notifications/{kind}/list_changed" for kind in ("tools", "resources", "prompts")]


def lists_told(sharer: Sharer) -> list[str]:
    return [said["method"] for said in sharer.data("notification")]


async def test_changed_lists_are_told_to_everybody_once(autojump_clock: MockClock) -> None:
    async with open_sharers(shared()) as world:
        one, two = await world.connected("one", "two")
        for method in LISTS:
            world.notify(method.removeprefix("notifications/"))
        await wait_all_tasks_blocked()
        assert lists_told(one) == lists_told(two) == LISTS


async def test_an_update_is_told_to_who_follows_that(autojump_clock: MockClock) -> None:
    async with open_sharers(shared()) as world:
        one, two = await world.connected("one", "two")
        await one.follow("file:///a")
        await two.follow("file:///b")
        for uri in ("file:///a", "file:///b", "file:///a/part", "file:///ab", "file:///c"):
            world.notify("resources/updated", uri=uri)
        await wait_all_tasks_blocked()
        assert one.notices == [{"uri": "file:///a"}, {"uri": "file:///a/part"}]
        assert two.notices == [{"uri": "file:///b"}]


async def test_subscriptions_are_counted(autojump_clock: MockClock) -> None:
    async with open_sharers(shared()) as world:
        one, two, three = await world.connected("one", "two", "three")
        uri: dict[str, Any] = {"uri": "file:///a"}
        for each in (one, two, three):
            await each.follow("file:///a")
        assert world.peer.asked("resources/subscribe") == [uri]
        await two.forget("file:///a")
        assert world.peer.asked("resources/unsubscribe") == []
        world.notify("resources/updated", **uri)
        await wait_all_tasks_blocked()
        assert (one.notices, two.notices, three.notices) == ([uri], [], [uri])
        await one.end()
        await wait_all_tasks_blocked()
        assert world.peer.asked("resources/unsubscribe") == []
        await three.forget("file:///a")
        assert world.peer.asked("resources/unsubscribe") == [uri]
        await two.follow("file:///a")
        assert world.peer.asked("resources/subscribe") == [uri, uri]


async def test_the_end_of_the_last_who_follows_unsubscribes(autojump_clock: MockClock) -> None:
    async with open_sharers(shared()) as world:
        one, two = await world.connected("one", "two")
        await one.follow("file:///a")
        await one.follow("file:///b")
        await two.follow("file:///b")
        await one.end()
        await wait_all_tasks_blocked()
        assert world.peer.asked("resources/unsubscribe") == [{"uri": "file:///a"}]


async def test_a_new_connection_is_told_what_all_of_them_follow(
    autojump_clock: MockClock,
) -> None:
    async with open_sharers(shared()) as world:
        one, two = await world.connected("one", "two")
        await one.follow("file:///a")
        await two.follow("file:///a")
        await two.follow("file:///b")
        world.peer.end()
        await trio.sleep(60)
        again = world.peers.all[1]
        assert again.asked("resources/subscribe") == [{"uri": "file:///a"}, {"uri": "file:///b"}]
        await two.forget("file:///b")
        assert again.asked("resources/unsubscribe") == [{"uri": "file:///b"}]


async def test_subscriptions_go_along_to_a_connection_of_its_own(
    autojump_clock: MockClock,
) -> None:
    async with open_sharers(shared()) as world:
        one, two = await world.connected("one", "two")
        await one.follow("file:///a")
        await two.follow("file:///b")
        one.begin("of one")
        two.begin("of two")
        await wait_all_tasks_blocked()
        world.ask(1)
        await trio.sleep(1)
        assert [peer.asked("resources/subscribe") for peer in world.peers.all[1:]] in (
            [[{"uri": "file:///a"}], [{"uri": "file:///b"}]],
            [[{"uri": "file:///b"}], [{"uri": "file:///a"}]],
        )
        # What is still under way on the first one tells nothing twice.
        world.notify("resources/updated", uri="file:///a")
        world.notify("tools/list_changed")
        await wait_all_tasks_blocked()
        assert one.notices == two.notices == []


@pytest.mark.parametrize("are_shown", [False, True])
async def test_logs_that_may_be_of_anybody(are_shown: bool, autojump_clock: MockClock) -> None:
    async with open_sharers(shared(share_logs=are_shown)) as world:
        one, two = await world.connected("one", "two")
        world.log("a secret")
        world.notify("vendor/thing", of="anybody")
        await wait_all_tasks_blocked()
        one.lease.hub.audience.logged(LogLine("x", "stderr", "info", "another one"))
        await wait_all_tasks_blocked()
        both = ["a secret", "another one"]
        assert one.logs == two.logs == (both if are_shown else [])
        # Whoever runs the daemon sees all, and his principal only what is of its own sessions.
        for principal, said in ((None, both), ("ada", both), ("bob", [])):
            told = await newest_logs(world.manager, principal, "x")
            assert [line["data"] for line in told if line["session"] is None] == (
                [] if are_shown else said
            )
            assert {line["data"] for line in told} == set(said)
        assert one.notices == two.notices == [{"of": "anybody"}] * are_shown


async def test_logs_in_the_answer_to_a_call_are_of_its_session(
    autojump_clock: MockClock,
) -> None:
    async with open_sharers(at_url()) as world:
        one, two = await world.at_work("one", "two")
        requests = {name: request for request, name in world.peer.calls.items()}
        world.log("for two", about=requests["of two"])
        world.log("for one", about=requests["of one"])
        world.notify("vendor/thing", requests["of one"], of="one")
        world.log("for nobody")
        world.log("for nobody, either", about=7)
        await wait_all_tasks_blocked()
        assert (one.logs, two.logs) == (["for one"], ["for two"])
        assert (one.notices, two.notices) == ([{"of": "one"}], [])


async def set_level(sharer: Sharer, level: str) -> Any:
    return await sharer.use("set_log_level", server="x", level=level)


async def test_the_most_verbose_level_wins_and_each_hears_its_own(
    autojump_clock: MockClock,
) -> None:
    async with open_sharers(shared(share_logs=True)) as world:
        one, two, three = await world.connected("one", "two", "three")
        await set_level(one, "error")
        await set_level(two, "debug")
        await set_level(one, "warning")
        told = [said["level"] for said in world.peer.asked("logging/setLevel")]
        assert told == ["info", "debug"]  # the third one has what is usual
        for level in ("debug", "info", "warning", "error"):
            world.log(level, level)
        await wait_all_tasks_blocked()
        assert one.logs == ["warning", "error"]
        assert two.logs == three.logs == ["debug", "info", "warning", "error"]


async def test_one_alone_sets_the_level_that_it_wants(autojump_clock: MockClock) -> None:
    async with open_sharers(shared()) as world:
        (one,) = await world.connected("one")
        await set_level(one, "error")
        assert world.peer.asked("logging/setLevel") == [{"level": "error"}]
        world.peer.end()
        await trio.sleep(60)
        assert world.peers.all[1].asked("logging/setLevel") == [{"level": "error"}]


async def test_a_page_that_is_done_is_told_to_whose_it_was(autojump_clock: MockClock) -> None:
    async with open_sharers(at_url()) as world:
        one, two = await world.connected("one", "two")
        one.begin("of one", timeout_ms=0)
        await wait_all_tasks_blocked()
        (request,) = world.peer.calls
        page = {"mode": "url", "url": "https://x.test/", "elicitationId": "e-1"}
        world.ask(1, about=request, **page)
        await wait_all_tasks_blocked()
        world.notify("elicitation/complete", elicitationId="e-1")
        world.notify("elicitation/complete", elicitationId="e-2")
        await wait_all_tasks_blocked()
        assert (one.notices, two.notices) == ([{"elicitationId": "e-1"}], [])


# -- losses


async def test_a_loss_is_told_to_each_with_what_it_alone_lost(
    autojump_clock: MockClock,
) -> None:
    async with open_sharers(shared()) as world:
        one, two = await world.connected("one", "two")
        one.begin("first", timeout_ms=0)
        one.begin("second", timeout_ms=0)
        await wait_all_tasks_blocked()
        world.ask(1)
        await wait_all_tasks_blocked()
        two.begin("third", timeout_ms=0)
        await wait_all_tasks_blocked()
        world.peer.end()
        await trio.sleep(60)
        lost = {}
        for each in (one, two):
            (back,) = each.data("server_reconnected")
            lost[each.session.id] = (back["invalidatedTasks"], back["invalidatedElicitations"])
            assert [e for e in each.told if "server" in e] == [
                *("server_disconnected", "server_reconnected"),
            ]
        assert lost == {"one": (2, 1), "two": (1, 0)}


async def test_one_that_is_silent_is_told_to_all_and_that_it_is_well_again(
    autojump_clock: MockClock,
) -> None:
    async with open_sharers(shared()) as world:
        one, two = await world.connected("one", "two")
        bobs = await world.come("bobs", "bob")
        await bobs.lease.connection()
        world.peer.is_well = False
        await until(lambda: one.told)
        world.peer.is_well = True
        await until(lambda: len(one.told) > 1)
        for each in (one, two):
            assert each.told == ["server_health_degraded", "server_health_restored"]
            assert each.lease.state is BackendState.CONNECTED
        assert bobs.told == []


async def test_who_reconnects_tells_the_others(autojump_clock: MockClock) -> None:
    async with open_sharers(shared()) as world:
        one, two = await world.connected("one", "two")
        two.begin("of two")
        await wait_all_tasks_blocked()
        assert (await one.use("reconnect_server", name="x"))["isError"] is False
        await trio.sleep(1)
        assert len(world.peers.all) == 2
        (mine,), (theirs,) = one.data("server_disconnected"), two.data("server_disconnected")
        assert mine["reason"] == "reconnect"
        assert theirs["reason"] == "reconnected by one"
        assert mine["wasIntentional"] is theirs["wasIntentional"] is True
        assert two.got["of two"].code == "TOOL_ERR_SERVER_DISCONNECTED"
        # The next one is not his doing.
        world.peers.all[1].end()
        await trio.sleep(60)
        assert "by one" not in two.data("server_disconnected")[1]["reason"]


async def test_a_split_server_is_not_started_again_for_what_was_under_way(
    autojump_clock: MockClock,
) -> None:
    async with open_sharers(shared()) as world:
        one, two = await world.connected("one", "two")

        async def poll(client: object) -> None:
            await trio.sleep(600)  # as between two looks at a task of the server

        async def ask() -> None:
            await one.lease.ask(poll)

        world.nursery.start_soon(ask)
        one.begin("of one")
        two.begin("of two")
        await wait_all_tasks_blocked()
        world.ask(1)
        await wait_all_tasks_blocked()
        world.peer.end()
        await trio.sleep(60)
        assert len(world.peers.all) == 1
        assert world.hubs() == []


async def test_a_loss_after_a_split_is_no_news_to_who_has_another_connection(
    autojump_clock: MockClock,
) -> None:
    async with open_sharers(shared()) as world:
        one, two = await world.at_work("one", "two")
        world.ask(1)
        await wait_all_tasks_blocked()
        world.peer.end()
        await trio.sleep(60)
        for each, tool in ((one, "of one"), (two, "of two")):
            assert each.got[tool].code == "TOOL_ERR_SERVER_DISCONNECTED"
            assert each.told == ["share_conflict"]
        assert world.hubs() == []
        assert len(world.peers.all) == 1  # it was not started again for nobody
