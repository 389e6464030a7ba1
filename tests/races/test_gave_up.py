"""A client stops waiting while the answer is on its way: it is read, or found as a task."""

from __future__ import annotations

import json
from typing import cast

import pytest
import trio

from asgi_world import open_world
from deliveries_model import Memory
from emceepee_trio.backend.backend import Backend
from emceepee_trio.errors import ExecutionFailed
from parts import hop, in_many_orders


@pytest.mark.parametrize("succeeds", [True, False])
def test_the_outcome_of_a_call_is_not_lost_with_a_request_that_is_given_up(succeeds: bool) -> None:
    async def race(order: int) -> str:
        async with open_world() as mcp:
            client, memory = await mcp.joined(), Memory()
            client.own.session.backends._named["memory"] = cast(Backend, memory)
            arguments = {"server": "memory", "tool": "t", "args": {"key": "k"}}
            params = {"name": "execute_tool", "arguments": arguments}
            asked = client.request("tools/call", 77, **params)
            await trio.testing.wait_all_tasks_blocked()
            if succeeds:
                memory.calls["k"].end("found")
            else:
                memory.calls["k"].done.fail(ExecutionFailed("found"))
            await hop(order % 8)
            client.cancel(77, reason="timed out")
            if (await asked.complete()).messages:
                assert "found" in json.dumps(asked.messages)
                return "read"
            await client.call("list_timers")
            listed = await client.call("list_tasks", include_completed=True)
            (task,) = json.loads(listed["content"][0]["text"])["tasks"]
            found = await client.call("get_task_result", task_id=task["task_id"])
            assert "found" in json.dumps(found)
            return "kept"

    assert {*in_many_orders(race, 80)} == {"read", "kept"}
