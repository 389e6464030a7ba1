"""Every bound of ``docs/reference/bounds.rst`` is tried: one goes beyond it, and is told.

A bound that is listed without a trial fails, and so does a trial of what is not listed, a setting
of ``limits`` that counts something and is not listed, and a constant called ``MAX_…``.
"""

from __future__ import annotations

import io
import json
import logging
import math
import os
import re
import socket
import ssl
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, nullcontext
from functools import partial
from http.client import HTTPException, HTTPResponse
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal, cast

import anyio
import attrs
import httpx2
import pytest
import trio
from mcp import MCPError
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCNotification
from trio.testing import MockClock, wait_all_tasks_blocked

import emceepee_trio
from asgi_client import BATCHING, Client, request
from asgi_world import World, listening, open_world, speaking, texts
from echo_app import App
from emceepee_client import Answer
from emceepee_trio import logs
from emceepee_trio.backend.catalogue import catalog, memory, shelf
from emceepee_trio.backend.catalogue.catalog import Catalog
from emceepee_trio.backend.catalogue.memory import KnownServer, Memory, Remembered
from emceepee_trio.backend.children.process import TEXT_LINE, open_process
from emceepee_trio.backend.connections import client
from emceepee_trio.backend.connections.client import Negotiated
from emceepee_trio.backend.connections.connect import UNREAD
from emceepee_trio.backend.http import channels, courier, responses
from emceepee_trio.backend.http.cookies import FewCookies
from emceepee_trio.backend.http.event_stream import LONGEST_ID, EventStream
from emceepee_trio.backend.shared import ERAS, Shared
from emceepee_trio.backend.sharing.named import MOST, GivenNames
from emceepee_trio.backend.sharing.sharing import SPLIT
from emceepee_trio.backend.sharing.wire import DOUBTS
from emceepee_trio.codemode import run
from emceepee_trio.codemode.run import Raised, Script
from emceepee_trio.commands.common import remote
from emceepee_trio.config import (
    Config,
    ConfigError,
    Limits,
    NativeSettings,
    ResultSettings,
    Server,
    bounds,
    load,
)
from emceepee_trio.errors import ConnectFailed, ExecutionFailed, LimitReached, NotFound
from emceepee_trio.front import log_messages
from emceepee_trio.front.asking import interrupted
from emceepee_trio.front.faces.face import Incoming
from emceepee_trio.front.faces.one_server import passed
from emceepee_trio.front.handshake.streams import FLOOD, WRITER_PATIENCE, Streams
from emceepee_trio.front.modern import exchange, workspaces
from emceepee_trio.front.pipes import stdio
from emceepee_trio.front.pipes.writing import Spelled
from emceepee_trio.logs import frequency, writer
from emceepee_trio.logs.lines import OURS, JsonLines
from emceepee_trio.model import facts, forms
from emceepee_trio.model.json import intake
from emceepee_trio.model.json.intake import DEPTH, DIGITS, Measure
from emceepee_trio.model.json.lenient import NAMED, SPELLED
from emceepee_trio.model.json.long import outlines
from emceepee_trio.model.json.problems import TOLD
from emceepee_trio.model.json.strict import MISTAKES
from emceepee_trio.model.native.choice import Offered, choose
from emceepee_trio.model.search import index, ranking
from emceepee_trio.model.search.index import Entry
from emceepee_trio.model.timeline.records import MAX_ENDED, MAX_TALLIED, Records
from emceepee_trio.serving import listen
from emceepee_trio.serving.connection import CHUNK
from emceepee_trio.serving.requests import LONGEST, MAX_HEAD, MAX_HEADERS
from emceepee_trio.session import buffers, timers
from emceepee_trio.session.calls.reissues import Reissues
from emceepee_trio.session.events import TRIGGERS
from emceepee_trio.session.questions import questions
from emceepee_trio.session.servers.ledger import OTHERS, Ledger, Tally
from emceepee_trio.telemetry.labels import OTHER, SHARE, Labels
from emceepee_trio.tools import code
from emceepee_trio.tools.common import asking, following, listing, pages
from emceepee_trio.tools.common.registry import STRANGERS
from emceepee_trio.tools.instructions import TOOLS, instructions
from emceepee_trio.tools.results import grep, preview, reading
from emceepee_trio.web import logins, token_file
from emceepee_trio.web.page import forms as page_forms
from emceepee_trio.web.page import now
from emceepee_trio.web.page.common import live
from emceepee_trio.web.page.common import pages as views
from emceepee_trio.web.page.servers import listing as listing_of_servers
from emceepee_trio.web.page.timeline import look
from emceepee_trio.web.page.timeline import sessions as listed_sessions
from fake_backends import raw
from finding import index_of, ranked
from full_pipe import full_pipe
from http_server import HttpServer, Reply, Request, open_http_server
from memory_peers import scripted
from page_world import HTML, JSON, open_page
from parts import mock_clock
from play import Play
from raw_http import serving
from recording import running
from sharers import open_sharers, shared

PACKAGE = Path(emceepee_trio.__file__).parent
PAGE = Path(__file__).parents[1] / "docs" / "reference" / "bounds.rst"
GUARD = 60.0
"""Seconds, on a clock that jumps where nothing but time is waited for."""
Json = dict[str, Any]

NO_BOUNDS = {
    "web.app.MAX_BODY": "of requests for pages that take none; see limits.body for the endpoint",
    "limits.starting": "it is waited for; tests/backend/children/test_starts.py tries it",
}
"""Constants of such a name that are no row, and why."""


def listed() -> list[str]:
    """Names of the bounds that the page has, in its order."""
    return re.findall(r"^   \* - :bound:`([\w.]+)`$", PAGE.read_text("utf-8"), re.MULTILINE)


def value(name: str) -> int:
    module, _, constant = name.rpartition(".")
    settings = {"limits": Limits(), "results": ResultSettings(), "native": NativeSettings()}
    where = settings.get(module) or import_module(f"emceepee_trio.{module}")
    found: int = getattr(where, constant)
    return found


# -- what tries them ------------------------------------------------------------------------------


Trial = Callable[["Here"], Awaitable[None]]

TRIALS: dict[str, Trial] = {}


def tries(*names: str) -> Callable[[Trial], Trial]:
    """Of the bounds of these names."""

    def keep(trial: Trial) -> Trial:
        for name in names:
            assert name not in TRIALS, f"{name} is tried twice"
            TRIALS[name] = trial
        return trial

    return keep


@attrs.frozen
class Here:
    """What a trial may use."""

    monkeypatch: pytest.MonkeyPatch
    folder: Path
    log: Callable[[], str]
    """What was written to it."""


@attrs.define(eq=False)
class There:
    """A session with servers in memory: an honest one, and one that says what a trial wants."""

    world: World
    client: Client
    play: Play

    async def call(self, tool: str, /, **arguments: Any) -> Answer:
        return Answer.of(await self.client.call(tool, **arguments))

    async def says(self, tool: str, /, **arguments: Any) -> Any:
        answer = await self.call(tool, **arguments)
        if (uri := answer.kept_at) is None:
            return answer.json
        read = await self.client.request("resources/read", uri=uri).answer()
        return json.loads(read["result"]["contents"][0]["text"])

    async def all_of(self, tool: str, key: str, /, **arguments: Any) -> list[Json]:
        said = await self.says(tool, **arguments)
        found: list[Json] = said[key]
        while "cursor" in said:
            said = await self.says(tool, **arguments, cursor=said["cursor"])
            found += said[key]
        return found

    async def refused(self, name: str, /, *words: object, **arguments: Any) -> None:
        """That tool says no, and all these words."""
        message = (await self.call(name, **arguments)).error["message"]
        assert not [word for word in words if str(word) not in message], message

    def bad_says(self, *lines: Json, result: Json | None = None, of: str = "tools/call") -> None:
        """What the bad server says to such a request; at last its result."""
        answer = {"jsonrpc": "2.0", "id": "@ID@", "result": result or {"content": []}}
        self.play.instead[of] = [json.dumps(line).encode() for line in (*lines, answer)]

    async def bad(self, *lines: Json, **arguments: Any) -> Answer:
        """Have it say so."""
        self.bad_says(*lines)
        return await self.call("execute_tool", server="bad", tool="echo", **arguments)

    async def task(self, server: str = "good", tool: str = "never", **arguments: Any) -> str:
        asked = {"server": server, "tool": tool, "timeout_ms": 0, **arguments}
        return (await self.call("execute_tool", **asked)).task_id


def server(name: str) -> Server:
    return Server(name, command="program", era="handshake")


SERVERS = (server("good"), server("bad"))


@asynccontextmanager
async def session(
    *, era: Literal["handshake", "modern"] = "handshake", **limits: int
) -> AsyncGenerator[There]:
    """*era* is that of the bad one."""
    mock_clock().autojump_threshold = 0
    with scripted(Play(era=era)) as play:
        servers = (SERVERS[0], attrs.evolve(SERVERS[1], era=era))
        config = Config(servers=servers, limits=Limits(**limits))
        async with open_world(config) as world:
            there = There(world, await world.joined(), play)
            for backend in world.manager.sessions()[0].backends.values():
                await backend.connection()
            await there.says("list_servers")  # so that nothing is left to be told
            yield there


def notice(size: int = 0, method: str = "notifications/custom", **params: Any) -> Json:
    return {"jsonrpc": "2.0", "method": method, "params": {"x": "x" * size, **params}}


def question(size: int, number: int = 1) -> Json:
    form = {"message": "x" * size, "requestedSchema": {"type": "object", "properties": {}}}
    return {"jsonrpc": "2.0", "id": f"q{number}", "method": "elicitation/create", "params": form}


def nested(levels: int) -> bytes:
    return b"[" * levels + b"]" * levels


# -- what clients send ----------------------------------------------------------------------------


