"""The streams of the MCP endpoint: who applies MCP's rules sees every message once and in order."""

from __future__ import annotations

import itertools
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial

import attrs
import trio
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule

from asgi_client import BATCHING, LATEST, Client, Exchange
from asgi_world import Speaker, World, open_world, texts
from emceepee_trio.config import Config, Limits
from emceepee_trio.config.bounds import HOUR
from emceepee_trio.front.http import QUICK
from emceepee_trio.front.streams import KEPT, WRITER_PATIENCE, Stream
from trio_machine import TrioMachine

KEEP = 8
PATIENT = Config(limits=attrs.evolve(Limits(), session_idle_ms=24 * HOUR))


@attrs.define(eq=False)
class Connection:
    """What the client reads now. Nobody reads those that were given up."""

    exchange: Exchange
    start: int
    """Expected is what comes after that number."""
    stalled_for: float | None = None

    @property
    def is_reading(self) -> bool:
        return self.stalled_for is None


@attrs.define(eq=False)
class Log:
    """One stream, as its client understands it."""

    stream: Stream
    """The server's; looked at only for what the client cannot know."""
    said: dict[int, str] = attrs.field(factory=dict)
    last: int = 0
    ids: dict[str, int] = attrs.field(factory=dict)
    """Event ids that the client has received, and what it had by then."""
    connection: Connection | None = None
    written: int = 0
    maybe_written: int = 0
    """More than that, if a connection broke while something was on its way."""
    speaker: Speaker | None = None
    request_id: int | None = None
    answer: int | None = None
    over_at: float | None = None

    def say(self, text: str) -> None:
        self.last += 1
        self.said[self.last] = text

    def after(self, number: int) -> list[int]:
        return [n for n in self.said if n > number]

    def number(self, text: str) -> int:
        return next(n for n, said in self.said.items() if said == text)


@attrs.define(eq=False)
class Place:
    """One session."""

    client: Client
    standalone: Log
    posts: list[Log] = attrs.field(factory=list)
    missed: int = 0
    """Messages that were evicted before the client got them."""

    @property
    def logs(self) -> list[Log]:
        return [self.standalone, *self.posts]


