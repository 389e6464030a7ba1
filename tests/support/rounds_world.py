"""A machine's world of modern clients that are asked in rounds, through all of the daemon."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import attrs
from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from asgi_world import open_world
from connected import server
from emceepee_trio.config import Config, Limits, Server
from emceepee_trio.front.asking.puts import TOGETHER
from memory_peers import Peer, Peers
from parts import hop
from rounds import Wanted
from trio_machine import TrioMachine

ANSWER_WITHIN = 15
"""Seconds for a question, and for a request that is sent again."""
REISSUE = 30


@attrs.define(eq=False)
class Asked:
    """A question, as its server has it."""

    number: int
    of: Wanted
    peer: Peer

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(f"<{self.message}>")

    @property
    def message(self) -> str:
        return f"question {self.number} of {self.of.key}"

    @property
    def got(self) -> list[Any]:
        return [each for each in self.peer.answers if each["id"] == self.number]


class RoundsWorld(TrioMachine):
    """Two principals, and one server in memory; what happens in it is of who derives from it."""

    entry: Server = server()

    def __init__(self) -> None:
        self.wanted: list[Wanted] = []
        self.answered: set[str] = set()
        """Keys of calls that their server was done with."""
        super().__init__()

    @asynccontextmanager
    async def world(self) -> AsyncGenerator[None]:
        self.peers = Peers()
        limits = attrs.evolve(
            Limits(), question_timeout_ms=ANSWER_WITHIN * 1000, reissue_ms=REISSUE * 1000
        )
        with self.peers.in_place():
            async with open_world(Config(servers=(self.entry,), limits=limits)) as self.mcp:
                yield

    @initialize()
    def begin(self) -> None:
        self.clients = {name: self.mcp.client(name) for name in ("ada", "bob")}

    @property
    def now(self) -> float:
        return self.clock.current_time()

    def step(self, *acts: Callable[[], object]) -> None:
        """All of them in one tick, in any order; then everybody reads what has come."""

        async def run() -> None:
            for act in acts:
                self.mcp.nursery.start_soon(self._do, act)

        self.do(run)
        self.read()

    async def _do(self, act: Callable[[], object]) -> None:
        act()

    def read(self) -> None:
        for wanted in self.wanted:
            wanted.read()

    def under_way(self) -> dict[str, tuple[Peer, int, Wanted]]:
        """Calls that the server has not answered."""
        keys = {wanted.key: wanted for wanted in self.wanted}
        calls = [(p, i, keys[key]) for p in self.peers.open() for i, key in p.calls.items()]
        return {wanted.key: (peer, id_, wanted) for peer, id_, wanted in calls}

    def may_hold(self, asked: Asked) -> list[Wanted]:
        """Whose client may have been asked, by which request: on a pipe nobody says whose it is."""
        if self.entry.transport != "stdio":
            return [asked.of]
        return [wanted for wanted in self.wanted if wanted.client is asked.of.client]

    @property
    def began(self) -> Counter[str]:
        """How often which call reached the server."""
        return Counter(key for peer in self.peers.all for key in peer.began)

    # What can happen to any of them.

    def sends_again(self, wanted: Wanted) -> None:
        if wanted.lost_at is not None and self.now < wanted.lost_at + REISSUE - 1:
            wanted.again()

    @precondition(lambda self: any(wanted.exchanges for wanted in self.wanted))
    @rule(data=st.data(), ticks=st.integers(0, 8), late=st.sampled_from([0, TOGETHER]))
    def a_stream_is_cut(self, data: st.DataObject, ticks: int, late: float) -> None:
        """Perhaps in one of the ticks in which its client is asked."""
        wanted = data.draw(st.sampled_from([w for w in self.wanted if w.exchanges]))

        async def cut() -> None:
            self.clock.jump(late)
            await hop(ticks)
            wanted.drop()

        self.do(cut)
        self.read()

    @precondition(lambda self: any(w.lost_at is not None for w in self.wanted))
    @rule(data=st.data())
    def what_was_lost_is_sent_again(self, data: st.DataObject) -> None:
        wanted = data.draw(st.sampled_from([w for w in self.wanted if w.lost_at is not None]))
        self.step(lambda: self.sends_again(wanted))
