"""``emceepee check``: is this configuration right, and do its servers work?"""

from __future__ import annotations

import argparse
from pathlib import Path

from ..config import ConfigError, Lacking, Loaded, Server, default_path, load, load_default
from .common.output import complain, say
from .common.terminal import working


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", nargs="?", type=Path, metavar="F", help="default: as for stdio")
    other = parser.add_mutually_exclusive_group()
    other.add_argument(
        "--connect",
        dest="run",
        action="store_const",
        const=run_with_servers,
        help="start each server, too: how many tools it has, or why it does not work",
    )
    other.add_argument(
        "--schema",
        dest="run",
        action="store_const",
        const=print_schema,
        help="print a JSON Schema of such files, for editors",
    )


def run(options: argparse.Namespace) -> int:
    return 1 if _checked(options.file) is None else 0


def print_schema(_: argparse.Namespace) -> int:
    import json

    from ..config import file_schema

    say(json.dumps(file_schema(), indent=2))
    return 0


def run_with_servers(options: argparse.Namespace) -> int:
    loaded = _checked(options.file)
    if loaded is None:
        return 1
    count = sum(not server.disabled for server in loaded.config.servers)
    with working(f"starting {count} server{'s' * (count != 1)}") as ticker:
        import trio

        from .. import logs
        from .common.trying import try_all

        def tell(name: str, works: bool, what: str) -> None:
            with ticker.paused():
                say(f"  {name}: {what}")

        logs.configure("text", "error", alone=True)
        if count:
            say("started:")
        return 0 if trio.run(try_all, loaded.config, tell) else 1


def _checked(file: Path | None) -> Loaded | None:
    """What is in the *file*, told; None if it is no good."""
    path = file or default_path()
    try:
        loaded = load(path) if file is not None else load_default()
        if loaded is not None and any(map(loaded.config.http.view_of, loaded.config.http.tokens)):
            from ..front.faces.views import check_views

            check_views(loaded.config, path)
    except ConfigError as error:
        for line in error.lines:
            complain(line)
        return None
    if loaded is None:
        say(f"{path} does not exist; without one there are no servers but those added by tool")
        from ..config import Config

        return Loaded(Config())
    from ..backend.children.spec import child_environment, command_line
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
        if server.scope == "principal":
            note += " (shared)"
        say(f"  {server.name}: {server.transport} {server.target}{note}")
    if known := [each.name for each in servers if _is_better_shared(each)]:
        say(
            f"{', '.join(known)}: known to keep nothing between two calls; "
            '"scope": "principal" has one program for all sessions, and not one for each'
        )
    return loaded


def _is_better_shared(server: Server) -> bool:
    from ..backend.sharing.stateless import keeps_nothing

    return server.scope == "session" and not server.disabled and keeps_nothing(server)
