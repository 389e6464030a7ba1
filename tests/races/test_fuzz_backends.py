"""Whatever a server answers, tells and asks: who calls it gets an answer, nobody else notices.

A server in memory, behind the real parser, on a clock that jumps; a program on real pipes; and a
server behind a URL, in either era. What they say is nearly right, see `mistakes.py`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import attrs
import trio
from hypothesis import given, settings
from hypothesis import strategies as st
from trio.testing import MockClock

from asgi_client import Client
from asgi_world import open_world
from emceepee_trio.config import Config, Health, Limits, Policy, Server
from fake_backends import HERE
from http_server import QUIET, HttpServer, Reply, Request, open_http_server
from mistakes import MORE, SMALL, bodies
from scripted import FORM, ID, RESULTS, SAMPLE, TOKEN, Play, scripted
from watching import check_message, no_bugs, strict

Json = dict[str, Any]
Lines = dict[str, list[bytes]]

QUICK = Limits(message=SMALL, execute_timeout_ms=150, list_patience_ms=100)
"""For servers that answer in real time, or not."""
LIMITS = Limits(message=SMALL, execute_timeout_ms=2000, question_timeout_ms=5000)
GUARD = 60
FEWER = settings(max_examples=max(10, settings().max_examples // 10))
"""Each of these takes as long as many of the others."""

# -- what it says --------------------------------------------------------------------------------


def message(method: str, **params: Any) -> Json:
    return {"jsonrpc": "2.0", "method": method, "params": params}


def question(request_id: Any, method: str, params: Json) -> Json:
    return {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}


URL_FORM = {"mode": "url", "message": "go", "url": "https://example.com", "elicitationId": "e"}
SAID = [
    message("notifications/progress", progressToken="@TOKEN@", progress=1, total=2, message="m"),
    message("notifications/message", level="warning", logger="l", data={"text": "x"}),
    message("notifications/tools/list_changed"),
    message("notifications/resources/list_changed"),
    message("notifications/prompts/list_changed"),
    message("notifications/resources/updated", uri="demo://one"),
    message("notifications/cancelled", requestId="q1", reason="r"),
    message("notifications/elicitation/complete", elicitationId="e"),
    message("notifications/subscriptions/acknowledged", notifications={"toolsListChanged": True}),
    message("notifications/of/its/own", x=1),
    question("q1", "elicitation/create", FORM),
    question(2, "elicitation/create", URL_FORM),
    question("q3", "sampling/createMessage", SAMPLE),
    question("q4", "roots/list", {}),
    question(5, "ping", {}),
    question("q6", "no/such", {}),
]
INPUT = {
    "resultType": "input_required",
    "inputRequests": {
        "a": {"method": "elicitation/create", "params": FORM},
        "b": {"method": "roots/list"},
    },
    "requestState": "state",
}


def answer(result: Any) -> Json:
    return {"jsonrpc": "2.0", "id": "@ID@", "result": result}


def results(method: str) -> list[Json]:
    """What an honest server may answer: its result, an error."""
    error = {"code": -32602, "message": "no", "data": {"why": ["x"]}}
    more = [{**RESULTS[method], "nextCursor": "more"}] if method.endswith("/list") else []
    if method == "tools/call":
        more = [INPUT, {**RESULTS[method], "isError": True}]
    return [
        *map(answer, [RESULTS[method], *more]),
        {"jsonrpc": "2.0", "id": "@ID@", "error": error},
    ]


@st.composite
def plays(draw: st.DrawFn) -> Lines:
    """What is said instead of the right answers, by method; most answers are right."""
    instead: Lines = {}
    for method in draw(st.sets(st.sampled_from(sorted(RESULTS)), min_size=1, max_size=3)):
        said = draw(st.lists(bodies(st.sampled_from(SAID)), max_size=3))
        said += draw(st.lists(bodies(st.sampled_from(results(method))), max_size=2))
        instead[method] = said
    if draw(st.booleans()):
        instead["tools/call"] = [
            *draw(st.lists(bodies(st.sampled_from(SAID)), min_size=1, max_size=4)),
            *draw(st.lists(bodies(st.sampled_from(results("tools/call"))), max_size=1)),
        ]
    if draw(st.integers(0, 3)) == 0:
        instead["start"] = draw(st.lists(bodies(st.sampled_from(SAID)), max_size=2))
    return instead


eras = st.sampled_from(["handshake", "handshake", "modern"])


# -- what is asked of it -------------------------------------------------------------------------

RELAYED = {"execute_tool", "get_task_result", "get_prompt", "read_resource"}
"""Their contents are the server's own."""
ECHO = {"tool": "echo", "args": {"text": "x"}}
BAD: list[tuple[str, Json]] = [
    ("execute_tool", {**ECHO, "timeout_ms": 100}),
    ("list_tools", {"detail": "full"}),
    ("list_tools", {"detail": "summary"}),
    ("list_resources", {}),
    ("list_resource_templates", {}),
    ("list_prompts", {}),
    ("read_resource", {"uri": "demo://one"}),
    ("subscribe_resource", {"uri": "demo://one"}),
    ("get_prompt", {"name": "greet", "arguments": {"whom": "ada"}}),
    ("complete", {"ref": {"prompt": "greet"}, "argument": {"name": "whom", "value": "a"}}),
    ("set_log_level", {"level": "debug"}),
    ("execute_tool", {**ECHO, "timeout_ms": 0, "ttl_ms": 1000}),
    ("get_server_status", {}),
    ("unsubscribe_resource", {"uri": "demo://one"}),
    ("get_notifications", {}),
    ("get_logs", {"clear": False}),
]
SESSION: list[tuple[str, Json]] = [
    ("set_roots", {"roots": [{"uri": "file:///tmp"}]}),
    ("list_servers", {}),
    ("get_logs", {"limit": 500}),
    ("await_activity", {"timeout_ms": 100}),
    ("await_activity", {"timeout_ms": 0, "last_event_id": "none"}),
]


