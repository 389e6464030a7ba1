"""The official SDK's server with the same tool, and nothing behind it: `python on_sdk.py PORT`."""

from __future__ import annotations

import sys

from mcp.server import MCPServer

SERVER = MCPServer("echo", log_level="ERROR")


@SERVER.tool()
def echo(text: str) -> str:
    return text


if __name__ == "__main__":
    SERVER.run("streamable-http", port=int(sys.argv[1]), json_response=True)
