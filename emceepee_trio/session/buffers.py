"""Notifications and logs of backends, per server, the newest of each within their bounds."""

from __future__ import annotations

import heapq
from collections import Counter, deque
from collections.abc import Callable, Iterable
from itertools import accumulate, islice
from typing import Any

import attrs

from ..config.bounds import MAX_LIST_BYTES, MAX_NOTIFICATIONS_BYTES, MAX_SAID
from ..model.events import Json
from ..model.json.intake import Steps
from ..model.json.weight import beginning, weigh
from ..model.wire import dumps

LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
"""Of RFC 5424, from the least to the worst."""

SERVERS = 200
"""Names remembered; what is kept of the one that was silent longest makes room."""


@attrs.frozen
class NotificationEntry:
    """A notification."""

    server: str
    method: str
    params: Json
    timestamp: str
    too_large: bool | None = None
    """Its params were; they are not kept."""
    size: int = attrs.field(init=False)

    @size.default
    def _measured(self) -> int:
        return weigh((self.method, self.params))

    @classmethod
    def of(cls, server: str, method: str, params: Json, timestamp: str) -> NotificationEntry:
        heard = cls(server, method, params, timestamp)
        if heard.size <= MAX_NOTIFICATIONS_BYTES:
            return heard
        return cls(server, method[:MAX_SAID], None, timestamp, True)


@attrs.frozen
class LogEntry:
    """A log entry."""

    server: str
    source: str
    level: str
    logger: str | None
    data: Json
    timestamp: str


def cut(data: Json, limit: int) -> Json:
    """*data*, or its beginning if it is too long."""
    if isinstance(data, str):
        start = data[: limit + 1]
    else:
        # Written, it can be several times as long or as short as it weighs.
        start = dumps(data) if weigh(data) <= 3 * limit else beginning(data, limit)
    written = start.encode("utf-8", "replace")
    return data if len(written) <= limit else written[:limit].decode("utf-8", "ignore") + "…"


def _fitting(sizes: Iterable[int], room: int) -> int:
    """For how many there is, beginning with the first."""
    return sum(size <= room for size in accumulate(sizes))


def _when(entry: LogEntry) -> str:
    return entry.timestamp


def at_least(level: str) -> Callable[[str], bool]:
    """A test for *level* and worse. A level nobody knows counts as info."""
    floor = LEVELS.index(level)
    return lambda other: LEVELS.index(other if other in LEVELS else "info") >= floor


@attrs.define(eq=False)
class Buffers:
    notifications: int
    """Kept per server, fewer if they are large."""
    logs: int
    """Kept per server."""
    log_bytes: int
    """Of one entry's data; the rest is cut off, and marked."""
    listeners: set[Callable[[LogEntry], None]] = attrs.field(factory=set, init=False)
    """Shown every log entry as it comes."""
    _heard: dict[str, deque[NotificationEntry]] = attrs.field(factory=dict, init=False)
    _heard_bytes: Counter[str] = attrs.field(factory=Counter, init=False)
    _logged: dict[str, deque[LogEntry]] = attrs.field(factory=dict, init=False)
    _dropped: dict[str, int] = attrs.field(factory=dict, init=False)

    def hear(self, notification: NotificationEntry) -> None:
        server = notification.server
        kept, gone = self._of(self._heard, server)
        if gone is not None:
            del self._heard_bytes[gone]
        kept.append(notification)
        self._heard_bytes[server] += notification.size
        while len(kept) > self.notifications or (
            self._heard_bytes[server] > MAX_NOTIFICATIONS_BYTES and len(kept) > 1
        ):
            self._heard_bytes[server] -= kept.popleft().size

    def log(self, entry: LogEntry) -> None:
        kept, gone = self._of(self._logged, entry.server)
        if gone is not None:
            self._dropped.pop(gone, None)
        entry = attrs.evolve(entry, data=cut(entry.data, self.log_bytes))
        kept.append(entry)
        if len(kept) > self.logs:
            kept.popleft()
            self._dropped[entry.server] = self._dropped.get(entry.server, 0) + 1
        for listener in self.listeners:
            listener(entry)

    @staticmethod
    def _of(buffers: dict[str, deque[Any]], server: str) -> tuple[deque[Any], str | None]:
        """The buffer of *server*, from now on the last to go, and whose had to go for it."""
        gone = None
        if server not in buffers and len(buffers) >= SERVERS:
            gone = next(iter(buffers))
            del buffers[gone]
        buffers[server] = buffers.pop(server, deque())
        return buffers[server], gone

    def take_notifications(
        self, server: str | None, limit: int | None, room: int = MAX_LIST_BYTES
    ) -> list[NotificationEntry]:
        """The oldest *limit* for which there is *room*, removed; one in any case."""
        among = self._among(self._heard, server).values()
        in_order = heapq.merge(*among, key=lambda entry: entry.timestamp)
        found: list[NotificationEntry] = []
        for notification in islice(in_order, limit):
            room -= notification.size
            if room < 0 and found:
                break
            found.append(notification)
        for notification in found:
            # Of each server it is the oldest that is left.
            self._heard[notification.server].popleft()
            self._heard_bytes[notification.server] -= notification.size
        return found

    def count_notifications(self, server: str | None) -> int:
        return sum(map(len, self._among(self._heard, server).values()))

    def take_logs(
        self,
        wanted: Callable[[LogEntry], bool],
        server: str | None,
        limit: int,
        *,
        clear: bool,
        room: int = MAX_LIST_BYTES,
    ) -> Steps[tuple[list[LogEntry], int]]:
        """The newest *limit* that are *wanted* and for which there is *room*, oldest first.

        And how many older ones are gone.

        With *clear*, whatever matched is forgotten, also what did not fit, and is counted as gone.
        """
        matching: list[list[LogEntry]] = []
        for kept in [list(kept) for kept in self._among(self._logged, server).values()]:
            matching.append([entry for entry in kept if wanted(entry)])
            yield
        newest_first = heapq.merge(*map(reversed, matching), key=_when, reverse=True)
        found = list(islice(newest_first, limit))
        found = found[: _fitting((weigh(entry.data) + 200 for entry in found), room)][::-1]
        dropped = sum(count for name, count in self._dropped.items() if server in (None, name))
        if clear:
            dropped += sum(map(len, matching)) - len(found)
            for name in [name for name in self._dropped if server in (None, name)]:
                del self._dropped[name]
            for entries in matching:
                self._forget(entries)
                yield
        return found, dropped

    def _forget(self, entries: list[LogEntry]) -> None:
        """*entries*, of one server, as far as they are still there."""
        kept = self._logged.get(entries[0].server) if entries else None
        if kept is not None:
            gone = set(map(id, entries))
            rest = [entry for entry in kept if id(entry) not in gone]
            kept.clear()
            kept.extend(rest)

    def tail(self, server: str, source: str, limit: int) -> list[str]:
        """The last lines from one source, forgetting nothing."""
        newest_first = reversed(self._logged.get(server, ()))
        from_source = (str(entry.data) for entry in newest_first if entry.source == source)
        return list(islice(from_source, limit))[::-1]

    @staticmethod
    def _among(buffers: dict[str, deque[Any]], server: str | None) -> dict[str, deque[Any]]:
        return {name: kept for name, kept in buffers.items() if server in (None, name)}
