"""Structured logs: one flat JSON object a line, on stderr.

Callers name the event and its fields; tool arguments, header and environment values and tokens
are never among them, and of the id of a ``session`` only its label is written. Lines of other
libraries pass through with their logger's name as the event.
"""

from __future__ import annotations

import json
import logging
import sys
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Literal

import attrs

from .model.redact import label
from .model.wire import timestamp

Format = Literal["json", "text"]
Level = Literal["debug", "info", "warn", "error"]

_LEVELS: dict[Level, int] = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warn": logging.WARNING,
    "error": logging.ERROR,
}
_NAMES = {number: name for name, number in _LEVELS.items()} | {logging.CRITICAL: "error"}

_ours = logging.getLogger("emceepee_trio")

EVERY = 60.0
"""Seconds between two lines of what happens often."""
MOST_OFTEN = 1000
"""Different things that happen often; of more than these, only the events are told apart."""


def write(level: Level, event: str, **fields: Any) -> None:
    """Log *event*. Fields that are None are left out."""
    number = _LEVELS[level]
    if _ours.isEnabledFor(number):
        _ours.log(number, event, extra={"fields": _said(fields)})


def crash(event: str, error: BaseException, **fields: Any) -> None:
    """Log a bug with its traceback."""
    _ours.error(event, exc_info=error, extra={"fields": _said(fields)})


def _said(fields: dict[str, Any]) -> dict[str, Any]:
    said = {key: value for key, value in fields.items() if value is not None}
    if "session" in said:
        said["session"] = label(said["session"])
    return said


def often(
    level: Level,
    event: str,
    *,
    sums: Mapping[str, int],
    latest: Mapping[str, Any] | None = None,
    **fields: Any,
) -> None:
    """Log what a peer may make happen as often as it likes: now, and from then on once a minute.

    Args:
        sums: Fields that are added up over what one line stands for.
        latest: Fields of which only the last is told.
        fields: Different ones have lines of their own; there must not be many.
    """
    if _ours.isEnabledFor(_LEVELS[level]):
        _often.add(level, event, sums, latest or {}, fields)


@attrs.define(eq=False)
class _Sum:
    """What has happened of one kind since its last line."""

    level: Level
    event: str
    fields: Mapping[str, Any]
    due: float
    """When the next line may be written."""
    sums: dict[str, int] = attrs.field(factory=dict, init=False)
    latest: Mapping[str, Any] = attrs.field(factory=dict, init=False)

    def take(self, now: float) -> _Line:
        line = (self.level, self.event, {**self.fields, **self.latest, **self.sums})
        self.sums, self.due = {}, now + EVERY
        return line


_Line = tuple[Level, str, dict[str, Any]]


@attrs.define(eq=False)
class _Often:
    """All of them. Used by any thread."""

    write: Callable[..., None]
    clock: Callable[[], float]
    _kinds: dict[tuple[Any, ...], _Sum] = attrs.field(factory=dict, init=False)
    _lock: threading.RLock = attrs.field(factory=threading.RLock, init=False)

    def add(
        self,
        level: Level,
        event: str,
        sums: Mapping[str, int],
        latest: Mapping[str, Any],
        fields: Mapping[str, Any],
    ) -> None:
        now = self.clock()
        with self._lock:
            kind = (event, *fields.values())
            if kind not in self._kinds and len(self._kinds) >= MOST_OFTEN:
                kind, fields = (event,), {}
            entry = self._kinds.setdefault(kind, _Sum(level, event, fields, now))
            for name, number in sums.items():
                entry.sums[name] = entry.sums.get(name, 0) + number
            entry.latest = latest
            lines = [entry.take(now)] if entry.due <= now else []
        self._tell(lines)

    def flush(self, *, all_of_it: bool = False) -> None:
        """Tell what is due; what did not happen again is forgotten."""
        now = self.clock()
        lines = []
        with self._lock:
            for kind, entry in list(self._kinds.items()):
                if entry.due <= now or all_of_it:
                    if entry.sums:
                        lines.append(entry.take(now))
                    else:
                        del self._kinds[kind]
        self._tell(lines)

    def _tell(self, lines: list[_Line]) -> None:
        for level, event, fields in lines:
            self.write(level, event, **fields)


_often = _Often(write, time.monotonic)


class _JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return json.dumps(_flat(self, record), default=str, ensure_ascii=False)


class _TextLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = _flat(self, record)
        head = f"{line.pop('timestamp')} {line.pop('level'):5} {line.pop('event')}"
        return " ".join([head, *(f"{key}={value}" for key, value in line.items())])


def _flat(formatter: logging.Formatter, record: logging.LogRecord) -> dict[str, Any]:
    ours = record.name == _ours.name
    line: dict[str, Any] = {
        "level": _NAMES.get(record.levelno, record.levelname.lower()),
        "event": record.getMessage() if ours else record.name,
        "timestamp": timestamp(record.created),
    }
    if not ours:
        line["message"] = record.getMessage()
    line |= getattr(record, "fields", {})
    if record.exc_info:
        line["traceback"] = formatter.formatException(record.exc_info)
    return line


def configure(style: Format = "json", level: Level = "info") -> None:
    """Send everything to stderr. Other libraries are heard from warnings on."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_JsonLines() if style == "json" else _TextLines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(max(logging.WARNING, _LEVELS[level]))
    _ours.setLevel(_LEVELS[level])
