"""``emceepee doctor``: what is wrong, and what to do."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator
from pathlib import Path

import attrs

from ...config import Config
from ..common.options import add_state_option
from ..common.output import say
from ..common.terminal import say_marked, working
from ..home.places import Around
from . import daemon, entries, machine, settings
from .finding import Finding


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--config", type=Path, metavar="F", help="default: as for serve")
    parser.add_argument("--url", metavar="U", help="of the daemon; default: as for status")
    parser.add_argument("--quick", action="store_true", help="start no servers")
    parser.add_argument("--json", action="store_true", help="everything, as JSON")
    add_state_option(parser)


def run(options: argparse.Namespace) -> int:
    found = []
    for finding in _found(options):
        found.append(finding)
        if not options.json:
            _tell(finding)
    if options.json:
        said = [{**attrs.asdict(each), "remedy": each.remedy or None} for each in found]
        say(json.dumps(said, indent=2, ensure_ascii=False))
        return int(_count(found, "broken") > 0)
    broken, warnings = _count(found, "broken"), _count(found, "warning")
    say()
    if not broken and not warnings:
        say("Nothing is wrong.")
    else:
        say(f"{broken} broken, {warnings} warning{'s' * (warnings != 1)}")
    return int(broken > 0)


def _count(found: list[Finding], state: str) -> int:
    return sum(each.state == state for each in found)


def _found(options: argparse.Namespace) -> Iterator[Finding]:
    """One after the other, as they are found."""
    config, said = settings.configuration(options.config)
    yield from said
    yield from settings.token(options.state_dir)
    yield from settings.keeping(options.state_dir)
    is_answering, said = daemon.listening(options.state_dir, options.url, options.config)
    yield from said
    yield from daemon.services(config, is_answering=is_answering)
    yield from entries.entries(Around(os.environ), config)
    yield from machine.machine()
    if config is not None and not options.quick:
        yield from _servers(config)


def _servers(config: Config) -> Iterator[Finding]:
    enabled = [server for server in config.servers if not server.disabled]
    if not enabled:
        return
    import trio

    from ... import logs
    from ..common.trying import try_all

    logs.configure("text", "error", alone=True)
    found = []

    def heard(name: str, works: bool, what: str) -> None:
        remedy = "" if works else f"correct its entry; `emceepee logs {name}` shows what it writes"
        found.append(Finding(f"server {name}", "ok" if works else "broken", what, remedy))

    with working(f"starting {len(enabled)} server{'s' * (len(enabled) != 1)}"):
        trio.run(try_all, config, heard)
    yield from found


def _tell(finding: Finding) -> None:
    say_marked(finding.state, f"{finding.state:8} {finding.about}: {finding.message}")
    if finding.remedy:
        say(f"         -> {finding.remedy}")
