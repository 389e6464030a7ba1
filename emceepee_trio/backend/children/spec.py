"""How to start the child of a stdio server: its argument vector and its environment.

What a server *is* (name, url, command, limits) lives in `config.Server`; this is what depends on
the machine.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection, Mapping
from pathlib import Path

from ...config import Server
from ...errors import ConnectFailed
from ...model.inherited import inherited


def child_environment(
    server: Server, ours: Mapping[str, str] = os.environ, tokens: Collection[str] = ()
) -> dict[str, str]:
    """What its entry says, and what it inherits; none of our *tokens*."""
    return inherited(ours, server.inherit_env or (), tokens) | dict(server.env)


def command_line(server: Server, environment: Mapping[str, str]) -> list[str]:
    """The argument vector, its first word found on the PATH the child will have.

    Raises:
        ConnectFailed: there is no such command.
    """
    assert server.command is not None
    path = environment.get("PATH", os.defpath)
    found = shutil.which(server.command, path=path)
    if found is None:
        where = "" if os.sep in server.command else f"; searched PATH {path}"
        raise ConnectFailed(
            f"server {server.name!r}: command {server.command!r} not found or not executable"
            f"{where}. Correct the command or give its full path",
            {"command": server.command, "path": path},
        )
    # Absolute: the child starts in a folder of its own.
    return [str(Path(found).absolute()), *server.args]
