"""Whatever ends first: each span ends once, within what it is a part of."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from contextvars import Context, copy_context
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.trace import SpanKind

from emceepee_trio.model import facts
from emceepee_trio.model.states import QuestionState, TaskState
from emceepee_trio.telemetry.under_way import REMEMBERED
from emceepee_trio.tracing import TracedRequest
from traced import Traced, context_of, linked, parent_of, tracing

ASKED = TracedRequest("tools/call", {"name": "dig"}, 1, "2025-11-25", "tcp", "0123456789abcdef")
FROM_SERVER = TracedRequest("elicitation/create", {}, None, "2025-11-25", "pipe", server="files")
TO_CLIENT = attrs.evolve(FROM_SERVER, id="x", session=ASKED.session, server=None, transport="tcp")
TO_SERVER = attrs.evolve(ASKED, session=None, server="files", transport="pipe")


@attrs.define(eq=False)
class _Open:
    """Something that has begun, in a task of its own."""

    task: Context
    block: ExitStack
    call: str | None = None
    script: _Open | None = None


@attrs.define(eq=False)
class Life:
    """Requests, calls and what they ask for, begun and ended in any order."""

    traced: Traced
    requests: list[_Open] = attrs.field(factory=list)
    calls: list[_Open] = attrs.field(factory=list)
    asked: list[_Open] = attrs.field(factory=list)
    promoted: set[str] = attrs.field(factory=set)
    open: list[str] = attrs.field(factory=list)
    """Questions, by their ids."""
    made: int = 0

    def _enter(self, task: Context, block: AbstractContextManager[Any]) -> _Open:
        opened = _Open(task, ExitStack())
        task.run(opened.block.enter_context, block)
        return opened

    def _end(self, where: list[_Open], which: int) -> None:
        if where:
            opened = where.pop(which % len(where))
            opened.task.run(opened.block.close)

    def _read(self, task: Context, kind: Callable[..., facts.Fact], *args: Any) -> None:
        task.run(self.traced.spans.read, kind(0.0, "s", *args))

    def begin_request(self, which: int) -> None:
        self.requests.append(self._enter(Context(), self.traced.spans.answering(ASKED)))

    def end_request(self, which: int) -> None:
        self._end(self.requests, which)

    def begin_call(self, which: int, script: _Open | None = None) -> None:
        made_by = script or (self.requests and self.requests[which % len(self.requests)])
        if not made_by:
            return
        self.made += 1
        call, within = f"c{self.made}", None if script is None else script.call
        begun = (call, "files", "dig", False, 0, within)
        self._read(made_by.task, facts.CallBegun, *begun)
        self.calls.append(_Open(made_by.task.run(copy_context), ExitStack(), call, script))

    def begin_call_of_script(self, which: int) -> None:
        scripts = [call for call in self.calls if call.script is None]
        if scripts:
            self.begin_call(which, scripts[which % len(scripts)])

    def promote(self, which: int) -> None:
        if self.calls:
            call = self.calls[which % len(self.calls)]
            assert call.call is not None
            self.promoted.add(call.call)
            self._read(Context(), facts.CallPromoted, call.call, "files", "dig", 1000)

    def settle(self, which: int) -> None:
        if self.calls:
            over = self.calls[which % len(self.calls)]
            fate = list(TaskState)[which % len(TaskState)]
            # A script ends its calls before it is over.
            for call in [*(each for each in self.calls if each.script is over), over]:
                self.calls.remove(call)
                said = (call.call, "files", "dig", fate, False, 1, "TOOL_ERR_X")
                self._read(Context(), facts.CallSettled, *said)

    def ask(self, which: int) -> None:
        if self.calls:
            call = self.calls[which % len(self.calls)]
            block = self.traced.spans.asking(TO_SERVER, call.call)
            self.asked.append(self._enter(call.task, block))

    def ask_back(self, which: int) -> None:
        """The server does, of a call that it names or does not."""
        call = self.calls[which % len(self.calls)].call if self.calls and which % 2 else None
        task = Context()
        block = self.traced.spans.asked(FROM_SERVER, call, "s")
        self.asked.append(self._enter(task, block))
        question = f"q{self.made}-{len(self.asked)}"
        self._read(task, facts.QuestionOpened, question, "elicitation", "files", call, 1)
        for each in self.calls:
            self._read(task, facts.CallAsked, each.call, question)
        self._read(task, facts.QuestionRelayed, question)
        self.open.append(question)

    def put(self, which: int) -> None:
        """To a client, by a task of its own; it may be over by then."""
        if self.open:
            block = self.traced.spans.relaying(TO_CLIENT, self.open[which % len(self.open)])
            self.asked.append(self._enter(Context(), block))

    def close(self, which: int) -> None:
        """A question has its answer, whoever is still asked it."""
        if self.open:
            question = self.open.pop(which % len(self.open))
            said = (question, "elicitation", "files", QuestionState.ACCEPTED, "answered", 1)
            self._read(Context(), facts.QuestionClosed, *said)

    def answer(self, which: int) -> None:
        self._end(self.asked, which)

    def end(self) -> None:
        for where, act in (
            (self.calls, self.settle),
            (self.asked, self.answer),
            (self.requests, self.end_request),
        ):
            while where:
                act(0)


ACTS = (
    *(Life.begin_request, Life.end_request, Life.begin_call, Life.begin_call_of_script),
    *(Life.promote, Life.settle, Life.ask, Life.ask_back, Life.answer, Life.put, Life.close),
)


@given(st.lists(st.tuples(st.sampled_from(ACTS), st.integers(0, 5)), max_size=30))
def test_each_ends_once_and_within_what_it_is_a_part_of(
    program: list[tuple[Callable[[Life, int], None], int]],
) -> None:
    with tracing() as traced:
        life = Life(traced)
        for act, which in program:
            act(life, which)
        life.end()
        traced.check()


def test_what_outlives_its_request_without_being_a_task_is_linked_as_well() -> None:
    with tracing() as traced:
        life = Life(traced)
        for act in (life.begin_request, life.begin_call, life.ask, life.end_request):
            act(0)
        assert {span.name for span in traced.ended} == {"tools/call dig"}
        life.answer(0)
        life.settle(0)
        traced.check()
        task = traced.one("INTERNAL", "task dig")
        assert linked(task) == {
            context_of(span).span_id for span in traced.ended if span is not task
        }


def test_what_a_server_asks_ends_with_its_request_or_goes_on_in_the_task() -> None:
    with tracing() as traced:
        life = Life(traced)
        for act in (life.begin_request, life.begin_call, life.ask):
            act(0)
        life.ask_back(1)
        life.promote(0)
        sent, before = traced.one("CLIENT", "tools/call dig"), traced.ended[0]
        assert before.name == "elicitation/create"
        assert parent_of(before) == context_of(sent).span_id
        life.settle(0)
        life.end()
        traced.check()
        _, after = traced.named("SERVER", "elicitation/create")
        assert parent_of(after) == context_of(traced.one("INTERNAL", "task dig")).span_id
        assert linked(after) == {context_of(before).span_id}


def test_what_a_client_is_asked_goes_on_in_the_task_with_the_question() -> None:
    with tracing() as traced:
        life = Life(traced)
        for act, which in (
            *((life.begin_request, 0), (life.begin_call, 0), (life.ask, 0), (life.ask_back, 1)),
            *((life.put, 0), (life.promote, 0), (life.answer, 2)),
        ):
            act(which)
        first, again = traced.named("CLIENT", "elicitation/create")
        life.end()
        traced.check()
        before, after = traced.named("SERVER", "elicitation/create")
        assert parent_of(first) == context_of(before).span_id
        assert parent_of(again) == context_of(after).span_id
        assert linked(again) == {context_of(first).span_id}


def test_who_is_asked_when_somebody_else_has_answered_is_asked_in_vain() -> None:
    with tracing() as traced:
        life = Life(traced)
        for act in (life.begin_request, life.begin_call, life.ask):
            act(0)
        life.ask_back(1)
        life.put(0)
        life.close(0)
        asked = traced.one("CLIENT", "elicitation/create")
        assert dict(asked.attributes or {})["error.type"] == "cancelled"
        life.end()
        traced.check()


def test_a_question_that_nobody_says_of_which_of_two_calls_it_is_is_linked_to_both() -> None:
    with tracing() as traced:
        life = Life(traced)
        for act in (life.begin_request, life.begin_call, life.ask, life.begin_call):
            act(0)
        life.calls.reverse()
        life.ask(0)
        life.ask_back(0)
        life.end()
        traced.check()
        asked = traced.one("SERVER", "elicitation/create")
        assert parent_of(asked) is None
        sent = traced.named("CLIENT", "tools/call dig")
        assert linked(asked) == {context_of(span).span_id for span in sent}


def test_the_calls_of_a_script_that_is_a_task_are_part_of_that() -> None:
    with tracing() as traced:
        life = Life(traced)
        life.begin_request(0)
        life.begin_call(0)
        life.begin_call_of_script(0)
        script, inner = life.calls
        life.calls = [inner]
        life.ask(0)
        life.calls = [script]
        life.promote(0)
        life.calls = [inner]
        life.ask(0)
        life.calls = [script, inner]
        life.end()
        traced.check()
        task = traced.one("INTERNAL", "task dig")
        before, after = [s for s in traced.ended if s.kind is SpanKind.CLIENT]
        assert context_of(before).span_id in linked(task)
        assert parent_of(after) == context_of(task).span_id


def test_who_comes_again_with_an_answer_goes_on_with_what_was_begun() -> None:
    with tracing() as traced:
        life, rounds = Life(traced), 3
        for number in range(rounds):
            params = {"name": "dig", "requestState": f"state {number - 1}"}
            block = traced.spans.answering(attrs.evolve(ASKED, params=params if number else {}))
            task = Context()
            answered = task.run(block.__enter__)
            if not number:
                life.requests.append(_Open(task, ExitStack()))
                life.begin_call(0)
            is_last = number == rounds - 1
            task.run(answered, {} if is_last else {"requestState": f"state {number}"})
            task.run(block.__exit__, None, None, None)
        life.settle(0)
        first, second, third = traced.ended[:-1]
        task_id = context_of(traced.one("INTERNAL", "task dig")).span_id
        assert linked(first) == set()
        assert linked(second) == {context_of(first).span_id, task_id}
        assert linked(third) == {context_of(second).span_id, task_id}
        traced.check()


def test_a_stranger_to_any_request_begins_a_trace() -> None:
    with tracing() as traced:
        with traced.spans.asking(TO_SERVER, None):
            pass
        (span,) = traced.ended
        assert parent_of(span) is None
        assert not span.links


def test_a_task_that_is_apart_is_part_of_no_request() -> None:
    with tracing() as traced:

        def elsewhere() -> None:
            traced.spans.apart()
            with traced.spans.asking(TO_SERVER, None):
                pass

        with traced.spans.answering(ASKED):
            copy_context().run(elsewhere)
            with traced.spans.asking(TO_SERVER, None):
                pass
        mine = traced.named("CLIENT", "tools/call dig")
        served = traced.one("SERVER", "tools/call dig")
        assert [parent_of(span) for span in mine] == [None, context_of(served).span_id]


def test_what_lasts_as_long_as_its_connection_is_no_span() -> None:
    with tracing() as traced:
        lasting = attrs.evolve(ASKED, method="subscriptions/listen")
        with traced.spans.answering(lasting), traced.spans.asking(lasting, None) as sent:
            assert sent.params == lasting.params
        assert traced.ended == []


def test_tasks_are_not_remembered_for_ever() -> None:
    with tracing() as traced:
        life = Life(traced)
        for _ in range(REMEMBERED + 5):
            life.begin_request(0)
            life.begin_call(0)
            life.promote(0)
            life.settle(0)
            life.end_request(0)
            block = traced.spans.answering(ASKED)
            with block as answered:
                answered({"requestState": str(life.made)})
        assert len(traced.spans._calls._tasks) == REMEMBERED
        assert len(traced.spans._rounds) == REMEMBERED
        assert not traced.spans._calls._works


@pytest.mark.parametrize(
    ("url", "address", "port"),
    [
        ("https://mcp.example/x?key=secret", "mcp.example", 443),
        ("http://[::1]:8080/mcp", "::1", 8080),
        ("http://ada:s3cret@mcp.example", "mcp.example", 80),
    ],
)
def test_a_server_behind_a_url_is_named_by_its_address(url: str, address: str, port: int) -> None:
    with tracing() as traced:
        with traced.spans.asking(attrs.evolve(TO_SERVER, url=url, transport="tcp"), None):
            pass
        (span,) = traced.ended
        about = dict(span.attributes or {})
        assert (about["server.address"], about["server.port"]) == (address, port)
        assert about["network.transport"] == "tcp"
        assert "secret" not in str(span.to_json())
        assert "s3cret" not in str(span.to_json())
