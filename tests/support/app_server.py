"""A backend with something to show, as MCP Apps have it: JSON lines on stdin and stdout.

Its lists change when it is told so: the tool ``change`` says ``times`` times that the list of tools
is another one, of which the first ``adds`` are true. Stdlib only.
"""

from __future__ import annotations

import json
import sys
from typing import Any

Json = dict[str, Any]

UI = "io.modelcontextprotocol/ui"
VIEW = "ui://chart/view.html"
HTML = "text/html;profile=mcp-app"
SHOWN = {"ui": {"resourceUri": VIEW, "visibility": ["model", "app"]}, "ui/resourceUri": VIEW}

hello: Json = {}
followed: list[str] = []
added: list[Json] = []


def described(name: str, **more: Any) -> Json:
    return {"name": name, "inputSchema": {"type": "object"}, **more}


TOOLS = [
    described(
        "chart",
        title="Chart",
        icons=[{"src": "https://example.org/chart.png"}],
        annotations={"readOnlyHint": True},
        outputSchema={"type": "object", "properties": {"n": {"type": "integer"}}},
        _meta=SHOWN,
    ),
    described("refresh", _meta={"ui": {"resourceUri": VIEW, "visibility": ["app"]}}),
    described("draw again.please"),
    described("change"),
    described("touch"),
    described("hello"),
    described("fail"),
]
LINK = {"type": "resource_link", "uri": "file:///chart.csv", "name": "chart.csv"}
EMBEDDED = {"type": "resource", "resource": {"uri": VIEW, "mimeType": HTML, "text": "<p>"}}
RESOURCES = [
    {"uri": VIEW, "name": "view", "mimeType": HTML, "_meta": {"ui": {"prefersBorder": True}}},
    {"uri": "file:///chart.csv", "name": "chart.csv"},
]
TEMPLATES = [{"uriTemplate": "file:///{name}.csv", "name": "csv"}]
PROMPTS = [{"name": "explain", "arguments": [{"name": "what"}]}]
CAPABILITIES = {
    "tools": {"listChanged": True},
    "resources": {"subscribe": True, "listChanged": True},
    "prompts": {"listChanged": True},
    "completions": {},
    "extensions": {UI: {"x": 1}},
}


class Refused(Exception):
    """A JSON-RPC error: code, message, data."""


def send(**message: Any) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def text(value: Any) -> Json:
    return {"content": [{"type": "text", "text": json.dumps(value)}], "isError": False}


def call(name: str, arguments: Json) -> Json:
    match name:
        case "chart":
            return {
                "content": [LINK, EMBEDDED],
                "structuredContent": {"n": 1, "uri": VIEW},
                "_meta": {"ui": {"resourceUri": VIEW}},
            }
        case "refresh" | "draw again.please":
            return text({"called": name, "arguments": arguments})
        case "change":
            for n in range(arguments.get("times", 1)):
                if n < arguments.get("adds", 1):
                    added.append(described(f"added_{len(added)}"))
                send(method="notifications/tools/list_changed")
            return text("changed")
        case "touch":
            for uri in followed:
                send(method="notifications/resources/updated", params={"uri": uri})
            return text(followed)
        case "hello":
            return text(hello)
        case "fail":
            raise Refused(-32099, "no such luck", {"why": 1})
        case _ if name in [tool["name"] for tool in added]:
            return text({"called": name})
    raise Refused(-32602, f"unknown tool: {name}", None)


def answer(method: str, params: Json) -> Json:
    match method:
        case "initialize":
            hello.update(params)
            return {
                "protocolVersion": params["protocolVersion"],
                "capabilities": CAPABILITIES,
                "serverInfo": {"name": "apps", "version": "0"},
            }
        case "tools/list":
            return {"tools": TOOLS + added}
        case "tools/call":
            return call(params["name"], params.get("arguments") or {})
        case "resources/list":
            return {"resources": RESOURCES}
        case "resources/templates/list":
            return {"resourceTemplates": TEMPLATES}
        case "resources/read" if params["uri"] in (VIEW, "file:///chart.csv", "file:///a.csv"):
            found = {"uri": params["uri"], "mimeType": HTML, "text": "<p>", "_meta": SHOWN}
            return {"contents": [found]}
        case "resources/read":
            raise Refused(-32002, "resource not found", {"uri": params["uri"]})
        case "resources/subscribe":
            followed.append(params["uri"])
            return {}
        case "resources/unsubscribe":
            followed.remove(params["uri"])
            return {}
        case "prompts/list":
            return {"prompts": PROMPTS}
        case "prompts/get" if params["name"] == "explain":
            said = [{"role": "user", "content": block} for block in (LINK, EMBEDDED)]
            return {"description": json.dumps(params.get("arguments")), "messages": said}
        case "completion/complete":
            return {"completion": {"values": [json.dumps(params["ref"], sort_keys=True)]}}
        case "ping":
            return {}
    raise Refused(-32601, "method not found", method)


def main() -> None:
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message or "method" not in message:
            continue
        try:
            result = answer(message["method"], message.get("params") or {})
        except Refused as refused:
            code, said, data = refused.args
            send(id=message["id"], error={"code": code, "message": said, "data": data})
        else:
            send(id=message["id"], result=result)


if __name__ == "__main__":
    main()
