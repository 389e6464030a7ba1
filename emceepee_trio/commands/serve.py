"""``emceepee serve``: the daemon, in the foreground."""

from __future__ import annotations

import argparse
import errno
import os
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from .. import logs
from ..config import Config, default_path
from ..sources import Sources
from ..views import DEFAULT, VIEWS
from ..web.token_file import VARIABLE
from .common import output
from .common.client_entry import ENTRIES, ClientEntry
from .common.configuration import read_config
from .common.interpreter import settle
from .common.options import (
    HOST,
    PORT,
    Usage,
    add_config_options,
    add_log_options,
    default_port,
)
from .common.output import CannotWrite, complain, say

if TYPE_CHECKING:
    from ..daemon import Settings
    from ..serving.binds import Bind, Bound


SHOWN = 20
"""Names of servers that are printed."""

INSTEAD = {
    "--port": f"--bind {HOST}:PORT",
    "--host": f"--bind HOST:{PORT}",
    "--token": f"--token-file F, or ${VARIABLE}",
}
"""Options that others have, and what is meant here."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_config_options(parser)
    parser.add_argument(
        "--bind",
        action="append",
        default=[],
        metavar="B",
        help=f"HOST:PORT, unix:PATH or fd://N; may be repeated; default {HOST}:$PORT or :{PORT}",
    )
    parser.add_argument(
        "--no-auth", action="store_true", help="no token; on loopback and Unix sockets only"
    )
    parser.add_argument("--token-file", type=Path, metavar="F", help="a file with the bearer token")
    parser.add_argument(
        "--state-dir",
        type=Path,
        metavar="D",
        help="default: $STATE_DIRECTORY or $XDG_STATE_HOME/emceepee",
    )
    parser.add_argument(
        "--print-entry",
        choices=ENTRIES,
        metavar="CLIENT",
        help="print what to add to a client, as that takes it, and exit: " + ", ".join(ENTRIES),
    )
    shown = parser.add_mutually_exclusive_group()
    shown.add_argument(
        "--view", choices=VIEWS, metavar="V", help=f"of --print-entry: {', '.join(VIEWS)}"
    )
    shown.add_argument("--server", metavar="NAME", help="of --print-entry: that server as it is")
    add_log_options(parser)
    parser.set_defaults(log_level="info", instead=INSTEAD)


def run(options: argparse.Namespace) -> int:
    if options.print_entry is None and (options.view or options.server):
        raise Usage("--view and --server say what --print-entry prints; give that, too")
    logs.configure(options.log_format, options.log_level, alone=True)
    binds = _binds(options.bind)
    import trio

    from ..backend.children.files import raise_limit
    from ..daemon import Insecure, Settings
    from ..daemon import run as run_daemon
    from ..front.faces.views import check_views
    from ..serving.binds import CannotListen, Tcp
    from ..web.token_file import BadToken, state_directory, state_to_keep
    from ..web.tokens import find

    sources = Sources()
    ports = [bind.port for bind in binds if isinstance(bind, Tcp)]

    def read() -> Settings:
        config, credentials = read_config(options, sources, ports=ports), None
        check_views(config, options.config)
        if not options.no_auth:
            state = options.state_dir or state_directory()
            credentials = find(config.http, options.token_file, state, sources=sources)
        # Nobody has connected yet. From now on, somebody would have to wait.
        sources.patience = 0
        return Settings(config, credentials, options.config)

    try:
        if options.print_entry is not None:
            settings = read()
            say(_entry(settings, _url(binds), options).of(options.print_entry))
            return 0
        settle()
        raise_limit()
        state = state_to_keep(options.state_dir)
        trio.run(run_daemon, binds, read, partial(_announce, options), state)
    except (BadToken, CannotListen, Insecure) as error:
        hint = ""
        if os.strerror(errno.EADDRINUSE) in str(error):
            hint = "; `emceepee doctor` says who does, --bind or PORT names another address"
        complain(f"emceepee serve: {error}{hint}")
        return 1
    return 0


def _binds(asked: Sequence[str]) -> list[Bind]:
    """Those of the command line and those passed to us; the default if there are none."""
    from ..serving.binds import Inherited, Tcp, parse_bind
    from ..systemd import passed_sockets

    port = default_port()
    try:
        binds = [parse_bind(text, port) for text in asked]
    except ValueError as error:
        raise Usage(f"--bind: {error}") from None
    passed = [Inherited(fd) for fd in passed_sockets()]
    binds += [bind for bind in passed if bind not in binds]
    return binds or [Tcp(HOST, port)]


def _url(binds: Sequence[Bind]) -> str:
    """Where clients on this machine would reach a daemon that listens there.

    Raises:
        Usage: nobody can know.
    """
    from ipaddress import ip_address

    from ..serving.binds import Tcp

    bind = next((each for each in binds if isinstance(each, Tcp)), None)
    if bind is None:
        raise Usage(
            "--print-entry: clients have no URL for a Unix socket; --bind HOST:PORT has one"
        )
    if not bind.port:
        raise Usage("--print-entry: say which port it will be, --bind HOST:PORT")
    try:
        host = HOST if ip_address(bind.host).is_unspecified else bind.host
    except ValueError:
        host = bind.host  # a name
    return f"http://{Tcp(host, bind.port)}"


def _entry(
    settings: Settings,
    url: str,
    options: argparse.Namespace | None = None,
    *,
    view: str | None = None,
    server: str | None = None,
) -> ClientEntry:
    if options is not None:
        view, server = options.view, options.server
    token = None
    if (credentials := settings.credentials) is not None:
        token = f"Bearer {credentials.minted or 'TOKEN'}"
    return ClientEntry(url, token, view, server)


def _announce(options: argparse.Namespace, settings: Settings, sockets: Sequence[Bound]) -> None:
    """The endpoint, and what to paste into a client; or a line in the log that nobody heard it."""
    try:
        say("\n".join(_announcement(options, settings, sockets)))
    except CannotWrite as error:
        # A daemon is for those who connect, and who starts it may have no use for its words.
        reason = output.give_up(error) or "nobody reads standard output"
        logs.write("warn", "not_announced", reason=reason)


def _announcement(
    options: argparse.Namespace, settings: Settings, sockets: Sequence[Bound]
) -> Iterator[str]:
    yield "emceepee listens on"
    for bound in sockets:
        yield f"  {bound}" if bound.is_unix else f"  http://{bound}/mcp"
    yield _configuration(options, settings.config)
    url = next((bound.url for bound in sockets if bound.url), None)
    if url is None:
        yield "\nA client reaches it as http://localhost/mcp through that socket."
    else:
        yield "\nAdd it to a client; another client gets another session name:\n"
        yield _entry(settings, url).snippet()
        yield "\nor by a command of the client's own (--print-entry CLIENT has others):\n"
        said = _entry(settings, url)
        yield from (f"  {said.of(name)}" for name in ("claude-code", "codex"))
        yield "\nWith another URL it shows something else (--print-entry CLIENT --view VIEW):\n"
        for view, purpose in VIEWS.items():
            if view != DEFAULT:
                yield f"  {_entry(settings, url, view=view).url}\n      {purpose}"
        enabled = [server.name for server in settings.config.servers if not server.disabled]
        one = enabled[0] if enabled else "NAME"
        yield f"  {_entry(settings, url, server=one).url}\n      one server as it is"
    if url is not None:
        where = "" if url == f"http://{HOST}:{PORT}" else f" --url {url}"
        yield f"\n`emceepee open{where}` shows in a browser what is under way."
    if (credentials := settings.credentials) is not None:
        if credentials.minted is not None:
            yield f"\nThe token is new and is not shown again. It is in {credentials.where}."
        else:
            yield f"\nThe token is in {credentials.where}."


def _configuration(options: argparse.Namespace, config: Config) -> str:
    """Where it comes from, and which servers it names."""
    found = options.config
    where = f"of {found}" if found is not None else f"without a configuration ({default_path()})"
    servers = [f"{s.name} (disabled)" if s.disabled else s.name for s in config.servers]
    count = f"{len(servers)} server{'s' * (len(servers) != 1)}" if servers else "no servers"
    more = len(servers) - SHOWN
    names = [*servers[:SHOWN], *([f"and {more} more"] if more > 0 else [])]
    return f"{count} {where}" + (f": {', '.join(names)}" if names else "")
