"""Homes of people as there are many: which clients keep what where, and in which state it is."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

GIT = {"command": "uvx", "args": ["mcp-server-git"]}
TICKETS = {
    "type": "http",
    "url": "https://tickets.example/mcp",
    "headers": {"Authorization": "Bearer ${TICKETS_TOKEN}"},
}
SECRET = "ghp_0123456789abcdefghij"
HUB = {"command": "npx", "args": ["-y", "hub"], "env": {"HUB_TOKEN": SECRET}}


@attrs.frozen
class Link:
    """To another file of that home."""

    to: str


@attrs.frozen
class HomeShape:
    name: str
    client: str
    """The one that it is about."""
    files: Mapping[str, bytes | Link]
    connected: tuple[str, ...] = ()
    """Files that have our entry once that client is connected."""
    imports: tuple[str, ...] = ()
    """Servers that are new to us."""
    environ: Mapping[str, str] = attrs.field(factory=dict)
    """Variables, with ``{home}`` in them."""
    modes: Mapping[str, int] = attrs.field(factory=dict)
    says: str = ""
    """Why it cannot be connected; it is as it was then."""

    def make(self, home: Path) -> None:
        for name, content in self.files.items():
            path = home / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(content, Link):
                path.symlink_to(home / content.to)
            else:
                path.write_bytes(content)
        for name, mode in self.modes.items():
            (home / name).chmod(mode)

    def variables(self, home: Path) -> dict[str, str]:
        return {name: text.format(home=home) for name, text in self.environ.items()}


def snapshot(home: Path) -> dict[str, tuple[object, ...]]:
    """Everything that is there: bytes, modes, owners, links, folders."""
    found: dict[str, tuple[object, ...]] = {}
    for path in sorted(home.rglob("*")):
        about = path.lstat()
        what: object = None
        if path.is_symlink():
            what = os.readlink(path)  # noqa: PTH115 - as it was written
        elif path.is_file():
            what = path.read_bytes()
        found[str(path.relative_to(home))] = (oct(about.st_mode), about.st_uid, about.st_gid, what)
    return found


def _json(data: object, **how: Any) -> bytes:
    return json.dumps(data, **{"indent": 2, **how}).encode()


def _servers(**servers: object) -> bytes:
    return _json({"mcpServers": servers}) + b"\n"


_STATE = {
    "numStartups": 34,
    "tipsHistory": {"shift-enter": 3},
    "projects": {
        "/src/one": {"allowedTools": [], "mcpServers": {"docs": {"command": "docs-server"}}},
        "/src/two": {"allowedTools": [], "mcpServers": {}, "history": [{"display": "hello"}]},
        "/src/bad": None,
    },
    "mcpServers": {"git": {"type": "stdio", **GIT, "env": {}}},
    "oauthAccount": {"emailAddress": "ada@example.org"},
}

_ZED = b"""\
// Zed settings
//
// For information on how to configure Zed, see the documentation.
{
  "ui_font_size": 16, // pixels
  "context_servers": {
    "git": {
      "source": "custom",
      "command": "uvx",
      "args": ["mcp-server-git"],
      "env": {}
    },
    /* from an extension */
    "postgres": {"settings": {"database_url": "postgresql://localhost"}},
  },
  "theme": {"mode": "system", "light": "One Light", "dark": "One Dark"},
}
"""

_CODEX = b"""\
model = "gpt-5"   # the big one
approval_policy = "on-request"

[mcp_servers.git]
command = "uvx"
args = ["mcp-server-git"]

[projects."/src/one"]
trust_level = "trusted"

