"""How other programs spell what we know, and which of their keys we leave alone.

Seen in the files of Claude Desktop, Claude Code, Cursor, VS Code, Copilot, Cline, Roo Code, Kiro,
Windsurf, Gemini CLI, Cherry Studio, FastMCP, opencode, Crush, Zed, Amp, Codex and the TypeScript
emceepee.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

import attrs

from ...model.json.problems import Problem, join, show
from ..limits import Limits
from ..policy import Policy
from ..server import Server
from ..settings import Config, Defaults, Health, Http, NativeSettings, ResultSettings
from ..treatment import Retry

SHARED = ("mcpServers", "mcp", "mcp.servers", "context_servers", "amp.mcpServers", "mcp_servers")
"""Where servers stand in files that other programs have for all that they are told: those of
Claude Code and Gemini CLI, of opencode and VS Code, of VS Code, Zed, Amp and Codex."""

SERVERS = ("servers", "mcpClients", *SHARED)
"""Where servers stand."""

_SPARSE = {"mcp", "context_servers"}
"""Where an entry may be about a server that is defined elsewhere, be it by an extension."""

_OTHER_SPELLINGS = {
    "backoffMultiplier": "multiplier",
    "backoff_multiplier": "multiplier",
    "disabledTools": "denied_tools",
    "disabled_tools": "denied_tools",
    "enabledTools": "allowed_tools",
    "enabled_tools": "allowed_tools",
    "environment": "env",
    "http_headers": "headers",
    "excludeTools": "denied_tools",
    "exclude_tools": "denied_tools",
    "httpUrl": "url",
    "includeTools": "allowed_tools",
    "reconnectConfig": "reconnect",
    "reconnect_config": "reconnect",
    "restartConfig": "restart",
    "restart_config": "restart",
    "serverUrl": "url",
    "timeout": "call_timeout_ms",
    "tools": "allowed_tools",
    "transport": "type",
    "transportType": "type",
    "workingDirectory": "cwd",
    "working_directory": "cwd",
}


def _camel(name: str) -> str:
    return re.sub(r"_(\w)", lambda found: found[1].upper(), name)


ALIASES: Mapping[str, str] = _OTHER_SPELLINGS | {
    _camel(a.name): a.name
    for cls in (
        *(Config, Defaults, Server, Retry, Limits, ResultSettings),
        *(NativeSettings, Health, Http, Policy),
    )
    for a in attrs.fields(cls)
    if "_" in a.name
}
"""Other spellings of our keys."""

TYPES = {
    "local": "stdio",
    "streamable-http": "http",
    "streamableHttp": "http",
    "streamable_http": "http",
}
"""Other names of transports."""

_OF_OTHERS: Mapping[str, str] = {
    **dict.fromkeys(("auth", "oauth"), "put a token into headers"),
    "envFile": "put its variables into env",
    "headersHelper": "put the headers into headers",
    **dict.fromkeys(
        (
            *("$schema", "//", "_comment", "alwaysAllow", "alwaysLoad", "authProviderType"),
            *(
                "autoApprove",
                "author",
                "comment",
                "default_tools_approval_mode",
                "dev",
            ),
            *("disabledReason", "environment_id", "experimental_environment", "oauth_resource"),
            *("required", "scopes", "settings", "supports_parallel_tool_calls"),
            *("displayName", "extension", "extensionName", "gallery", "icon", "id", "instructions"),
            *("keep_alive", "logoUrl", "longRunning", "metadata", "note", "notes", "provider"),
            *("providerUrl", "registryUrl", "remoteConfigured", "sandbox", "sandboxEnabled"),
            *("source", "tags", "targetAudience", "targetServiceAccount", "title", "trust"),
            *("version", "watchPaths"),
        ),
        "",
    ),
}
"""Keys of a server that mean something elsewhere, and what to do here where something is lost."""

IGNORED: Mapping[str, str] = {
    key: remedy
    for key, remedy in _OF_OTHERS.items()
    if ALIASES.get(key, key) not in attrs.fields_dict(Server)
}
"""Those that mean nothing here: what we have under such a name one day is read as ours."""

IGNORED_AT_TOP = frozenset({"inputs", "sandbox"})
"""Keys beside the servers that VS Code has."""

LONGEST_IN_SECONDS = 3600
"""Cline and Roo Code give ``timeout`` in seconds, up to this; Claude Code, Gemini CLI and others in
milliseconds, and Claude Code ignores less than 1000. So up to here it is seconds: between 1000
and here that may be wrong, but then a call is given too long, and not ended too soon."""


@attrs.frozen
class ServerEntry:
    """A server as it was written, in our words as far as they are other programs'."""

    values: dict[str, Any]
    warnings: list[str]
    problems: list[Problem]


