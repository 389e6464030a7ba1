"""How a view and a change are added: routes that answer people with HTML and programs with JSON.

::

    def add_to(pages: Pages) -> None:
        @pages.view("/things", "things.html")        # and, as JSON, /api/things
        async def things() -> Data:
            return {"things": [...]}                # what the template gets, and the JSON is

        @pages.act("/things/<name>/end")             # POST; it is checked that it is wanted
        async def end(name: str) -> Done:
            ...
            return Done("/things", f"{name} has ended.")

A `ToolError` is shown with what it says.
"""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias

import attrs
import trio
from quart import Blueprint, Response, redirect, request

from ....config import LOCAL
from ....errors import Denied, InvalidArguments, LimitReached, NotFound, ServerNotFound, ToolError
from ....session.manager import SessionManager
from .assets import add_assets, asset
from .live import Live
from .names import Names
from .rendering import Renderer
from .requests import API, json_response, scope, to, visit, wants_html, wants_json

Data: TypeAlias = Mapping[str, Any]
"""What a view shows: JSON."""

CSRF, NEXT = "csrf", "next"
"""Fields of forms: what shows that the form is ours, and where to go afterwards."""

MAX_NOTICES = 50
"""That wait to be shown; the oldest makes room."""

STATUSES: Mapping[type[ToolError], int] = {
    NotFound: 404,
    ServerNotFound: 404,
    InvalidArguments: 400,
    Denied: 403,
    LimitReached: 503,
}
"""Of answers to programs, and to browsers; the others are conflicts."""


@attrs.frozen
class Done:
    """What a change has come to."""

    path: str
    """Where a browser goes now."""
    said: str
    """In a sentence."""
    data: Data = attrs.field(factory=dict)
    """For programs, beside that."""


Changed: TypeAlias = Done | Response
"""Or a page that says what is to be corrected."""


@attrs.define(eq=False)
class Notices:
    """What was done, until the page that shows it is asked for."""

    _said: OrderedDict[str, str] = attrs.field(factory=OrderedDict, init=False)

    def put(self, said: str) -> str:
        """Its name: nobody else can have a page of ours say something."""
        name = secrets.token_urlsafe(8)
        self._said[name] = said
        if len(self._said) > MAX_NOTICES:
            self._said.popitem(last=False)
        return name

    def take(self, name: str) -> str | None:
        return self._said.pop(name, None)


@attrs.frozen
class Section:
    path: str
    name: str


@attrs.define(eq=False)
class Pages:
    """All views of one daemon."""

    manager: SessionManager
    about: Callable[[], Mapping[str, Any]]
    sections: list[Section] = attrs.field(factory=list, init=False)
    """What is named at the top, in that order."""
    configured: Callable[[], Data | None] = lambda: None
    """What the configuration was read from, when, and what was wrong; if it can be read again."""
    blueprint: Blueprint = attrs.field(init=False)
    live: Live = attrs.field(init=False)
    names: Names = attrs.field(init=False)
    _renderer: Renderer = attrs.field(factory=Renderer, init=False)
    _notices: Notices = attrs.field(factory=Notices, init=False)

    def __attrs_post_init__(self) -> None:
        manager = self.manager
        self.blueprint = Blueprint("page", __name__)
        self.names = Names(manager)
        self.live = Live(manager.journal, manager.principal_of, manager.draining)
        self.blueprint.register_error_handler(ToolError, self._failed)
        self.blueprint.before_request(self._checked)
        add_assets(self.blueprint)

        @self.blueprint.get("/live")
        async def live() -> Response:
            stream = self.live.stream(visit().visitor.whose, request.args.get("logs"))
            headers = {"Cache-Control": "no-store, no-transform", "X-Accel-Buffering": "no"}
            answer = Response(stream, 200, headers, content_type="text/event-stream")
            answer.timeout = None
            return answer

    def section(self, path: str, name: str) -> None:
        """One that is named at the top."""
        self.sections.append(Section(path, name))

    def view(
        self, path: str, template: str
    ) -> Callable[[Callable[..., Awaitable[Data]]], Callable[..., Awaitable[Data]]]:
        def add(handler: Callable[..., Awaitable[Data]]) -> Callable[..., Awaitable[Data]]:
            async def answer(**parts: str) -> Response:
                began = trio.current_time()
                data = await handler(**parts)
                if wants_json():
                    return json_response(200, data)
                page = await self.html(200, template, data)
                self.live.took(trio.current_time() - began)
                return page

            name = handler.__name__
            self.blueprint.add_url_rule(path, name, answer, methods=["GET"])
            api = f"{API}{path}" if path != "/" else f"{API}/{name}"
            self.blueprint.add_url_rule(api, f"api_{name}", answer, methods=["GET"])
            return handler

        return add

    def act(
        self, path: str
    ) -> Callable[[Callable[..., Awaitable[Changed]]], Callable[..., Awaitable[Changed]]]:
        def add(handler: Callable[..., Awaitable[Changed]]) -> Callable[..., Awaitable[Changed]]:
            async def answer(**parts: str) -> Response:
                done = await handler(**parts)
                if isinstance(done, Response):
                    return done
                self.live.changed(visit().visitor.whose)
                if wants_json():
                    return json_response(200, {"done": done.said, **done.data})
                return self.go(done.path, done.said)

            name = handler.__name__
            for each, named in ((path, name), (f"{API}{path}", f"api_{name}")):
                self.blueprint.add_url_rule(each, named, answer, methods=["POST"])
            return handler

        return add

    def go(self, path: str, said: str = "") -> Response:
        """A browser goes there, and is shown what was done."""
        where = to(path)
        if said:
            where += f"{'&' if '?' in where else '?'}notice={self._notices.put(said)}"
        answer: Response = redirect(where, 303)  # type: ignore[assignment]  # ours is Quart's
        return answer

    async def html(self, status: int, template: str, data: Data) -> Response:
        visitor = visit().visitor
        shared = {
            "asset": asset,
            "to": to,
            "csrf": visitor.csrf,
            "visitor": visitor,
            "is_open": visitor.principal == LOCAL,
            "sections": self.sections if visitor.principal else [],
            "here": request.path,
            "payloads": self.manager.config.page.payloads,
            "about": self.about() if visitor.principal else {},
            "notice": self._notices.take(request.args.get("notice", "")),
            "now": trio.current_time(),
        }
        text = await self._renderer.render(template, {**shared, **data})
        # Half a surrogate pair in what a server said is no text to anybody else.
        body = text.encode("utf-8", "replace")
        return Response(body, status, content_type="text/html; charset=utf-8")

    async def error(self, status: int, name: str, said: str) -> Response:
        """For people."""
        return await self.html(status, "error.html", {"status": status, "name": name, "said": said})

    async def _failed(self, error: ToolError) -> Response:
        status = STATUSES.get(type(error), 409)
        if wants_html():
            return await self.error(status, "That did not work", error.message)
        return json_response(status, error.to_json())

    async def _checked(self) -> Response | None:
        """What changes something is its visitor's own wish."""
        if request.method in ("GET", "HEAD", "OPTIONS"):
            return None
        given = request.headers.get("X-CSRF-Token")
        if given is None:
            given = (await request.form).get(CSRF, "")
        if visit().visitor.may_change(scope(), given):
            return None
        said = "this form is not from this page, or from before you logged in; load it again"
        if wants_html():
            return await self.error(403, "Not from here", said)
        return json_response(403, {"error": {"message": said}})
