"""Requests of the one client that are under way, and those whose answers are made here.

Calls of tools, of which a client makes the most by far, have a task each; so has whatever else
the SDK's dispatcher is given, which for those does three times the work. What needs no thought
is answered where it is read.
"""

from __future__ import annotations

from typing import Any

import attrs
import trio
from mcp.shared.message import SessionMessage
from mcp_types import (
    CONNECTION_CLOSED,
    PROTOCOL_VERSION_META_KEY,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCRequest,
    JSONRPCResponse,
)

from ...waits.firewall import Firewall, begin
from ..mcp import Front
from ..progress import progress_note
from .writing import GONE, Out, Spelled, Writing, line, line_of


@attrs.define(eq=False)
class Answering:
    """Answers what the dispatcher need not see, of a client that has initialized."""

    _front: Front
    _out: Out
    _writing: Writing
    _nursery: trio.Nursery
    """Of the calls."""
    _under_way: set[trio.CancelScope] = attrs.field(factory=set, init=False)
    _refused: set[trio.CancelScope] = attrs.field(factory=set, init=False)
    """Those that were cancelled for the end of input, and not by their client."""

    def at_once(self, message: JSONRPCRequest) -> Spelled | None:
        """The answer, if nobody has to think about it."""
        if not self._front.version:
            return None
        said = self._front.at_once(message, self._front.version)
        return None if said is None else line(said)

    def takes(self, message: JSONRPCMessage) -> bool:
        """Whether it is a call that is answered here."""
        if not (isinstance(message, JSONRPCRequest) and message.method == "tools/call"):
            return False
        # Who mixes the eras on one connection is told so by the dispatcher.
        meta = (message.params or {}).get("_meta")
        is_modern = isinstance(meta, dict) and PROTOCOL_VERSION_META_KEY in meta
        return bool(self._front.version) and not is_modern

    async def begin(self, message: JSONRPCRequest) -> None:
        """It was shown to the front."""
        scope = trio.CancelScope()
        self._under_way.add(scope)
        wall = Firewall("request_crashed", fields={"session": self._front.session.id})
        begin(self._nursery, wall, self._answer, message, scope)
        # Tasks that are begun in one tick start in any order, and calls in that of the wire.
        await trio.lowlevel.checkpoint()

    async def _answer(self, message: JSONRPCRequest, scope: trio.CancelScope) -> None:
        said: JSONRPCResponse | JSONRPCError | None = None
        version = self._front.version
        try:
            with scope:
                self._front.under_way.answered_in(scope, message.id)
                said = await self._front.call(message, self._report, version)
        finally:
            self._under_way.discard(scope)
        if scope.cancel_called and scope not in self._refused:
            return  # by its client; an error that came without a checkpoint has no reader, either
        if said is None:
            error = ErrorData(code=CONNECTION_CLOSED, message="Connection closed")
            said = JSONRPCError(jsonrpc="2.0", id=message.id, error=error)
        # Outside of its scope: to whoever cancels it now the answer is on its way, and what has
        # happened is told by it.
        spelled = await line_of(said)
        assert spelled is not None
        del said  # it may be long, and many wait for a client that reads slowly
        if not self._writing.write_now(spelled):
            await self._send(spelled)

    async def _report(self, *progress: Any) -> None:
        await self._send(SessionMessage(progress_note(*progress)))

    async def _send(self, item: SessionMessage | Spelled) -> None:
        try:
            await self._out.send(item)
        except GONE:
            pass  # it has no reader any more

    def end(self) -> None:
        """Input has ended: what is under way is refused, as the dispatcher refuses the rest."""
        for scope in self._under_way:
            if not scope.cancel_called:
                self._refused.add(scope)
                scope.cancel("the client is gone")
