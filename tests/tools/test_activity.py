"""await_activity: one wait for everything."""

from __future__ import annotations

from typing import Any

import trio

from emceepee_client import Answer, Emceepee, Open
from fake_backends import raw
from like import TIMESTAMP, ULID, Like

NOTHING: dict[str, Any] = {"elicitations": [], "sampling_requests": []}


async def quiet(emceepee: Emceepee, *servers: str) -> None:
    """Everything so far is delivered, and nothing more will happen by itself."""
    await emceepee.connected(*servers)
    await emceepee.says("list_timers")


async def next_news(emceepee: Emceepee) -> Any:
    """What a wait answers that began when there was no news."""
    answer = await emceepee.call("await_activity")
    assert len(answer.content) == 1
    assert answer.news == answer.pending == {}
    return answer.json


async def test_a_wait_may_end_without_news(connect_as_either: Open) -> None:
    async with connect_as_either({"raw": raw()}, limits={"await_timeout_ms": 40}) as emceepee:
        await quiet(emceepee, "raw")
        nothing = {
            "triggers": [{"type": "timeout"}],
            "events": [],
            "pending_server": [],
            "pending_client": NOTHING,
        }
        assert await emceepee.says("await_activity", timeout_ms=0) == nothing
        assert await emceepee.says("await_activity", timeout_ms=30) == nothing
        assert await emceepee.says("await_activity") == nothing


async def test_news_that_is_there_is_delivered_at_once(connect: Open) -> None:
    async with connect({"raw": raw()}, context="off") as emceepee:
        await quiet(emceepee, "raw")
        task_id = await emceepee.start_task("raw", "never")
        said = await next_news(emceepee)
        assert list(said) == [
            "triggers",
            "events",
            "pending_server",
            "pending_client",
            "lastEventId",
        ]
        assert said["triggers"] == [{"type": "immediate"}]
        assert said["events"] == [
            {
                "server": "raw",
                "events": [
                    {
                        "id": ULID,
                        "type": "task_created",
                        "server": "raw",
                        "createdAt": TIMESTAMP,
                        "data": {"taskId": task_id, "toolName": "never", "ttl": 600_000},
                    }
                ],
            }
        ]
        assert said["pending_server"] == [
            {
                "server": "raw",
                "working_tasks": [{"taskId": task_id, "toolName": "never", "status": "working"}],
            }
        ]
        assert said["pending_client"] == NOTHING
        assert said["lastEventId"] == said["events"][0]["events"][-1]["id"]
        assert (await emceepee.says("await_activity", timeout_ms=0))["triggers"] == [
            {"type": "timeout"}
        ]


async def woken_by(emceepee: Emceepee, tool: str, /, **arguments: Any) -> list[Any]:
    """The triggers of a wait that a call ends, even one that has no answer yet."""
    async with trio.open_nursery() as calls:
        async with trio.open_nursery() as waiting:
            found: list[Any] = []

            async def wait() -> None:
                found.append(await next_news(emceepee))

            waiting.start_soon(wait)
            await emceepee.sent()
            calls.start_soon(emceepee.call_with, {}, tool, arguments)
        calls.cancel_scope.cancel()
    (said,) = found
    triggers: list[Any] = said["triggers"]
    return triggers


def of(kind: str, server: str = "raw") -> dict[str, str]:
    return {"type": "event", "server": server, "eventType": kind}


async def test_everything_that_happens_ends_a_wait(connect: Open) -> None:
    """Of the consequences of a cause the first is surely told; others may be in the same answer."""
    server = raw() | {"restart": {"enabled": False}}
    async with connect({"raw": server}, context="off") as emceepee:

        async def drained() -> None:
            while (await emceepee.says("await_activity", timeout_ms=0))["events"]:
                pass

        async def executing(tool: str, **options: Any) -> list[Any]:
            await drained()
            return await woken_by(emceepee, "execute_tool", server="raw", tool=tool, **options)

        await emceepee.connected("raw")
        await drained()
        triggers = await woken_by(emceepee, "set_timer", duration_ms=100, message="")
        assert triggers == [of("timer_expired", "emceepee")]
        assert (await executing("never", timeout_ms=0, ttl_ms=500))[0] == of("task_created")
        await emceepee.event("task_expired")
        # One for each kind of event, however many there are.
        many = {"n": 2, "k": 2, "updates": 1}
        assert await executing("notify_many", args=many) == [of("notification")]
        # The last of them: none may wake the wait for something else.
        await emceepee.event("notification", method="notifications/resources/updated")
        assert (await executing("string_id_question"))[0] == of("elicitation_request")
        assert (await executing("sample_question"))[0] == of("sampling_request")
        asked = await emceepee.event("sampling_request")
        await drained()
        refuse = {"request_id": asked["data"]["requestId"]}
        triggers = await woken_by(emceepee, "cancel_sampling_request", **refuse)
        assert triggers == [of("sampling_cancelled")]
        await emceepee.event("task_completed", toolName="sample_question")
        for tool, kind in (("echo", "task_completed"), ("rpc_error", "task_failed")):
            assert (await executing(tool, timeout_ms=0))[0] == of("task_created")
            await emceepee.event(kind, toolName=tool)
        task_id = await emceepee.start_task("raw", "never")
        await drained()
        assert await woken_by(emceepee, "cancel_task", task_id=task_id) == [of("task_cancelled")]
        assert (await executing("exit"))[:2] == [
            of("process_crashed"),
            {"type": "server_disconnected", "server": "raw"},
        ]
        await drained()
        triggers = await woken_by(emceepee, "reconnect_server", name="raw")
        assert triggers[0] == of("process_started")