@attrs.define(eq=False)
class World:
    client: Client
    neighbour: Client

    async def call(self, tool: str, /, **arguments: Any) -> Any:
        """What a tool of ours says; every response is checked, and there has to be one."""
        params = {"name": tool, "arguments": arguments, "_meta": {"progressToken": "t"}}
        exchange = await self.client.request("tools/call", id=f"{tool}", **params).complete()
        assert exchange.status == 200
        datas = [e.data for e in exchange.events] if exchange.is_stream else [bytes(exchange.body)]
        messages = [check_message(strict(data), [tool]) for data in datas if data]
        result = messages[-1]["result"]
        if tool in RELAYED:
            return result
        assert isinstance(result["content"], list)
        return strict(result["content"][0]["text"])

    async def use(self, server: str, **entry: Any) -> None:
        """Everything that can be done with a server, and all that it may have asked for."""
        entry |= {"connect_timeout_ms": 1000, "keep_on_failure": True}
        added = await self.call("add_server", name=server, **entry)
        for tool, arguments in BAD if added.get("status") == "connected" else BAD[:2]:
            await self.call(tool, server=server, **arguments)
        for tool, arguments in SESSION:
            await self.call(tool, **arguments)
        for task in (await self.call("list_tasks", include_completed=True))["tasks"]:
            await self.call("get_task", task_id=task["task_id"])
            await self.call("get_task_result", task_id=task["task_id"], timeout_ms=1500)
            await self.call("cancel_task", task_id=task["task_id"])
        for asked in (await self.call("get_elicitations"))["elicitations"]:
            given = {"request_id": asked["requestId"], "action": "accept"}
            await self.call("respond_to_elicitation", **given, content={"name": "ada", "age": 1})
            await self.call("cancel_elicitation_request", request_id=asked["requestId"])
        for asked in (await self.call("get_sampling_requests"))["sampling_requests"]:
            given = {"request_id": asked["requestId"], "model": "m"}
            await self.call("respond_to_sampling", **given, content="x")
        await self.call("reconnect_server", name=server)
        await self.call("execute_tool", server=server, **ECHO, timeout_ms=100)

    async def undisturbed(self) -> None:
        for client in (self.client, self.neighbour):
            asked: Json = {"server": "good", "tool": "echo", "args": {"text": "mine"}}
            asked["timeout_ms"] = GUARD * 1000
            content = (await client.call("execute_tool", **asked))["content"]
            assert "mine" in content[0]["text"]
        # What he hears is of his own server.
        said = await self.neighbour.call("await_activity", timeout_ms=0)
        groups = json.loads(said["content"][0]["text"])["events"]
        assert {group["server"] for group in groups} <= {"good"}


@asynccontextmanager
async def open_clients(good: Server, limits: Limits, guard: float = GUARD) -> AsyncGenerator[World]:
    """A client who adds a bad server, and a neighbour."""
    config = Config((good,), limits, Health(interval_ms=1000), policy=Policy(spawn="allow"))
    with no_bugs():
        async with open_world(config, guard) as memory:
            client, neighbour = memory.client("fuzzer"), memory.client("neighbour")
            for each in (client, neighbour):
                assert (await each.initialize()).status == 200
            world = World(client, neighbour)
            await world.undisturbed()  # a session that is never used would end
            yield world


SOON = {"enabled": True, "base_delay_ms": 50, "max_delay_ms": 50, "jitter": 0}


