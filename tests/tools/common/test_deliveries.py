"""What a response tells beside its events is told by another one if it is not written."""

from __future__ import annotations

import json
from typing import Any

import trio
from trio.testing import wait_all_tasks_blocked

from connected import open_world
from emceepee_trio.session.session import Session
from emceepee_trio.tools.common.response import Reply, finish

FORM = {"message": "name?", "requestedSchema": {"type": "object", "properties": {}}}


def said(session: Session, *, is_written: bool) -> dict[str, Any]:
    """All that the context of an answer says."""
    result, delivery = finish(session, Reply({"content": []}))
    if is_written:
        delivery.commit()
    else:
        delivery.give_back()
    return {key: value for b in result["content"] for key, value in json.loads(b["text"]).items()}


async def test_a_question_is_told_until_a_response_with_it_is_written() -> None:
    async with open_world() as world, trio.open_nursery() as nursery:
        session = world.one
        ask = session.questions.ask
        nursery.start_soon(ask, "x", "elicitation", FORM, lambda: "withdrawn_by_server")
        await wait_all_tasks_blocked()
        for is_written in (False, False, True):
            told = said(session, is_written=is_written)
            (form,) = told["pending_client_action"]["elicitations"]
            assert form["message"] == "name?"
            assert [e["data"] for e in told["events_since_last_response"]] == [
                {"requestId": form["requestId"]}
            ]
        for is_written in (False, True):
            assert said(session, is_written=is_written) == {"open_questions": [form["requestId"]]}
        nursery.cancel_scope.cancel()
