"""What stands in every answer, or in one about everything, has a bound; what is missing is told."""

from __future__ import annotations

import json
from typing import Any

from emceepee_client import Emceepee, Open
from emceepee_trio.config.bounds import MAX_PENDING_BYTES
from fake_backends import raw


async def pending(emceepee: Emceepee) -> Any:
    """As it is told to who has lost it."""
    said = await emceepee.says("await_activity", timeout_ms=0, last_event_id="lost")
    return said["pending_client"]


async def test_questions_that_are_too_large_for_every_answer_are_named(connect: Open) -> None:
    async with connect({"raw": raw()}) as emceepee:
        for _ in range(2):
            await emceepee.start_task("raw", "large_question", {"size": 10_000})
        large = await emceepee.start_task("raw", "large_question", {"size": 100_000})
        while len(listed := await emceepee.all_of("get_elicitations", "elicitations")) < 3:
            await emceepee.call("await_activity")
        whole = {}
        for each in listed:
            of_each = await emceepee.says("get_elicitations", request_id=each["requestId"])
            (whole[each["requestId"]],) = of_each["elicitations"]
        assert [each for each in listed if each != whole[each["requestId"]]] == [
            {key: each[key] for key in ("server", "requestId", "timestamp")} | {"too_large": True}
            for each in whole.values()
            if len(each["message"]) == 100_000
        ]
        first, second, third = (await pending(emceepee))["elicitations"]
        named = [
            {"requestId": each, "server": "raw", "too_large": True}
            for each, question in whole.items()
            if len(question["message"]) == 100_000
        ]
        shown = [each for each in (first, second, third) if "too_large" not in each]
        assert len(shown) == 1
        assert all(each in (first, second, third) for each in named)
        assert len(json.dumps(await pending(emceepee))) < MAX_PENDING_BYTES
        (of_large,) = (await emceepee.says("get_elicitations", request_id=named[0]["requestId"]))[
            "elicitations"
        ]
        assert len(of_large["message"]) == 100_000
        # Events are no larger than what carries them.
        told = [e["data"] for e in emceepee.events if e["type"] == "elicitation_request"]
        for event in [data for data in told if data["requestId"] == named[0]["requestId"]]:
            assert event == {"requestId": named[0]["requestId"], "tooLarge": True}
        assert (await emceepee.says("get_task", task_id=large))["task"]["status"] == "working"


async def test_a_question_for_which_there_is_no_room_is_refused(connect: Open) -> None:
    async with connect({"raw": raw()}, limits={"questions_bytes": 65_536}) as emceepee:
        await emceepee.start_task("raw", "large_question", {"size": 40_000})
        await emceepee.question()
        answer = await emceepee.execute("raw", "large_question", {"size": 40_000})
        assert "limits.questions_bytes" in json.dumps(answer.result)


async def test_long_arguments_of_tasks_stand_in_get_task_only(connect: Open) -> None:
    async with connect({"raw": raw()}) as emceepee:
        text = "x" * 100_000
        task = await emceepee.start_task("raw", "never", {"text": text})
        (listed,) = (await emceepee.says("list_tasks"))["tasks"]
        assert "args" not in listed
        assert listed["args_beginning"] == '{"text":"' + "x" * 991 + "…"
        assert 100_000 <= listed["args_bytes"] < 100_100
        whole = (await emceepee.says("get_task", task_id=task))["task"]
        assert whole["args"] == {"text": text}
        assert "args_bytes" not in whole
        error = await emceepee.fails("get_task_result", task_id=task, timeout_ms=0)
        assert "args" not in error["details"]["task"]


async def test_arguments_under_way_have_a_bound_together(connect: Open) -> None:
    async with connect({"raw": raw()}, limits={"calls_bytes": 65_536}) as emceepee:
        args = {"text": "x" * 40_000}
        task = await emceepee.start_task("raw", "never", args)
        error = await emceepee.fails("execute_tool", server="raw", tool="echo", args=args)
        assert error["code"] == "TOOL_ERR_LIMIT"
        assert "limits.calls_bytes" in error["message"]
        await emceepee.says("cancel_task", task_id=task)
        await emceepee.task_over(task)
        assert not (await emceepee.execute("raw", "echo", args)).result.get("isError")


async def test_roots_have_a_bound(connect: Open) -> None:
    async with connect() as emceepee:
        many = [{"uri": f"file:///{n}"} for n in range(1001)]
        error = await emceepee.fails("set_roots", roots=many)
        assert "roots: too many: 1001, at most 1000" in error["message"]
        long = [{"uri": "file:///" + "x" * 8000}] * 40
        error = await emceepee.fails("set_roots", roots=long)
        assert "roots: too long: 320320 characters, at most 262144" in error["message"]
        assert (await emceepee.says("get_roots")) == {"roots": []}


async def test_unknown_arguments_are_told_up_to_a_number(connect: Open) -> None:
    async with connect() as emceepee:
        answer = await emceepee.call("list_servers", **{f"no{n}": n for n in range(50_000)})
        assert answer.json == {"servers": []}
        assert answer.note.count("unknown key ") == 20
        assert answer.note.endswith("; and 49980 more unknown keys")


async def test_five_thousand_tools_hold_nobody_up(connect: Open) -> None:
    """The tests watch every step of a daemon."""
    async with connect({"raw": raw("--tools", 5000)}) as emceepee:
        await emceepee.connected("raw")
        summary = await emceepee.says("list_tools")
        assert summary["detail"] == "summary"
        full = await emceepee.says("list_tools", detail="full")
        counts = [len(said["tools"][0]["tools"]) + said["more"] for said in (summary, full)]
        assert counts[0] == counts[1] == 5000
        few = await emceepee.says("list_tools", tool="filler_01[0-3]|nothing")
        assert len(few["tools"][0]["tools"]) == 40
