"""Whether the daemon could begin: its configuration, its token, where it keeps things."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

from ...config import Config, ConfigError, Lacking, default_path, load
from ...web.token_file import MINTED, VARIABLE, BadToken, find_token, read_token, state_directory
from ..home.asking import shown
from ..home.entry import unit_path
from ..service.unit import VARIABLES
from .finding import Finding

CONFIG, TOKEN, STATE = "configuration", "token", "state directory"


def of_service(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """What a service of this user is told beside, where there is one."""
    if not unit_path(environ).exists():
        return {}
    try:
        text = Path(VARIABLES.replace("%h", str(Path.home()))).read_text("utf-8")
    except (OSError, ValueError):
        return {}
    pairs = (line.partition("=") for line in text.splitlines() if not line.startswith(("#", ";")))
    return {name.strip(): value.strip().strip("\"'") for name, sign, value in pairs if sign}


def configuration(path: Path | None) -> tuple[Config | None, list[Finding]]:
    """And what is in it; None if nothing can be."""
    where = path or default_path()
    if path is None and not where.exists():
        remedy = "`emceepee import` makes one of what your clients have"
        return Config(), [Finding(CONFIG, "note", f"{shown(where)} is not there", remedy)]
    try:
        loaded = load(where, {**of_service(), **os.environ})
    except ConfigError as error:
        check = f"correct it; `emceepee check {shown(where)}` tells when it is right"
        return None, [Finding(CONFIG, "broken", line, check) for line in error.lines]
    servers = loaded.config.servers
    count = f"{len(servers)} server{'s' * (len(servers) != 1)}"
    found = [Finding(CONFIG, "ok", f"{shown(where)}: {count}")]
    for server in servers:
        if isinstance(server, Lacking):
            message = f"server {server.name!r} is disabled: {server.lacks}"
            found.append(Finding(CONFIG, "warning", message, "set it where emceepee is started"))
    told = [warning for warning in loaded.warnings if "; so it is disabled" not in warning]
    remedy = "it works without; `emceepee check` shows all of these"
    return loaded.config, [*found, *(Finding(CONFIG, "note", each, remedy) for each in told)]


def token(state: Path | None, environ: Mapping[str, str] = os.environ) -> Iterator[Finding]:
    try:
        path = (state or state_directory(environ)) / MINTED
        said = find_token(state, environ)
        kept = read_token(path)[0] if path.exists() else None
    except BadToken as error:
        remedy = "remove it, and start the daemon anew: it makes another one"
        yield Finding(TOKEN, "broken", str(error), remedy)
        return
    except OSError as error:
        yield Finding(TOKEN, "broken", str(error), "make it yours again, or name a --state-dir")
        return
    if said is None:
        yield Finding(TOKEN, "note", "there is none yet", "`emceepee serve` makes one")
        return
    if environ.get(VARIABLE) and kept is not None and kept != said:
        message = f"${VARIABLE} is another one than that in {shown(path)}"
        yield Finding(TOKEN, "warning", message, f"unset {VARIABLE}, if it is of an earlier daemon")
    if kept is not None and (mode := stat.S_IMODE(path.stat().st_mode)) & 0o077:
        message = f"others can read {shown(path)} (mode {mode:o}), and do what you can"
        yield Finding(TOKEN, "broken", message, f"chmod 600 {shown(path)}")
        return
    yield Finding(TOKEN, "ok", f"${VARIABLE}" if environ.get(VARIABLE) else shown(path))


def keeping(state: Path | None) -> Iterator[Finding]:
    try:
        folder = state or state_directory()
    except BadToken as error:
        yield Finding(STATE, "broken", str(error), "set HOME or XDG_STATE_HOME")
        return
    existing = folder
    while not existing.exists() and existing != existing.parent:
        existing = existing.parent
    if not existing.is_dir() or not os.access(existing, os.W_OK | os.X_OK):
        message = f"nothing can be written to {shown(existing)}, so nothing is kept"
        yield Finding(STATE, "broken", message, f"make {shown(folder)} a folder of yours")
    else:
        yield Finding(STATE, "ok", shown(folder))


def commands(config: Config) -> Iterator[tuple[str, str]]:
    """Names of servers, and what of them is looked for on the PATH."""
    for server in config.servers:
        if server.command is not None and not server.disabled and os.sep not in server.command:
            path = dict(server.env).get("PATH")
            if path is None:
                yield server.name, server.command
