"""Options that several subcommands have, and what they say by themselves. Imports nothing large."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping
from pathlib import Path

HOST, PORT = "127.0.0.1", 8080
"""Where a daemon listens that is told nothing."""


class Usage(Exception):
    """The command line is wrong: one line, exit 2."""


def add_config_options(parser: argparse.ArgumentParser) -> None:
    where = "$XDG_CONFIG_HOME/emceepee/config.json, if present"
    parser.add_argument("--config", type=Path, metavar="F", help=f"configuration; default {where}")
    parser.add_argument("--demo", action="store_true", help="add the built-in demo server")


def add_log_options(parser: argparse.ArgumentParser, *, style: str = "json") -> None:
    style = "text" if sys.stderr.isatty() else style
    parser.add_argument(
        "--log-format",
        choices=["json", "text"],
        default=style,
        help="of stderr; default text on a terminal",
    )
    parser.add_argument(
        "--log-level",
        choices=["debug", "info", "warn", "error"],
        default="warn",
        help="what is logged to stderr; default warn",
    )


def add_state_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--state-dir", type=Path, metavar="D", help="where the daemon's token is, as for serve"
    )


def add_url_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--url", metavar="U", help=f"of the daemon, or unix:PATH; default http://{HOST}:$PORT"
    )
    add_state_option(parser)


def default_port(environ: Mapping[str, str] = os.environ) -> int:
    text = environ.get("PORT") or str(PORT)
    if not text.isdecimal() or int(text) > 65535:
        raise Usage(f"PORT: expected a port, got {text!r}")
    return int(text)
