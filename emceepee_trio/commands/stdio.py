"""``emceepee stdio``: one session on standard input and output."""

from __future__ import annotations

import argparse

from .. import logs
from .common import add_config_options, add_log_options, keep_imported, read_config
from .output import complain, is_open

HELP = "one session on stdin and stdout, for clients that start their servers themselves"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_config_options(parser)
    add_log_options(parser)


def run(options: argparse.Namespace) -> int:
    logs.configure(options.log_format, options.log_level, alone=True)
    for fd, name in ((0, "input"), (1, "output")):
        if not is_open(fd):
            complain(f"emceepee stdio: standard {name} is closed")
            return 1
    config = read_config(options)
    # Only now: a mistake in the configuration is told without the half second this import takes.
    import trio

    from ..backend.files import raise_limit
    from ..front.stdio import CannotServe, serve_stdio

    keep_imported()
    raise_limit()
    try:
        return 0 if trio.run(serve_stdio, config) else 1
    except CannotServe as error:
        complain(f"emceepee stdio: {error}")
        return 1
