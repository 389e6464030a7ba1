"""Tools of a server: what they take, and a form to try one, in a session of the visitor's own.

A call that is tried is a task from the start, so its page shows how it goes on; what its server
asks meanwhile is on the first page.
"""

from __future__ import annotations

import secrets
from typing import Any

import attrs
from quart import request

from ....backend.backend import Backend
from ....backend.catalogue.catalog import Entries, name_of
from ....errors import InvalidArguments, LimitReached, NotFound, ServerNotFound
from ....model.json.weight import cut
from ....model.wire import loads
from ....session.manager import SessionFailed
from ....session.session import Session
from ....tools import TOOLBOX
from ....tools.common.asking import entries_of
from ....tools.common.registry import Request
from ..common.pages import Changed, Data, Done, Pages
from ..common.requests import json_body, visit, wants_json
from ..filled import content_of
from ..forms import fields_of
from ..waiting import REASON
from .listing import find

CLIENT = "this page"
"""As which its sessions are shown."""

PATH = "/servers/<name>/tools"


@attrs.define(eq=False)
class Desk:
    """Sessions of visitors, one for each principal; it ends when nobody uses it."""

    pages: Pages
    _ids: dict[str, str] = attrs.field(factory=dict, init=False)

    async def session(self) -> Session:
        principal = visit().visitor.principal
        if principal not in self._ids:
            self._ids[principal] = secrets.token_urlsafe(24)
        try:
            session = await self.pages.manager.ensure(
                self._ids[principal], principal, ends_when_idle=True, on_demand=True
            )
        except SessionFailed as error:
            raise LimitReached(str(error)) from None
        session.named(CLIENT)
        return session

    async def backend(self, name: str) -> tuple[Session, Backend]:
        session = await self.session()
        known = find(self.pages, name)
        if name not in session.backends:
            raise ServerNotFound(
                f"server {name!r} is one of {known.owner}'s alone: log in with that token to try it"
            )
        return session, session.backends[name]

    async def tools(self, name: str) -> tuple[Session, Entries]:
        session, backend = await self.backend(name)
        with session.presence.busy():
            if (remembered := backend.remembered("tools")) is not None:
                return session, remembered.entries
            return session, await entries_of(Request(session, self.pages.manager), backend, "tools")


def add_to(pages: Pages) -> None:
    desk = Desk(pages)

    @pages.view(PATH, "tools.html")
    async def tools(name: str) -> Data:
        _, found = await desk.tools(name)
        return {"name": name, "tools": [_brief(tool) for tool in found]}

    @pages.view(f"{PATH}/<path:tool>", "tool.html")
    async def tool(name: str, tool: str) -> Data:
        _, found = await desk.tools(name)
        entry = _one(found, tool)
        shown = {**_brief(entry), "description": _text(entry.get("description"))}
        fields = {} if wants_json() else {"fields": fields_of(entry.get("inputSchema"))}
        return {"name": name, **shown, "entry": entry, **fields}

    @pages.act(f"{PATH}/<path:tool>")
    async def try_tool(name: str, tool: str) -> Changed:
        session, found = await desk.tools(name)
        entry = _one(found, tool)
        args = await _args(entry)
        asked = {"server": name, "tool": tool, "args": args, "timeout_ms": 0}
        reply = await TOOLBOX.get("execute_tool").call(Request(session, pages.manager), asked)
        if reply.task is None:
            raise InvalidArguments("its call has ended before it began")
        where = f"/calls/{pages.names.of(session.id)}/{reply.task.task_id}"
        show = "?show=result" if pages.manager.config.page.payloads else ""
        return Done(f"{where}{show}", "", {"path": f"/api{where}"})


def _one(tools: Entries, name: str) -> dict[str, Any]:
    for tool in tools:
        if name_of(tool) == name:
            return dict(tool)
    raise NotFound(f"it has no tool {name!r}")


def _brief(tool: Any) -> dict[str, Any]:
    said = tool.get("description")
    annotations = tool.get("annotations")
    hints = annotations if isinstance(annotations, dict) else {}
    return {
        "tool": name_of(tool),
        "title": _text(tool.get("title")),
        "description": cut(said, REASON) if isinstance(said, str) else "",
        "reads": hints.get("readOnlyHint") is True,
        "destroys": hints.get("destructiveHint") is True and hints.get("readOnlyHint") is not True,
    }


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


async def _args(entry: dict[str, Any]) -> dict[str, Any]:
    if request.is_json:
        args = await json_body()
    else:
        form = await request.form
        said = form.get("json", "").strip()
        if not said:
            return content_of(fields_of(entry.get("inputSchema")), form)
        try:
            args = loads(said)
        except (ValueError, RecursionError) as error:
            raise InvalidArguments(f"the arguments are no JSON: {error}") from None
    if not isinstance(args, dict):
        raise InvalidArguments("arguments are a JSON object")
    return args
