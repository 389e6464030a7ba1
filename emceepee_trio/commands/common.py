"""What several subcommands share: where the configuration comes from."""

from __future__ import annotations

import argparse
import gc
import sys
from pathlib import Path

import attrs

from .. import logs
from ..config import Config, ConfigError, Loaded, Server, Sources, default_path, load, load_default
from .output import complain


class Usage(Exception):
    """The command line is wrong: one line, exit 2."""


def add_config_options(parser: argparse.ArgumentParser) -> None:
    where = "$XDG_CONFIG_HOME/emceepee/config.json, if present"
    parser.add_argument("--config", type=Path, metavar="F", help=f"configuration; default {where}")
    parser.add_argument("--demo", action="store_true", help="add the built-in demo server")


def add_log_options(parser: argparse.ArgumentParser, *, style: str = "json") -> None:
    parser.add_argument("--log-format", choices=["json", "text"], default=style)
    parser.add_argument("--log-level", choices=["debug", "info", "warn", "error"], default="warn")


def keep_imported() -> None:
    """What is there before anything runs stays until the end, so garbage is not looked for in it.

    Everybody waits for a collection, and with all that is imported one takes a tenth of a second.
    """
    gc.freeze()


def demo_server() -> Server:
    """The demo backend, as a child of ours with the same interpreter."""
    return Server(
        name="demo",
        command=sys.executable,
        args=("-m", "emceepee_trio.demo_backend"),
    )


def read_config(options: argparse.Namespace, sources: Sources | None = None) -> Config:
    """The configuration a command line asks for; warnings go to the log.

    Raises:
        ConfigError: the file is no good.
    """
    config = Config()
    if options.config is not None:
        loaded: Loaded | None = load(options.config, sources=sources)
    else:
        loaded = load_default(sources=sources)
        if loaded is not None:
            # Where there was one, none is a mistake from now on, and not a configuration without
            # any servers.
            options.config = default_path()
    if loaded is not None:
        config, path = loaded.config, options.config
        for warning in loaded.warnings:
            logs.write("warn", "config_warning", path=str(path), message=warning)
    if options.demo:
        others = tuple(server for server in config.servers if server.name != "demo")
        config = attrs.evolve(config, servers=(*others, demo_server()))
    return config


def print_problems(error: ConfigError) -> None:
    for problem in error.problems:
        complain(str(problem))
