"""Notifications and logs of backends, per server, the newest of each within their bounds."""

from __future__ import annotations

import heapq
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from itertools import accumulate, islice
from typing import Any

import attrs

from ..backend.connections.callbacks import LogLine
from ..config.bounds import KIB, MAX_LIST_BYTES, MAX_NOTIFICATIONS_BYTES, MAX_SAID
from ..model.events import Json
from ..model.json.intake import Steps, finished
from ..model.json.weight import beginning, weigh
from ..model.wire import dumps, to_snake

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

    @classmethod
    def of(cls, line: LogLine, timestamp: str) -> LogEntry:
        return cls(line.server, line.source, line.level, line.logger, line.data, timestamp)


def cut(data: Json, limit: int) -> Json:
    """*data*, or its beginning if it is too long."""
    if isinstance(data, str):
        start = data[: limit + 1]
    else:
        # Written, it can be several times as long or as short as it weighs.
        start = dumps(data) if weigh(data) <= 3 * limit else beginning(data, limit)
    written = start.encode("utf-8", "replace")
    return data if len(written) <= limit else written[:limit].decode("utf-8", "ignore") + "…"


def _fitting(entries: Iterable[NotificationEntry | LogEntry], room: int) -> Steps[int]:
    """Of how many the JSON has *room*, beginning with the first; that one in any case."""
    fits = 0
    for size in accumulate(map(_size, entries)):
        if size > room and fits:
            break
        fits += 1
        yield
    return fits


def _size(entry: NotificationEntry | LogEntry) -> int:
    """Of its JSON, or about that if it is long."""
    payload = entry.params if isinstance(entry, NotificationEntry) else entry.data
    if (size := weigh(payload)) > LONG:
        return size
    return len(dumps(to_snake(entry)).encode()) + 1


LONG = 64 * KIB
"""Bytes of what is not written down to see how long it is."""


def _when(entry: LogEntry) -> str:
    return entry.timestamp


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

    @contextmanager
    def heard_by(self, listener: Callable[[LogEntry], None]) -> Generator[None]:
        """Show it every log entry as it comes, meanwhile."""
        self.listeners.add(listener)
        try:
            yield
        finally:
            self.listeners.discard(listener)

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
        oldest = list(islice(in_order, limit))
        found = oldest[: finished(_fitting(oldest, room))]
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
        until: str | None = None,
        but: int = 0,
    ) -> Steps[tuple[list[LogEntry], int, int]]:
        """Of the newest *limit* that are *wanted* those for which there is *room*, oldest first.

        And how many older ones are gone, and for how many of these there was no room. None is newer
        than *until*; *but* so many, the first of these, have been shown.

        With *clear*, whatever else matched is forgotten, also what is shown, and what is beyond the
        limit, which is counted as gone.
        """
        matching: list[list[LogEntry]] = []
        for kept in [list(kept) for kept in self._among(self._logged, server).values()]:
            among = kept if until is None else [each for each in kept if _when(each) <= until]
            matching.append([entry for entry in among if wanted(entry)])
            yield
        newest_first = heapq.merge(*map(reversed, matching), key=_when, reverse=True)
        within = list(islice(newest_first, but, but + limit))
        fits = yield from _fitting(within, room)
        found, rest = within[:fits], within[fits:]
        dropped = sum(count for name, count in self._dropped.items() if server in (None, name))
        if clear:
            dropped += sum(map(len, matching)) - len(within)
            for name in [name for name in self._dropped if server in (None, name)]:
                del self._dropped[name]
            stay = set(map(id, rest))
            for entries in matching:
                self._forget([entry for entry in entries if id(entry) not in stay])
                yield
        return found[::-1], dropped, len(rest)

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
