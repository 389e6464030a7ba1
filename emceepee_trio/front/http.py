"""The MCP endpoint over HTTP: POST, GET and DELETE of `/mcp`, and which era answers them.

Those are `handshake` and `modern`. Whoever calls this has checked Host, Origin and token
(`web/security.py`) and says who the principal is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
from mcp.shared.inbound import MCP_PROTOCOL_VERSION_HEADER
from mcp_types import INVALID_REQUEST, PARSE_ERROR, PROTOCOL_VERSION_META_KEY
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from ..config import Config
from ..model.json.intake import TooMuch, Unfit
from ..model.json.long.outlines import outlines
from ..model.json.long.reading import read
from ..model.wire import loads
from ..serving.asgi import Receive, Refused, Scope, Send
from ..session.manager import SessionManager
from ..waits.slices import in_slices
from ..web.wire import (
    JSON,
    SSE,
    ClientGone,
    Headers,
    HttpRequest,
    accepts,
    headers_of,
    id_of_one,
    read_body,
    send_bytes,
    send_json,
)
from .address import names_workspace
from .faces.face import Face
from .handshake.endpoint import SESSION_HEADER, Handshake
from .modern.endpoint import Modern


@attrs.define(eq=False)
class McpEndpoint:
    manager: SessionManager
    config: Config
    faces: Mapping[str, Face]
    """By name; the first is that of a URL that names none."""
    handshake: Handshake = attrs.field(init=False)
    _modern: Modern = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.handshake = Handshake(self.manager, self.faces)
        self._modern = Modern(self.manager, self.faces)

    def drain(self) -> None:
        """Long polls and streams return; requests that are being answered go on."""
        self.manager.drain()
        self.handshake.drain()

    async def __call__(self, scope: Scope, receive: Receive, send: Send, principal: str) -> None:
        headers = headers_of(scope)
        request = HttpRequest(scope, headers, receive, send, principal)
        is_modern = _says_modern(headers)
        try:
            match scope["method"]:
                case "POST":
                    await self._post(request)
                case "GET" if not is_modern:
                    await self.handshake.listen(request)
                case "DELETE" if SESSION_HEADER not in headers and names_workspace(scope):
                    self._modern.end_workspace(scope, principal)
                    await send_bytes(send, 200)
                case "DELETE" if not is_modern:
                    self.handshake.end(request)
                    await send_bytes(send, 200)
                case method:
                    allow = b"POST, OPTIONS" if is_modern else b"GET, POST, DELETE, OPTIONS"
                    refused = f"{method} is not supported here"
                    raise Refused(405, refused, headers=[(b"allow", allow)])
        except Refused as refused:
            await send_json(send, refused.status, refused.body, refused.headers)
        except ClientGone:
            pass

    async def _post(self, request: HttpRequest) -> None:
        headers = request.headers
        if headers.get("content-type", "").split(";")[0].strip().lower() != JSON:
            raise Refused(415, f"Content-Type must be {JSON}")
        if not accepts(headers, JSON, SSE):
            raise Refused(406, f"Accept must allow both {JSON} and {SSE}")
        body = await read_body(request.receive, self.config.limits.body)
        measure = self.config.limits.of_clients
        unfit: Unfit | None = None
        try:
            data = await in_slices(read(body, measure, loads))
        except Unfit as why:
            unfit = why.with_traceback(None)  # which leads to what was read so far
        if unfit is not None:
            is_much = isinstance(unfit, TooMuch)
            raise _refused(unfit, id_of_one(await in_slices(outlines(body))) if is_much else None)
        try:
            if _is_modern(headers, data):
                await self._modern.serve(request, data)
            else:
                await self.handshake.take(request, data)
        except Refused as refused:
            refused.body["id"] = _id_of(data)
            raise


def _says_modern(headers: Headers) -> bool:
    return headers.get(MCP_PROTOCOL_VERSION_HEADER) in MODERN_PROTOCOL_VERSIONS


def _is_modern(headers: Headers, data: Any) -> bool:
    if _says_modern(headers):
        return True
    params = data.get("params") if isinstance(data, dict) else None
    meta = params.get("_meta") if isinstance(params, dict) else None
    stamped = isinstance(meta, dict) and PROTOCOL_VERSION_META_KEY in meta
    return stamped and data.get("method") != "initialize"


def _refused(unfit: Unfit, known: str | int | None) -> Refused:
    code = PARSE_ERROR if known is None else INVALID_REQUEST
    refused = Refused(400, f"the body {unfit}", code=code)
    refused.body["id"] = known
    return refused


def _id_of(data: Any) -> Any:
    """Of the single request that this is; None if it is anything else."""
    request_id = data.get("id") if isinstance(data, dict) and "method" in data else None
    return request_id if type(request_id) in (int, str) else None
