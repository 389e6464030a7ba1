"""Which clients are meant, and whether what was shown shall be done."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from ..common.options import Usage
from ..common.output import complain, flush, say
from .places import CLIENTS, Around


def add_arguments(parser: argparse.ArgumentParser, does: str) -> None:
    clients = parser.add_argument(
        "clients", nargs="*", metavar="CLIENT", help=f"{does}: {', '.join(CLIENTS)}"
    )
    # No choices: with these, argparse wants one of them where there may be none.
    clients.known = tuple(CLIENTS)  # type: ignore[attr-defined]  # see `completion`
    parser.add_argument("--all", action="store_true", help="every client that is installed here")
    parser.add_argument("--yes", "-y", action="store_true", help="do it without asking")


def chosen(options: argparse.Namespace, among: Callable[[str, Around], bool]) -> list[str] | None:
    """The clients that are meant; None if nobody said. With --all, those that are *among* them.

    Raises:
        Usage: there is no such client.
    """
    from ...model.json.problems import did_you_mean

    for name in options.clients:
        if name not in CLIENTS:
            raise Usage(
                f"no client {name!r}{did_you_mean(name, CLIENTS)}; try {', '.join(CLIENTS)}"
            )
    if options.all:
        if options.clients:
            raise Usage("--all: every client, or those that are named, not both")
        around = Around(os.environ)
        return [name for name in CLIENTS if among(name, around)]
    return list(dict.fromkeys(options.clients)) or None


def agreed(options: argparse.Namespace, question: str) -> bool:
    """Whether the person who sees it says so; where nobody does, --yes has to."""
    if options.yes:
        return True
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        why = "nobody is here to ask, so nothing is written without --yes"
        complain(f"emceepee {options.command}: {why}")
        return False
    sys.stdout.write(f"\n{question} [y/N] ")
    flush()
    answer = sys.stdin.readline().strip().lower()
    if answer not in ("y", "yes"):
        say("Nothing was written.")
        return False
    return True


def shown(path: Path) -> str:
    """With ~ for the home, as people write it."""
    home = os.environ.get("HOME")
    text = str(path)
    return f"~{text.removeprefix(home)}" if home and text.startswith(f"{home}/") else text


def listed(words: Sequence[str]) -> str:
    return ", ".join(words[:-1]) + f" and {words[-1]}" if len(words) > 1 else "".join(words)
