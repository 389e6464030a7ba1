"""Questions of backends, for a client to answer: sampling and elicitation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import attrs

from ..config.bounds import MAX_BLOCKS
from ..config.server import A_NAME
from ..errors import InvalidArguments
from ..model.json.fields import Doc, Most, frozen
from ..model.states import QuestionState
from ..session.questions.answers import ANSWERS, fitting
from ..session.questions.question import Kind, Question
from .common.listing import Group, by_age
from .common.registry import ACTS, ENDS, READS, Request, tool
from .common.response import Reply, json_reply, long_reply


@frozen
class Open:
    server: Annotated[str | None, A_NAME] = None
    request_id: Annotated[str | None, A_NAME, Doc("only this one")] = None
    cursor: Annotated[str | None, A_NAME] = None


@tool("Open requests of servers for a completion by you, the model.", Open, READS)
async def get_sampling_requests(request: Request, asked: Open) -> Reply:
    return await _open(request, "sampling", "sampling_requests", asked)


async def _open(request: Request, kind: Kind, key: str, asked: Open) -> Reply:
    questions = request.session.questions
    if asked.request_id is not None:
        one = questions.get(kind, asked.request_id)
        return attrs.evolve(await long_reply({key: [one.whole()]}), full=[one])
    found = questions.open(kind, asked.server)
    groups = [Group(each.id, map(Question.whole, (each,))) for each in found]
    reply, page = await by_age(request, key, groups, asked)
    full = [each for each in found if each.id in page.groups and each.id not in page.short]
    return attrs.evolve(reply, full=full)


@frozen
class RespondToSampling:
    request_id: Annotated[str, A_NAME]
    content: Annotated[
        str | tuple[Mapping[str, Any], ...] | Mapping[str, Any],
        Most(MAX_BLOCKS),
        Doc("text, or content blocks"),
    ]
    model: str
    role: Literal["assistant", "user"] = "assistant"
    stop_reason: Annotated[str | None, A_NAME] = None


@tool("Answer a sampling request.", RespondToSampling, ACTS)
async def respond_to_sampling(request: Request, asked: RespondToSampling) -> Reply:
    questions = request.session.questions
    question = questions.get("sampling", asked.request_id)
    result = {
        "role": asked.role,
        "content": _content(asked.content, uses_tools="tools" in question.params),
        "model": asked.model,
    }
    if asked.stop_reason is not None:
        result["stopReason"] = asked.stop_reason
    questions.answer(question, QuestionState.COMPLETED, result)
    return json_reply({"responded": asked.request_id})


def _content(
    content: str | Sequence[Mapping[str, Any]] | Mapping[str, Any], *, uses_tools: bool
) -> Any:
    if isinstance(content, str):
        return {"type": "text", "text": content}
    blocks = [content] if isinstance(content, Mapping) else list(content)
    if not blocks or not all(isinstance(block.get("type"), str) for block in blocks):
        raise InvalidArguments(
            'content: expected text, or content blocks like {"type": "text", "text": "…"}'
        )
    # Only requests with tools may be answered with several blocks; older backends know one.
    return blocks if uses_tools or len(blocks) > 1 else blocks[0]


UNSAID = "cancelled by the client"
"""The reason, where none is given."""


@frozen
class Cancel:
    request_id: Annotated[str, A_NAME]
    reason: Annotated[str | None, Most(most_characters=1000)] = None


@tool("Refuse a sampling request.", Cancel, ENDS)
async def cancel_sampling_request(request: Request, asked: Cancel) -> Reply:
    questions = request.session.questions
    questions.cancel(questions.get("sampling", asked.request_id), asked.reason or UNSAID)
    return json_reply({"cancelled": asked.request_id})


@tool("Open questions of servers to the user, with the form they want.", Open, READS)
async def get_elicitations(request: Request, asked: Open) -> Reply:
    return await _open(request, "elicitation", "elicitations", asked)


@frozen
class RespondToElicitation:
    request_id: Annotated[str, A_NAME]
    action: Literal["accept", "decline", "cancel"]
    content: Annotated[Mapping[str, Any] | None, Doc("with accept: the form, by its schema")] = None


@tool(
    "Answer a question of a server. Ask the user; do not make answers up.",
    RespondToElicitation,
    ACTS,
    hint="answer a question of a server",
)
async def respond_to_elicitation(request: Request, asked: RespondToElicitation) -> Reply:
    questions = request.session.questions
    question = questions.get("elicitation", asked.request_id)
    result: dict[str, Any] = {"action": asked.action}
    if asked.action == "accept" and question.mode != "url":
        result["content"] = await fitting(question, asked.content)
    questions.answer(question, ANSWERS[asked.action], result)
    return json_reply({"responded": asked.request_id})


@tool("Withdraw from a question of a server; it is told cancel.", Cancel, ENDS)
async def cancel_elicitation_request(request: Request, asked: Cancel) -> Reply:
    questions = request.session.questions
    questions.cancel(questions.get("elicitation", asked.request_id), asked.reason or UNSAID)
    return json_reply({"cancelled": asked.request_id})


TOOLS = (
    get_sampling_requests,
    respond_to_sampling,
    cancel_sampling_request,
    get_elicitations,
    respond_to_elicitation,
    cancel_elicitation_request,
)
