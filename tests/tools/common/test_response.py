"""The context that every response carries."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import trio
from trio.testing import wait_all_tasks_blocked

from asgi_client import Client
from asgi_world import open_world
from emceepee_client import Answer, Open
from emceepee_trio.config import Config, Server
from emceepee_trio.config.bounds import MAX_DELIVERY_BYTES
from emceepee_trio.model.events import TaskFailed
from emceepee_trio.session.session import Session
from fake_backends import raw
from like import TIMESTAMP, ULID


async def test_events_and_questions_come_with_every_response(
    connect_as_either: Open,
) -> None:
    """Also with errors, and behind what the tool says itself."""
    server = raw() | {"restart": {"enabled": False}}
    async with connect_as_either({"raw": raw(), "mortal": server}) as emceepee:
        await emceepee.connected("raw", "mortal")
        await emceepee.start_task("raw", "two_questions")
        form = (await emceepee.event("elicitation_request"))["data"]["requestId"]
        sampling = (await emceepee.event("sampling_request"))["data"]["requestId"]
        pending = {
            "elicitations": [
                {
                    "requestId": form,
                    "server": "raw",
                    "message": "name?",
                    "mode": "form",
                    "requestedSchema": {
                        "type": "object",
                        "properties": {"name": {"type": "string"}},
                        "required": ["name"],
                    },
                }
            ],
            "sampling_requests": [{"requestId": sampling, "server": "raw"}],
        }

        async def check(events: list[str], tool: str, /, **arguments: Any) -> None:
            answer = await emceepee.call(tool, **arguments)
            assert [event["type"] for event in answer.events] == events
            blocks = [json.loads(block["text"]) for block in answer.result["content"][1:]]
            if events:
                assert list(blocks.pop(0)) == ["events_since_last_response"]
            assert blocks == [{"open_questions": [form, sampling]}]

        # Who has lost what it was told is told again.
        since = emceepee.events[-1]["id"]
        said = await emceepee.says("await_activity", timeout_ms=0, last_event_id=since)
        assert said["pending_client"] == pending
        await emceepee.says("list_tasks")
        await check([], "list_tasks")
        await check([], "get_task", task_id="none")
        await check([], "list_tools", tool=5)
        await check([], "execute_tool", server="raw", tool="rpc_error")
        await check([], "execute_tool", server="raw", tool="echo")
        args = {"n": 2, "k": 0}
        await check(
            ["notification"] * 2, "execute_tool", server="raw", tool="notify_many", args=args
        )
        lost = ["process_crashed", "server_disconnected"]
        await check(lost, "execute_tool", server="mortal", tool="exit")


async def test_a_response_without_news_has_no_context(connect: Open) -> None:
    async with connect({"raw": raw()}) as emceepee:
        await emceepee.connected("raw")
        await emceepee.says("list_tasks")
        answer = await emceepee.call("list_tasks")
        assert answer.result == {
            "content": [{"type": "text", "text": '{"tasks":[]}'}],
            "isError": False,
        }
        answer = await emceepee.call("get_task", task_id="none")
        (block,) = answer.result["content"]
        assert list(json.loads(block["text"])) == ["error"]


async def test_an_event_is_delivered_once(connect: Open) -> None:
    """However many responses there are at once; each of them is in order."""
    async with connect({"raw": raw()}) as emceepee:
        await emceepee.connected("raw")

        async def work() -> None:
            for _ in range(4):
                await emceepee.start_task("raw", "echo")

        async with trio.open_nursery() as nursery:
            for _ in range(8):
                nursery.start_soon(work)
        while len([e for e in emceepee.events if e["type"] == "task_completed"]) < 32:
            await emceepee.call("await_activity")
        ids = [event["id"] for event in emceepee.events]
        assert len(ids) == len(set(ids))
        assert len([e for e in emceepee.events if e["type"] == "task_created"]) == 32


async def test_a_delivery_carries_only_so_much(connect: Open) -> None:
    async with connect({"raw": raw()}) as emceepee:
        await emceepee.connected("raw")
        await emceepee.says("list_tasks")
        # 120 small ones: 50 to a delivery. They came before the answer to the call that made them.
        answer = await emceepee.execute("raw", "notify_many", {"n": 120, "k": 0})
        assert list(answer.news) == ["events_since_last_response", "more"]
        assert (len(answer.events), answer.news["more"]) == (50, 70)
        said = await emceepee.says("await_activity")
        assert said["more"] == 20
        assert sum(len(group["events"]) for group in said["events"]) == 50
        answer = await emceepee.call("list_tasks")
        assert list(answer.news) == ["events_since_last_response"]
        assert len(answer.events) == 20
        heard = [e["data"]["params"]["n"] for e in emceepee.events if e["type"] == "notification"]
        assert heard == list(range(120))


async def test_a_delivery_carries_only_so_many_bytes(connect: Open) -> None:
    async with connect({"raw": raw()}) as emceepee:
        await emceepee.connected("raw")
        await emceepee.says("list_tasks")
        message = "m" * 6_000
        task = {"server": "raw", "tool": "rpc_error", "args": {"message": message}}
        async with trio.open_nursery() as nursery:
            for _ in range(5):
                nursery.start_soon(emceepee.call_with, {}, "execute_tool", task | {"timeout_ms": 0})
        sizes = []
        while len([e for e in emceepee.events if e["type"] == "task_failed"]) < 5:
            answer = await emceepee.call("list_tasks")
            failed = [event for event in answer.events if event["type"] == "task_failed"]
            sizes.append(len(failed))
            assert len(json.dumps(answer.events)) <= 17_000
            if answer.news.get("more") is None:
                await emceepee.call("await_activity", timeout_ms=1000)
        assert max(sizes, default=0) <= 2


ECHO: dict[str, Any] = {"server": "raw", "tool": "echo"}


@asynccontextmanager
async def calling() -> AsyncGenerator[tuple[Client, Session]]:
    """A client that has called that, and its session."""
    with trio.fail_after(60):
        async with open_world(Config(servers=(Server(name="raw", **raw()),))) as world:
            client = await world.joined()
            await client.call("execute_tool", **ECHO)
            (session,) = world.manager.sessions()
            yield client, session


async def test_what_an_answer_says_itself_leaves_less_for_what_has_happened() -> None:
    async with calling() as (client, session):
        session.publish("raw", TaskFailed("t", "tool", "m" * 5000))
        said = await client.call("execute_tool", **ECHO, args={"text": "x" * 14_000})
        answer = Answer.of(said)
        assert (answer.events, answer.news["more"]) == ([], 1)
        assert sum(len(block["text"]) for block in said["content"]) < MAX_DELIVERY_BYTES
        (failed,) = Answer.of(await client.call("list_tasks")).events
        assert failed["type"] == "task_failed"


async def test_and_for_what_is_asked() -> None:
    async with calling() as (client, session):
        asked = {"message": "m" * 5000, "requestedSchema": {"type": "object", "properties": {}}}
        async with trio.open_nursery() as nursery:
            nursery.start_soon(session.ask, "raw", "elicitation", asked, lambda: "call_ended")
            await wait_all_tasks_blocked()
            said = await client.call("execute_tool", **ECHO, args={"text": "x" * 14_000})
            assert sum(len(block["text"]) for block in said["content"]) < MAX_DELIVERY_BYTES
            (question,) = session.questions.open("elicitation")
            assert question.id in json.dumps(said)  # it is named, at least
            nursery.cancel_scope.cancel()


async def test_an_event_is_never_larger_than_a_delivery(connect: Open) -> None:
    async with connect({"raw": raw()}, results={"inline_bytes": 0}) as emceepee:
        await emceepee.connected("raw")
        args = {"message": "m" * 100_000}
        task_id = await emceepee.start_task("raw", "rpc_error", args)
        failed = await emceepee.event("task_failed", taskId=task_id)
        assert "m" * 5000 in failed["data"]["error"]
        assert len(json.dumps(failed)) < MAX_DELIVERY_BYTES
        error = await emceepee.fails("get_task_result", task_id=task_id)
        assert error["details"]["message"] == "m" * 100_000


async def test_events_that_had_to_go_are_counted(connect: Open) -> None:
    async with connect({"raw": raw()}, limits={"events": 10}) as emceepee:
        await emceepee.connected("raw")
        await emceepee.says("list_tasks")
        answer = await emceepee.execute("raw", "notify_many", {"n": 25, "k": 0})
        assert list(answer.news) == ["events_since_last_response", "events_lost"]
        assert answer.news["events_lost"] == 15
        assert [e["data"]["params"]["n"] for e in answer.events] == list(range(15, 25))
        assert answer.events[0]["data"] == {
            "method": "notifications/vendor/thing",
            "params": {"n": 15, "x-vendor": {"deep": [15]}},
            "timestamp": TIMESTAMP,
        }
        assert (await emceepee.call("list_tasks")).news == {}
        await emceepee.execute("raw", "echo")


async def test_await_activity_counts_them_too(connect: Open) -> None:
    async with connect({"raw": raw()}, limits={"events": 10}, context="off") as emceepee:
        await emceepee.execute("raw", "notify_many", {"n": 25, "k": 0})
        said = await emceepee.says("await_activity")
        assert said["events_lost"] == 15
        assert said["triggers"] == [{"type": "immediate"}]
        assert "events_lost" not in await emceepee.says("await_activity", timeout_ms=0)


async def test_equal_notices_become_one_with_a_count(
    connect: Open, its_era: tuple[str, ...]
) -> None:
    async with connect({"raw": raw(*its_era)}, context="off") as emceepee:
        await emceepee.connected("raw")
        await emceepee.execute("raw", "notify_many", {"n": 1, "k": 3})
        said = await emceepee.says("await_activity")
        (group,) = said["events"]
        data = [event["data"] for event in group["events"]]
        kinds = [f"notifications/{kind}/list_changed" for kind in ("tools", "resources", "prompts")]
        assert [(d["method"], d.get("count")) for d in data] == [
            ("notifications/vendor/thing", None),
            *((kind, 3) for kind in kinds),
        ]
        # One that was delivered is over: the next is another.
        await emceepee.execute("raw", "notify_many", {"n": 0, "k": 1})
        (group,) = (await emceepee.says("await_activity"))["events"]
        assert [(e["data"]["method"], e["data"].get("count")) for e in group["events"]] == [
            (kind, None) for kind in kinds
        ]


async def test_context_may_be_off(connect: Open) -> None:
    async with connect({"raw": raw()}, context="off") as emceepee:
        await emceepee.connected("raw")
        await emceepee.start_task("raw", "string_id_question")
        await emceepee.event("elicitation_request")
        for tool in "list_tasks", "get_elicitations":
            answer = await emceepee.call(tool)
            assert len(answer.result["content"]) == 1
        said = await emceepee.says("await_activity", timeout_ms=0)
        assert said["open_questions"] == [ULID]


async def test_await_activity_carries_no_context_of_its_own(connect: Open) -> None:
    async with connect({"raw": raw()}) as emceepee:
        await emceepee.start_task("raw", "string_id_question")
        for arguments in ({}, {"timeout_ms": 0}, {"last_event_id": "x"}):
            answer = await emceepee.call("await_activity", **arguments)
            assert len(answer.result["content"]) == 1


async def test_an_error_of_await_activity_carries_it(connect: Open) -> None:
    async with connect({"raw": raw()}) as emceepee:
        await emceepee.connected("raw")
        await emceepee.says("list_tasks")
        await emceepee.execute("raw", "notify_many", {"n": 60, "k": 0})
        answer: Any = await emceepee.call("await_activity", timeout_ms=-1)
        assert answer.error["code"] == "TOOL_ERR_INVALID_ARGUMENTS"
        assert len(answer.events) == 10
