"""One client: everything it owns, in one nursery.

Backends live in the outer nursery and are told to leave; calls, questions, timers and the sweeper
live in the inner one, which is cancelled first. `manager.py` opens and closes both. Nothing here
knows a tool or a transport.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import attrs
import trio

from .. import logs
from ..backend.backend import Backend
from ..backend.children.process import PATIENCE
from ..backend.connections.callbacks import Abandoned, Kind, LogSource, Params, working_for
from ..backend.private import Private
from ..backend.shared import Shared
from ..backend.sharing.sharing import Sharing
from ..config import Config, Server
from ..config.bounds import MAX_DELIVERY_BYTES, MAX_SAID, MAX_SCRIPTS
from ..config.roots import Folder, as_roots
from ..config.server import RelayTo
from ..errors import Denied, LimitReached, ServerNotFound, SessionGone
from ..model import events, facts
from ..model.events import Happening, Json
from ..model.facts import SessionNamed
from ..model.text.redact import label
from ..model.wire import timestamp
from ..waits.firewall import Firewall, begin
from ..waits.sweeper import Sweeper
from .buffers import Buffers, LogEntry, NotificationEntry
from .calls.calls import Calls
from .calls.reissues import Reissues
from .events import Events
from .kept import ResultFolders
from .questions.questions import Questions
from .questions.relay import Askers
from .results import Results
from .servers.index import SessionIndex
from .servers.ledger import Ledger
from .servers.planned import Planned
from .servers.registry import not_found
from .servers.roots import Choice, ToldRoots, folders_of
from .timers import Timers

WORK_ENDS = (
    events.TaskCompleted,
    events.TaskFailed,
    events.TaskCancelled,
    events.TaskExpired,
    events.ElicitationCancelled,
    events.ElicitationExpired,
    events.SamplingCancelled,
    events.ElicitationAnswered,
    events.SamplingAnswered,
    events.SamplingExpired,
    events.TimerExpired,
)
"""From here on a session may be idle. What backends say of their own accord keeps none alive."""


T = TypeVar("T")

Watcher = Callable[[str, Happening], None]
"""Told of whatever happens, as planned or not: to which server, and what."""

Heard = Callable[[str, str, Params | None], None]
"""Told of a notification: its server, its method, its params."""


@attrs.define(eq=False)
class Session:
    """Lives exactly as long as its nurseries. Also the :class:`Host` of its backends."""

    id: str
    principal: str
    config: Config
    shared: Shared
    new_id: Callable[[], str]
    outer: trio.Nursery
    inner: trio.Nursery
    wall: Callable[[], float] = time.time
    client_name: str = "unknown client"
    draining: trio.Event = attrs.field(factory=trio.Event)
    """Set when the process is about to stop: what only waits returns, and says so."""
    on_demand: bool = False
    """It starts no server that it does not need."""
    folders: ResultFolders = attrs.field(factory=lambda: ResultFolders(None))
    """Where it has files."""
    sharing: Sharing | None = None
    """Where it finds connections that it shares; without one, all are its own."""
    backends: dict[str, Backend] = attrs.field(factory=dict, init=False)
    events: Events = attrs.field(init=False)
    calls: Calls = attrs.field(init=False)
    questions: Questions = attrs.field(init=False)
    relay: Askers = attrs.field(init=False)
    timers: Timers = attrs.field(init=False)
    buffers: Buffers = attrs.field(init=False)
    reissues: Reissues = attrs.field(init=False)
    results: Results = attrs.field(init=False)
    sweeper: Sweeper = attrs.field(factory=Sweeper, init=False)
    planned: Planned = attrs.field(factory=Planned, init=False)
    ledger: Ledger = attrs.field(factory=Ledger, init=False)
    found: SessionIndex = attrs.field(factory=SessionIndex, init=False)
    """Empty until something is searched for."""
    matching: trio.Lock = attrs.field(factory=trio.Lock, init=False)
    """Held by who waits for the thread in which patterns are matched: one of each session."""
    scripts: trio.CapacityLimiter = attrs.field(
        factory=lambda: trio.CapacityLimiter(MAX_SCRIPTS), init=False
    )
    """Held by those that run."""
    extensions: Mapping[str, Any] = attrs.field(factory=dict, init=False)
    """Of the protocol, that a client of it knows who is shown what servers say as it is."""
    used: bool = attrs.field(default=False, init=False)
    """Its client has done more than say hello."""
    idle_since: float = attrs.field(factory=trio.current_time, init=False)
    untold: str = attrs.field(default="", init=False)
    """What the newest answer in which there was no place for it had to say of its call."""
    waiters: int = attrs.field(default=0, init=False)
    """Requests parked in await_activity or get_task_result."""
    told_roots: ToldRoots = attrs.field(init=False)
    _running: set[Backend] = attrs.field(factory=set, init=False)
    """Also those without a name: not yet added, or no longer."""
    _requests: int = attrs.field(default=0, init=False)
    _going: dict[Backend, str] = attrs.field(factory=dict, init=False)
    """Removed, and by whom; that is still to be told."""
    _at_end: list[Callable[[], None]] = attrs.field(factory=list, init=False)
    _listeners: set[Heard] = attrs.field(factory=set, init=False)
    _watchers: set[Watcher] = attrs.field(factory=set, init=False)
    _ones: dict[Callable[[Session], Any], Any] = attrs.field(factory=dict, init=False)
    _tools: set[trio.CancelScope] = attrs.field(factory=set, init=False)
    """Of tools under way."""

    def __attrs_post_init__(self) -> None:
        limits = self.config.limits
        self.events = Events(
            self.new_id,
            trio.current_time,
            self.wall,
            limits.events,
            limits.events_bytes,
            limits.events_ms / 1000,
            self.sweeper.look,
            self.id,
            self.shared.journal,
        )
        self.calls = Calls(
            limits,
            self.inner,
            self.publish,
            self.new_id,
            self.wall,
            self.sweeper.look,
            self.id,
            self.shared.journal,
        )
        self.relay = Askers(self.id, self.inner, self.new_id, self.is_relayed, self.shared.journal)
        self.questions = Questions(
            limits,
            self.publish,
            self.new_id,
            self.wall,
            self.id,
            self.calls.heard,
            self.shared.journal,
            self.relay.during,
        )
        self.told_roots = ToldRoots(self.config, self._configured_roots)
        self.timers = Timers(
            self.inner, self.publish, self.new_id, self.wall, self.id, self.shared.journal
        )
        self.buffers = Buffers(limits.notifications, limits.logs, limits.log_bytes)
        self.results = Results(
            self.config.results,
            self.inner,
            self.new_id,
            self.sweeper.look,
            self.folders.new(),
            self.folders.is_local,
        )
        self.reissues = Reissues(self.inner, self.calls.abandon, limits.reissue_ms)
        self.sweeper.keepers = (self.events, self.calls.finished, self.results)
        if self.draining.is_set():
            self.events.triggers.close()

    def start_backend(
        self, server: Server, *, restricted: bool, is_planned: bool = False
    ) -> Backend:
        """Begin to connect, under the server's name from now on. Waits for nothing."""
        backend = self.new_backend(server, restricted=restricted)
        self.backends[server.name] = backend
        if is_planned:
            self.planned.add(server.name)
        return backend

    def new_backend(self, server: Server, *, restricted: bool, once: bool = False) -> Backend:
        """Begin to connect, without a name yet."""
        self.planned.discard(server.name)
        backend = self._lease(server, restricted, once) or self._private(server, restricted, once)
        self._running.add(backend)
        begin(
            self.outer,
            self._wall("backend_crashed", server.name),
            self._run,
            backend,
            name=f"backend {server.name} of {label(self.id)}",
        )
        return backend

    def _private(self, server: Server, restricted: bool, once: bool) -> Backend:
        return Private(
            server,
            self,
            self.config,
            self.shared,
            self.id,
            self.wall,
            restricted,
            once,
            self.principal,
            self.on_demand,
        )

    def _lease(self, server: Server, restricted: bool, once: bool) -> Backend | None:
        """Of a connection that other sessions of the same principal have, too."""
        if server.scope != "principal" or server.disabled or self.sharing is None:
            return None
        return self.sharing.lease(
            server,
            self,
            self.config,
            self.shared,
            self.new_id,
            self.wall,
            restricted=restricted,
            once=once,
        )

    def _wall(
        self, event: str, server: str, failed: Callable[[str], object] | None = None
    ) -> Firewall:
        return Firewall(event, failed, fields={"session": self.id, "server": server})

    async def _run(self, backend: Backend) -> None:
        if self.shared.tracing is not None:
            self.shared.tracing.apart()
        try:
            await backend.run()
        finally:
            self._running.remove(backend)

    def drop_backend(self, name: str, reason: str, patience: float) -> Backend | None:
        """Take it out of the session at once; it closes its connection in its own time."""
        backend = self.backends.pop(name, None)
        if backend is not None:
            backend.leave(reason, patience)
        return backend

    def remove_backend(self, name: str, by: str) -> trio.Event | None:
        """Take it out at once, for good; an event for when it is gone and that is told."""
        backend = self.drop_backend(name, "removed", PATIENCE)
        if backend is None:
            return None
        self._going[backend] = by
        gone = trio.Event()
        wall = self._wall("removal_crashed", name)
        begin(self.outer, wall, self._say_when_gone, backend, gone)
        return gone

    async def _say_when_gone(self, backend: Backend, gone: trio.Event) -> None:
        # In the session's own time: the request that wants it may be cancelled.
        try:
            await backend.ended.wait()
            self._say_gone(backend)
        finally:
            gone.set()

    def _say_gone(self, backend: Backend) -> None:
        by = self._going.pop(backend, None)
        if by is not None:
            self.say_removed(backend.server, by)

    def make_way(self, name: str) -> None:
        """Another one of that name comes: what was removed is told before, gone or not."""
        for backend in [going for going in self._going if going.server.name == name]:
            self._say_gone(backend)

    def backend(self, name: str) -> Backend:
        """The backend of that exact name.

        Raises:
            ServerNotFound: there is none.
        """
        backend = self.backends.get(name)
        if backend is None:
            raise ServerNotFound(not_found(name, self.backends))
        return backend

    def named(self, client: str) -> None:
        """By its client, which may say so with each request."""
        if client != self.client_name:
            self.client_name = client
            self.shared.journal.note(SessionNamed, self.id, client)

    def wait_in(self, at_most: int) -> _Waiter:
        """A place among those who wait for something to happen."""
        return _Waiter(self, at_most)

    # What backends call: see backend.callbacks.Host. None of it raises: whoever has something to
    # tell is in the middle of something that has to be done, told or not.

    def publish(self, server: str, happening: Happening, at: str | None = None) -> bool:
        """Whether it will be told, if it is news; what cannot be is counted as lost."""
        if isinstance(happening, WORK_ENDS):
            self.touch()
        for watcher in tuple(self._watchers):
            with self._wall("event_crashed", server):
                watcher(server, happening)
        if (backend := self.backends.get(server)) is not None:
            backend.lost_with.count(happening)
        if self.planned.hides(server, happening):
            if isinstance(happening, events.ServerConnected) and self.planned.connected(server):
                self.events.wake(server, happening)
            return True
        with (wall := self._wall("event_crashed", server, lambda _: self.events.lose(1))):
            self.events.publish(server, happening, at)
        if isinstance(happening, events.ProcessStopped) and happening.reason is not None:
            self.planned.add(server)  # whoever needs it again expects that it comes
        return wall.log_id is None

    def notified(self, server: str, method: str, params: Params | None) -> None:
        now = timestamp(self.wall())
        told = events.Notification(method[:MAX_SAID], now, None, True)
        for listener in tuple(self._listeners):
            with self._wall("notification_crashed", server):
                listener(server, method, params)
        with self._wall("notification_crashed", server):
            heard = NotificationEntry.of(server, method, params, now)
            self.buffers.hear(heard)
            if heard.size <= MAX_DELIVERY_BYTES:
                told = events.Notification(method, now, params)
        self.publish(server, told, now)

    def told(self, server: str, *, definitions: int = 0, results: int = 0) -> None:
        """Its client's model reads so many bytes of that server."""
        self.ledger.add(server, definitions=definitions, results=results)
        self.shared.journal.note(facts.Tallied, self.id, server, definitions, results)

    @contextmanager
    def watched_by(self, watcher: Watcher) -> Generator[None]:
        """Show it everything that happens, meanwhile."""
        self._watchers.add(watcher)
        try:
            yield
        finally:
            self._watchers.discard(watcher)

    @contextmanager
    def heard_by(self, listener: Heard) -> Generator[None]:
        """Show it every notification as it comes, meanwhile."""
        self._listeners.add(listener)
        try:
            yield
        finally:
            self._listeners.discard(listener)

    def logged(
        self,
        server: str,
        source: LogSource,
        level: str,
        data: Json,
        logger: str | None = None,
    ) -> None:
        now = timestamp(self.wall())
        with self._wall("log_crashed", server):
            self.buffers.log(LogEntry(server, source, level, logger, data, now))
        self.shared.journal.note(facts.LineLogged, self.id, server)

    async def ask(
        self, server: str, kind: Kind, params: Params, abandoned: Callable[[], Abandoned]
    ) -> dict[str, Any]:
        return await self.questions.ask(server, kind, params, abandoned)

    def is_relayed(self, server: str, kind: Kind, view: str) -> bool:
        """Whether its questions are put to clients with that view that can take them."""
        backend = self.backends.get(server)
        said = None if backend is None else getattr(backend.server.relay, kind)
        to: RelayTo = said or self.config.relay.of(view, kind)
        return to == "auto"

    def roots(self, server: str | None = None) -> list[dict[str, Any]]:
        """What that server is told, or one of which nothing is configured."""
        return self.told_roots.of(server)

    async def list_roots(self, server: str) -> list[dict[str, Any]]:
        """The same, once the client has been asked that says it when it is asked alone."""
        if not self.told_roots.is_by_tool:
            work = working_for.get()
            works = [c.id for c in self.calls.under_way(server)] if work is None else [work]
            said = await self.relay.roots(works)
            if said is not None:
                await self.hear_roots(said)
        return self.roots(server)

    async def hear_roots(self, said: Any) -> None:
        """What a client says of its own, which may be anything."""
        told = self.told_roots
        try:
            work = told.choice(folders_of(said))
            choice = await trio.to_thread.run_sync(work) if told.needs_disk else work()
        except Denied as denied:
            logs.write("info", "client_roots_refused", session=self.id, error=denied.message)
        else:
            self.choose_roots(choice, by_client=True)

    def set_roots(self, roots: Sequence[Mapping[str, Any]]) -> None:
        """From now on backends are told these, or what they may be told of them."""
        chosen = [Folder(root["uri"], root.get("name")) for root in roots]
        self.choose_roots(self.told_roots.choice(chosen)())

    def choose_roots(self, choice: Choice, *, by_client: bool = False) -> None:
        """The same, worked out by somebody who could wait for the disk.

        What a client says of itself counts until somebody chooses by tool.
        """
        if self.told_roots.choose(choice, by_client=by_client):
            self.tell_roots()

    def _configured_roots(self) -> Mapping[str, tuple[Folder, ...]]:
        """Of the servers that have some of their own."""
        return {
            name: as_roots(backend.server.roots)
            for name, backend in self.backends.items()
            if backend.server.roots is not None
        }

    def tell_roots(self) -> None:
        """Those that listen are told that the roots have changed."""
        for backend in self.backends.values():
            backend.roots_changed()

    def leave_backends(self, patience: float) -> None:
        self.backends.clear()
        for backend in self._running:
            backend.leave("session ended", patience)

    def one(self, kind: Callable[[Session], T]) -> T:
        """What others have of it, for as long as it lasts: made of it by *kind*, once."""
        if kind not in self._ones:
            self._ones[kind] = kind(self)
        found: T = self._ones[kind]
        return found

    def check_open(self) -> None:
        """Raises `SessionGone` if it is over."""
        if self.inner.cancel_scope.cancel_called:
            raise SessionGone("the session has ended; open a new one and call again")

    @contextmanager
    def while_open(self) -> Generator[None]:
        """Around a tool, which ends with the session; its answer is told after that.

        Raises:
            SessionGone: it did.
        """
        with trio.CancelScope() as scope:
            self._tools.add(scope)
            try:
                self.check_open()
                yield
            finally:
                self._tools.discard(scope)
        if scope.cancelled_caught:
            self.check_open()

    @contextmanager
    def busy(self) -> Generator[None]:
        """A request is under way, or a stream has a reader."""
        self._requests += 1
        try:
            yield
        finally:
            self._requests -= 1
            self.touch()

    def touch(self) -> None:
        self.idle_since = trio.current_time()

    @property
    def has_work(self) -> bool:
        """Something is under way that somebody may come back for."""
        return bool(
            self._requests
            or self.calls.has_unsettled
            or self.questions.has_open
            or self.timers.has_active
        )

    def at_end(self, act: Callable[[], None]) -> None:
        """Have *act* called, synchronously, when the session ends."""
        self._at_end.append(act)

    def close(self) -> None:
        """Let those go who wait in nurseries of others."""
        self.events.triggers.close()
        self.calls.end()
        for scope in self._tools:
            scope.cancel("the session has ended")
        while self._at_end:
            with Firewall("end_crashed", fields={"session": self.id}):
                self._at_end.pop()()

    def say_added(self, server: Server, by: str) -> None:
        self.make_way(server.name)
        self.publish(server.name, events.ServerAdded(server.name, server.target, by))
        logs.write("info", "server_added", session=self.id, server=server.name, by=by)

    def say_removed(self, server: Server, by: str) -> None:
        self.publish(server.name, events.ServerRemoved(server.name, server.target, by))
        logs.write("info", "server_removed", session=self.id, server=server.name, by=by)


@attrs.define(eq=False)
class _Waiter:
    """Counts a request that waits, for as long as it does."""

    _session: Session
    _at_most: int

    def __enter__(self) -> None:
        if self._session.waiters >= self._at_most:
            raise LimitReached(
                f"{self._at_most} requests of this session wait for activity or results already; "
                "one await_activity is enough for everything"
            )
        self._session.waiters += 1

    def __exit__(self, *exc: object) -> None:
        self._session.waiters -= 1
