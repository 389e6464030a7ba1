"""What we list comes in pages: none is longer than the bound, and together they are all of it."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import trio

from emceepee_client import Emceepee, Open
from emceepee_trio.config.bounds import MAX_PAGE_BYTES
from fake_backends import raw
from like import TIMESTAMP

OFF = {f"off-{n:02}-{'x' * 50}": raw() | {"disabled": True} for n in range(60)}


async def pages(emceepee: Emceepee, tool: str, key: str, **asked: Any) -> list[Any]:
    """Its entries."""
    found: list[Any] = []
    most = 0
    cursor: dict[str, str] = {}
    while True:
        answer = await emceepee.call(tool, **asked, **cursor)
        said = answer.json
        assert len(answer.text.encode()) <= MAX_PAGE_BYTES
        found += said[key]
        most = most or len(found) + said.get("more", 0)
        if "more" not in said:
            assert "cursor" not in said
            assert len(found) == most
            return found
        assert said[key]
        assert said["more"] == most - len(found)
        cursor = {"cursor": said["cursor"]}


async def test_every_list_comes_in_pages(connect: Open) -> None:
    many = raw("--resources", 400, "--templates", 300, "--prompts", 500)
    async with connect({"raw": many, **OFF}) as emceepee:
        listed = await pages(emceepee, "list_resources", "resources")
        assert len({each["uri"] for each in listed if each["server"] == "raw"}) == 400
        listed = await pages(emceepee, "list_resource_templates", "resource_templates")
        assert len({each["uriTemplate"] for each in listed}) == 300
        listed = await pages(emceepee, "list_prompts", "prompts")
        assert len({each["name"] for each in listed}) == 500
        listed = await pages(emceepee, "list_servers", "servers", detail="full")
        assert [each["name"] for each in listed] == ["raw", *OFF]

        first = await emceepee.says("list_resources")
        assert {each["server"] for each in first["errors"]} == set(OFF)
        for tool, arguments in (("list_prompts", {}), ("list_resources", {"server": "raw"})):
            error = await emceepee.fails(tool, cursor=first["cursor"], **arguments)
            assert error["code"] == "TOOL_ERR_INVALID_ARGUMENTS"

        async with trio.open_nursery() as nursery:
            for n in range(40):
                args = {"text": f"{n} " + "x" * 800}
                nursery.start_soon(emceepee.start_task, "raw", "never", args)
                message = f"{n} " + "x" * 400
                timer = {"duration_ms": 10_000_000, "message": message}
                nursery.start_soon(partial(emceepee.call, "set_timer", **timer))
        listed = await pages(emceepee, "list_tasks", "tasks")
        assert len({each["args"]["text"] for each in listed}) == 40
        listed = await pages(emceepee, "list_timers", "timers")
        assert len({each["message"] for each in listed}) == 40


async def test_tasks_that_end_between_two_pages_hide_no_other(connect: Open) -> None:
    async with connect({"raw": raw()}) as emceepee:
        tasks = [
            await emceepee.start_task("raw", "never", {"text": f"{n}" * 3500}) for n in range(9)
        ]
        first = await emceepee.says("list_tasks")
        shown = len(first["tasks"])
        assert first["more"] == 9 - shown
        await emceepee.call("cancel_task", task_id=tasks[shown])
        second = await emceepee.says("list_tasks", cursor=first["cursor"])
        assert second["tasks"][0]["task_id"] == tasks[shown + 1]


async def test_what_is_heard_is_given_out_page_by_page(connect: Open) -> None:
    async with connect({"raw": raw()}, limits={"notifications": 300}) as emceepee:
        await emceepee.execute("raw", "log_many", {"n": 300, "level": "info"})
        for clear in (False, True):
            kept = await pages(emceepee, "get_logs", "logs", clear=clear, limit=250)
            assert sorted(each["data"]["n"] for each in kept) == list(range(50, 300))
        assert await emceepee.says("get_logs") == {"logs": [], "dropped": 0}
        await emceepee.execute("raw", "notify_many", {"n": 250, "k": 0})
        heard: list[int] = []
        while len(heard) < 250:
            answer = await emceepee.call("get_notifications")
            assert len(answer.text.encode()) <= MAX_PAGE_BYTES
            heard += [each["params"]["n"] for each in answer.json["notifications"]]
            assert answer.json.get("more", 0) == 250 - len(heard)
        assert heard == list(range(250))


async def test_what_is_too_long_for_any_page_is_kept_and_shown_as_a_preview(connect: Open) -> None:
    async with connect({"raw": raw()}) as emceepee:
        task = await emceepee.start_task("raw", "large_question", {"size": 50_000})
        asked = (await emceepee.question())["requestId"]
        (named,) = (await emceepee.says("get_elicitations"))["elicitations"]
        assert named == {
            "requestId": asked,
            "server": "raw",
            "timestamp": TIMESTAMP,
            "too_large": True,
        }
        answer = await emceepee.call("get_elicitations", request_id=asked)
        preview = json.loads(answer.content[0]["text"])
        assert len(answer.content[0]["text"]) < 3000
        assert preview["type"] == "application/json"
        part = await emceepee.call(
            "read_result", id=preview["result"], path="/elicitations/0/requestId"
        )
        assert part.texts[0] == asked
        await emceepee.call("cancel_task", task_id=task)
