"""What clients are told when something does not work out: each fact with its error code.

A :class:`ToolError` is what a client sees as ``{"error": {"code", "message", "details"?}}``.
Its message says what happened *and* what to do next. What only modules of ours tell each other is
theirs. Nothing here knows about trio or MCP.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar


class EmceepeeError(Exception):
    """Its words are for people, and tell no secrets."""


class ToolError(EmceepeeError):
    """A tool call that did not work out; the client gets its code, message and details."""

    code: ClassVar[str] = "TOOL_ERR_EXECUTION_FAILED"

    def __init__(self, message: str, details: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.details = details

    def to_json(self) -> dict[str, Any]:
        error: dict[str, Any] = {"code": self.code, "message": self.message}
        if self.details:
            error["details"] = dict(self.details)
        return {"error": error}


class ServerNotFound(ToolError):
    """No server of that name."""

    code = "TOOL_ERR_SERVER_NOT_FOUND"


class NotFound(ToolError):
    """No such tool of the backend, task, timer, request or resource."""

    code = "TOOL_ERR_NOT_FOUND"


class InvalidArguments(ToolError):
    """The arguments are not what the tool takes."""

    code = "TOOL_ERR_INVALID_ARGUMENTS"


class LimitReached(ToolError):
    """A bound was reached; the message says which."""

    code = "TOOL_ERR_LIMIT"


class Denied(ToolError):
    """A policy forbids it; the message says which."""

    code = "TOOL_ERR_DENIED"


class ConnectFailed(ToolError):
    """A connection could not be made."""

    code = "TOOL_ERR_CONNECT_FAILED"


class ServerDisconnected(ToolError):
    """The connection was lost before the answer."""

    code = "TOOL_ERR_SERVER_DISCONNECTED"


class ExecutionFailed(ToolError):
    """The backend answered with a JSON-RPC error, or the task ended without a result."""


class TimedOut(ToolError):
    """``call_timeout_ms``, or a wait that ended."""

    code = "TOOL_ERR_TIMEOUT"


class SessionGone(ToolError):
    """The session ended under the call."""

    code = "TOOL_ERR_SESSION_NOT_FOUND"


class InternalError(ToolError):
    """A bug of ours, which cost this one call; the log tells more under its id."""

    def __init__(self, log_id: str) -> None:
        super().__init__(
            f"{internal(log_id)}; this call alone has failed. Report it with what the log has "
            "under that id",
            {"code": INTERNAL, "log_id": log_id},
        )


INTERNAL = -32603
"""What JSON-RPC calls an internal error."""


def internal(log_id: str) -> str:
    """What anybody is told of a bug of ours."""
    return f"internal error (log id {log_id})"


class UnknownTool(EmceepeeError):
    """Not a tool of ours: a JSON-RPC error, as the protocol says."""
