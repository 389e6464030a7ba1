"""The one place where sessions begin and end, and where servers are added to and taken from them."""

from __future__ import annotations

import secrets
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import attrs
import trio

from .. import logs
from ..backend.connect import Eras
from ..backend.client import Client
from ..backend.process import PATIENCE
from ..config import Config, Server
from ..config.bounds import UNUSED_SESSION_MS
from ..errors import EmceepeeError, LimitReached
from ..model.ids import Ids
from ..waits.slot import Slot
from .registry import Registry
from .session import Session

LEAVING = 5.0
"""Seconds the backends of a session that has ended may take to close; then they are cut."""
HURRIED = 0.3
"""Seconds a child gets for each step of its end when its session or the daemon ends."""


class SessionFailed(EmceepeeError):
    """It could not be opened, or ended while somebody waited for it."""


@attrs.define(eq=False)
class SessionManager:
    config: Config
    registry: Registry
    _nursery: trio.Nursery
    _sessions: dict[str, Slot[Session]] = attrs.field(factory=dict, init=False)
    _eras: Eras = attrs.field(factory=dict, init=False)
    _new_id: Ids = attrs.field(factory=lambda: Ids(time.time, secrets.token_bytes), init=False)

    def get(self, session_id: str) -> Session | None:
        """A living session. Not to be kept across a checkpoint: look it up again."""
        slot = self._sessions.get(session_id)
        return slot.peek() if slot is not None and slot.is_settled else None

    async def ensure(
        self, session_id: str, principal: str, *, ends_when_idle: bool = False
    ) -> Session:
        """The session of that id, made if need be; callers who race get the same one.

        Raises:
            LimitReached: there are too many, and all of them have something under way.
        """
        slot = self._sessions.get(session_id)
        if slot is None:
            self._make_room()
            # Registered before the first await, so that the next caller finds this very one.
            slot = self._sessions[session_id] = Slot()
            self._nursery.start_soon(
                self._run,
                session_id,
                principal,
                slot,
                ends_when_idle,
                name=f"session {session_id}",
            )
        return await slot.wait_result()

    def _make_room(self) -> None:
        limit = self.config.limits.sessions
        if len(self._sessions) < limit:
            return
        idle = [session for session in self.sessions() if not session.has_work]
        if not idle:
            raise LimitReached(
                f"{limit} sessions are open and busy (limits.sessions); end one, or come back later"
            )
        self.end(min(idle, key=lambda session: session.idle_since), "made room")

    async def _end_when_idle(self, session: Session) -> None:
        """Sleep to the earliest possible end, look again, and end it there.

        Not a deadline: a request in the deadline's own tick would be killed although it came.
        """
        idle = self.config.limits.session_idle_ms / 1000
        while True:
            patience = idle if session.used else min(idle, UNUSED_SESSION_MS / 1000)
            await trio.sleep_until(session.idle_since + patience)
            if session.has_work:
                session.touch()
            elif session.used and patience < idle:
                continue
            elif trio.current_time() >= session.idle_since + patience:
                return self.end(session, "idle")

    def end(self, session: Session, reason: str) -> None:
        """The only end: unregistered and cancelled in one breath. What it runs ends by itself."""
        slot = self._sessions.get(session.id)
        if slot is not None and slot.is_settled and slot.peek() is session:
            del self._sessions[session.id]
            logs.write("info", "session_destroyed", session=session.id, reason=reason)
        session.close()
        session.inner.cancel_scope.cancel(reason)

    async def _run(
        self, session_id: str, principal: str, slot: Slot[Session], ends_when_idle: bool
    ) -> None:
        session = None
        try:
            async with trio.open_nursery() as outer:
                try:
                    async with trio.open_nursery() as inner:
                        session = Session(
                            session_id,
                            principal,
                            self.config,
                            self._eras,
                            self._new_id,
                            outer,
                            inner,
                        )
                        inner.start_soon(session.sweeper.run)
                        if ends_when_idle:
                            inner.start_soon(self._end_when_idle, session)
                        for server in self.registry.visible(principal).values():
                            session.start_backend(server)
                        logs.write("info", "session_created", session=session_id)
                        slot.set(session)
                finally:
                    if session is not None:
                        self.end(session, "over")
                        session.leave_backends(HURRIED)
                    outer.cancel_scope.deadline = trio.current_time() + LEAVING
        except* Exception as group:
            # The boundary: a bug of one session is not the others' business.
            logs.crash("session_crashed", group, session=session_id)
        finally:
            slot.fail(SessionFailed(f"session {session_id} could not be opened"))

    def sessions(self, principal: str | None = None) -> list[Session]:
        living = [slot.peek() for slot in self._sessions.values() if slot.is_settled]
        return [s for s in living if principal in (None, s.principal)]

    async def add_server(
        self, session: Session, server: Server, *, keep_on_failure: bool
    ) -> tuple[Client | None, bool]:
        """Connect *session* to *server*; if that works, its principal's other sessions too.

        Returns:
            The client (None if it failed and is kept), and whether a server of that name made room.

        Raises:
            ToolError: it may not be added, or the one attempt failed and nothing is kept.
        """
        self.registry.check(session.principal, server)
        old = session.backends.get(server.name)
        if old is not None and old.server == server:
            return await old.connection(), False
        candidate = session.new_backend(server)
        try:
            client: Client | None = await candidate.connection()
        except Exception:
            if not keep_on_failure:
                candidate.leave("could not connect", PATIENCE)
                raise
            client = None
        except BaseException:
            candidate.leave("request cancelled", PATIENCE)
            raise
        # No checkpoint from here on: either all of it has happened or none.
        if old is not None:
            session.drop_backend(server.name, "replaced", PATIENCE)
        session.backends[server.name] = candidate
        replaced = server.name in self.registry.visible(session.principal)
        self.registry.add(session.principal, server)
        for other in self.sessions(session.principal):
            if other is not session:
                previous = other.drop_backend(server.name, "replaced", PATIENCE)
                if previous is not None:
                    other.say_removed(previous.server, session.client_name)
                other.say_added(server, session.client_name)
                other.start_backend(server)
        return client, replaced

    async def remove_server(self, session: Session, name: str) -> None:
        """Disconnect every session that has it, and wait for this one's connection to close."""
        shared = self.registry.is_shared(name)
        server = self.registry.remove(session.principal, name)
        for other in self.sessions(None if shared else session.principal):
            if other is not session:
                other.inner.start_soon(self._drop, other, name, server, session.client_name)
        await self._drop(session, name, server, session.client_name)

    async def _drop(self, session: Session, name: str, server: Server, by: str) -> None:
        backend = session.drop_backend(name, "removed", PATIENCE)
        if backend is not None:
            await backend.ended.wait()
            session.say_removed(server, by)


@asynccontextmanager
async def open_sessions(config: Config) -> AsyncGenerator[SessionManager]:
    """Sessions live in this block. Leaving it ends them and waits until nothing of them runs."""
    async with trio.open_nursery() as nursery:
        manager = SessionManager(config, Registry(config), nursery)
        yield manager
        living = manager.sessions()
        logs.write("info", "registry_shutdown_start", session_count=len(living))
        for session in living:
            manager.end(session, "shutdown")
    logs.write("info", "registry_shutdown_complete")
