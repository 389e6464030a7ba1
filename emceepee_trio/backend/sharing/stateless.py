"""Servers that are known to keep nothing between two calls, so that sessions may share them.

By the names of their packages, in whatever way they are started. It is a short list on purpose: a
server that asks for folders, logs in, or opens something is not on it.
"""

from __future__ import annotations

import re

from ...config import Server

STATELESS = frozenset(
    {
        "@brave/brave-search-mcp-server",
        "@modelcontextprotocol/server-brave-search",
        "@modelcontextprotocol/server-google-maps",
        "@upstash/context7-mcp",
        "awslabs.aws-documentation-mcp-server",
        "duckduckgo-mcp-server",
        "exa-mcp-server",
        "mcp-server-calculator",
        "mcp-server-fetch",
        "mcp-server-time",
        "tavily-mcp",
    }
)
_VERSION = re.compile(r"(?<=.)(@|[=~<>!]=|\[).*", re.DOTALL)
"""Behind the name of a package; the first character of one may be an ``@``, too."""


def keeps_nothing(server: Server) -> bool:
    """Whether it is one of those."""
    words = (server.command or "", *server.args)
    return any(_package(word) in STATELESS for word in words)


def _package(word: str) -> str:
    scope, slash, rest = word.rpartition("/") if word.startswith("@") else ("", "", word)
    # Also a program that was installed under that name, wherever it is.
    name = rest if slash else rest.rpartition("/")[2]
    return scope + slash + _VERSION.sub("", name)