@tries("serving.listen.MOST_CONNECTIONS")
async def connections(here: Here) -> None:
    here.monkeypatch.setattr(listen, "MOST_CONNECTIONS", 1)
    app = App()
    async with serving(app) as served, served.peer() as one:
        await one.send("GET /wait HTTP/1.1\nHost: x\n\n")
        await app.busy.wait()
        async with served.peer() as two:
            assert (await two.answer()).status == 503
        app.go_on.set()
        assert (await one.answer()).status == 200


@tries("serving.requests.MAX_HEAD")
async def head(here: Here) -> None:
    async with serving(App()) as served, served.peer() as peer:
        await peer.send(f"GET / HTTP/1.1\nHost: x\nX: {'x' * MAX_HEAD}\n\n")
        answer = await peer.answer()
    assert answer.status == 431
    assert str(MAX_HEAD) in answer.body.decode()


@tries("serving.requests.MAX_HEADERS")
async def headers(here: Here) -> None:
    async with serving(App()) as served, served.peer() as peer:
        await peer.send("GET / HTTP/1.1\nHost: x\n" + "X:\n" * MAX_HEADERS + "\n")
        answer = await peer.answer()
    assert answer.status == 431
    assert str(MAX_HEADERS) in answer.body.decode()


@tries("serving.requests.LONGEST")
async def surroundings(here: Here) -> None:
    long = "x" * 2 * LONGEST
    for head in (f"GET / HTTP/1.1\nX:{long}", "POST / HTTP/1.1\nTransfer-Encoding: chunked"):
        async with serving(App()) as served, served.peer() as peer:
            await peer.send(f"{head}\nHost: x\n\n1;{long}\n")
            assert (await peer.answer()).status == 431


@tries("serving.connection.CHUNK")
async def sent_ahead(here: Here) -> None:
    app = App()
    async with serving(app) as served, served.peer() as peer, trio.open_nursery() as nursery:
        await peer.send("GET /forever HTTP/1.1\nHost: x\n\n")
        nursery.start_soon(peer.send, b"x" * 8_000_000)
        await app.busy.wait()
        await wait_all_tasks_blocked(0.05)  # all is full
        assert CHUNK < served.connection.requests.waiting <= 2 * CHUNK
        nursery.cancel_scope.cancel()


@tries("limits.body")
async def body(here: Here) -> None:
    async with session(body=4096) as there:
        status, error = await there.client.request("ping", x="x" * 4096).error()
        assert status == 413
        assert "4096" in error["message"]
        assert "result" in await there.client.request("ping").answer()


@tries("model.json.intake.DEPTH", "model.json.intake.DIGITS", "limits.values")
async def message(here: Here) -> None:
    texts = {
        f"deeper than {DEPTH}": nested(DEPTH + 1),
        f"more than {DIGITS} digits": b"9" * (DIGITS + 1),
        "limits.values": b"[" + b"0," * 10_000 + b"0]",
    }
    async with session(values=10_000) as there:
        for words, text in texts.items():
            asked = json.dumps(request(1, "ping", x="@")).encode().replace(b'"@"', text)
            status, error = await there.client.post(asked).error()
            assert status == 400
            assert words in error["message"]
            there.play.instead["tools/call"] = [
                b'{"jsonrpc":"2.0","id":"@ID@","result":{"x":' + text + b"}}"
            ]
            await there.refused("execute_tool", words, server="bad", tool="echo")


@tries("limits.body_values")
async def values_of_a_client(here: Here) -> None:
    async with session(body_values=10_000) as there:
        status, error = await there.client.request("ping", x=[0] * 10_001).error()
        assert status == 400
        assert "more than 10000 values (limits.body_values)" in error["message"]
        assert "result" in await there.client.request("ping", x=[0] * 9_900).answer()
        said = json.dumps([0] * 20_000).encode()  # a server may say more
        there.play.instead["tools/call"] = [
            b'{"jsonrpc":"2.0","id":"@ID@","result":{"content":[],"structuredContent":{"x":'
            + said
            + b"}}}"
        ]
        assert (await there.client.call("execute_tool", server="bad", tool="echo"))["content"]


@tries("config.bounds.MAX_BATCH")
async def batch(here: Here) -> None:
    async with open_world() as world:
        client = await world.joined(BATCHING)
        pings = [request(n, "ping") for n in range(bounds.MAX_BATCH + 1)]
        status, error = await client.post(pings).error()
        assert status == 400
        assert str(bounds.MAX_BATCH) in error["message"]
        assert len((await client.post(pings[1:]).complete()).messages) == bounds.MAX_BATCH


@tries("config.bounds.MAX_UNANSWERED")
async def unanswered(here: Here) -> None:
    async with session(calls=1) as there:
        held = [await speaking(there.world, there.client, "0")]
        held += [
            await speaking(there.world, there.client, str(n + 1))
            for n in range(bounds.MAX_UNANSWERED)
        ]
        status, error = await there.client.request("ping").error()
        assert status == 503
        assert str(len(held)) in error["message"]
        held[0][1].answer("x")
        await held[0][0].complete()
        assert "result" in await there.client.request("ping").answer()


@tries("model.json.strict.MISTAKES")
async def mistakes(here: Here) -> None:
    async with session() as there:
        error = (await there.call("set_roots", roots=[{}] * (MISTAKES + 5))).error
        assert error["details"]["problems"][MISTAKES - 1].endswith("uri: missing")
        assert "uri: missing" not in error["details"]["problems"][MISTAKES]


@tries("model.json.lenient.NAMED", "tools.common.registry.STRANGERS")
async def strangers(here: Here) -> None:
    async with session() as there:
        unknown = {f"x{n}": 0 for n in range(NAMED + 5)}
        note = (await there.call("list_timers", **unknown)).note
        assert note.count("unknown key ") == NAMED
        assert note.endswith("; and 5 more unknown keys")
        error = (await there.call("get_timer", **unknown)).error
        assert error["message"].count("unknown key ") == STRANGERS
        assert error["details"]["problems"][STRANGERS:] == ["timer_id: missing"]


@tries("model.json.problems.TOLD", "model.json.lenient.SPELLED")
async def wrong_roots(here: Here) -> None:
    async with session() as there:
        wrong = {f"x{n}": 0 for n in range(5)}
        error = (await there.call("set_roots", roots=[wrong] * TOLD)).error
        assert len(error["details"]["problems"]) == TOLD + 1
        assert " more" in error["details"]["problems"][-1]
        spelled = "[" + "0," * SPELLED + "0]"
        await there.refused("set_roots", "expected a list", roots=spelled)


ADDED: dict[str, tuple[Json, int]] = {
    "MAX_NAME": ({"name": "x" * (bounds.MAX_NAME + 1), "command": "c"}, bounds.MAX_NAME),
    "MAX_URI": ({"name": "x", "url": "http://h/" + "x" * bounds.MAX_URI}, bounds.MAX_URI),
    "MAX_PATH": ({"name": "x", "command": "c" * (bounds.MAX_PATH + 1)}, bounds.MAX_PATH),
    "MAX_ARGUMENTS": (
        {"name": "x", "command": "c", "args": ["x"] * (bounds.MAX_ARGUMENTS + 1)},
        bounds.MAX_ARGUMENTS,
    ),
    "MAX_ARGUMENT": (
        {"name": "x", "command": "c", "args": ["x" * (bounds.MAX_ARGUMENT + 1)]},
        bounds.MAX_ARGUMENT,
    ),
    "MAX_HEADERS": (
        {
            "name": "x",
            "url": "http://h/",
            "headers": {f"x{n}": "" for n in range(bounds.MAX_HEADERS + 1)},
        },
        bounds.MAX_HEADERS,
    ),
    "MAX_HEADER": (
        {"name": "x", "url": "http://h/", "headers": {"x": "x" * (bounds.MAX_HEADER + 1)}},
        bounds.MAX_HEADER,
    ),
    "MAX_SERVER": (
        {"name": "x", "command": "c", "args": ["x" * (bounds.MAX_ARGUMENT - 1)] * 3},
        bounds.MAX_SERVER,
    ),
    "MAX_ALLOWED_TOOLS": (
        {"name": "x", "command": "c", "allowed_tools": ["x"] * (bounds.MAX_ALLOWED_TOOLS + 1)},
        bounds.MAX_ALLOWED_TOOLS,
    ),
    "MAX_ALLOWED_GLOBS": (
        {
            "name": "x",
            "command": "c",
            "allowed_tools": [f"{n}*" for n in range(bounds.MAX_ALLOWED_GLOBS + 1)],
        },
        bounds.MAX_ALLOWED_GLOBS,
    ),
}
"""Arguments of add_server that go beyond the bound of that name, and the bound."""


@tries(*(f"config.bounds.{name}" for name in ADDED))
async def added(here: Here) -> None:
    async with session() as there:
        for arguments, most in ADDED.values():
            await there.refused("add_server", "at most", most, **arguments)
        assert len((await there.says("list_servers"))["servers"]) == len(SERVERS)


@tries("config.bounds.MAX_SEARCH_PATTERN", "config.bounds.MAX_TIMER_MESSAGE")
@tries("config.bounds.MAX_ROOTS", "config.bounds.MAX_ROOTS_BYTES", "config.bounds.MAX_BLOCKS")
@tries("config.bounds.MAX_LOGS_RETURNED")
async def arguments(here: Here) -> None:
    long = [{"uri": "file:///" + "x" * (bounds.MAX_URI - 8)}] * 33
    async with session() as there:
        most = bounds.MAX_SEARCH_PATTERN
        await there.refused("list_tools", most, tool="x" * (most + 1))
        most = bounds.MAX_TIMER_MESSAGE
        await there.refused("set_timer", most, duration_ms=1000, message="x" * (most + 1))
        most = bounds.MAX_ROOTS
        await there.refused("set_roots", most, roots=[{"uri": "file:///x"}] * (most + 1))
        await there.refused("set_roots", bounds.MAX_ROOTS_BYTES, roots=long)
        most = bounds.MAX_BLOCKS
        content = [{"type": "text", "text": ""}] * (most + 1)
        given = {"request_id": "x", "model": "m", "content": content}
        await there.refused("respond_to_sampling", most, **given)
        most = bounds.MAX_LOGS_RETURNED
        await there.refused("get_logs", most, limit=most + 1)