async def test_logs_wake_nobody(connect: Open) -> None:
    async with connect({"raw": raw()}) as emceepee:
        await quiet(emceepee, "raw")
        found: list[Answer] = []

        async def wait() -> None:
            found.append(await emceepee.call("await_activity", timeout_ms=400))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait)
            await emceepee.sent()
            await emceepee.execute("raw", "stderr")
            await emceepee.execute("raw", "log_many")
        assert found[0].json["triggers"] == [{"type": "timeout"}]
        assert len((await emceepee.says("get_logs"))["logs"]) == 6


async def test_all_who_wait_are_woken_and_one_gets_the_events(connect: Open) -> None:
    async with connect({"raw": raw()}) as emceepee:
        await quiet(emceepee, "raw")
        found: list[Any] = []

        async def wait() -> None:
            found.append((await emceepee.call("await_activity")).json)

        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(wait)
            await emceepee.sent()
            await emceepee.says("set_timer", duration_ms=100, message="all")
        trigger = {"type": "event", "server": "emceepee", "eventType": "timer_expired"}
        assert [said["triggers"] for said in found] == [[trigger]] * 3
        assert sorted(len(said["events"]) for said in found) == [0, 0, 1]
        assert len([said for said in found if "lastEventId" in said]) == 1


async def test_a_cursor_repeats_what_came_after_it_and_only_it_does(connect: Open) -> None:
    async with connect({"raw": raw()}) as emceepee:
        await quiet(emceepee, "raw")
        await emceepee.start_task("raw", "never")
        cursor = emceepee.events[-1]["id"]
        for n in range(3):
            await emceepee.start_task("raw", "never", {"n": n})
        delivered = emceepee.events[-3:]
        assert [event["type"] for event in delivered] == ["task_created"] * 3
        for _ in range(2):
            said = await emceepee.says("await_activity", last_event_id=cursor)
            assert said["triggers"] == [{"type": "immediate"}]
            assert said["events"] == [{"server": "raw", "events": delivered}]
            assert said["lastEventId"] == delivered[-1]["id"]
            assert "cursor_lost" not in said
        said = await emceepee.says("await_activity", last_event_id=delivered[1]["id"])
        assert said["events"] == [{"server": "raw", "events": delivered[2:]}]
        # At the end there is nothing to repeat: wait, and get what comes.
        newest = {"last_event_id": delivered[-1]["id"]}
        said = await emceepee.says("await_activity", timeout_ms=0, **newest)
        assert said["triggers"] == [{"type": "timeout"}]
        assert said["events"] == []
        await emceepee.says("set_timer", duration_ms=100, message="new")
        said = await emceepee.says("await_activity", **newest)
        (group,) = said["events"]
        assert [event["type"] for event in group["events"]] == ["timer_expired"]
        assert (await emceepee.says("await_activity", timeout_ms=0))["events"] == []


async def test_a_cursor_delivers_also_what_was_not_delivered(connect: Open) -> None:
    async with connect({"raw": raw()}, context="off") as emceepee:
        await emceepee.connected("raw")
        await emceepee.start_task("raw", "never")
        await emceepee.event("task_created")
        await emceepee.start_task("raw", "never")
        await emceepee.start_task("raw", "never")
        first = emceepee.events[0]["id"]
        said = await emceepee.says("await_activity", last_event_id=first)
        (group,) = said["events"]
        kinds = [event["type"] for event in group["events"]]
        assert kinds == ["task_created", "task_created"]
        assert (await emceepee.says("await_activity", timeout_ms=0))["triggers"] == [
            {"type": "timeout"}
        ]


async def test_a_cursor_that_is_gone_says_so(connect: Open) -> None:
    async with connect({"raw": raw()}) as emceepee:
        await quiet(emceepee, "raw")
        await emceepee.start_task("raw", "never")
        for cursor in ("00000000000000000000000000", "nonsense", ""):
            said = await emceepee.says("await_activity", last_event_id=cursor)
            assert said["cursor_lost"] is True
            assert said["triggers"] == [{"type": "immediate"}]
            (group,) = said["events"]
            assert [event["type"] for event in group["events"]] == ["task_created"]


async def test_there_is_a_limit_of_waits(connect: Open) -> None:
    async with connect({"raw": raw()}) as emceepee:
        await quiet(emceepee, "raw")
        task_id = await emceepee.start_task("raw", "never")
        async with trio.open_nursery() as nursery:
            for _ in range(63):
                nursery.start_soon(emceepee.call, "await_activity")
            nursery.start_soon(lambda: emceepee.call("get_task_result", task_id=task_id))
            await emceepee.sent()
            for tool, arguments in (
                ("await_activity", {}),
                ("get_task_result", {"task_id": task_id}),
            ):
                assert await emceepee.fails(tool, **arguments) == {
                    "code": "TOOL_ERR_LIMIT",
                    "message": Like("64 requests of this session wait .*"),
                }
            await emceepee.says("cancel_task", task_id=task_id)
        assert (await emceepee.says("await_activity", timeout_ms=0))["events"] == []


async def test_a_wait_takes_only_so_long(connect: Open) -> None:
    async with connect() as emceepee:
        for timeout in (-1, 900_001, "5s", 1.5):
            error = await emceepee.fails("await_activity", timeout_ms=timeout)
            assert error["code"] == "TOOL_ERR_INVALID_ARGUMENTS"
            (problem,) = error["details"]["problems"]
            assert problem.startswith("timeout_ms: ")
        assert "0 to 900000" in (await emceepee.fails("await_activity", timeout_ms=-1))["message"]
