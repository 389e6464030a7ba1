"""Requests that a modern server has answered with questions, until their client comes again.

Server and client are both of the era that asks in rounds, so a round is passed on as it is: what
the server wants to know, under its own keys, and the answers. Only its state does not leave us. The
client has a name for it, which holds for that request alone, and as long as that has no result.
"""

from __future__ import annotations

import hashlib
import secrets
from collections import OrderedDict
from collections.abc import MutableMapping
from typing import Any

import attrs
from mcp import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS

from ....model.json.spelling import spell
from ....waits.slices import in_slices
from ..face import Incoming, Result

MAX_PASSED = 100
"""Of one session, that wait for their clients; the oldest makes room."""
MAX_STATE = 64 * 1024
"""Characters of a server's state."""

STATE, ANSWERS = "requestState", "inputResponses"


@attrs.define(eq=False)
class Repeated:
    """Over all of its rounds."""

    said: bytes
    """A digest of what its client asks, which is the same each time."""
    names: list[str] = attrs.field(factory=list, init=False)

    def end(self, rounds: MutableMapping[str, Any]) -> None:
        while self.names:
            del rounds[self.names.pop()]


@attrs.frozen
class Round:
    request: Repeated
    state: str | None
    """The server's own."""


@attrs.define(eq=False)
class PassedOn:
    """Of one session."""

    _open: OrderedDict[str, Round] = attrs.field(factory=OrderedDict, init=False)
    """By the names that clients have; the oldest first."""

    async def again(self, asked: Incoming) -> Round | None:
        """The round that a request goes on with, if it is not new.

        Raises:
            MCPError: it names a state that is none, or another request's.
        """
        name = asked.params.get(STATE)
        if name is None:
            return None
        said = await _digest(asked)
        found = self._open.get(name) if isinstance(name, str) else None
        if found is None or found.request.said != said:
            raise MCPError(code=INVALID_PARAMS, message=f"no such {STATE}")
        return found

    async def told(self, asked: Incoming, before: Round | None, result: Result) -> Result:
        """The server's result, as its client gets it.

        Raises:
            MCPError: its state is too long to be kept, or none.
        """
        if result.get("resultType") == "input_required":
            state = result.get(STATE)
            if not (state is None or (isinstance(state, str) and len(state) <= MAX_STATE)):
                said = f"the server's {STATE} is no string of at most {MAX_STATE} characters"
                raise MCPError(code=INTERNAL_ERROR, message=said)
            request = Repeated(await _digest(asked)) if before is None else before.request
            return {**result, STATE: self._name(request, state)}
        if before is not None:
            before.request.end(self._open)
        return result

    def _name(self, request: Repeated, state: str | None) -> str:
        name = secrets.token_hex(16)
        request.names.append(name)
        self._open[name] = Round(request, state)
        if len(self._open) > MAX_PASSED:
            oldest, forgotten = self._open.popitem(last=False)
            forgotten.request.names.remove(oldest)
        return name


async def _digest(asked: Incoming) -> bytes:
    rest = {k: v for k, v in asked.params.items() if k not in (STATE, ANSWERS, "_meta")}
    said = await in_slices(spell([asked.method, *sorted(rest.items())]))
    return hashlib.sha256(said.encode("utf-8", "surrogatepass")).digest()
