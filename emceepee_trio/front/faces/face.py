"""What a face is, and what it is asked.

A face answers the requests of a connection for what is behind it. What every connection answers
alike (``ping``, the handshake itself, cancellations) is not its business: see ``front/mcp.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

import attrs
from mcp import MCPError
from mcp_types import INVALID_PARAMS, RequestId
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from ...model.protocol.eras import meta_of
from ...session.session import Session
from ..progress import Report
from ..under_way import InFlight

if TYPE_CHECKING:
    from ..mcp import Front

Result = dict[str, Any]


@attrs.frozen
class Incoming:
    """A request of a client."""

    id: RequestId
    method: str
    params: Mapping[str, Any]
    version: str
    """Of the protocol, that its client speaks."""
    report: Report
    """Tells its client of progress."""
    entry: InFlight
    meta: Mapping[str, Any] = attrs.field(init=False)
    """Of its parameters."""

    @meta.default
    def _of_params(self) -> Mapping[str, Any]:
        return meta_of(self.params)

    @property
    def is_modern(self) -> bool:
        return self.version in MODERN_PROTOCOL_VERSIONS

    @property
    def progress_token(self) -> str | int | None:
        token = self.meta.get("progressToken")
        is_one = isinstance(token, str | int) and not isinstance(token, bool)
        return token if is_one else None

    def call_params(self) -> tuple[str, Mapping[str, Any]]:
        """Name and arguments of a tools/call.

        Raises:
            MCPError: they are none.
        """
        name, arguments = self.params.get("name"), self.params.get("arguments")
        if not isinstance(name, str) or not isinstance(arguments, dict | None):
            said = "expected a name and an object of arguments"
            raise MCPError(code=INVALID_PARAMS, message=said)
        return name, arguments or {}


class Face(Protocol):
    """What a client is shown. Has no state of a connection: many have the same one."""

    @property
    def server(self) -> str | None:
        """The one that is all there is to see, if that is so."""
        ...

    @property
    def view(self) -> str:
        """Its name in the configuration."""
        ...

    def at_once(self, method: str, version: str) -> str | None:
        """The result, as it goes out, of a request without params that needs no thought."""
        ...

    async def greet(self, front: Front, said: Result, version: str) -> Result:
        """What answers ``initialize`` or ``server/discover``, made of what the SDK *said* for us.

        Raises:
            MCPError: nobody can be greeted.
        """
        ...

    async def answer(self, front: Front, asked: Incoming) -> Result | None:
        """The finished result; None: what is the same in all views of ours.

        Raises:
            MCPError: the error that answers it.
        """
        ...

    async def schema_of(self, session: Session, tool: str) -> Mapping[str, Any] | None:
        """Of the arguments of that tool, if it is known."""
        ...


NOT_PASSED_ON = ("io.modelcontextprotocol/tasks",)
"""Extensions by which who is between would have to do something."""


def extensions_of(capabilities: Mapping[str, Any]) -> dict[str, Any]:
    """Those that are between a client and a server, and nothing to us."""
    said = capabilities.get("extensions")
    extensions = said if isinstance(said, Mapping) else {}
    return {name: value for name, value in extensions.items() if name not in NOT_PASSED_ON}