def translate(written: Mapping[str, Any], path: str, where: str) -> ServerEntry | None:
    """An entry that stands at *path*, under the key *where*; None if it is about no server."""
    # As in our own classes, null is what a key is that was not given.
    entry = ServerEntry({key: value for key, value in written.items() if value is not None}, [], [])
    values = entry.values
    if where in _SPARSE and not {ALIASES.get(key, key) for key in values} & {"command", "url"}:
        return None
    if where == "mcp_servers":
        _codex(entry, path)
    elif where == "context_servers":
        _zed(values)
    elif where == "mcp" or values.get("type") == "local":
        _opencode(entry, path)
    for key in [key for key in values if key in IGNORED]:
        del values[key]
        remedy = f"; {IGNORED[key]}" if IGNORED[key] else ""
        entry.warnings.append(f"{join(path, key)}: ignored, it means nothing here{remedy}")
    for key in ("type", "transport", "transportType"):
        if values.get(key) == "remote":
            del values[key]  # which one its address tells
        elif isinstance(values.get(key), str):
            values[key] = TYPES.get(values[key], values[key])
    for key in ("enabled", "isActive"):
        if isinstance(values.get(key), bool) and not values.pop(key):
            values["disabled"] = True
    kinds = {ALIASES.get(key, key) for key in values}
    if "url" in kinds and "command" not in kinds:
        _drop(entry, path, "url", "args", "env", "cwd")
    elif "command" in kinds and "url" not in kinds:
        _drop(entry, path, "command", "headers")
    if "timeout" in values:
        _timeout(entry, join(path, "timeout"))
    return entry


def _zed(values: dict[str, Any]) -> None:
    """The command was an object of its own."""
    match values.get("command"):
        case {"path": str(program), **others} if others.keys() <= {"args", "env"}:
            values |= {"command": program} | {str(key): value for key, value in others.items()}


def _opencode(entry: ServerEntry, path: str) -> None:
    """The whole command line is in ``command``; a time-out is for its list of tools."""
    values = entry.values
    match values.get("command"):
        case [str(program), *args] if "args" not in values:
            values |= {"command": program, "args": args}
            is_opencode = True
        case _:
            is_opencode = values.get("type") == "remote"
    if is_opencode and values.pop("timeout", None) is not None:
        # A call would be ended by it.
        entry.warnings.append(f"{join(path, 'timeout')}: ignored, it means nothing here")
    if values.get("oauth") is False:
        del values["oauth"]
    for key, value in values.items():
        values[key] = _with_our_variables(value)


def _with_our_variables(value: Any) -> Any:
    """``{env:NAME}`` as we write it."""
    if isinstance(value, Mapping):
        return {key: _with_our_variables(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_with_our_variables(inner) for inner in value]
    if not isinstance(value, str):
        return value
    return re.sub(r"(?<!\$)\{(env:[A-Za-z_][A-Za-z0-9_]*)\}", r"${\1}", value)


def _codex(entry: ServerEntry, path: str) -> None:
    """Names of variables where we have variables, seconds where we have milliseconds."""
    values = entry.values
    headers = values.get("http_headers", values.get("headers", {}))
    from_variables = values.get("env_http_headers", {})
    if isinstance(headers, Mapping) and isinstance(from_variables, Mapping):
        added = {header: _variable(name) for header, name in from_variables.items()}
        values.pop("env_http_headers", None)
        if (name := values.pop("bearer_token_env_var", None)) is not None:
            added["Authorization"] = f"Bearer {_variable(name)}"
        if added:
            values.pop("http_headers", None)
            values["headers"] = {**headers, **added}
    if isinstance(names := values.get("env_vars"), list) and "url" not in values:
        del values["env_vars"]
        values["inherit_env"] = [name["name"] if _is_named(name) else name for name in names]
    if isinstance(values.get("tools"), Mapping):
        del values["tools"]  # which of them need to be approved of
        entry.warnings.append(f"{join(path, 'tools')}: ignored, it means nothing here")
    for theirs, ours, factor in (
        ("startup_timeout_sec", "connect_timeout_ms", 1000),
        ("startup_timeout_ms", "connect_timeout_ms", 1),
        ("tool_timeout_sec", "call_timeout_ms", 1000),
    ):
        if _is_number(values.get(theirs)) and ours not in values:
            values[ours] = round(values.pop(theirs) * factor)


def _variable(name: object) -> object:
    return f"${{{name}}}" if isinstance(name, str) else name


def _is_named(value: object) -> bool:
    return isinstance(value, Mapping) and isinstance(value.get("name"), str)


def _is_number(value: object) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and math.isfinite(value)  # type: ignore[arg-type]  # it is one


def _drop(entry: ServerEntry, path: str, kind: str, *keys: str) -> None:
    """Keys that others put, or once put, on the wrong kind of server, without any effect."""
    for key in keys:
        if entry.values.pop(key, None):
            entry.warnings.append(f"{join(path, key)}: ignored, the server has a {kind}")


def _timeout(entry: ServerEntry, path: str) -> None:
    value = entry.values["timeout"]
    if not _is_number(value):
        del entry.values["timeout"]
        entry.problems.append(Problem(path, f"expected a number, got {show(value)}"))
    elif "call_timeout_ms" in entry.values or "callTimeoutMs" in entry.values:
        del entry.values["timeout"]
        entry.warnings.append(f"{path}: ignored, there is a call_timeout_ms")
    elif value <= LONGEST_IN_SECONDS:
        entry.values["timeout"] = round(value * 1000)
        entry.warnings.append(f"{path}: taken as seconds; call_timeout_ms would be clear")
    else:
        entry.values["timeout"] = round(value)
        entry.warnings.append(f"{path}: taken as milliseconds; call_timeout_ms would be clear")
