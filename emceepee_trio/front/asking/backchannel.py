"""Requests of ours to a client of the handshake era, and its answers.

A request travels with the answer to one of the client, if it is for that one, else on its own; on
pipes that is the same. Its id is random: an answer can be guessed by nobody who has not read it. A
client that has lost its streams is asked again when it is back, under another id, what it had read
before; what it had not read is still on its way to it.
"""

from __future__ import annotations

import secrets
from collections.abc import Container, Mapping
from typing import Any, Protocol

import attrs
import trio
from mcp import MCPError
from mcp_types import (
    METHOD_NOT_FOUND,
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    RequestId,
)

from ...session.questions.question import Kind, Question
from ...session.questions.relay import CannotBeAsked, takes
from ...session.session import Session
from ...tracing import TracedRequest, Tracing
from ...views import DEFAULT, ONE_SERVER
from ...waits.bell import Bell
from ...waits.slot import Slot
from .roots import ClientRoots

METHODS = {"elicitation": "elicitation/create", "sampling": "sampling/createMessage"}

BACK_WITHIN = 10.0
"""Seconds that a question waits for a client that has lost its streams; then the tools have it."""


class _Lost(Exception):
    """It was read on a stream that its client has lost."""


class Channel(Protocol):
    """What carries messages to one client."""

    async def send(self, message: JSONRPCRequest, about: RequestId | None) -> None:
        """Put it on its way, with the answer to the request that it is *about* if it can be."""
        ...

    def note(self, message: JSONRPCNotification, about: RequestId | None) -> None:
        """The same, at once; it may get lost where nobody reads."""
        ...

    def reaches(self) -> bool:
        """Whether a client hears what is about nothing it has asked."""
        ...


@attrs.define(eq=False)
class _Sent:
    """A request of ours, until it is answered."""

    method: str
    about: RequestId | None
    of: str | None
    """The question that it puts, by its id."""
    slot: Slot[dict[str, Any]] = attrs.field(factory=Slot, init=False)
    is_on_its_way: bool = attrs.field(default=False, init=False)


