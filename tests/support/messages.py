"""Every message that clients of MCP send, well-formed: what fuzzing starts from.

Of two servers, `good` and `bad`, and of ids that may exist by chance only.
"""

from __future__ import annotations

from typing import Any

from asgi_client import HELLO, LATEST, MODERN, request, stamp

Json = dict[str, Any]

ULID = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
ENTRY: Json = {
    "name": "added",
    "command": "/nowhere/server",
    "args": ["--port", "1"],
    "env": {"KEY": "value"},
    "cwd": "/",
    "restart": {"enabled": True, "max_attempts": 2, "base_delay_ms": 1000, "jitter": 0.1},
    "allowed_tools": ["e*"],
    "connect_timeout_ms": 1000,
}
REMOTE: Json = {
    "name": "remote",
    "url": "http://127.0.0.1:9/mcp",
    "headers": {"X-Key": "value"},
    "reconnect": {"enabled": False},
    "keep_on_failure": True,
}
FORM = {"request_id": ULID, "action": "accept", "content": {"name": "ada", "age": 5}}

ARGUMENTS: list[tuple[str, Json]] = [
    ("add_server", ENTRY),
    ("add_server", REMOTE),
    ("remove_server", {"name": "added"}),
    ("reconnect_server", {"name": "bad"}),
    ("list_servers", {}),
    ("get_server_status", {"server": "good"}),
    ("list_tools", {"server": "go+d", "tool": "^e.*", "detail": "full"}),
    ("execute_tool", {"server": "good", "tool": "echo", "args": {"text": "x"}, "timeout_ms": 50}),
    ("execute_tool", {"server": "bad", "tool": "ask", "args": {}, "timeout_ms": 0, "ttl_ms": 500}),
    ("list_resources", {"server": "good"}),
    ("list_resource_templates", {}),
    ("read_resource", {"server": "good", "uri": "demo://one"}),
    ("read_resource", {"server": "emceepee", "uri": "emceepee://diagrams"}),
    ("subscribe_resource", {"server": "good", "uri": "demo://one"}),
    ("unsubscribe_resource", {"server": "good", "uri": "demo://one"}),
    ("list_prompts", {}),
    ("get_prompt", {"server": "good", "name": "greet", "arguments": {"whom": "ada"}}),
    (
        "complete",
        {
            "server": "good",
            "ref": {"prompt": "greet"},
            "argument": {"name": "whom", "value": "a"},
            "context": {"other": "b"},
        },
    ),
    ("get_notifications", {"server": "bad", "limit": 5}),
    (
        "get_logs",
        {
            "level": "debug",
            "sources": ["protocol"],
            "exclude_sources": ["stderr"],
            "limit": 1,
            "clear": False,
        },
    ),
    ("set_log_level", {"server": "good", "level": "debug"}),
    ("get_roots", {}),
    ("set_roots", {"roots": [{"uri": "file:///tmp", "name": "tmp"}]}),
    ("get_sampling_requests", {}),
    (
        "respond_to_sampling",
        {"request_id": ULID, "content": "hello", "model": "m", "stop_reason": "endTurn"},
    ),
    ("cancel_sampling_request", {"request_id": ULID, "reason": "no"}),
    ("get_elicitations", {"server": "bad"}),
    ("respond_to_elicitation", FORM),
    ("cancel_elicitation_request", {"request_id": ULID}),
    ("list_tasks", {"server": "bad", "status": "working", "include_completed": True}),
    ("get_task", {"task_id": ULID}),
    ("get_task_result", {"task_id": ULID, "timeout_ms": 50}),
    ("cancel_task", {"task_id": ULID}),
    ("await_activity", {"timeout_ms": 50, "last_event_id": ULID}),
    ("set_timer", {"duration_ms": 1000, "message": "wake", "interval": True}),
    ("list_timers", {"include_inactive": True}),
    ("get_timer", {"timer_id": ULID}),
    ("delete_timer", {"timer_id": ULID}),
]
CALLS = [{"name": name, "arguments": arguments} for name, arguments in ARGUMENTS]


def notification(method: str, **params: Any) -> Json:
    return {"jsonrpc": "2.0", "method": method, "params": params}


def calls(**more: Any) -> list[Json]:
    return [request(7, "tools/call", **call, **more) for call in CALLS]


INITIALIZE = request(1, "initialize", protocolVersion=LATEST, **HELLO)
LISTEN: Json = {
    "toolsListChanged": True,
    "promptsListChanged": True,
    "resourceSubscriptions": ["demo://one"],
}
QUESTIONS: list[tuple[str, Json]] = [
    ("ping", {}),
    ("tools/list", {"cursor": "x"}),
    ("resources/list", {}),
    ("resources/templates/list", {}),
    ("resources/read", {"uri": "emceepee://diagrams"}),
    ("prompts/list", {}),
    ("prompts/get", {"name": "greet", "arguments": {"whom": "ada"}}),
    ("completion/complete", {"ref": {"type": "ref/prompt", "name": "x"}, "argument": {}}),
    ("logging/setLevel", {"level": "debug"}),
    ("resources/subscribe", {"uri": "emceepee://diagrams"}),
    ("tasks/get", {"taskId": ULID}),
]
NOTICES: list[Json] = [
    notification("notifications/initialized"),
    notification("notifications/cancelled", requestId=7, reason="timed out"),
    notification("notifications/cancelled", requestId="7"),
    notification("notifications/progress", progressToken="t", progress=1, total=2, message="m"),
    notification("notifications/roots/list_changed"),
    {"jsonrpc": "2.0", "id": 1, "result": {"action": "accept", "content": {"name": "ada"}}},
    {"jsonrpc": "2.0", "id": "1", "error": {"code": -32000, "message": "no", "data": [1]}},
]
HANDSHAKE: list[Any] = [
    INITIALIZE,
    *(request(7, method, **params) for method, params in QUESTIONS),
    *calls(),
    *calls(_meta={"progressToken": "t", "traceparent": "00-1-2-03"}),
    *NOTICES,
]
BATCH: list[Any] = [
    [request(1, "ping"), request(2, "tools/call", **CALLS[4]), NOTICES[0], request("3", "ping")],
    [*NOTICES, request("x", "tools/list")],
    [request(n, "tools/call", **call) for n, call in enumerate(CALLS)],
    [request(1, "ping"), INITIALIZE],
]
STAMPED: list[Any] = [
    request(7, "server/discover", _meta=stamp()),
    request(7, "subscriptions/listen", notifications=LISTEN, _meta=stamp()),
    *(request(7, method, **params, _meta=stamp(MODERN)) for method, params in QUESTIONS),
    *calls(_meta={**stamp(), "progressToken": 5}),
    *({**notice, "params": {**notice.get("params", {}), "_meta": stamp()}} for notice in NOTICES),
]
EVERYTHING: list[Any] = [*HANDSHAKE, *BATCH, *STAMPED]
