"""What the programs of servers take, and who has them: for all sessions that have one together.

Sessions are named as in the logs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs

from ...backend.children.footprint import Footprint, footprints
from ...backend.sharing.stateless import keeps_nothing
from ...config import Server
from ...model.text.redact import label
from ...session.manager import SessionManager


@attrs.define(eq=False)
class Programs:
    """Of one entry, for one principal."""

    server: Server
    principal: str
    sessions: list[str] = attrs.field(factory=list)
    pids: set[int] = attrs.field(factory=set)

    @property
    def would_be_one(self) -> bool:
        """If its sessions shared it."""
        return len(self.pids) > 1 and self.server.scope == "session"

    def to_json(self, found: Mapping[int, Footprint]) -> dict[str, Any]:
        running = [found[pid] for pid in self.pids if pid in found]
        resident = sum(each.resident for each in running)
        said: dict[str, Any] = {
            "server": self.server.name,
            "principal": self.principal,
            "scope": self.server.scope,
            "sessions": self.sessions,
            "programs": len(self.pids),
            "processes": sum(each.processes for each in running),
            "resident_bytes": resident,
        }
        if len(running) > 1 and self.server.scope == "session":
            said["sharing_would_save_bytes"] = resident - resident // len(running)
            said["keeps_nothing"] = keeps_nothing(self.server)
        return said


async def programs_of(
    manager: SessionManager, principal: str | None, server: str | None = None
) -> list[dict[str, Any]]:
    """Of one principal, or of all; of that server, or of all. Only of those that run."""
    return await measured(
        [each for each in programs(manager, principal) if server in (None, each.server.name)]
    )


async def measured(every: Sequence[Programs]) -> list[dict[str, Any]]:
    found = await footprints({pid for each in every for pid in each.pids})
    return [each.to_json(found) for each in every]


def programs(manager: SessionManager, principal: str | None) -> Iterator[Programs]:
    by_name: dict[tuple[str, str], Programs] = {}

    def of(server: Server, whose: str) -> Programs:
        return by_name.setdefault((whose, server.name), Programs(server, whose))

    for session in manager.sessions(principal):
        for backend in session.backends.values():
            if backend.process is not None:
                found = of(backend.server, session.principal)
                found.sessions.append(label(session.id))
                found.pids.add(backend.process.pid)
    for hub in () if manager.sharing is None else manager.sharing.hubs(principal):
        if hub.backend.process is not None:  # also if nobody has it at the moment
            of(hub.server, hub.principal).pids.add(hub.backend.process.pid)
    yield from by_name.values()
