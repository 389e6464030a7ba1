from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any, cast

import attrs
import pytest
import trio
from mcp import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_REQUEST, REQUEST_TIMEOUT
from trio.testing import MockClock, wait_all_tasks_blocked

from emceepee_trio.config import Limits
from emceepee_trio.errors import InvalidArguments, NotFound
from emceepee_trio.model import events
from emceepee_trio.model.json.intake import finished
from emceepee_trio.model.states import QuestionState
from emceepee_trio.model.wire import timestamp
from emceepee_trio.session.questions import answers
from emceepee_trio.session.questions.question import Kind, Question
from emceepee_trio.session.questions.questions import CLOSED, Questions
from parts import Told, new_ids, wall

KINDS: tuple[Kind, ...] = ("elicitation", "sampling")
kinds = pytest.mark.parametrize("kind", KINDS)
ACCEPTED = {"action": "accept", "content": {"name": "Ada"}}


@attrs.define(eq=False)
class Inbox:
    """Open questions, and what became of the backends that asked."""

    questions: Questions
    told: Told
    nursery: trio.Nursery
    got: dict[str, Any] = attrs.field(factory=dict)
    scopes: dict[str, trio.CancelScope] = attrs.field(factory=dict)

    async def ask(
        self,
        name: str,
        kind: Kind = "elicitation",
        params: Mapping[str, Any] | None = None,
        abandoned: str = "withdrawn_by_server",
    ) -> Question:
        """A backend asks, and is *name* to :attr:`got` and :attr:`scopes`."""
        self.nursery.start_soon(self._ask, name, kind, params or {"message": "?"}, abandoned)
        await wait_all_tasks_blocked()
        return self.questions.open(kind)[-1]

    async def _ask(self, name: str, kind: Kind, params: Mapping[str, Any], reason: str) -> None:
        with trio.CancelScope() as self.scopes[name]:
            try:
                self.got[name] = await self.questions.ask("files", kind, params, lambda: reason)
            except MCPError as error:
                self.got[name] = error.error


@asynccontextmanager
async def open_inbox(**limits: int) -> AsyncGenerator[Inbox]:
    told = Told()
    async with trio.open_nursery() as nursery:
        questions = Questions(attrs.evolve(Limits(), **limits), told, new_ids(), wall, "s")
        yield Inbox(questions, told, nursery)
        nursery.cancel_scope.cancel("end of the test")


def happening(kind: Kind, what: str) -> Any:
    return getattr(events, kind.capitalize() + what)


@kinds
async def test_an_answer_reaches_the_backend_that_asked(
    kind: Kind, autojump_clock: MockClock
) -> None:
    async with open_inbox() as inbox:
        params = {"message": "Who?", "messages": []}
        question = await inbox.ask("b", kind, params)
        assert inbox.told.said == [("files", happening(kind, "Request")(question.id, params))]
        assert inbox.questions.get(kind, question.id) is question
        state = QuestionState.ACCEPTED if kind == "elicitation" else QuestionState.COMPLETED
        inbox.questions.answer(question, state, ACCEPTED)
        assert question.state is state
        assert inbox.questions.open(kind) == []
        await wait_all_tasks_blocked()
        assert inbox.got == {"b": ACCEPTED}
        assert len(inbox.told.said) == 1


async def test_a_decline_is_an_answer_too(autojump_clock: MockClock) -> None:
    async with open_inbox() as inbox:
        question = await inbox.ask("b")
        inbox.questions.answer(question, QuestionState.DECLINED, {"action": "decline"})
        await wait_all_tasks_blocked()
        assert inbox.got == {"b": {"action": "decline"}}


@kinds
async def test_a_late_answer_hears_what_became_of_the_question(
    kind: Kind, autojump_clock: MockClock
) -> None:
    async with open_inbox() as inbox:
        question = await inbox.ask("b", kind)
        inbox.questions.cancel(question, "not today")
        with pytest.raises(NotFound, match="no longer open: cancelled") as caught:
            inbox.questions.answer(question, QuestionState.CANCELLED, {})
        assert caught.value.details == {"status": "cancelled"}
        with pytest.raises(NotFound, match="no longer open: cancelled"):
            inbox.questions.cancel(question, "again")
        with pytest.raises(NotFound, match="no longer open: cancelled"):
            inbox.questions.get(kind, question.id)
        await wait_all_tasks_blocked()
        assert len(inbox.told.said) == 2


