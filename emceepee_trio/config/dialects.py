"""How other programs spell what we know, and which of their keys we leave alone.

Seen in the files of Claude Desktop, Claude Code, Cursor, VS Code, Copilot, Cline, Roo Code, Kiro,
Windsurf, Gemini CLI, Cherry Studio, FastMCP and the TypeScript emceepee.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

import attrs

from ..model.problems import Problem, join, show
from .policy import Policy
from .server import Retry, Server
from .settings import Config, Health, Http, Limits

_OTHER_SPELLINGS = {
    "backoffMultiplier": "multiplier",
    "backoff_multiplier": "multiplier",
    "enabledTools": "allowed_tools",
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
    for cls in (Config, Server, Retry, Limits, Health, Http, Policy)
    for a in attrs.fields(cls)
    if "_" in a.name
}
"""Other spellings of our keys."""

_TYPES = {
    "local": "stdio",
    "streamable-http": "http",
    "streamableHttp": "http",
    "streamable_http": "http",
}

_IGNORED: Mapping[str, str] = {
    **dict.fromkeys(("auth", "oauth"), "put a token into headers"),
    **dict.fromkeys(("disabledTools", "excludeTools"), "list the others in allowed_tools"),
    "envFile": "put its variables into env",
    "headersHelper": "put the headers into headers",
    **dict.fromkeys(
        (
            *("$schema", "//", "_comment", "alwaysAllow", "alwaysLoad", "authProviderType"),
            *("autoApprove", "author", "comment", "description", "dev", "disabledReason"),
            *("displayName", "extension", "extensionName", "gallery", "icon", "id", "instructions"),
            *("keep_alive", "logoUrl", "longRunning", "metadata", "note", "notes", "provider"),
            *("providerUrl", "registryUrl", "remoteConfigured", "sandbox", "sandboxEnabled"),
            *("source", "tags", "targetAudience", "targetServiceAccount", "title", "trust"),
            *("version", "watchPaths"),
        ),
        "",
    ),
}
"""Keys of a server that mean nothing here, and what to do instead where something is lost."""

IGNORED_AT_TOP = frozenset({"inputs", "sandbox"})
"""Keys beside the servers that VS Code has."""

LONGEST_IN_SECONDS = 3600
"""Cline and Roo Code give ``timeout`` in seconds, up to this; Claude Code, Gemini CLI and others in
milliseconds, and Claude Code ignores less than 1000. So up to here it is seconds: between 1000
and here that may be wrong, but then a call is given too long, and not ended too soon."""


@attrs.frozen
class Entry:
    """A server as it was written, in our words as far as they are other programs'."""

    values: dict[str, Any]
    warnings: list[str]
    problems: list[Problem]


def translate(written: Mapping[str, Any], path: str) -> Entry:
    # As in our own classes, null is what a key is that was not given.
    entry = Entry({key: value for key, value in written.items() if value is not None}, [], [])
    values = entry.values
    for key in [key for key in values if key in _IGNORED]:
        del values[key]
        remedy = f"; {_IGNORED[key]}" if _IGNORED[key] else ""
        entry.warnings.append(f"{join(path, key)}: ignored, it means nothing here{remedy}")
    for key in ("type", "transport", "transportType"):
        if isinstance(values.get(key), str):
            values[key] = _TYPES.get(values[key], values[key])
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


def _drop(entry: Entry, path: str, kind: str, *keys: str) -> None:
    """Keys that others put, or once put, on the wrong kind of server, without any effect."""
    for key in keys:
        if entry.values.pop(key, None):
            entry.warnings.append(f"{join(path, key)}: ignored, the server has a {kind}")


def _timeout(entry: Entry, path: str) -> None:
    value = entry.values["timeout"]
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or (isinstance(value, float) and not math.isfinite(value)):
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
