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
    """No server of that name.

    The message names those that there are. `list_servers` tells more, `add_server` adds one.
    """

    code = "TOOL_ERR_SERVER_NOT_FOUND"


class NotFound(ToolError):
    """No such tool of a server, task, timer, question, result or resource.

    The message says what is missing, which names are like it, and which tool lists them. What was
    there once says why it is gone: fetched, expired, evicted.
    """

    code = "TOOL_ERR_NOT_FOUND"


class InvalidArguments(ToolError):
    """The arguments are not what the tool takes.

    Each problem is told with its path. Nothing has been done; mend the arguments and call again.
    """

    code = "TOOL_ERR_INVALID_ARGUMENTS"


class LimitReached(ToolError):
    """A bound was reached; the message says which.

    Let something finish or remove something, then call again. Some bounds are settings, which
    the operator can raise.
    """

    code = "TOOL_ERR_LIMIT"


class Denied(ToolError):
    """A policy forbids it; the message says which.

    To call again changes nothing. Only the operator can, in the configuration.
    """

    code = "TOOL_ERR_DENIED"


class ConnectFailed(ToolError):
    """A connection to the server could not be made.

    The message has what its program wrote last, or what its URL answered; `get_logs` has more of
    it. The next call tries again.
    """

    code = "TOOL_ERR_CONNECT_FAILED"


class ServerDisconnected(ToolError):
    """The connection to the server was lost before the answer.

    The details say whether the call may have run. The server is connected again by itself; whether
    to repeat the call is for the caller to say.
    """

    code = "TOOL_ERR_SERVER_DISCONNECTED"


class ExecutionFailed(ToolError):
    """The server answered with a JSON-RPC error, or the task ended without a result.

    The details have the server's own `code` and data.
    """


class TimedOut(ToolError):
    """`call_timeout_ms` of the server has passed, or a wait has ended before what it waited for.

    Of a wait: the work goes on, so wait again. Of a call: it is over.
    """

    code = "TOOL_ERR_TIMEOUT"


class SessionGone(ToolError):
    """The session ended under the call, or the daemon is stopping.

    Connect again.
    """

    code = "TOOL_ERR_SESSION_NOT_FOUND"


class InternalError(ToolError):
    """A bug of ours, which cost this one call; the log tells more under its id.

    Its details have `code` -32603 and the `log_id`. Please report it, with the lines of the log.
    """

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
