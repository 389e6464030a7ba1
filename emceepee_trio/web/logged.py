"""What the servers of sessions have logged, for people who run a daemon.

Also what no session is shown, since it may be of any that share the server: that is of none.
Forgets nothing: a client that asks for the logs of its session finds them as they were.
"""

from __future__ import annotations

import heapq
from typing import Any

from ..config.bounds import MAX_LIST_BYTES, MAX_LOGS_RETURNED
from ..model.json.spelling import spell
from ..model.json.weight import weigh
from ..model.text.redact import label
from ..model.wire import to_snake
from ..session.buffers import Buffers, LogEntry
from ..session.manager import SessionManager
from ..waits.slices import in_slices


async def logs_of(manager: SessionManager, principal: str | None, server: str | None) -> str:
    """:func:`newest_logs`, as JSON."""
    return await in_slices(spell({"logs": await newest_logs(manager, principal, server)}))


async def newest_logs(
    manager: SessionManager, principal: str | None, server: str | None
) -> list[dict[str, Any]]:
    """The newest of the sessions of one principal, or of all, oldest first."""
    newest: list[tuple[str | None, int, LogEntry]] = []
    everything: list[tuple[str | None, Buffers]] = [
        *((label(session.id), session.buffers) for session in manager.sessions(principal)),
        *((None, unshown) for unshown in manager.unshown.of(principal)),
    ]
    for name, buffers in everything:
        kept = buffers.take_logs(_any, server, MAX_LOGS_RETURNED, clear=False)
        found, _, _ = await in_slices(kept)
        both = [*newest, *((name, n, entry) for n, entry in enumerate(found))]
        newest = heapq.nlargest(MAX_LOGS_RETURNED, both, key=_when)
    said: list[dict[str, Any]] = []
    room = MAX_LIST_BYTES
    for name, _, entry in newest:
        room -= weigh(entry.data) + 200
        if room < 0:
            break
        said.append({"session": name} | to_snake(entry))
    return said[::-1]


def _any(_: LogEntry) -> bool:
    return True


def _when(each: tuple[str | None, int, LogEntry]) -> tuple[str, int]:
    """Of one session, those of one moment are in their order."""
    return each[2].timestamp, each[1]
