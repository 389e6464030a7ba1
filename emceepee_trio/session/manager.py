"""The one place where sessions begin and end."""

from __future__ import annotations

import secrets
import time
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import attrs
import trio

from .. import logs
from ..backend.catalogue.shelf import open_memory
from ..backend.children.reaper import open_reaper
from ..backend.children.starts import Starts, cores
from ..backend.http.auth import AuthFor, open_auth
from ..backend.shared import Shared
from ..backend.sharing.sharing import Sharing, open_sharing
from ..config import Config
from ..errors import EmceepeeError, LimitReached
from ..journal import Journal, Reader
from ..model.facts import SessionEnded, SessionOpened
from ..model.ids import Ids
from ..telemetry.readers import open_journal
from ..tracing import Tracing
from ..waits.firewall import Firewall, begin, begin_lasting
from ..waits.slot import Slot
from .idle import IdleWatch
from .kept import ResultFolders
from .results import open_folders
from .servers.changes import ServerChanges
from .servers.registry import Registry
from .servers.unshown import Unshown
from .session import Session

LEAVING = 5.0
"""Seconds the backends of a session that has ended may take to close; then they are cut."""
HURRIED = 0.3
"""Seconds a child gets for each step of its end when its session or the daemon ends."""
AT_ONCE = 20
"""Sessions that end in one step of the end of all."""
BY_CONFIG = "config"
"""Who adds and removes servers when the configuration is read again."""
TRIES = 3
"""Sessions of one id that may end under somebody who opens it."""


class SessionFailed(EmceepeeError):
    """It could not be opened, or ended while somebody waited for it."""


@attrs.define(eq=False)
class SessionManager:
    config: Config
    registry: Registry
    _nursery: trio.Nursery
    _shared: Shared
    _folders: ResultFolders = attrs.field(factory=lambda: ResultFolders(None))
    sharing: Sharing | None = None
    unshown: Unshown = attrs.field(factory=Unshown)
    servers: ServerChanges = attrs.field(init=False)
    """How servers come to those that live, and leave them."""
    _sessions: dict[str, Slot[Session]] = attrs.field(factory=dict, init=False)
    _new_id: Ids = attrs.field(factory=lambda: Ids(time.time, secrets.token_bytes), init=False)
    draining: trio.Event = attrs.field(factory=trio.Event, init=False)
    """Set when the process is about to stop, once and for all that goes by it."""
    _closed: bool = attrs.field(default=False, init=False)
    _opening: Counter[str] = attrs.field(factory=Counter, init=False)
    """How many are about to be handed the session of that id: it makes no room for others."""

    def __attrs_post_init__(self) -> None:
        self.servers = ServerChanges(self.registry, self.sessions)

    @property
    def journal(self) -> Journal:
        """Where all of them note what happens."""
        return self._shared.journal

    def get(self, session_id: str) -> Session | None:
        """A living session. Not to be kept across a checkpoint: look it up again."""
        slot = self._sessions.get(session_id)
        return slot.peek() if slot is not None and slot.is_settled else None

    def principal_of(self, noted: str) -> str | None:
        """Whose a fact is that was noted of that session, or of a server that sessions share."""
        if (session := self.get(noted)) is not None:
            return session.principal
        hub = None if self.sharing is None else self.sharing.get(noted)
        return None if hub is None else hub.principal

    async def ensure(
        self,
        session_id: str,
        principal: str,
        *,
        ends_when_idle: bool = False,
        on_demand: bool = False,
    ) -> Session:
        """The session of that id, made if need be; callers who race get the same one.

        *on_demand*: it starts no server that it does not need, known or not.

        Raises:
            LimitReached: there are too many, and all of them have something under way.
            SessionFailed: it could not be opened, or no session is opened any more.
        """
        self._opening[session_id] += 1
        try:
            for _ in range(TRIES):
                slot = self._sessions.get(session_id)
                if slot is None:
                    slot = self._start(session_id, principal, ends_when_idle, on_demand)
                session = await slot.wait_result()
                # It may have ended while this task was on its way back here: then it takes another.
                if self._sessions.get(session_id) is slot:
                    return session
        finally:
            self._opening -= Counter([session_id])
        raise SessionFailed(f"session {session_id} ends as soon as it is opened")

    def _start(
        self, session_id: str, principal: str, ends_when_idle: bool, on_demand: bool
    ) -> Slot[Session]:
        if self._closed:
            raise SessionFailed("this daemon is shutting down; it opens no more sessions")
        self._make_room()
        # Registered before the first await, so that the next caller finds this very one.
        slot = self._sessions[session_id] = Slot()
        wall = Firewall("session_crashed", fields={"session": session_id})
        run = (session_id, principal, slot, ends_when_idle, on_demand)
        begin(self._nursery, wall, self._run, *run, name=f"session {session_id}")
        return slot

    def _make_room(self) -> None:
        limit = self.config.limits.sessions
        if len(self._sessions) < limit:
            return
        idle = [s for s in self.sessions() if not s.has_work and s.id not in self._opening]
        if not idle:
            raise LimitReached(
                f"{limit} sessions are open and busy (limits.sessions); end one, or come back later"
            )
        self.end(min(idle, key=lambda session: session.presence.idle_since), "made room")

    def _end_idle(self, session: Session) -> None:
        self.end(session, "idle")

    def end(self, session: Session, reason: str) -> None:
        """The only end: unregistered and cancelled in one breath. What it runs ends by itself."""
        slot = self._sessions.get(session.id)
        if slot is not None and slot.is_settled and slot.peek() is session:
            del self._sessions[session.id]
            self.journal.note(SessionEnded, session.id, reason)
        session.close()
        session.inner.cancel_scope.cancel(reason)

    async def _run(
        self,
        session_id: str,
        principal: str,
        slot: Slot[Session],
        ends_when_idle: bool,
        on_demand: bool,
    ) -> None:
        session = None
        if self._shared.tracing is not None:
            self._shared.tracing.apart()
        try:
            if self._closed:
                return
            async with trio.open_nursery() as outer:
                try:
                    async with trio.open_nursery() as inner:
                        session = Session(
                            session_id,
                            principal,
                            self.config,
                            self._shared,
                            self._new_id,
                            outer,
                            inner,
                            draining=self.draining,
                            on_demand=on_demand,
                            folders=self._folders,
                            sharing=self.sharing,
                        )
                        if ends_when_idle:
                            watch = IdleWatch(session, self.config.limits, self._end_idle)
                            session.sweeper.keepers += (watch,)
                        begin_lasting(
                            inner, "sweeper_crashed", session.sweeper.run, session=session_id
                        )
                        for server in self.registry.visible(principal).values():
                            self.servers.start(session, server, is_planned=True)
                        self.journal.note(SessionOpened, session_id, principal)
                        slot.set(session)
                finally:
                    if session is not None:
                        self.end(session, "over")
                        session.backends.leave(HURRIED)
                    outer.cancel_scope.deadline = trio.current_time() + LEAVING
                    if session is not None:
                        await session.results.remove()  # noqa: ASYNC102 - bounded and shielded there
        finally:
            if slot.fail(SessionFailed(f"session {session_id} could not be opened")):
                del self._sessions[session_id]

    def drain(self) -> None:
        """The process is about to stop: what only waits returns, what works goes on."""
        self.draining.set()
        for session in self.sessions():
            session.events.triggers.close()

    async def close(self) -> None:
        """End every session, also one that is about to begin; no other will."""
        self._closed = True
        for n, session in enumerate(self.sessions(), 1):
            self.end(session, "shutdown")
            if n % AT_ONCE == 0:  # who is told of an end has its turn; nothing keeps us from ending
                await trio.lowlevel.cancel_shielded_checkpoint()

    def sessions(self, principal: str | None = None) -> list[Session]:
        living = [slot.peek() for slot in self._sessions.values() if slot.is_settled]
        return [s for s in living if principal in (None, s.principal)]

    def reload(self, config: Config) -> None:
        """Take a new configuration. Synchronous; only servers whose entry changed are touched.

        What else has changed holds for sessions that begin from now on.
        """
        self.config = config
        self._shared.tokens = frozenset(config.http.bearers.values())
        self._shared.starts.allow(config.limits.starting or cores())
        self.registry.reload(config)
        self.servers.follow(BY_CONFIG)


