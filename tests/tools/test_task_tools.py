"""Tools that their server runs as tasks of its own: for our client there is one task, or none."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from emceepee_client import Json, Open
from fake_backends import HERE, until


def tasking(journal: Path) -> Json:
    script = HERE / "tasking_server.py"
    return {"command": sys.executable, "args": [str(script), str(journal)], "era": "handshake"}


def said(journal: Path, method: str) -> list[Any]:
    lines = journal.read_text("utf-8").split("\n") if journal.exists() else [""]
    messages = map(json.loads, lines[:-1])
    return [m.get("params") for m in messages if m.get("method") == method]


async def test_a_tool_that_has_to_be_a_task_is_called_as_one(connect: Open, tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    async with connect({"lab": tasking(journal)}) as emceepee:
        answer = await emceepee.execute("lab", "research", {"polls": 3}, timeout_ms=60_000)
        assert answer.text == "found"
        assert answer.result["vendor"] == {"kept": 1}
        (asked,) = said(journal, "tools/call")
        assert asked["task"]["ttl"] > 60_000
        assert len(said(journal, "tasks/get")) == 4
        assert said(journal, "tasks/result") == [{"taskId": "task-0"}]
        assert (await emceepee.says("list_tasks"))["tasks"] == []


async def test_one_that_may_be_a_task_is_called_as_ever(connect: Open, tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    async with connect({"lab": tasking(journal)}) as emceepee:
        assert (await emceepee.execute("lab", "either")).text == "at once"
        (asked,) = said(journal, "tools/call")
        assert "task" not in asked


async def test_what_a_task_of_a_server_asks_is_put_to_our_client(
    connect: Open, tmp_path: Path
) -> None:
    async with connect({"lab": tasking(tmp_path / "journal")}) as emceepee:
        task = (await emceepee.execute("lab", "research", {"asks": True}, timeout_ms=0)).task_id
        asked = await emceepee.question()
        (ours,) = (await emceepee.says("list_tasks"))["tasks"]
        assert ours["task_id"] == task
        await emceepee.says(
            "respond_to_elicitation",
            request_id=asked["requestId"],
            action="accept",
            content={"topic": "bees"},
        )
        assert (await emceepee.call("get_task_result", task_id=task)).text == "bees"


async def test_one_that_fails_is_the_tools_own_error(connect: Open, tmp_path: Path) -> None:
    async with connect({"lab": tasking(tmp_path / "journal")}) as emceepee:
        answer = await emceepee.execute("lab", "research", {"ends": "failed"})
        assert (answer.result["isError"], answer.text) == (True, "no luck")


async def test_a_task_that_is_cancelled_is_cancelled_at_its_server(
    connect: Open, tmp_path: Path
) -> None:
    journal = tmp_path / "journal"
    async with connect({"lab": tasking(journal)}) as emceepee:
        endless = {"polls": 1_000_000}
        task = (await emceepee.execute("lab", "research", endless, timeout_ms=0)).task_id
        await until(lambda: said(journal, "tasks/get"))
        await emceepee.says("cancel_task", task_id=task)
        await until(lambda: said(journal, "tasks/cancel") == [{"taskId": "task-0"}])
