"""Questions of servers to the user."""

from __future__ import annotations

import json
from typing import Any

import pytest

from emceepee_client import Open
from fake_backends import Journal, demo, raw
from like import TIMESTAMP, ULID, Like

NAME_SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}},
    "required": ["name"],
}


async def test_a_question_is_told_everywhere_and_answered_once(
    connect_as_either: Open, its_era: tuple[str, ...]
) -> None:
    async with connect_as_either({"raw": raw(*its_era)}) as emceepee:
        await emceepee.connected("raw")
        task_id = await emceepee.start_task("raw", "string_id_question")
        asked = await emceepee.event("elicitation_request")
        request_id = asked["data"]["requestId"]
        assert asked["data"] == {"requestId": ULID}  # it stands in full beside it
        answer = await emceepee.call("get_elicitations")
        assert answer.json == {
            "elicitations": [
                {
                    "requestId": request_id,
                    "server": "raw",
                    "timestamp": TIMESTAMP,
                    "mode": "form",
                    "message": "name?",
                    "requestedSchema": NAME_SCHEMA,
                }
            ]
        }
        brief = {
            "requestId": request_id,
            "server": "raw",
            "message": "name?",
            "mode": "form",
            "requestedSchema": NAME_SCHEMA,
        }
        assert (answer.pending, answer.open_questions) == ({}, [request_id])
        waiting = await emceepee.says("await_activity", timeout_ms=0)
        assert waiting["pending_client"] == {"elicitations": [], "sampling_requests": []}
        assert waiting["open_questions"] == [request_id]
        task = await emceepee.says("get_task", task_id=task_id)
        assert task["pending_elicitations_for_server"] == [brief]
        answer = await emceepee.call(
            "respond_to_elicitation",
            request_id=request_id,
            action="accept",
            content={"name": "Ada"},
        )
        assert answer.json == {"responded": request_id}
        assert (answer.pending, answer.open_questions) == ({}, [])
        result = await emceepee.call("get_task_result", task_id=task_id)
        assert json.loads(result.text) == {"action": "accept", "content": {"name": "Ada"}}
        assert await emceepee.says("get_elicitations") == {"elicitations": []}
        again = await emceepee.fails(
            "respond_to_elicitation", request_id=request_id, action="decline"
        )
        assert again == {
            "code": "TOOL_ERR_NOT_FOUND",
            "message": Like(".*no longer open: accepted.*"),
            "details": {"status": "accepted"},
        }


async def test_a_form_is_checked_and_filled_with_its_defaults(connect: Open) -> None:
    async with connect({"demo": demo()}) as emceepee:
        task_id = await emceepee.start_task("demo", "ask_name", {"question": "who?"})
        question = await emceepee.question()
        assert question["message"] == "who?"
        respond = {"request_id": question["requestId"], "action": "accept"}
        wrong: list[tuple[Any, list[str]]] = [
            (None, ["'name' is a required property"]),
            ({"excited": "very"}, ["'name' is a .*", "excited: 'very' is not of type 'boolean'"]),
            ({"name": 7}, ["name: 7 is not of type 'string'"]),
        ]
        for content, problems in wrong:
            error = await emceepee.fails("respond_to_elicitation", **respond, content=content)
            assert error["code"] == "TOOL_ERR_INVALID_ARGUMENTS"
            assert f"{question['requestId']} is still open" in error["message"]
            assert sorted(error["details"]["problems"], key=len) == sorted(
                map(Like, problems), key=lambda like: len(like.pattern)
            )
            assert (await emceepee.question())["requestId"] == question["requestId"]
        await emceepee.says("respond_to_elicitation", **respond, content={"name": "Ada"})
        result = await emceepee.call("get_task_result", task_id=task_id)
        assert result.text == "Hello, Ada"


async def test_the_answer_may_come_as_a_json_string(connect: Open) -> None:
    async with connect({"demo": demo()}) as emceepee:
        task_id = await emceepee.start_task("demo", "ask_name")
        question = await emceepee.question()
        await emceepee.says(
            "respond_to_elicitation",
            request_id=question["requestId"],
            action="accept",
            content='{"name": "Ada", "excited": true}',
        )
        assert (await emceepee.call("get_task_result", task_id=task_id)).text == "Hello, Ada!"


@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_a_question_may_be_declined(
    connect: Open, its_era: tuple[str, ...], action: str
) -> None:
    async with connect({"raw": raw(*its_era)}) as emceepee:
        task_id = await emceepee.start_task("raw", "string_id_question")
        question = await emceepee.question()
        said = await emceepee.says(
            "respond_to_elicitation", request_id=question["requestId"], action=action
        )
        assert said == {"responded": question["requestId"]}
        result = await emceepee.call("get_task_result", task_id=task_id)
        assert json.loads(result.text) == {"action": action}


async def test_a_question_may_be_withdrawn_from(connect: Open, its_era: tuple[str, ...]) -> None:
    async with connect({"raw": raw(*its_era)}) as emceepee:
        task_id = await emceepee.start_task("raw", "string_id_question")
        request_id = (await emceepee.question())["requestId"]
        answer = await emceepee.call(
            "cancel_elicitation_request", request_id=request_id, reason="the user has left"
        )
        assert answer.json == {"cancelled": request_id}
        cancelled = await emceepee.event("elicitation_cancelled")
        assert cancelled["data"] == {"requestId": request_id, "reason": "the user has left"}
        result = await emceepee.call("get_task_result", task_id=task_id)
        assert json.loads(result.text) == {"action": "cancel"}
        error = await emceepee.fails("cancel_elicitation_request", request_id=request_id)
        assert error["code"] == "TOOL_ERR_NOT_FOUND"
        assert error["details"] == {"status": "cancelled"}