# -- in memory -----------------------------------------------------------------------------------


@MORE
@given(plays(), eras)
def test_anything_from_a_server_in_memory(instead: Lines, era: str) -> None:
    async def scenario() -> None:
        with scripted(Play(instead, era)):
            async with open_clients(Server("good", command="/x"), LIMITS, 10**6) as world:
                await world.use("bad", command="/x", restart=SOON)
                await world.undisturbed()

    trio.run(scenario, clock=MockClock(autojump_threshold=0))


# -- a program -----------------------------------------------------------------------------------


@asynccontextmanager
async def open_good() -> AsyncGenerator[Server]:
    async with open_http_server(HttpServer()) as server:
        yield Server("good", url=server.url)


@QUIET
@FEWER
@given(plays(), eras)
def test_anything_from_a_program(instead: Lines, era: str) -> None:
    known = {k: v for k, v in RESULTS.items() if era == "modern" or k != "server/discover"}
    lines = {method: [line.hex() for line in said] for method, said in instead.items()}

    async def scenario(script: Path) -> None:
        async with open_good() as good, open_clients(good, QUICK) as world:
            argv = ["-I", "-S", str(HERE / "player.py"), str(script)]
            await world.use("bad", command=sys.executable, args=argv, restart=SOON)
            await world.undisturbed()

    with TemporaryDirectory() as folder:
        script = Path(folder, "script.json")
        script.write_text(json.dumps({"results": known, "instead": lines}), "utf-8")
        trio.run(scenario, script)


# -- behind a URL --------------------------------------------------------------------------------

STATUSES = [*[200] * 12, 202, 204, 400, 401, 403, 404, 405, 409, 413, 429, 500, 503, 599]
JSON, EVENTS = "application/json", "text/event-stream"
KINDS = [*[JSON] * 6, *[EVENTS] * 6, "text/plain", "", "application/json; charset=utf-16", "x"]
SESSION_IDS = [None, None, "session", "", "a b", "x" * 5000, "s,s"]
Era = Literal["handshake", "modern"]


@attrs.frozen
class Manner:
    """How it says it."""

    status: int
    kind: str
    session: str | None
    before: bytes
    between: bytes


manners = st.builds(
    Manner,
    st.sampled_from(STATUSES),
    st.sampled_from(KINDS),
    st.sampled_from(SESSION_IDS),
    st.sampled_from(
        [b"", b"", b"", b"retry: 1\n", b"id: 1\n", b"\xef\xbb\xbf", b"x\n", b": c\n\n"]
    ),
    st.sampled_from([b"\n\n", b"\n\n", b"\r\n\r\n", b"\r\r", b"\n", b"", b"\ndata: x\n\n"]),
)


@attrs.frozen
class Spoiler:
    instead: Lines
    manner: Manner

    async def __call__(self, request: Request, reply: Reply) -> bool:
        if request.verb == "GET" and "start" in self.instead:
            await self.say(reply, self.instead["start"])
            return True
        message = request.message if request.verb == "POST" else {}
        method = str(message.get("method"))
        if method in self.instead:
            params = message.get("params", {})
            token = json.dumps(params.get("_meta", {}).get("progressToken")).encode()
            request_id = json.dumps(message.get("id")).encode()
            said = [
                line.replace(ID, request_id).replace(TOKEN, token) for line in self.instead[method]
            ]
            await self.say(reply, said)
            return True
        if method in RESULTS and method not in {"initialize", "server/discover", "tools/call"}:
            await reply.json({"jsonrpc": "2.0", "id": message["id"], "result": RESULTS[method]})
            return True
        return False

    async def say(self, reply: Reply, lines: list[bytes]) -> None:
        how = self.manner
        named = {} if how.session is None else {"mcp_session_id": how.session}
        if how.kind == EVENTS:
            await reply.start(how.status, how.kind, **named)
            for line in lines:
                await reply.data(how.before + b"event: message\ndata: " + line + how.between)
            await reply.end()
        else:
            body = b"" if how.status in {202, 204} else b"".join(lines[-1:])
            await reply.whole(how.status, body, how.kind, **named)


@QUIET
@FEWER
@given(plays(), st.sampled_from(["handshake", "modern"]), manners)
def test_anything_from_a_server_behind_a_url(instead: Lines, era: Era, manner: Manner) -> None:
    async def scenario() -> None:
        bad = HttpServer(era, listens=True, spoil=Spoiler(instead, manner))
        async with open_good() as good, open_http_server(bad), open_clients(good, QUICK) as world:
            await world.use("bad", url=bad.url, reconnect=SOON)
            await world.undisturbed()

    trio.run(scenario)
