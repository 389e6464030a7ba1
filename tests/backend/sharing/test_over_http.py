"""Sessions that share a server behind a URL, over real sockets: each transport, either era."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio

from emceepee_trio.config import Config, Server
from emceepee_trio.session.manager import open_sessions
from fake_backends import until
from http_server import QUIET, HttpServer, open_http_server
from sharers import Sharer

pytestmark = [QUIET, pytest.mark.once]

GUARD = 60


@asynccontextmanager
async def sharing(served: HttpServer, path: str) -> AsyncGenerator[tuple[Sharer, Sharer]]:
    with trio.fail_after(GUARD):
        async with open_http_server(served) as server, trio.open_nursery() as nursery:
            entry = Server("x", url=server.url.replace("mcp", path), scope="principal")
            async with open_sessions(Config(servers=(entry,))) as manager:
                sharers = []
                for name in ("one", "two"):
                    session = await manager.ensure(name, "ada")
                    sharers.append(Sharer(session, manager, nursery))
                    await sharers[-1].lease.connection()
                yield sharers[0], sharers[1]


def said(text: Any) -> Any:
    return json.loads(text)


@pytest.mark.parametrize(
    ("served", "path"),
    [
        (HttpServer(), "mcp"),
        (HttpServer(streams=True), "mcp"),
        (HttpServer(), "sse"),
        (HttpServer(era="modern"), "mcp"),
    ],
    ids=["json", "streams", "sse", "modern"],
)
async def test_calls_are_told_apart_whatever_the_transport(served: HttpServer, path: str) -> None:
    async with sharing(served, path) as (one, two):
        hello = "server/discover" if served.era == "modern" else "initialize"
        assert one.lease.hub is two.lease.hub
        got: dict[str, list[Any]] = {"one": [], "two": []}

        async def call(sharer: Sharer, name: str) -> None:
            for number in range(10):
                args = {"of": name, "number": number}
                got[name].append(said(await sharer.call("echo", args=args)))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(call, one, "one")
            nursery.start_soon(call, two, "two")
        for name, answers in got.items():
            assert answers == [{"of": name, "number": number} for number in range(10)]
        agreed = one.lease.agreed
        assert agreed is not None
        assert agreed.is_modern == (served.era == "modern")
        assert len(served.of(hello)) == 1  # of one connection
        assert len(list(one.manager.sharing.hubs())) == 1  # type: ignore[union-attr]


async def test_over_the_old_transport_nobody_can_say_whom_a_question_asks_if_two_are_at_work() -> (
    None
):
    """All comes on one stream, as on pipes; who alone is at work is asked."""
    served = HttpServer()
    async with sharing(served, "sse") as (one, two):
        one.begin("ask")
        await until(lambda: bool(one.questions))
        assert two.questions == []
        one.answer()
        await until(lambda: "task_completed" in one.told)  # it was one once it had asked

        two.begin("slow")
        await served.wait_for("tools/call", 2)
        one.begin("ask")
        await until(lambda: "share_conflict" in one.told)
        served.release.set()
        await until(lambda: "share_conflict" in two.told)
        assert (one.questions, two.questions) == ([], [])
        assert one.lease.has_moved
        assert two.lease.has_moved


async def test_on_streams_of_their_own_questions_are_of_whose_call_they_came_with() -> None:
    served = HttpServer(streams=True)
    async with sharing(served, "mcp") as (one, two):
        two.begin("slow")
        await served.wait_for("tools/call")
        one.begin("ask")
        await until(lambda: bool(one.questions))
        assert two.questions == []
        one.answer()
        # As a task, unless the answer was quicker than it became one.
        await until(lambda: "task_completed" in one.told or "accept" in str(one.got.get("ask")))
        served.release.set()
        await until(lambda: "slow" in two.got)
        assert "share_conflict" not in one.told + two.told