[mcp_servers.tickets]
url = "https://tickets.example/mcp"
bearer_token_env_var = "TICKETS_TOKEN"
"""

CODE = ".config/Code/User"

HOMES = (
    HomeShape("nothing at all", "cursor", {}, (".cursor/mcp.json",)),
    HomeShape(
        "claude code with projects",
        "claude-code",
        {".claude.json": _json(_STATE), ".claude/settings.json": b"{}"},
        (".claude.json",),
        ("git", "docs"),
    ),
    HomeShape(
        "claude code on one line, for the owner alone",
        "claude-code",
        {".claude.json": _json(_STATE, indent=None)},
        (".claude.json",),
        ("git", "docs"),
        modes={".claude.json": 0o600},
    ),
    HomeShape(
        "claude code elsewhere",
        "claude-code",
        {"work/.claude.json": _servers(git=GIT), ".claude.json": _servers(other=GIT)},
        ("work/.claude.json",),
        ("git",),
        environ={"CLAUDE_CONFIG_DIR": "{home}/work"},
    ),
    HomeShape(
        "claude code of its first versions",
        "claude-code",
        {".claude/.config.json": _servers(git=GIT)},
        (".claude/.config.json",),
        ("git",),
    ),
    HomeShape(
        "claude code with a file of its first versions left",
        "claude-code",
        {".claude/.config.json": _servers(a=GIT), ".claude.json": _servers(git=GIT)},
        (".claude.json",),
        ("a", "git"),
    ),
    HomeShape(
        "claude code that was never started",
        "claude-code",
        {".claude/CLAUDE.md": b"Be brief."},
        (".claude.json",),
    ),
    HomeShape(
        "claude desktop",
        "claude-desktop",
        {
            ".config/Claude/claude_desktop_config.json": _json(
                {"globalShortcut": "", "mcpServers": {"hub": HUB}}
            )
        },
        (".config/Claude/claude_desktop_config.json",),
        ("hub",),
    ),
    HomeShape(
        "claude desktop without servers",
        "claude-desktop",
        {".config/Claude/claude_desktop_config.json": b'{"preferences": {"x": true}}'},
        (".config/Claude/claude_desktop_config.json",),
    ),
    HomeShape(
        "claude desktop under another XDG_CONFIG_HOME",
        "claude-desktop",
        {"etc/Claude/claude_desktop_config.json": _servers(git=GIT)},
        ("etc/Claude/claude_desktop_config.json",),
        ("git",),
        environ={"XDG_CONFIG_HOME": "{home}/etc"},
    ),
    HomeShape(
        "cursor", "cursor", {".cursor/mcp.json": _servers(git=GIT)}, (".cursor/mcp.json",), ("git",)
    ),
    HomeShape(
        "cursor with tabs and carriage returns",
        "cursor",
        {".cursor/mcp.json": b'{\r\n\t"mcpServers": {\r\n\t\t"a": {"command": "a"}\r\n\t}\r\n}'},
        (".cursor/mcp.json",),
        ("a",),
    ),
    HomeShape(
        "cursor with a byte order mark",
        "cursor",
        {".cursor/mcp.json": b"\xef\xbb\xbf" + _servers(git=GIT)},
        (".cursor/mcp.json",),
        ("git",),
    ),
    HomeShape("an empty file", "cursor", {".cursor/mcp.json": b""}, (".cursor/mcp.json",)),
    HomeShape("blanks only", "cursor", {".cursor/mcp.json": b" \n\n"}, (".cursor/mcp.json",)),
    HomeShape("an empty object", "cursor", {".cursor/mcp.json": b"{}"}, (".cursor/mcp.json",)),
    HomeShape(
        "a folder without the file", "cursor", {".cursor/argv.json": b"{}"}, (".cursor/mcp.json",)
    ),
    HomeShape(
        "a broken file",
        "cursor",
        {".cursor/mcp.json": b'{"mcpServers": {"git": {"command": "uvx"'},
        says="mend that first",
    ),
    HomeShape(
        "no text", "cursor", {".cursor/mcp.json": b"\xff\xfe{\x00}\x00"}, says="is not UTF-8"
    ),
    HomeShape("a list", "cursor", {".cursor/mcp.json": b"[]"}, says="holds no object"),
    HomeShape(
        "servers that are a list",
        "cursor",
        {".cursor/mcp.json": b'{"mcpServers": []}\n'},
        says="mcpServers is no object",
    ),
    HomeShape(
        "a file that is read-only",
        "cursor",
        {".cursor/mcp.json": _servers(git=GIT)},
        imports=("git",),
        modes={".cursor/mcp.json": 0o444},
        says="chmod u+w",
    ),
    HomeShape(
        "a link into a store that is read-only",
        "gemini",
        {
            "store/settings.json": _servers(git=GIT),
            ".gemini/settings.json": Link("store/settings.json"),
        },
        imports=("git",),
        modes={"store/settings.json": 0o444},
        says="it leads to",
    ),
    HomeShape(
        "a link to dotfiles",
        "gemini",
        {
            "dotfiles/gemini.json": _json({"theme": "Dracula", "mcpServers": {"git": GIT}}),
            ".gemini/settings.json": Link("dotfiles/gemini.json"),
        },
        (".gemini/settings.json",),
        ("git",),
    ),
    HomeShape(
        "a linked folder",
        "codex",
        {"dotfiles/codex/config.toml": _CODEX, ".codex": Link("dotfiles/codex")},
        (".codex/config.toml",),
        ("git", "tickets"),
    ),
    HomeShape(
        "a link that leads nowhere yet",
        "gemini",
        {"dotfiles/README": b"", ".gemini/settings.json": Link("dotfiles/gemini.json")},
        (".gemini/settings.json",),
    ),
    HomeShape(
        "a link to itself",
        "cursor",
        {".cursor/mcp.json": Link(".cursor/mcp.json")},
        says="mcp.json",
    ),
    HomeShape(
        "vscode",
        "vscode",
        {
            f"{CODE}/mcp.json": _json({"inputs": [], "servers": {"git": {"type": "stdio", **GIT}}}),
            f"{CODE}/settings.json": b"{}",
        },
        (f"{CODE}/mcp.json",),
        ("git",),
    ),
    HomeShape(
        "vscode with profiles, beside Insiders",
        "vscode",
        {
            f"{CODE}/mcp.json": _json({"servers": {"git": GIT}}, indent="\t"),
            f"{CODE}/profiles/1a2b/mcp.json": _json({"servers": {"a": {"command": "a"}}}, indent=4),
            f"{CODE}/profiles/3c4d/settings.json": b"{}",
            ".config/Code - Insiders/User/settings.json": b"{}",
        },
        (
            f"{CODE}/mcp.json",
            f"{CODE}/profiles/1a2b/mcp.json",
            ".config/Code - Insiders/User/mcp.json",
        ),
        ("git", "a"),
    ),
    HomeShape(
        "vscode with servers in its settings",
        "vscode",
        {
            f"{CODE}/settings.json": b"""{
  // editor
  "editor.tabSize": 2,
  "mcp": {"inputs": [], "servers": {"git": {"command": "uvx", "args": ["mcp-server-git"]}}},
}
"""
        },
        (f"{CODE}/mcp.json",),
        ("git",),
    ),
    HomeShape(
        "vscode that is carried about",
        "vscode",
        {"usb/user-data/User/mcp.json": _json({"servers": {"git": GIT}})},
        ("usb/user-data/User/mcp.json",),
        ("git",),
        environ={"VSCODE_PORTABLE": "{home}/usb"},
    ),
    HomeShape(
        "codex",
        "codex",
        {".codex/config.toml": _CODEX},
        (".codex/config.toml",),
        ("git", "tickets"),
    ),
    HomeShape(
        "codex elsewhere, with profiles",
        "codex",
        {
            "c/config.toml": b'model = "o"\r\n',
            "c/work.config.toml": b'[mcp_servers.git]\ncommand = "uvx"\n',
        },
        ("c/config.toml",),
        ("git",),
        environ={"CODEX_HOME": "{home}/c"},
    ),
    HomeShape(
        "codex with everything in one line",
        "codex",
        {".codex/config.toml": b'mcp_servers = { git = { command = "uvx" } }\n'},
        (".codex/config.toml",),
        ("git",),
    ),
    HomeShape(
        "codex with a broken file",
        "codex",
        {".codex/config.toml": b"[mcp_servers.git\n"},
        says="mend that first",
    ),
    HomeShape(
        "gemini with variables of shells, elsewhere",
        "gemini",
        {"g/.gemini/settings.json": _servers(hub={**HUB, "env": {"HUB_TOKEN": "$HUB_TOKEN"}})},
        ("g/.gemini/settings.json",),
        ("hub",),
        environ={"GEMINI_CLI_HOME": "{home}/g"},
    ),
    HomeShape(
        "copilot",
        "copilot",
        {".copilot/mcp-config.json": _servers(git={"type": "local", **GIT, "tools": ["*"]})},
        (".copilot/mcp-config.json",),
        ("git",),
    ),
    HomeShape(
        "copilot elsewhere",
        "copilot",
        {"p/config.json": b"{}"},
        ("p/mcp-config.json",),
        environ={"COPILOT_HOME": "{home}/p"},
    ),
    HomeShape(
        "windsurf and its successor",
        "windsurf",
        {
            ".codeium/windsurf/mcp_config.json": _servers(
                tickets={"serverUrl": "https://tickets.example/mcp"}
            ),
            ".config/devin/mcp_config.json": b'{"mcpServers": {}}',
        },
        (".codeium/windsurf/mcp_config.json", ".config/devin/mcp_config.json"),
        ("tickets",),
    ),
    HomeShape(
        "cline",
        "cline",
        {
            ".cline/data/settings/cline_mcp_settings.json": _servers(
                git={**GIT, "disabled": False, "autoApprove": ["git_log"], "timeout": 60}
            )
        },
        (".cline/data/settings/cline_mcp_settings.json",),
        ("git",),
    ),
    HomeShape(
        "cline where it was before",
        "cline",
        {
            f"{CODE}/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json": (
                _servers(git=GIT)
            )
        },
        (f"{CODE}/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",),
        ("git",),
    ),
    HomeShape(
        "zed", "zed", {".config/zed/settings.json": _ZED}, (".config/zed/settings.json",), ("git",)
    ),
    HomeShape(
        "zed with nothing but comments",
        "zed",
        {".config/zed/settings.json": b"// Zed settings\n// all are as they come\n"},
        (".config/zed/settings.json",),
    ),
    HomeShape(
        "emceepee under another name",
        "cursor",
        {".cursor/mcp.json": _servers(hub={"command": "emceepee", "args": ["stdio"]}, git=GIT)},
        imports=("git",),
    ),
    HomeShape(
        "something else under our name",
        "cursor",
        {".cursor/mcp.json": _servers(emceepee={"command": "node", "args": ["server.js"]})},
        says="rename that first",
    ),
)
