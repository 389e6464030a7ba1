"""``emceepee logs``: what servers log, and write to stderr."""

from __future__ import annotations

import argparse
from typing import Any

from ..config.bounds import MAX_LOGS_RETURNED
from ..model.wire import dumps
from . import shell
from .output import say
from .shell import Asked, Refused, answer


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("server", nargs="?", metavar="SERVER", help="of this one")
    parser.add_argument("-f", "--follow", action="store_true", help="go on until interrupted")
    shell.add_arguments(parser)


def run(options: argparse.Namespace) -> int:
    wanted: dict[str, Any] = {"limit": MAX_LOGS_RETURNED}
    if options.server is not None:
        wanted["server"] = options.server

    async def ask(asked: Asked) -> None:
        if not options.follow:
            await asked.settled(options.server)
        while True:
            for entry in answer(await asked.call("get_logs", wanted))["logs"]:
                say(_line(entry))
            if not options.follow:
                return
            await asked.pause()

    try:
        shell.in_session(options, ask, options.server)
    except Refused as why:
        return shell.refused(options, why)
    return 0


def _line(entry: dict[str, Any]) -> str:
    data = entry["data"] if isinstance(entry["data"], str) else dumps(entry["data"])
    return f"{entry['timestamp']} {entry['server']} {entry['source']} {entry['level']}: {data}"
