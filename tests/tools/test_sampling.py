"""Requests of servers for a completion by the client's model."""

from __future__ import annotations

import json
from typing import Any

from emceepee_client import Open
from fake_backends import Journal, demo, raw
from like import TIMESTAMP, ULID, Like

PARAMS = {
    "messages": [{"role": "user", "content": {"type": "text", "text": "capital of France?"}}],
    "maxTokens": 10,
}


async def test_a_completion_is_asked_for_and_given(
    connect_as_either: Open, its_era: tuple[str, ...]
) -> None:
    async with connect_as_either({"raw": raw(*its_era)}) as emceepee:
        await emceepee.connected("raw")
        task_id = await emceepee.start_task("raw", "sample_question")
        asked = await emceepee.event("sampling_request")
        request_id = asked["data"]["requestId"]
        assert asked["data"] == {"requestId": ULID, "params": PARAMS}
        answer = await emceepee.call("get_sampling_requests")
        assert answer.json == {
            "sampling_requests": [
                {
                    "requestId": request_id,
                    "server": "raw",
                    "timestamp": TIMESTAMP,
                    "params": PARAMS,
                }
            ]
        }
        assert (answer.pending, answer.open_questions) == ({}, [request_id])
        answer = await emceepee.call(
            "respond_to_sampling", request_id=request_id, content="Paris", model="test-1"
        )
        assert answer.json == {"responded": request_id}
        assert answer.pending == {}
        result = await emceepee.call("get_task_result", task_id=task_id)
        assert json.loads(result.text) == {
            "role": "assistant",
            "content": {"type": "text", "text": "Paris"},
            "model": "test-1",
        }
        again = await emceepee.fails(
            "respond_to_sampling", request_id=request_id, content="Lyon", model="test-1"
        )
        assert again == {
            "code": "TOOL_ERR_NOT_FOUND",
            "message": Like(".*no longer open: completed.*"),
            "details": {"status": "completed"},
        }


async def test_a_completion_may_be_blocks(connect: Open) -> None:
    block = {"type": "image", "data": "AAAA", "mimeType": "image/png", "x-vendor": 1}
    text = {"type": "text", "text": "Paris"}
    given: list[tuple[Any, Any]] = [
        ([block], block),
        (block, block),
        ([text, block], [text, block]),
        (json.dumps([block]), {"type": "text", "text": json.dumps([block])}),
    ]
    async with connect({"raw": raw()}) as emceepee:
        for content, wanted in given:
            task_id = await emceepee.start_task("raw", "sample_question")
            await emceepee.says(
                "respond_to_sampling",
                request_id=(await emceepee.question())["requestId"],
                content=content,
                model="m",
                role="user",
                stop_reason="maxTokens",
            )
            result = await emceepee.call("get_task_result", task_id=task_id)
            assert json.loads(result.text) == {
                "role": "user",
                "content": wanted,
                "model": "m",
                "stopReason": "maxTokens",
            }


async def test_the_sdks_own_server_takes_the_answer(connect_as_either: Open) -> None:
    async with connect_as_either({"demo": demo()}) as emceepee:
        task_id = await emceepee.start_task("demo", "ask_model", {"prompt": "2 + 2?"})
        question = await emceepee.question()
        (message,) = question["params"]["messages"]
        assert message["content"]["text"] == "2 + 2?"
        await emceepee.says(
            "respond_to_sampling", request_id=question["requestId"], content="4", model="m"
        )
        assert (await emceepee.call("get_task_result", task_id=task_id)).text == "4"