@attrs.define(eq=False)
class Backchannel:
    """To the client of one session, however often it joins that again."""

    session: Session
    channel: Channel
    view: str = DEFAULT
    transport: str = "tcp"
    """For who traces."""
    tracing: Tracing | None = None
    version: str = attrs.field(default="", init=False)
    """Of the protocol, likewise."""
    capabilities: Mapping[str, Any] = attrs.field(factory=dict, init=False)
    is_ready: bool = attrs.field(default=False, init=False)
    """It has said that it is initialized."""
    _waiting: dict[str, _Sent] = attrs.field(factory=dict, init=False)
    """What was asked and not answered, by id."""
    _back: Bell = attrs.field(factory=Bell, init=False)
    _anytime: Dialog = attrs.field(init=False)
    _roots: ClientRoots = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._roots = ClientRoots(self.session, self.request)
        self._anytime = Dialog(self)
        self.session.relay.join(self._anytime)

    def observe(self, message: object) -> bool:
        """A message of the client, in the order of the wire; whether it was for nobody else."""
        match message:
            case JSONRPCResponse(id=str() as id_):
                if id_ in self._waiting:
                    self._waiting[id_].slot.set(message.result)
                return True
            case JSONRPCError(id=str() as id_):
                if id_ in self._waiting:
                    error = message.error
                    refusal = MCPError(error.code, error.message, error.data)
                    self._waiting[id_].slot.fail(refusal)
                return True
            case JSONRPCRequest(method="initialize"):
                said = (message.params or {}).get("capabilities")
                self.capabilities = said if isinstance(said, Mapping) else {}
            case JSONRPCNotification(method="notifications/initialized"):
                self.is_ready = True
                self.listens()
                if "roots" in self.capabilities:
                    self._roots.ask()
            case JSONRPCNotification(method="notifications/roots/list_changed"):
                if self.is_ready and "roots" in self.capabilities:
                    self._roots.ask()
        return False

    @property
    def is_alone(self) -> bool:
        """It is shown one server as it is, so no tool of ours answers for it."""
        return self.view == ONE_SERVER

    def listens(self) -> None:
        """It can be asked now, if it could not before."""
        self._back.ring()
        self.session.relay.look(self._anytime)

    def start_over(self, on_their_way: Container[str]) -> None:
        """The client has lost its streams. It joins again; some requests it has yet to read."""
        self.is_ready, self.capabilities = False, {}
        for id_, sent in self._waiting.items():
            if id_ not in on_their_way:
                sent.slot.fail(_Lost())

    def can_now(self) -> bool:
        return self.is_ready and self.channel.reaches()

    async def request(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        about: RequestId | None = None,
        of: Question | None = None,
    ) -> dict[str, Any]:
        """Its answer, if it is one to the question *of* which it is. Cancelling tells the client.

        Raises:
            MCPError: it has answered with an error.
            CannotBeAsked: it is gone, or has come back as one that cannot do this any more.
        """
        while True:
            if of is not None and not of.is_open:
                raise CannotBeAsked  # somebody else was first, and nothing was there to withdraw
            try:
                sent = _Sent(method, about, None if of is None else of.id)
                return await self._request(params, sent)
            except _Lost:
                about = None
            with trio.move_on_after(BACK_WITHIN):
                while not self.can_now():
                    await self._back.wait()
            if not self.can_now() or method.partition("/")[0] not in self.capabilities:
                raise CannotBeAsked

    async def _request(self, params: Mapping[str, Any] | None, sent: _Sent) -> dict[str, Any]:
        request_id = secrets.token_urlsafe(16)
        if self.tracing is None:
            return await self._answer(request_id, params, sent)
        asked = TracedRequest(
            sent.method, params or {}, request_id, self.version, self.transport, self.session.id
        )
        with self.tracing.relaying(asked, sent.of) as traced:
            return await self._answer(request_id, traced.params, sent)

    async def _answer(
        self, request_id: str, params: Mapping[str, Any] | None, sent: _Sent
    ) -> dict[str, Any]:
        self._waiting[request_id] = sent
        whole: dict[str, Any] = {"jsonrpc": "2.0", "id": request_id, "method": sent.method}
        if params is not None:
            whole["params"] = dict(params)
        try:
            await self.channel.send(JSONRPCRequest.model_validate(whole), sent.about)
            sent.is_on_its_way = True
            return await sent.slot.wait_result()
        except trio.Cancelled:
            self._tell_over(request_id, sent)
            raise
        finally:
            del self._waiting[request_id]

    def withdraw(self, question: str) -> None:
        """It is over. What is not written yet is told behind it, by who writes it."""
        for request_id, sent in self._waiting.items():
            if sent.of == question and sent.is_on_its_way:
                self._tell_over(request_id, sent)

    def _tell_over(self, request_id: str, sent: _Sent) -> None:
        if sent.slot.fail(CannotBeAsked()):  # neither answered nor told
            over = {"requestId": request_id, "reason": "it is not asked any more"}
            method = "notifications/cancelled"
            note = JSONRPCNotification(jsonrpc="2.0", method=method, params=over)
            self.channel.note(note, sent.about)


def not_declared(question: Question) -> MCPError:
    """What a server gets that asks a client of its own what that cannot do."""
    said = f"the client has not declared that it can take {METHODS[question.kind]}"
    return MCPError(code=METHOD_NOT_FOUND, message=said)


@attrs.frozen(eq=False)
class Dialog:
    """A client as one who can be asked: because of one of its requests, or at any time."""

    backchannel: Backchannel
    about: RequestId | None = None

    @property
    def is_alone(self) -> bool:
        return self.backchannel.is_alone

    @property
    def view(self) -> str:
        return self.backchannel.view

    @property
    def is_heard(self) -> bool:
        return True

    def can(self, kind: Kind, params: Mapping[str, Any]) -> bool:
        it = self.backchannel
        can = it.is_alone or takes(it.capabilities, kind, params)
        return can and (self.about is not None or it.can_now())

    async def ask(self, question: Question) -> dict[str, Any]:
        params = dict(question.params)
        if not takes(self.backchannel.capabilities, question.kind, params):
            raise not_declared(question)
        if question.mode == "url" and question.kind == "elicitation":
            params.setdefault("elicitationId", question.id)  # which the modern era does without
        method = METHODS[question.kind]
        return await self.backchannel.request(method, params, self.about, question)

    async def roots(self) -> None:
        """See `roots.py`: it has been asked when it came, and says itself when they change."""

    def withdraw(self, question: Question) -> None:
        self.backchannel.withdraw(question.id)
