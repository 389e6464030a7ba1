"""Questions that a client is asked itself: one answer, one outcome, and everybody is told.

Whoever may answer does so in any order and in one tick: the client, a tool, the operator. Meanwhile
it is cancelled, runs out, its server dies, or its client loses its streams and joins again.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import attrs
import trio
from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule
from mcp import MCPError
from mcp_types import JSONRPCError, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse, RequestId

from emceepee_trio.config import Limits
from emceepee_trio.errors import NotFound
from emceepee_trio.front.asking.backchannel import BACK_WITHIN, Backchannel
from emceepee_trio.journal import Journal, Reader
from emceepee_trio.model.events import ElicitationAnswered
from emceepee_trio.model.facts import SessionOpened
from emceepee_trio.model.states import QuestionState
from emceepee_trio.model.timeline.records import Records
from emceepee_trio.session.questions.question import Question
from emceepee_trio.session.questions.questions import Questions
from emceepee_trio.session.questions.relay import Askers
from parts import Told, new_ids, wall
from trio_machine import TrioMachine

PATIENCE = 15
CAN: dict[str, Any] = {"capabilities": {"elicitation": {}}}
FORM = {"type": "object", "properties": {"by": {"type": "string"}}, "required": ["by"]}

ANSWERS: dict[str, tuple[QuestionState, dict[str, Any]]] = {
    "client": (QuestionState.ACCEPTED, {"action": "accept", "content": {"by": "client"}}),
    "tool": (QuestionState.ACCEPTED, {"action": "accept", "content": {"by": "tool"}}),
    "operator": (QuestionState.DECLINED, {"action": "decline"}),
}
ENDS = {"withdrawn": "withdrawn_by_server", "dies": "server_disconnected"}
ACTS = (*ANSWERS, *ENDS, "rejoins")


@attrs.define(eq=False)
class Wire:
    """To the client: what it was asked and told, and what it has said."""

    asked: dict[str, JSONRPCRequest] = attrs.field(factory=dict)
    cancelled: list[str] = attrs.field(factory=list)
    answered: set[str] = attrs.field(factory=set)
    lost: set[str] = attrs.field(factory=set)

    async def send(self, message: JSONRPCRequest, about: RequestId | None) -> None:
        self.asked[str(message.id)] = message

    def note(self, message: JSONRPCNotification, about: RequestId | None) -> None:
        assert message.params is not None
        self.cancelled.append(message.params["requestId"])

    def reaches(self) -> bool:
        return True

    def of(self, asker: Asker) -> list[str]:
        """Ids of the requests that put this question."""
        return [i for i, it in self.asked.items() if (it.params or {})["message"] == asker.message]

    def live(self, asker: Asker) -> list[str]:
        """Those of them of which the client has a dialog open."""
        over = {*self.cancelled, *self.answered, *self.lost}
        return [id_ for id_ in self.of(asker) if id_ not in over]


@attrs.define(eq=False)
class Asker:
    """A backend that asks."""

    message: str
    wire: Wire
    question: Question | None = None
    is_refused: bool = False
    """By its client: it is for the tools."""
    reason: str = ""
    scope: trio.CancelScope = attrs.field(factory=trio.CancelScope)
    got: list[Any] = attrs.field(factory=list)
    taken: list[str] = attrs.field(factory=list)
    """Who was told that his answer counts, of those who are told at once."""

    async def ask(self, questions: Questions) -> None:
        params = {"message": self.message, "requestedSchema": FORM}
        with self.scope:
            try:
                answer = await questions.ask("x", "elicitation", params, lambda: self.reason)
            except MCPError as error:
                self.got.append(error.error.code)
            else:
                # Whatever it does with the answer, its client has been told before.
                assert self.wire.live(self) == []
                self.got.append(answer)


class Relayed(TrioMachine):
    def __init__(self) -> None:
        self.now = 0.0
        self.askers: list[Asker] = []
        self.wire = Wire()
        self.records = Records(200, 1000)
        self.away_since: float | None = None
        super().__init__()
        self.do_sync(self._open)

    def _open(self) -> None:
        ids = new_ids()
        journal = Journal(lambda: self.now)
        for read, kinds in self.records.readers():
            journal.add(Reader("timeline", read, kinds))
        journal.note(SessionOpened, "s", "local")
        relay = Askers("s", self.nursery, ids, lambda server, kind, view: True, journal)
        limits = attrs.evolve(Limits(), question_timeout_ms=PATIENCE * 1000)
        self.told = Told()
        self.questions = Questions(
            limits, self.told, ids, wall, "s", journal=journal, relay=relay.during
        )
        session = SimpleNamespace(relay=relay, inner=self.nursery, id="s")
        self.backchannel = Backchannel(cast(Any, session), self.wire)
        self._hello()

    def _hello(self) -> None:
        hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": CAN}
        self.backchannel.observe(JSONRPCRequest.model_validate(hello))
        done = JSONRPCNotification(jsonrpc="2.0", method="notifications/initialized")
        self.backchannel.observe(done)
        self.away_since = None

    def _is_lost(self, keep: set[str] | None = None) -> None:
        keep = keep or set()
        lost = {*self.wire.asked} - keep - self.wire.lost
        self.wire.lost |= lost
        self.backchannel.start_over(keep)
        if lost or self.away_since is None:  # what it was to read yet may be lost later
            self.away_since = self.now

    @property
    def open(self) -> list[Asker]:
        return [a for a in self.askers if a.question is not None and a.question.is_open]

    @rule()
    def a_backend_asks(self) -> None:
        asker = Asker(f"?{len(self.askers)}", self.wire)
        self.askers.append(asker)

        def start() -> None:
            self.nursery.start_soon(asker.ask, self.questions)

        self.do_sync(start)
        asker.question = self.questions.open("elicitation")[-1]

    def _act(self, asker: Asker, act: str) -> None:
        assert asker.question is not None
        if act == "client":
            for id_ in self.wire.live(asker)[:1]:
                self.wire.answered.add(id_)
                said = JSONRPCResponse(jsonrpc="2.0", id=id_, result=ANSWERS["client"][1])
                assert self.backchannel.observe(said)
        elif act in ENDS:
            asker.reason = ENDS[act]
            asker.scope.cancel()
        elif act == "rejoins":
            self._is_lost()
            self._hello()
        else:
            state, answer = ANSWERS[act]
            try:
                # The operator does it on the page, of which the client knows nothing.
                by = act if act == "operator" else None
                self.questions.answer(asker.question, state, answer, by=by)
            except NotFound:
                pass
            else:
                asker.taken.append(act)

    @precondition(lambda self: self.open)
    @rule(data=st.data(), acts=st.lists(st.sampled_from(ACTS), min_size=1, unique=True))
    def it_all_happens_in_one_tick(self, data: st.DataObject, acts: list[str]) -> None:
        asker = data.draw(st.sampled_from(self.open))
        question = asker.question
        assert question is not None

        def act() -> None:
            for each in acts:
                self._act(asker, each)

        self.do_sync(act)
        assert len(asker.taken) <= 1
        if asker.taken:
            state, answer = ANSWERS[asker.taken[0]]
            assert question.state is state
            assert asker.got in ([answer], [] if ENDS.keys() & set(acts) else [answer])
        elif ENDS.keys() & set(acts):
            assert not question.is_open
        elif not question.is_open:
            assert acts[0] == "client" or acts.index("client") < acts.index("rejoins")
            assert (question.state, asker.got) == (ANSWERS["client"][0], [ANSWERS["client"][1]])

    @precondition(lambda self: self.wire.asked)
    @rule(data=st.data())
    def the_client_answers_late_or_twice(self, data: st.DataObject) -> None:
        gone = {*self.wire.cancelled, *self.wire.answered, *self.wire.lost}
        # By age: ids are random, and a program shall mean the same ones again.
        over = [id_ for id_ in self.wire.asked if id_ in gone]
        if not over:
            return
        id_ = data.draw(st.sampled_from(over))
        before = [(a, list(a.got), a.question and a.question.state) for a in self.askers]
        result = {"action": "accept", "content": {"by": "somebody else"}}
        said = JSONRPCResponse(jsonrpc="2.0", id=id_, result=result)
        self.do_sync(lambda: self.backchannel.observe(said))
        assert before == [(a, a.got, a.question and a.question.state) for a in self.askers]

    @precondition(lambda self: any(map(self.wire.live, self.open)))
    @rule(data=st.data(), misfits=st.booleans())
    def the_client_refuses(self, data: st.DataObject, misfits: bool) -> None:
        asker = data.draw(st.sampled_from([a for a in self.open if self.wire.live(a)]))
        (id_,) = self.wire.live(asker)
        self.wire.answered.add(id_)
        error = {"code": -1, "message": "no"}
        bad = {"action": "accept", "content": {}}
        said = (
            JSONRPCResponse(jsonrpc="2.0", id=id_, result=bad)
            if misfits
            else JSONRPCError.model_validate({"jsonrpc": "2.0", "id": id_, "error": error})
        )
        self.do_sync(lambda: self.backchannel.observe(said))
        asker.is_refused = True
        assert asker.question is not None
        assert asker.question.is_open

    @rule(data=st.data())
    def the_client_loses_its_streams(self, data: st.DataObject) -> None:
        live = [id_ for asker in self.open for id_ in self.wire.live(asker)]
        unread = set(data.draw(st.lists(st.sampled_from(live)))) if live else set()
        self.do_sync(lambda: self._is_lost(unread))

    @rule()
    def the_client_joins_again(self) -> None:
        self.do_sync(self._hello)

    @rule(seconds=st.integers(1, 8))
    def time_passes(self, seconds: int) -> None:
        for _ in range(seconds):
            self.pass_time(1)
            self.now += 1

    @invariant()
    def an_open_question_is_asked_once_where_somebody_can_be_asked(self) -> None:
        for asker in self.open:
            assert asker.question is not None
            live = self.wire.live(asker)
            assert len(live) <= 1
            if asker.is_refused:
                assert (live, asker.question.is_relayed) == ([], False)
            elif self.away_since is None:
                assert len(live) == 1
                assert asker.question.is_relayed
            elif not live and self.now > self.away_since + BACK_WITHIN:
                assert not asker.question.is_relayed

    @invariant()
    def its_facts_replayed_say_with_whom_each_question_is(self) -> None:
        record = self.records.get("s")
        assert record is not None
        rows = record.timeline.rows.values()
        assert {row.id: row.phase for row in rows if row.ends is None} == {
            asker.question.id: "client" if asker.question.is_relayed else "tools"
            for asker in self.open
            if asker.question is not None
        }

    @invariant()
    def who_has_a_dialog_of_a_question_that_is_over_was_told(self) -> None:
        for asker in self.askers:
            if asker.question is not None and not asker.question.is_open:
                assert self.wire.live(asker) == []
        assert len(self.wire.cancelled) == len(set(self.wire.cancelled))

    @invariant()
    def the_client_hears_that_the_operator_has_answered(self) -> None:
        heard = self.told.of(ElicitationAnswered)
        by_operator = [a.question.id for a in self.askers if a.question and "operator" in a.taken]
        assert sorted(said.request_id for said in heard) == sorted(by_operator)
        assert all(said.by == "operator" for said in heard)

    @invariant()
    def every_backend_got_at_most_one_answer(self) -> None:
        for asker in self.askers:
            assert len(asker.got) <= 1
            if asker.question is not None and asker.question.is_open:
                assert asker.got == []

    @invariant()
    def nothing_is_left_of_what_is_over(self) -> None:
        live = {id_ for asker in self.open for id_ in self.wire.live(asker)}
        waiting = set(self.backchannel._waiting)
        assert live <= waiting
        assert not waiting - live - self.wire.lost


TestRelayed = Relayed.TestCase
