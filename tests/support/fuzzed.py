"""Who is there while somebody lies: a client with a bad server, and a neighbour with a good one.

Also what has to be true of them meanwhile, whatever the bad server says and the client asks: each
request is answered, nobody notices anything of it, no bug is logged, and no task keeps the others
waiting. Knows nothing of how the lies are made.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import attrs

from asgi_client import LATEST, Client
from asgi_world import World as Memory
from asgi_world import open_world
from emceepee_trio.backend.http import transport as http
from emceepee_trio.config import Config, Health, Limits, Policy, Server
from stalls import check_so_far
from watching import check_message, no_bugs, strict

Json = dict[str, Any]

GUARD = 60
OFTEN = Health(interval_ms=1000)
NOW = 0.5
"""Seconds for what is answered at once, on a clock that nothing but waiting moves."""

RELAYED = {"execute_tool", "get_task_result", "get_prompt", "read_resource"}
"""Tools whose contents are the server's own."""
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
"""What is asked of a server."""
ASKING: dict[str, tuple[str, Json]] = {
    "initialize": ("get_server_status", {}),
    "server/discover": ("get_server_status", {}),
    "ping": ("get_server_status", {}),
    "tools/call": ("execute_tool", {**ECHO, "timeout_ms": 100}),
    "tools/list": ("list_tools", {}),
    "resources/list": ("list_resources", {}),
    "resources/templates/list": ("list_resource_templates", {}),
    "resources/read": ("read_resource", {"uri": "demo://one"}),
    "resources/subscribe": ("subscribe_resource", {"uri": "demo://one"}),
    "resources/unsubscribe": ("unsubscribe_resource", {"uri": "demo://one"}),
    "prompts/list": ("list_prompts", {}),
    "prompts/get": ("get_prompt", {"name": "greet"}),
    "completion/complete": (
        "complete",
        {"ref": {"prompt": "greet"}, "argument": {"name": "whom", "value": "a"}},
    ),
    "logging/setLevel": ("set_log_level", {"level": "debug"}),
}
"""Which tool asks a server for what."""
SESSION: list[tuple[str, Json]] = [
    ("set_roots", {"roots": [{"uri": "file:///tmp"}]}),
    ("list_servers", {}),
    ("get_logs", {"limit": 500}),
    ("await_activity", {"timeout_ms": 100}),
    ("await_activity", {"timeout_ms": 0, "last_event_id": "none"}),
]
"""What is asked of a session."""


@attrs.define(eq=False)
class World:
    memory: Memory
    client: Client
    neighbour: Client

    async def call(self, tool: str, /, **arguments: Any) -> Any:
        """What a tool of ours says; every response is checked, and there has to be one."""
        params = {"name": tool, "arguments": arguments, "_meta": {"progressToken": "t"}}
        exchange = await self.client.request("tools/call", id=f"{tool}", **params).complete()
        assert exchange.status == 200, (tool, exchange.status, bytes(exchange.body))
        datas = [e.data for e in exchange.events] if exchange.is_stream else [bytes(exchange.body)]
        messages = [check_message(strict(data), [tool]) for data in datas if data]
        result = messages[-1]["result"]
        if tool in RELAYED:
            return result
        assert isinstance(result["content"], list)
        said = strict(result["content"][0]["text"])
        if isinstance(said, dict) and said.keys() >= {"result", "omitted", "next"}:  # a preview
            read = self.client.request("resources/read", uri=result["content"][1]["uri"])
            (whole,) = (await read.answer())["result"]["contents"]
            said = strict(whole["text"])
        return said

    async def all_of(self, tool: str, key: str, /, **arguments: Any) -> list[Any]:
        """The entries of a list of ours, of all pages."""
        said = await self.call(tool, **arguments)
        found: list[Any] = said[key]
        while "cursor" in said:
            said = await self.call(tool, **arguments, cursor=said["cursor"])
            found += said[key]
        return found

    async def add(self, server: str, **entry: Any) -> bool:
        """Whether it is connected."""
        entry |= {"connect_timeout_ms": 1000, "keep_on_failure": True}
        added = await self.call("add_server", name=server, **entry)
        return bool(added.get("status") == "connected")

    async def use(self, server: str, **entry: Any) -> None:
        """Everything that can be done with a server, and all that it may have asked for."""
        for tool, arguments in BAD if await self.add(server, **entry) else BAD[:2]:
            await self.call(tool, server=server, **arguments)
        for tool, arguments in SESSION:
            await self.call(tool, **arguments)
        for task in await self.all_of("list_tasks", "tasks", include_completed=True):
            await self.call("get_task", task_id=task["task_id"])
            await self.call("get_task_result", task_id=task["task_id"], timeout_ms=1500)
            await self.call("cancel_task", task_id=task["task_id"])
        await self.answer_all()
        await self.call("reconnect_server", name=server)
        await self.call("execute_tool", server=server, **ECHO, timeout_ms=100)

    async def cancel_all(self) -> None:
        for task in await self.all_of("list_tasks", "tasks"):
            await self.call("cancel_task", task_id=task["task_id"])

    async def open_questions(self) -> tuple[list[str], list[str]]:
        forms = await self.all_of("get_elicitations", "elicitations")
        samples = await self.all_of("get_sampling_requests", "sampling_requests")
        return [each["requestId"] for each in forms], [each["requestId"] for each in samples]

    async def answer_all(self) -> tuple[int, int]:
        """How much servers have asked; none of it stays open."""
        forms, samples = await self.open_questions()
        for asked in forms:
            given = {"request_id": asked, "action": "accept"}
            await self.call("respond_to_elicitation", **given, content={"name": "ada", "age": 1})
            await self.call("cancel_elicitation_request", request_id=asked)
        for asked in samples:
            await self.call("respond_to_sampling", request_id=asked, model="m", content="x")
        if forms or samples:  # whoever has been answered may ask again
            left, others = await self.open_questions()
            assert not {*left, *others} & {*forms, *samples}
        return len(forms), len(samples)

    async def undisturbed(self, *clients: Client) -> None:
        for client in clients or (self.client, self.neighbour):
            asked: Json = {"server": "good", "tool": "echo", "args": {"text": "mine"}}
            asked["timeout_ms"] = GUARD * 1000
            content = (await client.call("execute_tool", **asked))["content"]
            assert "mine" in content[0]["text"]
        # What he hears is of his own server.
        said = await self.neighbour.call("await_activity", timeout_ms=0)
        groups = json.loads(said["content"][0]["text"])["events"]
        assert {group["server"] for group in groups} <= {"good"}

    def connections(self) -> list[object]:
        """To the good server, of either of them; that it has another one is a loss as well."""
        sessions = [client.own.session for client in (self.client, self.neighbour)]
        return [session.backends["good"].client for session in sessions]


@asynccontextmanager
async def open_clients(
    good: Server,
    limits: Limits,
    guard: float = GUARD,
    *,
    health: Health = OFTEN,
    version: str = LATEST,
) -> AsyncGenerator[World]:
    """A client who adds a bad server, and a neighbour."""
    http._certificates()  # else a thread reads them, and a clock that jumps jumps over that
    config = Config((good,), limits, health, policy=Policy(spawn="allow"))
    with no_bugs():
        async with open_world(config, guard) as memory:
            client, neighbour = memory.client("fuzzer"), memory.client("neighbour")
            for each in (client, neighbour):
                assert (await each.initialize(version)).status == 200
            world = World(memory, client, neighbour)
            await world.undisturbed()  # a session that is never used would end
            before = world.connections()
            yield world
            await world.undisturbed()
            assert world.connections() == before
    check_so_far()