# -- what a session holds -------------------------------------------------------------------------


@tries("config.bounds.MAX_LEDGER")
async def ledger(here: Here) -> None:
    ledger = Ledger()
    for number in range(bounds.MAX_LEDGER + 10):
        ledger.add(f"server-{number}", results=1)
    ledger.add("server-0", definitions=5)
    assert ledger.of("server-0") == Tally(5, 1)
    assert ledger.of(f"server-{bounds.MAX_LEDGER + 1}") == Tally()
    assert ledger.of(OTHERS) == Tally(0, 10)
    assert ledger.total == Tally(5, bounds.MAX_LEDGER + 10)


@tries("config.bounds.MAX_METRIC_SERVERS")
async def servers_in_metrics(here: Here) -> None:
    labels = Labels({"ours"}.__contains__)
    said = {labels.server(f"server-{number}") for number in range(bounds.MAX_METRIC_SERVERS + 5)}
    assert len(said) == bounds.MAX_METRIC_SERVERS + 1
    assert OTHER in said
    assert labels.server("ours") == "ours"


@tries("config.bounds.MAX_METRIC_TOOLS")
async def tools_in_metrics(here: Here) -> None:
    labels, share = Labels(), bounds.MAX_METRIC_TOOLS // SHARE
    for server in range(SHARE + 1):
        said = {labels.tool(f"s{server}", f"t{tool}", exists=True)[1] for tool in range(share + 1)}
        assert len(said) == (share + 1 if server < SHARE else 1)
        assert OTHER in said


@tries("config.bounds.MAX_METRIC_LABEL")
async def names_in_metrics(here: Here) -> None:
    said = Labels().server("x" * (bounds.MAX_METRIC_LABEL + 1))
    assert len(said) == bounds.MAX_METRIC_LABEL
    assert said.endswith("…")


@tries("limits.sessions")
async def sessions(here: Here) -> None:
    async with session(sessions=1) as there:
        await listening(there.client)
        status, error = await (await there.world.client().initialize()).error()
        assert status == 503
        assert "limits.sessions" in error["message"]


@tries("limits.servers")
async def servers(here: Here) -> None:
    async with session(servers=2) as there:
        await there.refused("add_server", "limits.servers", name="x", command="c")


@tries("limits.calls", "limits.tasks", "limits.calls_bytes")
async def calls(here: Here) -> None:
    never = {"server": "good", "tool": "never"}
    async with session(calls=1, tasks=1, calls_bytes=64 * 1024) as there:
        there.client.tool("execute_tool", **never)
        await wait_all_tasks_blocked()
        await there.refused("execute_tool", "limits.calls", **never)
        await there.refused("read_resource", "limits.calls", server="good", uri="demo://one")
    async with session(calls=1, tasks=1, calls_bytes=64 * 1024) as there:
        task = await there.task()
        await there.refused("execute_tool", "limits.tasks", **never, timeout_ms=0)
        await there.refused("execute_tool", "limits.tasks", **never, timeout_ms=1)
        long = {"text": "x" * 64 * 1024}
        await there.refused("execute_tool", "limits.calls_bytes", **never, args=long)
        await there.says("cancel_task", task_id=task)
        await there.task()


