"""Lines of bytes, and the JSON-RPC messages on them. Knows no pipe and no process.

What a server writes is taken for as much as it can be: an answer is always an answer, if only an
error that says how it is broken, because somebody waits for it.
"""

from __future__ import annotations

import json
import reprlib
from collections.abc import Iterator
from typing import Any

import attrs
from mcp.shared.message import SessionMessage
from mcp_types import INTERNAL_ERROR, ErrorData, JSONRPCError, jsonrpc_message_adapter
from pydantic_core import PydanticSerializationError

from ..model.wire import dumps


@attrs.define(eq=False)
class Lines:
    """Cuts chunks into lines, longer ones into pieces of *most* bytes. Searches each byte once."""

    _most: int
    _open: bytearray = attrs.field(factory=bytearray, init=False)

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        *lines, tail = chunk.split(b"\n")
        for line in lines:
            yield from self._extend(line)
            yield self.rest()
        yield from self._extend(tail)

    def rest(self) -> bytes:
        line = bytes(self._open)
        self._open.clear()
        return line

    def _extend(self, part: bytes) -> Iterator[bytes]:
        self._open += part
        while len(self._open) > self._most:
            yield bytes(self._open[: self._most])
            del self._open[: self._most]


def text(line: bytes) -> str:
    return line.removesuffix(b"\r").decode(errors="replace")


def parse(line: bytes) -> tuple[list[SessionMessage], bool]:
    """The messages of a line, and whether all of it was understood."""
    line = line.strip()
    if line[:1] not in b"{[" or not line:  # most noise, and much cheaper than asking the parser
        return [], not line
    try:
        value = _decoder.decode(line.decode())
    except (ValueError, RecursionError):
        return [], False
    items = value if isinstance(value, list) else [value]
    messages = [message for item in items if (message := _message(item)) is not None]
    return messages, 0 < len(messages) == len(items)


_decoder = json.JSONDecoder(parse_constant=lambda name: None)
"""Python's NaN and Infinity are not JSON; an answer that has them is still an answer."""


def _message(data: Any) -> SessionMessage | None:
    """*data* as a message, ``None`` if it is not one. An answer always is, or becomes an error."""
    if not isinstance(data, dict):
        return None
    number = data.get("id")
    # By exact type: True is an int, and the adapter takes a request of id 1.5 for a notification.
    if number is not None and type(number) not in (int, str):
        return None
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_python(data, by_name=False))
    except ValueError:
        if number is None or "method" in data:
            return None
    # Somebody waits for the answer to this id, and no other will come.
    said = _brief.repr(data.get("error", data.get("result")))
    error = ErrorData(code=INTERNAL_ERROR, message=f"invalid response from the server: {said}")
    return SessionMessage(JSONRPCError(jsonrpc="2.0", id=number, error=error))


_brief = reprlib.Repr()
_brief.maxstring = 200  # all else that it repeats is bounded anyway, in depth and in length


def dump(message: SessionMessage) -> bytes:
    """The line of a message, with its end."""
    try:
        said = message.message.model_dump_json(by_alias=True, exclude_unset=True)
    except PydanticSerializationError:
        # A lone surrogate is not UTF-8, but JSON can escape it; pydantic stops at a depth of 254.
        said = dumps(message.message.model_dump(by_alias=True, exclude_unset=True))
    return said.encode() + b"\n"
