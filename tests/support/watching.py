"""What must be true of everything that comes back, whatever was sent; and of what is logged."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

INTERNAL_ERROR = -32603


def strict(data: bytes | str) -> Any:
    """JSON as the standard has it; fails of anything else."""
    text = data.decode() if isinstance(data, bytes) else data
    return json.loads(text, parse_constant=_no_constant, parse_float=_finite)


def _no_constant(name: str) -> None:
    raise AssertionError(f"{name} is not JSON")


def _finite(digits: str) -> float:
    number = float(digits)
    assert abs(number) != float("inf"), f"{digits[:20]} is no number to others"
    return number


_ID = re.compile(
    rb'"id"\s*:\s*("(?:[^"\\\x00-\x1f]|\\["\\/bfnrt]|\\u[0-9a-f]{4})*"|-?(?:0|[1-9]\d{0,4299})'
    rb"(?:\.0{1,9}|[eE]\+?0?\d)?)\s*[,}]"
)


def ids_in(data: bytes) -> list[Any]:
    """What may be an id in a line or a body, whether that can be parsed as a whole or not."""
    found = map(json.loads, _ID.findall(data.decode("utf-8", "replace").encode()))
    # Some write a whole number as 1.0 or 1e+06, and are understood where only the id is read.
    return [int(each) if isinstance(each, float) else each for each in found]


def check_message(message: Any, ids: Sequence[Any]) -> Mapping[str, Any]:
    """A JSON-RPC message of ours, and none that tells of a bug; an answer to one of *ids*."""
    assert isinstance(message, dict), message
    assert message["jsonrpc"] == "2.0"
    keys = message.keys() - {"jsonrpc"}
    if "method" in keys:
        assert keys <= {"method", "params", "id"}, keys
        assert isinstance(message["method"], str)
        assert isinstance(message.get("params", {}), dict)
        return message
    assert keys in ({"id", "result"}, {"id", "error"}), keys
    is_known = any(message["id"] == i and type(message["id"]) is type(i) for i in ids)
    assert is_known or (message["id"] is None and "error" in keys), message["id"]
    assert message["id"] is None or type(message["id"]) in (int, str), message["id"]
    if "error" in keys:
        error = message["error"]
        assert error.keys() <= {"code", "message", "data"}, error
        assert type(error["code"]) is int
        assert error["message"]
        assert isinstance(error["message"], str)
        assert error["code"] != INTERNAL_ERROR, error
    else:
        assert isinstance(message["result"], dict), message
        check_context(message["result"])
    return message


def check_context(result: Mapping[str, Any]) -> None:
    """Every text that looks like JSON of ours is."""
    content = result.get("content")
    for block in content if isinstance(content, list) else ():
        text = block.get("text") if isinstance(block, dict) else None
        if isinstance(text, str) and text.startswith(
            ('{"events', '{"pending', '{"error', '{"triggers')
        ):
            strict(text)


class _Bugs(logging.Handler):
    """Keeps what tells of a bug."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno >= logging.ERROR or record.exc_info:
            formatter = logging.Formatter()
            trace = formatter.formatException(record.exc_info) if record.exc_info else ""
            self.found.append(f"{record.name}: {record.getMessage()}\n{trace}")


@contextmanager
def no_bugs() -> Generator[None]:
    """Nothing is logged meanwhile as an error, nor with a traceback."""
    bugs, root = _Bugs(), logging.getLogger()
    root.addHandler(bugs)
    try:
        yield
    finally:
        root.removeHandler(bugs)
    assert not bugs.found, "\n".join(bugs.found)
