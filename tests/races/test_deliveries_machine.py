"""Events over HTTP in the handshake era: whatever connections do, each is told exactly once.

And a call is never lost: its answer is read, or it is found as a task.
"""

from __future__ import annotations

import json
import math
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import Any, cast

import attrs
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule
from trio.testing import wait_all_tasks_blocked

from asgi_client import LATEST, Client
from asgi_world import World, open_world
from deliveries_model import LIFE, Asked, Call, Memory, happen, live
from emceepee_trio.backend.backend import Backend
from emceepee_trio.config import Config, Limits
from emceepee_trio.config.bounds import DAY, HOUR
from emceepee_trio.front.handshake.readers import QUICK
from emceepee_trio.front.handshake.streams import KEPT
from parts import hop
from trio_machine import TrioMachine

UNPRIMED = "2025-06-18"
LONG = 900_000
"""Milliseconds."""
MOST = 6
"""Requests that the client knows of: few, so that things happen to the same ones."""
ROUNDS = 20
"""Of five minutes: a wait that nobody reads takes what the one before it gave back."""
PATIENT = Config(
    limits=attrs.evolve(Limits(), session_idle_ms=24 * HOUR, events_ms=DAY, answer_ms=HOUR)
)


class Deliveries(TrioMachine):
    def __init__(self) -> None:
        self.published = 0
        self.asked: list[Asked] = []
        self.told: list[int] = []
        """By answers that are of no interest any more."""
        self.lived = self.lived_told = 0
        """Events of the life of a server: published, and told as above."""
        self.keys = 0
        super().__init__()

    def world(self) -> AbstractAsyncContextManager[object]:
        @asynccontextmanager
        async def opened() -> AsyncGenerator[None]:
            async with open_world(PATIENT, guard=math.inf) as self.mcp:
                yield
                for asked in self.asked:
                    asked.exchange.drop()
                self.clock.autojump_threshold = 0  # the end may take its time

        return opened()

    mcp: World
    client: Client
    memory: Memory

    @initialize(version=st.sampled_from([UNPRIMED, LATEST]))
    def join(self, version: str) -> None:
        self.client = self.do(partial(self.mcp.joined, version))
        self.memory = Memory()
        session = self.client.own.session
        session.presence.used = True
        session.backends._named["memory"] = cast(Backend, self.memory)

    # -- what can be chosen

    def open(self) -> list[Asked]:
        return [asked for asked in self.asked if asked.is_open]

    def known(self) -> list[Asked]:
        return [asked for asked in self.asked if asked.ids]

    def pick(self, data: st.DataObject, found: list[Asked]) -> Asked:
        return found[data.draw(st.integers(0, len(found) - 1))]

    # -- single steps, without a checkpoint

    def happens(self, count: int) -> None:
        first, self.published = self.published + 1, self.published + count
        happen(self.client, *range(first, self.published + 1))

    def ask(self, name: str, /, progress: bool = False, **arguments: Any) -> Asked:
        request_id = next(self.client.ids)
        params: dict[str, Any] = {"name": name, "arguments": arguments}
        if progress:  # an id comes with it, also to those who are not primed
            params["_meta"] = {"progressToken": request_id}
        exchange = self.client.request("tools/call", request_id, **params)
        asked = Asked(request_id, exchange, self.clock.current_time())
        self.asked.append(asked)
        return asked

    def call(self) -> Asked:
        self.keys += 1
        key = f"key {self.keys}"
        asked = self.ask("execute_tool", server="memory", tool="t", args={"key": key})
        asked.call = self.memory.calls[key] = Call()
        return asked

    def come_back(self, asked: Asked, last_event_id: str) -> None:
        asked.earlier.append(asked.exchange)
        asked.exchange = self.client.get(last_event_id)

    # -- what happens

    @rule(count=st.integers(1, 3))
    def event(self, count: int) -> None:
        self.do_sync(partial(self.happens, count))

    @rule(steps=st.lists(st.integers(0, len(LIFE) - 1), min_size=1, max_size=8))
    def a_server_lives(self, steps: list[int]) -> None:
        self.lived += len(steps)
        self.do_sync(partial(live, self.client, *steps))

    @rule()
    def a_server_crashes_and_is_back(self) -> None:
        self.a_server_lives(list(range(len(LIFE))))

    @rule(progress=st.booleans())
    def wait_for_activity(self, progress: bool) -> None:
        self.do_sync(partial(self.ask, "await_activity", progress, timeout_ms=LONG))

    @rule()
    def begin_a_call(self) -> None:
        self.do_sync(self.call)

    @rule()
    def poll(self) -> None:
        self.do_sync(partial(self.ask, "list_timers"))

    @rule(ticks=st.integers(0, 30))
    def poll_and_vanish(self, ticks: int) -> None:
        async def act() -> None:
            asked = self.ask("list_timers")
            await hop(ticks)
            asked.exchange.drop()

        self.do(act)

    @rule()
    def is_no_quick_answer(self) -> None:
        self.do_sync(partial(self.clock.jump, QUICK + 0.001))

    @precondition(lambda self: any(asked.call for asked in self.asked))
    @rule(data=st.data())
    def end_a_call(self, data: st.DataObject) -> None:
        asked = self.pick(data, [asked for asked in self.asked if asked.call])
        assert asked.call is not None
        self.do_sync(partial(asked.call.end, "done"))

    @precondition(lambda self: self.open())
    @rule(data=st.data())
    def vanish(self, data: st.DataObject) -> None:
        self.do_sync(self.pick(data, self.open()).exchange.drop)

    @precondition(lambda self: self.known())
    @rule(data=st.data())
    def resume(self, data: st.DataObject) -> None:
        asked = self.pick(data, self.known())
        self.do_sync(partial(self.come_back, asked, data.draw(st.sampled_from(asked.ids))))

    @precondition(lambda self: self.open())
    @rule(data=st.data(), ghost=st.booleans())
    def stop_reading(self, data: st.DataObject, ghost: bool) -> None:
        asked = self.pick(data, self.open())
        if asked.exchange.stalled is None:
            self.do_sync(partial(asked.exchange.stop_reading, ghost=ghost))

    @precondition(lambda self: self.open())
    @rule(data=st.data())
    def read_on(self, data: st.DataObject) -> None:
        self.do_sync(self.pick(data, self.open()).exchange.read_on)

    @precondition(lambda self: self.open())
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        asked = self.pick(data, self.open())
        asked.is_cancelled = True
        self.do(lambda: self.client.cancel(asked.id).complete())

    @precondition(lambda self: self.open())
    @rule(data=st.data(), pauses=st.lists(st.integers(0, 4), min_size=4, max_size=4))
    def tumult(self, data: st.DataObject, pauses: list[int]) -> None:
        """Everything at once, or a few ticks apart."""
        asked = self.pick(data, self.open())
        steps: list[Callable[[], object]] = [
            partial(self.happens, 1),
            asked.exchange.drop,
            partial(self.ask, "list_timers"),
        ]
        if asked.ids:
            last_event_id = data.draw(st.sampled_from(asked.ids))
            steps.append(partial(self.come_back, asked, last_event_id))
        order = data.draw(st.permutations(steps))

        async def act() -> None:
            for step, ticks in zip(order, pauses, strict=False):
                step()
                await hop(ticks)

        self.do(act)

    @rule(seconds=st.sampled_from([1, 30, KEPT + 1]))
    def pass_by(self, seconds: float) -> None:
        self.do_sync(partial(self.clock.jump, seconds))

    @rule(pauses=st.integers(0, 5))
    def join_again(self, pauses: int) -> None:
        """Perhaps while a call has just begun, or is about to."""

        async def act() -> None:
            calling = [asked for asked in self.asked if self.is_under_way(asked)]
            fresh = self.call()
            await hop(pauses)
            assert (await self.client.rejoin(self.client.version)).status == 200
            await wait_all_tasks_blocked()
            tasks = {str(t.args["key"]): t for t in self.client.own.session.calls.tasks()}
            if fresh.is_open:  # it came to the new connection
                assert self.key(fresh) not in tasks
            else:
                calling.append(fresh)
            for asked in calling:
                assert asked.call is not None
                asked.call.end("found")
                task_id = tasks[self.key(asked)].task_id
                found = self.ask("get_task_result", task_id=task_id)
                await found.exchange.complete()
                assert "found" in json.dumps(found.exchange.messages)

        self.do(act)

    def key(self, asked: Asked) -> str:
        return next(key for key, call in self.memory.calls.items() if call is asked.call)

    def is_under_way(self, asked: Asked) -> bool:
        """A call that has no fate yet, and is none of an earlier time that has become a task."""
        if asked.call is None or asked.call.done.is_settled or asked.is_cancelled:
            return False
        return self.clock.current_time() - asked.begun < PATIENT.limits.execute_timeout_ms / 1000

    def forget(self) -> None:
        """The client is done with what has been answered, or is gone and written to no more."""
        for asked in list(self.asked):
            if all(exchange.is_served for exchange in [*asked.earlier, asked.exchange]):
                self.asked.remove(asked)
                self.told += asked.numbers or ()
                self.lived_told += asked.lived

    def teardown(self) -> None:
        try:
            if self._send is not None and self._outcome is None:
                self.all_is_told_in_the_end()
        finally:
            super().teardown()

    def all_is_told_in_the_end(self) -> None:
        """Nobody comes back for what was under way, so it comes with other answers."""
        for asked in self.asked:
            for exchange in [*asked.earlier, asked.exchange]:
                self.do_sync(exchange.drop)
        for _ in range(ROUNDS):
            self.no_event_is_told_twice()
            if (len(self.all_told()), self.life_told()) == (self.published, self.lived):
                break
            self.do_sync(partial(self.clock.jump, KEPT + 1))
            self.do_sync(partial(self.ask, "list_timers"))
        assert sorted(self.all_told()) == list(range(1, self.published + 1))
        assert self.life_told() == self.lived

    def life_told(self) -> int:
        return self.lived_told + sum(asked.lived for asked in self.asked)

    def all_told(self) -> list[int]:
        return self.told + [n for asked in self.asked for n in asked.numbers or ()]

    # -- what must hold

    @invariant()
    def no_event_is_told_twice(self) -> None:
        for asked in self.asked:
            asked.look()
        if len(self.asked) > MOST:
            self.forget()
        assert len(set(self.all_told())) == len(self.all_told())
        assert self.life_told() <= self.lived

    @invariant()
    def nobody_waits_while_there_is_something_to_tell(self) -> None:
        session = self.client.own.session
        assert not (session.events.has_pending and session.presence.waiters)


TestDeliveries = Deliveries.TestCase