async def test_a_cancelled_form_ends_as_cancelled(autojump_clock: MockClock) -> None:
    async with open_inbox() as inbox:
        question = await inbox.ask("b")
        inbox.questions.cancel(question, "not today")
        await wait_all_tasks_blocked()
        assert inbox.got == {"b": {"action": "cancel"}}
        assert inbox.told.said[1:] == [
            ("files", events.ElicitationCancelled(question.id, "not today"))
        ]


async def test_cancelled_sampling_ends_with_an_error(autojump_clock: MockClock) -> None:
    async with open_inbox() as inbox:
        question = await inbox.ask("b", "sampling")
        inbox.questions.cancel(question, "not today")
        await wait_all_tasks_blocked()
        error = inbox.got["b"]
        assert (error.code, error.message) == (INVALID_REQUEST, "not today")
        assert inbox.told.said[1:] == [
            ("files", events.SamplingCancelled(question.id, "not today"))
        ]


@kinds
async def test_a_question_nobody_answers_expires(kind: Kind, autojump_clock: MockClock) -> None:
    async with open_inbox(question_timeout_ms=10_000) as inbox:
        question = await inbox.ask("b", kind)
        await trio.sleep(9.9)
        assert inbox.questions.open(kind) == [question]
        await trio.sleep(0.2)
        assert question.state is QuestionState.EXPIRED
        assert inbox.got["b"].code == REQUEST_TIMEOUT
        assert "10000 ms" in inbox.got["b"].message
        assert inbox.told.said[1:] == [
            ("files", happening(kind, "Expired")(question.id, "timeout"))
        ]


@kinds
@pytest.mark.parametrize("reason", ["withdrawn_by_server", "call_ended"])
async def test_a_question_that_is_withdrawn_is_cancelled(
    kind: Kind, reason: str, autojump_clock: MockClock
) -> None:
    async with open_inbox() as inbox:
        question = await inbox.ask("b", kind, abandoned=reason)
        inbox.scopes["b"].cancel("the backend withdraws it")
        await wait_all_tasks_blocked()
        assert question.state is QuestionState.CANCELLED
        assert inbox.got == {}
        assert inbox.told.said[1:] == [("files", happening(kind, "Cancelled")(question.id, reason))]


@kinds
@pytest.mark.parametrize("reason", ["server_disconnected", "server_removed", "server_reconnected"])
async def test_a_question_of_a_backend_that_is_gone_is_rejected(
    kind: Kind, reason: str, autojump_clock: MockClock
) -> None:
    async with open_inbox() as inbox:
        question = await inbox.ask("b", kind, abandoned=reason)
        inbox.scopes["b"].cancel("the connection ends")
        await wait_all_tasks_blocked()
        assert question.state is QuestionState.REJECTED
        assert inbox.told.said[1:] == [("files", happening(kind, "Expired")(question.id, reason))]
        with pytest.raises(NotFound, match="no longer open: rejected"):
            inbox.questions.get(kind, question.id)


async def test_one_question_too_many_is_refused_to_the_backend(autojump_clock: MockClock) -> None:
    async with open_inbox(questions=2) as inbox:
        first = await inbox.ask("a")
        await inbox.ask("b", "sampling")
        await inbox.ask("c")
        assert inbox.got["c"].code == INTERNAL_ERROR
        assert "2 questions are open" in inbox.got["c"].message
        assert len(inbox.told.said) == 2
        inbox.questions.answer(first, QuestionState.DECLINED, {"action": "decline"})
        fourth = await inbox.ask("d")
        assert inbox.questions.open("elicitation") == [fourth]


