"""``emceepee servers``: what servers there are, and whether they work."""

from __future__ import annotations

import argparse
import json
from typing import Any

from . import shell
from .output import say, table
from .shell import Asked, Refused, answer

BAD = {"error", "reconnecting", "disconnected"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="everything, as JSON")
    shell.add_arguments(parser)


def run(options: argparse.Namespace) -> int:
    async def ask(asked: Asked) -> list[Any]:
        await asked.settled(None)
        found: list[Any] = answer(await asked.call("list_servers", {"detail": "full"}))["servers"]
        return found

    try:
        servers = shell.in_session(options, ask)
    except Refused as why:
        return shell.refused(options, why)
    if options.json:
        say(json.dumps(servers, indent=2, ensure_ascii=False))
    elif not servers:
        say("no servers")
    else:
        columns = ("name", "status", "transport", "target", "last_error")
        rows = [[server.get(key, "") for key in columns] for server in servers]
        say("\n".join(table((*columns[:-1], "error"), rows)))
    return 1 if any(server.get("status") in BAD for server in servers) else 0
