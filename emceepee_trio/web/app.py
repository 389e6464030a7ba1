"""Everything that is served over HTTP, as one ASGI callable: security first, then who answers.

`/mcp` and `/servers/NAME/mcp` go straight to their endpoint; the rest, which is for people and
their monitors, is a Quart app. Knows no socket: it also runs under a foreign ASGI server.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import attrs
from mcp_types import INTERNAL_ERROR
from quart import Response, request
from quart_trio import QuartTrio
from werkzeug.exceptions import HTTPException

from ..errors import internal
from ..model.json.spelling import spell
from ..model.wire import dumps
from ..serving.asgi import Message, Receive, Refused, Scope, Send
from ..session.manager import SessionManager
from ..waits.firewall import Firewall
from ..waits.slices import in_slices
from . import reloading
from .costs.programs import programs_of
from .logged import logs_of
from .logins import Logins
from .metrics.scrape import Metrics
from .page import the_page
from .page.common.requests import secured, visit, wants_html
from .reloading import Reread
from .security import Header, Security, preflight, without_credentials
from .status import status_of
from .visitors import VISIT, identify
from .wire import send_json

MCP = "/mcp"
_SERVER = re.compile(r"/servers/[^/]+/mcp/?")
"""The same for one server as it is."""
METRICS_ARE_FOR = (
    "/metrics tells of everybody: it is for the daemon's own token, and for those of http.tokens "
    "that have metrics: true"
)
MAX_BODY = 64 * 1024
"""Bytes, for everything but MCP."""


class Endpoint(Protocol):
    """What answers for a path of its own; see `front/http.py`."""

    async def __call__(
        self, scope: Scope, receive: Receive, send: Send, principal: str
    ) -> None: ...


@attrs.define(eq=False)
class App:
    security: Security
    endpoint: Endpoint
    pages: QuartTrio
    logins: Logins = attrs.field(factory=Logins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await receive()
            await send({"type": "websocket.close"})
            return
        (scope, mount), answer = _below_its_mount(scope), _Answer(send)
        try:
            with Firewall("request_crashed", None, (Refused,), {"path": scope["path"]}) as wall:
                await self._serve(scope, receive, answer, mount)
        except Refused as refused:
            await send_json(answer, refused.status, refused.body, refused.headers)
        # If it has begun it is incomplete, which the server below sees, and hangs up.
        if wall.log_id is not None and not answer.has_begun:
            bug = Refused(500, internal(wall.log_id), code=INTERNAL_ERROR)
            await send_json(answer, bug.status, bug.body)

    async def _serve(self, scope: Scope, receive: Receive, answer: _Answer, mount: str) -> None:
        answer.headers = self.security.admit(scope)
        if scope["method"] == "OPTIONS":
            await answer(
                {"type": "http.response.start", "status": 204, "headers": preflight(scope)}
            )
            await answer({"type": "http.response.body"})
            return
        endpoint = self._endpoint(scope["path"])
        if endpoint is not None:
            principal = self.security.principal(scope)
            await endpoint(without_credentials(scope), receive, answer, principal)
        else:
            visit = identify(scope, self.security, self.logins, mount)
            scope = {**without_credentials(scope), "state": {VISIT: visit}}
            await self.pages(scope, receive, answer)  # type: ignore[arg-type]  # dicts, to ASGI as well

    def _endpoint(self, path: str) -> Endpoint | None:
        """Who answers there, other than a page."""
        is_mcp = path in (MCP, MCP + "/") or _SERVER.fullmatch(path)
        return self.endpoint if is_mcp else None


def _below_its_mount(scope: Scope) -> tuple[Scope, str]:
    """As where nothing else is served: ours are the paths behind the one it is mounted at."""
    mount, path = scope.get("root_path", ""), scope["path"]
    if not mount or not path.startswith(mount):
        return scope, ""
    return {**scope, "root_path": "", "path": path[len(mount) :] or "/"}, mount


@attrs.define(eq=False)
class _Answer:
    """An ASGI `send` that adds headers, and knows whether it is too late for another answer."""

    _send: Send
    headers: Sequence[Header] = ()
    has_begun: bool = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.has_begun = True
            if self.headers:
                message = {**message, "headers": [*message.get("headers", ()), *self.headers]}
        await self._send(message)


def pages(
    manager: SessionManager,
    about: Callable[[], dict[str, Any]],
    is_ready: Callable[[], bool],
    metrics: Metrics,
    reading: Reread | None = None,
) -> QuartTrio:
    """What is answered beside MCP; *about* tells `/status` of the daemon itself."""
    app = QuartTrio(__name__, static_folder=None)
    views = the_page(manager, about)
    reloading.add_to(views, reading)
    app.register_blueprint(views.blueprint)
    app.after_request(secured)
    app.config["MAX_CONTENT_LENGTH"] = MAX_BODY
    app.config["RESPONSE_TIMEOUT"] = None
    """A stream may last."""
    app.config["PROPAGATE_EXCEPTIONS"] = True
    """What nobody expects is for the wall around all of us, which logs it."""

    @app.get("/healthz")
    async def healthz() -> Response:
        return _json(200, {"status": "ok"})

    @app.get("/readyz")
    async def readyz() -> Response:
        if is_ready():
            return _json(200, {"status": "ready"})
        return _json(503, {"status": "draining"})

    @app.get("/status")
    async def status() -> Response:
        whose = visit().visitor.whose
        said = about() | await in_slices(status_of(manager, whose))
        said["programs"] = await programs_of(manager, whose)
        if whose is None and reading is not None:
            said["configuration"] = reading.to_json()
        body = await in_slices(spell(said)) + "\n"
        return Response(body, 200, content_type="application/json")

    @app.get("/logs")
    async def logs() -> Response:
        said = await logs_of(manager, visit().visitor.whose, request.args.get("server"))
        return Response(said + "\n", 200, content_type="application/json")

    @app.get("/metrics")
    async def scrape() -> Response:
        visitor = visit().visitor
        if visitor.whose is not None and not manager.config.http.reads_metrics(visitor.whose):
            return _json(403, Refused(403, METRICS_ARE_FOR).body)
        text, content_type = await metrics.text(request.headers.get("accept", ""))
        return Response(text, 200, content_type=content_type)

    @app.errorhandler(HTTPException)
    async def refused(error: HTTPException) -> Response:
        status = error.code or 500
        if wants_html():
            return await views.error(status, error.name, f"{request.method} {request.path}")
        said = f"{error.name}: {request.method} {request.path}; MCP is at {MCP}"
        answer = _json(status, Refused(status, said).body)
        for name, value in error.get_headers():
            if name.lower() == "allow":
                answer.headers[name] = value
        return answer

    return app


def _json(status: int, body: Any) -> Response:
    return Response(dumps(body) + "\n", status, content_type="application/json")
