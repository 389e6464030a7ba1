"""Whatever grows, at either side, in any place of a message: up to a bound, and nobody waits.

In memory, on a clock that jumps: a server that is a program, or one behind a URL in either form of
its answers; and a client with its arguments. See `growing.py`.
"""

from __future__ import annotations

import json
from collections.abc import Hashable
from typing import Any

import attrs
import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import MockClock

from asgi_client import request
from emceepee_trio.config import Limits, Server
from fuzzed import ASKING, World, open_clients
from growing import LARGE, Growth, grow, growths
from http_server import EVENTS, JSON, QUIET, HttpServer, Manner, open_without_network
from lies import SAID, SOON, results
from memory_peers import scripted
from messages import ARGUMENTS, ULID
from mistakes import AS_IT_IS, HALF
from play import RESULTS, Era, Lines, Play
from stalls import check_so_far
from watching import check_message, strict

LIMITS = Limits(message=1 << 20, body=1 << 20, execute_timeout_ms=2000, question_timeout_ms=5000)

PROGRAM: dict[str, Any] = {"command": "/bad", "restart": SOON}
ANSWERS = [(method, answer) for method in sorted(RESULTS) for answer in results(method)]
NEWS = [("tools/call", said) for said in SAID]
RIGHT = [answer for _, answer in ANSWERS]
answers, news = growths(ANSWERS), growths(NEWS)
lies = st.integers(0, 2).flatmap(lambda n: news if n == 2 else answers)
"""What grows in an answer, or in what is said before one; and when it is said."""


@attrs.define(eq=False)
class Trial:
    world: World
    instead: Lines
    method: str
    entry: dict[str, Any]
    is_answer: bool
    """Else something that is said before one."""

    async def __call__(self, line: bytes) -> Hashable:
        world, right = self.world, json.dumps({"jsonrpc": "2.0", "id": "@ID@", "result": {}})
        self.instead.clear()
        self.instead[self.method] = [line] if self.is_answer else [line, right.encode()]
        if self.method != "tools/call":  # lists are kept, and who is connected is not asked again
            await world.client.call("remove_server", name="bad")
            await world.add("bad", **self.entry)
        tool, arguments = ASKING[self.method]
        said = await world.call(tool, server="bad", **arguments)
        seen = [said.get("error", {}).get("code"), said.get("isError"), len(said.get("errors", ()))]
        status = await world.call("get_server_status", server="bad")
        seen.append(status.get("server", {}).get("status"))
        seen.append(len((await world.call("get_notifications", server="bad"))["notifications"]))
        seen.append(len((await world.call("get_logs", server="bad"))["logs"]))
        for each in ("list_servers", "list_tools"):
            await world.call(each)
        seen += await world.answer_all()
        self.instead.clear()
        await world.cancel_all()  # who is asked for input may be asked a thousand times
        check_so_far()
        return tuple(seen)


@AS_IT_IS
@given(lies, st.sampled_from(["handshake", "handshake", "modern"]))
def test_whatever_grows_in_what_a_program_says(lie: tuple[str, Growth], era: Era) -> None:
    program(lie, era)


def program(lie: tuple[str, Growth], era: Era) -> None:
    method, growth = lie

    async def scenario() -> None:
        with scripted(Play(era=era)) as play:
            async with open_clients(Server("good", command="/x"), LIMITS, 10**6) as world:
                await world.add("bad", **PROGRAM)
                await grow(
                    growth, Trial(world, play.instead, method, PROGRAM, growth.message in RIGHT)
                )

    trio.run(scenario, clock=MockClock(autojump_threshold=0))


@QUIET
@HALF
@given(
    # With an answer in JSON nothing else can be said.
    st.tuples(st.just(JSON), answers) | st.tuples(st.just(EVENTS), lies),
    st.sampled_from(["handshake", "modern"]),
)
def test_whatever_grows_in_what_a_server_behind_a_url_says(
    said: tuple[str, tuple[str, Growth]], era: Era
) -> None:
    kind, (method, growth) = said
    play = Play(era=era)

    async def scenario() -> None:
        good, bad = HttpServer(), HttpServer(era, play=play, manner=Manner(200, kind))
        async with open_without_network(good, bad):
            async with open_clients(Server("good", url=good.url), LIMITS, 10**6) as world:
                entry = {"url": bad.url, "reconnect": SOON}
                await world.add("bad", **entry)
                await grow(
                    growth, Trial(world, play.instead, method, entry, growth.message in RIGHT)
                )

    trio.run(scenario, clock=MockClock(autojump_threshold=0))


numbers = growths(ANSWERS, kinds=[LARGE])


@HALF
@given(numbers, st.sampled_from(["handshake", "modern"]))
def test_whatever_number_a_program_answers(lie: tuple[str, Growth], era: Era) -> None:
    """There are few of them."""
    program(lie, era)


# -- clients -------------------------------------------------------------------------------------

ECHOED = attrs.evolve(LIMITS, message=1 << 24)
"""The good server may repeat what it is sent, in more bytes."""
wishes = growths(
    [(name, request(7, "tools/call", name=name, arguments=given)) for name, given in ARGUMENTS], 2
)


@attrs.define(eq=False)
class Wish:
    """One tool call with grown arguments, and everything that may show them."""

    world: World

    async def __call__(self, line: bytes) -> Hashable:
        world = self.world
        if ULID.encode() in line:  # who answers, or cancels, finds what there is
            task = await world.client.call(
                "execute_tool", server="bad", tool="ask", args={}, timeout_ms=0
            )
            asked = (await world.call("get_elicitations"))["elicitations"]
            assert asked, task
            line = line.replace(ULID.encode(), asked[-1]["requestId"].encode())
        exchange = await world.client.post(line).complete()
        assert exchange.status in {200, 400, 413}
        datas = [e.data for e in exchange.events] if exchange.is_stream else [bytes(exchange.body)]
        said = [check_message(strict(data), [7]) for data in datas if data][-1]
        seen = [exchange.status, said.get("error", {}).get("code")]
        seen.append(said.get("result", {}).get("isError"))
        for each in ("list_servers", "list_tools", "list_timers", "get_roots"):
            await world.call(each)
        for name in ("added", "remote"):
            if name.encode() in line:
                await world.call("get_server_status", server=name)
                await world.call("remove_server", name=name)
        await world.cancel_all()
        check_so_far()
        return tuple(seen)


@HALF
@given(wishes)
def test_whatever_grows_in_what_a_client_asks_for(wish: tuple[str, Growth]) -> None:
    _, growth = wish

    async def scenario() -> None:
        with scripted():
            async with open_clients(Server("good", command="/x"), ECHOED, 10**6) as world:
                await world.add("bad", **PROGRAM)
                await grow(growth, Wish(world))

    trio.run(scenario, clock=MockClock(autojump_threshold=0))