@asynccontextmanager
async def open_sessions(
    config: Config,
    state: Path | None = None,
    *,
    is_local: bool = False,
    tracing: Tracing | None = None,
    auth_for: AuthFor | None = None,
) -> AsyncGenerator[SessionManager]:
    """Sessions live in this block. Leaving it ends them and waits until nothing of them runs.

    What servers have is remembered beyond that in the *state* directory, if there is one. Clients
    are told of files of ours if they are *local*, which is on this machine. By *auth_for* servers
    behind URLs are shown who asks.
    """
    unshown = Unshown(config.limits)
    async with (
        open_journal(config, state) as journal,
        open_memory(state) as memory,
        open_folders(state, is_local=is_local) as folders,
        open_auth(auth_for, state) as auth,
        open_reaper() as reaper,
        open_sharing(unshown.keep) as sharing,
        trio.open_nursery() as nursery,
    ):
        tokens = frozenset(config.http.bearers.values())
        starts = Starts(config.limits.starting or cores())
        if tracing is not None:
            journal.add(Reader("traces", tracing.read, tracing.kinds))
        shared = Shared(
            reaper,
            memory=memory,
            tokens=tokens,
            starts=starts,
            journal=journal,
            tracing=tracing,
            auth_for=auth,
        )
        registry = Registry(config)
        manager = SessionManager(config, registry, nursery, shared, folders, sharing, unshown)
        yield manager
        sessions = manager.sessions()
        logs.write(
            "info",
            "registry_shutdown_start",
            session_count=len(sessions),
            server_count=sum(len(session.backends) for session in sessions),
        )
        await manager.close()
    logs.write("info", "registry_shutdown_complete")
