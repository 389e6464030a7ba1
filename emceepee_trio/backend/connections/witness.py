"""What those have seen who read and write a transport: whether it is over, and who was answered.

The SDK has one error for its own troubles and for those that a peer tells of, down to the words:
a proxy hands on a loss of its own as a server does. So its words count for nothing here; an error
is a loss if the transport is over and nothing was read that answers the request.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

import attrs
from mcp import MCPError
from mcp.shared.dispatcher import coerce_request_id
from mcp.shared.message import MessageMetadata, SessionMessage
from mcp_types import CONNECTION_CLOSED, JSONRPCError, JSONRPCResponse

from .callbacks import Over


class Unanswered(MCPError):
    """The connection is over, and nobody has answered."""

    def __init__(self) -> None:
        super().__init__(code=CONNECTION_CLOSED, message="Connection closed")


class NotRun(Unanswered):
    """So it is, but the backend did not run this request: it said so, or was not reached."""


class BrokeOff(MCPError):
    """The stream that should have carried the answer has ended; the connection goes on."""


@attrs.define(eq=False)
class Witness:
    """Of one transport."""

    over: Over
    about: MessageMetadata = attrs.field(default=None, init=False)
    """What the transport says of the message that was read last: in the answer to which request."""
    given_up: set[str | int] = attrs.field(factory=set, init=False)
    """Ids of those that nobody waits for any more, and that whoever put them here wants to see
    answered; they leave when they are."""
    _waiting: set[str | int] = attrs.field(factory=set, init=False)
    """Ids of requests that have no answer."""

    @contextmanager
    def asking(self, request_id: int) -> Generator[None]:
        """Around a request of that id.

        Raises:
            Unanswered: in place of whatever else is said of the loss.
        """
        self._waiting.add(request_id)
        try:
            yield
        except MCPError:
            if request_id in self._waiting and self.over.is_set():
                raise Unanswered from None
            raise
        finally:
            self._waiting.discard(request_id)

    def read(self, item: SessionMessage | Exception) -> None:
        """It came in; the dispatcher will look at it next."""
        if isinstance(item, SessionMessage):
            message, self.about = item.message, item.metadata
            if isinstance(message, JSONRPCResponse | JSONRPCError) and message.id is not None:
                answered = coerce_request_id(message.id)
                self._waiting.discard(answered)
                self.given_up.discard(answered)
