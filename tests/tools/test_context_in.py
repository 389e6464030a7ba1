"""Where a response tells what is new: where its client shows it to its model, or not at all."""

from __future__ import annotations

import json
from typing import Any

import pytest
from mcp_types import Implementation

from emceepee_client import Answer, Emceepee, Open
from fake_backends import raw
from like import Like

CLAUDE = Implementation(name="claude-code", version="2.1.327")
CODEX = Implementation(name="codex-mcp-client", version="0.169.0")
WORDS = {"type": "text", "text": "in words"}


async def structured(emceepee: Emceepee, value: Any, **more: Any) -> Answer:
    return await emceepee.execute("raw", "structured", {"value": value, **more})


async def nothing_is_new(emceepee: Emceepee) -> None:
    await emceepee.connected("raw")
    while (await emceepee.says("await_activity", timeout_ms=0))["events"]:
        pass


def told(events: list[Any]) -> list[str]:
    return [event["data"]["method"] for event in events]


@pytest.mark.parametrize("client", [CLAUDE, CODEX], ids=lambda client: client.name)
async def test_where_only_structured_content_is_shown_the_context_is_in_there(
    connect_as_either: Open, client: Implementation
) -> None:
    async with connect_as_either({"raw": raw()}, client_info=client) as emceepee:
        await nothing_is_new(emceepee)
        for _ in range(2):
            answer = await structured(emceepee, {"sum": 3})
            assert answer.result["content"] == [WORDS]
            context = answer.result["structuredContent"].pop("emceepee")
            assert answer.result["structuredContent"] == {"sum": 3}
            # Told is told.
            assert told(context.pop("events_since_last_response")) == ["notifications/custom"]
            assert context == {}
        # Of what has no structured content, the content is shown.
        assert (await emceepee.execute("raw", "echo", {"text": "x"})).events == []
        task_id = await emceepee.start_task("raw", "string_id_question")
        request_id = (await emceepee.question())["requestId"]
        context = (await structured(emceepee, {})).result["structuredContent"]["emceepee"]
        assert request_id in json.dumps(context)
        await emceepee.says("cancel_task", task_id=task_id)


@pytest.mark.parametrize("value", [[1], "text", 7, False, {"emceepee": "its own"}], ids=repr)
async def test_what_it_cannot_be_put_into_tells_nothing_and_leaves_it_to_the_next(
    connect_as_either: Open, value: Any
) -> None:
    async with connect_as_either({"raw": raw()}, client_info=CODEX) as emceepee:
        await nothing_is_new(emceepee)
        for _ in range(2):
            answer = await structured(emceepee, value)
            assert answer.result["content"] == [WORDS]
            assert answer.result["structuredContent"] == value
        # Also what that answer itself had to say.
        await emceepee.execute("raw", "structured", {"value": value}, timout_ms=9)
        answer = await structured(emceepee, {})
        context = answer.result["structuredContent"]["emceepee"]
        assert told(context["events_since_last_response"]) == ["notifications/custom"] * 4
        assert context["note"] == Like('of an earlier call: ignored: .*"timout_ms".*')
        answer = await structured(emceepee, {})
        assert "note" not in answer.result["structuredContent"]["emceepee"]


async def test_other_clients_have_it_in_the_content(connect_as_either: Open) -> None:
    async with connect_as_either({"raw": raw()}) as emceepee:
        await nothing_is_new(emceepee)
        for value in ({"sum": 3}, [1], None):
            answer = await structured(emceepee, value)
            assert answer.content == [WORDS]
            assert answer.result["structuredContent"] == value
            assert told(answer.events) == ["notifications/custom"]


@pytest.mark.parametrize(("client", "in_content"), [(CLAUDE, True), (CODEX, False)])
async def test_of_an_error_some_show_the_content_all_the_same(
    connect: Open, client: Implementation, in_content: bool
) -> None:
    async with connect({"raw": raw()}, client_info=client) as emceepee:
        await nothing_is_new(emceepee)
        answer = await structured(emceepee, {}, is_error=True)
        assert bool(answer.events) is in_content
        assert ("emceepee" in answer.result["structuredContent"]) is not in_content


@pytest.mark.parametrize(("setting", "client"), [("content", CLAUDE), ("structured", None)])
async def test_a_setting_says_so_for_all(
    connect: Open, setting: str, client: Implementation | None
) -> None:
    who = {} if client is None else {"client_info": client}
    async with connect({"raw": raw()}, context_in=setting, **who) as emceepee:
        await nothing_is_new(emceepee)
        answer = await structured(emceepee, {})
        if setting == "content":
            assert told(answer.events) == ["notifications/custom"]
            assert answer.result["structuredContent"] == {}
        else:
            assert list(answer.result["structuredContent"]) == ["emceepee"]
            assert answer.content == [WORDS]
            assert told((await emceepee.execute("raw", "echo")).events) == []
