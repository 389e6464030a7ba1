"""What clients of the view `native` hear without having asked."""

from __future__ import annotations

import gc
from functools import partial
from pathlib import Path
from weakref import ref

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from asgi_client import Exchange, Json
from asgi_world import listening
from emceepee_trio.front.faces.native.news import EVERY
from fake_backends import app, raw
from native_client import NATIVE, VIEW_OF_APPS, Era, Native, natively

TOOLS, UPDATED = "notifications/tools/list_changed", "notifications/resources/updated"
SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"


@pytest.fixture(params=["handshake", "modern"])
def era(request: pytest.FixtureRequest) -> Era:
    found: Era = request.param
    return found


async def hears(native: Native, **wanted: object) -> Exchange:
    """A stream of what is told, acknowledged."""
    if native.era == "handshake":
        return await listening(native.client)
    stream = native.client.modern("subscriptions/listen", query=NATIVE, notifications=wanted)
    acknowledged = await stream.message(0)
    assert acknowledged["method"] == "notifications/subscriptions/acknowledged"
    assert acknowledged["params"]["notifications"] == wanted
    return stream


def told(stream: Exchange) -> list[Json]:
    """Without what is said of the stream itself."""
    said = [each for each in stream.messages if isinstance(each, dict) and "method" in each]
    return [each for each in said if "acknowledged" not in each["method"]]


def more_than(number: int, stream: Exchange) -> bool:
    return len(told(stream)) > number


async def test_a_list_is_told_to_be_another_one_once_a_second_and_only_if_it_is(era: Era) -> None:
    async with natively(era, {"apps": app(), "raw": raw()}) as native:
        stream = await hears(native, toolsListChanged=True, promptsListChanged=True)
        # Nobody has read it yet.
        await native.call("apps__change", times=3)
        assert "apps__added_0" in await native.tools()
        await native.ask("prompts/list")
        # Of these nothing is true, and so nothing is told.
        await native.call("apps__change", times=100, adds=0)
        await native.call("raw__notify_many", k=100)
        for added in ("apps__added_1", "apps__added_2"):
            heard = partial(more_than, len(told(stream)), stream)
            await native.call("apps__change", times=100)
            await stream.until(heard)
            assert added in await native.tools()
        first, second = told(stream)
        assert first["method"] == second["method"] == TOOLS
        if era == "modern":
            assert SUBSCRIPTION in first["params"]["_meta"]


async def test_a_list_that_changes_all_the_time_is_told_once_a_second(era: Era) -> None:
    async with natively(era, {"apps": app()}, native={"max_tools": 100_000}) as native:
        await native.tools()
        stream = await hears(native, toolsListChanged=True)
        started = trio.current_time()
        while len(told(stream)) < 2:
            await native.call("apps__change", times=20)
        assert trio.current_time() - started >= EVERY
        assert len(told(stream)) == 2


async def test_what_changed_before_a_stream_was_opened_is_told_on_it() -> None:
    async with natively("modern", {"apps": app()}) as native:
        await native.tools()
        await native.call("apps__change")
        stream = await hears(native, toolsListChanged=True)
        await stream.until(lambda: told(stream))
        assert "apps__added_0" in await native.tools()


async def test_a_server_that_comes_later_is_told_and_one_that_goes(era: Era) -> None:
    async with natively(era, {"raw": raw()}) as native:
        await native.tools()
        stream = await hears(native, toolsListChanged=True)
        added = await native.call("add_server", name="apps", **app())
        assert added["isError"] is False, added
        await stream.until(lambda: told(stream))
        assert "apps__chart" in await native.tools()
        await native.call("remove_server", name="apps")
        await stream.until(lambda: len(told(stream)) > 1)
        assert "apps__chart" not in await native.tools()


async def test_a_server_that_starts_slowly_is_not_waited_for_and_told(
    era: Era, tmp_path: Path
) -> None:
    file = tmp_path / "go"
    servers = {"slow": raw("--start-when", file), "apps": app()}
    async with natively(era, servers, limits={"list_patience_ms": 300}) as native:
        stream = await hears(native, toolsListChanged=True)
        assert not any("slow__" in name for name in await native.tools())
        file.touch()
        await stream.until(lambda: told(stream))
        before = await native.tools()
        assert "slow__echo" in before
        # It is lost, and there again, with what it had.
        await native.call("slow__exit")
        assert await native.tools() == before
        await native.call("slow__echo", text="x")
        assert await native.tools() == before
        await native.call("apps__change")
        await stream.until(partial(more_than, 1, stream))
        assert len(told(stream)) == 2


async def test_a_resource_that_is_followed_is_told_by_its_native_uri(era: Era) -> None:
    async with natively(era, {"apps": app()}) as native:
        if era == "handshake":
            stream = await hears(native)
            assert await native.ask("resources/subscribe", uri=VIEW_OF_APPS) == {}
        else:
            stream = await hears(native, resourceSubscriptions=[VIEW_OF_APPS])
        await native.call("apps__touch")
        await stream.until(lambda: told(stream))
        (said,) = told(stream)
        assert (said["method"], said["params"]["uri"]) == (UPDATED, VIEW_OF_APPS)
        if era == "handshake":
            assert await native.ask("resources/unsubscribe", uri=VIEW_OF_APPS) == {}
            assert '"[]"' in str(await native.call("apps__touch")).replace("'", '"')
        else:
            stream.drop()


async def test_what_is_acknowledged_is_what_is_delivered() -> None:
    async with natively("modern", {"apps": app()}) as native:
        wanted = {
            "toolsListChanged": True,
            "promptsListChanged": False,
            "resourceSubscriptions": ["apps+file:///chart.csv", "none+file:///x", "file:///x"],
            "vendor": ["x"],
        }
        stream = native.client.modern("subscriptions/listen", query=NATIVE, notifications=wanted)
        said = (await stream.message(0))["params"]
        assert said["notifications"] == {
            "toolsListChanged": True,
            "resourceSubscriptions": ["apps+file:///chart.csv"],
        }


async def test_nothing_is_left_of_a_session_that_has_ended(era: Era) -> None:
    extensions: Json = {"sampling": {}}
    async with natively(era, {"bad": {"command": "bad"}}, extensions) as native:
        await native.tools()
        await native.call("list_servers")
        (session,) = native.world.manager.sessions()
        left, session_id = ref(session), session.id
        native.world.manager.end(session, "DELETE")
        del session
        while native.world.manager.get(session_id) is not None:
            await wait_all_tasks_blocked()
        await wait_all_tasks_blocked(0.01)
        native.client.endpoint.handshake.clients.clear()
        gc.collect()
        assert left() is None
