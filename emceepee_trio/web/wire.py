"""HTTP as the MCP endpoint needs it: bodies in, JSON and event streams out, over plain ASGI."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

import attrs
import trio
from mcp_types import INTERNAL_ERROR, ErrorData, JSONRPCError, JSONRPCRequest, JSONRPCResponse
from pydantic import BaseModel
from pydantic_core import PydanticSerializationError

from ..errors import internal
from ..model.json.intake import Steps
from ..model.json.long.outlines import Outline
from ..model.json.spelling import CHARACTERS, is_long, spell
from ..model.wire import dumps
from ..serving.asgi import GONE, Receive, Refused, Scope, Send
from ..waits.firewall import Firewall
from ..waits.slices import in_slices

Headers: TypeAlias = Mapping[str, str]

JSON, SSE = "application/json", "text/event-stream"
EVENT_STREAM = [
    (b"content-type", SSE.encode()),
    (b"cache-control", b"no-store, no-transform"),
    (b"x-accel-buffering", b"no"),
]
_SEPARATORS = (("\x85", "\\u0085"), ("\u2028", "\\u2028"), ("\u2029", "\\u2029"))
KEEP_ALIVE = b": keep-alive\n\n"
KEEP_ALIVE_EVERY = 15.0
"""Seconds of silence after which a comment shows whether the peer is still there."""


@attrs.frozen(eq=False)
class HttpRequest:
    """One, whose headers were read: what came with it, and the way to answer."""

    scope: Scope
    headers: Headers
    receive: Receive
    send: Send
    principal: str

    @property
    def look(self) -> Callable[[], bool] | None:
        """Says without a checkpoint whether its client is gone; servers of others have none."""
        look: Callable[[], bool] | None = self.scope.get("extensions", {}).get(GONE)
        return look


def headers_of(scope: Scope) -> dict[str, str]:
    """By lower-case name; repeated ones are one list, as HTTP has it."""
    headers: dict[str, str] = {}
    for raw_name, raw_value in scope["headers"]:
        name, value = raw_name.decode("latin-1"), raw_value.decode("latin-1")
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return headers


async def read_body(receive: Receive, limit: int) -> bytes:
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGone
        body += message.get("body", b"")
        if len(body) > limit:
            raise Refused(413, f"body too long (limits.body {limit} bytes)")
        if not message.get("more_body"):
            return bytes(body)


class ClientGone(Exception):
    """The connection was closed before the request was complete."""


@asynccontextmanager
async def while_connected(receive: Receive) -> AsyncGenerator[None]:
    """Do something, until the client is gone."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_cancel_when_gone, receive, nursery.cancel_scope)
        yield
        nursery.cancel_scope.cancel("answered")


async def _cancel_when_gone(receive: Receive, scope: trio.CancelScope) -> None:
    await until_gone(receive)
    scope.cancel("client is gone")


async def until_gone(receive: Receive) -> None:
    """Wait for the end of the connection; the body was read."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def send_json(
    send: Send, status: int, body: Any, headers: Iterable[tuple[bytes, bytes]] = ()
) -> None:
    data = body.encode() if isinstance(body, str) else dumps(body).encode()
    await send_bytes(send, status, data, [(b"content-type", b"application/json"), *headers])


async def send_bytes(
    send: Send, status: int, data: bytes = b"", headers: Iterable[tuple[bytes, bytes]] = ()
) -> None:
    length = (b"content-length", b"%d" % len(data))
    await send({"type": "http.response.start", "status": status, "headers": [*headers, length]})
    await send({"type": "http.response.body", "body": data})


async def start_events(send: Send, headers: Iterable[tuple[bytes, bytes]] = ()) -> None:
    """The head of a stream, which goes out at once: behind it nothing may be said for long."""
    await send({"type": "http.response.start", "status": 200, "headers": [*EVENT_STREAM, *headers]})
    await send_event(send, b"")


async def send_event(send: Send, data: bytes) -> None:
    await send({"type": "http.response.body", "body": data, "more_body": True})


def event(data: str, event_id: str | None = None, retry: int | None = None) -> Steps[bytes]:
    """One server-sent event. JSON has no line breaks, so one data line is enough."""
    lines = [] if event_id is None else [f"id: {event_id}"]
    if retry is not None:
        lines.append(f"retry: {retry}")
    lines.append("event: message")
    lines.append("data: ")
    parts = ["\n".join(lines).encode()]
    for start in range(0, len(data), CHARACTERS):
        if start:
            yield
        part = data[start : start + CHARACTERS]
        # Some clients take these for line breaks, which in JSON can only stand in a string.
        for separator, escape in _SEPARATORS:
            if separator in part:
                part = part.replace(separator, escape)
        parts.append(part.encode())
    return b"".join((*parts, b"\n\n"))


def dump(message: BaseModel) -> str:
    """A JSON-RPC message as it goes out."""
    try:
        return message.model_dump_json(by_alias=True, exclude_unset=True)
    except PydanticSerializationError:  # half a surrogate pair in what a backend said
        return dumps(message.model_dump(by_alias=True, exclude_unset=True))


def id_of_one(known: Sequence[Outline]) -> str | int | None:
    """Of the single request that is not taken; None if it is anything else."""
    return known[0].get("id") if len(known) == 1 and "method" in known[0] else None


async def answer(message: JSONRPCResponse | JSONRPCError) -> tuple[str, bool]:
    """An answer as it goes out, and whether it is itself: what cannot be written is an error."""
    with Firewall("answer_crashed") as wall:
        if isinstance(message, JSONRPCResponse) and is_long(message.result):
            whole = {"jsonrpc": "2.0", "id": message.id, "result": message.result}
            return await in_slices(spell(whole)), True
        return dump(message), True
    return crashed(message.id, str(wall.log_id)), False


async def spelled(message: JSONRPCRequest) -> str:
    """A request of ours as it goes out; what it asks may be long."""
    if is_long(message.params):
        return await in_slices(spell(message.model_dump(by_alias=True, exclude_unset=True)))
    return dump(message)


def crashed(request_id: str | int | None, log_id: str) -> str:
    """What is answered where we have a bug."""
    error = ErrorData(code=INTERNAL_ERROR, message=internal(log_id))
    return dump(JSONRPCError(jsonrpc="2.0", id=request_id, error=error))


def accepts(headers: Headers, *wanted: str) -> bool:
    """Whether `Accept` names each of *wanted*, or a wildcard that covers it."""
    given = {part.split(";")[0].strip().lower() for part in headers.get("accept", "").split(",")}
    return all(
        kind in given or "*/*" in given or f"{kind.split('/')[0]}/*" in given for kind in wanted
    )
