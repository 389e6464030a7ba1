"""Questions of servers, answered by a person: the first answer counts, whoever gives it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import trio
from quart import request

from ...config import LOCAL, OWN
from ...errors import InvalidArguments, NotFound
from ...model.text.redact import label
from ...session.questions.answers import judged
from ...session.questions.question import Question
from ...session.session import Session
from .common.pages import Changed, Data, Done, Pages
from .common.requests import json_body, visit, wants_json
from .filled import content_of
from .forms import FEW, Field, fields_of

PERSON = "a person"
"""In place of the model that has made an answer to a sampling request."""
OPERATOR = "operator"
REFUSED = "refused by a person"

PATH = "/questions/<session>/<question>"

_PLAIN = re.compile(r"[!-$&-\[\]-~]+")
"""A host, with what may stand beside it, that browsers read as we do: for them ``\\`` is a ``/``,
and ``%2e`` a dot."""


def add_to(pages: Pages) -> None:
    def find(session: str, question: str) -> tuple[Session, Question]:
        theirs = pages.names.session(session, visit().visitor.whose)
        if (found := theirs.questions.find(question)) is not None:
            return theirs, found
        for kind in ("elicitation", "sampling"):
            theirs.questions.get(kind, question)  # raises: says what became of it
        raise NotFound("there is no such question")

    @pages.view(PATH, "question.html")
    async def question(session: str, question: str) -> Data:
        theirs, asked = find(session, question)
        return shown(pages, theirs, asked)

    @pages.act(PATH)
    async def answer(session: str, question: str) -> Changed:
        theirs, asked = find(session, question)
        said = await _said(asked)
        if said is None:
            theirs.questions.cancel(asked, REFUSED)
            return Done("/", f"{asked.server} is told that nobody will answer.")
        try:
            state, result = await judged(asked, said)
        except InvalidArguments as error:
            if wants_json():
                raise
            content = said.get("content")
            given = content if isinstance(content, Mapping) else {}
            data = shown(pages, theirs, asked, given, error)
            return await pages.html(400, "question.html", data)
        who = visit().visitor.principal
        theirs.questions.answer(
            asked, state, result, by=OPERATOR if who in (OWN, LOCAL) else f"{who}, on the page"
        )
        return Done("/", f"{asked.server} has your answer: {state.value}.")


async def _said(asked: Question) -> dict[str, Any] | None:
    """As a client of the protocol would say it; None to refuse a sampling request."""
    if request.is_json:
        body = await json_body()
        if not isinstance(body, dict):
            raise InvalidArguments("expected an object")
        return None if asked.kind == "sampling" and body.get("action") == "decline" else body
    form = await request.form
    if asked.kind == "sampling":
        if "decline" in form:
            return None
        text = form.get("text", "").replace("\r\n", "\n")
        content = {"type": "text", "text": text}
        return {"role": "assistant", "content": content, "model": PERSON, "stopReason": "endTurn"}
    for action in ("decline", "cancel"):
        if action in form:
            return {"action": action}
    if asked.mode == "url":
        return {"action": "accept"}
    return {"action": "accept", "content": content_of(fields(asked), form)}


def fields(asked: Question, known: Mapping[str, Any] | None = None) -> list[Field]:
    return fields_of(asked.params.get("requestedSchema"), known)


def quick(asked: Question) -> list[tuple[str, str, str]]:
    """What can be answered by one click: name and value of a button, and what is on it."""
    if asked.kind == "sampling" or asked.mode == "url":
        return []
    # All of the first screen waits for this: of a long form no more is looked at.
    schema = asked.params.get("requestedSchema")
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    if isinstance(properties, Mapping) and len(properties) > 1:
        return []
    match fields_of(schema, known={}, room=FEW):
        case []:
            return [("accept", "", "Accept")]
        case [only] if only.kind in ("yes_no", "choice"):
            return [(only.name, option.value, option.title) for option in only.options]
    return []


def shown(
    pages: Pages,
    session: Session,
    asked: Question,
    given: Mapping[str, Any] | None = None,
    error: InvalidArguments | None = None,
) -> dict[str, Any]:
    """All of it: whoever answers has to read it."""
    now = trio.current_time()
    problems = (error.details or {}).get("problems", [error.message]) if error else []
    return {
        **asked.whole(),
        "session": pages.names.of(session.id),
        "label": label(session.id),
        "client": session.client_name,
        "kind": asked.kind,
        "relayed": asked.is_relayed,
        "calls": [
            f"{call.server}/{call.tool}"
            for call in session.calls.under_way()
            if asked in call.open_questions
        ],
        "seconds": round(now - asked.asked_at, 1),
        "left": round(asked.asked_at + session.config.limits.question_timeout_ms / 1000 - now),
        "problems": problems,
        **({} if wants_json() else _for_people(asked, given)),
    }


def _for_people(asked: Question, given: Mapping[str, Any] | None) -> dict[str, Any]:
    if asked.kind == "sampling":
        return {"turns": _turns(asked.params), "system": _text_of(asked.params.get("systemPrompt"))}
    if asked.mode == "url":
        return {"url": (url := _text_of(asked.params.get("url"))), "link": _link(url)}
    return {"fields": fields(asked, given)}


def _turns(params: Mapping[str, Any]) -> list[dict[str, str]]:
    messages = params.get("messages")
    found = []
    for message in messages if isinstance(messages, list) else []:
        if isinstance(message, Mapping):
            content = message.get("content")
            blocks = content if isinstance(content, list) else [content]
            text = "\n\n".join(map(_block, blocks))
            found.append({"role": _text_of(message.get("role")), "text": text})
    return found


def _block(block: object) -> str:
    if isinstance(block, Mapping) and isinstance(block.get("text"), str):
        return str(block["text"])
    kind = block.get("type") if isinstance(block, Mapping) else None
    return f"[{_text_of(kind) or 'something'} that is not shown here]"


def _text_of(value: object) -> str:
    return value if isinstance(value, str) else ""


def _link(url: str) -> dict[str, str] | None:
    """Where it leads, if that is a page: nothing else can be clicked."""
    try:
        parts = urlsplit(url)
        host = parts.hostname
    except ValueError:
        return None
    if parts.scheme not in ("http", "https") or not host or not _PLAIN.fullmatch(parts.netloc):
        return None
    return {"host": host, "scheme": parts.scheme}
