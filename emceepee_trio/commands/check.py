"""``emceepee check``: is this configuration right?"""

from __future__ import annotations

import argparse
from pathlib import Path

from ..config import Lacking, default_path, load, load_default
from .output import complain, say


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", nargs="?", type=Path, metavar="F", help="default: as for stdio")


def run(options: argparse.Namespace) -> int:
    path = options.file or default_path()
    loaded = load(path) if options.file is not None else load_default()
    if loaded is None:
        say(f"{path} does not exist; without one there are no servers but those added by tool")
        return 0
    from ..backend.spec import child_environment, command_line
    from ..errors import ConnectFailed

    for warning in loaded.warnings:
        complain(f"warning: {warning}")
    servers = loaded.config.servers
    for server in servers:
        if server.command is not None and not server.disabled:
            try:
                command_line(server, child_environment(server))
            except ConnectFailed as error:
                # No mistake of the file: it may be written for another machine, or an earlier time.
                complain(f"warning: {error.message}")
    say(f"{path}: {len(servers)} server{'s' * (len(servers) != 1)}")
    for server in servers:
        note = " (disabled)" if server.disabled else ""
        if isinstance(server, Lacking):
            note = f" (disabled: {server.lacks})"
        say(f"  {server.name}: {server.transport} {server.target}{note}")
    return 0
