"""``hypercorn -k trio -w 0 emceepee_trio.asgi:app``: the daemon under a foreign ASGI server.

Its sessions live in the server's call of the ASGI lifespan; without one, every route answers 503.
Configuration and token are where `emceepee serve` looks for them, too. Writes to readers that
stall are the server's to bound.
"""

from __future__ import annotations

import attrs
import trio
from mcp_types import INTERNAL_ERROR

from . import logs
from .config import Config, ConfigError, Loaded, default_path, load_default
from .daemon import Read, Rereading, Settings, open_daemon
from .front.faces.views import check_views
from .serving.asgi import Receive, Refused, Scope, Send
from .web.app import App
from .web.token_file import BadToken, state_directory, state_to_keep
from .web.tokens import find
from .web.wire import send_json

NO_TRIO = "emceepee needs trio: hypercorn -k trio -w 0 emceepee_trio.asgi:app"
NO_LIFESPAN = "no ASGI lifespan is running; without one there are no sessions"


def _settings() -> Settings:
    logs.configure()
    path = default_path()
    loaded = load_default() or Loaded(Config())
    for warning in loaded.warnings:
        logs.write("warn", "config_warning", path=str(path), message=warning)
    credentials = find(loaded.config.http, None, state_directory())
    logs.write("info", "token_needed", where=credentials.where)
    return Settings(check_views(loaded.config, path), credentials, path if path.exists() else None)


@attrs.define(eq=False)
class Asgi:
    """The application, and the daemon while there is one."""

    read: Read = _settings
    """Says at the start of each lifespan what the daemon goes by; `ConfigError` and `BadToken` of
    it fail that start."""
    _app: App | None = attrs.field(default=None, init=False)
    _why_not: str = attrs.field(default=NO_LIFESPAN, init=False)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not trio.lowlevel.in_trio_run():
            self._why_not = NO_TRIO
        if scope["type"] == "lifespan":
            await receive()
            await self._live(receive, send)
        elif self._app is not None:
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            await send_json(send, 503, Refused(503, self._why_not, code=INTERNAL_ERROR).body)
        else:
            await receive()
            await send({"type": "websocket.close"})

    async def _live(self, receive: Receive, send: Send) -> None:
        if self._why_not == NO_TRIO:
            await send({"type": "lifespan.startup.failed", "message": NO_TRIO})
            return
        reading = Rereading(self.read)
        try:
            settings = reading.first()
        except (ConfigError, BadToken) as error:
            self._why_not = "the configuration cannot be used, see the log of the start"
            await send({"type": "lifespan.startup.failed", "message": str(error)})
            return
        self._why_not = "the daemon has crashed, see its log"
        async with open_daemon(settings, state=state_to_keep(None), reading=reading) as daemon:
            reading.go_by = daemon.reload
            self._app = daemon.app
            try:
                await send({"type": "lifespan.startup.complete"})
                await receive()
                self._why_not = "the daemon is shutting down"
                daemon.endpoint.drain()
            finally:
                self._app = None
        await send({"type": "lifespan.shutdown.complete"})


app = Asgi()
