"""Whatever a server answers, tells and asks: who calls it gets an answer, nobody else notices.

A server in memory, behind the real parser, on a clock that jumps; a program on real pipes; and a
server behind a URL, in either era. What they say is nearly right, see `mistakes.py`.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import trio
from hypothesis import given, settings
from hypothesis import strategies as st
from trio.testing import MockClock

from emceepee_trio.config import Limits, Server
from fuzzed import ASKING, ECHO, NOW, World, open_clients
from http_server import (
    EVENTS,
    JSON,
    QUIET,
    HttpServer,
    Manner,
    open_http_server,
    open_without_network,
)
from lies import SOON, eras, manners, plays, tasks
from memory_peers import scripted
from mistakes import MORE, SMALL, Body, encoded, mutants, readable, spelled
from play import RESULTS, Era, Json, Lines, Play, program

QUICK = Limits(message=SMALL, execute_timeout_ms=150, list_patience_ms=100)
"""For servers that answer in real time, or not."""
LIMITS = Limits(message=SMALL, execute_timeout_ms=2000, question_timeout_ms=5000)
FEWER = settings(max_examples=max(10, settings().max_examples // 10))
"""Each of these takes as long as many of the others."""


# -- in memory -----------------------------------------------------------------------------------


@MORE
@given(plays(), eras)
def test_anything_from_a_server_in_memory(instead: Lines, era: Era) -> None:
    async def scenario() -> None:
        with scripted(Play(instead, era)):
            async with open_clients(Server("good", command="/x"), LIMITS, 10**6) as world:
                await world.use("bad", command="/bad", restart=SOON)
                await world.undisturbed()

    trio.run(scenario, clock=MockClock(autojump_threshold=0))


@MORE
@given(st.data(), eras)
def test_any_task_of_a_server(data: st.DataObject, era: Era) -> None:
    instead = data.draw(tasks(era))

    async def scenario() -> None:
        with scripted(Play(instead, era)):
            async with open_clients(Server("good", command="/x"), LIMITS, 10**6) as world:
                assert await world.add("bad", command="/bad", restart=SOON)
                for _ in range(2):
                    await world.call("execute_tool", server="bad", **ECHO, timeout_ms=1000)
                await world.cancel_all()
                await world.answer_all()
                await world.undisturbed()

    trio.run(scenario, clock=MockClock(autojump_threshold=0))


# -- a program -----------------------------------------------------------------------------------


@asynccontextmanager
async def open_good() -> AsyncGenerator[Server]:
    async with open_http_server(HttpServer()) as server:
        yield Server("good", url=server.url)


@contextmanager
def playing(play: Play, flood: tuple[int, bytes, int] | None = None) -> Generator[Json]:
    """The entry of a program that does."""
    with TemporaryDirectory() as folder:
        yield program(play, Path(folder), flood=flood) | {"restart": SOON}


@QUIET
@FEWER
@given(plays(), eras)
def test_anything_from_a_program(instead: Lines, era: Era) -> None:
    async def scenario(entry: Json) -> None:
        async with open_good() as good, open_clients(good, QUICK) as world:
            await world.use("bad", **entry)
            await world.undisturbed()

    with playing(Play(instead, era)) as entry:
        trio.run(scenario, entry)


FLOOD = 1 << 17
"""Bytes: twice as many as a pipe holds, or are read at once."""
FLOODS = [
    *(b"", b"y", b"{}", b"[]", b"null", b"x" * 1000, b"\xff", b"\x1b[2J", b"{", b'{"id": 1}'),
    b'{"jsonrpc": "2.0", "method": "notifications/message", "params": {"data": "x"}}',
    b'{"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}',
    b'{"jsonrpc": "2.0", "id": "x", "method": "ping"}',
    b'{"jsonrpc": "2.0", "id": 0, "result": {}}',
]


@QUIET
@FEWER
@given(
    st.sampled_from([1, 2]),
    st.sampled_from(FLOODS) | st.binary(max_size=3),
)
def test_a_program_that_floods(to: int, line: bytes) -> None:
    async def scenario(entry: Json) -> None:
        async with open_good() as good, open_clients(good, QUICK) as world:
            assert await world.add("bad", **entry)
            for _ in range(2):
                await world.call("execute_tool", server="bad", **ECHO, timeout_ms=0)
                await world.undisturbed()
            await world.call("get_logs", server="bad", limit=500)
            await world.call("list_servers")

    with playing(Play(), (to, line, FLOOD)) as entry:
        trio.run(scenario, entry)


# -- behind a URL --------------------------------------------------------------------------------


@QUIET
@given(plays(), st.sampled_from(["handshake", "modern"]), manners)
def test_anything_from_a_server_behind_a_url(instead: Lines, era: Era, manner: Manner) -> None:
    async def scenario() -> None:
        play = Play(instead, era)
        good, bad = HttpServer(), HttpServer(era, listens=True, play=play, manner=manner)
        async with open_without_network(good, bad):
            async with open_clients(Server("good", url=good.url), LIMITS, 10**6) as world:
                await world.use("bad", url=bad.url, reconnect=SOON)
                await world.undisturbed()

    trio.run(scenario, clock=MockClock(autojump_threshold=0))


# -- what has come is not waited for -------------------------------------------------------------

ANSWERED = sorted(RESULTS.keys() - {"initialize", "server/discover", "ping"})
IDS = ['"@ID@"', '"@ID@"', ' "@ID@" ', '"@ID@".0', '"@ID@"e0']
WRONG_IDS = ['""@ID@""', "0", "-1", "1.5", "null", "true", '"x"', '["@ID@"]', '{"id": "@ID@"}']
FORMS = [
    '{"jsonrpc": "2.0", "id": %(id)s, "result": %(result)s}',
    '{"result": %(result)s, "id": %(id)s, "jsonrpc": "2.0"}',
    '{"id":%(id)s,"error":{"code":-32000,"message":"m","data":%(result)s},"jsonrpc":"2.0"}',
    '{"jsonrpc": "2.0", "id": %(id)s, "result": %(result)s, "x": {"id": "@ID@"}}',
]
NO_FORMS = [
    '{"jsonrpc": "2.0", "id": %(id)s, "method": "ping", "params": {"x": %(result)s}}',
    '{"jsonrpc": "2.0", "method": "x", "params": {"id": "@ID@", "x": %(result)s}}',
    '[{"jsonrpc": "2.0", "id": %(id)s, "result": %(result)s}]',
    "%(result)s",
]


@st.composite
def answers(draw: st.DrawFn, *, anything: bool) -> tuple[str, bytes]:
    """To which method, and what: an answer whose id can be read; or *anything*."""
    method = draw(st.sampled_from(ANSWERED))
    result = draw(mutants(st.just(RESULTS[method]), 2, readable))
    form = draw(st.sampled_from([*FORMS, *NO_FORMS] if anything else FORMS))
    request_id = draw(st.sampled_from([*IDS, *WRONG_IDS] if anything else IDS))
    text = form % {"id": request_id, "result": spelled(result)}
    return method, Body(draw(encoded(text)))


async def at_once(instead: Lines, said: list[tuple[str, bytes]], world: World) -> None:
    for method, line in said:
        instead.clear()
        instead[method] = [line]
        tool, arguments = ASKING[method]
        began = trio.current_time()
        await world.call(tool, server="bad", **arguments)
        assert trio.current_time() - began < NOW
        if (await world.call("get_server_status", server="bad"))["server"]["status"] != "connected":
            return  # more than anybody has to take
        instead.clear()
        await world.call("execute_tool", server="bad", **ECHO)


PATIENT = Limits(message=SMALL, list_patience_ms=5000)


@given(st.lists(answers(anything=False), min_size=1, max_size=10), eras)
def test_an_answer_of_a_program_is_not_waited_for(said: list[tuple[str, bytes]], era: Era) -> None:
    async def scenario() -> None:
        with scripted(Play(era=era)) as play:
            async with open_clients(Server("good", command="/x"), PATIENT, 10**6) as world:
                assert await world.add("bad", command="/bad", restart=SOON)
                await at_once(play.instead, said, world)

    trio.run(scenario, clock=MockClock(autojump_threshold=0))


@QUIET
@given(
    st.lists(answers(anything=True), min_size=1, max_size=10),
    st.sampled_from(["handshake", "modern"]),
    st.sampled_from([JSON, EVENTS]),
)
def test_an_answer_over_http_is_not_waited_for(
    said: list[tuple[str, bytes]], era: Era, kind: str
) -> None:
    async def scenario() -> None:
        play = Play(era=era)
        good, bad = HttpServer(), HttpServer(era, play=play, manner=Manner(200, kind))
        async with open_without_network(good, bad):
            async with open_clients(Server("good", url=good.url), PATIENT, 10**6) as world:
                assert await world.add("bad", url=bad.url, reconnect=SOON)
                await at_once(play.instead, said, world)

    trio.run(scenario, clock=MockClock(autojump_threshold=0))
