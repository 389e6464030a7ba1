"""What a tool answers, and the context blocks that every response carries.

Events are taken for a response at the very last moment, synchronously, by :func:`finish`; so
nothing can be lost between taking them and handing the response to its transport.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

import attrs

from ..config import ContextIn
from ..config.bounds import MAX_PENDING_BYTES
from ..errors import ToolError
from ..model.problems import Problem
from ..model.spelling import spell
from ..model.wire import dumps, size_of, to_snake
from ..session.call import Lapsed
from ..session.events import Delivery
from ..session.questions import Question
from ..session.session import Session
from ..waits.firewall import Firewall
from ..waits.slices import in_slices
from .clients import STRANGER, Known

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
    session: Session, reply: Reply, ignored: Sequence[Problem] = (), client: Known = STRANGER
) -> tuple[Result, Delivery]:
    """The whole result, and the delivery to commit or give back. No checkpoint in here.

    *ignored* are arguments that had no effect.
    """
    if reply.claim is not None:
        result, delivery = reply.claim()
        return _in_content(result, _note(ignored)), delivery
    place = _place(session.config.context_in, client, reply.result)
    if place is None:
        return reply.result, nothing(session)
    delivery = nothing(session) if session.config.context == "off" else session.events.take()
    with Firewall("context_crashed", lambda _: delivery.lose(), fields={"session": session.id}):
        blocks = [*_note(ignored), *_context(session, reply, delivery)]
        return place(reply.result, blocks), delivery
    # Without what cannot be said: else nothing could be, ever again.
    return reply.result, nothing(session)


Blocks: TypeAlias = list[Result]


def _note(ignored: Sequence[Problem]) -> Blocks:
    return [{"note": f"ignored: {'; '.join(map(str, ignored))}"}] if ignored else []


def _place(
    context_in: ContextIn, client: Known, result: Result
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
    return {**result, "content": [*content, *(text(dumps(block)) for block in blocks)]}


def _in_structured(result: Result, blocks: Blocks) -> Result:
    if not blocks:
        return result
    said = {key: block[key] for block in blocks for key in block}
    return {**result, "structuredContent": {**result["structuredContent"], KEY: said}}


def _context(session: Session, reply: Reply, delivery: Delivery) -> Blocks:
    blocks = []
    if reply.lapsed is not None:
        blocks.append({"unanswered_question": to_snake(reply.lapsed)})
    if said := delivery_json(delivery, "events_since_last_response"):
        blocks.append(said)
    if session.config.context == "full" and (pending := pending_client(session)):
        blocks.append({"pending_client_action": pending})
    return blocks


def nothing(session: Session) -> Delivery:
    """A delivery of no events."""
    return Delivery((), 0, 0, False, "", session.events, ())


def delivery_json(delivery: Delivery, key: str) -> Result:
    said: Result = {}
    if delivery.events or delivery.lost:
        said[key] = delivery.to_json()
    return said | remarks(delivery)


def remarks(delivery: Delivery) -> Result:
    """What a delivery says beside its events."""
    said: Result = {}
    if delivery.more:
        said["more"] = delivery.more
    if delivery.lost:
        said["events_lost"] = delivery.lost
    if delivery.cursor_lost:
        said["cursor_lost"] = True
    return said


def pending_client(session: Session, server: str | None = None) -> Result:
    """Questions that wait for the client; empty if there are none.

    They stand in every response, so there is a bound to what they take of it.
    """
    elicitations = session.questions.open("elicitation", server)
    sampling = session.questions.open("sampling", server)
    if not elicitations and not sampling:
        return {}
    room = Room(MAX_PENDING_BYTES)
    said: Result = {
        "elicitations": room.briefs(elicitations),
        "sampling_requests": room.briefs(sampling),
    }
    return said | ({"more": room.missing} if room.missing else {})


@attrs.define(eq=False)
class Room:
    """For questions, each as it is, or only its name, or none."""

    left: int
    missing: int = attrs.field(default=0, init=False)

    def briefs(self, questions: Iterable[Question]) -> list[Result]:
        found = []
        for question in questions:
            short = question.brief() if question.size <= self.left else question.name()
            size = size_of(short)
            if size > self.left:
                short = question.name()
                size = size_of(short)
            if size > self.left:
                self.missing += 1
            else:
                self.left -= size
                found.append(short)
        return found
