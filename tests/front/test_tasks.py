"""The protocol's tasks: for every server behind us, to clients that know the extension."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import attrs
import pytest
from trio.testing import MockClock, wait_all_tasks_blocked

from asgi_client import META, MODERN, Client, Exchange, Json
from asgi_world import World, open_world
from emceepee_trio.config import parse
from emceepee_trio.front.tasks import EXTENSION
from memory_peers import scripted
from play import FORM, Era, Play

EXTENSIONS: Json = {"extensions": {EXTENSION: {}}}
ABLE = {**EXTENSIONS, "elicitation": {}}
MISSING = {"requiredCapabilities": EXTENSIONS}


def result(**result: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": "@ID@", "result": result}).encode()


def error(**error: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": "@ID@", "error": error}).encode()


@attrs.define(eq=False)
class Tasking:
    """A client that declares with each request what it *can*."""

    world: World
    client: Client
    play: Play
    can: Json = attrs.field(factory=lambda: dict(ABLE))
    query: str = ""

    def open(self, method: str, /, **params: Any) -> Exchange:
        meta = {f"{META}clientCapabilities": self.can}
        return self.client.modern(method, meta=meta, query=self.query, **params)

    async def ask(self, method: str, /, **params: Any) -> Json:
        answer = await self.open(method, **params).answer()
        assert "result" in answer, answer
        said: Json = answer["result"]
        return said

    async def call(self, tool: str, /, **arguments: Any) -> Json:
        return await self.ask("tools/call", name=tool, arguments=arguments)

    async def execute(self, tool: str, **more: Any) -> Json:
        return await self.call("execute_tool", server="bad", tool=tool, **more)

    async def get(self, task: Json) -> Json:
        return await self.ask("tasks/get", taskId=task["taskId"])

    async def ended(self, task: Json) -> Json:
        """As its stream tells it last."""
        stream = self.open("subscriptions/listen", notifications={"taskIds": [task["taskId"]]})
        number = 1
        while True:
            said = await stream.message(number)
            assert said["method"] == "notifications/tasks"
            told: Json = said["params"]
            if told["status"] in {"completed", "failed", "cancelled"}:
                stream.drop()
                told.pop("_meta")
                return told
            number += 1


@asynccontextmanager
async def tasking(
    path: str = "/mcp", of: Era = "handshake", **settings: Any
) -> AsyncGenerator[Tasking]:
    servers = {"mcpServers": {"bad": {"command": "bad"}}}
    config = parse({**servers, **settings}, folder=Path.cwd(), environ={}).config
    with scripted(Play(era=of)) as play:
        async with open_world(config) as world:
            client = world.client()
            client.path, _, query = path.partition("?")
            yield Tasking(world, client, play, query=query)


async def test_a_promoted_call_is_a_task_of_the_protocol() -> None:
    async with tasking() as tasking_:
        task = await tasking_.execute("never", timeout_ms=0)
        assert (task["resultType"], task["status"]) == ("task", "working")
        assert task.keys() >= {"taskId", "createdAt", "lastUpdatedAt", "ttlMs", "pollIntervalMs"}
        said = await tasking_.get(task)
        assert (said["resultType"], said["status"]) == ("complete", "working")
        assert (await tasking_.ask("tasks/cancel", taskId=task["taskId"]))["resultType"] == (
            "complete"
        )
        said = await tasking_.get(task)
        assert said["status"] == "cancelled"
        assert not said.keys() & {"result", "error"}
        # Who stops what has stopped is not told off.
        await tasking_.ask("tasks/cancel", taskId=task["taskId"])


async def test_who_does_not_know_tasks_gets_none() -> None:
    async with tasking() as tasking_:
        task = await tasking_.execute("never", timeout_ms=0)
        tasking_.can = {}
        said = await tasking_.execute("never", timeout_ms=0)
        assert said["resultType"] == "complete"
        assert "Promoted to task" in said["content"][0]["text"]
        for method in ("tasks/get", "tasks/update", "tasks/cancel"):
            refused = tasking_.open(method, taskId=task["taskId"], inputResponses={})
            status, error = await refused.error()
            assert (status, error["code"], error["data"]) == (400, -32021, MISSING), method
        listen = tasking_.open("subscriptions/listen", notifications={"taskIds": ["x"]})
        assert (await listen.error())[1]["code"] == -32021


async def test_what_is_no_request_of_it_is_not_there() -> None:
    async with tasking() as tasking_:
        for method in ("tasks/result", "tasks/list"):
            status, error = await tasking_.open(method, taskId="x").error()
            assert (status, error["code"]) == (404, -32601)
        status, error = await tasking_.open("tasks/get", taskId="x").error()
        assert (status, error["code"]) == (400, -32602)
        assert "no task 'x'" in error["message"]
        meta = {f"{META}clientCapabilities": ABLE}
        for sent in ({"mcp_name": "y"}, {"mcp_name": None}):
            whole = tasking_.client.modern("tasks/get", meta=meta, headers=sent, taskId="x")
            status, error = await whole.error()
            assert (status, error["code"]) == (400, -32020)


async def test_a_question_of_a_task_is_answered_with_an_update() -> None:
    async with tasking() as tasking_:
        task = await tasking_.execute("ask", timeout_ms=0)
        while (said := await tasking_.get(task))["status"] == "working":
            pass
        assert said["status"] == "input_required"
        ((key, asked),) = said["inputRequests"].items()
        assert asked == {"method": "elicitation/create", "params": FORM}
        named = {"taskId": task["taskId"]}
        wrong = {"x": {"action": "accept"}, key: {"action": "accept", "content": {"age": "?"}}}
        refused = tasking_.open("tasks/update", **named, inputResponses=wrong)
        assert (await refused.error())[1]["code"] == -32602
        right = {key: {"action": "accept", "content": {"name": "ada"}}}
        assert (await tasking_.ask("tasks/update", **named, inputResponses=right)).keys() == {
            "resultType",
            "_meta",
        }
        told = await tasking_.ended(task)
        assert told["status"] == "completed"
        got = told["result"]["structuredContent"]["got"]["result"]
        assert got == {"action": "accept", "content": {"name": "ada"}}
        assert "inputRequests" not in told
        said = await tasking_.get(task)
        del said["resultType"], said["_meta"]
        assert said == told
        # An answer that comes again changes nothing.
        await tasking_.ask("tasks/update", **named, inputResponses=right)


async def test_it_has_failed_only_for_an_error_of_the_protocol() -> None:
    limits = {"execute_timeout_ms": 1}
    async with tasking("/servers/bad/mcp", limits=limits) as tasking_:
        task = await tasking_.call("never")
        assert task["resultType"] == "task"
        session = tasking_.world.manager.get("local/main")
        assert session is not None
        (call,) = session.calls.under_way("bad")
        assert call.id == task["taskId"]
        await tasking_.ask("tasks/cancel", taskId=task["taskId"])
        tasking_.can = {}  # then its answer is waited for
        tasking_.play.instead["tools/call"] = [error(code=-32050, message="no", data=[1])]
        answer = await tasking_.open("tools/call", name="x", arguments={}).answer()
        assert answer["error"] == {"code": -32050, "message": "no", "data": [1]}
    async with tasking() as tasking_:
        tasking_.play.instead["tools/call"] = [result(content=[], isError=True)]
        task = await tasking_.execute("x", timeout_ms=0)
        told = await tasking_.ended(task)
        assert (told["status"], told["result"]["isError"]) == ("completed", True)
        assert "error" not in told


async def test_what_a_tool_says_of_its_failure_is_a_result() -> None:
    async with tasking("/servers/bad/mcp", limits={"execute_timeout_ms": 1}) as tasking_:
        task = await tasking_.call("never")
        said = {"content": [], "isError": True}
        tasking_.play.at_last = {"result": said}
        await tasking_.ask("tools/list")
        told = await tasking_.ended(task)
        assert (told["status"], told["result"]["isError"]) == ("completed", True)
        assert "error" not in told


async def test_a_failed_task_has_the_error_that_its_server_answered() -> None:
    async with tasking("/servers/bad/mcp", limits={"execute_timeout_ms": 1}) as tasking_:
        task = await tasking_.call("never")
        failed = {"code": -32050, "message": "no", "data": [1]}
        tasking_.play.at_last = {"error": failed}
        await tasking_.ask("tools/list")
        told = await tasking_.ended(task)
        assert (told["status"], told["error"]) == ("failed", failed)
        assert "no" in told["statusMessage"]


@pytest.mark.parametrize("path", ["/mcp", "/mcp?view=native", "/servers/bad/mcp"])
async def test_only_the_modern_era_has_it(path: str) -> None:
    async with tasking(path) as tasking_:
        tasking_.can = {}
        can = (await tasking_.ask("server/discover"))["capabilities"]
        assert can["extensions"] == {EXTENSION: {}}
        client = tasking_.client
        client.capabilities = ABLE
        hello = (await (await client.initialize(query=tasking_.query)).answer())["result"]
        assert EXTENSION not in hello["capabilities"].get("extensions", {})
        # Also to who says that it knows them there.
        assert (await client.request("tasks/get", taskId="x").answer())["error"]["code"] == -32601
        if not path.startswith("/servers"):
            slow = {"server": "bad", "tool": "never", "timeout_ms": 0}
            said = (await client.tool("execute_tool", **slow).answer())["result"]
            assert "Promoted to task" in said["content"][0]["text"]
            assert "taskId" not in said


async def test_natively_a_call_becomes_one_as_well() -> None:
    async with tasking("/mcp?view=native", limits={"execute_timeout_ms": 1}) as tasking_:
        task = await tasking_.call("bad__never")
        assert (task["resultType"], task["status"]) == ("task", "working")
        assert (await tasking_.get(task))["status"] == "working"
        tasking_.play.at_last = {"result": {"content": [], "isError": False, "x": 1}}
        await tasking_.ask("tools/call", name="bad__echo", arguments={})
        told = await tasking_.ended(task)
        assert (told["status"], told["result"]["x"]) == ("completed", 1)


async def test_a_task_is_of_its_principal_alone() -> None:
    async with tasking() as tasking_:
        task = (await tasking_.execute("never", timeout_ms=0))["taskId"]
        other = Tasking(tasking_.world, tasking_.world.client("bob"), tasking_.play)
        for method in ("tasks/get", "tasks/update", "tasks/cancel"):
            status, error = await other.open(method, taskId=task, inputResponses={}).error()
            assert (status, error["code"]) == (400, -32602), method
        stream = other.open("subscriptions/listen", notifications={"taskIds": [task]})
        assert (await stream.message(0))["params"]["notifications"] == {}
        stream.drop()
        assert (await tasking_.get({"taskId": task}))["status"] == "working"


@pytest.mark.parametrize("path", ["/mcp", "/servers/bad/mcp"])
async def test_one_whose_time_is_over_has_failed(path: str, autojump_clock: MockClock) -> None:
    """There is no word for it."""
    limits = {"execute_timeout_ms": 1, "task_ttl_ms": 5000}
    async with tasking(path, limits=limits) as tasking_:
        if path == "/mcp":
            task = await tasking_.execute("never", timeout_ms=0)
        else:
            task = await tasking_.call("never")
        told = await tasking_.ended(task)
        assert told["status"] == "failed"
        assert "result" not in told
        assert "expired" in told["error"]["message"]
        assert told["error"]["message"] == told["statusMessage"]


async def test_a_stream_tells_of_a_task_what_is_new_alone() -> None:
    async with tasking() as tasking_:
        task = (await tasking_.execute("never", timeout_ms=0))["taskId"]
        wanted = {"taskIds": [task, "none"]}
        stream = tasking_.open("subscriptions/listen", notifications=wanted)
        acknowledged = await stream.message(0)
        assert acknowledged["params"]["notifications"] == {"taskIds": [task]}
        assert (await stream.message(1))["params"]["status"] == "working"
        session = tasking_.world.manager.get("local/main")
        assert session is not None
        session.calls.get(task).news.ring()  # as progress does
        await wait_all_tasks_blocked()
        await tasking_.ask("tasks/cancel", taskId=task)
        assert (await stream.message(2))["params"]["status"] == "cancelled"
        stream.drop()


async def test_a_task_that_a_modern_server_makes_is_one_with_ours() -> None:
    async with tasking(of="modern") as tasking_:
        instead = tasking_.play.instead
        working = {"taskId": "theirs", "status": "working", "pollIntervalMs": 1}
        instead["tools/call"] = [result(resultType="task", **working)]
        instead["tasks/get"] = [
            result(taskId="theirs", status="completed", result={"content": [], "x": 1})
        ]
        said = await tasking_.execute("x")
        assert (said["resultType"], said["x"]) == ("complete", 1)
        assert sum(m.get("method") == "tasks/get" for m in tasking_.play.heard) == 1
        failed = {"code": -32050, "message": "broken"}
        instead["tasks/get"] = [result(taskId="theirs", status="failed", error=failed)]
        said = await tasking_.execute("x")
        assert said["isError"] is True
        assert "broken" in said["content"][0]["text"]


async def test_what_such_a_task_says_at_length_is_read_where_somebody_needs_it() -> None:
    rows = [{"id": n, "name": f"row {n}"} for n in range(10_000)]
    done = {"content": [{"type": "text", "text": "x" * 40_000}], "structuredContent": {"a": rows}}
    async with tasking(of="modern") as tasking_:
        instead = tasking_.play.instead
        working = {"taskId": "theirs", "status": "working", "pollIntervalMs": 1}
        instead["tools/call"] = [result(resultType="task", **working)]
        instead["tasks/get"] = [result(taskId="theirs", status="completed", result=done)]
        said = await tasking_.execute("echo")
        shapes = [json.loads(said["content"][n]["text"])["shape"] for n in (0, 2)]
        assert shapes == [
            "text of 1 line",
            "object with keys a (array of 10,000 objects with keys id, name)",
        ]
        failed = {"code": -32050, "message": "y" * 40_000, "data": {"structuredContent": rows}}
        instead["tasks/get"] = [result(taskId="theirs", status="failed", error=failed)]
        said = await tasking_.execute("echo")
        assert "yyy" in said["content"][0]["text"]


async def test_where_both_know_tasks_they_are_between_them() -> None:
    async with tasking("/servers/bad/mcp", of="modern") as tasking_:
        instead = tasking_.play.instead
        can: Json = {"tools": {}, **EXTENSIONS}
        instead["server/discover"] = [result(supportedVersions=[MODERN], capabilities=can)]
        working = {"taskId": "theirs", "status": "working"}
        instead["tools/call"] = [result(resultType="task", **working)]
        instead["tasks/get"] = [result(resultType="complete", **working)]
        instead["tasks/cancel"] = [error(code=-32602, message="theirs")]
        assert await tasking_.call("x") == {"resultType": "task", **working}
        assert await tasking_.get(working) == {"resultType": "complete", **working}
        refused = tasking_.open("tasks/cancel", taskId="theirs")
        assert (await refused.error())[1] == {"code": -32602, "message": "theirs"}
        session = tasking_.world.manager.get("local/main")
        assert session is not None
        assert session.calls.tasks() == []


async def test_statuses_of_tasks_between_them_are_followed_as_well() -> None:
    async with tasking("/servers/bad/mcp", of="modern") as tasking_:
        instead = tasking_.play.instead
        can: Json = {"tools": {}, **EXTENSIONS}
        instead["server/discover"] = [result(supportedVersions=[MODERN], capabilities=can)]
        working = {"taskId": "theirs", "status": "working", "pollIntervalMs": 1}
        instead["tasks/get"] = [result(resultType="complete", **working)]
        wanted = {"taskIds": ["theirs"]}
        stream = tasking_.open("subscriptions/listen", notifications=wanted)
        acknowledged = await stream.message(0)
        assert acknowledged["params"]["notifications"] == wanted
        assert (await stream.message(1))["params"]["status"] == "working"
        done = {"taskId": "theirs", "status": "completed", "result": {"content": []}}
        instead["tasks/get"] = [result(resultType="complete", **done)]
        told = (await stream.message(2))["params"]
        told.pop("_meta")
        assert told == done
        instead["tasks/get"] = [error(code=-32602, message="no such task")]
        stream = tasking_.open("subscriptions/listen", notifications=wanted)
        assert (await stream.message(0))["params"]["notifications"] == {}
