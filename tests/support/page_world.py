"""The page of a daemon over real HTTP, as a browser and as an attacker ask for it."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlencode

import attrs
import trio

from emceepee_trio.config import Config, Http, Limits, PageSettings, Policy, Server
from emceepee_trio.serving.asgi import Receive, Scope, Send
from emceepee_trio.session.manager import SessionManager, open_sessions
from emceepee_trio.session.session import Session
from emceepee_trio.web.app import App, pages
from emceepee_trio.web.metrics.scrape import Metrics
from emceepee_trio.web.security import Security, Tokens
from raw_http import Answer, Served, serving

GUARD = 60
TOKENS = Tokens.of([("ada", "s3cret"), ("token", "minted")])
HTML = "\nAccept: text/html,application/xhtml+xml"
JSON = "\nAccept: application/json"
FORM = "\nContent-Type: application/x-www-form-urlencoded"


async def no_mcp(scope: Scope, receive: Receive, send: Send, principal: str) -> None:
    raise AssertionError("nobody speaks MCP here")


@attrs.define(eq=False)
class PageWorld:
    served: Served
    app: App
    manager: SessionManager

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.served.port}"

    async def session(self, session_id: str = "ada/main", principal: str = "ada") -> Session:
        return await self.manager.ensure(session_id, principal)

    async def ask(self, line: str, more: str = "", body: str = "") -> Answer:
        length = f"\nContent-Length: {len(body.encode())}" if body or "POST" in line else ""
        return await self.served.ask(f"{line} HTTP/1.1\nHost: {self.host}{length}{more}", body)

    async def link(self, token: str = "minted") -> str:
        """One that logs a browser in."""
        made = await self.ask("POST /api/links", f"\nAuthorization: Bearer {token}{JSON}")
        path: str = json.loads(made.body)["path"]
        return path

    def browser(self) -> Browser:
        return Browser(self)

    async def logged_in(self, token: str = "minted") -> Browser:
        browser = self.browser()
        page = await browser.get("/login")
        answer = await browser.post("/login", csrf=csrf_of(page), token=token)
        assert answer.status == 303, answer
        return browser


@attrs.define(eq=False)
class Browser:
    """One that keeps a cookie, and says where its pages come from."""

    world: PageWorld
    cookie: str = ""

    @property
    def _cookies(self) -> str:
        return f"\nCookie: {self.cookie}" if self.cookie else ""

    def _keep(self, answer: Answer) -> Answer:
        if (said := answer.headers.get("set-cookie")) is not None:
            self.cookie = said.split(";")[0]
        return answer

    async def get(self, path: str, more: str = HTML) -> Answer:
        return self._keep(await self.world.ask(f"GET {path}", f"{self._cookies}{more}"))

    async def page(self, path: str) -> str:
        answer = await self.get(path)
        assert answer.status == 200, (answer.status, answer.body)
        return answer.body.decode()

    async def json(self, path: str) -> Any:
        answer = await self.get(path, JSON)
        assert answer.status == 200, (answer.status, answer.body)
        return json.loads(answer.body)

    async def post(self, path: str, *, origin: str | None = "", **fields: str) -> Answer:
        origin = f"http://{self.world.host}" if origin == "" else origin
        more = f"{self._cookies}{HTML}{FORM}" + (f"\nOrigin: {origin}" if origin else "")
        return self._keep(await self.world.ask(f"POST {path}", more, urlencode(fields)))

    async def submit(self, on: str, path: str, **fields: str) -> Answer:
        """A form that stands on that page."""
        return await self.post(path, csrf=csrf_of(await self.get(on)), **fields)


def csrf_of(answer: Answer) -> str:
    found = re.search(r'name="csrf" value="([^"]+)"', answer.body.decode())
    assert found is not None, answer.body
    return found[1]


@asynccontextmanager
async def open_page(
    *,
    tokens: Tokens | None = TOKENS,
    servers: Sequence[Server] = (),
    payloads: bool = True,
    limits: Limits | None = None,
    policy: Policy | None = None,
    mount: str = "",
    guard: float = GUARD,
    **http: Any,
) -> AsyncGenerator[PageWorld]:
    config = Config(
        http=Http(**http),
        servers=tuple(servers),
        page=PageSettings(payloads),
        limits=limits or Limits(),
        policy=policy or Policy(spawn="allow"),
    )
    with trio.fail_after(guard):
        async with open_sessions(config) as manager:
            about = {"version": "1", "pid": 7}
            quart = pages(manager, lambda: about, lambda: True, Metrics(manager))
            app = App(Security.of(config.http, tokens), no_mcp, quart)

            async def mounted(scope: Scope, receive: Receive, send: Send) -> None:
                await app({**scope, "root_path": mount}, receive, send)

            async with serving(mounted if mount else app) as served:
                yield PageWorld(served, app, manager)
