"""One step of the world: what is done in it, and what must be true of everybody after it."""

from __future__ import annotations

import itertools
import json
import math
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import attrs
import trio

from asgi_world import World as Endpoint
from asgi_world import open_world
from emceepee_trio.config import Config, Defaults, Limits, Reconnect, Retry, Server
from emceepee_trio.journal import Reader
from emceepee_trio.model.timeline.records import Records
from parts import hop
from replay import Replay
from trio_machine import TrioMachine
from world import Host, Hosts, Place, blocks, code_of
from world_model import Call, Life, Names, Question, Timer

CALLS, TASKS, QUESTIONS, SESSIONS = 3, 2, 2, 3
FACTS = 250
"""Kept of a session: enough for what is under way."""
KEPT, ANSWER_WITHIN, IDLE = 12, 10, 60
"""Seconds that a finished task is kept, that a question waits, that an unused session lives."""
DELAY = 4000
LINGER = 3
"""Seconds that a server stays that sessions share, when nobody has it any more."""

AGAIN = Retry(base_delay_ms=DELAY, jitter=0)
CONFIG = Config(
    servers=(
        Server("a", command="a", era="handshake", restart=AGAIN, start="eager"),
        Server(
            "b",
            url="http://b",
            era="handshake",
            reconnect=Reconnect(True, base_delay_ms=DELAY),
            start="eager",
        ),
        Server(
            "s",
            url="http://s",
            era="handshake",
            reconnect=Reconnect(True, base_delay_ms=DELAY),
            start="eager",
            scope="principal",
            linger_ms=LINGER * 1000,
        ),
    ),
    defaults=Defaults(start="eager"),
    limits=attrs.evolve(
        Limits(),
        answer_ms=3600 * 1000,
        calls=CALLS,
        tasks=TASKS,
        questions=QUESTIONS,
        sessions=SESSIONS,
        finished_task_ms=KEPT * 1000,
        question_timeout_ms=ANSWER_WITHIN * 1000,
        session_idle_ms=IDLE * 1000,
    ),
)

Act = Callable[[], object]

CODES = {
    "refusal": "TOOL_ERR_EXECUTION_FAILED",
    "lost": "TOOL_ERR_SERVER_DISCONNECTED",
    "limit": "TOOL_ERR_LIMIT",
    "unsent": "TOOL_ERR_CONNECT_FAILED",
    "removed": "TOOL_ERR_SERVER_DISCONNECTED",
}
"""What a request is told, by what was done to its call."""
BY_CLIENT = {"accepted", "declined", "completed", "cancelled"}


