"""The command line: arguments only; each subcommand is a module of `commands`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import version

from .commands.common import Usage, print_problems
from .config import ConfigError

COMMANDS = ("serve", "stdio", "demo", "check", "call", "status")


class _Parser(argparse.ArgumentParser):
    """Usage errors are one line."""

    def error(self, message: str) -> None:  # type: ignore[override]  # it does not return
        print(f"{self.prog}: {message} (try {self.prog} --help)", file=sys.stderr)
        raise SystemExit(2)


def main(argv: Sequence[str] | None = None) -> int:
    parser = _Parser(
        prog="emceepee",
        description="One MCP connection to every MCP server.",
        epilog="See `emceepee COMMAND --help`.",
    )
    parser.add_argument("--version", action="version", version=version("emceepee-trio"))
    subparsers = parser.add_subparsers(metavar="COMMAND", required=True, dest="command")
    for name in COMMANDS:
        module = import_module(f".commands.{name}", __package__)
        command = subparsers.add_parser(name, help=module.HELP, description=module.HELP)
        module.add_arguments(command)
        command.set_defaults(run=module.run)
    options = parser.parse_args(argv)
    try:
        status: int = options.run(options)
    except Usage as error:
        print(f"emceepee {options.command}: {error}", file=sys.stderr)
        return 2
    except ConfigError as error:
        print_problems(error)
        return 1
    except KeyboardInterrupt:
        return 130
    except BaseExceptionGroup as group:
        if group.split(KeyboardInterrupt)[1] is not None:
            raise
        return 130  # as trio's nurseries hand it on
    return status
