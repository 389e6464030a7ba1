"""The streams of the MCP endpoint: who applies MCP's rules sees every message once and in order."""

from __future__ import annotations

import itertools
import math
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from types import MappingProxyType

import attrs
import trio
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule

from asgi_client import BATCHING, LATEST, Exchange
from asgi_world import Speaker, World, open_world, texts
from emceepee_trio.config import Config, Limits
from emceepee_trio.config.bounds import HOUR
from emceepee_trio.front.handshake.connection import LAST_ANSWERS
from emceepee_trio.front.handshake.readers import QUICK
from emceepee_trio.front.handshake.stream import Stream
from emceepee_trio.front.handshake.streams import KEPT, WRITER_PATIENCE
from streams_model import Connection, Log, Place
from trio_machine import TrioMachine

KEEP = 5
POSTS = 4
"""Of a session, that the client still knows: few, so that things happen to the same ones."""
PATIENT = Config(limits=attrs.evolve(Limits(), session_idle_ms=24 * HOUR))


class Endpoint(TrioMachine):
    def __init__(self) -> None:
        self.places: list[Place] = []
        self.keys = map(str, itertools.count(1))
        self.order: dict[str, int] = {}
        super().__init__()

    def world(self) -> AbstractAsyncContextManager[object]:
        @asynccontextmanager
        async def opened() -> AsyncGenerator[None]:
            async with open_world(PATIENT, guard=math.inf) as self.mcp:
                yield
                for _, log in self.connected():
                    log.leave()
                self.clock.autojump_threshold = 0  # the end may take its time

        return opened()

    mcp: World

    # -- what can be chosen

    def pick(self, data: st.DataObject, found: list[tuple[Place, Log]]) -> tuple[Place, Log]:
        return found[data.draw(st.integers(0, len(found) - 1))]

    def all(self) -> list[tuple[Place, Log]]:
        return [(place, log) for place in self.places for log in place.logs]

    def connected(self) -> list[tuple[Place, Log]]:
        return [(place, log) for place, log in self.all() if log.connection]

    def speaking(self) -> list[tuple[Place, Log]]:
        """Where something can be said: a POST, or the standalone stream beside one."""
        return [(p, log) for p, log in self.all() if self.voice(p, log)]

    def voice(self, place: Place, log: Log) -> Speaker | None:
        if log is not place.standalone:
            return log.speaker
        return next((post.speaker for post in place.posts if post.speaker), None)

    # -- what happens

    @initialize(version=st.sampled_from([LATEST, BATCHING]))
    def begin(self, version: str) -> None:
        self.join(version)
        self.post(0)

    @precondition(lambda self: len(self.places) < 2)
    @rule(version=st.sampled_from([LATEST, BATCHING]))
    def join(self, version: str) -> None:
        client = self.do(partial(self.mcp.joined, version))
        self.do(client.request("tools/list").complete)  # unused sessions do not live long
        client.own.streams.keep = KEEP
        self.places.append(Place(client, Log(client.own.streams.standalone)))

    @precondition(lambda self: self.places)
    @rule(which=st.integers(0, 1))
    def post(self, which: int) -> None:
        place = self.places[which % len(self.places)]
        self.forget_one(place)
        if len(place.posts) == POSTS:
            return
        key, client = next(self.keys), place.client
        request_id = next(client.ids)

        async def act() -> tuple[Exchange, Speaker, Stream]:
            exchange = client.request("test/speak", request_id, key=key)
            speaker = await self.mcp.speaker(key)
            assert client.own.connection is not None
            stream = client.own.connection._exchanges[request_id].stream
            self.clock.jump(QUICK + 0.001)
            return exchange, speaker, stream

        exchange, speaker, stream = self.do(act)
        log = Log(stream, speaker=speaker, request_id=request_id)
        log.connection = Connection(exchange, 0)
        place.posts.append(log)
        place.receive(log, opened=True)

    def forget_one(self, place: Place) -> None:
        """The client is done with the oldest POST that is over, if it knows as many as it can."""
        done = [log for log in place.posts if log.over_at is not None and not log.connection]
        if len(place.posts) == POSTS and done:
            place.posts.remove(done[0])
            place.forgotten += done[0].last

    @precondition(lambda self: self.places)
    @rule(which=st.integers(0, 1))
    def ask_and_be_answered_at_once(self, which: int) -> None:
        place, key = self.places[which % len(self.places)], next(self.keys)

        async def act() -> Exchange:
            exchange = place.client.request("test/speak", key=key)
            (await self.mcp.speaker(key)).answer(key)
            return await exchange.complete()

        exchange = self.do(act)
        assert not exchange.is_stream
        assert texts(exchange.messages) == [key]
        place.forgotten += 1

    @precondition(lambda self: self.speaking())
    @rule(data=st.data(), count=st.integers(1, KEEP + 2))
    def say(self, data: st.DataObject, count: int) -> None:
        place, log = self.pick(data, self.speaking())
        self.do_sync(partial(self.speak, place, log, count))

    def speak(self, place: Place, log: Log, count: int) -> None:
        """Start to say so much; the writers may have to wait."""
        voice = self.voice(place, log)
        assert voice is not None
        for _ in range(count):
            text = next(self.keys)
            self.order[text] = len(self.order)
            log.say(text)
            standalone = log is place.standalone
            # Their order is that of trio's tasks, unless each has begun before the next.
            say = partial(voice.say, text, standalone=standalone)
            self.mcp.nursery.start_soon(self.in_turn, log, log.last, say)

    async def in_turn(self, log: Log, number: int, say: Callable[[], Awaitable[None]]) -> None:
        for _ in range(100):
            if log.stream.last >= number - 1:
                break
            await trio.lowlevel.checkpoint()
        await say()

    @precondition(lambda self: any(log.speaker for _, log in self.all()))
    @rule(data=st.data(), cancelled=st.booleans())
    def end(self, data: st.DataObject, cancelled: bool) -> None:
        """A request is answered, or its client wants no answer any more."""
        place, log = self.pick(data, [(p, log) for p, log in self.all() if log.speaker])
        assert log.speaker is not None
        if cancelled:
            self.do(place.client.cancel(log.request_id).complete)
            log.speaker, log.over_at = None, self.now()
        else:
            self.answer(log)

    def answer(self, log: Log) -> None:
        assert log.speaker is not None
        text = next(self.keys)
        log.say(text)
        self.do_sync(partial(log.speaker.answer, text))
        log.answer, log.speaker, log.over_at = log.last, None, self.now()

    @precondition(lambda self: self.connected())
    @rule(data=st.data())
    def vanish(self, data: st.DataObject) -> None:
        _, log = self.pick(data, self.connected())
        self.do_sync(log.leave)

    @rule(data=st.data(), abandoned=st.booleans())
    def come_back(self, data: st.DataObject, abandoned: bool) -> None:
        """With any id it has had, or, to the standalone stream, without."""
        place, log = self.pick(data, self.all())
        self.resume(data, place, log, 0, abandoned=abandoned)

    @precondition(lambda self: self.speaking())
    @rule(data=st.data(), count=st.integers(1, KEEP + 2))
    def tumult(self, data: st.DataObject, count: int) -> None:
        """It vanishes, comes back, and much is said, all at once."""
        place, log = self.pick(data, self.speaking())
        self.resume(data, place, log, count, abandoned=data.draw(st.booleans()))

    def resume(
        self, data: st.DataObject, place: Place, log: Log, count: int, *, abandoned: bool
    ) -> None:
        choices: list[str | None] = [*log.ids, *([None] if log is place.standalone else [])]
        if not choices:
            return  # it never learned of an id, so it cannot come back
        last_event_id = data.draw(st.sampled_from(choices))
        steps: dict[str, Callable[[], None]] = {
            "say": partial(self.speak, place, log, count) if count else lambda: None,
            "leave": (lambda: None) if abandoned or log.connection is None else log.leave,
        }
        self.reconnect(
            place, log, last_event_id, steps, data.draw(st.permutations([*steps, "open"]))
        )

    def reconnect(
        self,
        place: Place,
        log: Log,
        last_event_id: str | None,
        steps: Mapping[str, Callable[[], None]] = MappingProxyType({}),
        order: Sequence[str] = ("open",),
    ) -> None:
        """Open a connection, between those steps and without a pause."""
        had = None if last_event_id is None else log.ids[last_event_id]
        old = log.connection

        async def act() -> Exchange:
            for step in order:
                if step == "open":
                    exchange = place.client.get(last_event_id)
                else:
                    steps[step]()
            await exchange.begun()
            return exchange

        exchange = self.do(act)
        if exchange.status == 400:
            place.check_forgotten(log, self.now())
            return
        if old is not None and log.connection is old:
            # Not closed by its client: taken over by the server.
            assert old.exchange.is_complete or not old.is_reading
            log.connection, log.maybe_written = None, log.last
            self.do_sync(old.exchange.drop)
        log.connection = Connection(exchange, log.written if had is None else had)
        place.receive(log, opened=True, lenient=had is None)

    @precondition(lambda self: self.connected())
    @rule(data=st.data(), ghost=st.booleans())
    def stop_reading(self, data: st.DataObject, ghost: bool) -> None:
        _, log = self.pick(data, self.connected())
        assert log.connection is not None
        if log.connection.is_reading and not log.connection.exchange.is_complete:
            self.do_sync(partial(log.connection.exchange.stop_reading, ghost=ghost))
            log.connection.stalled_for = 0.0

    @precondition(lambda self: self.connected())
    @rule(data=st.data())
    def read_on(self, data: st.DataObject) -> None:
        _, log = self.pick(data, self.connected())
        connection = log.connection
        assert connection is not None
        if connection.stalled_for is not None and connection.stalled_for < WRITER_PATIENCE:
            self.do_sync(connection.exchange.read_on)
            connection.stalled_for = None

    @rule(seconds=st.sampled_from([1, 10, 29, 40]))
    def wait(self, seconds: int) -> None:
        self.pass_time(seconds)
        for _, log in self.connected():
            if log.connection and log.connection.stalled_for is not None:
                log.connection.stalled_for += seconds

    @rule()
    def wait_long(self) -> None:
        for _, log in self.connected():
            if log.connection and not log.connection.is_reading:
                self.do_sync(log.leave)
        self.do_sync(partial(self.clock.jump, KEPT + 1))

    @precondition(lambda self: self.places)
    @rule(which=st.integers(0, 1))
    def join_again(self, which: int) -> None:
        place = self.places[which % len(self.places)]
        moving: list[str] = []

        async def act() -> None:
            for log in place.posts:
                taken = log.stream.taken
                assert log.written <= taken <= max(log.written, log.maybe_written)
                kept = {entry.number for entry in log.stream.entries}
                for number in [n for n in log.after(taken) if n != log.answer]:
                    text = log.said.pop(number)
                    if number in kept:
                        moving.append(text)
                    else:
                        place.missed.add(text)
            assert (await place.client.rejoin(place.client.version)).status == 200

        self.do(act)
        place.forgotten += 1  # the answer to that
        for text in sorted(moving, key=self.order.__getitem__):
            place.standalone.say(text)
        for log in place.logs:
            if log.connection is not None:
                assert log.connection.exchange.is_complete or not log.connection.is_reading
                self.do_sync(log.leave)
            if log is not place.standalone and log.over_at is None:
                log.speaker, log.over_at = None, self.now()

    @precondition(lambda self: self.places)
    @rule(which=st.integers(0, 1), rounds=st.integers(1, 2), answered=st.booleans())
    def lose_everything(self, which: int, rounds: int, answered: bool) -> None:
        """Much is said to nobody, then the client joins again and looks for it all."""
        place = self.places[which % len(self.places)]
        for log in place.logs:
            if log.connection is not None:
                self.do_sync(log.leave)
        for log in [log for _ in range(rounds) for log in place.logs]:
            if self.voice(place, log):
                self.do_sync(partial(self.speak, place, log, 1))
        for log in place.posts:
            if log.speaker is not None and answered:
                self.answer(log)
        self.join_again(which)
        self.reconnect(place, place.standalone, None)
        for log in place.posts:
            if log.ids:
                self.reconnect(place, log, next(iter(log.ids)))

    @precondition(lambda self: len(self.places) > 1)
    @rule(which=st.integers(0, 1))
    def delete(self, which: int) -> None:
        place = self.places.pop(which % len(self.places))
        assert self.do(place.client.delete().complete).status == 200
        self.do_sync(partial(self.clock.jump, LAST_ANSWERS))  # whoever speaks hears of no end
        for log in place.logs:
            if log.connection is not None:
                assert log.connection.exchange.is_complete or not log.connection.is_reading
                self.do_sync(log.leave)
        for late in (place.client.get(), place.client.request("ping")):
            assert self.do(late.complete).status == 404

    @rule(data=st.data())
    def use_an_id_of_another(self, data: st.DataObject) -> None:
        ids = [(p, i) for p, log in self.all() for i in log.ids]
        if ids and len(self.places) > 1:
            owner, stolen = ids[data.draw(st.integers(0, len(ids) - 1))]
            thief = next(place for place in self.places if place is not owner)
            exchange = self.do(lambda: thief.client.get(stolen).complete())
            assert exchange.status == 400

    # -- what must hold

    def now(self) -> float:
        return self.clock.current_time()

    @invariant()
    def every_message_is_seen_once_and_in_order_or_counted(self) -> None:
        for place, log in self.connected():
            place.receive(log)
        for place in self.places:
            streams = place.client.own.streams
            assert len(place.missed) <= streams.evicted
            assert not streams.evicted or place.total > KEEP
            entries = [e for s in streams._streams.values() for e in s.entries]
            assert streams._count == len(entries)
            assert streams._bytes == sum(len(entry.data) for entry in entries)
            if all(log.connection is None or log.connection.is_reading for log in place.logs):
                assert len(entries) <= KEEP + 1


TestEndpoint = Endpoint.TestCase