async def test_open_questions_are_listed_by_kind_and_server(autojump_clock: MockClock) -> None:
    async with open_inbox() as inbox:
        first, second = await inbox.ask("a"), await inbox.ask("b")
        sampling = await inbox.ask("c", "sampling")
        assert inbox.questions.open("elicitation") == [first, second]
        assert inbox.questions.open("elicitation", "files") == [first, second]
        assert inbox.questions.open("elicitation", "web") == []
        assert inbox.questions.open("sampling") == [sampling]
        with pytest.raises(NotFound, match="get_sampling_requests lists"):
            inbox.questions.get("sampling", first.id)
        with pytest.raises(NotFound, match="get_elicitations lists"):
            inbox.questions.get("elicitation", sampling.id)
        with pytest.raises(NotFound, match="no elicitation 'nonsense' is open"):
            inbox.questions.get("elicitation", "nonsense")


async def test_what_became_of_questions_is_remembered_for_the_last_ones_only(
    autojump_clock: MockClock,
) -> None:
    async with open_inbox() as inbox:
        ids = []
        for number in range(CLOSED + 5):
            question = await inbox.ask(str(number))
            inbox.questions.cancel(question, "")
            ids.append(question.id)
        assert len(inbox.questions._closed) == CLOSED
        assert len(inbox.questions._open) == 0
        with pytest.raises(NotFound, match="is open; get_elicitations"):
            inbox.questions.get("elicitation", ids[0])
        with pytest.raises(NotFound, match="no longer open"):
            inbox.questions.get("elicitation", ids[-1])


async def test_a_question_is_shown_in_brief_and_whole(autojump_clock: MockClock) -> None:
    async with open_inbox() as inbox:
        form = {"type": "object", "properties": {}}
        asked = {"message": "Who?", "requestedSchema": form, "_meta": {"x": 1}}
        question = await inbox.ask("a", params=asked)
        brief = {
            "requestId": question.id, "server": "files", "message": "Who?", "mode": "form",
            "requestedSchema": form,
        }  # fmt: skip
        assert question.brief() == brief
        assert question.whole() == brief | {"timestamp": timestamp(wall())}

        url = {"message": "Go", "mode": "url", "url": "https://x.example", "elicitationId": "e"}
        question = await inbox.ask("b", params=url)
        brief = {
            "requestId": question.id, "server": "files", "message": "Go", "mode": "url",
            "url": "https://x.example",
        }  # fmt: skip
        assert question.brief() == brief
        assert question.whole() == brief | {
            "timestamp": timestamp(wall()), "elicitationId": "e"
        }  # fmt: skip

        params = {"messages": [{"some_key": None}], "maxTokens": 5}
        question = await inbox.ask("c", "sampling", params)
        assert question.brief() == {"requestId": question.id, "server": "files"}
        assert question.whole() == {
            "requestId": question.id, "server": "files", "timestamp": timestamp(wall()),
            "params": params,
        }  # fmt: skip


def checked_content(question: Question, content: Mapping[str, Any] | None) -> dict[str, Any]:
    return finished(answers.checked_content(question, content))


def form(schema: object) -> Question:
    params = {"message": "?", "requestedSchema": schema}
    return Question("q", "elicitation", "files", "now", cast(Any, params))


def test_content_is_checked_against_the_form_and_defaults_are_filled_in() -> None:
    question = form(
        {
            "type": "object",
            "properties": {
                "name": {"type": "string"},
                "color": {"type": "string", "default": "red"},
            },
            "required": ["name", "color"],
        }
    )
    assert checked_content(question, {"name": "Ada"}) == {"name": "Ada", "color": "red"}
    with pytest.raises(InvalidArguments, match="Elicitation q is still open") as caught:
        checked_content(question, {"color": 5})
    assert caught.value.details == {
        "problems": ["'name' is a required property", "color: 5 is not of type 'string'"]
    }
    with pytest.raises(InvalidArguments, match="'name' is a required property"):
        checked_content(question, None)


@pytest.mark.parametrize("schema", [None, 5, "x", [], {"type": 5}, {"required": "ab"}])
def test_a_broken_form_takes_anything(schema: object) -> None:
    assert checked_content(form(schema), {"a": 1}) == {"a": 1}
    assert checked_content(form(schema), None) == {}
