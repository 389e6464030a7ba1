"""What one delivery says: its events, and the questions that are open.

A question stands in full once: where the client asked for it, else in the block of what is
pending, else in its event. Wherever else it is meant, and in later deliveries, there is its id.
What a response tells that is not written is told by another one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import attrs

from ...config.bounds import LEAST_BESIDE, MAX_PENDING_BYTES
from ...model.events import ElicitationRequest, Event, SamplingRequest
from ...model.wire import new_event, size_of
from ...session.events import Delivery
from ...session.questions.question import Kind, Question
from ...session.session import Session

Result = dict[str, Any]

NOTHING_PENDING: Result = {"elicitations": [], "sampling_requests": []}
ID_BYTES = 29
"""Of an id in a list of them."""


def nothing(session: Session) -> Delivery:
    """A delivery of no events."""
    return Delivery((), 0, 0, False, "", session.events, ())


def tell(session: Session, delivery: Delivery, questions: Iterable[Question]) -> None:
    """They stand in full in the response that this is the delivery of."""
    for question in questions:
        _tell(session, delivery, question)


def _tell(
    session: Session, delivery: Delivery, question: Question, *, in_full: bool = True
) -> None:
    take_back = session.questions.tell(question, in_full=in_full)
    if take_back is not None:
        delivery.on_give_back(take_back)


def event_texts(session: Session, delivery: Delivery) -> list[tuple[str, str]]:
    """Servers and JSON of its events; call :func:`pending` before, which may have said more."""
    return [
        (event.server, _text(session, delivery, event, said)) for event, said in delivery.texts()
    ]


def _text(session: Session, delivery: Delivery, event: Event, said: str) -> str:
    questions, asked = session.questions, event.happening
    if isinstance(asked, ElicitationRequest | SamplingRequest) and asked.params is not None:
        if questions.is_in_full(asked.request_id):
            short = attrs.evolve(asked, params=None)
            return new_event(event.id, event.server, event.created_at, short).text
        if (question := questions.find(asked.request_id)) is not None:
            _tell(session, delivery, question)
    return said


ASKED = ("elicitation_request", "sampling_request")
"""Types of events that have a question in them."""


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


def pending(session: Session, delivery: Delivery, spent: int = 0) -> tuple[Result, Result]:
    """Questions that the client has not been told of, and the ids of the others.

    Each may be empty. The latter stand in every response, so there is a bound to both, and to them
    together with the events and what else has been *spent* in bytes.
    """
    # Of a question that stands here in full there is only the id in its event.
    asks = ElicitationRequest | SamplingRequest
    spent += sum(e.size for e in delivery.events if not isinstance(e.happening, asks))
    questions, room = session.questions, Room(max(LEAST_BESIDE, MAX_PENDING_BYTES - spent))
    if not questions.has_open:
        return {}, {}
    told = [q.id for kind in KINDS for q in questions.open(kind) if questions.is_told(q)]
    new = {kind: [q for q in questions.open(kind) if not questions.is_told(q)] for kind in KINDS}
    said = _shown(new["elicitation"], new["sampling"], room)
    for question, in_full in room.shown:
        _tell(session, delivery, question, in_full=in_full)
    ids = told[: max(1, room.left // ID_BYTES)]
    known: Result = {"open_questions": ids} if ids else {}
    if len(told) > len(ids):
        known["more_open_questions"] = len(told) - len(ids)
    return said, known


KINDS: tuple[Kind, ...] = ("elicitation", "sampling")


def pending_of(session: Session, server: str) -> tuple[Result, list[Question]]:
    """All that are open of one server, empty if none is; and which of them stand there in full."""
    room = Room(MAX_PENDING_BYTES)
    questions = session.questions
    said = _shown(questions.open("elicitation", server), questions.open("sampling", server), room)
    return said, [question for question, in_full in room.shown if in_full]


def references(
    session: Session, server: str, named: Sequence[Question]
) -> tuple[list[Result], list[Question]]:
    """The forms that are open of one server, beside something else; and which are there in full.

    By their ids, unless nothing else tells of them. Those that are *named* have been.
    """
    room = Room(MAX_PENDING_BYTES)
    found = session.questions.open("elicitation", server)
    if session.config.context == "full":
        new = []
        found = [question for question in found if question not in named]
    else:
        new = [question for question in found if not session.questions.is_told(question)]
        found = [question for question in found if question not in (*new, *named)]
    said = room.briefs(new)
    for question in found:
        reference = question.reference()
        if (size := size_of(reference)) <= room.left:
            room.left -= size
            said.append(reference)
    return said, [question for question, in_full in room.shown if in_full]


def _shown(elicitations: Sequence[Question], sampling: Sequence[Question], room: Room) -> Result:
    if not elicitations and not sampling:
        return {}
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
    shown: list[tuple[Question, bool]] = attrs.field(factory=list, init=False)
    """Those that stand there, and whether in full."""

    def briefs(self, questions: Iterable[Question]) -> list[Result]:
        found = []
        for question in questions:
            in_full = question.kind == "elicitation" and question.size <= self.left
            short = question.brief() if question.size <= self.left else question.name()
            size = size_of(short)
            if size > self.left:
                short, in_full = question.name(), False
                size = size_of(short)
            if size > self.left:
                self.missing += 1
            else:
                self.left -= size
                self.shown.append((question, in_full))
                found.append(short)
        return found
