"""Structured logs: one flat JSON object a line, on stderr.

Callers name the event and its fields; tool arguments, header and environment values and tokens
are never among them, and of the id of a ``session`` only its label is written. Lines of other
libraries pass through with their logger's name as the event.
"""

from __future__ import annotations

import json
import logging
import sys
from typing import Any, Literal

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
