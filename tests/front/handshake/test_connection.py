"""Connections of the handshake era: what they are while nothing is asked, and how they begin."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from asgi_client import HELLO, LATEST, Client, Exchange, request
from asgi_world import open_world
from emceepee_trio.front.faces.ours import OurFace


async def test_a_client_that_asks_nothing_has_no_task(autojump_clock: MockClock) -> None:
    async with open_world() as world:
        client = await world.joined()
        await client.request("resources/list").answer()
        await client.call("list_servers")
        await wait_all_tasks_blocked()
        (session,) = world.manager.sessions()
        assert [task.name.split(".")[-1] for task in session.outer.child_tasks] == []
        assert [task.name.split(".")[-1] for task in session.inner.child_tasks] == ["run"]


@asynccontextmanager
async def joining(
    monkeypatch: pytest.MonkeyPatch,
) -> AsyncGenerator[tuple[Client, Exchange, trio.Event]]:
    """A client whose `initialize` is answered once that is set."""
    may_greet, greet = trio.Event(), OurFace.greet

    async def slowly(self: OurFace, *args: Any) -> Any:
        await may_greet.wait()
        return await greet(self, *args)

    async with open_world() as world:
        client = await world.joined()
        monkeypatch.setattr(OurFace, "greet", slowly)
        again = request(99, "initialize", protocolVersion=LATEST, **HELLO)
        joins = client.post(again, mcp_session_id=client.session)
        await wait_all_tasks_blocked()
        yield client, joins, may_greet


async def test_what_comes_before_the_answer_to_initialize_waits_for_it(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with joining(monkeypatch) as (client, joins, may_greet):
        asked = client.request("resources/list")
        await wait_all_tasks_blocked()
        assert not asked.is_complete
        may_greet.set()
        assert "result" in await joins.answer()
        assert "result" in await asked.answer()


async def test_nothing_is_kept_of_what_is_cancelled_before_that(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with joining(monkeypatch) as (client, joins, may_greet):
        asked = client.request("resources/list", id="early")
        await wait_all_tasks_blocked()
        assert client.own.connection is not None
        under_way = client.own.connection.front.under_way
        assert under_way.find("early")
        client.cancel("early")
        await asked.complete()
        with pytest.raises(KeyError):
            under_way.find("early")
        may_greet.set()
        assert "result" in await joins.answer()
