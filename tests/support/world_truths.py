"""What must be true of the world after every step, and when it ends."""

from __future__ import annotations

from collections import Counter

from hypothesis.stateful import invariant

from emceepee_trio.session.manager import LEAVING
from standing import check_standing
from world_acts import Acts
from world_steps import CALLS, FACTS, IDLE, KEPT, QUESTIONS, TASKS


class Truths(Acts):
    @invariant()
    def every_event_is_told_once_or_waits_to_be(self) -> None:
        for place in self.places:
            told = [fact for fact in place.told.values() if fact is not None]
            assert Counter(told + place.pending()) == place.life.facts()
            notices = [about for kind, about in told if kind == "notification"]
            for number in {notice.split()[-1] for notice in notices}:  # each connection in order
                said, heard = (
                    [notice for notice in all_of if notice.split()[-1] == number]
                    for all_of in (place.life.notices, notices)
                )
                assert heard == said[: len(heard)]
            waits = any(held.what == "await" for held in place.held)
            assert not (waits and place.session.events.has_pending)
            assert all(h.until > self.now for h in place.held if h.what == "await")

    @invariant()
    def what_was_noted_says_how_it_stands(self) -> None:
        replay, sessions = self.replay, self.mcp.manager.sessions()
        replay.check()
        assert replay.sessions == {session.id for session in sessions}
        assert replay.in_flight == {(s.id, call) for s in sessions for call in s.calls.places}
        assert replay.working == {
            (s.id, task.task_id) for s in sessions for task in s.calls.working()
        }
        assert replay.questions.keys() == {
            (s.id, id_) for s in sessions for id_ in s.questions._open
        }
        kept = {(s.id, call.id) for s in sessions for call in s.calls.finished}
        assert {key for key in replay.kept if key[0] in replay.sessions} == kept
        assert sorted(replay.connected()) == sorted(
            (session.id, backend.server.name)
            for session in sessions
            for backend in session.backends.running
            if backend.client is not None
        )

    @invariant()
    def its_facts_replayed_are_how_each_session_stands(self) -> None:
        """What each call waits for, what is asked and of whom, which servers are connected."""
        for session in self.mcp.manager.sessions():
            record = self.records.get(session.id)
            assert record is not None
            assert record.heft <= FACTS
            check_standing(session, record.timeline)

    @invariant()
    def no_fact_says_what_was_said(self) -> None:
        while self.facts_seen < len(self.replay.noted):
            fact = repr(self.replay.noted[self.facts_seen])
            assert not any(life.secret in fact for life in self.lives)
            self.facts_seen += 1

    @invariant()
    def nothing_crosses(self) -> None:
        for host in self.hosts.all:
            heard = [life for life in self.lives if life.secret in host.heard]
            # What sessions share has heard of several, and of one principal.
            assert len({life.principal for life in heard}) <= 1
            assert host.is_shared or len(heard) <= 1
            for place in self.places if not host.is_shared else ():
                assert not (place.has(host) and heard) or heard == [place.life]

    @invariant()
    def everybody_has_their_servers_and_nobody_else(self) -> None:
        for place in self.places:
            names = self.names.of(place.life.principal)
            assert place.session.backends.keys() == names
            standing = Counter(host.server for host in self.hosts_of(place))
            assert standing.keys() <= names
            assert not standing or max(standing.values()) == 1

    @invariant()
    def nobody_waits_for_nothing(self) -> None:
        for place, call in self.calls("in_flight", "working"):
            host = self.host_of(call.key)
            if host is not None:
                assert host.is_open
                assert host.request_of(call.key) is not None
            else:  # it waits for a connection, and there is none to wait for
                assert not self.hosts_of(place, call.server)
        for place, question in self.questions():
            assert not question.is_open or place.asked[question][0].is_open

    @invariant()
    def who_is_gone_has_left_nothing(self) -> None:
        living = {place.session.id for place in self.places}
        manager = self.mcp.manager
        assert {session.id for session in manager.sessions()} == living
        assert self.mcp.endpoint.handshake.clients.keys() == living
        assert len(manager._nursery.child_tasks) == len(living)
        sharing = manager.sharing
        assert sharing is not None
        hubs = {hub.id: hub for hub in sharing.hubs()}
        for host in self.hosts.all:
            assert not host.is_open or host.session in (hubs if host.is_shared else living)
        for hub in hubs.values():
            assert {lease.tenant.id for lease in hub.leases} <= living

    @invariant()
    def what_is_shared_is_one_connection_of_each_principal(self) -> None:
        standing = Counter[str]()
        for host in self.hosts.all:
            if host.is_shared and host.is_open and (having := self.sharing(host)):
                (principal,) = {place.life.principal for place in having}
                standing[principal] += 1
        assert max(standing.values(), default=0) <= 1

    @invariant()
    def bounds_hold(self) -> None:
        for place in self.places:
            calls, session = place.session.calls, place.session
            assert len(calls.working()) == len(place.life.of("working")) <= TASKS
            assert len(place.life.of("in_flight")) <= CALLS
            assert len(session.questions._open) == len(place.life.open_questions()) <= QUESTIONS
            active = [timer for timer in place.life.timers if timer.status == "active"]
            assert len(session.timers.list(include_inactive=False)) == len(active)
            held = [held for held in place.held if held.what in {"await", "fetch"}]
            assert session.presence.waiters == len(held)
            for call in place.life.calls:
                kept = call.task_id is not None and self.now < call.over_at + KEPT
                listed = call.key in {task.args["key"] for task in calls.tasks()}
                assert listed == kept, f"{call.key} is {call.fate} since {call.over_at}"
            assert place.held or place.life.has_work() or self.now < place.life.used_at + 2 * IDLE

    def teardown(self) -> None:
        try:
            if self._send is not None and self._outcome is None:
                self.the_daemon_drains()
        finally:
            super().teardown()

    def the_daemon_drains(self) -> None:
        """Whoever only waits is let go at once; then everything ends, and nothing is left."""
        self.do_sync(self.mcp.endpoint.drain)
        for place in self.places:
            assert all(
                held.what in {"call", "reply", "look"} for held in place.held if held.is_open
            )
        refused = self.do(lambda: self.mcp.client().initialize())
        assert refused.status == 503
        self.do(self.mcp.manager.close)
        self.pass_time(round(LEAVING) + 1)
        assert not any(host.is_open for host in self.hosts.all)
        self.replay.check()
        assert self.replay.is_empty
        assert self.count_tasks() == self.tasks
