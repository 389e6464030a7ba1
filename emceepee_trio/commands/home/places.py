"""Where each client keeps the servers that it is told of, and under which key.

As of November 2026, by their own documentation and code. What an environment variable moves is
looked for where it says; a client of which nothing is there is not installed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import attrs

from ..common.options import Usage

Environ = Mapping[str, str]


class NoHome(Usage):
    """Nobody says where a user's files are."""


@attrs.frozen
class ClientFile:
    """A file in which a client has servers, and where in it."""

    client: str
    path: Path
    key: str
    """As `dialects` calls it; parts are between dots."""
    sign: Path
    """What is there if the client is, or this profile of it."""
    is_for_us: bool = True
    """Whether our entry goes there, too; else it is only read."""

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(self.key.split("."))

    @property
    def is_there(self) -> bool:
        return self.path.exists() or self.path.is_symlink()


@attrs.frozen
class Around:
    """The environment in which a client would look for its files."""

    environ: Environ
    platform: str = sys.platform

    @property
    def home(self) -> Path:
        home = self.environ.get("HOME")
        if not home:
            try:
                return Path.home()
            except RuntimeError:
                raise NoHome("there is no home to look for clients in; set HOME") from None
        return Path(home)

    @property
    def settings(self) -> Path:
        """Where programs of a desktop have theirs."""
        if self.platform == "darwin":
            return self.home / "Library" / "Application Support"
        return self.named("XDG_CONFIG_HOME") or self.home / ".config"

    def named(self, *variables: str) -> Path | None:
        """The folder or file that the first of these variables names that is set."""
        found = next(filter(None, map(self.environ.get, variables)), None)
        return None if found is None else Path(found).absolute()


def _claude_code(around: Around) -> Iterator[ClientFile]:
    moved = around.named("CLAUDE_CONFIG_DIR")
    folder = moved or around.home / ".claude"
    path, early = (moved or around.home) / ".claude.json", folder / ".config.json"
    # Of its first versions; it goes on with that one as long as it is the only one.
    is_early = early.is_file() and not path.exists()
    if early.is_file():
        yield ClientFile("claude-code", early, "mcpServers", early, is_for_us=is_early)
    if not is_early:
        yield ClientFile("claude-code", path, "mcpServers", folder)


def _claude_desktop(around: Around) -> Iterator[ClientFile]:
    folder = around.settings / "Claude"
    yield ClientFile("claude-desktop", folder / "claude_desktop_config.json", "mcpServers", folder)


def _cursor(around: Around) -> Iterator[ClientFile]:
    folder = around.home / ".cursor"
    yield ClientFile("cursor", folder / "mcp.json", "mcpServers", folder)


def _users_of_vscode(around: Around) -> Iterator[Path]:
    if (portable := around.named("VSCODE_PORTABLE")) is not None:
        yield portable / "user-data" / "User"
    base = around.named("VSCODE_APPDATA") or around.settings
    for product in ("Code", "Code - Insiders", "VSCodium"):
        yield base / product / "User"


def _vscode(around: Around) -> Iterator[ClientFile]:
    for user in _users_of_vscode(around):
        yield ClientFile("vscode", user / "mcp.json", "servers", user)
        yield ClientFile("vscode", user / "settings.json", "mcp.servers", user, is_for_us=False)
        # A profile without such a file shows the servers of the default one.
        for path in sorted(user.glob("profiles/*/mcp.json")):
            yield ClientFile("vscode", path, "servers", path)


def _codex(around: Around) -> Iterator[ClientFile]:
    folder = around.named("CODEX_HOME") or around.home / ".codex"
    main = folder / "config.toml"
    yield ClientFile("codex", main, "mcp_servers", folder)
    # Profiles are layers over that file, so that our entry is in them, too.
    for path in sorted(folder.glob("*.config.toml")):
        yield ClientFile("codex", path, "mcp_servers", path, is_for_us=False)


def _gemini(around: Around) -> Iterator[ClientFile]:
    folder = (around.named("GEMINI_CLI_HOME") or around.home) / ".gemini"
    yield ClientFile("gemini", folder / "settings.json", "mcpServers", folder)


def _copilot(around: Around) -> Iterator[ClientFile]:
    folder = around.named("COPILOT_HOME") or around.home / ".copilot"
    yield ClientFile("copilot", folder / "mcp-config.json", "mcpServers", folder)


def _windsurf(around: Around) -> Iterator[ClientFile]:
    for product in ("windsurf", "windsurf-next"):
        folder = around.home / ".codeium" / product
        yield ClientFile("windsurf", folder / "mcp_config.json", "mcpServers", folder)
    devin = (around.named("XDG_CONFIG_HOME") or around.home / ".config") / "devin"
    yield ClientFile("windsurf", devin / "mcp_config.json", "mcpServers", devin)


def _cline(around: Around) -> Iterator[ClientFile]:
    root = around.named("CLINE_DIR") or around.home / ".cline"
    data = around.named("CLINE_DATA_DIR") or root / "data"
    name = "cline_mcp_settings.json"
    path = around.named("CLINE_MCP_SETTINGS_PATH") or data / "settings" / name
    yield ClientFile("cline", path, "mcpServers", data)
    for user in _users_of_vscode(around):  # where it was, before versions of 2026
        settings = user / "globalStorage" / "saoudrizwan.claude-dev" / "settings"
        yield ClientFile("cline", settings / name, "mcpServers", settings)


def _zed(around: Around) -> Iterator[ClientFile]:
    base = around.named("FLATPAK_XDG_CONFIG_HOME", "XDG_CONFIG_HOME") or around.home / ".config"
    yield ClientFile("zed", base / "zed" / "settings.json", "context_servers", base / "zed")


CLIENTS: Mapping[str, Callable[[Around], Iterator[ClientFile]]] = {
    "claude-code": _claude_code,
    "claude-desktop": _claude_desktop,
    "cursor": _cursor,
    "vscode": _vscode,
    "codex": _codex,
    "gemini": _gemini,
    "copilot": _copilot,
    "windsurf": _windsurf,
    "cline": _cline,
    "zed": _zed,
}
"""By the names under which commands know them."""


def places(client: str, around: Around) -> list[ClientFile]:
    """Each file once, the one that it reads first at the beginning."""
    found: dict[Path, ClientFile] = {}
    for place in CLIENTS[client](around):
        found.setdefault(place.path, place)
    return list(found.values())


def to_be_told(client: str, around: Around) -> list[ClientFile]:
    """Where our entry goes: every profile that there is, or the one there would be."""
    mine = [place for place in places(client, around) if place.is_for_us]
    return [place for place in mine if place.sign.exists() or place.is_there] or mine[:1]


def is_installed(client: str, around: Around) -> bool:
    return any(place.sign.exists() or place.is_there for place in places(client, around))
