"""``emceepee logs``: what servers log, and write to stderr.

Of a daemon that has sessions, those of the sessions; else they are started to see.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from typing import Any

from ..config.bounds import MAX_LOGS_RETURNED
from ..model.wire import dumps
from . import status
from .common import shell
from .common.output import say
from .common.remote import NoAnswer, RemoteDaemon
from .common.shell import Asked, Unavailable, answer
from .common.terminal import working


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
            with working("waiting for servers"):
                await asked.settled(options.server)
        if options.server is not None:
            known = answer(await asked.call("list_servers", {}))["servers"]
            if options.server not in (names := [each["name"] for each in known]):
                raise Unavailable(shell.no_server(options.server, names))
        while True:
            found = answer(await asked.call("get_logs", wanted))["logs"]
            for entry in found:
                say(_line(entry))
            if not options.follow:
                if not found:
                    shell.tell_where_servers_are(options, "nothing was logged by servers of")
                return
            await asked.pause()

    try:
        if options.url is None or not _tell_of_sessions(options):
            shell.in_session(options, ask, options.server)
    except Unavailable as why:
        return shell.refused(options, why)
    return 0


def _tell_of_sessions(options: argparse.Namespace) -> bool:
    """Tell what those of a daemon have logged, which forgets nothing of it; whether it has any."""
    shell.check_alone(options)
    page, before = "/logs", Counter[str]()
    try:
        daemon = RemoteDaemon.find(options.url, options.state_dir)
        names = status.ask(daemon, _names)
        if not names:
            return False
        if options.server is not None:
            if options.server not in names:
                raise Unavailable(shell.no_server(options.server, names))
            page += f"?server={options.server}"
        while True:
            lines = status.ask(daemon, _lines, page, "logs")
            now = Counter(lines)
            new = now - before
            for line in lines:
                if new[line]:
                    new[line] -= 1
                    say(line)
            if not options.follow:
                return True
            before = now
            time.sleep(shell.PAUSE)
    except NoAnswer as why:
        raise Unavailable(str(why)) from None


def _names(_: str, said: dict[str, Any]) -> set[str]:
    return {server["name"] for session in said["sessions"] for server in session["servers"]}


def _lines(_: str, said: dict[str, Any]) -> list[str]:
    return [f"{_line(entry)} ({_whose(entry['session'])})" for entry in said["logs"]]


def _whose(session: str | None) -> str:
    """A server that sessions share says of some of it only."""
    return "shared" if session is None else f"session {session}"


def _line(entry: dict[str, Any]) -> str:
    data = entry["data"] if isinstance(entry["data"], str) else dumps(entry["data"])
    return f"{entry['timestamp']} {entry['server']} {entry['source']} {entry['level']}: {data}"
