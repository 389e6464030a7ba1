"""Sessions and servers in one world, as alike as they can be, through everything but the network.

Ids, names and times coincide on purpose; only the secrets of the sessions differ.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from scripted_peer import Mood
from trio_machine import more
from world import LOOKS, Held, Place, blocks, code_of
from world_model import Call, Life, Question, Timer
from world_rivals import Rivals
from world_steps import (
    ANSWER_WITHIN,
    CODES,
    DELAY,
    QUESTIONS,
    SESSIONS,
    TASKS,
)

WAITERS = 4


class World(Rivals):
    def place(self, data: st.DataObject) -> Place:
        place: Place = data.draw(st.sampled_from(self.places))
        return place

    def tool(self, place: Place, name: str, /, **arguments: Any) -> Held:
        """One that is answered at once."""
        act = partial(place.start, "reply", name, **arguments)
        held: Held
        (held,) = self.step(self.touching(place, act))
        assert held.result is not None
        return held

    # -- sessions

    @initialize(principals=st.lists(st.sampled_from(["ada", "bob"]), min_size=2, max_size=2))
    def begin(self, principals: list[str]) -> None:
        for principal in principals:
            self.somebody_joins(principal)

    @precondition(lambda self: len(self.places) < SESSIONS)
    @rule(principal=st.sampled_from(["ada", "bob"]))
    def somebody_joins(self, principal: str) -> None:
        client = self.do(partial(self.mcp.joined, principal=principal))
        life = Life(f"secret-{len(self.lives)}-", principal, self.now)
        self.lives.append(life)
        place = Place(client, client.own.session, life)
        self.places.append(place)
        self.tool(place, "set_roots", roots=[{"uri": f"file:///{life.secret}"}])

    @precondition(lambda self: self.places)
    @rule(data=st.data())
    def somebody_joins_again(self, data: st.DataObject) -> None:
        place = self.place(data)
        self.step(self.joins_again(place))
        assert not place.held

    @precondition(lambda self: self.places)
    @rule(data=st.data(), really=st.sampled_from([False, False, True]))
    def somebody_leaves(self, data: st.DataObject, really: bool) -> None:
        if really:
            place = self.place(data)
            self.step(self.ends(place))
            assert place not in self.places
            exchange = self.do(lambda: place.client.tool("list_tasks").complete())
            assert exchange.status == 404

    # -- calls

    @precondition(lambda self: self.places)
    @rule(
        data=st.data(),
        patience=st.sampled_from([0, 0, 2, 5, 120]),
        ttl=st.sampled_from([3, 8, 100]),
    )
    def somebody_calls(self, data: st.DataObject, patience: int, ttl: int) -> None:
        place = self.place(data)
        server = data.draw(st.sampled_from(sorted(self.names.of(place.life.principal))))
        self.call(place, server, patience, ttl)

    @precondition(lambda self: self.places)
    @rule(data=st.data())
    def somebody_begins_more_than_there_is_room_for(self, data: st.DataObject) -> None:
        place = self.place(data)
        for patience in (2, *[0] * TASKS):
            self.call(place, "b", patience, 100)
        self.pass_until(self.now + 3)

    def call(self, place: Place, server: str, patience: int, ttl: int) -> None:
        life = place.life
        key = f"{life.secret} key-{len(life.calls)}"
        call = Call(key, server, self.now + patience, ttl)
        arguments: dict[str, Any] = {"server": server, "tool": "t", "args": {"key": key}}
        arguments |= {"timeout_ms": patience * 1000, "ttl_ms": ttl * 1000}
        no_task = patience == 0 and len(life.of("working")) >= TASKS
        if no_task or self.is_full(place):
            held = self.tool(place, "execute_tool", **arguments)
            assert code_of(held.result) == CODES["limit"]
            assert self.host_of(key) is None
            return
        life.calls.append(call)
        call.may("working" if patience == 0 else "in_flight", "begun")
        start = partial(place.start, "call", "execute_tool", call, **arguments)
        self.step(self.touching(place, start))

    @precondition(lambda self: self.running())
    @rule(data=st.data(), kindly=st.sampled_from([True, True, False]))
    def a_server_answers(self, data: st.DataObject, kindly: bool) -> None:
        _, call, host, request_id = data.draw(st.sampled_from(self.running()))
        was = call.fate
        answer = self.answers if kindly else self.refuses
        self.step(answer(call, host, request_id))
        if call.over_at == self.now and was in {"in_flight", "working"}:
            assert call.fate == ("returned" if kindly else "failed")

    @precondition(lambda self: self.running())
    @rule(data=st.data())
    def a_server_says_how_far_it_is(self, data: st.DataObject) -> None:
        _, call, host, request_id = data.draw(st.sampled_from(self.running()))
        said = {"progressToken": request_id, "progress": 1, "message": call.key}
        self.step(partial(host.notify, "progress", **said))

    @precondition(lambda self: any(place.held for place in self.places))
    @rule(data=st.data(), times=st.integers(1, 2), gives_up=st.booleans())
    def a_request_is_cancelled(self, data: st.DataObject, times: int, gives_up: bool) -> None:
        place = data.draw(st.sampled_from([p for p in self.places if p.held]))
        held = data.draw(st.sampled_from(place.held))
        if gives_up:
            self.step(self.gives_up(place, held))
        else:
            self.step(*[self.cancels_request(place, held) for _ in range(times)])
        assert not held.is_open

    @precondition(lambda self: any(call.task_id for _, call in self.tasks_known()))
    @rule(data=st.data(), timeout=st.sampled_from([0, 3, 20, None]))
    def somebody_fetches(self, data: st.DataObject, timeout: int | None) -> None:
        place, call = data.draw(st.sampled_from(self.tasks_known()))
        if len([h for h in place.held if h.what != "call"]) >= WAITERS:
            return
        limit: dict[str, Any] = {} if timeout is None else {"timeout_ms": timeout * 1000}

        until = self.now + (timeout or 0)
        start = partial(place.start, "fetch", "get_task_result", call, until, **limit)
        self.step(self.touching(place, partial(start, task_id=call.task_id)))

    @precondition(lambda self: self.tasks_known())
    @rule(data=st.data(), times=st.integers(1, 2))
    def somebody_cancels_a_task(self, data: st.DataObject, times: int) -> None:
        place, call = data.draw(st.sampled_from(self.tasks_known()))
        was = call.fate
        self.step(*[self.cancels_task(place, call) for _ in range(times)])
        assert call.fate != "working"
        assert was != "working" or call.fate == "cancelled" or "unsent" in call.because

    @precondition(lambda self: self.places)
    @rule(data=st.data(), timeout=st.sampled_from([0, 2, 30, 300, 300]), waiters=st.integers(1, 2))
    def somebody_awaits(self, data: st.DataObject, timeout: int, waiters: int) -> None:
        place = self.place(data)
        if len([held for held in place.held if held.what != "call"]) + waiters > WAITERS:
            return

        self.step(*[self.awaits(place, timeout) for _ in range(waiters)])

    # -- questions

    @precondition(lambda self: self.connected())
    @rule(data=st.data(), kind=st.sampled_from(["elicitation", "elicitation", "sampling"]))
    def a_server_asks(self, data: st.DataObject, kind: Any) -> None:
        place, host = data.draw(st.sampled_from(self.connected()))
        life = place.life
        about = self.about(place, host)
        if host.is_shared and about is None:
            return  # nobody could say whom it asks; see the machine of shared servers
        is_refused = len(life.open_questions()) >= QUESTIONS
        key = f"{life.secret} question-{len(life.questions)}"
        asked: list[int] = []
        if not is_refused:  # it may be of a call, whose client is told at once
            for call in life.of("in_flight"):
                if call.server == host.server:
                    call.may(call.fate, "asked")
                    call.may("working", "asked")
                    if len(life.of("working")) >= TASKS:
                        call.may("failed", "limit")
        self.step(lambda: asked.append(host.ask(kind, key, about)))
        if is_refused:
            (answer,) = host.answers[asked[0]]
            assert answer["error"]["code"] == -32603
            return
        assert asked[0] not in host.answers
        real = place.session.questions.open(kind)[-1]
        question = Question(key, host.server, kind, real.id, self.now + ANSWER_WITHIN)
        assert key in str(real.params)
        life.questions.append(question)
        place.asked[question] = (host, asked[0], real)

    @precondition(lambda self: self.questions())
    @rule(data=st.data(), kindly=st.booleans(), cancels=st.sampled_from([False, False, True]))
    def somebody_responds(self, data: st.DataObject, kindly: bool, cancels: bool) -> None:
        """Perhaps too late, or again."""
        place, question = data.draw(st.sampled_from(self.questions()))
        if cancels:
            self.step(self.cancels_question(place, question))
        else:
            self.step(self.responds(place, question, kindly=kindly))
        assert not question.is_open

    @precondition(lambda self: any(question.is_open for _, question in self.questions()))
    @rule(data=st.data())
    def a_server_withdraws(self, data: st.DataObject) -> None:
        open_questions = [(p, question) for p, question in self.questions() if question.is_open]
        self.step(self.withdraws(*data.draw(st.sampled_from(open_questions))))

    # -- what servers say, timers, looks

    @precondition(lambda self: self.connected())
    @rule(data=st.data(), count=st.integers(1, 2))
    def a_server_speaks(self, data: st.DataObject, count: int) -> None:
        place, host = data.draw(st.sampled_from(self.connected()))
        self.step(*[self.speaks(place, host, is_alone=True) for _ in range(count)])

    @precondition(lambda self: self.places)
    @rule(data=st.data(), seconds=st.sampled_from([1, 3, 20]))
    def somebody_sets_a_timer(self, data: st.DataObject, seconds: int) -> None:
        place = self.place(data)
        if sum(timer.status == "active" for timer in place.life.timers) < WAITERS:
            words = {"duration_ms": seconds * 1000, "message": place.life.secret}
            said = blocks(self.tool(place, "set_timer", **words).result)[0]
            timer = Timer(said["timer"]["timer_id"], self.now + seconds)
            place.life.timers.append(timer)

    @precondition(lambda self: any(place.life.timers for place in self.places))
    @rule(data=st.data())
    def somebody_deletes_a_timer(self, data: st.DataObject) -> None:
        place = data.draw(st.sampled_from([p for p in self.places if p.life.timers]))
        timer = data.draw(st.sampled_from(place.life.timers))
        self.step(self.deletes_timer(place, timer))
        assert timer.status != "active"

    @precondition(lambda self: self.places)
    @rule(data=st.data(), tool=st.sampled_from(sorted(LOOKS)))
    def somebody_looks(self, data: st.DataObject, tool: str) -> None:
        place = self.place(data)
        if tool != "get_server_status" or "a" in self.names.of(place.life.principal):
            act = partial(place.start, "look", tool, **LOOKS[tool])
            for held in self.step(*[self.touching(place, act)] * 2):
                if tool == "get_notifications":
                    place.drain(held)

    @precondition(lambda self: len(self.places) > 1)
    @rule(data=st.data())
    def somebody_uses_what_is_anothers(self, data: st.DataObject) -> None:
        place, other = data.draw(st.permutations(self.places))[:2]
        for call in other.life.calls:
            if call.task_id is not None:
                for tool in ("get_task", "cancel_task", "get_task_result"):
                    said = self.tool(place, tool, task_id=call.task_id)
                    assert code_of(said.result) == "TOOL_ERR_NOT_FOUND"
        for question in other.life.questions:
            tool = f"cancel_{question.kind}_request"
            said = self.tool(place, tool, request_id=question.id)
            assert code_of(said.result) == "TOOL_ERR_NOT_FOUND"
        for timer in other.life.timers:
            said = self.tool(place, "delete_timer", timer_id=timer.id)
            assert code_of(said.result) == "TOOL_ERR_NOT_FOUND"
        if place.life.principal != other.life.principal:
            stranger = self.mcp.client(place.life.principal)
            stranger.session = other.session.id
            assert self.do(stranger.request("tools/list").complete).status == 404
            assert self.do(stranger.delete().complete).status == 404
        ours = {held.id for held in place.held}
        for held in other.held:  # the same ids are in use everywhere
            if held.id not in ours:
                self.step(
                    self.touching(place, partial(place.client.cancel, held.id, reason="mine"))
                )

    # -- servers

    @rule(mood=st.sampled_from(["fails", "hangs"]))
    def what_opening_does(self, mood: Mood) -> None:
        self.hosts.mood = mood

    @precondition(lambda self: self.connected())
    @rule(data=st.data())
    def a_server_dies(self, data: st.DataObject) -> None:
        place, host = data.draw(st.sampled_from(self.connected()))
        having = self.sharing(host)
        assert place in having
        self.step(self.dies(host))
        for each in having:
            life = each.life
            assert not [q for q in life.open_questions() if each.asked[q][0] is host]
            assert not [c for c in life.of("in_flight", "working") if self.host_of(c.key) is host]

    @precondition(lambda self: self.places)
    @rule(
        data=st.data(),
        name=st.sampled_from("cd"),
        leads_to=st.sampled_from("xy"),
        works=st.sampled_from([True, True, False]),
    )
    def somebody_adds_a_server(
        self, data: st.DataObject, name: str, leads_to: str, works: bool
    ) -> None:
        place = self.place(data)
        principal = place.life.principal
        before = self.names.target(principal, name)
        if before == leads_to and not self.hosts_of(place, name):
            return
        entry = {
            "name": name,
            "command": leads_to,
            "restart": {"base_delay_ms": DELAY, "jitter": 0},
        }
        if self.is_full(place):  # it may wait, as calls do
            held = self.tool(place, "add_server", **entry)
            assert code_of(held.result) == "TOOL_ERR_LIMIT"
            return
        self.hosts.mood = "greets" if works else "fails"
        if before != leads_to and works:
            self.lose(name, principal)
        held = self.tool(place, "add_server", **entry)
        if before == leads_to:
            assert code_of(held.result) is None
        elif works:
            assert blocks(held.result)[0]["replaced"] is (before is not None)
            self.names.add(principal, name, leads_to)
        else:
            assert code_of(held.result) == CODES["unsent"]

    @precondition(lambda self: self.places)
    @rule(data=st.data(), really=st.sampled_from([False, True]))
    def somebody_removes_a_server(self, data: st.DataObject, really: bool) -> None:
        place = self.place(data)
        principal = place.life.principal
        names = sorted(self.names.of(principal) - {"b"})  # one stays
        if names and really:
            name = data.draw(st.sampled_from(names))
            self.lose(name, None if name in self.names.configured else principal)
            held = self.tool(place, "remove_server", name=name)
            assert blocks(held.result)[0] == {"removed": name}
            self.names.remove(principal, name)

    @precondition(lambda self: self.connected())
    @rule(data=st.data())
    def somebody_reconnects(self, data: st.DataObject) -> None:
        place, host = data.draw(st.sampled_from(self.connected()))
        if self.is_full(place):  # it may wait, as calls do
            held = self.tool(place, "reconnect_server", name=host.server)
            assert code_of(held.result) == "TOOL_ERR_LIMIT"
            return
        self.loses(host)
        self.hosts.mood = "greets"
        held = self.tool(place, "reconnect_server", name=host.server)
        assert code_of(held.result) is None
        assert not host.is_open


TestWorld = World.TestCase
TestWorld.settings = more(8)
