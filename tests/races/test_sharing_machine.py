"""Shared servers under sessions of two principals that come and go: nothing crosses between them.

Every payload carries the secret of the session that it belongs to: calls, results, progress,
questions, log messages, resources, roots. The server knows whose each is, and says so only in the
words of the protocol. Whatever happens, and whatever happens in the same tick, a session is told
nothing of another one, each call runs once at most, and each question gets one answer. What is
noted of a session, replayed, is how it stands; what no session is shown stays with its principal.
The configuration is read again meanwhile, with another entry of the server, or without it.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager
from typing import Any

import attrs
from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule

from emceepee_trio.backend.sharing.lease import Lease
from emceepee_trio.config import Config, Server
from emceepee_trio.errors import ToolError
from emceepee_trio.journal import Reader
from emceepee_trio.model.states import QuestionState
from emceepee_trio.model.timeline.records import Records
from memory_peers import Peer
from replay import Replay
from sharers import ELICITATION, FORM, Sharer, at_url, modern, open_sharers, result, shared
from standing import check_standing
from trio_machine import TrioMachine

LINGER = 5
SESSIONS = 5


@attrs.define(eq=False)
class Place:
    """One session, and all that it was ever told."""

    sharer: Sharer
    secret: str
    principal: str
    ears: ExitStack
    said: list[str] = attrs.field(factory=list)
    seen: int = 0
    lists: int = 0
    """Changes of lists that it was told."""
    lists_due: int = 0
    """That it should have been told."""
    calls: list[str] = attrs.field(factory=list)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(f"<place of {self.secret}>")

    def hear(self, *what: Any) -> None:
        self.said.append(repr(what))

    def heard(self, server: str, method: str, params: Any) -> None:
        self.hear(method, params)
        self.lists += method.endswith("list_changed")

    @property
    def lease(self) -> Lease | None:
        lease = self.sharer.session.backends.get("x")
        return lease if isinstance(lease, Lease) and not lease.has_moved else None


class SharedWorld(TrioMachine):
    entry: Any = None

    def __init__(self) -> None:
        self.places: list[Place] = []
        self.secrets: list[tuple[str, str]] = []
        self.numbers: Iterator[int] = itertools.count(1)
        self.asked: dict[int, str] = {}
        """Questions by their ids, and whose they are."""
        self.ended: list[Place] = []
        self.records = Records(2000, 20_000)
        self.replay = Replay()
        self.entries: list[Server | None] = [
            self.entry,
            attrs.evolve(self.entry, linger_ms=2 * LINGER * 1000),
            attrs.evolve(self.entry, scope="session"),
            None,
        ]
        super().__init__()

    @asynccontextmanager
    async def world(self) -> AsyncGenerator[None]:
        async with open_sharers(self.entry) as self.sharers:
            journal = self.sharers.manager.journal
            self.replay.reads(journal)
            for read, kinds in self.records.readers():
                journal.add(Reader("timeline", read, kinds))
            yield
            for place in self.places:
                self.sharers.manager.end(place.sharer.session, "over")

    # What there is.

    def under_way(self) -> list[tuple[Peer, int, str]]:
        """Calls that a server has not answered, given up or not."""
        return [(p, i, t) for p in self.sharers.peers.open() for i, t in p.calls.items()]

    def owner(self, call: str) -> Place | None:
        return next((place for place in self.places if call in place.calls), None)

    def open_questions(self) -> list[tuple[Place, Any]]:
        return [
            (place, question)
            for place in self.places
            for question in place.sharer.session.questions.open("elicitation")
        ]

    def step(self, *acts: Callable[[], object]) -> None:
        """All of them in one tick."""

        async def run() -> None:
            for act in acts:
                self.sharers.nursery.start_soon(self._do, act)

        self.do(run)

    async def _do(self, act: Callable[[], object]) -> None:
        act()

    # What can happen.

    def comes(self, principal: str) -> None:
        secret = f"secret-{len(self.secrets)}-"
        self.secrets.append((secret, principal))

        async def come() -> None:
            sharer = await self.sharers.come(secret, principal)
            session, ears = sharer.session, ExitStack()
            session.client_name = "client"  # which others may be told
            place = Place(sharer, secret, principal, ears)
            ears.enter_context(session.announcements.heard_by(place.heard))
            ears.enter_context(session.announcements.watched_by(place.hear))
            ears.enter_context(session.buffers.heard_by(place.hear))
            self.places.append(place)

        self.sharers.nursery.start_soon(come)

    def leaves(self, place: Place) -> None:
        if place in self.places:
            self.places.remove(place)
            self.ended.append(place)
            self.sharers.manager.end(place.sharer.session, "DELETE")

    def calls(self, place: Place, *, as_task: bool) -> None:
        call = f"{place.secret}call-{len(place.calls)}"
        place.calls.append(call)
        limits = {"timeout_ms": 0} if as_task else {"timeout_ms": 3000, "ttl_ms": 4000}
        place.sharer.begin(call, **limits)

    def answers(self, peer: Peer, request_id: int, call: str) -> None:
        if request_id in peer.requests:
            peer.answer(request_id, result(f"answer to {call}"))

    def progresses(self, peer: Peer, request_id: int, call: str) -> None:
        if request_id in peer.requests:
            token = peer.requests[request_id]["params"].get("_meta", {}).get("progressToken")
            said = {"progressToken": token, "progress": 1, "message": call}
            method = "notifications/progress"
            peer.say({"jsonrpc": "2.0", "method": method, "params": said})

    def about(self, peer: Peer, request_id: int) -> int | None:
        return request_id if peer.http is not None else None

    def asks(self, peer: Peer, request_id: int, call: str) -> None:
        if request_id in peer.requests:
            number = next(self.numbers)
            self.asked[number] = call
            said = {"message": f"question of {call}", "requestedSchema": FORM}
            if peer.is_modern:
                peer.needs(request_id, number, ELICITATION, said)
                return
            question = {"jsonrpc": "2.0", "id": number, "method": ELICITATION, "params": said}
            if not peer.say(question, self.about(peer, request_id)):
                del self.asked[number]

    def logs(self, peer: Peer, request_id: int, call: str) -> None:
        said = {"level": "info", "data": f"log of {call}"}
        message = {"jsonrpc": "2.0", "method": "notifications/message", "params": said}
        peer.say(message, self.about(peer, request_id))

    def asks_roots(self, peer: Peer) -> None:
        if peer.is_modern:
            for request_id, call in list(peer.calls.items())[:1]:
                number = next(self.numbers)
                self.asked[number] = f"roots of {call}"
                peer.needs(request_id, number, "roots/list", {})
            return
        number = next(self.numbers)
        self.asked[number] = "roots"
        if not peer.say({"jsonrpc": "2.0", "id": number, "method": "roots/list"}):
            del self.asked[number]

    def lists_change(self, peer: Peer) -> None:
        for place in self.places:
            lease = place.lease
            client = None if lease is None else lease.hub.backend.client
            if lease is None or client is None:
                place.lists_due += 1  # it may be about to have that connection
            else:
                at = lease.hub.backend.process if peer.http is None else client.http
                place.lists_due += at is (peer.child if peer.http is None else peer.http)
        peer.say({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})

    def updates(self, peer: Peer) -> None:
        """Of all that it was ever asked for."""
        for said in peer.asked("resources/subscribe"):
            method = "notifications/resources/updated"
            peer.say({"jsonrpc": "2.0", "method": method, "params": said})

    def responds(self, place: Place, question: Any) -> None:
        if question.is_open:
            said = {"action": "accept", "content": {"name": place.secret}}
            place.sharer.session.questions.take(question, QuestionState.ACCEPTED, said)

    def reloads(self, entry: Server | None) -> None:
        servers = () if entry is None else (entry,)
        self.sharers.manager.reload(Config(servers=servers))

    def uses(self, place: Place, tool: str, **arguments: Any) -> None:
        async def use() -> None:
            said = await place.sharer.use(tool, **arguments)
            assert isinstance(said, dict | ToolError)

        self.sharers.nursery.start_soon(use)

    # The rules.

    @precondition(lambda self: len(self.places) < SESSIONS)
    @rule(principal=st.sampled_from(["ada", "ada", "bob"]))
    def somebody_comes(self, principal: str) -> None:
        self.step(lambda: self.comes(principal))

    @precondition(lambda self: self.places)
    @rule(data=st.data(), first=st.data())
    def two_things_in_one_tick(self, data: st.DataObject, first: st.DataObject) -> None:
        self.step(self.any_act(first), self.any_act(data))

    @precondition(lambda self: self.places)
    @rule(data=st.data())
    def something(self, data: st.DataObject) -> None:
        self.step(self.any_act(data))

    @precondition(lambda self: self.places)
    @rule(data=st.data(), as_task=st.booleans())
    def two_call_and_the_server_asks(self, data: st.DataObject, as_task: bool) -> None:
        pair = [data.draw(st.sampled_from(self.places)) for _ in range(2)]
        self.step(*[lambda p=p: self.calls(p, as_task=as_task) for p in pair])
        if found := self.under_way():
            self.step(lambda: self.asks(*found[data.draw(st.integers(0, len(found) - 1))]))

    @rule(seconds=st.sampled_from([1, 3, LINGER + 1, 30]))
    def time_passes(self, seconds: int) -> None:
        self.pass_time(seconds)

    def any_act(self, data: st.DataObject) -> Callable[[], object]:
        place = data.draw(st.sampled_from(self.places))
        entry = data.draw(st.sampled_from([*self.entries[:1] * 3, *self.entries]))
        acts: dict[str, Callable[[], object]] = {
            "reads the configuration": lambda: self.reloads(entry),
            "leaves": lambda: self.leaves(place),
            "comes": lambda: self.comes(place.principal),
            "calls": lambda: self.calls(place, as_task=False),
            "begins a task": lambda: self.calls(place, as_task=True),
            "follows": lambda: self.uses(
                place, "subscribe_resource", server="x", uri=f"file:///{place.secret}"
            ),
            "follows no more": lambda: self.uses(
                place, "unsubscribe_resource", server="x", uri=f"file:///{place.secret}"
            ),
            "reconnects": lambda: self.uses(place, "reconnect_server", name="x"),
            "has roots": lambda: self.uses(
                place, "set_roots", roots=[{"uri": f"file:///{place.secret}root"}]
            ),
            "has other logs": lambda: self.uses(place, "set_log_level", server="x", level="debug"),
        }
        if found := self.under_way():
            peer, request_id, call = found[data.draw(st.integers(0, len(found) - 1))]
            acts |= {
                "answers": lambda: self.answers(peer, request_id, call),
                "answers too": lambda: self.answers(peer, request_id, call),
                "asks": lambda: self.asks(peer, request_id, call),
                "asks too": lambda: self.asks(peer, request_id, call),
                "progresses": lambda: self.progresses(peer, request_id, call),
                "logs": lambda: self.logs(peer, request_id, call),
            }
        if peers := self.sharers.peers.open():
            one = peers[data.draw(st.integers(0, len(peers) - 1))]
            acts |= {
                "dies": one.end,
                "asks for roots": lambda: self.asks_roots(one),
                "changes lists": lambda: self.lists_change(one),
                "updates": lambda: self.updates(one),
            }
        if asked := self.open_questions():
            whose, question = asked[data.draw(st.integers(0, len(asked) - 1))]
            acts["responds"] = lambda: self.responds(whose, question)
        return acts[data.draw(st.sampled_from(sorted(acts)))]

    # What always holds.

    @invariant()
    def nothing_crosses(self) -> None:
        for place in (*self.places, *self.ended):
            told = [*place.said[place.seen :], repr(place.sharer.got)]
            place.seen = len(place.said)
            for secret, _ in self.secrets:
                if secret != place.secret:
                    assert not [each for each in told if secret in each]

    @invariant()
    def each_call_ran_once_and_for_its_principal(self) -> None:
        began = Counter(tool for peer in self.sharers.peers.all for tool in peer.began)
        assert set(began.values()) <= {1}
        whose = dict(self.secrets)
        for peer in self.sharers.peers.all:
            principals = {whose[secret] for secret, _ in self.secrets if secret in str(peer.began)}
            assert len(principals) <= 1

    @invariant()
    def each_question_gets_one_answer(self) -> None:
        answers = [said for peer in self.sharers.peers.all for said in peer.answers]
        assert max(Counter(said["id"] for said in answers).values(), default=1) == 1
        for said in answers:
            of = self.asked[said["id"]]
            if of == "roots" and "result" in said:
                # Those of all who were there; nobody's, if they differ.
                secrets = {s for s, _ in self.secrets if s in str(said["result"])}
                assert len(secrets) <= 1
            elif of.startswith("roots of"):
                secrets = {s for s, _ in self.secrets if s in str(said["result"])}
                assert secrets <= {s for s, _ in self.secrets if s in of}
            elif "content" in said.get("result", {}):
                secret = next(s for s, _ in self.secrets if s in of)
                assert said["result"]["content"] == {"name": secret}
            else:
                assert "error" in said or said["result"] == {"action": "cancel"}

    @invariant()
    def what_is_told_to_all_is_told_to_all_once(self) -> None:
        for place in self.places:
            # Also by ourselves, of lists that are others on a new connection.
            told, due, shares = place.lists, place.lists_due, place.lease is not None
            assert told >= 0
            assert told <= due or not shares

    @invariant()
    def connections_are_no_more_than_they_have_to_be(self) -> None:
        sharing = [place.lease for place in self.places]
        hubs = {lease.hub for lease in sharing if lease is not None}
        assert not [hub for hub in hubs if hub.ended.is_set()]
        for principal in ("ada", "bob"):
            assert sum(hub.principal == principal for hub in hubs) <= 1

    @invariant()
    def what_was_noted_is_how_each_stands(self) -> None:
        self.replay.check()
        for place in self.places:
            record = self.records.get(place.sharer.session.id)
            assert record is not None
            check_standing(place.sharer.session, record.timeline)
            newest = repr(record.noted[-50:])
            assert not [s for s, _ in self.secrets if s in newest and s != place.secret]
        sharing = self.sharers.manager.sharing
        assert sharing is not None
        assert self.replay.sharing.keys() == {hub.id for hub in sharing.hubs()}

    @invariant()
    def what_nobody_is_shown_is_of_one_principal(self) -> None:
        for principal in ("ada", "bob"):
            for kept in self.sharers.manager.unshown.of(principal):
                said = repr(kept._logged)
                assert not [s for s, whose in self.secrets if s in said and whose != principal]


class OfProgram(SharedWorld):
    entry = shared(linger_ms=LINGER * 1000)


class OfUrl(SharedWorld):
    entry = at_url(linger_ms=LINGER * 1000)


class OfModern(SharedWorld):
    entry = modern(linger_ms=LINGER * 1000)


TestOfProgram = OfProgram.TestCase
TestOfUrl = OfUrl.TestCase
TestOfModern = OfModern.TestCase
