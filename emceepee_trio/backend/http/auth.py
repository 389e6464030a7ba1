"""What servers behind URLs are shown of who asks, beside the headers of their entries.

A door: whoever gets tokens (an OAuth client, a program that has us inside) is a
:class:`ServerAuth`, and the transport asks it. Knows neither how tokens are got nor where they are
kept.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Protocol, TypeAlias

from ...config import Server


class ServerAuth(Protocol):
    """Of one principal at one server. Asked by requests of one connection, also at once."""

    async def headers(self) -> Mapping[str, str]:
        """What the next request has, in place of what the entry says under these names.

        It goes to the origin of the server's URL only. Cancelled where nobody waits any more.

        Raises:
            ConnectFailed: there is nothing to show; says what to do. It ends the connection.
        """
        ...

    async def refused(self, shown: Mapping[str, str]) -> bool:
        """The server answered 401 to *shown*. Whether there is something else by now: then the
        request is sent once more, else it is the end of the connection."""
        ...


AuthFor: TypeAlias = Callable[[Server, str], ServerAuth | None]
"""Asked for each connection of a server for a principal; None where the entry says all."""


@asynccontextmanager
async def open_auth(given: AuthFor | None, state: Path | None) -> AsyncGenerator[AuthFor]:
    """Whom connections ask: who is *given* by a program that has us inside.

    Here is where an OAuth client is opened, and asked for servers whose entries want it. What it
    keeps is in the *state* directory, if there is one.
    """

    def auth_for(server: Server, principal: str) -> ServerAuth | None:
        return None if given is None else given(server, principal)

    yield auth_for
