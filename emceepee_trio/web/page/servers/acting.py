"""Adding, editing, removing, switching and reconnecting servers, until the daemon ends."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from quart import Response, request

from ....backend.backend import Backend
from ....config import LOCAL, Server
from ....errors import Denied, InvalidArguments, ToolError
from ....session.session import Session
from ....waits.firewall import Firewall, begin
from ..answering import OPERATOR
from ..common.pages import Changed, Done, Pages
from ..common.requests import visit, wants_json
from .entering import given_of, said, sent, server_of
from .listing import find, with_it


def add_to(pages: Pages) -> None:
    manager = pages.manager

    @pages.act("/servers")
    async def add_server() -> Changed:
        try:
            server, entry = server_of(said(await sent()))
            manager.servers.offer(visit().visitor.principal, server, _by(), entry)
        except InvalidArguments as error:
            return await _again(pages, error)
        return Done(_path(server.name), f"{server.name} is added.", {"server": server.name})

    @pages.view("/add-server", "edit_server.html")
    async def add_server_form() -> dict[str, Any]:
        return {"problem": None, "given": {}, "edits": False}

    @pages.act("/servers/<name>/edit")
    async def edit_server(name: str) -> Changed:
        body = await sent()
        # No checkpoint from here on: somebody else may edit it, or remove it, meanwhile.
        known = find(pages, name)
        try:
            server, entry = server_of(said(body, known.server), known.server)
            owner = known.owner or visit().visitor.principal
            manager.servers.edit(owner, server, _by(), entry)
        except InvalidArguments as error:
            return await _again(pages, error, known.server)
        return Done(_path(name), f"{name} is changed, in all sessions.")

    @pages.view("/servers/<name>/edit", "edit_server.html")
    async def edit_server_form(name: str) -> dict[str, Any]:
        known = find(pages, name)
        if not known.may_edit:
            raise Denied(f"server {name!r} is configured: only who runs this daemon can edit it")
        return {"problem": None, "given": given_of(known.server), "edits": True}

    @pages.act("/servers/<name>/restore")
    async def restore_server(name: str) -> Changed:
        manager.servers.restore(visit().visitor.principal, name, _by())
        is_edited = name in manager.registry.changed()  # and was removed
        return Done(_path(name), f"{name} is as it {'was' if is_edited else 'is configured'}.")

    @pages.act("/servers/<name>/remove")
    async def remove_server(name: str) -> Changed:
        for principal in _principals(pages, name):
            manager.servers.forget(principal, name, _by())
        return Done("/servers", f"{name} is removed.")

    @pages.act("/servers/<name>/enable")
    async def enable_server(name: str) -> Changed:
        for principal in _principals(pages, name):
            manager.servers.switch(principal, name, _by(), on=True)
        return Done(_path(name), f"{name} is enabled.")

    @pages.act("/servers/<name>/disable")
    async def disable_server(name: str) -> Changed:
        for principal in _principals(pages, name):
            manager.servers.switch(principal, name, _by(), on=False)
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


async def _again(pages: Pages, error: InvalidArguments, before: Server | None = None) -> Response:
    """The form as it was filled in, with what is wrong."""
    if wants_json() or request.is_json:
        raise error
    given = {"name": before.name if before else "", **(await request.form)}
    data = {"problem": error.message, "given": given, "edits": before is not None}
    return await pages.html(400, "edit_server.html", data)


def _begin_to_reconnect(session: Session, backend: Backend) -> None:
    """In the session's own time: whoever wants it sees how it goes."""
    fields = {"session": session.id, "server": backend.server.name}
    begin(session.inner, Firewall("reconnect_crashed", fields=fields), _reconnect, backend)


async def _reconnect(backend: Backend) -> None:
    try:
        await backend.reconnect(OPERATOR)
    except ToolError:
        pass  # its state tells
