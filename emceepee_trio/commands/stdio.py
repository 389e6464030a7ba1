"""``emceepee stdio``: one session on standard input and output, here or on a running daemon.

Imports little at first: of what a session needs, a bridge to a daemon needs nothing.
"""

from __future__ import annotations

import argparse
import os

from ..views import DEFAULT, VIEWS
from .common.options import (
    HOST,
    Usage,
    add_config_options,
    add_log_options,
    add_state_option,
    default_port,
)
from .common.output import complain, is_open


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_config_options(parser)
    parser.add_argument(
        "--connect",
        metavar="U",
        help="a session of its own on the daemon at http://HOST:PORT or unix:PATH instead; auto: "
        "where `emceepee serve` listens if it is told nothing",
    )
    shown = parser.add_mutually_exclusive_group()
    shown.add_argument("--server", metavar="NAME", help="that server as it is, and nothing of ours")
    shown.add_argument(
        "--view",
        choices=VIEWS,
        help=f"which tools are shown: {', '.join(VIEWS)}; default {DEFAULT}",
    )
    add_state_option(parser)
    add_log_options(parser)


def run(options: argparse.Namespace) -> int:
    for fd, name in ((0, "input"), (1, "output")):
        if not is_open(fd):
            complain(f"emceepee stdio: standard {name} is closed")
            return 1
    if os.isatty(0):
        complain(
            "emceepee stdio: this waits for a client that speaks MCP; add it to one, or see "
            "`emceepee --help` for what you can ask yourself. Ctrl-D ends it"
        )
    return _serve(options) if options.connect is None else _connect(options)


def _serve(options: argparse.Namespace) -> int:
    from .. import logs
    from .common.configuration import read_config
    from .common.interpreter import settle

    logs.configure(options.log_format, options.log_level, alone=True)
    config = read_config(options)
    if options.server is not None and options.server not in {each.name for each in config.servers}:
        known = ", ".join(each.name for each in config.servers) or "none is configured"
        raise Usage(f"--server: no server {options.server!r}; there are: {known}")
    # Only now: a mistake in the configuration is told without the half second this import takes.
    import trio

    from ..backend.children.files import raise_limit
    from ..front.pipes.stdio import CannotServe, serve_stdio
    from ..web.token_file import state_to_keep

    settle()
    raise_limit()
    try:
        state, view = state_to_keep(options.state_dir), options.view or DEFAULT
        return 0 if trio.run(serve_stdio, config, state, view, options.server) else 1
    except CannotServe as error:
        complain(f"emceepee stdio: {error}")
        return 1


def _connect(options: argparse.Namespace) -> int:
    if options.config is not None or options.demo:
        raise Usage("--connect: the daemon has servers of its own; leave --config and --demo out")
    from ..bridge.http import Address
    from ..bridge.serve import LineTooLong, serve
    from ..web.token_file import BadToken, find_token

    url = f"http://{HOST}:{default_port()}" if options.connect == "auto" else options.connect
    try:
        address = Address(url)
    except ValueError as error:
        raise Usage(f"--connect: {error}, or auto") from None
    try:
        serve(address, lambda: find_token(options.state_dir), options.view, options.server)
    except (LineTooLong, BadToken) as error:
        complain(f"emceepee stdio: {error}")
        return 1
    return 0
