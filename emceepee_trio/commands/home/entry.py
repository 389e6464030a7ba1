"""What we write into the settings of a client: which command, which arguments, in which words."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ...config import default_path
from ...web.token_file import find_token, state_directory
from ..common.options import HOST, PORT, default_port
from ..common.remote import NoAnswer, RemoteDaemon

NAME = "emceepee"
UNIT = "emceepee.service"

Entry = dict[str, Any]

_FORMS: Mapping[str, Callable[[Entry], Entry]] = {
    # It shows tools by name only, and has the model look for the others, unless it is told not to.
    "claude-code": lambda entry: {"type": "stdio", **entry, "alwaysLoad": True},
    # It asks its model without the tools of servers that take a second, unless they are required.
    "codex": lambda entry: {**entry, "required": True},
    "copilot": lambda entry: {"type": "local", **entry, "tools": ["*"], "deferTools": "never"},
    "vscode": lambda entry: {"type": "stdio", **entry},
    "zed": lambda entry: {**entry, "env": {}},
}


def entry_of(client: str, words: list[str]) -> Entry:
    """As that *client* takes it."""
    plain: Entry = {"command": words[0], "args": words[1:]}
    return _FORMS.get(client, dict)(plain)


def command_line(environ: Mapping[str, str] = os.environ) -> list[str]:
    """What a client starts: a bridge to the daemon where there is one, else a session of its own.

    Clients are seldom started by a shell: they have another PATH, and none of its variables. So it
    says by itself whatever of those made a difference here.
    """
    words = [*program(environ), "stdio"]
    if has_daemon(environ):
        port = default_port(environ)
        words += ["--connect", "auto" if port == PORT else f"http://{HOST}:{port}"]
        state = environ.get("XDG_STATE_HOME")
        if state and state_directory(environ) != _without(environ, "XDG_STATE_HOME"):
            words += ["--state-dir", str(state_directory(environ))]
    elif environ.get("XDG_CONFIG_HOME") and (path := default_path(environ)).exists():
        words += ["--config", str(path)]
    return words


def _without(environ: Mapping[str, str], variable: str) -> Path:
    return state_directory({name: value for name, value in environ.items() if name != variable})


def program(environ: Mapping[str, str] = os.environ) -> list[str]:
    """How this very program is started, from wherever and whatever the PATH is."""
    started = Path(sys.argv[0])
    if started.name == NAME and started.exists():
        return [str(started.absolute())]
    beside = Path(sys.executable).parent / NAME
    if beside.exists():
        return [str(beside)]
    found = shutil.which(NAME, path=environ.get("PATH"))
    return [found] if found else [sys.executable, "-m", "emceepee_trio"]


def is_passing(words: Sequence[str]) -> bool:
    """Whether this program is one that is put away some day, as what `uvx` tries is."""
    return any(
        part in ("archive-v0", "builds-v0", "_npx") for part in Path(words[0]).resolve().parts
    )


def has_daemon(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether one runs where a bridge would look for it, and knows us; or is a service here."""
    if unit_path(environ).exists():
        return True
    from ...errors import EmceepeeError

    url = f"http://{HOST}:{default_port(environ)}"
    try:
        daemon = RemoteDaemon(url, find_token(None, environ))
        with daemon.request("GET", "/status", patience=1) as response:
            return response.status == 200 and b'"sessions"' in response.read(1 << 20)
    except (NoAnswer, EmceepeeError):
        return False


def unit_path(environ: Mapping[str, str] = os.environ) -> Path:
    """Where the service of this user is described."""
    home = environ.get("XDG_CONFIG_HOME") or str(
        Path(environ.get("HOME") or Path.home()) / ".config"
    )
    return Path(home) / "systemd" / "user" / UNIT
