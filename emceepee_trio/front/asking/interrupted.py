"""Requests of the modern era that are answered with a question, and continued by a retry.

A question to the client ends the exchange with ``input_required`` and a state, by which the retry
with the answers finds the same :class:`.Interrupted`. A face puts around what may take that long::

    reply = await continued(front, asked, work)

A state is 128 random bits that mean something in one session alone, for the request that they were
given to, until that is done or its question is closed without an answer.
"""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import attrs
from mcp import MCPError
from mcp_types import CLIENT_CAPABILITIES_META_KEY, INVALID_PARAMS

from ...config.bounds import MAX_INTERRUPTED
from ...session.session import Session
from ...tools.common.registry import Request
from ...views import ONE_SERVER
from ...waits.firewall import Firewall, begin
from .backchannel import METHODS
from .rounds import ROOTS, Interrupted

if TYPE_CHECKING:
    from ..faces.face import Incoming
    from ..mcp import Front

T = TypeVar("T")

ASKED = {**METHODS, "roots": ROOTS}
"""What a client can be asked, by the capabilities that say so."""
OF_A_RETRY = ("_meta", "requestState", "inputResponses")
"""Parameters that a retry has of its own; in all others it is what it repeats."""


async def continued(front: Front, asked: Incoming, work: Callable[[Request], Awaitable[T]]) -> T:
    """What *work* comes to, in this exchange or in a later one.

    Of a client that sees one server what it says goes there as it is, and nobody else is asked what
    it cannot.

    Raises:
        InputRequired: the client is asked.
        MCPError: the state of a retry is of no request that waits.
    """
    request = asked.entry.request
    if not asked.is_modern:
        return await work(request)
    owner = front.session.one(Interruptions)
    said = asked.meta.get(CLIENT_CAPABILITIES_META_KEY)
    capabilities = said if isinstance(said, Mapping) else {}
    one: Interrupted[T]
    answers = asked.params.get("inputResponses")
    if "requestState" in asked.params:
        one = owner.find(asked)
        one.puts.take(answers)
    elif front.face.view == ONE_SERVER or ASKED.keys() & capabilities.keys():
        one = owner.begin(asked, work, front.face.view)
        one.puts.early = dict(answers) if isinstance(answers, Mapping) else {}
    else:
        return await work(request)
    with front.session.while_open():
        return await one.attend(request, capabilities, may_resend=front.may_resend)


def _repeated(asked: Incoming) -> tuple[str, dict[str, Any]]:
    params = {key: asked.params[key] for key in asked.params if key not in OF_A_RETRY}
    return asked.method, params


@attrs.define(eq=False)
class Interruptions:
    """Those of one session."""

    session: Session
    _given: OrderedDict[str, Interrupted[Any]] = attrs.field(factory=OrderedDict, init=False)
    """By their states, those that were given to clients; the longest given first."""

    def begin(
        self, asked: Incoming, work: Callable[[Request], Awaitable[T]], view: str
    ) -> Interrupted[T]:
        one = Interrupted[T](self, _repeated(asked), asked.entry.request, view)
        fields = {"session": self.session.id, "method": asked.method}
        wall = Firewall("tool_crashed", one.crashed, fields=fields)
        begin(self.session.inner, wall, one.run, work)
        return one

    def find(self, asked: Incoming) -> Interrupted[Any]:
        state = asked.params["requestState"]
        found = self._given.get(state) if isinstance(state, str) else None
        if found is None or found.of != _repeated(asked):
            raise MCPError(
                code=INVALID_PARAMS,
                message="requestState is of no request that waits for its client: it is done, its "
                "question is over, or it was another request",
            )
        return found

    def give(self, one: Interrupted[Any]) -> str:
        """A new state of it."""
        state = secrets.token_hex(16)
        self.keep(one, [state])
        return state

    def keep(self, one: Interrupted[Any], states: Sequence[str]) -> None:
        self._given |= dict.fromkeys(states, one)
        while len(self._given) > MAX_INTERRUPTED:
            next(iter(self._given.values())).let_go()

    def forget(self, states: Sequence[str]) -> None:
        for state in states:
            self._given.pop(state, None)