class Steps(TrioMachine):
    mcp: Endpoint

    def __init__(self) -> None:
        self.hosts = Hosts()
        self.replay = Replay()
        self.records = Records(FACTS, 1_000_000)
        self.facts_seen = 0
        self.names = Names({"a", "b", "s"})
        self.places: list[Place] = []
        """Of sessions that live."""
        self.lives: list[Life] = []
        """All of them, also those that are over."""
        self.ending: set[str] = set()
        """Ids of sessions that are ended on purpose."""
        self.numbers = itertools.count(1)
        self.rejoining: list[Place] = []
        """In this step."""
        super().__init__()
        self.tasks = self.count_tasks()

    def world(self) -> AbstractAsyncContextManager[object]:
        @asynccontextmanager
        async def opened() -> AsyncGenerator[None]:
            with self.hosts.in_place():
                async with open_world(CONFIG, guard=math.inf) as self.mcp:
                    self.replay.reads(self.mcp.manager.journal)
                    for read, kinds in self.records.readers():
                        self.mcp.manager.journal.add(Reader("timeline", read, kinds))
                    yield

        return opened()

    def count_tasks(self) -> int:
        return self.do_sync(lambda: trio.lowlevel.current_statistics().tasks_living)

    @property
    def now(self) -> float:
        return self.clock.current_time()

    # -- who is who

    def secrets_of_others(self, life: Life) -> list[str]:
        return [other.secret for other in self.lives if other is not life]

    def sharing(self, host: Host) -> list[Place]:
        """Who has that connection."""
        return [place for place in self.places if place.has(host)]

    def hosts_of(self, place: Place, *servers: str) -> list[Host]:
        """Connections that stand."""
        return [
            host
            for host in self.hosts.all
            if place.has(host)
            and host.is_open
            and host.greeted
            and (not servers or host.server in servers)
        ]

    def host_of(self, key: str) -> Host | None:
        """Who got that call."""
        found = [host for host in self.hosts.all if key in host.keys.values()]
        assert len(found) <= 1, f"{key} was sent twice"
        return found[0] if found else None

    def running(self) -> list[tuple[Place, Call, Host, int]]:
        """Calls that a server has, and has not answered."""
        found = []
        for place in self.places:
            for call in place.life.calls:
                host = self.host_of(call.key)
                if host is not None and host.is_open:
                    request_id = host.request_of(call.key)
                    if request_id is not None:
                        found.append((place, call, host, request_id))
        return found

    def calls(self, *fates: str) -> list[tuple[Place, Call]]:
        return [(place, call) for place in self.places for call in place.life.of(*fates)]

    def is_full(self, place: Place) -> bool:
        """No more requests of it may wait for servers. Of looks, those that do are still held."""
        looks = [held for held in place.held if held.what == "look"]
        return len(place.life.of("in_flight")) + len(looks) >= CALLS

    def questions(self) -> list[tuple[Place, Question]]:
        return [(place, q) for place in self.places for q in place.life.questions]

    def timers(self) -> list[tuple[Place, Timer]]:
        return [(place, timer) for place in self.places for timer in place.life.timers]

    # -- the step

    def step(self, *acts: Act, pauses: Sequence[int] = ()) -> list[Any]:
        """Do these, so many ticks apart; what they have returned."""
        done: list[Any] = []
        began = self.now

        async def run() -> None:
            for number, act in enumerate(acts):
                done.append(act())
                await hop(pauses[number] if number < len(pauses) else 0)

        for place in self.places:
            place.waits = bool(place.held)
            for call in place.life.of("in_flight", "working"):
                if self.host_of(call.key) is None:  # who knows how the connection fares
                    call.may(call.fate, "unsent")
                    call.may("failed", "unsent")
        self.do(run)
        for place in [*self.places]:
            self.settle(place, began)
        self.rejoining.clear()
        return done

    def settle(self, place: Place, began: float) -> None:
        life = place.life
        waited = len(place.held)
        place.absorb(self.secrets_of_others(life))
        if len(place.held) < waited:
            life.used_at = self.now
        if self.mcp.manager.get(place.session.id) is not place.session:
            self.check_end(place)
            return
        for call in life.calls:
            was = call.fate
            call.look(place.fate_of(call), self.now)
            if call.fate != was:
                life.used_at = self.now
                if call.fate == "working":
                    assert call.task_id is not None
                    call.expires = place.session.calls.get(call.task_id).expires
                    assert began + call.ttl <= call.expires <= self.now + call.ttl
                elif not call.is_open:
                    if call.task_id is not None:
                        call.over_at = place.session.calls.get(call.task_id).expires - KEPT
                        assert began <= call.over_at <= self.now
                    self.check_call(place, call)
        for question in life.questions:
            was = question.fate
            host, number, real = place.asked[question]
            question.look(real.state.value, self.now)
            if question.fate != was:
                life.used_at = self.now
                self.check_question(question, host.answers.get(number, []), host)
        for timer in life.timers:
            timer.look(place.session.timers.get(timer.id).status)
        self.check_replies(place, began)
        self.check_fetched(place, began)

    def check_call(self, place: Place, call: Call) -> None:
        """Its client and its server were told the same."""
        host = self.host_of(call.key)
        told_off = call.fate in {"cancelled", "expired"} or "limit" in call.because
        if told_off and host is not None and host.is_open:
            has_answered = host.request_of(call.key) is None
            assert call.key in host.cancelled or has_answered
        (held,) = [held for held in place.calls if held.call is call]
        if call.task_id is None and held.result is not None:
            self.check_result(call, held.result)
        elif held.result is not None:
            promoted = [said for said in blocks(held.result) if "proxy_task" in said]
            assert [p["proxy_task"]["task_id"] for p in promoted] == [call.task_id]

    def check_result(self, call: Call, result: dict[str, Any]) -> None:
        """What a call, or whoever fetches it later, is told of its fate."""
        if call.fate == "returned":
            assert result["content"][0]["text"] == f"{call.key} done"
        else:
            codes = {CODES.get(why, "TOOL_ERR_EXECUTION_FAILED") for why in call.because}
            if "unsent" in call.because:
                codes |= {CODES["lost"], "TOOL_ERR_SERVER_NOT_FOUND"}
            assert code_of(result) in codes

    def check_question(self, question: Question, answers: list[dict[str, Any]], host: Host) -> None:
        """Its server got the one answer that fits, if it still wants one."""
        assert len(answers) <= 1
        if not host.is_open or question.is_withdrawn or question.fate == "rejected":
            return
        (answer,) = answers
        result, code = answer.get("result"), answer.get("error", {}).get("code")
        match question.fate:
            case "accepted":
                assert result == {"action": "accept", "content": {"say": question.key.split()[0]}}
            case "declined":
                assert result == {"action": "decline"}
            case "completed":
                assert question.key.split()[0] in json.dumps(result)
            case "expired":
                assert code == -32001
            case "cancelled" if question.kind == "elicitation":
                assert result == {"action": "cancel"}
            case "cancelled":
                assert code == -32600
            case other:
                raise AssertionError(other)

    def check_replies(self, place: Place, began: float) -> None:
        """One of those who decided a fate in this step is told that it did."""
        winners: Counter[Call | Question] = Counter()
        for fate, thing, held in place.replies:
            if held.result is None:
                assert place in self.rejoining
                continue
            said = blocks(held.result)[0]
            if held.result.get("isError"):
                assert said["error"]["code"] == "TOOL_ERR_NOT_FOUND"
            elif said.get("success", True):
                assert thing.fate == fate
                assert thing.over_at >= began
                winners[thing] += 1
        for thing, count in winners.items():
            assert count == 1, f"{thing.key} has {count} winners"
        place.replies.clear()

    def check_fetched(self, place: Place, began: float) -> None:
        for held in [held for held in place.fetches if not held.is_open]:
            place.fetches.remove(held)
            call = held.call
            assert call is not None
            if held.result is None:
                assert held.is_cancelled
            elif code_of(held.result) == "TOOL_ERR_TIMEOUT":
                assert call.is_open or call.over_at >= began
                if "waits for you" in blocks(held.result)[0]["error"]["message"]:
                    questions = place.session.questions
                    # One that comes in this very step is known to us only after it.
                    asked = [q.server for q in questions.open("elicitation")]
                    asked += [q.server for q in questions.open("sampling")]
                    asked += [q.server for q in place.asked if q.over_at >= began]
                    assert call.server in asked
                else:
                    assert held.until <= self.now
            elif code_of(held.result) != "TOOL_ERR_NOT_FOUND":
                assert not call.is_open
                self.check_result(call, held.result)

    def check_end(self, place: Place) -> None:
        """The session is over: because of us, or because nobody used it."""
        life = place.life
        self.places.remove(place)
        life.is_over = True
        if place.session.id not in self.ending:
            assert not life.has_work()
            assert not place.waits
            assert self.now >= life.used_at + IDLE
        assert not place.held, "somebody waits for a session that is over"
        known = {about for _, about in life.facts()}
        strangers = [fact for fact in place.told.values() if fact and fact[1] not in known]
        # A call that became a task in the step in which its session ended may be told, but only
        # of those; what else has just ended with it is told to nobody.
        assert all(kind.startswith("task_") for kind, _ in strangers)
        assert len({about for _, about in strangers}) <= len(life.of("in_flight"))
        assert not self.hosts_of(place)
        assert not place.session.inner.child_tasks
        assert not place.session.outer.child_tasks
        assert place.session.presence.waiters == 0
