"""Requests in the words of OpenTelemetry's conventions for MCP (``semantic-conventions-genai``).

Left out on purpose: arguments, results, URIs of resources, messages of errors, and ids of sessions,
of which only the label is said.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from mcp import MCPError
from trio import Cancelled

from ..model.text.redact import label
from ..tracing import TracedRequest
from .labels import shown

Attributes = dict[str, Any]

METHOD = "mcp.method.name"
TOOL = "gen_ai.tool.name"
PROMPT = "gen_ai.prompt.name"
ERROR = "error.type"
STATUS = "rpc.response.status_code"
SERVER = "emceepee.server"
TASK = "emceepee.task.id"
QUESTION = "emceepee.question.id"

OTHER = "_OTHER"
"""What is none of the names that there are."""
METHODS = frozenset(
    {
        *("initialize", "ping", "server/discover", "completion/complete", "logging/setLevel"),
        *("tools/list", "tools/call", "prompts/list", "prompts/get", "resources/list"),
        *("resources/templates/list", "resources/read", "resources/subscribe"),
        *("resources/unsubscribe", "roots/list", "sampling/createMessage", "elicitation/create"),
        *("tasks/get", "tasks/update", "tasks/result", "tasks/cancel", "tasks/list"),
        *("notifications/initialized", "notifications/cancelled", "notifications/tasks"),
        *("notifications/roots/list_changed", "notifications/tools/list_changed"),
        *("notifications/prompts/list_changed", "notifications/resources/list_changed"),
        *("notifications/resources/updated", "notifications/elicitation/complete"),
    }
)
"""A peer may send any other word."""
STREAMED = frozenset({"notifications/progress", "notifications/message"})
"""Notifications of which there may be thousands."""
LASTING = frozenset({"subscriptions/listen"})
"""Requests that are answered when their connection ends."""
NAMED = {"tools/call": TOOL, "prompts/get": PROMPT}
LATENCIES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300)
"""Seconds, as the conventions have them."""


def method_of(asked: TracedRequest) -> str:
    return asked.method if asked.method in METHODS else OTHER


def target_of(asked: TracedRequest) -> str | None:
    """The tool or prompt that it is about."""
    name = asked.params.get("name") if asked.method in NAMED else None
    return shown(name) if isinstance(name, str) else None


def name_of(asked: TracedRequest) -> str:
    """Of its span."""
    target = target_of(asked)
    return method_of(asked) if target is None else f"{asked.method} {target}"


def common(asked: TracedRequest) -> Attributes:
    """What a span says, and a measure of time as well: nothing of one request alone."""
    said: Attributes = {
        METHOD: method_of(asked),
        "network.transport": asked.transport,
    }
    if asked.version:
        said["mcp.protocol.version"] = shown(asked.version)
    if asked.transport == "tcp":
        said["network.protocol.name"] = "http"
    if asked.method == "tools/call":
        said["gen_ai.operation.name"] = "execute_tool"
    if asked.url is not None:
        said |= _address(asked.url)
    return said


def attributes(asked: TracedRequest) -> Attributes:
    """Of its span."""
    said = common(asked) | {METHOD: shown(asked.method)}
    if asked.id is not None:
        said["jsonrpc.request.id"] = shown(str(asked.id))
    if (target := target_of(asked)) is not None:
        said[NAMED[asked.method]] = target
    if asked.session is not None:
        said["mcp.session.id"] = label(asked.session)
    if asked.server is not None:
        said[SERVER] = shown(asked.server)
    return said


def _address(url: str) -> Attributes:
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        return {}
    if host is None:
        return {}
    usual = 443 if parts.scheme == "https" else 80
    return {"server.address": host, "server.port": usual if port is None else port}


def failure(error: BaseException) -> Attributes:
    """What went wrong."""
    if isinstance(error, MCPError):
        return {ERROR: str(error.error.code), STATUS: str(error.error.code)}
    if isinstance(error, Cancelled):
        return {ERROR: "cancelled"}
    return {ERROR: type(error).__qualname__}


def wrong(asked: TracedRequest, result: object) -> Attributes:
    """Likewise, if it is the result that says so."""
    is_error = isinstance(result, Mapping) and result.get("isError") is True
    return {ERROR: "tool_error"} if asked.method == "tools/call" and is_error else {}
