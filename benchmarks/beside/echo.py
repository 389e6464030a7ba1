"""The server behind all of them: lines of JSON, one tool that says what it was told.

It does as little as a server can, so that what is measured is what stands in front of it.
"""

from __future__ import annotations

import json
import sys
from typing import Any

TOOL = {
    "name": "echo",
    "description": "Says what it is told.",
    "inputSchema": {
        "type": "object",
        "properties": {"text": {"type": "string"}},
        "required": ["text"],
    },
}


def answered(method: str, params: dict[str, Any]) -> dict[str, Any]:
    match method:
        case "tools/call":
            said = {"type": "text", "text": params["arguments"]["text"]}
            return {"result": {"content": [said]}}
        case "tools/list":
            return {"result": {"tools": [TOOL]}}
        case "ping":
            return {"result": {}}
        case "initialize":
            server = {"name": "echo", "version": "0"}
            capabilities: dict[str, Any] = {"tools": {}}
            version = params["protocolVersion"]
            agreed = {"protocolVersion": version, "capabilities": capabilities}
            return {"result": {**agreed, "serverInfo": server}}
    return {"error": {"code": -32601, "message": "Method not found"}}


def main() -> None:
    read, write = sys.stdin.buffer, sys.stdout.buffer
    for line in read:
        asked = json.loads(line)
        if "id" in asked and "method" in asked:
            said = answered(asked["method"], asked.get("params") or {})
            answer = {"jsonrpc": "2.0", "id": asked["id"], **said}
            write.write(json.dumps(answer).encode() + b"\n")
            write.flush()


if __name__ == "__main__":
    main()
