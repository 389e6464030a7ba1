"""What a message of the modern era says of itself, and what has to stand in headers as well."""

from __future__ import annotations

import base64
from typing import Any, TypeAlias

Json: TypeAlias = dict[str, Any]

VERSION = "io.modelcontextprotocol/protocolVersion"
CLIENT_INFO = "io.modelcontextprotocol/clientInfo"
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
"""In the `_meta` of what a client of the modern era says."""
NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
"""Which parameter of a modern request stands in its `Mcp-Name`."""


def version_of(message: Json) -> str | None:
    """That of the modern era, if the message is of it."""
    params = message.get("params")
    meta = params.get("_meta") if isinstance(params, dict) else None
    version = meta.get(VERSION) if isinstance(meta, dict) else None
    return version if isinstance(version, str) else None


def modern_headers(message: Json, version: str) -> dict[str, str]:
    method = str(message.get("method"))
    headers = {"MCP-Protocol-Version": _encoded(version), "Mcp-Method": _encoded(method)}
    params = message.get("params")
    name = params.get(NAMED.get(method, "")) if isinstance(params, dict) else None
    return headers | ({"Mcp-Name": _encoded(name)} if isinstance(name, str) else {})


def _encoded(value: str) -> str:
    """As the value of a header, in which not every character can stand."""
    if value.isascii() and value.isprintable() and value == value.strip() and "=?" not in value:
        return value
    return f"=?base64?{base64.b64encode(value.encode('utf-8', 'replace')).decode()}?="
