"""One client: everything it owns, in one nursery.

Backends live in the outer nursery and are told to leave; calls, questions, timers and the sweeper
live in the inner one, which is cancelled first. `manager.py` opens and closes both. Nothing here
knows a tool or a transport.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

import attrs
import trio

from .. import logs
from ..backend.backend import Backend
from ..backend.connections.callbacks import Abandoned, Kind, LogLine, Params, working_for
from ..backend.shared import Shared
from ..backend.sharing.sharing import Sharing
from ..config import Config
from ..config.bounds import MAX_SCRIPTS
from ..config.roots import Folder, as_roots
from ..config.treatment import RelayTo
from ..errors import Denied, ServerNotFound, SessionGone
from ..model import facts
from ..model.events import Happening
from ..model.facts import SessionNamed
from ..waits.firewall import Firewall
from ..waits.sweeper import Sweeper
from .announcements import Announcements
from .buffers import Buffers
from .calls.asked import heard
from .calls.calls import Calls
from .calls.reissues import Reissues
from .events import Events
from .kept import ResultFolders
from .presence import Presence
from .questions.questions import Questions
from .questions.relay import Askers
from .results import Results
from .servers.backends import Backends
from .servers.index import SessionIndex
from .servers.ledger import Ledger
from .servers.planned import Planned
from .servers.registry import not_found
from .servers.roots import Choice, ToldRoots, folders_of
from .timers import Timers

T = TypeVar("T")


@attrs.define(eq=False, repr=False)
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
    backends: Backends = attrs.field(init=False)
    presence: Presence = attrs.field(factory=Presence, init=False)
    announcements: Announcements = attrs.field(init=False)
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
    untold: str = attrs.field(default="", init=False)
    """What the newest answer in which there was no place for it had to say of its call."""
    told_roots: ToldRoots = attrs.field(init=False)
    _at_end: list[Callable[[], None]] = attrs.field(factory=list, init=False)
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
        self.buffers = Buffers(limits.notifications, limits.logs, limits.log_bytes)
        self.announcements = Announcements(
            self.id,
            self.wall,
            self.shared.journal,
            self.events,
            self.buffers,
            self.planned,
            self.presence,
        )
        self.backends = Backends(
            self,
            self.config,
            self.shared,
            self.outer,
            self.planned,
            self.new_id,
            self.wall,
            self.sharing,
        )
        self.announcements.watch(self.backends.happened)
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
            partial(heard, self.calls),
            self.shared.journal,
            self.relay.during,
        )
        self.told_roots = ToldRoots(self.config, self._configured_roots)
        self.timers = Timers(
            self.inner, self.publish, self.new_id, self.wall, self.id, self.shared.journal
        )
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

    # What backends call: see backend.connections.callbacks.Host.

    def publish(self, server: str, happening: Happening, at: str | None = None) -> bool:
        """Whether it will be told, if it is news; what cannot be is counted as lost."""
        return self.announcements.publish(server, happening, at)

    def notified(self, server: str, method: str, params: Params | None) -> None:
        self.announcements.notified(server, method, params)

    def logged(self, line: LogLine) -> None:
        self.announcements.logged(line)

    def told(self, server: str, *, definitions: int = 0, results: int = 0) -> None:
        """Its client's model reads so many bytes of that server."""
        self.ledger.add(server, definitions=definitions, results=results)
        self.shared.journal.note(facts.Tallied, self.id, server, definitions, results)

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

    @property
    def has_work(self) -> bool:
        """Something is under way that somebody may come back for."""
        return bool(
            self.presence.requests
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
