"""What is asked in the modern era, and the session that it is for.

No handshake, no session header, no ids and no resumption. The session is a workspace named in the
URL (``/mcp?session=NAME``), of the principal alone; DELETE of that URL ends it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import attrs
from mcp.server.connection import Connection
from mcp.shared.inbound import (
    ERROR_CODE_HTTP_STATUS,
    MCP_NAME_HEADER,
    MCP_PROTOCOL_VERSION_HEADER,
    InboundLadderRejection,
    InboundModernRoute,
    classify_inbound_request,
    decode_header_value,
    find_duplicated_routing_header,
    unsupported_protocol_version_rejection,
    validate_mcp_param_headers,
)
from mcp_types import (
    HEADER_MISMATCH,
    ErrorData,
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
)
from pydantic import ValidationError

from ...serving.asgi import Refused, Scope
from ...session.manager import SessionManager
from ...session.session import Session
from ...web.wire import Headers, HttpRequest, send_bytes, send_json
from .. import tasks
from ..address import face_of, workspace_of
from ..by_the_sdk import by_the_sdk
from ..faces.face import Face
from ..mcp import Front, spelled_answer
from ..sessions import open_session
from .exchange import ModernExchange
from .workspaces import Workspace, called


@attrs.define(eq=False)
class Modern:
    manager: SessionManager
    faces: Mapping[str, Face]
    _workspaces: dict[str, Workspace] = attrs.field(factory=dict, init=False)
    """By the name of their sessions."""

    async def serve(self, request: HttpRequest, data: Any) -> None:
        """Answer what was posted."""
        scope, headers, principal = request.scope, request.headers, request.principal
        if len(headers) < len(scope["headers"]):
            _check_repeated(scope)
        message = _single(data)
        if isinstance(message, JSONRPCNotification):
            # This era has none towards a server; they are taken, and mean nothing, but for why a
            # request is about to be cancelled: closing its response cannot say that.
            version = headers.get(MCP_PROTOCOL_VERSION_HEADER, "")
            _raise_if(unsupported_protocol_version_rejection(version))
            workspace = self._workspaces.get(workspace_of(scope, principal))
            for front in () if workspace is None else workspace.under_way:
                front.observe(message)
            await send_bytes(request.send, 202)
            return
        route = classify_inbound_request(data, headers=headers)
        if isinstance(route, InboundLadderRejection):
            _raise_if(route)
        assert isinstance(route, InboundModernRoute)
        if message.method in tasks.NAMED:  # the SDK knows nothing of these
            about = decode_header_value(headers.get(MCP_NAME_HEADER))
            if about is None or about != (message.params or {}).get("taskId"):
                said = f"{MCP_NAME_HEADER} must be the taskId of {message.method}"
                raise Refused(400, said, code=HEADER_MISMATCH)
        face = face_of(scope, self.faces, self.manager.config.http.view_of(principal))
        name = workspace_of(scope, principal)
        if self.manager.draining.is_set() and self.manager.get(name) is None:
            raise Refused(503, "shutting down")
        session = self.manager.get(name) or await open_session(self.manager, name, principal)
        workspace = self._workspace(session)
        front = Front(
            session,
            self.manager,
            face,
            session.draining,
            passed_on=workspace.passed_on,
            may_resend=True,
        )
        client = called(route.client_info)
        known = None
        if not (message.params or {}).keys() - {"_meta"}:
            known = face.at_once(message.method, route.protocol_version)
        with session.presence.busy(), workspace.serves(front, message.id, client):
            if known is not None:
                await send_json(request.send, 200, spelled_answer(message.id, known))
                return
            exchange = ModernExchange(front, message, request.look)
            exchange.begin(partial(_answered, exchange, route, headers), request.send)
            await exchange.respond(request.receive, request.send)

    def _forget(self, session_id: str) -> None:
        del self._workspaces[session_id]

    def _workspace(self, session: Session) -> Workspace:
        found = self._workspaces.get(session.id)
        if found is None:
            found = self._workspaces[session.id] = Workspace(session)
            session.at_end(partial(self._forget, session.id))
        return found

    def end_workspace(self, scope: Scope, principal: str) -> None:
        """The client will ask for nothing more in its workspace."""
        session = self.manager.get(workspace_of(scope, principal))
        if session is None:
            raise Refused(404, "no such session")
        self.manager.end(session, "DELETE")


async def _answered(
    exchange: ModernExchange, route: InboundModernRoute, headers: Headers
) -> JSONRPCResponse | JSONRPCError:
    front, message, version = exchange.front, exchange.message, route.protocol_version
    if message.method != "tools/call":
        capabilities = route.client_capabilities
        connection = Connection.from_envelope(version, route.client_info, capabilities)
        return await by_the_sdk(front, message, exchange.send, connection)
    no = await _param_rejection(message, headers, front.face, front.session)
    if no is not None:
        said = ErrorData(code=no.code, message=no.message, data=no.data)
        return JSONRPCError(jsonrpc="2.0", id=message.id, error=said)
    return await front.call(message, exchange.report, version)


def _check_repeated(scope: Scope) -> None:
    pairs = [(n.decode("latin-1"), v.decode("latin-1")) for n, v in scope["headers"]]
    if (twice := find_duplicated_routing_header(pairs)) is not None:
        raise Refused(400, f"{twice} appears more than once", code=HEADER_MISMATCH)


def _single(data: Any) -> JSONRPCRequest | JSONRPCNotification:
    try:
        if isinstance(data, dict) and "id" not in data:
            return JSONRPCNotification.model_validate(data)
        return JSONRPCRequest.model_validate(data)
    except ValidationError:
        raise Refused(400, "the body must be a single JSON-RPC request or notification") from None


def _raise_if(rejection: InboundLadderRejection | None) -> None:
    if rejection is not None:
        raise Refused(
            ERROR_CODE_HTTP_STATUS.get(rejection.code, 400),
            rejection.message,
            code=rejection.code,
            data=rejection.data,
        )


async def _param_rejection(
    message: JSONRPCRequest, headers: Headers, face: Face, session: Session
) -> InboundLadderRejection | None:
    params = message.params or {}
    arguments = params.get("arguments") or {}
    if not isinstance(arguments, Mapping):
        return None
    schema = await face.schema_of(session, str(params.get("name")))
    if schema is None:
        return None
    return validate_mcp_param_headers(schema, arguments, headers)
