"""Keeping one server connected: the nursery in which its connections live.

Each is a :class:`Link` with a task of its own. What they report is fed into a :class:`Lifecycle`,
which decides; what that says is published, waited for or opened, synchronously, by whoever has
noticed: a call that fails for a lost connection finds the loss already told. Whoever wants a
connection waits here for the try that is under way, or for the next one. Knows nothing of what a
connection is used for: that is for the :class:`Supervised` one.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

import attrs
import trio

from .. import logs
from ..config import Lacking, Server
from ..errors import ConnectFailed, ServerDisconnected, ToolError, internal
from ..model import events, facts
from ..model.json.intake import Measure
from ..model.states import BackendState, Cause
from ..waits.bell import Bell
from ..waits.firewall import Firewall, begin
from ..waits.slot import Slot
from .children.process import PATIENCE, Exit
from .connections.callbacks import Callbacks
from .connections.client import Client
from .connections.failures import Failure
from .lifecycle import RECONNECT, Events, Lifecycle, Todo
from .link import Link
from .shared import Shared


class Supervised(Protocol):
    """What is to be kept connected: a backend."""

    @property
    def restricted(self) -> bool:
        """Whether ``policy.network`` holds for the next connection."""
        ...

    def callbacks(self, link: Link) -> Callbacks:
        """For what its server says of its own accord."""
        ...

    def connected(
        self, link: Link, client: Client, before: Link | None
    ) -> AbstractAsyncContextManager[object]:
        """It is, for the first time or again, and nobody knows it yet.

        Returns:
            What is to be entered until the connection is over.
        """
        ...

    def lost(self) -> None:
        """The connection; nobody knows it yet."""
        ...

    def given_up(self) -> None:
        """It cannot be connected, and is not tried again."""
        ...

    def publish(self, happening: events.Happening) -> None: ...


@attrs.define(eq=False, repr=False)
class Supervisor:
    """Of one backend."""

    _kept: Supervised
    _server: Server
    _session_id: str
    _shared: Shared
    _measure: Measure
    _wall: Callable[[], float]
    life: Lifecycle[Link]
    client: Client | None = attrs.field(default=None, init=False)
    """The current one."""
    connected_at: float | None = attrs.field(default=None, init=False)
    idle_since: float | None = attrs.field(default=None, init=False)
    """From when on nobody has needed it, until it is connected."""
    last_error: str | None = attrs.field(default=None, init=False)
    last_process: tuple[int, float, Exit] | None = attrs.field(default=None, init=False)
    """Pid, start and end of the child that ran last."""
    patience: float = attrs.field(default=PATIENCE, init=False)
    """Seconds a child gets for each step of its end."""
    ended: trio.Event = attrs.field(factory=trio.Event, init=False)
    _links: trio.Nursery | None = attrs.field(default=None, init=False)
    _try: Slot[Client] = attrs.field(factory=Slot, init=False)
    """The try that is under way, or the next one."""
    _sooner: Bell = attrs.field(factory=Bell, init=False)
    """For our task while it waits: somebody wants the next try, or it is over."""

    @property
    def who(self) -> dict[str, Any]:
        """For the log."""
        return {"session": self._session_id, "server": self._server.name}

    # The task, and what it does.

    async def run(self) -> None:
        """Lives until :meth:`leave`, or until it is cancelled."""
        try:
            while self.life.todo is not Todo.END:
                with Firewall("backend_crashed", self._crashed, fields=self.who):
                    async with trio.open_nursery() as self._links:
                        await self._keep_connected(self._links)
        finally:
            self._links = None
            self._try.fail(self.gone())
            self.life.ended()
            self.ended.set()

    async def _keep_connected(self, links: trio.Nursery) -> None:
        while (todo := self.life.todo) is not Todo.END:
            if todo is Todo.WAIT:
                await self._wait()
            else:
                await self._live(links)

    async def _wait(self) -> None:
        """For the time of the next try, for whom wants it sooner, or for the end."""
        life = self.life
        # No checkpoint from a look at what is wanted to the wait for that.
        while (until := life.due) > trio.current_time() and life.todo is Todo.WAIT:
            with trio.move_on_at(until):
                await self._sooner.wait()
        if life.todo is Todo.WAIT:
            life.waited()

    async def _live(self, links: trio.Nursery) -> None:
        """One try, and what comes of it."""
        link = self._new_link()
        self._begin(links, link, link.run)
        while True:  # reconnect() may put another link in this one's place
            await link.settled.wait()
            if link.client is not None:
                await link.client.over.wait()
            if link is self.life.current or self.life.current is None:
                break
            link = self.life.current
        if link.client is not None:
            await link.ended.wait()
        elif link.failure is not None and self.life.leaving is None:
            # Else leave() was here between the failure and us.
            self._failed(link.failure)
        self._tell_plan(link)

    def _new_link(self) -> Link:
        link = Link(
            self, self._server, self._session_id, self._shared, self._measure, self._kept.restricted
        )
        self.life.begins(link)
        link.note(facts.ConnectionTrying)
        return link

    def _begin(
        self, links: trio.Nursery, link: Link, run: Callable[..., Any], *args: object
    ) -> None:
        wall, name = link.wall("server_connection_crashed"), f"connection to {self._server.name}"
        begin(links, wall, run, *args, name=name)

    def _crashed(self, log_id: str) -> None:
        """Nothing of us runs any more; counts as a try that failed."""
        self.client = self.connected_at = None
        was_live = self.life.crashed()
        if self.life.leaving is not None:
            return
        if was_live:
            self._failed(Failure(internal(log_id)))
        else:
            self.last_error = internal(log_id)

    def _failed(self, failure: Failure) -> None:
        self.last_error = failure.message
        ended, self._try = self._try, Slot()
        self.life.fails(trio.current_time(), final=failure.final)
        self._note_rest()
        if self.life.state is BackendState.ERROR and failure.kind is ConnectFailed:
            self._kept.given_up()
        attempt = self.life.tries.attempt
        self.log("warn", "server_reconnect_failed", attempt=attempt, error=failure.message)
        ended.fail(self._unreachable(failure))

    def _tell_plan(self, link: Link) -> None:
        """What follows on the end of *link*; all that there is to say of that has been said."""
        life, now = self.life, trio.current_time()
        pid, _, end = self.last_process or (None, None, None)
        told = life.follows(worked=link.client is not None, pid=pid, end=end, now=now)
        if life.todo is Todo.WAIT and life.next_try is not None:
            attempt, delay_ms = life.tries.attempt, life.delay_ms(now)
            self.log("info", "server_reconnecting", attempt=attempt, delay_ms=delay_ms)
        self._publish_all(told)

    # What connections report: see link.Keeper.

    @property
    def is_wanted(self) -> bool:
        return self.life.is_wanted

    def callbacks(self, link: Link) -> Callbacks:
        return self._kept.callbacks(link)

    def connected(self, link: Link, client: Client) -> AbstractAsyncContextManager[object]:
        life = self.life
        if link is life.beside and life.current is not None:
            life.current.leave(RECONNECT)  # is lost, and told, before this one works
        before, agreed = life.before, client.negotiated
        pid = None if link.process is None else link.process.pid
        told = life.works(link, pid, agreed.capabilities, agreed.protocol_version)
        self.client, self.connected_at = client, self._wall()
        self.last_error = self.idle_since = None
        link.note(facts.ConnectionUp, before is not None)
        lasting = self._kept.connected(link, client, before)
        self._publish_all(told)
        self.log(
            "info",
            "server_connected" if before is None else "server_reconnected",
            target=self._server.target,
        )
        self._try.set(client)
        return lasting

    def lost(self, link: Link) -> None:
        life = self.life
        link.note(facts.ConnectionLost, link.story.leaving is not None)
        self._kept.lost()
        self.client = self.connected_at = None
        made, self._try = self._try, Slot()
        life.loses(link, trio.current_time(), link.connected_at, link.story.leaving)
        if life.leaving is not None:
            made.fail(self.gone())
            return
        self._note_rest()
        if not made.is_settled:  # something of ours has crashed before it was told that it works
            made.fail(self._unreachable(link.failure or Failure("lost as soon as it was made")))

    def lost_for(self, reason: str | None) -> None:
        self.last_error = reason

    def child_ended(self, pid: int, started_at: float, end: Exit) -> None:
        self.last_process = pid, started_at, end

    def publish(self, happening: events.Happening) -> None:
        self._kept.publish(happening)

    def _publish_all(self, told: Events) -> None:
        for happening in told:
            self.publish(happening)

    # What those want who use it.

    def happens(self, cause: Cause) -> None:
        """Something that changes the state, and is no news of a connection."""
        self.life.happens(cause)
        self._note_rest()

    def _note_rest(self) -> None:
        """Whether it rests, from here on, for want of somebody who needs it."""
        is_idle = self.life.state is BackendState.IDLE
        self.idle_since = self._wall() if is_idle else None

    def wake(self) -> None:
        """Connect now, if that waits for somebody who needs it."""
        self.life.wants()
        self._sooner.ring()

    async def connection(self) -> Client:
        """The client, waiting for it if need be; starts a try that is only waiting for its time.

        Raises:
            ConnectFailed: the try failed.
            Denied: a policy forbids it.
            LimitReached: there are too many children.
            ServerDisconnected: the backend is being removed.
        """
        while self.client is None:
            if self.life.state is BackendState.DISABLED:
                raise ConnectFailed(f"server {self._server.name!r} is {self._why_disabled()}")
            if self.life.todo is Todo.END:
                raise self.gone()
            self.wake()
            await self._try.wait_result()
        return self.client

    async def reconnect(self) -> Client:
        """A new connection: for a url beside the old one, for a child after its end.

        Raises:
            ConnectFailed: it could not be made; over HTTP the old one goes on. As do the others.
        """
        old = self.life.current
        if self.client is None or old is None or self._links is None:
            return await self.connection()
        if self._server.transport == "stdio":
            old.leave(RECONNECT)
            return await self.connection()
        new = self.life.beside
        if new is None:
            new = self._new_link()
            self._begin(self._links, new, self._run_beside, new)
        await new.settled.wait()
        if new.client is not None:
            return new.client
        raise self.gone() if new.failure is None else self._unreachable(new.failure)

    async def _run_beside(self, link: Link) -> None:
        await link.run()
        self.life.gave_up(link)

    def leave(self, reason: str, patience: float) -> None:
        """Close the connection; *patience* is what a child gets for each step."""
        if not self.life.leaves(reason):
            return
        self.patience = patience
        self._sooner.ring()
        for link in (self.life.current, self.life.beside):
            if link is not None:
                link.leave(reason)

    # Why there is none.

    def _unreachable(self, failure: Failure) -> ToolError:
        due = self.life.next_try
        left = None if due is None else max(0.0, due - trio.current_time())
        return failure.error(self._server.name, left=left, goes_on=self.client is not None)

    def gone(self) -> ServerDisconnected:
        why = self.life.leaving or "session ended"
        return ServerDisconnected(
            f"server {self._server.name!r} is no longer here ({why})", {"may_have_run": False}
        )

    def _why_disabled(self) -> str:
        if isinstance(self._server, Lacking):
            return f"{self.last_error}; its operator can set that and restart this proxy"
        return "disabled in its configuration; enable it there"

    def log(self, level: logs.Level, what: str, **fields: object) -> None:
        logs.write(level, what, **self.who, **fields)
