"""One backend over a scripted transport: it follows its table, and everybody is told one truth."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import Any, ClassVar

import attrs
import trio
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule
from mcp import MCPError

from emceepee_trio.backend.connections.client import CHECK, Client
from emceepee_trio.backend.connections.health import AGAIN
from emceepee_trio.backend.connections.witness import NotRun
from emceepee_trio.backend.private import Private
from emceepee_trio.backend.shared import Shared
from emceepee_trio.config import Config, Reconnect, Retry, Server
from emceepee_trio.errors import ToolError
from emceepee_trio.model.states import BackendState
from recording import Recorder
from replay import Replay
from scripted_peer import Mood, Openings, Peer
from trio_machine import TrioMachine

INTERVAL, DELAY, TRIES = 120, 4, 3
WAITING = {BackendState.RECONNECTING, BackendState.ERROR}
CONNECTED = {BackendState.CONNECTED, BackendState.DEGRADED}


@attrs.define(eq=False)
class Caller:
    key: str
    scope: trio.CancelScope = attrs.field(factory=trio.CancelScope)
    fate: str | None = None
    got: Any = None

    def settle(self, fate: str, got: Any = None) -> None:
        assert self.fate is None
        self.fate, self.got = fate, got

    async def run(self, backend: Private) -> None:
        async def exchange(client: Client) -> dict[str, Any]:
            return await client.request("tools/call", {"name": self.key})

        with self.scope:
            try:
                self.settle("answered", await backend.ask(exchange))
            except NotRun as error:  # twice
                self.settle("unsent", error)
            except MCPError as error:
                self.settle("refused", error)
            except ToolError as error:
                self.settle("unsent", error)
        if self.scope.cancelled_caught:
            self.settle("cancelled")

    async def reconnect(self, backend: Private) -> None:
        with self.scope:
            try:
                await backend.reconnect()
                self.settle("answered")
            except ToolError as error:
                self.settle("unsent", error)
        if self.scope.cancelled_caught:
            self.settle("cancelled")


@attrs.define(eq=False)
class Peers(Openings[Peer]):
    is_well: bool = True

    def new(
        self, server: Server, session: str, number: int, *, greets: bool
    ) -> Callable[..., Peer]:
        return partial(Peer, is_well=self.is_well, greets=greets)


class Supervision(TrioMachine):
    how: ClassVar[Mapping[str, Any]]

    def __init__(self) -> None:
        self.peers = Peers()
        self.callers: list[Caller] = []
        self.runs: list[str] = []
        """Keys of calls, as often as they were answered or refused by a peer that ran them."""
        self.host = Recorder()
        self.replay = Replay()
        self.backend: Private | None = None
        self.is_leaving = False
        super().__init__()

    def world(self) -> AbstractAsyncContextManager[object]:
        @asynccontextmanager
        async def opened() -> AsyncGenerator[None]:
            with self.peers.in_place():
                async with trio.open_nursery() as self.nursery:
                    yield
                    if self.backend is not None and not self.backend.ended.is_set():
                        self.backend.leave("over", 0)
                        self.clock.autojump_threshold = 0
                        await self.backend.ended.wait()
                    self.nursery.cancel_scope.cancel("over")

        return opened()

    @initialize(once=st.booleans(), again=st.sampled_from([1, 1, 1, 0]))
    def begin(self, once: bool, again: int) -> None:
        how = self.how
        server = Server(
            "it",
            era="handshake",
            restart=Retry(bool(again), base_delay_ms=DELAY * 1000, max_attempts=TRIES, jitter=0),
            reconnect=Reconnect(bool(again), base_delay_ms=DELAY * 1000, jitter=0),
            **how,
        )
        shared = Shared()
        self.replay.reads(shared.journal)
        self.backend = Private(
            server, self.host, Config(), shared, "s", time.time, restricted=False, once=once
        )
        self.backend.preferences.subscriptions.add("x://y")
        self.do_sync(partial(self.nursery.start_soon, self.backend.run))

    # -- what happens ------------------------------------------------------------------------

    @property
    def it(self) -> Private:
        assert self.backend is not None
        return self.backend

    def open_peers(self, fits: Callable[[Peer], object] = lambda _: True) -> list[Peer]:
        return [peer for peer in self.peers.all if peer.is_open and fits(peer)]

    def greeting(self) -> list[Peer]:
        return self.open_peers(
            lambda p: any(r["method"] == "initialize" for r in p.requests.values())
        )

    @rule(mood=st.sampled_from(["waits", "fails", "hangs"]))
    def what_opening_does(self, mood: Mood) -> None:
        self.peers.mood = mood

    @precondition(lambda self: self.greeting())
    @rule(data=st.data(), kindly=st.sampled_from([True, True, True, False]))
    def a_server_greets(self, data: st.DataObject, kindly: bool) -> None:
        peer = data.draw(st.sampled_from(self.greeting()))
        self.do_sync(partial(peer.greet, kindly=kindly))

    @precondition(lambda self: self.open_peers())
    @rule(data=st.data())
    def a_server_dies(self, data: st.DataObject) -> None:
        peer = data.draw(st.sampled_from(self.open_peers()))
        sent = {*peer.calls.values()}
        self.do_sync(peer.end)
        for caller in self.callers:  # at once, not at a timeout
            assert caller.key not in sent or caller.fate is not None

    @precondition(lambda self: self.open_peers(lambda p: p.http and p.greeted))
    @rule(data=st.data())
    def a_server_forgets_us(self, data: st.DataObject) -> None:
        peer = data.draw(st.sampled_from(self.open_peers(lambda p: p.http and p.greeted)))
        sent = {*peer.calls.values()}
        self.do(peer.forget)
        for caller in self.callers:
            if caller.key in sent:  # made again, or not at all
                assert caller.fate in {None, "unsent", "cancelled"}

    @precondition(lambda self: self.open_peers(lambda p: p.calls))
    @rule(data=st.data(), kindly=st.booleans())
    def a_server_answers(self, data: st.DataObject, kindly: bool) -> None:
        peer = data.draw(st.sampled_from(self.open_peers(lambda p: p.calls)))
        request_id, key = data.draw(st.sampled_from([*peer.calls.items()]))
        self.runs.append(key)
        (caller,) = (c for c in self.callers if c.key == key)
        before = caller.fate
        if kindly:
            self.do_sync(partial(peer.answer, request_id, {"key": key}))
        else:
            self.do_sync(partial(peer.refuse, request_id))
        if before is None:
            assert caller.fate == ("answered" if kindly else "refused")

    @precondition(lambda self: self.open_peers())
    @rule(data=st.data(), is_well=st.booleans())
    def a_server_falls_silent_or_speaks(self, data: st.DataObject, is_well: bool) -> None:
        data.draw(st.sampled_from(self.open_peers())).is_well = is_well
        self.peers.is_well = is_well

    @precondition(lambda self: self.open_peers(lambda p: p.greeted))
    @rule(checks=st.integers(1, 3), speaks=st.booleans())
    def a_server_is_silent_for_long(self, checks: int, speaks: bool) -> None:
        (peer,) = self.open_peers(lambda p: p.greeted)
        peer.is_well = False
        self.pass_time(int(INTERVAL * 1.1) + 1 + checks * int(CHECK + AGAIN) + 1)
        if self.it.client is not None and peer.is_open:
            assert self.it.state is BackendState.DEGRADED
            peer.is_well = speaks
            self.pass_time(2 * int(CHECK + AGAIN))
            assert not peer.is_open or speaks == (self.it.health.failures == 0)
        else:
            assert peer.http is not None  # a program is not given up

    @precondition(lambda self: self.greeting() and not self.is_leaving)
    @rule(data=st.data(), really=st.sampled_from([False, False, False, True]))
    def it_is_removed_in_the_tick_of_a_failure(self, data: st.DataObject, really: bool) -> None:
        peer = data.draw(st.sampled_from(self.greeting()))
        if really:
            self.remove(peer.end)

    @rule()
    def somebody_calls(self) -> None:
        caller = Caller(f"call-{len(self.callers)}")
        self.callers.append(caller)
        tries = len(self.peers.all)
        was, mood = self.it.state, self.peers.mood
        self.do_sync(partial(self.nursery.start_soon, caller.run, self.it))
        if was in WAITING and not self.is_leaving:
            # Nobody waits for the time of a try: it is made now.
            made = len(self.peers.all) > tries
            assert made or caller.fate == "unsent" or mood == "hangs"

    @rule()
    def somebody_reconnects(self) -> None:
        caller = Caller(f"reconnect-{len(self.callers)}")
        self.callers.append(caller)
        self.do_sync(partial(self.nursery.start_soon, caller.reconnect, self.it))

    @precondition(lambda self: any(c.fate is None for c in self.callers))
    @rule(data=st.data())
    def somebody_gives_up(self, data: st.DataObject) -> None:
        caller = data.draw(st.sampled_from([c for c in self.callers if c.fate is None]))
        self.do_sync(caller.scope.cancel)
        assert caller.fate == "cancelled"

    @rule(seconds=st.sampled_from([1, DELAY, CHECK, AGAIN + CHECK, INTERVAL * 1.1 + 1]))
    def time_passes(self, seconds: float) -> None:
        self.pass_time(int(seconds) + 1)

    @precondition(lambda self: not self.is_leaving)
    @rule(really=st.sampled_from([*[False] * 9, True]))
    def it_is_removed(self, really: bool) -> None:
        if really:  # seldom: nothing happens after that
            self.remove(lambda: None)

    def remove(self, first: Callable[[], None]) -> None:
        async def act() -> None:
            first()
            for _ in range(len(self.callers) % 7):
                await trio.lowlevel.checkpoint()
            self.it.leave("removed", 0)

        self.is_leaving = True
        self.do(act)
        self.pass_time(1)
        assert self.it.ended.is_set()
        assert not self.open_peers()
        assert all(caller.fate is not None for caller in self.callers)

    # -- what always holds -------------------------------------------------------------------

    @invariant()
    def one_connection_is_the_current_one(self) -> None:
        if self.backend is None:
            return
        it = self.backend
        assert (it.client is not None) == (it.state in CONNECTED)
        current = self.open_peers(lambda p: p.greeted)
        assert len(current) == (it.client is not None), current
        # Beside it, at most a try to replace it.
        assert len(self.open_peers()) <= 2
        if it.state is BackendState.DEGRADED:
            assert it.health.failures
        assert (it.next_try is not None) == (it.state is BackendState.RECONNECTING)

    @invariant()
    def what_was_noted_says_the_same(self) -> None:
        self.replay.check()
        if self.backend is not None:
            assert len(self.replay.up) == (self.backend.client is not None)
            assert bool(self.replay.unwell) == (self.backend.state is BackendState.DEGRADED)
            tries = [peer for peer in self.open_peers() if not peer.greeted]
            assert len(self.replay.trying) >= len(tries)

    @invariant()
    def a_call_runs_once_at_most(self) -> None:
        assert len(self.runs) == len({*self.runs})
        for caller in self.callers:
            if caller.fate == "answered" and caller.got is not None:
                assert caller.got == {"key": caller.key}
            if caller.fate == "unsent":
                assert caller.key not in self.runs

    @invariant()
    def nobody_waits_for_nothing(self) -> None:
        if self.backend is None or all(c.fate is not None for c in self.callers):
            return
        in_flight = {key for peer in self.open_peers() for key in peer.calls.values()}
        for caller in self.callers:
            if caller.fate is None and caller.key not in in_flight:
                # It waits for a try that is under way.
                assert (
                    self.backend.state is BackendState.CONNECTING
                    or self.backend.supervisor.life.beside
                )

    @invariant()
    def what_is_told_fits_together(self) -> None:
        if self.backend is not None:
            check_story(iter(self.host.story), is_connected=self.backend.client is not None)


def check_story(story: Iterator[str], *, is_connected: bool) -> None:
    connected = degraded = has_been = restarting = False
    running = 0
    for told in story:
        match told:
            case "server_connected" | "server_reconnected":
                assert not connected
                assert has_been == (told == "server_reconnected")
                connected = has_been = True
            case "server_disconnected":
                assert connected
                connected = degraded = False
            case "server_health_degraded":
                assert connected
                assert not degraded
                degraded = True
            case "server_health_restored":
                assert degraded
                degraded = False
            case "process_started":
                running += 1
                assert running == 1
            case "process_crashed" | "process_stopped":
                running -= 1
                assert running == 0
            case "restarting" | "server_reconnecting":
                assert not connected
                assert not running
                restarting = True
            case "restarted":
                assert restarting
                assert running
                restarting = False
            case "restart_failed":
                assert not connected
                restarting = False
            case _:
                raise AssertionError(told)
    # A return is told of once it is known what it was; a loss at once.
    assert is_connected or not connected


class Programs(Supervision):
    how: ClassVar = {"command": "x"}


class Urls(Supervision):
    how: ClassVar = {"url": "http://localhost/"}


TestPrograms = Programs.TestCase
TestUrls = Urls.TestCase
