"""``emceepee servers``: what servers there are, and whether they work.

Of a daemon that has sessions, those of the sessions, as they are; else they are started to see.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

from . import status
from .common import shell
from .common.output import say
from .common.remote import NoAnswer, RemoteDaemon
from .common.shell import Asked, Unavailable, answer
from .common.terminal import show_table, working

BAD = {"error", "reconnecting", "disconnected"}
COLUMNS: tuple[str, ...] = ("name", "status", "transport", "target", "last_error")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="everything, as JSON")
    shell.add_arguments(parser)


def run(options: argparse.Namespace) -> int:
    async def ask(asked: Asked) -> list[Any]:
        await asked.settled(None)
        found: list[Any] = answer(await asked.call("list_servers", {"detail": "full"}))["servers"]
        return found

    columns = COLUMNS
    try:
        servers = [] if options.url is None else _of_sessions(options)
        if servers:
            columns = ("session", *COLUMNS)
        else:
            with working("connecting to servers"):
                servers = shell.in_session(options, ask)
    except Unavailable as why:
        return shell.refused(options, why)
    if options.json:
        say(json.dumps(servers, indent=2, ensure_ascii=False))
    elif not servers:
        say("no servers")
        shell.tell_where_servers_are(options)
    else:
        rows = [[server.get(key, "") for key in columns] for server in servers]
        show_table((*columns[:-1], "error"), rows)
    return 1 if any(server.get("status") in BAD for server in servers) else 0


def _of_sessions(options: argparse.Namespace) -> list[dict[str, Any]]:
    shell.check_alone(options)
    try:
        return status.ask(RemoteDaemon.find(options.url, options.state_dir), _servers)
    except NoAnswer as why:
        raise Unavailable(str(why)) from None


def _servers(_: str, said: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"session": session["session"], **server}
        for session in said["sessions"]
        for server in session["servers"]
    ]
