"""A question stands in full once; then there is its id, until the client asks for it."""

from __future__ import annotations

import json
from typing import Any

from emceepee_client import Answer, Emceepee, Open
from fake_backends import raw
from like import ULID, Like

WORDS = "Please provide inputs for the following fields:"
KB = 1000


def size(answer: Answer) -> int:
    return sum(len(block["text"].encode()) for block in answer.result["content"])


def times(answer: Answer, words: str = WORDS) -> int:
    return json.dumps(answer.result).count(words)


async def settled(emceepee: Emceepee) -> None:
    await emceepee.connected("raw")
    while (await emceepee.says("await_activity", timeout_ms=0))["events"]:
        pass


async def test_a_promotion_for_a_real_form_is_short(
    connect_as_either: Open, its_era: tuple[str, ...]
) -> None:
    async with connect_as_either({"everything": raw(*its_era)}) as emceepee:
        await emceepee.execute("everything", "echo")
        answer = await emceepee.execute("everything", "trigger_elicitation_request")
        assert size(answer) <= 3.5 * KB
        assert times(answer) == 1
        (form,) = answer.pending["elicitations"]
        assert len(form["requestedSchema"]["properties"]) == 13
        request_id = form["requestId"]
        assert request_id in answer.texts[0]
        shown = json.loads(answer.texts[1])["pending_on_server"]
        assert shown == {"tasks": [], "elicitations_for_server": []}  # nothing else
        (asked,) = [e for e in answer.events if e["type"] == "elicitation_request"]
        assert asked["data"] == {"requestId": request_id}
        # From then on it is named.
        for tool, arguments in (
            ("list_tasks", {}),
            ("respond_to_elicitation", {"request_id": request_id, "action": "accept"}),
            ("get_task_result", {"task_id": answer.task_id}),
        ):
            later = await emceepee.call(tool, **arguments)
            assert (times(later), later.pending) == (0, {})
            assert later.open_questions == [request_id]
        waiting = await emceepee.says("await_activity", timeout_ms=0)
        assert waiting["pending_client"] == {"elicitations": [], "sampling_requests": []}
        assert waiting["open_questions"] == [request_id]
        # Unless it is asked for.
        for tool, arguments in (
            ("get_elicitations", {}),
            ("get_elicitations", {"request_id": request_id}),
            ("get_task", {"task_id": answer.task_id}),
            ("get_server_status", {"server": "everything"}),
        ):
            later = await emceepee.call(tool, **arguments)
            assert (times(later), later.pending) == (1, {})
            assert later.open_questions == [request_id]
        await emceepee.says("respond_to_elicitation", request_id=request_id, action="decline")
        assert (await emceepee.call("list_tasks")).open_questions == []


async def test_asked_for_first_it_is_told(connect: Open) -> None:
    async with connect({"raw": raw()}, context="off") as emceepee:
        await settled(emceepee)
        answer = await emceepee.execute("raw", "trigger_elicitation_request")
        # Nothing else tells of it.
        assert times(answer) == 1
        (form,) = json.loads(answer.texts[1])["pending_on_server"]["elicitations_for_server"]
        assert "requestedSchema" in form
        waiting = await emceepee.call("await_activity", timeout_ms=0)
        assert times(waiting) == 0
        assert waiting.json["open_questions"] == [form["requestId"]]
        events = waiting.json["events"][0]["events"]
        assert {"requestId": form["requestId"]} in [event["data"] for event in events]
        # Who asks for what it has lost gets it again.
        since = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
        again = await emceepee.call("await_activity", timeout_ms=0, last_event_id=since)
        assert times(again) == 1
        assert again.json["pending_client"]["elicitations"] == [form]


async def test_a_wait_that_it_ends_tells_it_once(connect: Open) -> None:
    async with connect({"raw": raw()}, context="off") as emceepee:
        await settled(emceepee)
        await emceepee.start_task("raw", "trigger_elicitation_request")
        said: list[Any] = []
        while not said:
            answer = await emceepee.call("await_activity")
            said = answer.json["pending_client"]["elicitations"]
        assert times(answer) == 1
        assert said[0]["requestId"] == ULID


async def test_a_request_to_the_model_stands_in_its_event(connect: Open) -> None:
    async with connect({"raw": raw()}) as emceepee:
        await settled(emceepee)
        answer = await emceepee.execute("raw", "sample_question")
        assert answer.texts[0] == Like(".*respond_to_sampling.*")
        assert times(answer, "capital of France") == 1
        (sample,) = answer.pending["sampling_requests"]
        assert sample == {"requestId": sample["requestId"], "server": "raw"}
        later = await emceepee.call("list_tasks")
        assert (later.pending, later.open_questions) == ({}, [sample["requestId"]])
        asked = await emceepee.call("get_sampling_requests")
        assert times(asked, "capital of France") == 1


async def test_several_are_told_one_after_the_other(connect: Open) -> None:
    async with connect({"raw": raw()}) as emceepee:
        await settled(emceepee)
        first = await emceepee.execute("raw", "string_id_question")
        second = await emceepee.execute("raw", "trigger_elicitation_request")
        (one,), (two,) = first.pending["elicitations"], second.pending["elicitations"]
        assert (one["message"], two["message"]) == ("name?", WORDS)
        assert (first.open_questions, second.open_questions) == ([], [one["requestId"]])
        both = await emceepee.call("list_tasks")
        assert both.open_questions == [one["requestId"], two["requestId"]]
