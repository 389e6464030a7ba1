"""Structured logs: one flat JSON object a line, on stderr.

Callers name the event and its fields; tool arguments, header and environment values and tokens
are never among them, and of the id of a ``session`` only its label is written. Lines of other
libraries pass through with their logger's name as the event. Nobody waits for whoever reads
them, and no peer can make them more, or longer, than there is room for: what a line is is in
`lines`, what happens too often in `frequency`, and who writes in `writer`;
`facts` are those that are told here.
"""

from __future__ import annotations

import atexit
import io
import logging
import os
import sys
import time
from collections.abc import Mapping
from typing import Any, Literal

from ..model.text.redact import label
from .frequency import Often
from .lines import OURS, JsonLines, LineFormatter, TextLines
from .writer import Stderr, Writer

Format = Literal["json", "text"]
Level = Literal["debug", "info", "warn", "error"]

STDERR = 2

_LEVELS: dict[str, int] = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warn": logging.WARNING,
    "error": logging.ERROR,
}

_ours = logging.getLogger(OURS)
_often = Often(time.monotonic)


def writes(level: Level) -> bool:
    """Whether lines of that level are; for who would do much for one that is not."""
    return _ours.isEnabledFor(_LEVELS[level])


def write(level: Level, event: str, **fields: Any) -> None:
    """Log *event*. Fields that are None are left out."""
    _log(level, event, fields)


def often(
    level: Level,
    event: str,
    *,
    sums: Mapping[str, int],
    latest: Mapping[str, Any] | None = None,
    **fields: Any,
) -> None:
    """Log what a peer may make happen as often as it likes: now, and then once a minute.

    Args:
        sums: Fields that are added up over what one line stands for.
        latest: Fields of which only the last is told.
        fields: Different ones have lines of their own; there must not be many.
    """
    if _ours.isEnabledFor(_LEVELS[level]):
        _log_all(_often.add(level, event, sums, latest or {}, fields))


def crash(event: str, error: BaseException, **fields: Any) -> None:
    """Log a bug with its traceback."""
    _ours.error(event, exc_info=error, extra={"fields": _said(fields)})


def _log(level: str, event: str, fields: Mapping[str, Any]) -> None:
    number = _LEVELS[level]
    if _ours.isEnabledFor(number):
        _ours.log(number, event, extra={"fields": _said(fields)})


def _log_all(lines: list[tuple[str, str, dict[str, Any]]]) -> None:
    for line in lines:
        _log(*line)


def _said(fields: Mapping[str, Any]) -> dict[str, Any]:
    said = {key: value for key, value in fields.items() if value is not None}
    if "session" in said:
        said["session"] = label(said["session"])
    return said


class _Handler(logging.Handler):
    def __init__(self, lines: LineFormatter) -> None:
        super().__init__()
        self.setFormatter(lines)
        self.writer = Writer(STDERR, self.dropped, _often.next_due, self.chores)

    def emit(self, record: logging.LogRecord) -> None:
        event = str(record.msg) if record.name == OURS else record.name
        if record.levelno <= logging.DEBUG or _often.allows(event):
            self.writer.put(self.line(record))
        else:
            often("warn", "log_lines_left_out", sums={"count": 1}, of=event)

    def line(self, record: logging.LogRecord) -> bytes:
        # What is left of a character that was cut in two is an escape of JSON's, too.
        return self.format(record).encode("utf-8", "backslashreplace") + b"\n"

    def dropped(self, count: int) -> bytes:
        record = _ours.makeRecord(OURS, logging.WARNING, "", 0, "log_lines_dropped", (), None)
        record.fields = {"count": count}
        return self.line(record)

    def chores(self, is_last: bool) -> None:
        _log_all(_often.flush(everything=is_last))


def configure(style: Format = "json", level: Level = "info", *, alone: bool = False) -> None:
    """Send everything to stderr, by a thread. Other libraries are heard from warnings on.

    Args:
        alone: The process is ours, so whatever else is written to stderr takes the same way.
    """
    handler = _Handler(JsonLines() if style == "json" else TextLines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(max(logging.WARNING, _LEVELS[level]))
    _ours.setLevel(_LEVELS[level])
    os.register_at_fork(after_in_child=handler.writer.start_over)
    atexit.register(handler.writer.close)
    if alone:
        _keep_stderr()
        sys.stderr = io.TextIOWrapper(
            Stderr(handler.writer), "utf-8", "backslashreplace", write_through=True
        )
        atexit.register(sys.stderr.flush)  # before the writer ends, which was registered first


def _keep_stderr() -> None:
    """If it was closed, the next file that is opened would take its place, and get the log."""
    try:
        os.fstat(STDERR)
    except OSError:
        null = os.open(os.devnull, os.O_WRONLY)
        if null != STDERR:
            os.dup2(null, STDERR)
            os.close(null)
