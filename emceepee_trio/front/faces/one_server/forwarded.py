"""What the server is asked in place of its client, and what that answers, in the client's words.

A request goes to the server as it came. Who asks it of a server of another era than its own gets
what that era says for the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import attrs
from mcp import MCPError
from mcp_types import CLIENT_CAPABILITIES_META_KEY, INTERNAL_ERROR

from ....backend.backend import Backend
from ....backend.connections.callbacks import OnProgress
from ....backend.connections.client import Client, Negotiated
from ....backend.connections.witness import NotRun, Unanswered
from ....errors import ToolError
from ....model.protocol.eras import code_for, params_for, result_for
from ....session.questions.question import Kind
from ....tools.common.asking import as_tool_error
from ....tools.common.pages import with_pages
from ... import tasks
from ..face import Incoming, Result
from .passed import STATE, Round

if TYPE_CHECKING:
    from ...mcp import Front


async def connected(backend: Backend) -> Client:
    """Its connection, which is waited for.

    Raises:
        MCPError: there is none.
    """
    try:
        return await backend.connection()
    except ToolError as error:
        raise MCPError(code=INTERNAL_ERROR, message=error.message) from None


@attrs.define
class Forwarded:
    """One request of a client, on its way to the server and back."""

    front: Front
    asked: Incoming
    backend: Backend
    before: Round | None = attrs.field(default=None, init=False)
    """What a modern server has asked the client for the same request."""

    @property
    def agreed(self) -> Negotiated | None:
        """What was negotiated with the server, now or when it was connected last."""
        return self.backend.agreed or self.backend.knowledge.negotiated

    @property
    def is_to_modern(self) -> bool:
        """Whether the server is modern, as far as that is known."""
        return self.agreed is not None and self.agreed.is_modern

    @property
    def has_tasks(self) -> bool:
        """Whether tasks are between the client and the server, which both know them."""
        if not self.asked.is_modern or self.agreed is None or not self.agreed.is_modern:
            return False
        extensions = self.agreed.capabilities.get("extensions")
        return isinstance(extensions, Mapping) and tasks.EXTENSION in extensions

    async def ask(self, exchange: Callable[[Client], Any]) -> Result:
        """What comes of an *exchange* with the server.

        Raises:
            MCPError: the error that the server has answered.
            ToolError: it has answered nothing.
        """
        try:
            result: Result = await self.backend.ask(exchange)
        except MCPError as error:
            raise self._failure(error) from None
        return result

    def _failure(self, error: MCPError) -> MCPError | ToolError:
        if isinstance(error, NotRun | Unanswered):
            return as_tool_error(error, self.backend.server.name, self.asked.method)
        said = error.error
        code = code_for(
            self.asked.method,
            said.code,
            of_modern=self.is_to_modern,
            is_modern=self.asked.is_modern,
        )
        return MCPError(code=code, message=said.message, data=said.data)

    async def send(
        self,
        client: Client,
        heard: OnProgress | None = None,
        tool: Mapping[str, Any] | None = None,
        is_there: Callable[[], bool] = lambda: True,
    ) -> Result:
        """Of a call with what is known of the *tool*, and of whether its client still waits."""
        asked, is_modern = self.asked, client.negotiated.is_modern
        params = params_for(asked.params, is_modern=is_modern)
        if not (is_modern and asked.is_modern):
            ask = partial(
                client.request,
                asked.method,
                params,
                on_progress=heard,
                tool=tool,
                on_stream=partial(self.front.stream, asked.id),
            )
            if not asked.is_modern:
                return await ask()
            # This era knows no such error: what that says is asked, too.
            return await with_pages(self.front.session, client, self.backend.server.name, ask)
        # What the server wants to know is between it and the client: both speak of it alike.
        params.pop(STATE, None)
        if self.before is not None and self.before.state is not None:
            params[STATE] = self.before.state
        return await client.request(
            asked.method,
            params,
            on_progress=heard,
            tool=tool,
            capabilities=self._capabilities(),
            is_there=is_there,
        )

    def _capabilities(self) -> Mapping[str, Any]:
        """What its client can, but for what it is not to be asked."""
        said = self.asked.meta.get(CLIENT_CAPABILITIES_META_KEY)
        can = dict(said) if isinstance(said, Mapping) else {}
        session, server = self.front.session, self.backend.server.name
        kinds: tuple[Kind, ...] = ("elicitation", "sampling")
        for kind in kinds:
            if not session.is_relayed(server, kind, self.front.face.view):
                can.pop(kind, None)
        return can

    def told(self, result: Mapping[str, Any]) -> Result:
        """The *result* as a client of that era gets it."""
        agreed = self.agreed
        assert agreed is not None  # the server has answered
        if agreed.is_modern and self.asked.is_modern:
            return {"resultType": "complete", **result}  # which some forget
        return result_for(
            self.asked.method, result, agreed.server_info, is_modern=self.asked.is_modern
        )