class Endpoint(TrioMachine):
    def __init__(self) -> None:
        self.places: list[Place] = []
        self.keys = map(str, itertools.count(1))
        self.order: dict[str, int] = {}
        super().__init__()

    def world(self) -> AbstractAsyncContextManager[object]:
        @asynccontextmanager
        async def opened() -> AsyncGenerator[None]:
            async with open_world(PATIENT) as self.mcp:
                yield
                for _, log in self.connected():
                    self.leave(log)
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

    @precondition(lambda self: len(self.places) < 3)
    @rule(version=st.sampled_from([LATEST, BATCHING]))
    def join(self, version: str) -> None:
        client = self.do(partial(self.mcp.joined, version))
        self.do(client.request("tools/list").complete)  # unused sessions do not live long
        client.own.streams.keep = KEEP
        self.places.append(Place(client, Log(client.own.streams.standalone)))

    @precondition(lambda self: self.places)
    @rule(which=st.integers(0, 2))
    def post(self, which: int) -> None:
        place = self.places[which % len(self.places)]
        key, client = next(self.keys), place.client
        request_id = next(client.ids)

        async def act() -> tuple[Exchange, Speaker, Stream]:
            exchange = client.request("test/speak", request_id, key=key)
            speaker = await self.mcp.speaker(key)
            assert client.own.incarnation is not None
            exchanges = client.own.incarnation._exchanges.values()
            stream = next(e.stream for e in exchanges if e.client_id == request_id)
            self.clock.jump(QUICK + 0.001)
            return exchange, speaker, stream

        exchange, speaker, stream = self.do(act)
        log = Log(stream, speaker=speaker, request_id=request_id)
        log.connection = Connection(exchange, 0)
        place.posts.append(log)
        self.receive(place, log, opened=True)

    @precondition(lambda self: self.places)
    @rule(which=st.integers(0, 2))
    def ask_and_be_answered_at_once(self, which: int) -> None:
        client, key = self.places[which % len(self.places)].client, next(self.keys)

        async def act() -> Exchange:
            exchange = client.request("test/speak", key=key)
            (await self.mcp.speaker(key)).answer(key)
            return await exchange.complete()

        exchange = self.do(act)
        assert not exchange.is_stream
        assert texts(exchange.messages) == [key]

    @precondition(lambda self: self.speaking())
    @rule(data=st.data(), count=st.integers(1, 4))
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
        while log.stream.last < number - 1:  # noqa: ASYNC110 - no event says so
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
        else:
            text = next(self.keys)
            log.say(text)
            log.answer = log.last
            self.do_sync(partial(log.speaker.answer, text))
        log.speaker, log.over_at = None, self.now()

    @precondition(lambda self: self.connected())
    @rule(data=st.data())
    def vanish(self, data: st.DataObject) -> None:
        _, log = self.pick(data, self.connected())
        self.do_sync(partial(self.leave, log))

    def leave(self, log: Log) -> None:
        """Drop the connection; what was on its way is lost, and the server may not know."""
        assert log.connection is not None
        log.connection.exchange.drop()
        log.connection, log.maybe_written = None, log.last

    @rule(data=st.data(), abandoned=st.booleans())
    def come_back(self, data: st.DataObject, abandoned: bool) -> None:
        """With any id it has had, or, to the standalone stream, without."""
        place, log = self.pick(data, self.all())
        self.resume(data, place, log, 0, abandoned=abandoned)

    @precondition(lambda self: self.speaking())
    @rule(data=st.data(), count=st.integers(1, 4))
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
        had = None if last_event_id is None else log.ids[last_event_id]
        old = log.connection
        steps = data.draw(st.permutations(["leave", "say", "open"]))

        async def act() -> Exchange:
            for step in steps:
                if step == "leave" and log.connection and not abandoned:
                    self.leave(log)
                elif step == "say" and count:
                    self.speak(place, log, count)
                elif step == "open":
                    exchange = place.client.get(last_event_id)
            await exchange.begun()
            return exchange

        exchange = self.do(act)
        if exchange.status == 400:
            self.check_forgotten(place, log)
            return
        if old is not None and log.connection is old:
            # Not closed by its client: taken over by the server.
            assert old.exchange.is_complete or not old.is_reading
            log.connection, log.maybe_written = None, log.last
            self.do_sync(old.exchange.drop)
        log.connection = Connection(exchange, log.written if had is None else had)
        self.receive(place, log, opened=True, lenient=had is None)

    def check_forgotten(self, place: Place, log: Log) -> None:
        assert log.over_at is not None
        assert (
            self.now() - log.over_at >= KEPT
            or place.client.own.streams.evicted
            or self.total(place) > KEEP
            or not log.said
        )

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
                self.do_sync(partial(self.leave, log))
        self.do_sync(partial(self.clock.jump, KEPT + 1))

    @precondition(lambda self: self.places)
    @rule(which=st.integers(0, 2))
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
                        place.missed += 1
            assert (await place.client.rejoin(place.client.version)).status == 200

        self.do(act)
        for text in sorted(moving, key=self.order.__getitem__):
            place.standalone.say(text)
        for log in place.logs:
            if log.connection is not None:
                assert log.connection.exchange.is_complete or not log.connection.is_reading
                self.do_sync(partial(self.leave, log))
            if log is not place.standalone and log.over_at is None:
                log.speaker, log.over_at = None, self.now()

    @precondition(lambda self: len(self.places) > 1)
    @rule(which=st.integers(0, 2))
    def delete(self, which: int) -> None:
        place = self.places.pop(which % len(self.places))
        assert self.do(place.client.delete().complete).status == 200
        for log in place.logs:
            if log.connection is not None:
                assert log.connection.exchange.is_complete or not log.connection.is_reading
                self.do_sync(partial(self.leave, log))
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

    def total(self, place: Place) -> int:
        return sum(log.last for log in place.logs)

    def receive(
        self, place: Place, log: Log, *, opened: bool = False, lenient: bool = False
    ) -> None:
        """The client looks at what its connection has brought."""
        connection = log.connection
        assert connection is not None
        got = texts(connection.exchange.messages)
        numbers = [log.number(text) for text in got]
        if opened:
            first = numbers[0] - 1 if numbers else log.last
            skipped = [n for n in log.after(connection.start) if n <= first]
            if lenient:  # without an id it does not ask for what may have been on its way
                skipped = [n for n in skipped if n > max(log.written, log.maybe_written)]
            place.missed += len(skipped)
            connection.start = first
            log.written = first
        expected = log.after(connection.start)
        assert numbers == expected[: len(numbers)]
        if connection.is_reading:
            assert len(numbers) == len(expected)
            assert connection.exchange.is_complete is (log.over_at is not None)
        if numbers:
            log.written = numbers[-1]
        log.maybe_written = log.written
        brought = iter(numbers)
        for event in connection.exchange.events:
            number = next(brought) if event.data else connection.start
            if event.id is not None:
                log.ids[event.id] = number

    @invariant()
    def every_message_is_seen_once_and_in_order_or_counted(self) -> None:
        for place, log in self.connected():
            self.receive(place, log)
        for place in self.places:
            streams = place.client.own.streams
            assert place.missed <= streams.evicted
            assert not streams.evicted or self.total(place) > KEEP
            entries = [e for s in streams._streams.values() for e in s.entries]
            assert streams._count == len(entries)
            assert streams._bytes == sum(len(entry.data) for entry in entries)
            if all(log.connection is None or log.connection.is_reading for log in place.logs):
                assert len(entries) <= KEEP + 1


TestEndpoint = Endpoint.TestCase
