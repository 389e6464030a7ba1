"""Rounds where clients see servers themselves: by names of their own, and one server as it is.

Calls of two principals in three views, of a server of either era. What a modern server asks a
client that sees it as it is, is between the two of them; else a tool may be quicker. Meanwhile
servers withdraw, die and are done, streams are cut and what was on them is sent again, and states
come by requests that they were not given to. `test_rounds_machine` has the view of our tools, and
all that may meet in one tick there.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule

from emceepee_trio.config import Server
from parts import hop
from rounds import FORM, INVALID_PARAMS, VIEWS, Wanted, accepted
from rounds_world import ANSWER_WITHIN, REISSUE, Asked, RoundsWorld
from sharers import ELICITATION, result

UNDER_WAY = 4
ACTS = ("client", "tool", "withdrawn", "dies", "done", "cut", "again")


class Views(RoundsWorld):
    def __init__(self) -> None:
        self.asked: list[Asked] = []
        super().__init__()

    def asked_of(self, wanted: Wanted) -> list[Asked]:
        """Those that its client has, by what it was told."""
        return [asked for asked in self.asked if asked.message in wanted.asked.values()]

    def is_passed(self, wanted: Wanted) -> bool:
        """Its questions are no session's."""
        return self.entry.era == "modern" and wanted.view == "one server"

    # What can happen.

    @precondition(lambda self: len([w for w in self.wanted if not w.is_over]) < UNDER_WAY)
    @rule(name=st.sampled_from(["ada", "ada", "bob"]), view=st.sampled_from(VIEWS))
    def somebody_calls(self, name: str, view: str) -> None:
        wanted = Wanted(self.clients[name], f"{name}-call-{len(self.wanted)}", 60, view=view)
        self.wanted.append(wanted)
        self.step(wanted.send)

    @precondition(lambda self: self.under_way())
    @rule(data=st.data(), waits=st.sampled_from([True, True, False]))
    def the_server_asks(self, data: st.DataObject, waits: bool) -> None:
        found = self.under_way()
        peer, request_id, wanted = found[data.draw(st.sampled_from(sorted(found)))]
        asked = Asked(len(self.asked) + 1, wanted, peer)
        params = {"message": asked.message, "requestedSchema": FORM}
        if peer.is_modern:
            self.do_sync(lambda: peer.needs(request_id, asked.number, ELICITATION, params))
        else:
            about = request_id if peer.http is not None else None
            said = {"jsonrpc": "2.0", "id": asked.number, "method": ELICITATION, "params": params}
            self.do_sync(lambda: peer.say(said, about))
        self.asked.append(asked)
        self.answered.discard(wanted.key)  # if its answer was lost, this is of another run
        if waits:
            self.time_passes(1)
        self.read()

    def _act(self, wanted: Wanted, act: str) -> None:
        match act:
            case "client":
                self._answers(wanted)
            case "tool":
                for key in wanted.asked:
                    given = {"request_id": key} | accepted(wanted.key)
                    wanted.client.modern_tool("respond_to_elicitation", **given)
            case "withdrawn":
                self._withdraws(wanted)
            case "dies":
                self._dies(wanted)
            case "done":
                self._is_done(wanted)
            case "cut":
                if wanted.exchanges:
                    wanted.drop()
            case "again":
                self.sends_again(wanted)

    def _answers(self, wanted: Wanted) -> None:
        if wanted.asked and wanted.lost_at is None and not wanted.is_over:
            by = {key: accepted(wanted.key) for key in wanted.asked}
            if not wanted.exchanges:
                wanted.again(by)

    def _withdraws(self, wanted: Wanted) -> None:
        for asked in self.asked_of(wanted):
            said = {"requestId": asked.number}
            method = "notifications/cancelled"
            if not asked.peer.is_modern:
                asked.peer.say({"jsonrpc": "2.0", "method": method, "params": said})
                self._may_be_dead(asked)

    def _dies(self, wanted: Wanted) -> None:
        for peer, _, of in self.under_way().values():
            if of is wanted:
                peer.end()
                for asked in self.asked:
                    if asked.peer is peer:
                        self._may_be_dead(asked)

    def _is_done(self, wanted: Wanted) -> None:
        for peer, request_id, of in self.under_way().values():
            if of is wanted:
                peer.answer(request_id, result(f"answer to {wanted.key}"))
                self.answered.add(wanted.key)
                for asked in self.asked:
                    if asked.of is wanted and not asked.got:
                        self._may_be_dead(asked)

    def _may_be_dead(self, asked: Asked) -> None:
        """It is closed, and with it a state by which it was asked."""
        for each in self.may_hold(asked):
            each.may_be_dead = True

    @precondition(lambda self: self.wanted)
    @rule(data=st.data(), acts=st.lists(st.sampled_from(ACTS), min_size=1, unique=True))
    def it_all_happens_in_one_tick(self, data: st.DataObject, acts: list[str]) -> None:
        wanted = data.draw(st.sampled_from(self.wanted))
        self.step(*[partial(self._act, wanted, each) for each in acts])

    @precondition(lambda self: self.under_way())
    @rule(data=st.data(), ticks=st.none() | st.integers(0, 20))
    def the_server_is_done(self, data: st.DataObject, ticks: int | None) -> None:
        """Perhaps its client is gone in one of the ticks in which it is told."""
        found = self.under_way()
        _, _, wanted = found[data.draw(st.sampled_from(sorted(found)))]

        async def done() -> None:
            self._is_done(wanted)
            if ticks is not None and wanted.exchanges:
                await hop(ticks)
                wanted.drop()

        self.do(done)
        self.read()

    @precondition(lambda self: any(wanted.asked for wanted in self.wanted))
    @rule(data=st.data())
    def a_client_answers(self, data: st.DataObject) -> None:
        wanted = data.draw(st.sampled_from([w for w in self.wanted if w.asked]))
        self.step(lambda: self._answers(wanted))

    @precondition(lambda self: any(w.states for w in self.wanted))
    @rule(data=st.data(), how=st.sampled_from(["principal", "view", "arguments", "call"]))
    def a_state_comes_from_elsewhere(self, data: st.DataObject, how: str) -> None:
        wanted = data.draw(st.sampled_from([w for w in self.wanted if w.states]))
        given: dict[str, Any] = {"requestState": data.draw(st.sampled_from(wanted.states))}
        given["inputResponses"] = {key: accepted("thief") for key in wanted.asked}
        other = Wanted(wanted.client, wanted.key, wanted.patience, view=wanted.view)
        if how == "principal":
            other.client = self.clients["bob" if wanted.client is self.clients["ada"] else "ada"]
        elif how == "view":
            other.view = data.draw(st.sampled_from([v for v in VIEWS if v != wanted.view]))
        elif how == "arguments":
            given["arguments"] = {"more": 7}
        else:
            other.key += "-another"
        before = self.began
        answers = [asked.got for asked in self.asked]
        exchange = self.do_sync(lambda: other.send(other.client, **given))
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
            if seconds > 1 or wanted.lost_at is not None:
                wanted.may_be_dead = True

    # What always holds.

    @invariant()
    def each_call_ran_once(self) -> None:
        began = self.began
        for wanted in self.wanted:
            assert began[wanted.key] <= wanted.may_run

    @invariant()
    def each_question_has_one_answer_of_its_own_client(self) -> None:
        for asked in self.asked:
            # What is between server and client is sent again if the answer was lost.
            most = asked.of.may_run if self.is_passed(asked.of) else 1
            assert len(asked.got) <= most
            for said in asked.got:
                by = said.get("result", {}).get("content", {}).get("by")
                assert by is None or by in {wanted.key for wanted in self.may_hold(asked)}

    @invariant()
    def nothing_is_of_somebody_elses(self) -> None:
        for wanted in self.wanted:
            others = [other.key for other in self.wanted if other is not wanted]
            assert not [key for key in others if f'answer to {key}"' in wanted.said]
            may_be = {a.message for a in self.asked if wanted in self.may_hold(a)}
            assert set(wanted.asked.values()) <= may_be

    @invariant()
    def who_comes_with_its_state_goes_on(self) -> None:
        for wanted in self.wanted:
            if not (wanted.may_be_dead or wanted.results):
                assert [each for each in wanted.errors if each["code"] == INVALID_PARAMS] == []

    @invariant()
    def nobody_waits_for_what_is_done(self) -> None:
        waits = self.under_way()
        for wanted in self.wanted:
            if wanted.key in self.answered and wanted.key not in waits:
                assert not wanted.exchanges


class OfUrl(Views):
    entry = Server("x", url="http://x/", era="handshake")


class OfModern(Views):
    entry = Server("x", url="http://x/", era="modern")


TestOfProgram = Views.TestCase
TestOfUrl = OfUrl.TestCase
TestOfModern = OfModern.TestCase
