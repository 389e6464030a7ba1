"""Lines to standard output: who is owed which, and what is written now or once others are read.

One task writes. While it waits for something to write nobody is in front, and who has an answer
then writes it at once, which saves three steps of tasks. A client that does not read holds up that
task alone.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeAlias

import anyio
import attrs
import trio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.dispatcher import coerce_request_id
from mcp.shared.message import SessionMessage
from mcp_types import (
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    RequestId,
)

from ...waits.bell import Bell
from ...waits.firewall import Firewall
from ...web.wire import answer, dump, spelled

GONE = (anyio.BrokenResourceError, anyio.ClosedResourceError)
"""Nobody takes messages, or answers, any more."""


@attrs.frozen
class Spelled:
    """A message as it goes out, or what is left of it."""

    data: bytes
    owed: RequestId | None = None
    """The request that it answers."""


def line(said: str, owed: RequestId | None = None) -> Spelled:
    return Spelled(said.encode() + b"\n", owed)


async def line_of(message: JSONRPCMessage) -> Spelled | None:
    """What is written of it; nothing of a notification that cannot be."""
    if isinstance(message, JSONRPCResponse | JSONRPCError):
        return line((await answer(message))[0], message.id)
    if isinstance(message, JSONRPCRequest):
        return line(await spelled(message))
    with Firewall("notification_crashed"):
        return line(dump(message))
    return None


Out: TypeAlias = MemoryObjectSendStream[SessionMessage | Spelled]


@attrs.define(eq=False)
class Owed:
    """Requests that were read and whose answers are not written."""

    _ids: set[str | int] = attrs.field(factory=set, init=False)
    _none: Bell = attrs.field(factory=Bell, init=False)

    def __len__(self) -> int:
        return len(self._ids)

    def has(self, request_id: RequestId) -> bool:
        return coerce_request_id(request_id) in self._ids

    def read(self, message: JSONRPCMessage) -> None:
        if isinstance(message, JSONRPCRequest):
            self._ids.add(coerce_request_id(message.id))
        elif isinstance(message, JSONRPCNotification) and (
            message.method == "notifications/cancelled"
        ):
            # It will not be answered.
            self.forget((message.params or {}).get("requestId"))

    def forget(self, request_id: Any) -> None:
        if isinstance(request_id, str | int):
            self._ids.discard(coerce_request_id(request_id))
            if not self._ids:
                self._none.ring()

    async def wait_none(self) -> None:
        while self._ids:
            await self._none.wait()


@attrs.define(eq=False)
class Writing:
    """To a file, whose duplicate this is: closing it also undoes its being non-blocking."""

    _file: trio.lowlevel.FdStream
    _items: MemoryObjectReceiveStream[SessionMessage | Spelled]
    _out: Out
    """Where those come from."""
    _owed: Owed

    async def run(self, client: trio.CancelScope, failed: Callable[[OSError], None]) -> None:
        """Until nothing more comes, or nobody reads, with which the *client* has gone."""
        async with self._items, self._file:
            async for item in self._items:
                said = item if isinstance(item, Spelled) else await line_of(item.message)
                if said is None:
                    continue
                try:
                    await self._file.send_all(said.data)
                except trio.BrokenResourceError as error:
                    cause = error.__cause__
                    if isinstance(cause, OSError) and not isinstance(cause, BrokenPipeError):
                        failed(cause)
                    client.cancel("nobody reads our output")
                    return
                self._owed.forget(said.owed)

    def write_now(self, said: Spelled) -> bool:
        """Whether it is written; what there is no room for comes before all else."""
        if not self._items.statistics().tasks_waiting_receive:
            return False
        try:
            wrote = os.write(self._file.fileno(), said.data)
        except OSError:  # no room, or nobody reads: that is for the one who waits
            return False
        if wrote == len(said.data):
            self._owed.forget(said.owed)
        else:
            with suppress(anyio.WouldBlock, *GONE):  # it is cancelled
                self._out.send_nowait(Spelled(said.data[wrote:], said.owed))
        return True