async def test_a_refused_request_is_an_error_with_its_reason(
    connect: Open, its_era: tuple[str, ...], journal: Journal
) -> None:
    async with connect({"raw": raw(*its_era, *journal.flags)}) as emceepee:
        task_id = await emceepee.start_task("raw", "sample_question")
        request_id = (await emceepee.question())["requestId"]
        said = await emceepee.says(
            "cancel_sampling_request", request_id=request_id, reason="too expensive"
        )
        assert said == {"cancelled": request_id}
        cancelled = await emceepee.event("sampling_cancelled")
        assert cancelled["data"] == {"requestId": request_id, "reason": "too expensive"}
        if its_era:  # which has no answers that are errors: the call fails
            error = await emceepee.fails("get_task_result", task_id=task_id)
            assert error["code"] == "TOOL_ERR_EXECUTION_FAILED"
            assert error["details"]["message"] == "too expensive"
        else:
            refused = await journal.wait_for(lambda entry: "error" in entry)
            assert refused["id"] == Like("sampling/createMessage-.*")  # the server's own
            assert refused["error"]["message"] == "too expensive"
            answer = await emceepee.call("get_task_result", task_id=task_id)
            assert json.loads(answer.text) == {"error": refused["error"]}
        error = await emceepee.fails("cancel_sampling_request", request_id=request_id)
        assert error["details"] == {"status": "cancelled"}


async def test_two_questions_of_one_call_are_answered_apart(
    connect: Open, its_era: tuple[str, ...]
) -> None:
    async with connect({"raw": raw(*its_era)}) as emceepee:
        task_id = await emceepee.start_task("raw", "two_questions")
        sampling = (await emceepee.event("sampling_request"))["data"]["requestId"]
        form = (await emceepee.event("elicitation_request"))["data"]["requestId"]
        await emceepee.says("respond_to_sampling", request_id=sampling, content="Paris", model="m")
        assert (await emceepee.question())["requestId"] == form
        await emceepee.says(
            "respond_to_elicitation", request_id=form, action="accept", content={"name": "A"}
        )
        first, second = (await emceepee.call("get_task_result", task_id=task_id)).texts
        assert json.loads(first)["content"] == {"name": "A"}
        assert json.loads(second)["content"] == {"type": "text", "text": "Paris"}


async def test_a_completion_that_is_none_is_refused(connect: Open) -> None:
    async with connect({"raw": raw()}) as emceepee:
        await emceepee.start_task("raw", "sample_question")
        request_id = (await emceepee.question())["requestId"]
        good = {"request_id": request_id, "model": "m", "content": "Paris"}
        bad: list[tuple[dict[str, Any], str]] = [
            ({"content": []}, "content: expected text, or content blocks.*"),
            ({"content": [{"text": "Paris"}]}, "content: expected text, or content blocks.*"),
            ({"content": 5}, "respond_to_sampling: content: expected .*"),
            ({"role": "system"}, '.*role: expected one of "assistant", "user".*'),
            ({"model": None}, ".*model: expected a string, got null.*"),
        ]
        for wrong, message in bad:
            error = await emceepee.fails("respond_to_sampling", **good | wrong)
            assert error["code"] == "TOOL_ERR_INVALID_ARGUMENTS"
            assert error["message"] == Like(message)
        error = await emceepee.fails("respond_to_sampling", request_id=request_id)
        assert error["details"] == {"problems": ["content: missing", "model: missing"]}
        assert (await emceepee.question())["requestId"] == request_id


async def test_the_call_that_asks_may_be_cancelled(connect: Open, its_era: tuple[str, ...]) -> None:
    """A question of the modern era belongs to its call, one of the handshake era does not."""
    async with connect({"raw": raw(*its_era)}) as emceepee:
        task_id = await emceepee.start_task("raw", "sample_question")
        request_id = (await emceepee.question())["requestId"]
        answer = await emceepee.call("cancel_task", task_id=task_id)
        assert answer.json["success"] is True
        if its_era:
            cancelled = await emceepee.event("sampling_cancelled")
            assert cancelled["data"] == {"requestId": request_id, "reason": "call_ended"}
            assert await emceepee.says("get_sampling_requests") == {"sampling_requests": []}
        else:
            assert (await emceepee.question())["requestId"] == request_id
