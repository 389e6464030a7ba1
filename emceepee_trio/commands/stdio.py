"""``emceepee stdio``: one session on standard input and output."""

from __future__ import annotations

import argparse

from .. import logs
from .common import add_config_options, add_log_options, keep_imported, read_config

HELP = "one session on stdin and stdout, for clients that start their servers themselves"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_config_options(parser)
    add_log_options(parser)


def run(options: argparse.Namespace) -> int:
    logs.configure(options.log_format, options.log_level, alone=True)
    config = read_config(options)
    # Only now: a mistake in the configuration is told without the half second this import takes.
    import trio

    from ..backend.files import raise_limit
    from ..front.stdio import serve_stdio

    keep_imported()
    raise_limit()
    return 0 if trio.run(serve_stdio, config) else 1
