"""The command line: arguments only; each subcommand is a module of `commands`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from typing import NoReturn

from .commands.common import output
from .commands.common.options import Usage
from .commands.common.output import CannotWrite, complain, say
from .errors import EmceepeeError

COMMANDS = {
    "serve": "the daemon: any number of sessions, over HTTP",
    "stdio": "one session on stdin and stdout, for clients that start their servers themselves",
    "demo": "a guided tour in ten seconds, with a built-in demo server",
    "check": "validate a configuration file; every problem with its path",
    "call": "call one tool and print its result",
    "tools": "what tools there are",
    "servers": "what servers there are, and whether they work",
    "import": "take over the servers that other programs have configured",
    "connect": "add our entry to the settings of other programs",
    "disconnect": "undo that",
    "doctor": "what is wrong on this machine, and what to do",
    "install-service": "have systemd keep the daemon running",
    "open": "the page of a running daemon in a browser: what is under way, questions, servers",
    "logs": "what servers log",
    "status": "sessions, servers, tasks and open questions of a running daemon",
    "tasks": "calls under way in a running daemon, and tasks; what came of one, or its end",
    "answer": "what servers ask, in a running daemon; and to answer it",
    "reload": "have a running daemon read its configuration again",
    "sessions": "who is connected to a running daemon",
    "completion": "print a script that completes commands and options for bash, zsh or fish",
}
"""Each a module that is imported when it is asked for: some start often, and have to be small."""

ROOMS = {
    "import": "home.take_over",
    "connect": "home.connect",
    "disconnect": "home.disconnect",
    "doctor": "health.doctor",
    "tasks": "under_way.tasks",
    "answer": "under_way.answer",
    "reload": "under_way.reload",
    "install-service": "service.install",
}
"""Modules that are not called as their command is, or have company."""


class _Parser(argparse.ArgumentParser):
    """Usage errors are one line, and what is printed is printed or an error."""

    def print_help(self, file: object = None) -> None:
        say(self.format_help().rstrip())

    def error(self, message: str) -> NoReturn:
        complain(f"{self.prog}: {message} (try {self.prog} --help)")
        raise SystemExit(2)

    def unknown(self, words: Sequence[str]) -> NoReturn:
        """What nobody takes, and what may have been meant."""
        from .model.json.problems import did_you_mean

        hints = ""
        if option := next((word for word in words if word.startswith("-")), None):
            instead: Mapping[str, str] = self.get_default("instead") or {}
            name = option.partition("=")[0]
            known = [each for action in self._actions for each in action.option_strings]
            hints = f"; use {instead[name]}" if name in instead else did_you_mean(name, known)
        self.error(f"unrecognized arguments: {' '.join(words)}{hints}")


class _Version(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib.metadata import version

        say(version("emceepee-trio"))
        parser.exit()


def main(argv: Sequence[str] | None = None) -> int:
    output.fill_in()
    try:
        return _run(argv)
    except* CannotWrite as group:  # alone, or out of a nursery
        lost = _first(group)
    if (reason := output.give_up(lost)) is None:
        return output.SIGPIPE
    complain(f"emceepee: {reason}")
    return 1


def _first(group: BaseExceptionGroup[CannotWrite]) -> CannotWrite:
    first = group.exceptions[0]
    return _first(first) if isinstance(first, BaseExceptionGroup) else first


def parsers(known: Iterable[str]) -> tuple[_Parser, dict[str, _Parser]]:
    """That of the whole, and those of the commands, of which only those *known* have arguments."""
    parser = _Parser(
        prog="emceepee",
        description="One MCP connection to every MCP server.",
        epilog="See `emceepee COMMAND --help`.",
    )
    parser.add_argument("-V", "--version", action=_Version, nargs=0, help="print it and exit")
    subparsers = parser.add_subparsers(metavar="COMMAND", dest="command")
    commands = {
        name: subparsers.add_parser(name, help=does, description=does)
        for name, does in COMMANDS.items()
    }
    for name in known:
        module = import_module(f".commands.{ROOMS.get(name, name)}", __package__)
        module.add_arguments(commands[name])
        commands[name].set_defaults(run=module.run, commands=commands)
    return parser, commands


def _run(argv: Sequence[str] | None) -> int:
    words = sys.argv[1:] if argv is None else argv
    asked = next((word for word in words if not word.startswith("-")), None)
    parser, commands = parsers(name for name in COMMANDS if asked in (name, "completion"))
    if asked is not None and asked not in COMMANDS:
        from .model.json.problems import did_you_mean

        parser.error(f"no command {asked!r}{did_you_mean(asked, COMMANDS)}")
    if not words:
        parser.print_help()
        return 0
    options, strangers = parser.parse_known_args(words)
    if strangers or asked is None:
        (commands[asked] if asked else parser).unknown(strangers)
    try:
        status: int = options.run(options)
    except Usage as error:
        complain(f"emceepee {options.command}: {error}")
        return 2
    except EmceepeeError as error:
        from .config import ConfigError

        if not isinstance(error, ConfigError):
            raise
        for line in error.lines:
            complain(line)
        return 1
    except KeyboardInterrupt:
        return 130
    except BaseExceptionGroup as group:
        if group.subgroup(KeyboardInterrupt) is None:
            raise
        return 130  # as trio's nurseries hand it on, and with it what it met in other tasks
    return status
