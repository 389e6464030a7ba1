"""What a tool answers, and the context blocks that every response carries.

Events are taken for a response at the very last moment, synchronously, by :func:`finish`; so
nothing can be lost between taking them and handing the response to its transport.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import attrs

from ...config import ContextIn
from ...config.bounds import LEAST_BESIDE, MAX_DELIVERY_BYTES
from ...errors import ToolError
from ...model.facts import ResultTold
from ...model.json.problems import Problem
from ...model.json.spelling import spell
from ...model.json.weight import weigh
from ...model.wire import dumps, list_of, loads, object_of, to_snake
from ...session.calls.call import Lapsed, Task
from ...session.events import Delivery
from ...session.questions.question import Question
from ...session.session import Session
from ...waits.firewall import Firewall
from ...waits.slices import in_slices
from .clients import STRANGER, KnownClient
from .deliveries import event_texts, nothing, pending, remarks, tell

LONGEST = "no answer is waited for longer than {} ms (limits.answer_ms)"
"""Said where that ended a wait before its time."""

KEY = "emceepee"
"""Of the context within structuredContent."""

Result: TypeAlias = dict[str, Any]


@attrs.frozen
class Reply:
    """A result before the context blocks."""

    result: Result = attrs.field(factory=dict)
    claim: Callable[[], tuple[Result, Delivery]] | None = None
    """Makes the result from events taken on the spot, instead; await_activity does."""
    lapsed: Lapsed | None = None
    """A question that nobody answered in time, and that the result may be about."""
    full: Sequence[Question] = ()
    """Questions that stand in full in the result."""
    task: Task | None = None
    """What the call that was waited for has become."""
    of: str | None = None
    """The server whose answer it shows."""
    call: str | None = None
    """The call whose result that is."""
    defines: Mapping[str, int] = attrs.field(factory=dict)
    """Bytes of definitions in it, by server."""


def text(value: str) -> dict[str, Any]:
    return {"type": "text", "text": value}


def json_reply(value: Any) -> Reply:
    return Reply({"content": [text(dumps(value))], "isError": False})


async def long_reply(value: Any) -> Reply:
    """The same of what may be long."""
    return Reply({"content": [text(await in_slices(spell(value)))], "isError": False})


def error_reply(error: ToolError) -> Reply:
    return Reply({"content": [text(dumps(error.to_json()))], "isError": True})


def finish(
    session: Session, reply: Reply, ignored: Sequence[Problem] = (), client: KnownClient = STRANGER
) -> tuple[Result, Delivery]:
    """The whole result, and the delivery to commit or give back. No checkpoint in here.

    *ignored* are arguments that had no effect.
    """
    size = _size(reply.result)
    _count(session, reply, size)
    if reply.claim is not None:
        result, delivery = reply.claim()
        return _in_content(result, _note(session, ignored, delivery)), delivery
    place = _place(session.config.context_in, client, reply.result)
    if place is None:
        session.untold = _ignored(ignored) or session.untold
        return reply.result, nothing(session)
    if session.config.context == "off":
        delivery = nothing(session)
    else:
        room = max(LEAST_BESIDE, MAX_DELIVERY_BYTES - size)
        delivery = session.events.take(room)
    with Firewall("context_crashed", lambda _: delivery.lose(), fields={"session": session.id}):
        blocks = [*_note(session, ignored, delivery), *_context(session, reply, delivery, size)]
        return place(reply.result, blocks), delivery
    # Without what cannot be said: else nothing could be, ever again.
    return reply.result, nothing(session)


def _count(session: Session, reply: Reply, size: int) -> None:
    if reply.of is not None:
        session.told(reply.of, results=size)
        if reply.call is not None:
            session.shared.journal.note(ResultTold, session.id, reply.call, size)
    for server, defined in reply.defines.items():
        session.told(server, definitions=defined)


def _size(result: Result) -> int:
    """About the bytes of what a model reads of it; of a text the length, which costs nothing."""
    content, given = result.get("content"), result.get("structuredContent")
    blocks = content if isinstance(content, list) else [content]
    texts = [block.get("text") if isinstance(block, dict) else None for block in blocks]
    said = sum(
        len(text) if isinstance(text, str) else weigh(block)
        for text, block in zip(texts, blocks, strict=True)
    )
    return said + (0 if given is None else weigh(given))


Blocks: TypeAlias = list[str]
"""JSON, of an object each."""


def _ignored(problems: Sequence[Problem]) -> str:
    return f"ignored: {'; '.join(map(str, problems))}" if problems else ""


def _note(session: Session, ignored: Sequence[Problem], delivery: Delivery) -> Blocks:
    notes = [_ignored(ignored)] if ignored else []
    if untold := session.untold:

        def take_back() -> None:
            session.untold = session.untold or untold

        session.untold = ""
        delivery.on_give_back(take_back)
        notes.insert(0, f"of an earlier call: {untold}")
    return [dumps({"note": "; ".join(notes)})] if notes else []


def _place(
    context_in: ContextIn, client: KnownClient, result: Result
) -> Callable[[Result, Blocks], Result] | None:
    """Where the model sees the context of this result; None if it may be nowhere."""
    given = result.get("structuredContent")
    if context_in == "auto" and not client.shows_only_structured(result):
        return _in_content
    if context_in == "content" or given is None:
        return _in_content
    return _in_structured if isinstance(given, dict) and KEY not in given else None


def _in_content(result: Result, blocks: Blocks) -> Result:
    if not blocks:
        return result
    content = result.get("content")
    if not isinstance(content, list):
        # A backend may leave it out; one that sends something else keeps it, as text.
        content = [] if content is None else [text(dumps(content))]
    return {**result, "content": [*content, *map(text, blocks)]}


def _in_structured(result: Result, blocks: Blocks) -> Result:
    if not blocks:
        return result
    said = {key: value for block in blocks for key, value in loads(block).items()}
    return {**result, "structuredContent": {**result["structuredContent"], KEY: said}}


def _context(session: Session, reply: Reply, delivery: Delivery, spent: int) -> Blocks:
    blocks: Blocks = []
    if reply.lapsed is not None:
        blocks.append(dumps({"unanswered_question": to_snake(reply.lapsed)}))
    tell(session, delivery, reply.full)
    new: Result
    known: Result
    new, known = pending(session, delivery, spent) if session.config.context == "full" else ({}, {})
    if delivery.events or delivery.lost or delivery.more:
        events = list_of(text for _, text in event_texts(session, delivery))
        said = {name: dumps(value) for name, value in remarks(delivery).items()}
        blocks.append(object_of({"events_since_last_response": events} | said))
    if new:
        blocks.append(dumps({"pending_client_action": new}))
    if known:
        blocks.append(dumps(known))
    return blocks
