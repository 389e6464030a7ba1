"""MCP requests of a client, answered from its session. Knows no transport.

A transport shows each incoming message to :meth:`Front.observe` first; `under_way` says why. A
request is then answered by :meth:`Front.at_once` if nobody has to think about it, by
:meth:`Front.call` if it calls a tool, and else by :meth:`Front.answer`, which leaves to the SDK
what that is for, such as the handshake. What is ours is a finished dict, which the SDK does not
sieve.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import attrs
import trio
from mcp import MCPError
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.shared.message import SessionMessage
from mcp_types import (
    CLIENT_CAPABILITIES_META_KEY,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    RequestId,
)
from pydantic import BaseModel, ValidationError

from ..errors import internal
from ..model.wire import dumps
from ..session.events import Delivery
from ..session.manager import SessionManager
from ..session.session import Session
from ..tools.common.clients import STRANGER, KnownClient, known
from ..tracing import UNTRACED, Answered, TracedRequest
from ..waits.firewall import Firewall, begin_lasting
from . import tasks
from .asking.backchannel import Backchannel, Dialog
from .asking.rounds import InputRequired
from .faces.face import Face, Incoming
from .faces.one_server.passed import PassedOn
from .log_messages import LogMessages, heard_meanwhile
from .news import Send
from .progress import Report
from .sdk import raw_notify
from .under_way import UnderWay

if TYPE_CHECKING:
    from .faces.native.news import Changes
    from .faces.one_server.news import Following

GREETINGS = ("initialize", "server/discover")
"""Answered by the SDK; what they say of our servers differs from session to session."""

EXPECTED = (MCPError, ValidationError)
"""What the SDK answers by itself: errors of ours, and of clients that send what they must not."""


async def _nowhere(item: SessionMessage) -> None:
    """A transport that shows nothing has no place for it."""


@attrs.define(eq=False, repr=False)
class Front:
    """One connection of one client to its session."""

    session: Session
    manager: SessionManager
    face: Face
    closing: trio.Event = attrs.field(factory=trio.Event)
    """Set when it is about to end, with its session or the daemon: what only waits returns."""
    deliver: Callable[[RequestId, Delivery], None] = lambda _, delivery: delivery.commit()
    """What becomes of the events in a response; a transport that can still lose it takes them."""
    send: Send = _nowhere
    """Puts a message that is no answer on its way; the transport's."""
    stream: Callable[[RequestId, Literal["begins", "pauses"]], None] = lambda *_: None
    """Has the transport answer a request as its server does: with a stream, and in pieces."""
    backchannel: Backchannel | None = attrs.field(default=None, kw_only=True)
    """The way to ask it something, where it may initialize."""
    passed_on: PassedOn = attrs.field(factory=PassedOn, kw_only=True)
    """Questions of modern servers that its client has."""
    transport: str = attrs.field(default="tcp", kw_only=True)
    """For who traces: ``pipe`` where it is no connection of HTTP."""
    may_resend: bool = attrs.field(default=False, kw_only=True)
    """A request that is cut off may only have lost its stream."""
    following: Following | None = attrs.field(default=None, init=False)
    """What it hears of one server."""
    changes: Changes | None = attrs.field(default=None, init=False)
    """What it hears of lists of all servers, and of resources that it follows."""
    client: KnownClient = attrs.field(default=STRANGER, init=False)
    """What is known of the program that speaks on this connection."""
    capabilities: Mapping[str, Any] = attrs.field(factory=dict, init=False)
    """What it said that it can, as it connected; in the modern era each request says so."""
    version: str = attrs.field(default="", init=False)
    """Of the protocol, since it has initialized, as one of the handshake era has to."""
    under_way: UnderWay = attrs.field(init=False)
    """Its requests that are not answered."""
    _logs: LogMessages | None = attrs.field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        self.under_way = UnderWay(self.session, self.manager, self.may_resend)

    def observe(self, message: object) -> bool:
        """A message has come in. Called before anything else, in the order of the wire.

        Returns:
            Whether it is for nobody else: it answers a request of ours.
        """
        if self.backchannel is not None and self.backchannel.observe(message):
            return True
        if isinstance(message, JSONRPCRequest):
            self.under_way.begin(message.id)
        elif isinstance(message, JSONRPCNotification):
            self._heard(message)
            if message.method == "notifications/cancelled":
                self.under_way.cancelled(message.params or {})
        return False

    async def answer(
        self, context: ServerRequestContext[Any, Any], call_next: CallNext
    ) -> HandlerResult:
        """What answers a message that the SDK was given; *call_next* has the SDK do it."""
        if context.request_id is None:
            return await call_next(context)
        entry = self.under_way.find_or_begin(context.request_id)
        fields = {"session": self.session.id, "method": context.method}
        asked = Incoming(
            context.request_id,
            context.method,
            context.params or {},
            context.protocol_version,
            partial(
                context.session.send_progress_notification,
                related_request_id=context.request_id,  # type: ignore[arg-type]  # also integers
            ),
            entry,
        )
        try:
            with (
                Firewall("request_crashed", None, EXPECTED, fields=fields) as wall,
                self._traced(asked.id, asked.method, asked.params, asked.version) as told,
            ):
                result = await self._result(asked, partial(call_next, context))
                told(result)
                return result
        finally:
            self.under_way.answered(asked.id, entry)
        raise self.bug(wall)

    async def _result(
        self, asked: Incoming, by_the_sdk: Callable[[], Awaitable[HandlerResult]]
    ) -> HandlerResult:
        if asked.method not in GREETINGS:
            if not (asked.is_modern or self.version):
                raise MCPError(code=INVALID_PARAMS, message="initialize first")
            answered = await self._answered(asked)
            return await by_the_sdk() if answered is None else answered
        if asked.method == "initialize":
            self.remember_client(asked.params.get("clientInfo"))
        self.capabilities = _capabilities(asked.params)
        said = dump_of(await by_the_sdk())
        result = await self.face.greet(self, said, asked.version)
        can = tasks.offered(result.get("capabilities", {}), is_modern=asked.is_modern)
        if not asked.is_modern:
            self.version = said.get("protocolVersion", asked.version)
            if self.backchannel is not None:
                self.backchannel.version = self.version
        return {**result, "capabilities": can}

    def _traced(
        self, request_id: RequestId, method: str, params: Mapping[str, Any], version: str
    ) -> AbstractContextManager[Answered]:
        """Around what answers a request, for somebody who wants to know of it."""
        tracing = self.session.shared.tracing
        if tracing is None:
            return UNTRACED
        asked = TracedRequest(method, params, request_id, version, self.transport, self.session.id)
        return tracing.answering(asked)

    def _heard(self, message: JSONRPCNotification) -> None:
        if (tracing := self.session.shared.tracing) is not None:
            said = message.params or {}
            notice = TracedRequest(
                message.method, said, None, self.version, self.transport, self.session.id
            )
            with Firewall("trace_crashed"):  # what else came with it is to be taken, too
                tracing.heard(notice)

    def at_once(self, message: JSONRPCRequest, version: str) -> str | None:
        """The answer, as it goes out, to what nobody has to think about. Of the handshake era."""
        if message.params:
            return None
        is_ping = message.method == "ping"
        result = "{}" if is_ping else self.face.at_once(message.method, version)
        if result is None:
            return None
        with self._traced(message.id, message.method, {}, version):
            return spelled_answer(message.id, result)

    async def call(
        self, message: JSONRPCRequest, report: Report, version: str
    ) -> JSONRPCResponse | JSONRPCError:
        """The answer to a tools/call that was shown.

        As by the SDK's dispatcher and :meth:`answer`, without what only other requests need.
        """
        entry = self.under_way.find(message.id)
        fields = {"session": self.session.id, "method": message.method}
        try:
            params = message.params or {}
            with (
                Firewall("request_crashed", None, (MCPError,), fields=fields) as wall,
                self._traced(message.id, message.method, params, version) as told,
            ):
                asked = Incoming(message.id, message.method, params, version, report, entry)
                result = await self._answered(asked)
                assert result is not None  # tools/call is every face's own
                told(result)
                return JSONRPCResponse(jsonrpc="2.0", id=message.id, result=result)
        except MCPError as error:
            return JSONRPCError(jsonrpc="2.0", id=message.id, error=error.error)
        finally:
            self.under_way.answered(message.id, entry)
        return JSONRPCError(jsonrpc="2.0", id=message.id, error=self.bug(wall).error)

    def set_log_level(self, level: str, context: ServerRequestContext[Any, Any]) -> None:
        if self.session.inner.cancel_scope.cancel_called:
            return  # answered as it ends
        if self._logs is None:
            self._logs = LogMessages(self.session.buffers)
            begin_lasting(
                self.session.inner,
                "log_messages_crashed",
                self._logs.run,
                raw_notify(context),
                self.closing,
                session=self.session.id,
            )
        self._logs.set_level(level)

    async def _answered(self, asked: Incoming) -> dict[str, Any] | None:
        """The face's answer, whose client hears meanwhile what it wants, and may be asked."""
        self.session.presence.used |= asked.method == "tools/call"
        work = partial(self.face.answer, self, asked)
        back = self.backchannel
        if asked.is_modern:
            try:
                return await heard_meanwhile(self, asked, work)
            except InputRequired as asks:
                return asks.result
        if back is None or not (back.capabilities or back.is_alone):
            return await work()
        with self.session.relay.offered(Dialog(back, asked.id)) as asked.entry.request.offer:
            return await work()

    def remember_client(self, info: Any) -> None:
        """What it says of itself."""
        if isinstance(info, dict) and isinstance(info.get("name"), str):
            self.session.named(info["name"][:100])
            self.client = known(info["name"])

    def capabilities_of(self, asked: Incoming) -> Mapping[str, Any]:
        """What its client can, as far as that request is concerned."""
        return _capabilities(asked.params) if asked.is_modern else self.capabilities

    @staticmethod
    def bug(wall: Firewall) -> MCPError:
        """What answers a request that met one."""
        return MCPError(code=INTERNAL_ERROR, message=internal(str(wall.log_id)))


def spelled_answer(request_id: RequestId, result: str) -> str:
    """With a *result* as it goes out."""
    return f'{{"jsonrpc":"2.0","id":{dumps(request_id)},"result":{result}}}'


def _capabilities(params: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a client says that it can, as it connects or with any request of the modern era."""
    meta = params.get("_meta")
    of_request = meta.get(CLIENT_CAPABILITIES_META_KEY) if isinstance(meta, Mapping) else None
    said = params.get("capabilities", of_request)
    return said if isinstance(said, Mapping) else {}


def dump_of(result: HandlerResult) -> dict[str, Any]:
    """What the SDK answers, as it goes out."""
    if isinstance(result, BaseModel):
        return result.model_dump(by_alias=True, mode="json", exclude_none=True)
    return dict(result or {})
