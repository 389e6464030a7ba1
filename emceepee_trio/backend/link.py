"""One connection of a backend: a try and, if it works, its life until it is lost or left.

Its task opens and closes it. Whoever notices first that it is over sets
:class:`~.connections.callbacks.Over`, and its :class:`Keeper` is told, as is everything that there
is to tell, before anybody can see an effect of it. What that is, and whether it was told, is for
its :class:`~.lifecycle.Story` to say. Knows nothing of what comes before it or after it.
"""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from typing import Concatenate, ParamSpec, Protocol

import attrs
import trio

from .. import logs
from ..config import Server
from ..errors import internal
from ..model import events, facts
from ..model.facts import Fact
from ..model.json.intake import Measure
from ..waits.firewall import Firewall, begin
from .children.process import Exit, Process
from .children.start import FIRST, Start
from .connections.callbacks import Abandoned, Callbacks
from .connections.client import Client
from .connections.connect import Transport, has_worked, open_client
from .connections.failures import NOT_A_BUG, Failure, explain
from .lifecycle import RECONNECT, Events, Story
from .shared import Shared

P = ParamSpec("P")

CLOSING = 5.0
"""Seconds a connection may take to close; then it is cut."""

REFUSALS = 1.0
"""Seconds that requests under way have to be told, like one before them, that they were not run."""


class Keeper(Protocol):
    """Who wants a connection: a backend."""

    @property
    def patience(self) -> float:
        """Seconds a child gets for each step of its end."""
        ...

    @property
    def is_wanted(self) -> bool:
        """Somebody waits for a connection."""
        ...

    def callbacks(self, link: Link) -> Callbacks:
        """For what its server says of its own accord."""
        ...

    def connected(self, link: Link, client: Client) -> AbstractAsyncContextManager[object]:
        """It works; what is to be entered until it is over."""
        ...

    def lost(self, link: Link) -> None:
        """It worked, and is over. Called once, before that is told."""
        ...

    def lost_for(self, reason: str | None) -> None:
        """That is told next; None: it was our will."""
        ...

    def child_ended(self, pid: int, started_at: float, end: Exit) -> None:
        """That is told next."""
        ...

    def publish(self, happening: events.Happening) -> None: ...


