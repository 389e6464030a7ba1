"""A client of the handshake era over HTTP: what it has beside its session.

A client that lost its streams initializes again with the id of its session: a new
:class:`.HandshakeConnection` takes over, the calls of the old one become tasks, and what was unread
moves to the standalone stream.
"""

from __future__ import annotations

import attrs
from mcp_types import JSONRPCNotification, JSONRPCRequest, RequestId

from ...session.manager import SessionManager
from ...session.session import Session
from ...web.wire import dump, spelled
from ..asking.backchannel import Backchannel
from ..faces.face import Face
from ..mcp import Front
from .connection import HandshakeConnection
from .stream import Stream
from .streams import Streams


@attrs.define(eq=False)
class HttpSession:
    """What HTTP adds to a session."""

    session: Session
    manager: SessionManager
    streams: Streams = attrs.field(init=False)
    connection: HandshakeConnection | None = attrs.field(default=None, init=False)
    backchannel: Backchannel = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        sweeper = self.session.sweeper
        journal = self.session.shared.journal
        self.streams = Streams(self.session.id, on_kept=sweeper.look, journal=journal)
        sweeper.keepers = (*sweeper.keepers, self.streams)
        self.backchannel = Backchannel(self.session, self, tracing=self.session.shared.tracing)

    def reaches(self) -> bool:
        return self.streams.standalone.has_reader

    async def send(self, message: JSONRPCRequest, about: RequestId | None) -> None:
        said = await spelled(message)
        self.streams.add(self._stream(about), said, asks=str(message.id))
        await self.streams.wait_for_room()

    def note(self, message: JSONRPCNotification, about: RequestId | None) -> None:
        self.streams.add(self._stream(about), dump(message))
        self.streams.make_room()

    def _stream(self, about: RequestId | None) -> Stream:
        if self.connection is None:
            return self.streams.standalone
        return self.connection.stream_about(about)

    def close(self) -> None:
        """The session has ended."""
        if self.connection is not None:
            self.connection.close()
        self.streams.finish(self.streams.standalone)

    def connect(self, face: Face) -> HandshakeConnection:
        """A new connection of the client, with this face; an earlier one ends."""
        if self.connection is not None:
            self.connection.end()
            self.backchannel.start_over(self.streams.unread_requests())
        front = Front(self.session, self.manager, face, backchannel=self.backchannel)
        self.connection = HandshakeConnection(front, self.streams)
        front.deliver = self.connection.carry
        front.send = self.connection.say
        front.stream = self.connection.stream
        self.backchannel.view = face.view
        return self.connection