async def test_a_page_to_open_needs_no_content(connect_as_either: Open) -> None:
    async with connect_as_either({"demo": demo()}) as emceepee:
        task_id = await emceepee.start_task("demo", "ask_url")
        question = await emceepee.question()
        known = {
            "requestId": ULID,
            "server": "demo",
            "timestamp": TIMESTAMP,
            "mode": "url",
            "message": "Please look at this page.",
            "url": "https://example.com/demo",
        }
        assert {k: v for k, v in question.items() if k != "elicitationId"} == known
        answer = await emceepee.call("get_elicitations")
        assert (answer.pending, answer.open_questions) == ({}, [question["requestId"]])
        await emceepee.says(
            "respond_to_elicitation", request_id=question["requestId"], action="accept"
        )
        result = await emceepee.call("get_task_result", task_id=task_id)
        assert result.text == "The answer was: accept"


async def test_a_server_may_take_its_question_back(connect: Open, journal: Journal) -> None:
    file = journal.path.parent / "now"
    async with connect({"raw": raw(*journal.flags)}) as emceepee:
        task_id = await emceepee.start_task("raw", "withdraw_question", {"file": str(file)})
        request_id = (await emceepee.question())["requestId"]
        file.touch()
        cancelled = await emceepee.event("elicitation_cancelled")
        assert cancelled["data"] == {"requestId": request_id, "reason": "withdrawn_by_server"}
        answer = await emceepee.call(
            "respond_to_elicitation", request_id=request_id, action="decline"
        )
        assert answer.error["details"] == {"status": "cancelled"}
        assert answer.pending == {}
        assert (await emceepee.call("get_task_result", task_id=task_id)).text == "withdrawn"
        await emceepee.execute("raw", "echo")
        # What was withdrawn is not answered.
        answers = [entry for entry in journal.entries() if "result" in entry or "error" in entry]
        assert answers == []


async def test_a_question_waits_only_so_long(connect: Open, its_era: tuple[str, ...]) -> None:
    settings = {"limits": {"question_timeout_ms": 1000}}
    async with connect({"raw": raw(*its_era)}, **settings) as emceepee:
        task_id = await emceepee.start_task("raw", "string_id_question")
        request_id = (await emceepee.question())["requestId"]
        expired = await emceepee.event("elicitation_expired")
        assert expired["data"] == {"requestId": request_id, "reason": "timeout"}
        error = await emceepee.fails(
            "respond_to_elicitation", request_id=request_id, action="decline"
        )
        assert error["code"] == "TOOL_ERR_NOT_FOUND"
        assert error["details"] == {"status": "expired"}
        said, why = (await emceepee.call("get_task_result", task_id=task_id)).texts
        if its_era:  # which knows no error answers
            assert json.loads(said) == {"action": "cancel"}
        else:
            assert "nobody answered within 1000 ms" in json.loads(said)["error"]["message"]
        unanswered = json.loads(why)["unanswered_question"]
        assert unanswered == {"request_id": request_id, "server": "raw", "after_ms": 1000}


async def test_questions_of_one_server_can_be_picked(connect: Open) -> None:
    async with connect({"raw": raw(), "other": raw()}) as emceepee:
        for server in "raw", "other":
            await emceepee.start_task(server, "two_questions")
        # Which of them comes first is up to the server.
        while True:
            said = await emceepee.call("list_servers")
            # What this answer tells of for the first time wakes no wait after it.
            if len(said.open_questions) + sum(map(len, said.pending.values())) == 4:
                break
            await emceepee.call("await_activity")
        for tool, key in (
            ("get_elicitations", "elicitations"),
            ("get_sampling_requests", "sampling_requests"),
        ):
            everywhere = (await emceepee.says(tool))[key]
            assert sorted(found["server"] for found in everywhere) == ["other", "raw"]
            (one,) = (await emceepee.says(tool, server="raw"))[key]
            assert one["server"] == "raw"
            assert await emceepee.says(tool, server="nobody") == {key: []}


async def test_there_is_a_limit_of_questions(connect: Open) -> None:
    async with connect({"raw": raw()}, limits={"questions": 1}) as emceepee:
        await emceepee.start_task("raw", "string_id_question")
        await emceepee.question()
        answer = await emceepee.execute("raw", "string_id_question")
        error = json.loads(answer.text)["error"]
        assert error["message"] == "1 questions are open in this session already"
        assert len((await emceepee.says("get_elicitations"))["elicitations"]) == 1


async def test_what_is_no_question_is_not_answered(connect: Open) -> None:
    async with connect({"raw": raw()}) as emceepee:
        await emceepee.start_task("raw", "sample_question")
        sampling = (await emceepee.question())["requestId"]
        for request_id in ("", "01ARZ3NDEKTSV4RRFFQ69G5FAV", sampling):
            error = await emceepee.fails(
                "respond_to_elicitation", request_id=request_id, action="accept"
            )
            assert error["code"] == "TOOL_ERR_NOT_FOUND"
            error = await emceepee.fails("cancel_elicitation_request", request_id=request_id)
            assert error["code"] == "TOOL_ERR_NOT_FOUND"
        for arguments, problem in (
            ({"request_id": sampling}, "action: missing"),
            ({"request_id": sampling, "action": "yes"}, '.*"accept", "decline", "cancel".*'),
            ({"request_id": 5, "action": "accept"}, "request_id: expected a string, got 5"),
            ({"request_id": sampling, "action": "accept", "content": []}, "content: .* object.*"),
        ):
            error = await emceepee.fails("respond_to_elicitation", **arguments)
            assert error["code"] == "TOOL_ERR_INVALID_ARGUMENTS"
            assert error["details"] == {"problems": [Like(problem)]}
        assert (await emceepee.question())["requestId"] == sampling
