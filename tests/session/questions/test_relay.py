"""Who is asked itself, and whose answer counts."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import attrs
import pytest
import trio
from mcp import MCPError
from trio.testing import MockClock, wait_all_tasks_blocked

from emceepee_trio.backend.connections.callbacks import working_for
from emceepee_trio.config import Limits
from emceepee_trio.errors import NotFound
from emceepee_trio.journal import Journal
from emceepee_trio.model import events
from emceepee_trio.model.facts import QuestionLeft, QuestionRelayed
from emceepee_trio.model.states import QuestionState
from emceepee_trio.session.calls.asked import heard
from emceepee_trio.session.calls.calls import Calls
from emceepee_trio.session.questions.question import Kind, Question
from emceepee_trio.session.questions.questions import Questions
from emceepee_trio.session.questions.relay import Askers, CannotBeAsked, takes
from parts import Told, new_ids, open_calls, wall
from replay import Replay

FORM = {
    "message": "?",
    "requestedSchema": {
        "type": "object",
        "properties": {"name": {"type": "string"}, "color": {"type": "string", "default": "red"}},
        "required": ["name"],
    },
}
SAMPLE: dict[str, Any] = {"messages": []}
PAGE = {"mode": "url", "message": "?", "url": "https://x.test"}
COMPLETION = {"role": "assistant", "content": {"type": "text", "text": "!"}, "model": "m"}


@pytest.mark.parametrize(
    ("capabilities", "taken"),
    [
        ({}, ""),
        (None, ""),
        ({"elicitation": None, "sampling": "yes"}, ""),
        ({"elicitation": {}}, "form"),
        ({"elicitation": {"form": {}}}, "form"),
        ({"elicitation": {"url": {}}}, "url"),
        ({"elicitation": {"form": {}, "url": {}}}, "form url"),
        ({"sampling": {}}, "sample"),
        ({"sampling": {"tools": {}}}, "sample tools"),
        ({"elicitation": {}, "sampling": {"context": {}}}, "form sample"),
    ],
)
def test_only_what_a_client_says_that_it_can_is_put_to_it(capabilities: Any, taken: str) -> None:
    asked: dict[str, tuple[Kind, Mapping[str, Any]]] = {
        "form": ("elicitation", FORM),
        "url": ("elicitation", PAGE),
        "other": ("elicitation", {"mode": "voice"}),
        "sample": ("sampling", SAMPLE),
        "tools": ("sampling", SAMPLE | {"tools": [{"name": "x"}]}),
    }
    assert [name for name, it in asked.items() if takes(capabilities, *it)] == taken.split()


@attrs.define(eq=False)
class Client:
    """One that is asked, and says what it is told to."""

    capabilities: Any = attrs.field(factory=lambda: {"elicitation": {}, "sampling": {}})
    is_heard: bool = True
    asked: list[Question] = attrs.field(factory=list)
    withdrawn: list[Question] = attrs.field(factory=list)
    answers: tuple[trio.MemorySendChannel[Any], trio.MemoryReceiveChannel[Any]] = attrs.field(
        factory=lambda: trio.open_memory_channel[Any](10)
    )
    is_alone: bool = False
    view: str = "tools"

    def can(self, kind: Kind, params: Mapping[str, Any]) -> bool:
        return takes(self.capabilities, kind, params)

    async def ask(self, question: Question) -> dict[str, Any]:
        self.asked.append(question)
        answer = await self.answers[1].receive()
        if isinstance(answer, Exception):
            raise answer
        said: dict[str, Any] = answer
        return said

    async def roots(self) -> Any:
        return None

    def withdraw(self, question: Question) -> None:
        self.withdrawn.append(question)

    async def says(self, answer: Any) -> None:
        self.answers[0].send_nowait(answer)
        await wait_all_tasks_blocked()


@attrs.define(eq=False)
class Scene:
    relay: Askers
    calls: Calls
    questions: Questions
    told: Told
    nursery: trio.Nursery
    got: list[Any] = attrs.field(factory=list)
    wanted: set[str] = attrs.field(factory=lambda: {"elicitation", "sampling"})

    async def ask(
        self, params: Mapping[str, Any] = FORM, kind: Kind = "elicitation", call: str | None = ""
    ) -> Question:
        self.nursery.start_soon(self._ask, kind, params, call)
        await wait_all_tasks_blocked()
        return self.questions.open(kind)[-1]

    async def _ask(self, kind: Kind, params: Mapping[str, Any], call: str | None) -> None:
        working_for.set(call)
        try:
            self.got.append(await self.questions.ask("x", kind, params, lambda: "call_ended"))
        except MCPError as error:
            self.got.append(error.error.code)


@asynccontextmanager
async def open_scene(journal: Journal | None = None, **limits: int) -> AsyncGenerator[Scene]:
    async with open_calls() as world, trio.open_nursery() as nursery:
        ids, told, calls = new_ids(), Told(), world.calls
        notes = Journal() if journal is None else journal
        relay = Askers("s", nursery, ids, lambda server, kind, view: kind in scene.wanted, notes)
        questions = Questions(
            attrs.evolve(Limits(), **limits),
            told,
            ids,
            wall,
            "s",
            partial(heard, calls),
            relay=relay.during,
        )
        scene = Scene(relay, calls, questions, told, nursery)
        yield scene
        nursery.cancel_scope.cancel("end of the test")


async def test_a_client_that_can_is_asked_and_its_answer_is_checked_and_filled(
    autojump_clock: MockClock,
) -> None:
    async with open_scene() as scene:
        client = Client()
        scene.relay.join(client)
        question = await scene.ask()
        assert client.asked == [question]
        assert question.brief()["relayed"] is True
        assert question.whole()["relayed"] is True
        ((_, told),) = scene.told.said
        assert isinstance(told, events.ElicitationRequest)
        assert told.relayed is True
        await client.says({"action": "accept", "content": {"name": "Ada"}, "_meta": {"k": 1}})
        content = {"name": "Ada", "color": "red"}
        assert scene.got == [{"action": "accept", "content": content, "_meta": {"k": 1}}]
        assert question.state is QuestionState.ACCEPTED
        assert client.withdrawn == []


async def test_with_whom_a_question_is_is_noted(autojump_clock: MockClock) -> None:
    journal, replay = Journal(lambda: 12.0), Replay()
    replay.reads(journal)
    async with open_scene(journal) as scene:
        first, second = Client(), Client()
        scene.relay.join(first)
        question = await scene.ask()
        scene.relay.join(second)
        scene.relay.leave(first)
        await first.says(CannotBeAsked())  # the other one is, at once
        scene.relay.leave(second)
        await second.says(CannotBeAsked())
        scene.relay.join(Client())
        of = 12.0, "s", question.id
        assert replay.noted == [
            QuestionRelayed(*of),
            QuestionRelayed(*of),
            QuestionLeft(*of),
            QuestionRelayed(*of),
        ]


@pytest.mark.parametrize(
    ("kind", "answer", "state"),
    [
        ("elicitation", {"action": "decline"}, QuestionState.DECLINED),
        ("elicitation", {"action": "cancel"}, QuestionState.CANCELLED),
        ("sampling", COMPLETION, QuestionState.COMPLETED),
    ],
)
async def test_every_other_answer_is_passed_on_as_it_came(
    kind: Kind, answer: Any, state: QuestionState, autojump_clock: MockClock
) -> None:
    async with open_scene() as scene:
        client = Client()
        scene.relay.join(client)
        question = await scene.ask(FORM if kind == "elicitation" else SAMPLE, kind)
        await client.says(answer)
        assert scene.got == [answer]
        assert question.state is state


@pytest.mark.parametrize(
    "refusal",
    [
        MCPError(code=-1, message="User rejected sampling request"),
        {"action": "maybe"},
        {"action": "accept"},
        {"action": "accept", "content": []},
        {"action": "accept", "content": {"name": 7}},
    ],
)
async def test_what_is_no_answer_leaves_the_question_to_the_tools(
    refusal: Any, autojump_clock: MockClock
) -> None:
    async with open_scene() as scene:
        client = Client()
        scene.relay.join(client)
        question = await scene.ask()
        await client.says(refusal)
        assert scene.got == []
        assert question.is_open
        assert "relayed" not in question.brief()
        assert not scene.questions.is_told(question)
        assert [said.relayed for _, said in scene.told.said] == [True, None]  # type: ignore[union-attr]  # they are questions
        scene.relay.join(other := Client())  # nobody is asked what a client has refused
        scene.questions.answer(question, QuestionState.DECLINED, {"action": "decline"})
        await wait_all_tasks_blocked()
        assert (scene.got, other.asked) == ([{"action": "decline"}], [])


async def test_who_is_alone_is_passed_on_as_it_is(autojump_clock: MockClock) -> None:
    async with open_scene() as scene:
        scene.relay.join(client := Client(is_alone=True))
        await scene.ask()
        odd = {"action": "accept", "content": {"name": 7}}
        await client.says(odd)
        assert scene.got == [odd]
        await scene.ask()
        await client.says(MCPError(code=-1, message="no"))
        assert scene.got == [odd, -1]


async def test_a_tool_may_be_quicker_and_the_client_is_told(autojump_clock: MockClock) -> None:
    async with open_scene() as scene:
        client = Client()
        scene.relay.join(client)
        question = await scene.ask()
        scene.questions.answer(question, QuestionState.DECLINED, {"action": "decline"})
        client.answers[0].send_nowait({"action": "cancel"})  # in the very tick
        await wait_all_tasks_blocked()
        assert scene.got == [{"action": "decline"}]
        assert question.state is QuestionState.DECLINED
        again = await scene.ask()
        scene.questions.answer(again, QuestionState.DECLINED, {"action": "decline"})
        await wait_all_tasks_blocked()
        assert client.withdrawn == [question, again]
        with pytest.raises(NotFound, match="no longer open: declined"):
            scene.questions.get("elicitation", again.id)


async def test_it_is_told_that_before_the_server_has_the_answer(
    autojump_clock: MockClock,
) -> None:
    async with open_scene() as scene:
        client = Client()
        scene.relay.join(client)
        question = await scene.ask()
        scene.questions.answer(question, QuestionState.DECLINED, {"action": "decline"})
        assert client.withdrawn == [question]
        assert scene.got == []


async def test_a_question_that_runs_out_is_withdrawn(autojump_clock: MockClock) -> None:
    async with open_scene(question_timeout_ms=1000) as scene:
        client = Client()
        scene.relay.join(client)
        question = await scene.ask()
        await trio.sleep(1)
        await wait_all_tasks_blocked()
        assert client.withdrawn == [question]
        assert question.state is QuestionState.EXPIRED


async def test_what_nobody_can_take_waits_for_somebody_who_can(autojump_clock: MockClock) -> None:
    async with open_scene() as scene:
        forms, pages = Client({"elicitation": {}}), Client({"elicitation": {"url": {}}})
        scene.relay.join(forms)
        page, sample = await scene.ask(PAGE), await scene.ask(SAMPLE, "sampling")
        assert not page.is_relayed
        scene.relay.join(pages)
        await wait_all_tasks_blocked()
        assert pages.asked == [page]
        assert page.is_relayed
        assert not sample.is_relayed
        forms.capabilities = {"sampling": {}}
        scene.relay.look(forms)
        await wait_all_tasks_blocked()
        assert forms.asked == [sample]
        scene.relay.leave(forms)
        assert not (await scene.ask()).is_relayed


async def test_who_is_gone_leaves_the_question_to_somebody_else(autojump_clock: MockClock) -> None:
    async with open_scene() as scene:
        first, second = Client(), Client()
        scene.relay.join(first)
        question = await scene.ask()
        scene.relay.leave(first)
        scene.relay.join(second)
        await first.says(CannotBeAsked())
        assert second.asked == [question]
        assert question.is_relayed
        assert len(scene.told.said) == 1


async def test_nobody_is_asked_where_only_tools_shall_answer(autojump_clock: MockClock) -> None:
    async with open_scene() as scene:
        client = Client()
        scene.relay.join(client)
        scene.wanted = {"sampling"}
        assert not (await scene.ask()).is_relayed
        sample = await scene.ask(SAMPLE, "sampling")
        assert client.asked == [sample]


async def test_the_request_that_waits_for_its_call_is_asked_before_a_connection(
    autojump_clock: MockClock,
) -> None:
    async with open_scene() as scene:
        connection, one, other = Client(), Client(), Client()
        scene.relay.join(connection)
        with (
            scene.relay.offered(one) as first,
            scene.relay.offered(other) as second,
            scene.relay.waiting(first, "call 1"),
            scene.relay.waiting(second, "call 2"),
        ):
            await scene.ask(call="call 2")
            await scene.ask(call=first.id)
        await scene.ask(call="call 1")
        assert [len(client.asked) for client in (connection, one, other)] == [1, 1, 1]


async def test_of_calls_in_flight_the_oldest_is_asked_whose_request_can_take_it(
    autojump_clock: MockClock,
) -> None:
    async with open_scene() as scene:

        async def send(call: Any) -> Any:
            scene.calls.sent(call)
            await trio.sleep_forever()

        outcomes = list[Any]()
        clients = [Client({}), Client(), Client()]

        async def request(client: Client) -> None:
            call = scene.calls.begin("x", "t", {}, send, patience=60, ttl=600)
            with (
                scene.relay.offered(client) as offer,
                scene.relay.waiting(offer, call.id),
            ):
                outcomes.append(await scene.calls.wait(call, 60))

        for client in clients:
            scene.nursery.start_soon(request, client)
            await wait_all_tasks_blocked()
        question = await scene.ask(call=None)
        assert [len(client.asked) for client in clients] == [0, 1, 0]
        # All of them may wait for it, and none does because it has to be answered by tool.
        assert outcomes == []
        clients[1].is_heard = False
        await scene.ask(call=None)
        assert [len(client.asked) for client in clients] == [0, 1, 1]
        await clients[1].says(MCPError(code=-1, message="no"))
        assert len(outcomes) == 3
        assert question.is_open


async def test_a_call_goes_on_waiting_for_its_client_within_its_patience(
    autojump_clock: MockClock,
) -> None:
    async with open_scene() as scene:
        client, began = Client(), trio.current_time()

        async def send(call: Any) -> Any:
            working_for.set(call.id)
            return await scene.questions.ask("x", "elicitation", FORM, lambda: "call_ended")

        scene.relay.join(client)
        call = scene.calls.begin("x", "t", {}, send, patience=60, ttl=600)
        outcome = await scene.calls.wait(call, 60)
        assert outcome is call.task
        assert trio.current_time() == began + 60
        (question,) = client.asked
        assert question.is_relayed  # still: its dialog is open
        await client.says({"action": "decline"})
        assert call.slot.peek() == {"action": "decline"}


async def test_a_bug_of_who_asks_leaves_the_question_to_the_tools(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_scene() as scene:
        client = Client()
        scene.relay.join(client)
        question = await scene.ask()
        await client.says(ZeroDivisionError())
        assert question.is_open
        assert not question.is_relayed
