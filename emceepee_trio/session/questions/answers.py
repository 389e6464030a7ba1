"""Whether an answer fits its question, and what of it goes to the backend."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from ... import logs
from ...errors import InvalidArguments
from ...model.forms import UnusableForm, filled, has_patterns, mismatches
from ...model.json.intake import Steps, finished
from ...model.states import QuestionState
from ...waits.matching import in_thread
from ...waits.slices import in_slices
from .question import Question

ANSWERS = {
    "accept": QuestionState.ACCEPTED,
    "decline": QuestionState.DECLINED,
    "cancel": QuestionState.CANCELLED,
}


async def judged(
    question: Question, answer: Mapping[str, Any], *, as_it_is: bool = False
) -> tuple[QuestionState, dict[str, Any]]:
    """What a client's own answer comes to, and what of it goes to the backend.

    A form that goes there *as it is* need not fit; its server will see.

    Raises:
        InvalidArguments: it is none.
    """
    if question.kind == "sampling":
        if not (answer.keys() >= {"role", "content", "model"}):
            raise InvalidArguments("a completion has a role, content and a model")
        return QuestionState.COMPLETED, dict(answer)
    state = ANSWERS.get(str(answer.get("action")))
    if state is None:
        raise InvalidArguments(f"an action is {', '.join(ANSWERS)}")
    given = answer.get("content")
    if state is not QuestionState.ACCEPTED or question.mode == "url" or as_it_is:
        return state, dict(answer)
    if not isinstance(given, Mapping | None):
        raise InvalidArguments("the content of a form is an object")
    return state, {**answer, "content": await fitting(question, given)}


async def fitting(question: Question, content: Mapping[str, Any] | None) -> dict[str, Any]:
    """:func:`checked_content`, in a way that makes nobody wait."""
    check = checked_content(question, content)
    if await in_slices(has_patterns(question.params.get("requestedSchema"))):
        return await in_thread(partial(finished, check))
    return await in_slices(check)


def checked_content(question: Question, content: Mapping[str, Any] | None) -> Steps[dict[str, Any]]:
    """*content* with the schema's defaults filled in.

    Raises:
        InvalidArguments: it does not fit; says every way in which it does not.
    """
    schema = question.params.get("requestedSchema")
    if not isinstance(schema, dict):
        return dict(content or {})
    complete = yield from filled(schema, content or {})
    try:
        wrong = yield from mismatches(schema, complete)
    except UnusableForm as error:
        logs.write("warn", "elicitation_schema_unusable", error=str(error))
        return complete
    if wrong:
        raise InvalidArguments(
            f"content does not fit the requested schema: {'; '.join(wrong)}. "
            f"Elicitation {question.id} is still open",
            {"problems": wrong},
        )
    return complete
