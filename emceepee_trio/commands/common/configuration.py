"""What several subcommands share: where the configuration comes from."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Collection

import attrs

from ... import logs
from ...config import Config, Loaded, Server, default_path, load, load_default
from ...sources import Sources


def demo_server() -> Server:
    """The demo backend, as a child of ours with the same interpreter."""
    return Server(
        name="demo",
        command=sys.executable,
        args=("-m", "emceepee_trio.demo_backend"),
    )


def read_config(
    options: argparse.Namespace, sources: Sources | None = None, *, ports: Collection[int] = ()
) -> Config:
    """The configuration a command line asks for; warnings go to the log.

    *ports* of this machine are those on which we listen ourselves.

    Raises:
        ConfigError: the file is no good.
    """
    config = Config()
    if options.config is not None:
        loaded: Loaded | None = load(options.config, sources=sources, ports=ports)
    else:
        loaded = load_default(sources=sources, ports=ports)
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
