"""Lines of standard input: each is a message, or (2025-03-26) a list of them, or refused.

It is read where it has something to read, so that it need not be made non-blocking for whoever has
it after us. Who does not read what is answered is not read from.
"""

from __future__ import annotations

import json
import os
import re
import sys
from typing import Any

import attrs
import trio
from anyio.streams.memory import MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCRequest,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError

from ...config.bounds import MAX_BATCH, MAX_UNANSWERED
from ...errors import internal
from ...model.json.intake import Measure, TooMuch, Unfit
from ...model.json.long.outlines import outlines
from ...model.json.long.reading import read
from ...model.wire import loads
from ...waits.firewall import Firewall
from ...waits.slices import in_slices
from ...web.wire import id_of_one
from ..mcp import Front
from .answering import Answering
from .writing import GONE, Out, Owed

CHUNK = 65536
EDGE = 512
"""Bytes kept of the beginning and the end of a line that is too long."""

_ID = rb'"id"\s*:\s*(0|[1-9]\d{0,14}|"[\w-]{1,100}")\s*'
_ID_FIRST = re.compile(rb'\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?' + _ID + rb"[,}]")
_ID_LAST = re.compile(rb"(?<!\\)" + _ID + rb"\}\s*$")


In = MemoryObjectSendStream[SessionMessage | Exception]


@attrs.define(eq=False)
class Reading:
    """What is read, and who is given it."""

    _front: Front
    _owed: Owed
    _answering: Answering
    _dispatcher: In
    _replies: Out
    _measure: Measure

    async def run(self) -> None:
        """Until input ends.

        Raises:
            OSError: it cannot be read.
        """
        line, too_long, limit = bytearray(), False, self._measure.size
        while chunk := await _chunk(sys.stdin.fileno()):
            *ends, beginning = chunk.split(b"\n")
            for end in ends:
                line += end
                if too_long or len(line) > limit:
                    message = f"message too long (limits.body {limit} bytes)"
                    await self._refuse(_id_at_an_edge(line), message)
                elif line.strip():
                    with Firewall("message_crashed", None, GONE) as wall:
                        await self._take(bytes(line))
                    if wall.log_id is not None:
                        bug = internal(wall.log_id)
                        await self._refuse(_id_at_an_edge(line), bug, INTERNAL_ERROR)
                line.clear()
                too_long = False
            line += beginning
            if len(line) > limit:
                too_long = True
                del line[EDGE:-EDGE]

    async def _take(self, line: bytes) -> None:
        try:
            data = await in_slices(read(line, self._measure, loads))
        except Unfit as unfit:
            # What is JSON that is too much may be a request; of what is not, no id is to be
            # believed.
            is_much = isinstance(unfit, TooMuch)
            known = id_of_one(await in_slices(outlines(line))) if is_much else None
            code = PARSE_ERROR if known is None else INVALID_REQUEST
            await self._refuse(known, f"the message {unfit}", code)
            return
        if isinstance(data, list) and len(data) > MAX_BATCH:
            await self._refuse(None, f"a batch of more than {MAX_BATCH} messages")
            return
        for item in data if isinstance(data, list) and data else [data]:
            await self._take_one(item)

    async def _take_one(self, item: Any) -> None:
        try:
            message = jsonrpc_message_adapter.validate_python(item, by_name=False)
        except ValidationError:
            message = None
        asked = isinstance(item, dict) and "method" in item
        request_id = item.get("id") if asked else None
        if asked and "id" in item and type(request_id) not in (int, str):
            # To the adapter, a request whose id is no id is a notification.
            message = request_id = None
        if message is None:
            if not asked or "id" in item:  # else a notification, which has nobody to be told
                await self._refuse(request_id, "not a JSON-RPC 2.0 message")
            return
        is_new = True
        if isinstance(message, JSONRPCRequest):
            if (ready := self._answering.at_once(message)) is not None:
                await self._replies.send(ready)
                return
            at_most = self._front.session.config.limits.calls + MAX_UNANSWERED
            if len(self._owed) >= at_most:
                # Who does not read this either is not read from until it does.
                said = f"more than {at_most} requests wait for their answers; read those first"
                await self._refuse(message.id, said)
                return
            is_new = not self._owed.has(message.id)
        if self._front.observe(message):
            return
        self._owed.read(message)
        # What becomes of two requests with one id is up to the dispatcher.
        if isinstance(message, JSONRPCRequest) and is_new and self._answering.takes(message):
            await self._answering.begin(message)
        else:
            await self._dispatcher.send(SessionMessage(message))

    async def _refuse(self, request_id: Any, message: str, code: int = INVALID_REQUEST) -> None:
        error = ErrorData(code=code, message=message)
        refusal = JSONRPCError(jsonrpc="2.0", id=request_id, error=error)
        await self._replies.send(SessionMessage(refusal))


async def _chunk(fd: int) -> bytes:
    while True:
        try:
            await trio.lowlevel.wait_readable(fd)
        except PermissionError:
            # A file, or /dev/null, for which nobody can wait; a disk may take its time.
            return await trio.to_thread.run_sync(os.read, fd, CHUNK, abandon_on_cancel=True)
        try:
            return os.read(fd, CHUNK)
        except BlockingIOError:
            pass  # somebody else has read it, or it was nothing


def _id_at_an_edge(line: bytes | bytearray) -> str | int | None:
    """The id of a request that is not parsed; every known client writes it first or last."""
    if found := _ID_FIRST.match(line) or _ID_LAST.search(line[-EDGE:]):
        request_id: str | int = json.loads(found[1])
        return request_id
    return None