@attrs.define(eq=False, repr=False)
class Link:
    """One try and, if it works, the connection."""

    keeper: Keeper
    server: Server
    session_id: str
    shared: Shared
    measure: Measure
    restricted: bool
    story: Story = attrs.field(init=False)
    callbacks: Callbacks = attrs.field(init=False)
    streams: Transport | None = attrs.field(default=None, init=False)
    start: Start | None = attrs.field(default=None, init=False)
    """Of a program, until it is settled."""
    client: Client | None = attrs.field(default=None, init=False)
    connected_at: float = attrs.field(default=math.inf, init=False)
    """On trio's clock."""
    failure: Failure | None = attrs.field(default=None, init=False)
    settled: trio.Event = attrs.field(factory=trio.Event, init=False)
    """Connected, or failed."""
    ended: trio.Event = attrs.field(factory=trio.Event, init=False)
    number: int = attrs.field(init=False)
    _scope: trio.CancelScope = attrs.field(factory=trio.CancelScope, init=False)

    def __attrs_post_init__(self) -> None:
        self.number = self.shared.journal.number()
        self.story = Story(self.server.name)
        self.callbacks = self.keeper.callbacks(self)

    @property
    def process(self) -> Process | None:
        """Its child, until the end of that was told."""
        if self.streams is None or self.story.pid is None:
            return None
        return self.streams.process

    async def run(self) -> None:
        try:
            with self.wall("server_connection_crashed", self._crash):
                await self._run()
        finally:
            try:
                with self.wall("server_connection_crashed"):
                    self._end()
            finally:
                self.start = None  # it holds us
                self.note(facts.ConnectionEnded)
                self.settled.set()
                self.ended.set()

    def note(
        self,
        kind: Callable[Concatenate[float, str, str, int, P], Fact],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> None:
        """Something has become of this connection."""
        server = self.server.name
        self.shared.journal.note(kind, self.session_id, server, self.number, *args, **kwargs)

    def wall(self, event: str, failed: Callable[[str], object] | None = None) -> Firewall:
        return Firewall(
            event, failed, fields={"session": self.session_id, "server": self.server.name}
        )

    def _crash(self, log_id: str) -> None:
        """A try that failed, or a connection that is lost, for a bug of ours."""
        self.failure = Failure(internal(log_id))

    async def _run(self) -> None:
        try:
            with self._scope:
                async with (
                    self._starting(),
                    open_client(
                        self.server,
                        self.callbacks,
                        self.shared,
                        self.session_id,
                        measure=self.measure,
                        restricted=self.restricted,
                        on_streams=self._opened,
                    ) as client,
                ):
                    # It may have been given up in the tick in which it was made.
                    await trio.lowlevel.checkpoint_if_cancelled()
                    self._scope.deadline = math.inf
                    async with self._works(client):
                        await client.over.wait()
                        if client.http is not None and client.http.session_gone:
                            with trio.move_on_after(REFUSALS):
                                await client.idle()
                    self._lose()  # if it was over before we knew that it works
                    self._scope.deadline = trio.current_time() + CLOSING
            if self._scope.cancelled_caught and self.client is None and self.story.leaving is None:
                self.failure = explain(
                    self.server,
                    self.streams,
                    self.callbacks.stderr,
                    None,
                    worked_for=None if self.start is None else self.start.worked_for,
                )
        except* NOT_A_BUG as group:
            self.failure = explain(self.server, self.streams, self.callbacks.stderr, group)

    @asynccontextmanager
    async def _starting(self) -> AsyncGenerator[None]:
        """From the first thing that is done for it; around all of it."""
        patience = self.server.connect_timeout_ms / 1000
        if self.server.transport != "stdio":
            self._scope.deadline = trio.current_time() + patience
            yield
            return
        starts = self.shared.starts
        with starts.place(self.session_id, lambda: self.keeper.is_wanted) as place:
            is_first = not has_worked(self.server, self.shared)
            longest = FIRST if is_first else patience
            self.start = Start(self, self._scope, place, starts, patience, longest)
            if is_queued := not place.granted.is_set():
                self.note(facts.ConnectionQueued)
            await place.granted.wait()
            if is_queued:
                self.note(facts.ConnectionStarting)
            self.start.begin()
            async with trio.open_nursery() as watching:
                begin(watching, self.wall("start_crashed"), self.start.watch)
                yield
                watching.cancel_scope.cancel("it is over")

    def _opened(self, streams: Transport) -> None:
        process = streams.process
        told = self.story.opened(None if process is None else process.pid, self._end_of_child())
        self.streams = streams
        if process is not None:
            process.patience = self.keeper.patience
            self.note(facts.ChildStarted, process.pid)
        self._publish(told)

    def _works(self, client: Client) -> AbstractAsyncContextManager[object]:
        """What there is to do until it is over."""
        self.story.works()
        self.client, self.connected_at = client, trio.current_time()
        beside: AbstractAsyncContextManager[object] = nullcontext()
        with self.wall("server_connection_crashed", self._crash) as wall:
            beside = self.keeper.connected(self, client)
        if wall.log_id is not None:
            client.over.set()
        self.settled.set()
        if self.start is not None:
            self.start.end()
            self.start = None
        return beside

    def leave(self, why: str) -> None:
        """End it: politely if it is connected, at once if it is not."""
        self.story.leaves(why)
        if self.process is not None:
            self.process.patience = self.keeper.patience
        if self.client is not None:
            self.client.over.set()
        else:
            self._scope.cancel(why)

    def why_over(self) -> Abandoned:
        why = self.story.leaving
        if why is None:
            return "server_disconnected"
        return "server_reconnected" if why == RECONNECT else "server_removed"

    def over(self) -> None:
        """Nothing will come any more. Called once for each transport."""
        process = self.process
        # One that said too much is ended by us, even if it has died of our not listening by now.
        is_gone = process is not None and process.exit is not None and process.failure is None
        self.story.transport_ended(by_itself=is_gone)
        self._lose()

    def _lose(self) -> None:
        """Tell it, before anybody can see an effect."""
        if self.client is not None and self.story.loses():
            self.client.over.set()
            self.keeper.lost(self)
            if self.story.is_due:
                self._tell()

    def _end(self) -> None:
        """Nothing of it is left: tell what there still is to tell."""
        self._lose()  # if it was cut
        if self.story.is_untold:
            self._tell()
        self._publish(self.story.ended(self._end_of_child()))

    def _tell(self) -> None:
        leaving = self.story.leaving
        reason = leaving or self._reason()
        told = self.story.told(self._end_of_child(), reason)
        self.keeper.lost_for(None if leaving else reason)
        self._publish(told)
        logs.write(
            "info",
            "server_disconnected",
            session=self.session_id,
            server=self.server.name,
            reason=reason,
        )

    def _end_of_child(self) -> Exit | None:
        """If it is known, and was not told."""
        process = self.process
        if process is None or process.exit is None:
            return None
        self.keeper.child_ended(process.pid, process.started_at, process.exit)
        self.note(facts.ChildEnded, process.pid, process.exit.code, process.exit.signal)
        return process.exit

    def _publish(self, told: Events) -> None:
        for happening in told:
            self.keeper.publish(happening)

    def _reason(self) -> str:
        process = self.process
        if self.callbacks.over.why is not None:
            return self.callbacks.over.why
        if self.failure is not None:
            return self.failure.message
        if process is None:
            return "connection lost"
        if process.failure is not None:
            return process.failure
        if process.exit is None:
            return "closed its output"
        if process.exit.signal is not None:
            return f"process was killed by {process.exit.signal}"
        return f"process exited with code {process.exit.code}"
