"""What clients would start or connect to, where they have an entry of ours."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from ...config import Config
from ...config.reading.dialects import ALIASES, translate
from ...config.reading.ourselves import is_us
from ...model.text.variables import expand
from ..common.options import PORT
from ..common.remote import NoAnswer, RemoteDaemon
from ..home.asking import shown
from ..home.documents import Document, Unusable
from ..home.places import CLIENTS, Around, ClientFile, places
from .finding import Finding
from .settings import commands

OF_DESKTOPS = "/usr/local/bin:/usr/bin:/bin"
"""The PATH of what was started from a menu, not from a shell."""


WITHOUT_A_SHELL = ("claude-desktop", "cursor", "vscode", "windsurf", "zed")
"""Clients that are mostly started so."""


def entries(around: Around, config: Config | None) -> Iterator[Finding]:
    for client in CLIENTS:
        for place in places(client, around):
            if place.is_there:
                yield from _in(place, config)


def _in(place: ClientFile, config: Config | None) -> Iterator[Finding]:
    try:
        servers = Document.read(place.path).at(place.keys)
    except Unusable as error:
        yield Finding(place.client, "warning", str(error), "it may not be able to read it either")
        return
    for name, written in servers.items() if isinstance(servers, dict) else ():
        entry = translate(written, name, place.key) if isinstance(written, dict) else None
        if entry is None:
            continue
        values = {ALIASES.get(key, key): value for key, value in entry.values.items()}
        if is_us(name, values, {PORT}):
            yield from _entry(place, name, values)
            if place.client in WITHOUT_A_SHELL and config is not None:
                yield from _not_found(place, values, config)


def _not_found(place: ClientFile, values: Mapping[str, Any], config: Config) -> Iterator[Finding]:
    """Servers that a session in that client would not find, though your shell does."""
    args = values.get("args")
    if "command" not in values or (isinstance(args, list) and "--connect" in args):
        return
    env = values.get("env")
    path = env.get("PATH", OF_DESKTOPS) if isinstance(env, Mapping) else OF_DESKTOPS
    for name, command in commands(config):
        here = shutil.which(command)
        if here is not None and shutil.which(command, path=str(path)) is None:
            message = (
                f"started from a menu, it would not find {command} of server {name!r} ({here})"
            )
            remedy = (
                "write the whole path into its entry; or `emceepee install-service --user`, then "
                f"`emceepee connect {place.client}`, to have it use the daemon"
            )
            yield Finding(place.client, "warning", message, remedy)


def _entry(place: ClientFile, name: str, values: Mapping[str, Any]) -> Iterator[Finding]:
    where = f"{name!r} in {shown(place.path)}"
    again = f"`emceepee disconnect {place.client}`, then `emceepee connect {place.client}`"
    command, url = values.get("command"), values.get("url")
    if isinstance(command, str):
        found = shutil.which(command)
        if found is None:
            yield Finding(place.client, "broken", f"{where} starts {command}: not found", again)
        elif os.sep not in command and shutil.which(command, path=OF_DESKTOPS) is None:
            message = f"{where} starts {command}, which only your shell finds ({found})"
            yield Finding(place.client, "warning", message, f"give it the whole path: {again}")
        else:
            yield Finding(place.client, "ok", f"{where} starts {shown_command(values)}")
    elif isinstance(url, str):
        yield from _url(place, where, url, values.get("headers"), again)


def shown_command(values: Mapping[str, Any]) -> str:
    from ...model.text.redact import redact_command

    args = values.get("args")
    rest = [word for word in args if isinstance(word, str)] if isinstance(args, list) else []
    return redact_command([values["command"], *rest])


def _url(place: ClientFile, where: str, url: str, headers: object, again: str) -> Iterator[Finding]:
    """Whether its token is still one."""
    parts = urlsplit(url)
    base = f"{parts.scheme}://{parts.netloc}"
    said = headers.get("Authorization", "") if isinstance(headers, Mapping) else ""
    text, unknown = expand(str(said), os.environ)
    if unknown:
        yield Finding(
            place.client, "warning", f"{where}: {unknown[0]}", "set it where it is started"
        )
        return
    try:
        daemon = RemoteDaemon(base, text.removeprefix("Bearer ") or None)
        with daemon.request("GET", "/status", patience=5) as response:
            status = response.status
    except NoAnswer as error:
        if "wants another token" in str(error):
            remedy = f"{again}, or put the token of the daemon there"
            yield Finding(
                place.client, "broken", f"{where}: its token is not taken any more", remedy
            )
        else:
            yield Finding(place.client, "warning", f"{where}: no daemon runs at {base}", again)
        return
    if status != 200:
        remedy = "correct the URL; `emceepee serve --print-entry` prints one"
        yield Finding(place.client, "broken", f"{where}: status {status} of {base}", remedy)
    else:
        yield Finding(place.client, "ok", f"{where} reaches {base}")
