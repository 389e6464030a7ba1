"""Adding, removing, switching and reconnecting servers."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from quart import request

from ....backend.backend import Backend
from ....config import LOCAL, ConfigError, server_from_arguments
from ....config.dialects import ALIASES
from ....config.server import Server
from ....errors import InvalidArguments, ToolError
from ....model.json.lenient import lenient
from ....model.json.problems import listed
from ....session.session import Session
from ....waits.firewall import Firewall, begin
from ..answering import OPERATOR
from ..common.pages import Changed, Done, Pages
from ..common.requests import json_body, visit, wants_json
from .listing import find, with_it


def add_to(pages: Pages) -> None:
    manager = pages.manager

    @pages.act("/servers")
    async def add_server() -> Changed:
        try:
            entry = await json_body() if request.is_json else _entry(await request.form)
            server = _checked(entry)
            manager.offer_server(visit().visitor.principal, server, _by())
        except InvalidArguments as error:
            if wants_json():
                raise
            said = {"problem": error.message, "given": dict(await request.form)}
            return await pages.html(400, "add_server.html", said)
        return Done(_path(server.name), f"{server.name} is added.", {"server": server.name})

    @pages.view("/add-server", "add_server.html")
    async def add_server_form() -> dict[str, Any]:
        return {"problem": None, "given": {}}

    @pages.act("/servers/<name>/remove")
    async def remove_server(name: str) -> Changed:
        for principal in _principals(pages, name):
            manager.forget_server(principal, name, _by())
        return Done("/servers", f"{name} is removed.")

    @pages.act("/servers/<name>/enable")
    async def enable_server(name: str) -> Changed:
        for principal in _principals(pages, name):
            manager.switch_server(principal, name, _by(), on=True)
        return Done(_path(name), f"{name} is enabled.")

    @pages.act("/servers/<name>/disable")
    async def disable_server(name: str) -> Changed:
        for principal in _principals(pages, name):
            manager.switch_server(principal, name, _by(), on=False)
        return Done(_path(name), f"{name} is disabled, in all sessions.")

    @pages.act("/servers/<name>/reconnect")
    async def reconnect_server(name: str) -> Changed:
        wanted = (await request.form).get("session")
        found = [
            (session, backend)
            for session, backend in with_it(pages, find(pages, name).server.name)
            if wanted in (None, pages.names.of(session.id))
        ]
        for session, backend in found:
            _begin_to_reconnect(session, backend)
        which = "one session" if len(found) == 1 else f"{len(found)} sessions"
        return Done(_path(name), f"{name} is being connected anew, in {which}.")


def _path(name: str) -> str:
    return f"/servers/{quote(name, safe='')}"


def _by() -> str:
    """As clients are told who has done it."""
    visitor = visit().visitor
    return OPERATOR if visitor.whose is None else visitor.principal


def _principals(pages: Pages, name: str) -> list[str]:
    """For whom it is changed: of what is everybody's, anybody stands for all."""
    owner = find(pages, name).owner
    if owner is None:
        return [visit().visitor.principal or LOCAL]
    return pages.manager.registry.owners(name) if visit().visitor.whose is None else [owner]


def _entry(form: Mapping[str, str]) -> dict[str, Any]:
    """Of a configuration, from the fields of the form."""
    entry: dict[str, Any] = {"name": form.get("name", "").strip()}
    where = form.get("where", "").strip()
    if where.startswith(("http://", "https://")):
        entry["url"] = where
        entry["headers"] = _pairs(form.get("more", ""), ":") or None
    else:
        try:
            command, *args = shlex.split(where) or [""]
        except ValueError as error:
            raise InvalidArguments(f"the command cannot be read: {error}") from None
        entry |= {
            "command": command,
            "args": args,
            "env": _pairs(form.get("more", ""), "=") or None,
        }
    return {key: value for key, value in entry.items() if value is not None}


def _pairs(text: str, sign: str) -> dict[str, str]:
    found = {}
    for line in text.splitlines():
        name, given, value = line.partition(sign)
        if line.strip() and not given:
            raise InvalidArguments(f"expected NAME{sign}VALUE in each line, got {line.strip()!r}")
        if given:
            found[name.strip()] = value.strip()
    return found


def _checked(entry: object) -> Server:
    if not isinstance(entry, Mapping):
        raise InvalidArguments("expected an object")
    given, strangers = lenient(dict(entry), Server, aliases=ALIASES)
    try:
        if strangers:
            raise ConfigError(strangers)
        assert isinstance(given, dict)
        return server_from_arguments(given)
    except ConfigError as error:
        raise InvalidArguments("; ".join(listed(error.problems))) from None


def _begin_to_reconnect(session: Session, backend: Backend) -> None:
    """In the session's own time: whoever wants it sees how it goes."""
    fields = {"session": session.id, "server": backend.server.name}
    begin(session.inner, Firewall("reconnect_crashed", fields=fields), _reconnect, backend)


async def _reconnect(backend: Backend) -> None:
    try:
        await backend.reconnect(OPERATOR)
    except ToolError:
        pass  # its state tells
