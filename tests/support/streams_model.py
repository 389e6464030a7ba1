"""The streams of some sessions as a client understands them that applies MCP's rules."""

from __future__ import annotations

import attrs

from asgi_client import Client, Exchange
from asgi_world import Speaker, texts
from emceepee_trio.front.handshake.stream import Stream
from emceepee_trio.front.handshake.streams import KEPT


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

    def leave(self) -> None:
        """Drop the connection; what was on its way is lost, and the server may not know."""
        assert self.connection is not None
        self.connection.exchange.drop()
        self.connection, self.maybe_written = None, self.last

    def number(self, text: str) -> int:
        return next(n for n, said in self.said.items() if said == text)


@attrs.define(eq=False)
class Place:
    """One session."""

    client: Client
    standalone: Log
    posts: list[Log] = attrs.field(factory=list)
    forgotten: int = 0
    """Messages of POSTs that the client has no interest in any more."""
    missed: set[str] = attrs.field(factory=set)
    """Messages that were evicted before the client got them: each once, however often it asks."""

    @property
    def logs(self) -> list[Log]:
        return [self.standalone, *self.posts]

    @property
    def total(self) -> int:
        """Messages that there have been, in whatever stream."""
        return sum(log.last for log in self.logs) + self.forgotten

    def receive(self, log: Log, *, opened: bool = False, lenient: bool = False) -> None:
        """The client looks at what its connection has brought."""
        connection = log.connection
        assert connection is not None
        got = texts(connection.exchange.messages)
        numbers = [log.number(text) for text in got]
        if opened:
            # What had moved to another stream is not missed in this one.
            still = [connection.start, *log.after(connection.start)]
            first = numbers[0] - 1 if numbers else still[-1]
            skipped = [n for n in still[1:] if n <= first]
            if lenient:  # without an id it does not ask for what may have been on its way
                skipped = [n for n in skipped if n > max(log.written, log.maybe_written)]
            self.missed.update(log.said[n] for n in skipped)
            assert first >= (log.written if lenient else connection.start)
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

    def check_forgotten(self, log: Log, now: float) -> None:
        """Its ids were refused: there must be a reason."""
        assert log.over_at is not None
        is_old = now - log.over_at >= KEPT
        assert is_old or self.total > self.client.own.streams.keep or not log.said
