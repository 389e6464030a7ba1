"""Two sessions in one process, as alike as they can be: nothing of one is seen in the other.

Over stdio there is only ever one session, so these are made in this process; the tools are called
as a front end calls them. Every payload carries the secret of its session.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio
import trio.testing

from emceepee_client import GUARD, Answer, is_running
from emceepee_trio.config import Config, Limits, Server
from emceepee_trio.errors import ToolError
from emceepee_trio.session.manager import SessionManager, open_sessions
from emceepee_trio.session.session import Session
from emceepee_trio.tools import TOOLBOX
from emceepee_trio.tools.common.registry import Request
from emceepee_trio.tools.common.response import error_reply, finish
from fake_backends import Journal, raw, until

SECRETS = {"one": "secret-of-one-8f3a", "two": "secret-of-two-c41d"}


@attrs.define(eq=False)
class Client:
    """Of one session; keeps everything it was ever told."""

    session: Session
    manager: SessionManager
    secret: str
    told: list[Any] = attrs.field(factory=list)

    async def call(self, tool: str, /, **arguments: Any) -> Answer:
        try:
            reply = await TOOLBOX.get(tool).call(Request(self.session, self.manager), arguments)
        except ToolError as error:
            reply = error_reply(error)
        result, delivery = finish(self.session, reply)
        delivery.commit()
        self.told.append(result)
        return Answer.of(result)

    async def execute(self, tool: str, args: Mapping[str, Any], **options: Any) -> Answer:
        return await self.call("execute_tool", server="raw", tool=tool, args=args, **options)

    async def pid(self) -> int:
        status = await self.call("get_server_status", server="raw")
        return int(status.json["process"]["pid"])


@asynccontextmanager
async def two_clients(*names: str, **options: Any) -> AsyncGenerator[list[Client]]:
    entry = raw(*options.pop("flags", ()))
    server = Server("raw", command=entry["command"], args=tuple(entry["args"]))
    config = Config(servers=(server,), **options)
    with trio.fail_after(GUARD):
        async with open_sessions(config) as manager:
            yield [
                Client(await manager.ensure(name, "local"), manager, SECRETS[name])
                for name in names or SECRETS
            ]


async def everything(client: Client) -> None:
    """Whatever a client can do, with its secret wherever one fits, and nothing told in time."""
    secret = client.secret
    await client.execute("echo", {"text": secret})
    await client.execute("stderr", {"line": secret, "n": 2})
    await client.execute("rpc_error", {"message": secret, "data": secret})
    await client.call("set_timer", duration_ms=100, message=secret)
    await client.call("set_roots", roots=[{"uri": f"file:///{secret}"}])
    await client.execute("roots", {})
    await client.execute("never", {"secret": secret}, timeout_ms=0)
    await client.execute("string_id_question", {"secret": secret}, timeout_ms=0)
    await client.execute("notify_many", {"n": 2, "k": 2})
    await client.call("set_log_level", server="raw", level="error")
    await client.call("subscribe_resource", server="raw", uri=f"raw://{secret}")
    await client.execute("echo", {"text": secret}, timeout_ms=0)
    while "timer_expired" not in str(client.told):
        await client.call("await_activity")


LOOKING: dict[str, dict[str, Any]] = {
    "list_servers": {},
    "get_server_status": {"server": "raw"},
    "list_tasks": {"include_completed": True},
    "get_elicitations": {},
    "get_sampling_requests": {},
    "get_notifications": {},
    "get_logs": {"clear": False},
    "get_roots": {},
    "list_timers": {"include_inactive": True},
    "await_activity": {"timeout_ms": 0, "last_event_id": "none"},
    "read_resource": {"server": "emceepee", "uri": "emceepee://diagrams"},
}


async def test_nothing_of_one_session_is_told_in_the_other() -> None:
    async with two_clients() as clients:
        async with trio.open_nursery() as nursery:
            for client in clients:
                nursery.start_soon(everything, client)
        for client in clients:
            for tool, arguments in LOOKING.items():
                answer = await client.call(tool, **arguments)
                assert answer.result["isError"] is False, tool
        for one, other in itertools.permutations(clients):
            said = json.dumps(one.told, ensure_ascii=False)
            assert said.count(one.secret) > 10
            assert other.secret not in said
        assert await clients[0].pid() != await clients[1].pid()


async def test_ids_of_one_session_mean_nothing_in_the_other() -> None:
    """Neither of a task, a question or a timer, nor a cursor; and their owner keeps them."""
    async with two_clients() as (one, other):
        task = (await one.execute("never", {}, timeout_ms=0)).task_id
        asking = (await one.execute("string_id_question", {}, timeout_ms=0)).task_id
        timer = (await one.call("set_timer", duration_ms=3_600_000, message="m")).json["timer"]
        while not (asked := (await one.call("get_elicitations")).json["elicitations"]):
            await one.call("await_activity")
        question = asked[0]["requestId"]
        foreign = {
            "get_task": {"task_id": task},
            "get_task_result": {"task_id": task},
            "cancel_task": {"task_id": task},
            "get_timer": {"timer_id": timer["timer_id"]},
            "delete_timer": {"timer_id": timer["timer_id"]},
            "respond_to_elicitation": {
                "request_id": question,
                "action": "accept",
                "content": {"name": "thief"},
            },
            "cancel_elicitation_request": {"request_id": question},
        }
        for tool, arguments in foreign.items():
            error = (await other.call(tool, **arguments)).error
            assert error["code"] == "TOOL_ERR_NOT_FOUND", tool
            unknown = dict.fromkeys(arguments, "01ARZ3NDEKTSV4RRFFQ69G5FAV") | {
                key: value for key, value in arguments.items() if not key.endswith("_id")
            }
            # Not even that such a thing exists somewhere.
            (used,) = (value for key, value in arguments.items() if key.endswith("_id"))
            missing = (await other.call(tool, **unknown)).error
            assert missing["message"] == error["message"].replace(used, unknown_id(unknown))
        cursor = (await one.call("await_activity", last_event_id="none")).json["lastEventId"]
        said = (await other.call("await_activity", last_event_id=cursor)).json
        assert said["cursor_lost"] is True
        assert task not in str(other.told[-1])
        await one.call(
            "respond_to_elicitation",
            request_id=question,
            action="accept",
            content={"name": "owner"},
        )
        answer = await one.call("get_task_result", task_id=asking)
        assert json.loads(answer.text)["content"] == {"name": "owner"}
        assert (await one.call("get_task", task_id=task)).json["task"]["status"] == "working"
        (kept,) = (await one.call("list_timers")).json["timers"]
        assert kept["timer_id"] == timer["timer_id"]


def unknown_id(arguments: Mapping[str, Any]) -> str:
    return next(str(value) for key, value in arguments.items() if key.endswith("_id"))


async def test_what_wakes_one_session_does_not_wake_the_other() -> None:
    async with two_clients() as (one, other):
        for client in (one, other):
            await client.execute("echo", {})
            await client.call("await_activity", last_event_id="none")
        found: list[Answer] = []

        async def wait() -> None:
            found.append(await other.call("await_activity", timeout_ms=300))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait)
            await trio.testing.wait_all_tasks_blocked()
            await one.execute("notify_many", {"n": 3})
            await one.call("set_timer", duration_ms=100, message="m")
            await one.execute("never", {}, timeout_ms=0)
        assert found[0].json["triggers"] == [{"type": "timeout"}]
        assert found[0].json["pending_server"] == []


async def test_the_end_of_one_session_leaves_nothing_of_it_and_all_of_the_other() -> None:
    async with two_clients(flags=("--stubborn",)) as (one, other):
        tasks = []
        for client in (one, other):
            await client.execute("echo", {})
            tasks.append((await client.execute("never", {}, timeout_ms=0)).task_id)
            await client.execute("string_id_question", {}, timeout_ms=0)
            await client.call("set_timer", duration_ms=3_600_000, message="m")
        pid, others = await one.pid(), await other.pid()
        waits: list[Any] = []

        async def wait(tool: str, /, **arguments: Any) -> None:
            waits.append((await one.call(tool, **arguments)).error["code"])

        # Only when the question has come is there nothing left that would end the wait.
        await event(one, "elicitation_request")
        while (await one.call("await_activity", timeout_ms=0)).json["events"]:
            pass
        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait, "await_activity")
            nursery.start_soon(lambda: wait("get_task_result", task_id=tasks[0]))
            nursery.start_soon(lambda: wait("execute_tool", server="raw", tool="never"))
            await trio.testing.wait_all_tasks_blocked()
            one.manager.end(one.session, "test")
        # Whoever waited has heard of it.
        assert waits == ["TOOL_ERR_SESSION_NOT_FOUND"] * 3
        assert one.manager.get("one") is None
        await until(lambda: not is_running(pid))
        assert not one.session.inner.child_tasks
        assert all(task.status.value != "working" for task in one.session.calls.tasks())
        assert one.session.questions.open("elicitation") == []
        assert is_running(others)
        assert await other.pid() == others
        (working, asking) = (await other.call("list_tasks")).json["tasks"]
        assert (working["task_id"], asking["status"]) == (tasks[1], "working")
        assert (await other.execute("echo", {"text": other.secret})).text == other.secret
        assert len((await other.call("list_timers")).json["timers"]) == 1
        # The name is free: another session, which knows nothing.
        again = Client(await one.manager.ensure("one", "local"), one.manager, "")
        assert again.session is not one.session
        assert (await again.call("list_tasks", include_completed=True)).json == {"tasks": []}
        assert (await again.call("get_task", task_id=tasks[0])).error["code"] == (
            "TOOL_ERR_NOT_FOUND"
        )


async def test_the_last_place_for_a_task_is_given_away_once(tmp_path: Path) -> None:
    """Also to calls that come in one tick: who is refused was never sent."""
    journal = Journal(tmp_path / "journal.jsonl")
    async with two_clients("one", limits=Limits(tasks=1), flags=journal.flags) as (client,):
        await client.execute("echo", {})
        answers: list[Answer] = []

        async def start() -> None:
            answers.append(await client.execute("never", {}, timeout_ms=0))

        async with trio.open_nursery() as nursery:
            for _ in range(5):
                nursery.start_soon(start)
        refused = [answer for answer in answers if answer.result["isError"]]
        assert len(refused) == 4
        assert {answer.error["code"] for answer in refused} == {"TOOL_ERR_LIMIT"}
        await client.execute("echo", {})
        called = [call["params"]["name"] for call in journal.of("tools/call")]
        assert called == ["echo", "never", "echo"]
        assert journal.of("notifications/cancelled") == []


@pytest.mark.parametrize("principal", ["local", "somebody else"])
async def test_servers_are_shared_by_principal_and_connections_never(principal: str) -> None:
    async with two_clients("one") as (one,):
        other = Client(await one.manager.ensure("two", principal), one.manager, SECRETS["two"])
        await one.call("add_server", name="added", **raw())
        listed = (await other.call("list_servers")).json["servers"]
        if principal == "local":
            assert [server["name"] for server in listed] == ["raw", "added"]
            added = await event(other, "server_added")
            # Who added it by its name, and no id of a session.
            assert added["data"].keys() == {"name", "target", "addedBy"}
            assert added["data"]["addedBy"] == "unknown client"
            await event(other, "server_connected", name="added")
            pids = [
                (await client.call("get_server_status", server="added")).json["process"]["pid"]
                for client in (one, other)
            ]
            assert pids[0] != pids[1]
            await one.call("remove_server", name="added")
            removed = await event(other, "server_removed")
            assert removed["data"]["removedBy"] == "unknown client"
        else:
            assert [server["name"] for server in listed] == ["raw"]
            error = (await other.call("get_server_status", server="added")).error
            assert error["code"] == "TOOL_ERR_SERVER_NOT_FOUND"
            assert "added" not in error["message"].replace("'added'", "")


async def event(client: Client, kind: str, **data: Any) -> dict[str, Any]:
    """The first such event that the client is told, or was."""
    while True:
        for result in client.told:
            for found in _events(result):
                if found["type"] == kind and data.items() <= found["data"].items():
                    return found
        await client.call("await_activity")


def _events(result: dict[str, Any]) -> list[dict[str, Any]]:
    answer = Answer.of(result)
    if answer.events:
        return answer.events
    if not answer.content or not answer.content[0].get("text", "").startswith('{"triggers"'):
        return []
    return [found for group in answer.json["events"] for found in group["events"]]
