"""What is added to the configuration of a client that shall reach a daemon by its URL."""

from __future__ import annotations

import json
import secrets
import shlex
from typing import Any

from ...config import OUR_NAME
from ...views import DEFAULT
from ...web.token_file import VARIABLE

ENTRIES = (
    *("json", "claude-code", "claude-desktop", "cursor", "vscode", "codex", "gemini", "copilot"),
    *("windsurf", "cline", "zed"),
)
"""Clients, by the names that `connect` has for them, and what most others take."""


class ClientEntry:
    """With a session name of its own."""

    def __init__(
        self, base: str, token: str | None, view: str | None = None, server: str | None = None
    ) -> None:
        path = "/mcp" if server is None else f"/servers/{server}/mcp"
        shown = "" if view in (None, DEFAULT) else f"&view={view}"
        self.url = f"{base}{path}?session={secrets.token_hex(4)}{shown}"
        self.name = OUR_NAME if server is None else server
        self.token = token
        """As it stands in the header; None if none is needed."""
        self._words = ["stdio", "--connect", base]
        self._words += ["--view", view] if shown and view else []
        self._words += ["--server", server] if server else []

    def snippet(self) -> str:
        """As most take it."""
        return self._file({"type": "http", **self._said()})

    def of(self, client: str) -> str:
        """As that *client* takes it: a command of its own, or what belongs into its file."""
        match client:
            case "claude-code":
                words = ["claude", "mcp", "add", "--transport", "http", self.name, self.url]
                header = () if self.token is None else ("--header", f"Authorization: {self.token}")
                return shlex.join([*words, *header])
            case "codex":
                words = ["codex", "mcp", "add", self.name, "--url", self.url]
                # It takes no token, but the name of a variable with one.
                variable = () if self.token is None else ("--bearer-token-env-var", VARIABLE)
                return shlex.join([*words, *variable])
            case "vscode":
                entry = {"name": self.name, "type": "http", **self._said()}
                return shlex.join(["code", "--add-mcp", json.dumps(entry)])
            case "claude-desktop":  # its file knows programs only
                return self._file({"command": OUR_NAME, "args": self._words})
            case "cursor":
                return self._file(self._said())
            case "gemini":
                return self._file(self._said("httpUrl"))
            case "windsurf":
                return self._file(self._said("serverUrl"))
            case "cline":
                return self._file({"type": "streamableHttp", **self._said()})
            case "copilot":
                return self._file({"type": "http", **self._said(), "tools": ["*"]})
            case "zed":
                return self._file(self._said(), "context_servers")
            case _:
                return self.snippet()

    def _file(self, entry: dict[str, Any], key: str = "mcpServers") -> str:
        return json.dumps({key: {self.name: entry}}, indent=2)

    def _said(self, key: str = "url") -> dict[str, Any]:
        headers = {} if self.token is None else {"headers": {"Authorization": self.token}}
        return {key: self.url, **headers}
