"""What a server says, as JSON-RPC messages: the one way in, for every transport.

It is taken for as much as it can be. An answer is always an answer, if only an error that says how
it is broken, because somebody waits for it; so is a question, for the server that waits.
"""

from __future__ import annotations

import json
from typing import Any

import attrs
from mcp_types import (
    INTERNAL_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    jsonrpc_message_adapter,
)
from pydantic_core import PydanticSerializationError

from ...model.json.intake import Measure, Steps, Unfit
from ...model.json.long.outlines import Outline, outlines
from ...model.json.long.partly import Partly, unfolded
from ...model.json.long.reading import Left, read
from ...model.json.long.value import LongValue
from ...model.json.spelling import is_long, spell
from ...model.text.brief import brief
from ...model.wire import dumps

ITEMS = 50
"""Of a list of messages that are looked at in one step."""
LONG = 64 * 1024
"""Bytes of a text that is not copied: it would be there twice."""
REFUSED = "emceepee/refused"
"""The method of what stands for a question that is not taken; its message says why."""


@attrs.frozen
class Said:
    """What has been made of a text."""

    messages: list[JSONRPCMessage]
    why_not: str | None = None
    """What is wrong with it, or with a part of it."""


def parse(text: bytes | bytearray, measure: Measure) -> Steps[Said]:
    """The messages of a text: one, or a list of them.

    Answers may have long texts and values in them; such a result is a `Partly`.
    """
    if len(text) <= LONG or text[:1].isspace():
        text = bytes(text).strip()
    if text[:1] not in b"{[\xef" or not text:  # most noise, and much cheaper than asking the parser
        return Said([], "is not JSON" if text else None)
    left: Left = []
    try:
        value = yield from read(text, measure, _decoder.decode, left)
    except Unfit as unfit:
        known = yield from outlines(text)
        why = f"the server's message {unfit}"
        return Said([it for each in known if (it := _in_place_of(each, why)) is not None], why)
    if left:
        value = yield from _with_strings(value)
    items = value if isinstance(value, list) else [value]
    messages: list[JSONRPCMessage] = []
    for n, item in enumerate(items, 1):
        if (message := _message(item)) is not None:
            if left and isinstance(message, JSONRPCResponse):
                message.result = Partly(message.result)
            messages.append(message)
        if n % ITEMS == 0:
            yield
    is_understood = 0 < len(messages) == len(items)
    return Said(messages, None if is_understood else "is not a JSON-RPC 2.0 message")


def _with_strings(value: Any) -> Steps[Any]:
    """The same, with nothing left where it is but in what has been answered."""
    if isinstance(value, list):
        for n, item in enumerate(value):
            value[n] = yield from _with_strings(item)
        return value
    if not isinstance(value, dict) or not isinstance(value.get("result"), dict):
        return (yield from unfolded(value))
    result = value.pop("result")
    for name, inner in result.items():
        given = inner.get("structuredContent") if type(inner) is dict else None
        if type(given) is LongValue and name != "result":  # which is that of a task
            inner["structuredContent"] = yield from given.said()
    return {**(yield from unfolded(value)), "result": result}


_decoder = json.JSONDecoder(parse_constant=lambda name: None)
"""Python's NaN and Infinity are not JSON; an answer that has them is still an answer."""


def _in_place_of(outline: Outline, why: str) -> JSONRPCMessage | None:
    """What stands for a message that is not taken, if somebody waits: here, or its server."""
    request_id, method = outline.get("id"), outline.get("method")
    if "method" in outline and "id" in outline:
        return None if request_id is None else _refused(request_id, why)
    if "method" in outline:
        return note(f"{why}: {method}")
    if request_id is None:
        return None
    return _error(request_id, why)


def _refused(request_id: str | int, why: str) -> JSONRPCMessage:
    return JSONRPCRequest(jsonrpc="2.0", id=request_id, method=REFUSED, params={"message": why})


def _error(request_id: str | int, why: str) -> JSONRPCMessage:
    error = ErrorData(code=INTERNAL_ERROR, message=why)
    return JSONRPCError(jsonrpc="2.0", id=request_id, error=error)


def note(said: str) -> JSONRPCMessage:
    """A line for the log of a server, in its words: it has said what is not taken."""
    params = {"level": "warning", "logger": "emceepee", "data": said}
    return JSONRPCNotification(jsonrpc="2.0", method="notifications/message", params=params)


def _message(data: Any) -> JSONRPCMessage | None:
    """*data* as a message, ``None`` if it is not one. An answer always is, or becomes an error."""
    if not isinstance(data, dict):
        return None
    if not ("method" in data or "result" in data or "error" in data or "id" in data):
        return None  # as the adapter would say, at a hundred times the cost
    number = data.get("id")
    if type(number) is float and number.is_integer():  # as some write every number
        data["id"] = number = int(number)
    # By exact type: True is an int, and the adapter takes a request of id 1.5 for a notification.
    if number is not None and type(number) not in (int, str):
        return None
    try:
        return jsonrpc_message_adapter.validate_python(data, by_name=False)
    except ValueError:
        if number is None:
            return None
    # Somebody waits for the answer to this id, and no other will come.
    if "method" in data:
        return _refused(number, "not a JSON-RPC 2.0 message")
    said = brief(data.get("error", data.get("result")), 200)
    return _error(number, f"invalid response from the server: {said}")


def long_part(message: JSONRPCMessage) -> str | None:
    """The name of what makes it too long to be written at once, if it is."""
    name = "result" if isinstance(message, JSONRPCResponse) else "params"
    return name if is_long(getattr(message, name, None)) else None


def dump(message: JSONRPCMessage) -> Steps[bytes]:
    """Its JSON, on one line."""
    if long_part(message) is None:
        try:
            return message.model_dump_json(by_alias=True, exclude_unset=True).encode()
        except PydanticSerializationError:
            # A lone surrogate is not UTF-8, but JSON can escape it; pydantic stops at depth 254.
            return dumps(message.model_dump(by_alias=True, exclude_unset=True)).encode()
    yield
    given = message.model_fields_set
    whole = {name: getattr(message, name) for name in type(message).model_fields if name in given}
    return (yield from spell(whole)).encode()
