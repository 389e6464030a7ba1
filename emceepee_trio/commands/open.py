"""``emceepee open``: the page of a running daemon, in a browser that is logged in."""

from __future__ import annotations

import argparse
import webbrowser
from urllib.parse import urlsplit

from ..model.wire import loads
from .common.options import HOST, Usage, add_url_option, default_port
from .common.output import complain, say
from .common.remote import NoAnswer, RemoteDaemon, body_of

LINKS = "/api/links"
"""Where a daemon makes a link that logs in one browser, once."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_url_option(parser)
    parser.add_argument(
        "--print", action="store_true", help="print the link and open nothing; it works once"
    )


def run(options: argparse.Namespace) -> int:
    url = options.url or f"http://{HOST}:{default_port()}"
    if url.startswith("unix:"):
        raise Usage("--url: no browser reaches a Unix socket; have the daemon listen on a port too")
    try:
        link = link_of(RemoteDaemon.find(url, options.state_dir))
    except NoAnswer as error:
        complain(f"emceepee open: {error}")
        return 1
    if options.print:
        say(link)
    elif not webbrowser.open(link):
        say(f"no browser was found here; open this within a minute, it works once:\n\n  {link}\n")
    return 0


def link_of(daemon: RemoteDaemon) -> str:
    """One that works once, and for a minute.

    Raises:
        NoAnswer: there is none to be had.
    """
    headers = {"Accept": "application/json", "Content-Type": "application/json"}
    with daemon.request("POST", LINKS, headers, {}) as response:
        body = body_of(response)
    try:
        said = loads(body.decode())
        if response.status == 200 and said["path"].startswith("/"):
            parts = urlsplit(daemon.url)
            return f"{parts.scheme}://{parts.netloc}{said['path']}"
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
        pass  # it is not what it should be
    raise daemon.stranger(response)
