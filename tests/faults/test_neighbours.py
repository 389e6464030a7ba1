"""A server that is slow, or hangs, beside others: nobody notices who does not call it."""

from __future__ import annotations

import statistics
import time
from pathlib import Path

from emceepee_client import Emceepee, Open
from fake_backends import Journal, raw
from telling import drain, life

ROUNDS, CALLS, SLOW = 8, 12, 20


async def seconds(emceepee: Emceepee, server: str) -> list[float]:
    """That each of some calls takes."""
    found = []
    for _ in range(CALLS):
        start = time.perf_counter()
        assert (await emceepee.execute(server, "echo", {"text": "x"})).text == "x"
        found.append(time.perf_counter() - start)
    return found


async def test_a_fast_server_stays_as_fast_beside_a_slow_one(
    connect: Open, journal: Journal, tmp_path: Path
) -> None:
    """Measured in turns, with nothing to do for the other one and with many calls it owes."""
    servers = {"fast": raw(), "slow": raw(*journal.flags)}
    async with connect(servers, context="off") as emceepee:
        await emceepee.connected("fast", "slow")
        await seconds(emceepee, "fast")
        alone: list[float] = []
        beside: list[float] = []
        for n in range(ROUNDS):
            alone += await seconds(emceepee, "fast")
            file = tmp_path / f"release {n}"
            tasks = [
                await emceepee.start_task("slow", "slow", {"file": str(file)}) for _ in range(SLOW)
            ]
            await journal.wait_for_marker("slow started", SLOW * (n + 1))
            beside += await seconds(emceepee, "fast")
            listed = await emceepee.says("list_tasks", server="slow", status="working")
            assert len(listed["tasks"]) == SLOW
            file.touch()
            for task in tasks:
                result = await emceepee.call("get_task_result", task_id=task)
                assert result.text == "the file is there"
        assert statistics.median(beside) < 2 * statistics.median(alone)
        await drain(emceepee)
        assert life(emceepee, "fast") == life(emceepee, "slow") == []


async def test_of_three_servers_one_hangs(connect: Open, journal: Journal) -> None:
    """The session and the others are there at once: no patience of ours ends before the guard."""
    hanging = raw("--silent", *journal.flags) | {"connect_timeout_ms": 600_000}
    servers = {"one": raw(), "hanging": hanging, "three": raw()}
    limits = {"execute_timeout_ms": 600_000, "await_timeout_ms": 600_000, "answer_ms": 600_000}
    async with connect(servers, limits={**limits, "list_patience_ms": 500}) as emceepee:
        for server in ("one", "three"):
            assert (await emceepee.execute(server, "echo", {"text": server})).text == server
        status = {s["name"]: s["status"] for s in (await emceepee.says("list_servers"))["servers"]}
        assert status == {"one": "connected", "hanging": "connecting", "three": "connected"}
        listed = await emceepee.says("list_tools", tool="^echo$")
        assert [group["server"] for group in listed["tools"]] == ["one", "three"]
        assert [error["server"] for error in listed["errors"]] == ["hanging"]
        waiting = await emceepee.start_task("hanging", "echo")
        assert (await emceepee.execute("one", "echo", {"text": "still"})).text == "still"
        assert (await emceepee.says("get_task", task_id=waiting))["task"]["status"] == "working"
        assert journal.of("tools/call") == []
        assert (await emceepee.says("cancel_task", task_id=waiting))["success"]
        await drain(emceepee)
        assert life(emceepee, "one") == life(emceepee, "three") == []
        assert life(emceepee, "hanging") == []
