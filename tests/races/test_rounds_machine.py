"""Questions that modern clients are asked in rounds: each call runs once, each has one answer.

A request is answered with a question, and its retry goes on with the same call; meanwhile a tool or
the operator answers, too, the server withdraws, dies or is done, streams are cut and what was on
them is sent again, and states come from who was not given them. Through all of the daemon, in
memory; every name carries the principal whose it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule

from asgi_client import Exchange
from emceepee_trio.config import Server
from emceepee_trio.errors import NotFound
from emceepee_trio.front.asking.rounds import LINGERS
from emceepee_trio.model.states import QuestionState
from emceepee_trio.session.questions.question import Question
from rounds import FORM, INVALID_PARAMS, Wanted, accepted
from rounds_world import ANSWER_WITHIN, REISSUE, Asked, RoundsWorld

UNDER_WAY = 4
TAKERS = ("client", "tool", "operator")
ACTS = (*TAKERS, "withdrawn", "dies", "done", "cut", "again")


@attrs.define(eq=False)
class Told(Asked):
    """And as everybody else has it."""

    question: Question
    run: int
    """Of its call, from 1."""
    taken: list[str] = attrs.field(factory=list)
    """Who was told that his answer counts."""
    tools: list[Exchange] = attrs.field(factory=list)


class Rounds(RoundsWorld):
    def __init__(self) -> None:
        self.asked: list[Told] = []
        super().__init__()

    def read(self) -> None:
        super().read()
        for asked in self.asked:
            if not asked.question.is_open and "content" not in str(asked.got):
                for wanted in self.may_hold(asked):
                    wanted.may_be_dead = True

    # What there is.

    @property
    def open(self) -> list[Told]:
        return [asked for asked in self.asked if asked.question.is_open]

    def session(self, wanted: Wanted) -> Any:
        (session,) = self.mcp.manager.sessions(wanted.client.principal)
        return session

    # What can happen.

    @precondition(lambda self: len([w for w in self.wanted if not w.is_over]) < UNDER_WAY)
    @rule(name=st.sampled_from(["ada", "ada", "bob"]), patience=st.sampled_from([3, 60, 60]))
    def somebody_calls(self, name: str, patience: int) -> None:
        wanted = Wanted(self.clients[name], f"{name}-call-{len(self.wanted)}", patience)
        self.wanted.append(wanted)
        self.step(wanted.send)

    @precondition(lambda self: self.under_way())
    @rule(data=st.data(), waits=st.sampled_from([True, True, False]))
    def the_server_asks(self, data: st.DataObject, waits: bool) -> None:
        found = self.under_way()
        peer, request_id, wanted = found[data.draw(st.sampled_from(sorted(found)))]
        number = len(self.asked) + 1
        said = {"message": f"question {number} of {wanted.key}", "requestedSchema": FORM}
        method = "elicitation/create"
        asks = {"jsonrpc": "2.0", "id": number, "method": method, "params": said}
        about = request_id if peer.http is not None else None
        self.do_sync(lambda: peer.say(asks, about))
        question = self.session(wanted).questions.open("elicitation")[-1]
        assert question.params["message"] == said["message"]
        self.asked.append(Told(number, wanted, peer, question, self.began[wanted.key]))
        if waits:
            self.time_passes(1)
        self.read()

    def _act(self, asked: Told, act: str) -> None:
        wanted = asked.of
        match act:
            case "client":
                self._answers(asked)
            case "tool":
                given = {"request_id": asked.question.id} | accepted("tool")
                asked.tools.append(wanted.client.modern_tool("respond_to_elicitation", **given))
            case "operator":
                answer = (asked.question, QuestionState.DECLINED, {"action": "decline"})
                try:
                    self.session(wanted).questions.answer(*answer, by="operator")
                except NotFound:
                    pass
                else:
                    asked.taken.append("operator")
            case "withdrawn":
                said = {"requestId": asked.number}
                method = "notifications/cancelled"
                asked.peer.say({"jsonrpc": "2.0", "method": method, "params": said})
            case "dies":
                asked.peer.end()
            case "done":
                self._is_done(wanted)
            case "cut":
                if wanted.exchanges:
                    wanted.drop()
            case "again":
                self.sends_again(wanted)

    def _answers(self, asked: Told) -> None:
        for wanted in self.may_hold(asked):
            for key, message in wanted.asked.items():
                if message == asked.message and wanted.lost_at is None and not wanted.is_over:
                    wanted.again({key: accepted("client")})

    def _is_done(self, wanted: Wanted) -> None:
        for peer, request_id, of in self.under_way().values():
            if of is wanted:
                text = {"type": "text", "text": f"answer to {wanted.key}"}
                peer.answer(request_id, {"content": [text], "isError": False})
                self.answered.add(wanted.key)

    @precondition(lambda self: self.open)
    @rule(data=st.data(), acts=st.lists(st.sampled_from(ACTS), min_size=1, unique=True))
    def it_all_happens_in_one_tick(self, data: st.DataObject, acts: list[str]) -> None:
        asked = data.draw(st.sampled_from(self.open))
        self.step(*[lambda each=each: self._act(asked, each) for each in acts])

    @precondition(lambda self: self.under_way())
    @rule(data=st.data(), is_cut=st.sampled_from([False, False, True]))
    def the_server_is_done(self, data: st.DataObject, is_cut: bool) -> None:
        found = self.under_way()
        _, _, wanted = found[data.draw(st.sampled_from(sorted(found)))]
        acts: list[Callable[[], object]] = [lambda: self._is_done(wanted)]
        if is_cut and wanted.exchanges:
            acts.append(wanted.drop)
        self.step(*acts)

    @precondition(lambda self: any(w.states and not w.is_over for w in self.wanted))
    @rule(data=st.data(), number=st.sampled_from([-1, -2]))
    def a_client_comes_back_without_answers(self, data: st.DataObject, number: int) -> None:
        """Perhaps with the state before the last, whose answer it has read."""
        wanted = data.draw(st.sampled_from([w for w in self.wanted if w.states and not w.is_over]))
        if len(wanted.exchanges) < 2:
            self.step(lambda: wanted.again(number=number))

    @precondition(lambda self: any(w.states for w in self.wanted))
    @rule(data=st.data(), how=st.sampled_from(["principal", "arguments", "tool", "over"]))
    def a_state_comes_from_elsewhere(self, data: st.DataObject, how: str) -> None:
        wanted = data.draw(st.sampled_from([w for w in self.wanted if w.states]))
        given: dict[str, Any] = {"requestState": data.draw(st.sampled_from(wanted.states))}
        given["inputResponses"] = {key: accepted("thief") for key in wanted.asked}
        client = wanted.client
        if how == "principal":
            client = self.clients["bob" if client is self.clients["ada"] else "ada"]
        elif how == "arguments":
            given["arguments"] = {"server": "x", "tool": wanted.key, "timeout_ms": 7}
        elif how == "tool":
            given["name"] = "list_servers"
        elif not (wanted.results and wanted.states):
            return
        before = self.began
        answers = [asked.got for asked in self.asked]
        exchange = self.do_sync(lambda: wanted.send(client, **given))
        assert exchange.status == 400, "taken"
        assert exchange.messages[-1]["error"]["code"] == INVALID_PARAMS
        assert before == self.began
        assert answers == [asked.got for asked in self.asked]

    @rule(seconds=st.sampled_from([1, 2, 5, ANSWER_WITHIN, REISSUE + 1]))
    def time_passes(self, seconds: int) -> None:
        for _ in range(seconds):
            self.pass_time(1)
            self.read()
        for wanted in self.wanted:
            if seconds >= LINGERS or wanted.lost_at is not None:
                wanted.may_be_dead = True

    # What always holds.

    @invariant()
    def each_call_ran_once(self) -> None:
        began = self.began
        for wanted in self.wanted:
            assert began[wanted.key] <= wanted.may_run

    @invariant()
    def each_question_has_one_answer_and_everybody_is_told_the_same(self) -> None:
        for asked in self.asked:
            for exchange in [each for each in asked.tools if each.is_complete]:
                asked.tools.remove(exchange)
                if not exchange.messages[-1]["result"].get("isError"):
                    asked.taken.append("tool")
            assert len(asked.taken) <= 1
            assert len(asked.got) <= 1
            if asked.question.is_open:
                assert asked.got == []
            for said in asked.got:
                if "error" in said and not asked.peer.is_open:
                    continue  # what its connection ended with, which it does not read
                result = said.get("result", {})
                by = result.get("content", {}).get("by")
                if asked.taken == ["operator"]:
                    assert result == {"action": "decline"}
                elif asked.taken == ["tool"]:
                    assert result == accepted("tool")
                else:
                    assert by in (None, "client")

    @invariant()
    def nothing_is_of_somebody_elses(self) -> None:
        for wanted in self.wanted:
            others = [other.key for other in self.wanted if other is not wanted]
            assert not [key for key in others if f'answer to {key}"' in wanted.said]
            theirs = {a.message for a in self.asked if a.of.client is wanted.client}
            assert set(wanted.asked.values()) <= theirs

    @invariant()
    def who_comes_with_its_state_goes_on(self) -> None:
        for wanted in self.wanted:
            if not (wanted.may_be_dead or wanted.results):
                assert wanted.errors == []

    @invariant()
    def nobody_waits_for_what_is_done(self) -> None:
        again = self.under_way()  # who lost an answer calls anew
        for wanted in self.wanted:
            if wanted.key in self.answered - again.keys():
                assert not wanted.exchanges

    @invariant()
    def nobody_waits_who_can_be_asked(self) -> None:
        """Of each of these it could be, and of this one it is."""
        for asked in self.open:
            if self.may_hold(asked) != [asked.of]:
                continue
            if asked.run < self.began[asked.of.key]:
                continue  # its client has lost that it was asked, and waits for a later run
            since = [asked.question.asked_at, *asked.of.exchanges.values()]
            if asked.of.exchanges and max(since) < self.now - 1:
                assert not asked.question.is_relayed
                assert not asked.of.exchanges


class OfUrl(Rounds):
    entry = Server("x", url="http://x/", era="handshake")


TestOfProgram = Rounds.TestCase
TestOfUrl = OfUrl.TestCase
