"""Who uses a session of the modern era, in which nobody says that they are somebody."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any

import attrs

from ... import logs
from ...config import OUR_NAME
from ...model.events import SessionShared
from ...session.session import Session
from ..faces.one_server.passed import PassedOn
from ..mcp import Front

MAX_CLIENTS = 10
"""That are told from each other in one session."""
SHARED = (
    "Several clients use this session: what one is told, such as an event or a question, the "
    "others are not. Each gets one of its own with another ?session=NAME in its URL, or with "
    "`emceepee stdio --connect URL` as its command."
)


@attrs.define(eq=False)
class Workspace:
    """One such session, and who is seen to use it."""

    session: Session
    under_way: dict[Front, str | int] = attrs.field(factory=dict, init=False)
    """Requests, and what their clients call them."""
    clients: dict[str, None] = attrs.field(factory=dict, init=False)
    """By name and version, in the order in which they came."""
    passed_on: PassedOn = attrs.field(factory=PassedOn, init=False)
    _is_told: bool = attrs.field(default=False, init=False)

    @contextmanager
    def serves(self, front: Front, request_id: str | int, client: str) -> Generator[None]:
        is_new = client not in self.clients and len(self.clients) < MAX_CLIENTS
        if is_new:
            self.clients[client] = None
        # One client has not two requests of one id under way; two windows of one program may.
        if (is_new and len(self.clients) > 1) or (
            request_id in self.under_way.values() and not self._is_told
        ):
            self._tell()
        self.under_way[front] = request_id
        try:
            yield
        finally:
            del self.under_way[front]

    def _tell(self) -> None:
        self._is_told = True
        clients = list(self.clients)
        logs.write("warn", "session_shared", session=self.session.id, clients=clients)
        self.session.publish(OUR_NAME, SessionShared(clients, SHARED))


def called(info: Any) -> str:
    """What a client calls itself."""
    said = [info.get("name"), info.get("version")] if isinstance(info, Mapping) else []
    return " ".join(each[:100] for each in said if isinstance(each, str)) or "unknown client"
