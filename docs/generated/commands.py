"""The command line: every command with all of its options, as ``--help`` has them."""

from __future__ import annotations

import argparse
import re
import textwrap
from collections.abc import Iterator

from emceepee_trio.cli import COMMANDS, parsers

from .words import escaped, heading, wrapped


def commands_rst() -> str:
    _, commands = parsers(COMMANDS)
    return "\n".join(line for name, each in commands.items() for line in _command(name, each))


def _command(name: str, parser: argparse.ArgumentParser) -> Iterator[str]:
    yield from heading(f"``emceepee {name}``", "-", f"command-{name}")
    said = parser.description or ""
    yield from (wrapped(f"{said[:1].upper()}{escaped(said[1:])}."), "")
    yield from (".. code-block:: text", "", *_usage(parser), "")
    yield from (f".. program:: emceepee {name}", "")
    for action in parser._actions:
        if action.help == argparse.SUPPRESS or "--help" in action.option_strings:
            continue
        yield from (f".. option:: {_signature(action)}", "")
        said = _help(parser, action)
        yield from (f"   {wrapped(plain(said), '   ')}" if said else "   \\", "")


def plain(text: str) -> str:
    """What looks like an address is none that anybody can go to, and backticks are for code."""
    text = re.sub(r"(https?://[^\s,;]+)", r"``\1``", escaped(text))
    return re.sub(r"\\`([^`]+)\\`", r"``\1``", text)


def _usage(parser: argparse.ArgumentParser) -> list[str]:
    """In lines of a width that is not that of a terminal; -h is no news."""
    words = " ".join(parser.format_usage().split()).removeprefix("usage: ")
    parts = re.findall(r"\[[^]]*\]|\S+", words.replace(" [-h]", "", 1))
    kept = " ".join(part.replace(" ", "\0") for part in parts)
    lines = textwrap.wrap(kept, 88, subsequent_indent="    ", break_on_hyphens=False)
    return ["   " + line.replace("\0", " ") for line in lines]


def _signature(action: argparse.Action) -> str:
    if not action.option_strings:
        return str(action.metavar or action.dest)
    value = ""
    if action.nargs != 0:
        value = f" {action.metavar or '|'.join(map(str, action.choices or ())) or action.dest}"
    return ", ".join(f"{option}{value}" for option in action.option_strings)


def _help(parser: argparse.ArgumentParser, action: argparse.Action) -> str:
    said = parser._get_formatter()._expand_help(action) if action.help else ""
    shown = action.choices and action.option_strings and action.metavar
    choices = ", ".join(map(str, action.choices or ())) if shown else ""
    return f"{said} ({choices})" if choices and choices not in said else said
