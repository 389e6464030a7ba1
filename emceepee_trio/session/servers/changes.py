"""Servers that come to sessions and leave them while those live: who has which.

By tool or on the page for the sessions of one principal, by a new configuration for all. What is
had is said by the :class:`.Registry`; here it becomes true of sessions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import attrs

from ... import logs
from ...backend.backend import Backend
from ...backend.children.process import PATIENCE
from ...backend.connections.client import Client
from ...config import Server
from ...errors import ConnectFailed, LimitReached
from ..session import Session
from .registry import Registry


@attrs.define(eq=False)
class ServerChanges:
    _registry: Registry
    _sessions: Callable[[str | None], list[Session]]
    """Those that live, of one principal or of all."""

    async def add(
        self, session: Session, server: Server, *, keep_on_failure: bool
    ) -> tuple[Client | None, bool]:
        """Connect *session* to *server*; if that works, its principal's other sessions too.

        Returns:
            The client (None if it failed and is kept), and whether a server of that name made room.

        Raises:
            ToolError: it may not be added, or the one attempt failed and nothing is kept.
        """
        session.check_open()
        server = self._registry.check(session.principal, server)
        if (same := _same(session, server)) is not None:
            return await same.connection(), False
        restricted = self._registry.restricts(server.name)
        candidate = session.backends.begin(server, restricted=restricted, once=not keep_on_failure)
        try:
            client = await _first_try(candidate, keep_on_failure)
            # Others were busy meanwhile: the session may be over, the name or the last place taken.
            session.check_open()
            self._registry.check(session.principal, server)
        except BaseException:
            candidate.leave("not added", PATIENCE)
            raise
        if (same := _same(session, server)) is not None:
            candidate.leave("added twice", PATIENCE)
            return await same.connection(), False
        # No checkpoint from here on: either all of it has happened or none.
        session.backends.drop(server.name, "replaced", PATIENCE)
        session.backends.put(candidate)
        replaced = server.name in self._registry.visible(session.principal)
        self._registry.add(session.principal, server)
        by = session.client_name
        logs.write("info", "server_added", session=session.id, server=server.name, by=by)
        for other in self._sessions(session.principal):
            if other is not session:
                previous = other.backends.drop(server.name, "replaced", PATIENCE)
                if previous is not None:
                    other.backends.say_removed(previous.server, session.client_name)
                other.backends.say_added(server, session.client_name)
                # Somebody wants it, and nobody knows yet whether it works there, too.
                self.start(other, server).wake()
        return client, replaced

    async def remove(self, session: Session, name: str) -> None:
        """Disconnect every session that has it, and wait for this one's connection to close."""
        shared = self._registry.is_shared(name)
        self._registry.remove(session.principal, name)
        ours = None
        # No checkpoint until nobody has it any more: a server of that name may be added again.
        for other in self._sessions(None if shared else session.principal):
            gone = other.backends.remove(name, session.client_name)
            ours = gone if other is session else ours
        if ours is not None:
            await ours.wait()

    def offer(self, principal: str, server: Server, by: str, said: Mapping[str, object]) -> None:
        """Have the sessions of *principal* connect to *server*, those to come as well.

        Its entry has *said* so much; the rest is as the operator has it for all.

        Raises:
            ToolError: it may not be added.
        """
        server = self._registry.check(principal, server, said)
        self._registry.add(principal, server)
        self.follow(by)

    def forget(self, principal: str, name: str, by: str) -> None:
        """The opposite, also of a configured one, for everybody.

        Raises:
            ServerNotFound: there is none.
        """
        self._registry.remove(principal, name)
        self.follow(by)

    def switch(self, principal: str, name: str, by: str, *, on: bool) -> None:
        """See :meth:`.Registry.switch`."""
        self._registry.switch(principal, name, on=on)
        self.follow(by)

    def edit(self, principal: str, server: Server, by: str, said: Mapping[str, object]) -> None:
        """See :meth:`.Registry.edit`."""
        self._registry.edit(principal, server, said)
        self.follow(by)

    def restore(self, principal: str, name: str, by: str) -> None:
        """See :meth:`.Registry.restore`."""
        self._registry.restore(principal, name)
        self.follow(by)

    def follow(self, by: str) -> None:
        """Sessions get the servers that the registry has; only what is another is touched."""
        for session in self._sessions(None):
            wanted = self._registry.visible(session.principal)
            for name, backend in list(session.backends.items()):
                now = wanted.get(name)
                if now is backend.server or now == backend.server:
                    backend.restricted = self._registry.restricts(name)
                    continue
                if name in wanted:
                    session.backends.drop(name, "replaced", PATIENCE)
                    session.backends.say_removed(backend.server, by)
                else:
                    session.backends.remove(name, by)
            for name, server in wanted.items():
                if name not in session.backends:
                    session.backends.say_added(server, by)
                    self.start(session, server)

    def start(self, session: Session, server: Server, *, is_planned: bool = False) -> Backend:
        restricted = self._registry.restricts(server.name)
        return session.backends.start(server, restricted=restricted, is_planned=is_planned)


def _same(session: Session, server: Server) -> Backend | None:
    backend = session.backends.get(server.name)
    return backend if backend is not None and backend.server == server else None


async def _first_try(backend: Backend, keep_on_failure: bool) -> Client | None:
    try:
        return await backend.connection()
    except (ConnectFailed, LimitReached) as error:
        if keep_on_failure:
            return None
        # What it says of the next try is not true of a server that will not be there.
        details = {k: v for k, v in (error.details or {}).items() if k != "next_retry_ms"}
        raise type(error)(
            f"server {backend.server.name!r}: {backend.last_error}; it is not added, correct it "
            "and add it again",
            details,
        ) from None
