"""The daemon inside of a program of your own, which has the event loop, the sockets and the log.

What is here can be had from the package itself; the command line, which imports that first, pays
for none of it.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from .backend.http.auth import AuthFor, ServerAuth
from .config import Config
from .daemon import Settings, open_daemon
from .web.app import App
from .web.security import Tokens
from .web.tokens import Credentials

__all__ = ["ServerAuth", "open_app"]


@asynccontextmanager
async def open_app(
    config: Config | None = None,
    *,
    credentials: Mapping[str, str] | None,
    state: Path | None = None,
    auth_for: AuthFor | None = None,
) -> AsyncGenerator[App]:
    """An ASGI app that answers at ``/mcp``, on trio; its sessions live in this block.

    *credentials* are bearer tokens by the names of their holders, who see nothing of each other.
    With None nobody needs one: your program has asked whoever reaches the app. What servers have is
    remembered in the directory *state*, if there is one. *auth_for* is asked for each connection to
    a server behind a URL, with the server and the name of the holder it is for: a
    :class:`ServerAuth` says what the server is shown of who asks, and None leaves that to the
    headers of its entry. Clients may have programs started only where ``policy.spawn`` of *config*
    says so.
    """
    known = None
    if credentials is not None:
        known = Credentials(Tokens.of(credentials.items()), "what this program was given")
    settings = Settings(config or Config(), known)
    async with open_daemon(settings, state=state, auth_for=auth_for) as daemon:
        try:
            yield daemon.app
        finally:
            daemon.endpoint.drain()
