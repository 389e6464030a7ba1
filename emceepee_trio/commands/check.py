"""``emceepee check``: is this configuration right?"""

from __future__ import annotations

import argparse
from pathlib import Path

from ..config import ConfigError, default_path, load
from .common import print_problems

HELP = "validate a configuration file; every problem with its path"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", nargs="?", type=Path, metavar="F", help="default: as for stdio")


def run(options: argparse.Namespace) -> int:
    path = options.file or default_path()
    if options.file is None and not path.exists():
        print(f"{path} does not exist; without one there are no servers but those added by tool")
        return 0
    try:
        loaded = load(path)
    except ConfigError as error:
        print_problems(error)
        return 1
    import sys

    from ..backend.spec import child_environment, command_line
    from ..errors import ConnectFailed

    for warning in loaded.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    servers = loaded.config.servers
    for server in servers:
        if server.command is not None and not server.disabled:
            try:
                command_line(server, child_environment(server))
            except ConnectFailed as error:
                # No mistake of the file: it may be written for another machine, or an earlier time.
                print(f"warning: {error.message}", file=sys.stderr)
    print(f"{path}: {len(servers)} server{'s' * (len(servers) != 1)}")
    for server in servers:
        note = " (disabled)" if server.disabled else ""
        print(f"  {server.name}: {server.transport} {server.target}{note}")
    return 0