@tries("tools.code.CODE", "tools.code.VALUE", "tools.code.LOGS")
@tries("config.bounds.MAX_SCRIPTS")
@tries("codemode.run.WAITS", "codemode.run.LOGS")
async def scripts(here: Here) -> None:
    go_on = trio.Event()
    running: list[Script] = []

    async def waits(self: Script, *_: object) -> Json:
        running.append(self)
        for _line in range(3):
            self._log("x" * (run.LOGS // 2 - 1))
        self._under_way = run.WAITS + 1
        with pytest.raises(Raised, match=str(run.WAITS)):
            await self._do({"name": "sleep", "args": [1], "kwargs": {}})
        await go_on.wait()
        assert self.shown == code.VALUE
        return {"value": "x" * code.VALUE, "omitted": 3, "of": code.VALUE + 3}

    here.monkeypatch.setattr(Script, "run", waits)
    async with session() as there:
        await there.refused("codemode_execute", code.CODE, code="x" * (code.CODE + 1))
        asked = {"code": "1", "timeout_ms": 0}
        first = (await there.call("codemode_execute", **asked)).task_id
        for _ in range(bounds.MAX_SCRIPTS):
            await there.call("codemode_execute", **asked)
        await wait_all_tasks_blocked()
        assert len(running) == bounds.MAX_SCRIPTS
        go_on.set()
        said = await there.says("get_task_result", task_id=first)
        assert len(running) == bounds.MAX_SCRIPTS + 1
        omitted = said["result_omitted"]
        assert omitted.pop("hint")
        assert omitted == {"bytes": 3, "of": code.VALUE + 3}
        assert said["logs_omitted"]["lines"] == 3
        assert said["logs"] == []


async def finished(there: There, count: int) -> list[str]:
    tasks = [await there.task("bad") for _ in range(count)]
    await wait_all_tasks_blocked()
    return tasks


@tries("limits.results")
async def results(here: Here) -> None:
    async with session(results=1) as there:
        there.bad_says()
        old, new = await finished(there, 2)
        await there.refused("get_task_result", "at most 1", task_id=old)
        await there.call("get_task_result", task_id=new)


@tries("limits.results_bytes")
async def results_bytes(here: Here) -> None:
    async with session(results_bytes=64 * 1024) as there:
        there.bad_says(result={"content": [], "x": "x" * 40_000})
        old, new = await finished(there, 2)
        await there.refused("get_task_result", "limits.results_bytes", task_id=old)
        assert (await there.call("get_task_result", task_id=new)).result["x"]


@tries("config.bounds.MAX_LEFT")
async def left_calls(here: Here) -> None:
    abandoned: list[Any] = []
    async with trio.open_nursery() as nursery:
        own = Reissues(nursery, lambda call, _: abandoned.append(call), 30_000)
        for n in range(bounds.MAX_LEFT + 1):
            call = cast(Any, SimpleNamespace(id=str(n), args={"n": n}, task=None))
            own.end(own.begin(("execute_tool", "s", "t"), call), is_written=False)
        assert [each.id for each in abandoned] == ["0"]
        assert await own.join(("execute_tool", "s", "t"), {"n": 0}) is None
        assert await own.join(("execute_tool", "s", "t"), {"n": 1}) is not None
        nursery.cancel_scope.cancel("seen")


@tries("config.bounds.MAX_TIMERS", "session.timers.ENDED")
async def many_timers(here: Here) -> None:
    asked = {"duration_ms": 20_000, "message": "x"}
    async with session() as there:
        for _ in range(bounds.MAX_TIMERS):
            first = await there.says("set_timer", **asked)
        await there.refused("set_timer", bounds.MAX_TIMERS, **asked)
        await later(21)
        for _ in range(timers.ENDED - bounds.MAX_TIMERS + 1):
            await there.says("set_timer", **asked)
        await later(21)
        first = (await there.says("set_timer", **asked))["timer"]
        shown = await there.all_of("list_timers", "timers", include_inactive=True)
        assert len(shown) == timers.ENDED + 1
        assert shown[-1] == first


async def later(seconds: float) -> None:
    """Let them pass, however long what was done before took by the same clock."""
    mock_clock().jump(seconds)
    await wait_all_tasks_blocked()


@tries("config.bounds.MAX_WAITERS")
async def waiters(here: Here) -> None:
    async with session() as there:
        for _ in range(bounds.MAX_WAITERS):
            there.client.tool("await_activity", timeout_ms=60_000)
        await wait_all_tasks_blocked()
        await there.refused("await_activity", bounds.MAX_WAITERS)
        other = there.world.client()
        for _ in range(bounds.MAX_WAITERS):
            await other.modern("subscriptions/listen", notifications={}).begun()
        answer = await other.modern("subscriptions/listen", notifications={}).answer()
        assert str(bounds.MAX_WAITERS) in answer["error"]["message"]


@tries("front.modern.workspaces.MAX_CLIENTS")
async def clients(here: Here) -> None:
    async with open_world() as world:
        ann = world.client("ann")
        for n in range(workspaces.MAX_CLIENTS + 3):
            called = {"io.modelcontextprotocol/clientInfo": {"name": f"client-{n}"}}
            await ann.modern("tools/list", meta=called).complete()
        (by,) = (await ann.modern_call("await_activity", timeout_ms=1))["events"]
        assert len(by["events"]) == workspaces.MAX_CLIENTS - 1


@tries("config.bounds.MAX_SUBSCRIPTIONS")
async def subscriptions(here: Here) -> None:
    here.monkeypatch.setattr(following, "MAX_SUBSCRIPTIONS", 3)
    async with session() as there:
        for n in range(3):
            await there.says("subscribe_resource", server="good", uri=f"demo://{n}")
        one_more = {"server": "good", "uri": "demo://x"}
        await there.refused("subscribe_resource", "3 resources", **one_more)
        await there.says("subscribe_resource", server="good", uri="demo://0")
        await there.says("unsubscribe_resource", server="good", uri="demo://0")
        await there.says("subscribe_resource", **one_more)


@tries("limits.events", "limits.events_bytes")
async def events(here: Here) -> None:
    async with session(events=10) as there:
        news = (await there.bad(*[notice(n=n) for n in range(15)])).news
        assert (len(news["events_since_last_response"]), news["events_lost"]) == (10, 5)
    async with session(events_bytes=64 * 1024) as there:
        news = (await there.bad(*[notice(10_000) for _ in range(10)])).news
        assert news["events_lost"] == 4
    assert "limits.events_bytes" in here.log()


@tries("model.timeline.records.MAX_TALLIED")
async def tallied(here: Here) -> None:
    records = Records(50, 300)
    records.opened(facts.SessionOpened(0, "a", "local"))
    for n in range(MAX_TALLIED + 10):
        records.tallied(facts.Tallied(0, "a", f"server-{n}", 1, 2))
    (record,) = records
    assert len(record.told) == MAX_TALLIED + 1
    assert record.told[""] == (10, 20)


@tries("web.page.timeline.sessions.MAX_SHOWN", "web.page.timeline.look.MAX_BESIDE")
async def shown_sessions(here: Here) -> None:
    here.monkeypatch.setattr(listed_sessions, "MAX_SHOWN", 1)
    here.monkeypatch.setattr(look, "MAX_BESIDE", 2)
    async with open_page(tokens=None) as world:
        for name in "ab":
            session = await world.session(f"local/{name}", "local")
            for number in range(3):
                made = str(number), "git", "log", False, 0, None
                world.manager.journal.note(facts.CallBegun, session.id, *made)
                link = "git", number
                world.manager.journal.note(facts.ConnectionTrying, session.id, *link)
        said = await world.browser().json("/sessions")
        assert (len(said["sessions"]), said["more"]) == (1, 1)
        (name,) = (each["name"] for each in said["sessions"])
        rows = (await world.browser().json(f"/sessions/{name}"))["rows"]
        assert [row["kind"] for row in rows].count("connection") == 2


@tries("limits.facts", "limits.facts_in_all", "model.timeline.records.MAX_ENDED")
async def timelines(here: Here) -> None:
    records = Records(50, 300)
    for n in range(MAX_ENDED + 1):
        records.opened(facts.SessionOpened(0, str(n), "local"))
        for call in "xyz" * 10:
            records.begun(facts.CallBegun(n, str(n), call, "s", "t" * n, False, 0, None))
        assert records.heft <= 300
        records.ended(facts.SessionEnded(n, str(n), "over"))
    assert records.get("0") is None
    records.opened(facts.SessionOpened(0, "a", "local"))
    for number in range(100):
        records.begun(facts.CallBegun(0, "a", str(number), "s", "t", False, 0, None))
    (record,) = [record for record in records if record.ended_at is None]
    assert record.heft <= 50
    assert record.dropped + len(record.noted) == 101
    many = Records(50, 100_000)
    for n in range(MAX_ENDED + 1):
        many.opened(facts.SessionOpened(0, str(n), "local"))
        many.begun(facts.CallBegun(0, str(n), "c", "s", "t", False, 0, None))
        many.ended(facts.SessionEnded(0, str(n), "over"))
    assert len(list(many)) == MAX_ENDED


@tries("config.bounds.MAX_STREAM_MESSAGES", "config.bounds.MAX_STREAM_BYTES")
async def streams(here: Here) -> None:
    async with session() as there:
        _, speaker = await speaking(there.world, there.client, "x")
        streams = there.client.own.streams
        for n in range(bounds.MAX_STREAM_MESSAGES + 5):
            await speaker.say(str(n), standalone=True)
        assert 5 <= streams.evicted < 10
        for _ in range(9):
            await speaker.say("x" * 2**20, standalone=True)
        said = await listening(there.client)
        assert sum(len(event.data) for event in said.events) <= bounds.MAX_STREAM_BYTES
    assert "stream_eviction" in here.log()


@tries("session.events.TRIGGERS")
async def triggers(here: Here) -> None:
    async with session() as there:
        await there.bad(*[notice(n=n) for n in range(TRIGGERS + 5)])
        (events,) = [each.events for each in there.world.manager.sessions()]
        assert len(events.triggers.after(0)) == TRIGGERS


@tries("front.handshake.streams.FLOOD")
async def flooded(here: Here) -> None:
    mock_clock().autojump_threshold = 0
    streams, waited = Streams("x", keep=2), []
    stream = streams.new()
    for said in (3, 2 * FLOOD + 1):
        reader = stream.open_reader()
        for n in range(said):
            streams.add(stream, str(n))
        began = trio.current_time()
        await streams.wait_for_room()
        waited.append(round(trio.current_time() - began))
        assert not reader.is_current
    assert waited == [WRITER_PATIENCE, 0]
    assert "slow_reader_dropped" in here.log()


@tries("front.modern.exchange.BACKLOG")
async def slow_modern_reader(here: Here) -> None:
    async with open_world() as world:
        reading = world.client().modern("test/speak", key="k")
        speaker = await world.speaker("k")
        reading.stop_reading()
        for n in range(exchange.BACKLOG + 5):
            await speaker.say(str(n))
        reading.read_on()
        speaker.answer("done")
        said = texts((await reading.complete()).messages)
        assert said == [*map(str, range(5, exchange.BACKLOG + 5)), "done"]


@tries("config.bounds.MAX_INTERRUPTED")
async def rounds_that_wait(here: Here) -> None:
    here.monkeypatch.setattr(interrupted, "MAX_INTERRUPTED", 1)
    server = Server(name="raw", **raw())
    can: Any = {"io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}}
    wanted = {"server": "raw", "tool": "string_id_question"}

    async with open_world(Config(servers=(server,))) as world:
        client = world.client()

        async def ask() -> Any:
            return (await client.modern_tool("execute_tool", meta=can, **wanted).answer())["result"]

        first, _ = await ask(), await ask()
        await wait_all_tasks_blocked()
        (session,) = world.manager.sessions()
        for_tools = [q for q in session.questions.open("elicitation") if not q.is_relayed]
        assert [q.id for q in for_tools] == list(first["inputRequests"])
        assert [task.task_id for task in session.calls.tasks()] == [for_tools[0].call]


@tries("tools.common.pages.AT_ONCE", "tools.common.pages.TIMES")
async def pages_first(here: Here) -> None:
    def wanted(count: int) -> MCPError:
        page = {"mode": "url", "url": "https://x.test", "message": "?"}
        return MCPError(-32042, "pages first", {"elicitations": [page] * count})

    asked, tried = list[Any](), list[MCPError]()

    async def ask(*question: Any) -> Any:
        asked.append(question)
        return {"action": "accept"}

    async def refuse(count: int) -> None:
        tried.append(wanted(count))
        raise tried[-1]

    told = SimpleNamespace(heard_by=lambda _: nullcontext())
    session: Any = SimpleNamespace(ask=ask, announcements=told)
    server: Any = SimpleNamespace(over=trio.Event())
    for count, of_all, times in ((pages.AT_ONCE + 1, 0, 1), (1, pages.TIMES, pages.TIMES + 1)):
        asked.clear()
        tried.clear()
        with pytest.raises(MCPError, match="pages first"):
            await pages.with_pages(session, server, "x", partial(refuse, count))
        assert (len(asked), len(tried)) == (of_all, times)


@tries("front.pipes.stdio.NOTES")
async def slow_reader_of_pipes(here: Here) -> None:
    outgoing, read = anyio.create_memory_object_stream[SessionMessage | Spelled](0)
    channel = stdio._Channel(outgoing)
    for n in range(stdio.NOTES + 5):
        channel.note(JSONRPCNotification(jsonrpc="2.0", method="x", params={"n": n}), None)
    channel.close()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(channel.run)
        async with read:
            said = [item async for item in read]
    assert len(said) == stdio.NOTES


@tries("front.log_messages.BACKLOG")
async def slow_log_reader(here: Here) -> None:
    kept, over, read = buffers.Buffers(10, 1000, 1000), trio.Event(), trio.Event()
    told: list[Any] = []

    async def notify(_: str, params: Any) -> None:
        await read.wait()
        told.append(params["data"])

    async with trio.open_nursery() as nursery:
        nursery.start_soon(log_messages.LogMessages(kept).run, notify, over)
        await wait_all_tasks_blocked()
        for n in range(log_messages.BACKLOG + 5):
            kept.log(buffers.LogEntry("s", "protocol", "info", None, n, "now"))
        read.set()
        await wait_all_tasks_blocked()
        over.set()
    assert told == list(range(5, log_messages.BACKLOG + 5))


# -- what servers do ------------------------------------------------------------------------------


@tries("config.bounds.MAX_CHILDREN")
async def children(here: Here) -> None:
    assert Shared().most_children <= bounds.MAX_CHILDREN
    shared = Shared(most_children=1)
    with shared.place_for_child():
        with pytest.raises(LimitReached, match="1 child processes"):
            with shared.place_for_child():
                raise AssertionError
    with shared.place_for_child():
        pass


@tries("limits.message")
async def line(here: Here) -> None:
    code = "print('[' + '0,' * 50_000 + '0]'); input()"
    async with open_process(
        [sys.executable, "-I", "-S", "-c", code],
        env={"PATH": os.defpath},
        cwd=None,
        measure=Measure(64 * 1024, 1_000_000),
        on_stderr=lambda _: None,
        on_noise=lambda _: None,
    ) as process:
        async for _ in process.reads:
            pass
        assert str(64 * 1024) in str(process.failure)


@tries("backend.children.process.TEXT_LINE")
async def stderr_line(here: Here) -> None:
    lines: list[str] = []
    code = f"import sys; sys.stderr.write('x' * {TEXT_LINE + 1} + '\\n')"
    async with open_process(
        [sys.executable, "-I", "-S", "-c", code],
        env={"PATH": os.defpath},
        cwd=None,
        measure=Measure(64 * 1024, 1_000_000),
        on_stderr=lines.append,
        on_noise=lambda _: None,
    ) as process:
        async for _ in process.reads:
            pass
    assert [*map(len, lines)] == [TEXT_LINE, 1]


@tries("backend.connections.connect.UNREAD")
async def unread(here: Here) -> None:
    pings = [{"jsonrpc": "2.0", "id": n, "method": "ping"} for n in range(2 * UNREAD)]
    async with session() as there:
        answer = await there.bad(*pings)
        assert answer.result["isError"] is True
        told = [*answer.events, *(await there.call("list_servers")).events]
        assert f"did not read {UNREAD} answers" in json.dumps(told)


@tries("model.json.long.outlines.OUTLINES")
async def outlined(here: Here) -> None:
    said = ",".join(f'{{"id":{n},"method":"x"}}' for n in range(outlines.OUTLINES + 5))
    found = intake.finished(outlines.outlines(f"[{said}]".encode()))
    assert [each["id"] for each in found] == list(range(outlines.OUTLINES))


@tries("backend.connections.client.OUTBOX")
async def courtesies(here: Here) -> None:
    told: list[str] = []

    async def notify(method: str, _: object) -> None:
        told.append(method)
        await trio.lowlevel.checkpoint()

    agreed = Negotiated("2025-11-25", {}, {}, None)
    dispatcher: Any = SimpleNamespace(notify=notify)
    ours = client.Client(dispatcher, cast(Any, None), agreed, cast(Any, None))
    for n in range(client.OUTBOX + 5):
        ours.notify(str(n))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(ours.deliver_outbox)
        await wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    assert told == [str(n) for n in range(client.OUTBOX)]


@tries("backend.http.event_stream.LONGEST_ID")
async def event_id(here: Here) -> None:
    for size, is_kept in ((LONGEST_ID, True), (LONGEST_ID + 1, False)):
        (event,) = EventStream(10_000).feed(b"id: " + b"x" * size + b"\ndata: x\n\n")
        assert event is not None
        assert event.data == b"x"
        assert bool(event.id) is is_kept


@tries("backend.http.responses.LONGEST")
async def head_of_a_response(here: Here) -> None:
    reader = responses.ResponseReader()
    with pytest.raises(responses.BadResponse, match="longer than"):
        reader.feed(b"HTTP/1.1 200 OK\r\nx: " + b"y" * responses.LONGEST)


@tries("backend.http.channels.KEPT")
async def kept_connections(here: Here) -> None:
    ours = channels.Channels(ssl.create_default_context(), restricted=False)
    origin, ends = ("http", "h", 80), [socket.socketpair() for _ in range(channels.KEPT + 1)]
    streams = [trio.SocketStream(trio.socket.from_stdlib_socket(mine)) for mine, _ in ends]
    for stream in streams:
        ours.take_back(channels.TcpChannel(ours, origin, stream.socket, stream))
    assert [stream.socket.fileno() >= 0 for stream in streams] == [True] * channels.KEPT + [False]
    ours.close()
    assert [stream.socket.fileno() for stream in streams] == [-1] * len(streams)
    for _, theirs in ends:
        theirs.close()


@tries("backend.http.courier.MOST_REDIRECTS")
async def redirects(here: Here) -> None:
    async def spoil(request: Request, reply: Reply) -> bool:
        await reply.whole(307, location="/mcp")
        return True

    async with open_http_server(HttpServer(spoil=spoil)) as server:
        async with running({"url": server.url, "era": "handshake"}) as it:
            with pytest.raises(ConnectFailed, match="not followed"):
                await it.backend.connection()
        assert len(server.requests) == courier.MOST_REDIRECTS + 1


@tries("backend.connections.client.ASKED", "backend.connections.client.ROUNDS")
async def asked(here: Here) -> None:
    here.monkeypatch.setattr(client, "ROUNDS", 3)
    asks = {str(n): {"method": "roots/list"} for n in range(client.ASKED + 1)}
    async with session(era="modern") as there:
        there.bad_says(result={"resultType": "input_required", "inputRequests": asks})
        call = {"server": "bad", "tool": "echo"}
        await there.refused("execute_tool", f"more than {client.ASKED} things", **call)
        there.bad_says(result={"resultType": "input_required", "requestState": "x"})
        await there.refused("execute_tool", "more than 3 times", **call)


@attrs.define
class Lister:
    """A server whose list goes on and on."""

    page: list[Json]
    negotiated: Negotiated
    pages: int = 0

    async def request(self, method: str, params: Json | None) -> Json:
        self.pages += 1
        await trio.lowlevel.checkpoint()
        return {"tools": self.page, "nextCursor": str(self.pages)}


@tries(
    "backend.catalogue.catalog.PAGES",
    "backend.catalogue.catalog.ENTRIES",
    "backend.catalogue.catalog.SIZE",
)
async def lists(here: Here) -> None:
    for page in ([], [{"name": "x"}] * 5000, [{"name": "x" * 2**20}]):
        lister = Lister(page, Negotiated("2025-11-25", {"tools": {}}, {}, None))
        with pytest.raises(ExecutionFailed, match="does not come to an end of its tools"):
            await Catalog("x", None).get("tools", cast(Any, lister))
        entries = lister.pages * len(page)
        assert lister.pages <= catalog.PAGES + 1
        assert entries <= catalog.ENTRIES + 5000
        assert entries * len(str(page[:1])) <= catalog.SIZE + 2**21


@tries("limits.questions", "limits.questions_bytes")
async def many_questions(here: Here) -> None:
    async with session(questions=1, questions_bytes=64 * 1024) as there:
        await there.bad(question(10), question(10, 2))
        await there.call("respond_to_elicitation", request_id="x", action="cancel")
        answers = [said for said in there.play.heard if "method" not in said]
        assert "1 questions are open" in answers[0]["error"]["message"]
        assert len((await there.says("get_elicitations"))["elicitations"]) == 1
    async with session(questions_bytes=64 * 1024) as there:
        await there.bad(question(64 * 1024))
        await wait_all_tasks_blocked()
        answers = [said for said in there.play.heard if "method" not in said]
        assert "limits.questions_bytes" in answers[0]["error"]["message"]


@tries("model.forms.STEPS", "model.forms.PATTERNS", "model.forms.TOLD")
async def forms_looked_at(here: Here) -> None:
    form: Json = {"properties": {"a": {"items": {"type": "string"}}}}
    async with session() as there:
        asked = {**question(1), "params": {"message": "?", "requestedSchema": form}}
        await there.bad(asked)
        (open_one,) = (await there.says("get_elicitations"))["elicitations"]
        named = {"request_id": open_one["requestId"], "action": "accept"}
        wrong = {"a": [1] * 100}
        error = (await there.call("respond_to_elicitation", **named, content=wrong)).error
        assert len(error["details"]["problems"]) == forms.TOLD
        too_many = {"a": ["x"] * forms.STEPS + [1]}
        await there.says("respond_to_elicitation", **named, content=too_many)
        assert "elicitation_schema_unusable" in here.log()
    form = {"properties": {"a": {"items": {"pattern": "^a$"}}}}
    for right, told in ((forms.PATTERNS - 1, 1), (forms.PATTERNS, 0)):
        found = forms.mismatches(form, {"a": ["a"] * right + ["b"]})
        assert len(intake.finished(found)) == told


@tries("session.questions.questions.CLOSED")
async def closed_questions(here: Here) -> None:
    async with session(questions=10_000, question_timeout_ms=20_000) as there:
        await there.bad(*[question(1, n) for n in range(questions.CLOSED + 1)])
        await wait_all_tasks_blocked()
        asked = await there.all_of("get_elicitations", "elicitations")
        await later(21)
        said = []
        for each in asked:
            named = {"request_id": each["requestId"], "action": "cancel"}
            said.append((await there.call("respond_to_elicitation", **named)).error["message"])
        assert len([message for message in said if "expired" in message]) == questions.CLOSED
        assert len([message for message in said if "lists those" in message]) == 1


@tries("limits.notifications", "config.bounds.MAX_NOTIFICATIONS_BYTES")
async def notifications(here: Here) -> None:
    async with session(notifications=2) as there:
        answer = await there.bad(*[notice(n=n) for n in range(4)])
        assert len(answer.events) == 4
        kept = (await there.says("get_notifications"))["notifications"]
        assert [entry["params"]["n"] for entry in kept] == [2, 3]
        half = bounds.MAX_NOTIFICATIONS_BYTES // 2
        await there.bad(*[notice(half, n=n) for n in range(2)])
        assert len((await there.says("get_notifications"))["notifications"]) == 1
        await there.bad(notice(2 * half))
        (entry,) = (await there.says("get_notifications"))["notifications"]
        assert entry["too_large"] is True


@tries("limits.logs", "limits.log_bytes")
async def log_lines(here: Here) -> None:
    async with session(logs=2, log_bytes=256) as there:
        said = {"level": "info", "data": "x" * 257}
        await there.bad(*[notice(0, "notifications/message", **said) for _ in range(3)])
        found = await there.says("get_logs", server="bad")
        assert [entry["data"] for entry in found["logs"]] == ["x" * 256 + "…"] * 2
        assert found["dropped"] == 1


@tries("front.faces.one_server.passed.MAX_PASSED", "front.faces.one_server.passed.MAX_STATE")
async def rounds_of_servers(here: Here) -> None:
    unused: Any = None
    asked = {"resultType": "input_required", "inputRequests": {"q": {}}}
    kept = passed.PassedOn()

    def incoming(**params: Any) -> Incoming:
        return Incoming(1, "tools/call", params, "2026-07-28", unused, unused)

    names = []
    for _ in range(passed.MAX_PASSED + 1):
        names.append((await kept.told(incoming(), None, asked))["requestState"])
    assert await kept.again(incoming(requestState=names[1])) is not None
    with pytest.raises(MCPError, match="requestState"):
        await kept.again(incoming(requestState=names[0]))
    state = "x" * (passed.MAX_STATE + 1)
    with pytest.raises(MCPError, match=str(passed.MAX_STATE)):
        await kept.told(incoming(), None, {**asked, "requestState": state})


@tries("session.buffers.SERVERS", "backend.shared.ERAS")
async def remembered(here: Here) -> None:
    kept, shared = buffers.Buffers(10, 10, 1000), Shared()
    for n in range(buffers.SERVERS + 1):
        kept.log(buffers.LogEntry(f"s{n}", "stderr", "info", None, "x", "now"))
        kept.hear(buffers.NotificationEntry(f"s{n}", "x", None, "now"))
    assert kept.count_notifications(None) == buffers.SERVERS
    assert kept.tail("s0", "stderr", 1) == []
    assert kept.tail("s1", "stderr", 1) == ["x"]
    for n in range(ERAS + 1):
        shared.remember((str(n),), "modern")
    assert len(shared.eras) == ERAS
    assert ("0",) not in shared.eras


@tries(
    "backend.sharing.sharing.SPLIT",
    "backend.sharing.named.MOST",
    "backend.sharing.wire.DOUBTS",
)
async def shared_ones(here: Here) -> None:
    named = GivenNames()
    for n in range(MOST + 1):
        named.add(str(n), is_open=True)
    assert ("0" in named, "1" in named, len(named.open)) == (False, True, MOST)
    async with open_sharers(shared()) as world:
        (one,) = await world.connected("one")
        hub, sharing = one.lease.hub, world.manager.sharing
        assert sharing is not None
        assert hub.wire is not None
        assert hub.wire.common is not None
        client = hub.wire.clients[one.lease]
        for n in range(DOUBTS + 1):
            hub.wire.doubts(n, client)
        assert len(hub.wire.common.witness.given_up) == DOUBTS
        for n in range(DOUBTS):
            hub.wire.common.witness.given_up.discard(n)
        two = await world.come("two")
        two.begin("of two")
        await wait_all_tasks_blocked()
        world.ask(1)  # it could be of the one that there was no room for
        await wait_all_tasks_blocked()
        assert one.told == two.told == ["share_conflict"]
        for n in range(SPLIT):
            sharing.split(cast(Any, SimpleNamespace(principal="ada", server=str(n))))
        three = await world.come("three")
        assert three.session.backends["x"].shared_with is not None


@tries(
    "backend.catalogue.memory.ENTRIES",
    "backend.catalogue.memory.SIZE",
    "backend.catalogue.memory.ONE",
)
async def known(here: Here) -> None:
    nothing = Negotiated("2025-11-25", {}, {}, None)

    def one(size: int) -> KnownServer:
        return KnownServer(nothing, {"tools": Remembered([], 1.0, 0)}, 1.0, size)

    entries = Memory(lambda: 1.0)
    for n in range(memory.ENTRIES + 1):
        entries.learn(str(n), one(1), "s")
    assert len(entries) == memory.ENTRIES
    assert entries.recall("0") is None
    assert entries.recall("1") == one(1)
    entries.learn("1", one(memory.ONE + 1), "much")
    assert entries.recall("1") is None
    assert f'"most":{memory.ONE}' in here.log().replace(" ", "")
    entries = Memory(lambda: 1.0)
    most = memory.SIZE // memory.ONE
    for n in range(most + 1):
        entries.learn(str(n), one(memory.ONE), "s")
    assert len(entries) == most
    assert entries.recall("0") is None


@tries("config.bounds.MAX_COOKIES", "config.bounds.MAX_COOKIE")
async def cookies(here: Here) -> None:
    def answer(request: httpx2.Request) -> httpx2.Response:
        values = ["a=" + "x" * bounds.MAX_COOKIE, *(f"b{n}=x" for n in range(100))]
        return httpx2.Response(200, headers=[("set-cookie", each) for each in values])

    transport = httpx2.MockTransport(answer)
    async with httpx2.AsyncClient(cookies=FewCookies(), transport=transport) as client:
        await client.get("http://h/")
        sent = client.build_request("GET", "http://h/").headers["cookie"]
    assert len(sent.split("; ")) == bounds.MAX_COOKIES
    assert "a=" not in sent


@tries("config.bounds.MAX_STATUS_MESSAGE")
async def status_message(here: Here) -> None:
    said = {"progressToken": "@TOKEN@", "progress": 1, "message": "x" * 1000}
    async with session() as there:
        there.play.instead["tools/call"] = [
            json.dumps(notice(0, "notifications/progress", **said)).encode()
        ]
        task = await there.task("bad")
        await wait_all_tasks_blocked()
        shown = (await there.says("get_task", task_id=task))["task"]["status_message"]
        assert shown == "x" * bounds.MAX_STATUS_MESSAGE + "…"


# -- what is shown --------------------------------------------------------------------------------


@tries("config.bounds.MAX_DELIVERY_EVENTS", "config.bounds.MAX_DELIVERY_BYTES")
async def delivery(here: Here) -> None:
    async with session() as there:
        most = bounds.MAX_DELIVERY_EVENTS
        news = (await there.bad(*[notice(n=n) for n in range(most + 5)])).news
        assert (len(news["events_since_last_response"]), news["more"]) == (most, 5)
    async with session() as there:
        answer = await there.bad(*[notice(5000) for _ in range(5)])
        assert answer.news["more"] == 2
        assert len(answer.events) == 3
    async with session() as there:
        (event,) = (await there.bad(notice(bounds.MAX_DELIVERY_BYTES))).events
        assert "too_large" in json.dumps(event) or "tooLarge" in json.dumps(event)


def tool(n: int, size: int) -> Json:
    return {"name": f"t{n}", "description": "x" * size, "inputSchema": {"type": "object"}}


@tries("config.bounds.MAX_LIST_BYTES", "tools.common.asking.MAX_ERRORS")
async def list_shown(here: Here) -> None:
    large = [tool(n, 300_000) | {"uri": f"x://{n}"} for n in range(5)]
    page = await listing.page(
        [listing.Group("bad", large, 5)], listing.Cursor(), bounds.MAX_LIST_BYTES
    )
    assert (page.more, page.short) == (2, frozenset())
    errors = [{"server": f"s{n}", "error": "x" * 1000} for n in range(20)]
    shown = listing.errors_within(errors, asking.MAX_ERRORS)
    assert len(json.dumps(shown)) <= asking.MAX_ERRORS
    async with session() as there:
        there.bad_says(of="resources/list", result={"resources": large})
        said = await there.says("list_resources", server="bad")
        assert [each["too_large"] for each in said["resources"]] == [True] * 5
        small = [tool(n, 5000) | {"uri": f"x://{n}"} for n in range(5)]
        there.bad_says(of="resources/list", result={"resources": small})
        await there.bad(notice(method="notifications/resources/list_changed"))
        said = await there.says("list_resources", server="bad")
        assert (len(said["resources"]), said["more"]) == (3, 2)


@tries("config.bounds.MAX_PAGE_BYTES", "config.bounds.MAX_DESCRIPTION")
@tries("config.bounds.MAX_FIRST_SENTENCE")
async def tool_lists(here: Here) -> None:
    async with session() as there:
        there.bad_says(of="tools/list", result={"tools": [tool(n, 300_000) for n in range(5)]})
        short = await there.says("list_tools", server="bad")
        assert short["detail"] == "summary"
        assert "detail" in short["hint"]
        (of_bad,) = short["tools"]
        assert {len(each["description"]) for each in of_bad["tools"]} == {bounds.MAX_FIRST_SENTENCE}
        cursor: Json = {}
        for n in range(2):
            full = await there.call("list_tools", server="bad", detail="full", **cursor)
            preview = json.loads(full.content[0]["text"])
            assert preview["head"].startswith(
                f'{{"tools":[{{"server":"bad","tools":[{{"name":"t{n}"'
            )
            rest = json.loads("{" + preview["tail"][preview["tail"].index('"detail"') :])
            assert rest["more"] == 4 - n
            cursor = {"cursor": rest["cursor"]}
        long = "x" * (bounds.MAX_DESCRIPTION - 1) + "yz"
        there.bad_says(of="tools/list", result={"tools": [tool(0, 0) | {"description": long}]})
        await there.bad(notice(method="notifications/tools/list_changed"))
        assert (await there.says("list_tools", server="bad", query="y"))["tools"]
        assert not (await there.says("list_tools", server="bad", query="z"))["tools"]


@tries("config.bounds.MAX_QUERY", "config.bounds.MAX_QUERIES", "config.bounds.MAX_FOUND")
async def searching(here: Here) -> None:
    async with session() as there:
        most = bounds.MAX_QUERY
        await there.refused("codemode_search", most, query="x" * (most + 1))
        await there.refused("codemode_search", bounds.MAX_QUERIES, queries=["x"] * 11)
        await there.refused("codemode_search", bounds.MAX_FOUND, query="x", limit=101)


@tries("model.search.index.MAX_TEXT", "model.search.index.MAX_NAME")
@tries("model.search.index.MAX_PARAMETERS")
@tries("model.search.index.MAX_TERMS", "model.search.index.MAX_POSTINGS")
@tries("model.search.ranking.MAX_QUERY_TERMS", "model.search.ranking.MAX_CLOSEST")
async def searches(here: Here) -> None:
    def found(*entries: Entry, query: str) -> list[int]:
        return ranked(index_of(dict(enumerate(entries))), query).numbers

    def closest_to(query: str, entries: tuple[Entry, ...]) -> list[int]:
        return intake.finished(ranking.closest(index_of(dict(enumerate(entries))), query))

    long = Entry("tools", "s", "t", description=" " * index.MAX_TEXT + "squid")
    assert found(long, query="squid") == []
    assert found(Entry("tools", "s", "x" * index.MAX_NAME + "_squid"), query="squid") == []
    many = tuple((f"p{n}", "squid" if n == index.MAX_PARAMETERS else "") for n in range(100))
    assert found(Entry("tools", "s", "t", parameters=many), query="squid") == []
    words = " ".join(f"{'abcdefgh'[n % 8]}{n}x" for n in range(index.MAX_TERMS))
    assert found(Entry("tools", "s", "t", description=f"{words} squid"), query="squid") == []
    here.monkeypatch.setattr(index, "MAX_POSTINGS", 2)
    two = (Entry("tools", "s", "octopus"), Entry("tools", "s", "squid", description="ink"))
    assert found(*two, query="octopus") == [0]
    assert found(*two, query="ink") == []
    assert found(*two, query="squid") == [1]
    few = " ".join(f"x{n}" for n in range(ranking.MAX_QUERY_TERMS)) + " octopus"
    assert found(*two, query=few) == []
    assert (closest_to("squid", two)) == [1]
    assert (closest_to("x" * ranking.MAX_CLOSEST + "squid", two)) == []


def long(size: int) -> Json:
    return {"content": [{"type": "text", "text": "x" * size}]}


@tries("results.inline_bytes", "config.bounds.MAX_PREVIEW_BYTES", "tools.results.preview.BLOBS")
async def previews(here: Here) -> None:
    most = ResultSettings().inline_bytes
    async with session() as there:
        there.bad_says(result=long(most))
        assert len((await there.call("execute_tool", server="bad", tool="echo")).text) == most
        there.bad_says(result=long(most + 1))
        answer = await there.call("execute_tool", server="bad", tool="echo")
        said = json.loads(answer.content[0]["text"])
        assert 0 < len(said["head"] + said["tail"]) <= bounds.MAX_PREVIEW_BYTES
        assert said["omitted"]["bytes"] == most + 1 - len(said["head"] + said["tail"])
        part = await there.call("read_result", id=said["result"])
        assert len(json.dumps(part.content)) <= most
        assert "next" in json.loads(part.texts[1])
        image = {"type": "image", "mimeType": "image/png", "data": "AAAA" * 3400}
        there.bad_says(result={"content": [image] * (preview.BLOBS + 4)})
        answer = await there.call("execute_tool", server="bad", tool="echo")
        previews = [json.loads(block["text"]) for block in answer.content if "text" in block]
        assert [each["type"] for each in previews[:-1]] == ["image/png"] * preview.BLOBS
        assert previews[-1]["shape"].startswith("array of 4 objects")


@tries("native.max_tools", "native.max_name")
async def natives(here: Here) -> None:
    most = NativeSettings()
    names = [*(f"t{n}" for n in range(most.max_tools)), "x" * most.max_name]
    offers = [Offered("s", [{"name": name} for name in names])]
    found = intake.finished(choose(offers, most.max_name, most.max_tools))
    assert len(found.listed) == most.max_tools
    assert found.left_out == 1
    assert max(map(len, found.known)) == most.max_name


@tries("results.bytes", "config.bounds.MAX_RESULTS", "config.bounds.MAX_RESULTS_GONE")
async def kept_results(here: Here) -> None:
    async with session() as there:
        results = there.world.manager.sessions()[0].results
        ids = [
            (await results.keep("text/plain", [b"x"], 1, text=True)).id
            for _ in range(bounds.MAX_RESULTS + bounds.MAX_RESULTS_GONE + 1)
        ]
        with pytest.raises(NotFound, match="no result"):
            results.get(ids[0])
        for gone in (ids[1], ids[bounds.MAX_RESULTS_GONE]):
            with pytest.raises(NotFound, match=f"evicted.* {bounds.MAX_RESULTS} results"):
                results.get(gone)
        assert results.get(ids[bounds.MAX_RESULTS_GONE + 1])
        results.settings = attrs.evolve(results.settings, bytes=bounds.MAX_RESULTS + 5)
        await results.keep("text/plain", [b"x" * 10], 10, text=True)
        assert results.size == bounds.MAX_RESULTS + 5


@tries(
    "tools.results.grep.COUNTED", "tools.results.grep.LINE", "tools.results.reading.MAX_PATH_BYTES"
)
async def looking_in_results(here: Here) -> None:
    async with session() as there:
        mock_clock().autojump_threshold = math.inf  # it looks in a thread
        keep = there.world.manager.sessions()[0].results.keep
        text = b"ab\n" * (grep.COUNTED + 1) + b"a" * (grep.LINE + 1) + b"c"
        kept = await keep("text/plain", [text], len(text), text=True)
        about = json.loads((await there.call("read_result", id=kept.id, grep="b")).texts[1])
        assert about["matches"] == grep.COUNTED
        assert "only up to" in about["note"]
        line, about = (await there.call("read_result", id=kept.id, grep="c")).texts
        assert len(line) < grep.LINE
        assert f"(byte {len(text) - 1})" in line
        here.monkeypatch.setattr(reading, "MAX_PATH_BYTES", 1)
        await there.refused("read_result", "more than the 1", id=kept.id, path="a")


@tries("config.bounds.MAX_TASKS_SHOWN")
async def tasks_shown(here: Here) -> None:
    async with session() as there:
        for _ in range(bounds.MAX_TASKS_SHOWN + 1):
            await there.task()
        said = await there.says("get_server_status", server="good")
        assert (len(said["tasks"]), said["more"]) == (bounds.MAX_TASKS_SHOWN, 1)
        assert len((await there.says("list_tasks"))["tasks"]) == bounds.MAX_TASKS_SHOWN + 1


@tries("config.bounds.MAX_PENDING_BYTES")
async def pending(here: Here) -> None:
    async with session(questions=10_000) as there:
        await there.bad(
            question(bounds.MAX_PENDING_BYTES), *[question(1, n) for n in range(2, 800)]
        )
        await wait_all_tasks_blocked()
        said = await there.says("await_activity", timeout_ms=0, last_event_id="lost")
        shown = said["pending_client"]
        assert shown["elicitations"][0]["too_large"] is True
        assert len(shown["elicitations"]) + shown["more"] == 799
        # The next answers tell the others; those that are known have a bound of their own.
        while (answer := await there.call("list_servers")).pending:
            assert len(json.dumps(answer.result)) < 4 * bounds.MAX_PENDING_BYTES
        said = answer.result["content"][-1]["text"]
        assert len(said) < bounds.MAX_PENDING_BYTES + 100
        known = json.loads(said)
        assert len(known["open_questions"]) + known["more_open_questions"] == 799


@tries("config.bounds.MAX_ARGS_SHOWN", "config.bounds.MAX_ARGS_BEGINNING")
async def args_shown(here: Here) -> None:
    async with session() as there:
        args = {"text": "x" * (bounds.MAX_ARGS_SHOWN + 1)}
        task = await there.task(args=args)
        (shown,) = (await there.says("list_tasks"))["tasks"]
        assert shown["args_bytes"] > bounds.MAX_ARGS_SHOWN
        assert len(shown["args_beginning"]) <= bounds.MAX_ARGS_BEGINNING + 1
        assert (await there.says("get_task", task_id=task))["task"]["args"] == args


HELLO = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"tools": {}, "x": "x" * (bounds.MAX_CAPABILITIES + 1)},
    "serverInfo": {"name": "bad", "version": "0"},
    "instructions": "x" * (bounds.MAX_INSTRUCTIONS + 1),
}


@tries("config.bounds.MAX_CAPABILITIES", "config.bounds.MAX_INSTRUCTIONS")
@tries("config.bounds.MAX_TOOLS_NAMED", "config.bounds.MAX_PURPOSE")
async def hello(here: Here) -> None:
    async with session() as there:
        there.bad_says(of="initialize", result=HELLO)
        tools = [tool(n, 1) for n in range(bounds.MAX_TOOLS_NAMED + 7)]
        there.bad_says(of="tools/list", result={"tools": tools})
        await there.says("remove_server", name="bad")
        said = await there.says(
            "add_server", name="bad", command="c", description="d" * (bounds.MAX_PURPOSE + 1)
        )
        assert (len(said["tools"]), said["more"]) == (bounds.MAX_TOOLS_NAMED, 7)
        assert said["instructions"] == "x" * bounds.MAX_INSTRUCTIONS + "…"
        *_, short = (await there.says("list_servers"))["servers"]
        *_, full = (await there.says("list_servers", detail="full"))["servers"]
        assert full["too_large"] is True
        assert short["description"] == "d" * bounds.MAX_PURPOSE + "…"
        whole = await there.says("get_server_status", server="bad")
        assert whole["server"]["capabilities"] == HELLO["capabilities"]


@tries("config.bounds.MAX_OUR_INSTRUCTIONS")
async def our_instructions(here: Here) -> None:
    servers = [attrs.evolve(server(f"server-{n}"), description="x" * 100) for n in range(200)]
    backends = {each.name: SimpleNamespace(server=each) for each in servers}
    for count in (10, 200):
        some = dict(list(backends.items())[:count])
        said = instructions(TOOLS, cast(Any, SimpleNamespace(backends=some)))
        assert len(said.encode()) <= bounds.MAX_OUR_INSTRUCTIONS
        assert "server-0" in said
        assert "x" * 100 not in said
    assert " more" in said


@tries("config.bounds.MAX_SAID")
async def said(here: Here) -> None:
    error = {"code": -32000, "message": "x" * (bounds.MAX_SAID + 1000)}
    async with session() as there:
        answer = json.dumps({"jsonrpc": "2.0", "id": "@ID@", "error": error})
        there.play.instead["tools/call"] = [answer.encode()]
        told = (await there.call("execute_tool", server="bad", tool="echo")).error
        assert len(told["message"]) < bounds.MAX_SAID + 200
        assert told["message"].endswith("…")
        assert str(error["message"]) in json.dumps(told["details"])


# -- the log, and files ---------------------------------------------------------------------------


@tries("config.bounds.MAX_LOG_FIELD", "config.bounds.MAX_LOG_TRACEBACK")
async def log_line(here: Here) -> None:
    logs.write("warn", "test", field="x" * 100_000)
    try:
        raise ValueError("x" * 100_000)
    except ValueError as error:
        logs.crash("test", error)
    for text, most in zip(here.log().splitlines(), LINES, strict=True):
        assert len(text) < most + 500
        assert "characters more" in text


LINES = (bounds.MAX_LOG_FIELD, bounds.MAX_LOG_TRACEBACK)


@tries("logs.frequency.AT_MOST", "logs.frequency.MOST")
async def log_frequency(here: Here) -> None:
    often = frequency.Often(lambda: 0.0)
    assert sum(often.allows("test") for _ in range(frequency.AT_MOST + 1)) == frequency.AT_MOST
    for n in range(frequency.MOST + 5):
        often.add("warn", "test", {"count": 1}, {}, {"peer": n})
    assert often.flush(everything=True) == [("warn", "test", {"count": 4})]
    for n in range(frequency.AT_MOST + 3):
        logs.write("warn", "test", n=n)
    assert "log_lines_left_out" in here.log()


@tries("logs.writer.ROOM")
async def log_queue(here: Here) -> None:
    with full_pipe() as pipe:
        log = writer.Writer(pipe.writes, b"missing %d\n".__mod__, lambda: None, lambda _: None)
        line = b"x" * 1023 + b"\n"
        for _ in range(4 * writer.ROOM // len(line)):
            log.put(line)
        with trio.fail_after(GUARD):
            read = await trio.to_thread.run_sync(pipe.read_until, b"missing ")
        log.close()
    assert len(read) <= 2 * writer.ROOM + 2**20


@tries("config.bounds.MAX_CONFIG_BYTES")
async def config(here: Here) -> None:
    path = here.folder / "config.json"
    path.write_bytes(b" " * bounds.MAX_CONFIG_BYTES + b"{}")
    with pytest.raises(ConfigError, match=str(bounds.MAX_CONFIG_BYTES)):
        load(path)


@tries("web.logins.MAX_LINKS")
async def links(here: Here) -> None:
    async with open_page() as there:
        paths = [await there.link() for _ in range(logins.MAX_LINKS + 1)]
        opened = f"{HTML}\nSec-Fetch-Site: none\nSec-Fetch-Mode: navigate"
        assert "or is too old" in (await there.browser().get(paths[0], opened)).body.decode()
        browser = there.browser()
        assert (await browser.get(paths[1], opened)).status == 200
        assert browser.cookie


@tries("web.logins.MAX_LOGINS")
async def logged_in(here: Here) -> None:
    async with open_page() as there:
        browsers = [await there.logged_in() for _ in range(logins.MAX_LOGINS + 1)]
        assert (await browsers[0].get("/")).headers["location"] == "/login"
        assert (await browsers[1].get("/")).status == 200


@tries("web.page.common.live.MAX_STREAMS")
async def live_pages(here: Here) -> None:
    here.monkeypatch.setattr(live, "MAX_STREAMS", 1)
    async with open_page(tokens=None) as there, there.served.peer() as peer:
        await peer.send(f"GET /live HTTP/1.1\nHost: {there.host}\n\n")
        await peer.until(b"event: changed")
        refused = await there.browser().get("/live")
        assert refused.status == 503
        assert "1 pages" in refused.body.decode()


@tries("web.page.common.live.MAX_STREAMS_OF_ONE")
async def live_pages_of_one(here: Here) -> None:
    here.monkeypatch.setattr(live, "MAX_STREAMS_OF_ONE", 1)
    async with open_page() as there, there.served.peer() as one, there.served.peer() as other:
        ask = f"GET /live HTTP/1.1\nHost: {there.host}\nAuthorization: Bearer "
        await one.send(f"{ask}s3cret\n\n")
        await one.until(b"event: changed")
        refused = await there.ask("GET /live", f"\nAuthorization: Bearer s3cret{JSON}")
        assert refused.status == 503
        assert "1 pages of ada" in refused.body.decode()
        await other.send(f"{ask}minted\n\n")
        await other.until(b"event: changed")


@tries("web.page.now.MAX_SHOWN")
async def first_page(here: Here) -> None:
    here.monkeypatch.setattr(now, "MAX_SHOWN", 1)
    async with open_page(tokens=None) as there, trio.open_nursery() as nursery:
        session = await there.session()
        for _ in range(2):
            nursery.start_soon(session.ask, "x", "elicitation", {}, lambda: "call_ended")
        await wait_all_tasks_blocked()
        assert "and 1 more questions" in await there.browser().page("/")
        nursery.cancel_scope.cancel("seen")


@tries("web.page.servers.listing.MAX_SERVERS")
async def listed_servers(here: Here) -> None:
    here.monkeypatch.setattr(listing_of_servers, "MAX_SERVERS", 1)
    servers = [Server(name, command="x", disabled=True) for name in "ab"]
    async with open_page(tokens=None, servers=servers) as there:
        assert "and 1 more servers" in await there.browser().page("/servers")
        here.monkeypatch.setattr(listing_of_servers, "MAX_SHOWN", 1)
        await there.session("ada/1")
        await there.session("ada/2")
        assert "and 1 more sessions" in await there.browser().page("/servers/a")


@tries("web.page.forms.MAX_FIELDS")
async def fields(here: Here) -> None:
    schema = {"properties": {f"p{n}": {"type": "string"} for n in range(page_forms.MAX_FIELDS + 1)}}
    *found, last = page_forms.fields_of(schema)
    assert (len(found), last.kind) == (page_forms.MAX_FIELDS, "json")
    assert "1 more" in last.hint


@tries("web.page.forms.MAX_OPTIONS")
async def options(here: Here) -> None:
    for more, kind in ((0, "choice"), (1, "text")):
        values = list(map(str, range(page_forms.MAX_OPTIONS + more)))
        (field,) = page_forms.fields_of({"properties": {"x": {"type": "string", "enum": values}}})
        assert field.kind == kind
    half = {"enum": list(range(page_forms.MAX_OPTIONS // 2))}
    found = page_forms.fields_of({"properties": dict.fromkeys("abc", half)})
    assert [field.kind for field in found] == ["choice", "choice", "json"]


@tries("web.page.forms.MAX_DEFAULT")
async def default(here: Here) -> None:
    for length, kept in ((page_forms.MAX_DEFAULT, True), (page_forms.MAX_DEFAULT + 1, False)):
        text = "x" * length
        (field,) = page_forms.fields_of({"properties": {"a": {"type": "string", "default": text}}})
        assert (field.value == text, "too long" in field.hint) == (kept, not kept)


@tries("web.page.common.pages.MAX_NOTICES")
async def notices(here: Here) -> None:
    here.monkeypatch.setattr(views, "MAX_NOTICES", 1)
    said = views.Notices()
    names = [said.put("one"), said.put("two")]
    assert [said.take(name) for name in names] == [None, "two"]


@tries("web.token_file.LONGEST")
async def token(here: Here) -> None:
    path = here.folder / "token"
    path.write_text("x" * (token_file.LONGEST + 1))
    path.chmod(0o600)
    with pytest.raises(token_file.BadToken, match=r"no token|cannot read"):
        token_file.read_token(path)


@tries("backend.catalogue.shelf.LONGEST")
async def file_of_a_server(here: Here) -> None:
    folder = here.folder / shelf.FOLDER
    folder.mkdir()
    path = folder / "x.json"
    path.write_text(" " * (shelf.LONGEST + 1))
    async with shelf.open_memory(here.folder) as entries:
        assert len(entries) == 0
    assert not path.exists()
    assert f"longer than {shelf.LONGEST} bytes" in here.log()


@tries("commands.common.remote.MAX_ANSWER")
async def answer(here: Here) -> None:
    here.monkeypatch.setattr(remote, "MAX_ANSWER", 100)

    class Socket:
        def makefile(self, mode: str) -> io.BytesIO:
            return io.BytesIO(b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 101)

    response = HTTPResponse(cast(Any, Socket()))
    response.begin()
    with pytest.raises(HTTPException, match="more than 100 bytes"):
        remote.body_of(response)


# -- the walk -------------------------------------------------------------------------------------


@pytest.fixture
def log() -> Iterator[list[bytes]]:
    """What the log says, as it is written."""
    lines: list[bytes] = []
    handler = logs._Handler(JsonLines())
    handler.writer = cast(Any, SimpleNamespace(put=lines.append))  # in place of stderr
    ours = logging.getLogger(OURS)
    ours.addHandler(handler)
    yield lines
    ours.removeHandler(handler)


@pytest.mark.parametrize("trial", dict.fromkeys(TRIALS.values()), ids=lambda trial: trial.__name__)
async def test_beyond_a_bound_somebody_is_told(
    trial: Trial,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    log: list[bytes],
    mock_clock: MockClock,
) -> None:
    mock_clock.rate = 1
    with trio.fail_after(GUARD):
        await trial(Here(monkeypatch, tmp_path, lambda: b"".join(log).decode()))


def test_every_bound_is_listed_once_and_tried() -> None:
    names = listed()
    assert sorted(names) == sorted(TRIALS)
    assert all(value(name) > 0 for name in names)


def test_whatever_counts_is_listed() -> None:
    limits = {
        f"limits.{field.name}" for field in attrs.fields(Limits) if not field.name.endswith("_ms")
    }
    constants = {
        ".".join((*path.relative_to(PACKAGE).with_suffix("").parts, name))
        for path in PACKAGE.rglob("*.py")
        for name in re.findall(r"^(MAX_\w+)\b.* = ", path.read_text("utf-8"), re.MULTILINE)
        if not name.endswith("_MS")  # a time
    }
    assert len(constants) > 40
    assert sorted((limits | constants) - {*listed()}) == sorted(NO_BOUNDS)
