"""Which calls a question of a server may be of: who waits for one of them is who has to answer."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from ...model import facts
from ...model.states import QuestionState
from ..questions.question import Question
from .call import Lapsed
from .calls import Calls


@contextmanager
def heard(calls: Calls, question: Question) -> Generator[None]:
    """While a question is open: those calls wait for it that it may be of."""
    if question.call is None:
        sent = [call for call in calls.under_way(question.server) if call.is_sent]
        # Of the tasks the newest will be it: the others have gone on without an answer.
        concerned = [call for call in sent if call.task is None or call is sent[-1]]
        if len(sent) == 1:
            question.call = sent[0].id
    else:
        concerned = [call for call in (calls.of_id(question.call),) if call is not None]
    # Who waits for a script is who can answer what its calls are asked.
    concerned += {c.within.id: c.within for c in concerned if c.within is not None}.values()

    def tell() -> None:
        for call in concerned:
            call.tell()

    question.concerns = [call.id for call in concerned]
    question.tell = tell
    for call in concerned:
        call.questions.append(question)
        calls.journal.note(facts.CallAsked, calls.session_id, call.id, question.id)
    tell()
    try:
        yield
    finally:
        for call in concerned:
            call.questions.remove(question)
            call.tell()
            if question.state is QuestionState.EXPIRED:
                timeout_ms = calls.limits.question_timeout_ms
                call.lapsed = Lapsed(question.id, question.server, timeout_ms)
