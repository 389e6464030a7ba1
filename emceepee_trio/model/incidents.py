"""A server that was lost and is back, all told at once, is one incident: one event tells of it.

That of its return, which says in ``incident`` what came before and how often. Those others keep
their ids and are told one by one to who asks again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import attrs

from .events import (
    Event,
    ProcessCrashed,
    ProcessStarted,
    ProcessStopped,
    Restarted,
    RestartFailed,
    Restarting,
    ServerAdded,
    ServerConnected,
    ServerDisconnected,
    ServerHealthDegraded,
    ServerHealthRestored,
    ServerReconnected,
    ServerReconnecting,
    ServerRemoved,
)
from .wire import event_text, event_type

BEGINS = (ProcessCrashed, ProcessStopped, ServerDisconnected, ServerHealthDegraded)
GOES_ON = (ServerReconnecting, Restarting, RestartFailed, ProcessStarted, Restarted)
ENDS = (ServerConnected, ServerReconnected)
IS_ANOTHER = (ServerAdded, ServerRemoved, ServerHealthRestored)
"""What came before has nothing to do with what comes."""


@attrs.frozen
class Incident:
    parts: Sequence[Event]
    """Without the end."""

    def to_json(self) -> dict[str, Any]:
        first = self.parts[0]
        said: dict[str, Any] = {"firstEventId": first.id, "since": first.created_at}
        for part in self.parts:
            if isinstance(part.happening, ServerDisconnected):
                said["reason"] = part.happening.reason
        return said | {"events": Counter(event_type(part.happening) for part in self.parts)}


def incidents(events: Sequence[Event]) -> dict[str, Incident]:
    """Those that begin and end in *events*, by the id of their end."""
    found: dict[str, Incident] = {}
    under_way: dict[str, list[Event]] = {}
    for event in events:
        happening, server = event.happening, event.server
        if isinstance(happening, BEGINS):
            under_way.setdefault(server, []).append(event)
        elif isinstance(happening, GOES_ON) and server in under_way:
            under_way[server].append(event)
        elif isinstance(happening, (*ENDS, *IS_ANOTHER)):
            parts = under_way.pop(server, None)
            if parts is not None and isinstance(happening, ENDS):
                found[event.id] = Incident(parts)
    return found


def event_texts(events: Sequence[Event], repeated: frozenset[str]) -> list[tuple[Event, str]]:
    """Those that are told, and how; those that are *repeated*, by their ids, one by one."""
    found = incidents([event for event in events if event.id not in repeated])
    parts = {part.id for incident in found.values() for part in incident.parts}
    beside = {id_: {"incident": incident.to_json()} for id_, incident in found.items()}
    told = (event for event in events if event.id not in parts)
    return [(event, event_text(event, **beside.get(event.id, {}))) for event in told]
