"""How a record becomes a line: one flat JSON object, or text; none longer than it should be.

What peers wrote moves neither lines nor terminals.
"""

from __future__ import annotations

import json
import logging
import re
import traceback
from types import TracebackType
from typing import Any

from ..config.bounds import MAX_LOG_FIELD, MAX_LOG_TRACEBACK
from ..model.text.show import escaped
from ..model.wire import timestamp

OURS = "emceepee_trio"
"""The logger of our own lines."""
FRAMES = 60
"""Of each exception, the innermost; there are a thousand of a recursion without end."""

_NAMES = {
    logging.DEBUG: "debug",
    logging.INFO: "info",
    logging.WARNING: "warn",
    logging.ERROR: "error",
    logging.CRITICAL: "error",
}


class LineFormatter(logging.Formatter):
    """What both styles share. Never fails: a log has no other log to tell of it."""

    def format(self, record: logging.LogRecord) -> str:
        try:
            return self.line(_flat(self, record))
        except Exception as error:  # noqa: BLE001 - whatever is in a record, or in its arguments
            fields = {"of": cut(str(record.msg)), "error": type(error).__name__}
            return self.line(_head("error", "log_line_failed", record.created) | fields)

    def line(self, fields: dict[str, Any]) -> str:
        raise NotImplementedError

    def formatException(  # noqa: N802 - logging's name
        self,
        ei: tuple[type[BaseException], BaseException, TracebackType | None]
        | tuple[None, None, None],
    ) -> str:
        _, error, _ = ei
        return cut("".join(traceback.format_exception(error, limit=-FRAMES)), MAX_LOG_TRACEBACK)


class JsonLines(LineFormatter):
    def line(self, fields: dict[str, Any]) -> str:
        return escaped(json.dumps(fields, default=str, ensure_ascii=False))


class TextLines(LineFormatter):
    def line(self, fields: dict[str, Any]) -> str:
        head = f"{fields.pop('timestamp')} {fields.pop('level'):5} {escaped(fields.pop('event'))}"
        # The lines of a traceback are indented: none of them looks like one of ours.
        below = [f"    {escaped(part)}" for part in fields.pop("traceback", "").splitlines()]
        line = " ".join([head, *(f"{key}={_word(value)}" for key, value in fields.items())])
        return "\n".join([line, *below])


def _word(value: object) -> str:
    """A value of a field as text that ends where it seems to."""
    if isinstance(value, str) and re.fullmatch(r"[^\s\"=]+", value):
        return escaped(value)
    return escaped(json.dumps(value, default=str, ensure_ascii=False))


def _head(level: str, event: str, created: float) -> dict[str, Any]:
    return {"level": level, "event": event, "timestamp": timestamp(created)}


def _flat(formatter: logging.Formatter, record: logging.LogRecord) -> dict[str, Any]:
    level = _NAMES.get(record.levelno, record.levelname.lower())
    if record.name == OURS:
        line = _head(level, cut(record.getMessage()), record.created)
    else:
        line = _head(level, cut(record.name), record.created)
        line["message"] = cut(record.getMessage())
    for key, value in getattr(record, "fields", {}).items():
        line[key] = _bounded(value)
    if record.exc_info:
        line["traceback"] = formatter.formatException(record.exc_info)
    return line


def _bounded(value: Any) -> Any:
    if isinstance(value, str):
        return cut(value)
    if value is None or isinstance(value, bool | float):
        return value
    if isinstance(value, int):
        return value if value.bit_length() < 64 else f"an integer of {value.bit_length()} bits"
    text = json.dumps(value, default=str, ensure_ascii=False)
    return value if len(text) <= MAX_LOG_FIELD else cut(text)


def cut(text: str, at_most: int = MAX_LOG_FIELD) -> str:
    """Its beginning and its end, with how much is missing in between."""
    if len(text) <= at_most:
        return text
    mark = f" … {len(text) - at_most} characters more … "
    tail = at_most // 4
    return text[: at_most - tail] + mark + text[-tail:]
