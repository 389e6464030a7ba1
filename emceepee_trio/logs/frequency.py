"""How often: what a peer can repeat as it likes is one line now, and then one a minute with sums.

All others are written as they come, up to a number of each event in a minute, so that no way that
nobody has thought of fills a disk. Knows nothing of where lines go.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

import attrs

EVERY = 60.0
"""Seconds between two lines of one kind."""
MOST = 1000
"""Kinds at once; of more than these only the events are told apart."""
AT_MOST = 1000
"""Lines of one event in a minute; how many more there would be is told in their place."""

Line = tuple[str, str, dict[str, Any]]
"""Level, event and fields."""


@attrs.define(eq=False)
class _Kind:
    """What has happened of one kind since its last line."""

    level: str
    event: str
    fields: Mapping[str, Any]
    due: float
    """When the next line may be written."""
    sums: dict[str, int] = attrs.field(factory=dict, init=False)
    latest: Mapping[str, Any] = attrs.field(factory=dict, init=False)

    def take(self, now: float) -> Line:
        line = (self.level, self.event, {**self.fields, **self.latest, **self.sums})
        self.sums, self.due = {}, now + EVERY
        return line


@attrs.define(eq=False)
class Often:
    """Used by any thread; answers with the lines that are to be written now."""

    clock: Callable[[], float]
    _kinds: dict[tuple[Any, ...], _Kind] = attrs.field(factory=dict, init=False)
    _written: dict[str, tuple[float, int]] = attrs.field(factory=dict, init=False)
    """Of each event: when its minute began, and the lines since."""
    _lock: threading.RLock = attrs.field(factory=threading.RLock, init=False)
    # Reentrant: collecting garbage may happen in here, too, and have something to say.

    def add(
        self,
        level: str,
        event: str,
        sums: Mapping[str, int],
        latest: Mapping[str, Any],
        fields: Mapping[str, Any],
    ) -> list[Line]:
        now = self.clock()
        with self._lock:
            key = (event, *fields.values())
            if key not in self._kinds and len(self._kinds) >= MOST:
                key, fields = (event,), {}
            kind = self._kinds.get(key)
            if kind is None:
                kind = self._kinds[key] = _Kind(level, event, fields, now)
            for name, number in sums.items():
                kind.sums[name] = kind.sums.get(name, 0) + number
            kind.latest = latest
            return [kind.take(now)] if kind.due <= now else []

    def allows(self, event: str) -> bool:
        """Count one more line of it."""
        now = self.clock()
        with self._lock:
            began, count = self._written.get(event, (now, 0))
            if now - began >= EVERY:
                began, count = now, 0
            self._written[event] = began, count + 1
            return count < AT_MOST

    def next_due(self) -> float | None:
        """Seconds until :meth:`flush` is wanted."""
        with self._lock:
            due = min((kind.due for kind in self._kinds.values()), default=None)
        return None if due is None else max(0.0, due - self.clock())

    def flush(self, *, everything: bool = False) -> list[Line]:
        """What is due. A kind that did not happen again is forgotten."""
        now = self.clock()
        lines = []
        with self._lock:
            for key, kind in list(self._kinds.items()):
                if not (kind.due <= now or everything):
                    continue
                if kind.sums:
                    lines.append(kind.take(now))
                else:
                    del self._kinds[key]
        return lines
