"""Keeping one backend of one session connected.

:class:`Backend` is a nursery in which connections live, each a :class:`Link` with a task of its
own that opens and closes it. What happens to them is fed into a :class:`Lifecycle`, which decides;
what that says is done and published, synchronously, by whoever noticed: a call that fails for a
lost connection finds the loss already told. There is one current client at a time.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeVar

import attrs
import trio

from .. import logs
from ..config import Config, Lacking, Server
from ..errors import ConnectFailed, Denied, ServerDisconnected, ToolError, internal
from ..model import events
from ..model.json.intake import Measure
from ..model.states import BackendState, Cause
from ..waits.firewall import Firewall, begin
from ..waits.slot import Slot
from .catalogue.catalog import Catalog, Entries, List
from .catalogue.knowledge import Knowledge
from .catalogue.memory import Remembered
from .children.process import PATIENCE, Exit, Process
from .chores import Chores
from .comeback import Comeback, Lost
from .connections.callbacks import Callbacks, Host, Params
from .connections.client import Client, Negotiated
from .connections.failures import Failure
from .connections.health import Health
from .connections.witness import NotRun
from .lifecycle import RECONNECT, Events, Lifecycle, Todo
from .link import Link
from .retries import Retries
from .shared import Shared
from .uses import Uses
from .wishes import Wishes

T = TypeVar("T")


@attrs.define(eq=False)
class Backend:
    """One server as one session sees it."""

    server: Server
    host: Host
    config: Config
    shared: Shared
    session: str
    wall: Callable[[], float]
    restricted: bool
    """Whether ``policy.network`` holds for it; a change counts from the next connection."""
    once: bool = False
    """A try that fails before one has worked is the last one; for servers that are only added if
    they work."""
    principal: str = ""
    """For whom it is connected."""
    on_demand: bool = False
    """Connected only when it is needed, whatever its entry says."""
    catalog: Catalog = attrs.field(init=False)
    life: Lifecycle[Link] = attrs.field(init=False)
    client: Client | None = attrs.field(default=None, init=False)
    connected_at: float | None = attrs.field(default=None, init=False)
    idle_since: float | None = attrs.field(default=None, init=False)
    """From when on nobody has needed it, until it is connected."""
    knowledge: Knowledge = attrs.field(init=False)
    last_error: str | None = attrs.field(default=None, init=False)
    last_process: tuple[int, float, Exit] | None = attrs.field(default=None, init=False)
    """Pid, start and end of the child that ran last."""
    health: Health = attrs.field(init=False)
    lost_with: Lost = attrs.field(factory=Lost, init=False)
    """What went with the last connection."""
    patience: float = attrs.field(default=PATIENCE, init=False)
    """Seconds a child gets for each step of its end."""
    ended: trio.Event = attrs.field(factory=trio.Event, init=False)
    wishes: Wishes = attrs.field(init=False)
    uses: Uses = attrs.field(factory=Uses, init=False)
    _chores: Chores | None = attrs.field(default=None, init=False)
    """Of the last connection that worked."""
    _links: trio.Nursery | None = attrs.field(default=None, init=False)
    _try: Slot[Client] = attrs.field(factory=Slot, init=False)
    """The try that is under way, or the next one."""
    _wanted: trio.Event = attrs.field(factory=trio.Event, init=False)
    """Somebody wants that try now."""

    def __attrs_post_init__(self) -> None:
        memory = None if self.server.start == "eager" else self.shared.memory
        self.knowledge = Knowledge(self, self.principal, memory)
        self.catalog = Catalog(
            self.server.name,
            self.server.allowed_tools,
            self.server.denied_tools,
            self.knowledge.heard,
        )
        self.wishes = Wishes(self.server.name, self.session)
        is_program = self.server.transport == "stdio"
        self.life = Lifecycle(
            self.server.name,
            is_program,
            self.on_demand or self.server.start == "lazy",
            Retries(self.server.restart if is_program else self.server.reconnect, random.random),
            self.once,
        )
        self.health = Health(
            self.config.health.interval_ms / 1000, not is_program, self.wall, self._health_changed
        )
        if self.server.disabled:
            self.life.happens(Cause.DISABLED)
        elif self.knowledge.recall():
            self.life.happens(Cause.RECALLED)
            self._begin_to_wait()
        if isinstance(self.server, Lacking):
            self.last_error = f"disabled: {self.server.lacks}"

    @property
    def state(self) -> BackendState:
        return self.life.state

    @property
    def retries(self) -> Retries:
        return self.life.tries

    @property
    def who(self) -> dict[str, Any]:
        """For the log."""
        return {"session": self.session, "server": self.server.name}

    async def run(self) -> None:
        """The connection task; lives until :meth:`leave`, or until it is cancelled."""
        try:
            while self.life.todo is not Todo.END:
                with Firewall("backend_crashed", self._crashed, fields=self.who):
                    async with trio.open_nursery() as self._links:
                        await self._keep_connected(self._links)
        finally:
            self._links = None
            self._try.fail(self._gone())
            self.life.ended()
            self.ended.set()

    async def _keep_connected(self, links: trio.Nursery) -> None:
        while (todo := self.life.todo) is not Todo.END:
            if todo is Todo.WAIT:
                with trio.move_on_at(self.life.due):
                    await self._wanted.wait()
                if self.life.leaving is None:
                    self.life.happens(Cause.WANTED if self._wanted.is_set() else Cause.DUE)
            else:
                await self._live(links)

    async def _live(self, links: trio.Nursery) -> None:
        """One try, and what comes of it."""
        link = self._new_link()
        self.life.begins(link)
        begin(
            links,
            link.wall("server_connection_crashed"),
            link.run,
            name=f"connection to {self.server.name}",
        )
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
            # Else leave() was here between the failure and us, and has set what we wait for.
            self._failed(link.failure)
        self._tell_plan(link)

    def _new_link(self) -> Link:
        limits = self.config.limits
        measure = Measure(limits.message, limits.values)
        return Link(self, self.server, self.session, self.shared, measure, self.restricted)

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

    def _begin_to_wait(self) -> None:
        """From here on callers want the next try, if there is to be a wait for it."""
        if self.life.todo is Todo.WAIT:
            self._wanted = trio.Event()
            self.idle_since = self.wall() if self.state is BackendState.IDLE else None

    def _tell_plan(self, link: Link) -> None:
        """What follows on the end of *link*; all that there is to say of that has been said."""
        now, worked = trio.current_time(), link.client is not None
        pid, _, end = self.last_process or (None, None, None)
        told = self.life.follows(worked=worked, pid=pid, end=end, now=now)
        if self.life.next_try is not None and self.life.leaving is None:
            delay_ms = self.life.delay_ms(now)
            self._log(
                "info", "server_reconnecting", attempt=self.retries.attempt, delay_ms=delay_ms
            )
        self._publish_all(told)

    def _failed(self, failure: Failure) -> None:
        self.last_error = failure.message
        ended, self._try = self._try, Slot()
        self.life.fails(trio.current_time(), final=failure.final)
        self._begin_to_wait()
        if self.state is BackendState.ERROR and failure.kind is ConnectFailed:
            self.knowledge.forget()
        self._log(
            "warn", "server_reconnect_failed", attempt=self.retries.attempt, error=failure.message
        )
        ended.fail(self._unreachable(failure))

    def _unreachable(self, failure: Failure) -> ToolError:
        details = dict(failure.details)
        message = f"server {self.server.name!r}: {failure.message}"
        if self.client is not None:
            message += "; the connection that there was goes on"
        elif self.next_try is not None:
            left = max(0.0, self.next_try - trio.current_time())
            details["next_retry_ms"] = round(left * 1000)
            message += f"; next try in {left:.1f} s, await_activity tells when it is back"
        elif failure.kind is Denied:
            message += "; only the operator can allow it, by configuring this server or the policy"
        else:
            message += "; correct it, then call reconnect_server"
        return failure.kind(message, details)

    @property
    def next_try(self) -> float | None:
        """When, on trio's clock."""
        return self.life.next_try

    @property
    def next_try_ms(self) -> int:
        """How long until then."""
        return self.life.delay_ms(trio.current_time())

    # What connections report: see link.Keeper.

    def callbacks(self, link: Link) -> Callbacks:
        return Callbacks(
            self.server.name,
            self.host,
            self.list_changed,
            link.why_over,
            link.over,
            self.uses.one,
        )

    def connected(self, link: Link, client: Client) -> AbstractAsyncContextManager[None]:
        if link is self.life.beside and self.life.current is not None:
            self.life.current.leave(RECONNECT)  # is lost, and told, before this one works
        before, agreed = self.life.before, client.negotiated
        pid = None if link.process is None else link.process.pid
        told = self.life.works(link, pid, agreed.capabilities, agreed.protocol_version)
        self.client, self.last_error = client, None
        self.connected_at, self.idle_since = self.wall(), None
        self.knowledge.connected(client)
        self.catalog.all_stale()
        if self.wishes.log_level is not None:
            client.log_level = self.wishes.log_level
        self._publish_all(told)
        comeback = None if before is None else Comeback(self, before, client)
        self._chores = Chores(self, link, client, comeback)
        self._log(
            "info",
            "server_connected" if before is None else "server_reconnected",
            target=self.server.target,
        )
        self._try.set(client)
        return self._chores.done()

    def lost(self, link: Link) -> None:
        if self._chores is not None:
            self._chores.over()
        self.client = self.connected_at = None
        made, self._try = self._try, Slot()
        self.lost_with = Lost()
        self.life.loses(link, trio.current_time(), link.connected_at, link.story.leaving)
        if self.life.leaving is not None:
            made.fail(self._gone())
            return
        self._begin_to_wait()
        if not made.is_settled:  # something of ours has crashed before it was told that it works
            made.fail(self._unreachable(link.failure or Failure("lost as soon as it was made")))

    def lost_for(self, reason: str | None) -> None:
        self.last_error = reason

    def child_ended(self, pid: int, started_at: float, end: Exit) -> None:
        self.last_process = pid, started_at, end

    def publish(self, happening: events.Happening) -> None:
        self.host.publish(self.server.name, happening)

    def _publish_all(self, told: Events) -> None:
        for happening in told:
            self.publish(happening)

    def list_changed(self, name: str) -> None:
        """The server says so."""
        self.catalog.stale(name)
        self.knowledge.outdated(name)

    def _health_changed(self, is_well: bool, failures: int, last_error: str) -> None:
        name = self.server.name
        self.life.happens(Cause.WELL if is_well else Cause.UNWELL)
        if is_well:
            self.publish(events.ServerHealthRestored(name, failures, last_error))
        else:
            self.publish(events.ServerHealthDegraded(name, failures, last_error))
        self._log(
            "info" if is_well else "warn",
            "server_health_restored" if is_well else "server_health_degraded",
            error=last_error,
        )

    def _log(self, level: logs.Level, what: str, **fields: object) -> None:
        logs.write(level, what, **self.who, **fields)

    def _gone(self) -> ServerDisconnected:
        why = self.life.leaving or "session ended"
        return ServerDisconnected(
            f"server {self.server.name!r} is no longer here ({why})",
            {"may_have_run": False},
        )

    def _why_disabled(self) -> str:
        if isinstance(self.server, Lacking):
            return f"{self.last_error}; its operator can set that and restart this proxy"
        return "disabled in its configuration; enable it there"

    def wake(self) -> None:
        """Connect now, if that waits for somebody who needs it."""
        self._wanted.set()

    async def connection(self) -> Client:
        """The client, waiting for it if need be; starts a try that is only waiting for its time.

        Raises:
            ConnectFailed: the try failed.
            Denied: a policy forbids it.
            LimitReached: there are too many children.
            ServerDisconnected: the backend is being removed.
        """
        while self.client is None:
            if self.state is BackendState.DISABLED:
                raise ConnectFailed(f"server {self.server.name!r} is {self._why_disabled()}")
            if self.life.leaving is not None or self.ended.is_set():
                raise self._gone()
            self.wake()
            await self._try.wait_result()
        return self.client

    async def ask(self, exchange: Callable[[Client], Awaitable[T]]) -> T:
        """Do *exchange* with the client, waiting for it if need be.

        Once more if it was not run: the server has forgotten our session, or could not even be
        connected to, and whoever called has nothing to do with that. Nothing else is repeated.
        """
        with self.uses.one():
            try:
                return await exchange(await self._connection_to_ask())
            except NotRun:
                return await exchange(await self._connection_to_ask())  # noqa: ASYNC120 - then it is the cancellation that counts

    async def _connection_to_ask(self) -> Client:
        """Who was there, and cannot be asked any more, has run nothing."""
        try:
            return await self.connection()
        except ConnectFailed as error:
            if self.life.before is None or self.server.transport == "stdio":
                raise
            details = {**(error.details or {}), "may_have_run": False}
            raise ConnectFailed(error.message, details) from None

    async def reconnect(self) -> Client:
        """A new connection: for a url beside the old one, for a child after its end.

        Raises:
            ConnectFailed: it could not be made; over HTTP the old one goes on. As do the others.
        """
        old = self.life.current
        if self.client is None or old is None or self._links is None:
            return await self.connection()
        self.uses.touch()
        if self.server.transport == "stdio":
            old.leave(RECONNECT)
            return await self.connection()
        new = self.life.beside
        if new is None:
            new = self._new_link()
            self.life.begins(new)
            wall = new.wall("server_connection_crashed")
            begin(self._links, wall, self._run_beside, new)
        await new.settled.wait()
        if new.client is not None:
            return new.client
        raise self._gone() if new.failure is None else self._unreachable(new.failure)

    async def _run_beside(self, link: Link) -> None:
        await link.run()
        self.life.gave_up(link)

    def leave(self, reason: str, patience: float) -> None:
        """Tell the connection to close; *patience* is what a child gets for each step."""
        if not self.life.leaves(reason):
            return
        self.patience = patience
        self._wanted.set()
        for link in (self.life.current, self.life.beside):
            if link is not None:
                link.leave(reason)

    async def follow_changes(self) -> Params:
        """Have a modern backend send what is subscribed now; what it agreed to.

        Raises:
            MCPError: it does not do that, or it is gone.
            TimeoutError: it does not say.
        """
        chores = self._chores
        if chores is None or chores.listening is None or chores.link is not self.life.current:
            raise self._gone()
        with (
            self.uses.one(),
            trio.move_on_after(self.config.limits.execute_timeout_ms / 1000),
        ):
            return await chores.listening.follow()
        raise TimeoutError(f"server {self.server.name!r} did not acknowledge the subscription")

    def remembered(self, name: List) -> Remembered | None:
        """A list of a server that nobody has needed yet.

        None also if there is, or soon will be, a connection that had to be.
        """
        return None if self.idle_since is None else self.knowledge.lists.get(name)

    def old(self, name: List) -> Entries:
        """A list as this session was told it last, or would have been."""
        if (kept := self.catalog.kept(name)) is not None:
            return kept
        known = self.knowledge.lists.get(name) if self.knowledge.is_recalled else None
        return [] if known is None else known.entries

    @property
    def agreed(self) -> Negotiated | None:
        """What it is, as far as that is known."""
        if self.client is not None:
            return self.client.negotiated
        return None if self.idle_since is None else self.knowledge.negotiated

    @property
    def is_used(self) -> bool:
        """Something is under way, a resource is followed, or a question is open."""
        return bool(self.uses or self.wishes.subscriptions or self.knowledge.is_learning)

    @property
    def is_wanted(self) -> bool:
        """Somebody waits for it."""
        return self._wanted.is_set()

    @property
    def unstarted(self) -> str | None:
        """What there is to say to who waits for a connection, while there is none."""
        if self.client is not None:
            return None
        how = "starting" if self.server.transport == "stdio" else "being connected"
        return f"server {self.server.name!r} is {self.starting or how}"

    @property
    def starting(self) -> str | None:
        """What there is to say of a program that has not answered yet, to whoever waits for it."""
        link = self.life.current
        start = None if link is None else link.start
        return None if start is None else start.describe()

    @property
    def starting_still(self) -> str | None:
        """The same to everybody, if it takes long."""
        link = self.life.current
        start = None if link is None else link.start
        return start.describe() if start is not None and start.takes_long else None

    @property
    def process(self) -> Process | None:
        return None if self.life.current is None else self.life.current.process
