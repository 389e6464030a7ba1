"""Whatever is chosen by others is text on every page: names, titles, schemas, results, errors, what
programs write. Found by following every link, below the path of another program.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from html.parser import HTMLParser
from typing import Any

import attrs
import pytest

from emceepee_trio.config import Server
from fake_backends import raw, until
from memory_peers import scripted
from page_world import Browser, PageWorld, open_page
from play import RESULTS

MOUNT = "/here"
NAME = "\"'><planted onx=1 src=//evil.example></title></textarea></pre></option>{{7*7}}%00&lt;"
MARKUP = f"{NAME}\x1b[31m\u202e javascript:alert(1)"
EVIL = "https://evil.example/"

FORM: dict[str, Any] = {
    "mode": "form",
    "message": MARKUP,
    "requestedSchema": {
        "type": "object",
        "properties": {
            MARKUP: {"type": "string", "title": MARKUP, "description": MARKUP, "default": MARKUP},
            "b": {"type": "string", "enum": [MARKUP, "x"], "enumNames": [MARKUP, "x"]},
            "c": {"type": "array", "items": {"oneOf": [{"const": MARKUP, "title": MARKUP}]}},
            "d": {"type": "string", "enum": [f"{MARKUP}{n}" for n in range(9)]},
            "e": {"type": "integer", "minimum": MARKUP, "maximum": 5, "default": MARKUP},
            "f": {"type": MARKUP, "pattern": MARKUP},
            "g": {"type": "string", "pattern": MARKUP, "format": MARKUP, "maxLength": 500},
        },
    },
}
TOOL = {
    "name": NAME,
    "title": MARKUP,
    "description": MARKUP,
    "inputSchema": FORM["requestedSchema"],
    "annotations": {"destructiveHint": True, "title": MARKUP},
    "_meta": {MARKUP: MARKUP},
}


@attrs.define(eq=False)
class Looked(HTMLParser):
    """What a browser would make of a page."""

    path: str
    links: set[str] = attrs.field(factory=set)
    shown: list[str] = attrs.field(factory=list)
    _is_exact: bool = False

    def __attrs_post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        said = dict(attributes)
        assert tag not in {"planted", "iframe", "object", "embed", "style"}, self.path
        assert not [name for name in said if name.startswith("on") or name == "style"], self.path
        for name in ("href", "src", "action", "data-live", "formaction"):
            where = said.get(name)
            if where is None or where.startswith("#"):
                continue
            if where.startswith(EVIL):
                # Only where a person is asked to go, who is shown where that is.
                assert (tag, said["rel"]) == ("a", "noopener noreferrer"), self.path
                continue
            assert where.startswith(f"{MOUNT}/"), (self.path, where)
            if tag == "a":
                self.links.add(where)
        if tag == "textarea":
            self._is_exact = True
        assert said.keys() - {"value"} == said.keys() or tag in {"input", "button", "option"}

    def handle_endtag(self, tag: str) -> None:
        self._is_exact = False if tag == "textarea" else self._is_exact

    def handle_data(self, data: str) -> None:
        if not self._is_exact:  # what is sent back has to be what it was
            assert not re.search(r"[\x00-\x08\x0b-\x1f\u202a-\u202e]", data), self.path
            self.shown.append(data)


async def walked(browser: Browser, begin: str) -> dict[str, str]:
    """Each page that can be reached, and what is shown on it."""
    found: dict[str, str] = {}
    ahead = [begin]
    while ahead:
        path = ahead.pop()
        if path in found or path.split("?")[0] in {f"{MOUNT}/status", f"{MOUNT}/logs"}:
            continue
        answer = await browser.get(path)
        assert answer.status in (200, 404, 409), (path, answer)
        assert "script-src 'self'" in answer.headers["content-security-policy"]
        looked = Looked(path)
        looked.feed(answer.body.decode())
        found[path] = "".join(looked.shown)
        # Zooms of zooms are endless.
        ahead += [link for link in looked.links if "?" not in path or "?" not in link]
    return found


@asynccontextmanager
async def open_below(*servers: Server) -> AsyncGenerator[tuple[PageWorld, Browser]]:
    async with open_page(servers=servers, mount=MOUNT) as world:
        browser = world.browser()
        form = await browser.get(f"{MOUNT}/login")
        csrf = html.unescape(form.body.decode()).partition('name="csrf" value="')[2].partition('"')
        fields = {"csrf": csrf[0], "token": "minted"}
        assert (await browser.post(f"{MOUNT}/login", **fields)).status == 303
        yield world, browser


async def test_what_a_server_asks_says_and_writes_is_text_on_every_page() -> None:
    async with open_below(Server("raw", **raw())) as (world, browser):
        session = await world.session(f"ada/{NAME[:9]}")
        session.named(MARKUP)
        path = f"{MOUNT}/servers/raw/tools"
        url = {"mode": "url", "message": MARKUP, "elicitationId": "1", "url": f"{EVIL}?{NAME}"}
        for tool, args in (
            ("ask", {"params": FORM}),
            ("ask", {"params": url}),
            ("ask", {"params": {**url, "url": f"javascript:alert(1)//{NAME}"}}),
            ("rpc_error", {"message": MARKUP, "data": {MARKUP: MARKUP}}),
            ("stderr", {"line": MARKUP, "n": 2}),
            ("never", {MARKUP: MARKUP}),
        ):
            asked = await browser.submit(f"{path}/{tool}", f"{path}/{tool}", json=json.dumps(args))
            assert asked.status == 303, asked
        mine = next(each for each in world.manager.sessions() if each is not session)
        await until(lambda: len(mine.questions.open("elicitation")) == 3)
        await until(lambda: any(task.error for task in mine.calls.tasks()))
        found = await walked(browser, f"{MOUNT}/")
        kinds = {re.sub(r"/[^/]*$", "", each) for each in found}
        assert {f"{MOUNT}/servers/raw", f"{MOUNT}/sessions"} <= kinds
        asks = [text for each, text in found.items() if "/questions/" in each]
        assert len(asks) == 3
        assert all("<planted onx=1" in text for text in asks)
        assert "no address of a page" in "".join(asks)
        assert "<planted" in found[f"{MOUNT}/servers/raw/logs"]


async def test_what_a_server_has_is_text_on_every_page(monkeypatch: pytest.MonkeyPatch) -> None:
    hello = {"serverInfo": {"name": MARKUP, "version": MARKUP}, "instructions": MARKUP}
    monkeypatch.setitem(RESULTS, "initialize", {**RESULTS["initialize"], **hello})
    monkeypatch.setitem(RESULTS, "tools/list", {"tools": [TOOL]})
    content = [{"type": "text", "text": MARKUP}, {"type": MARKUP, MARKUP: MARKUP}]
    monkeypatch.setitem(RESULTS, "tools/call", {"content": content, "isError": True})
    with scripted():
        async with open_below(Server("sly", command="x", description=NAME)) as (world, browser):
            session = await world.session()
            await session.backend("sly").connection()
            listed = Looked("tools")
            listed.feed(await browser.page(f"{MOUNT}/servers/sly/tools"))
            (tool,) = (each for each in listed.links if "/tools/" in each)
            answer = await browser.submit(tool, tool, json=json.dumps({MARKUP: MARKUP}))
            where = answer.headers["location"]
            (mine,) = (each for each in world.manager.sessions() if each is not session)
            await until(lambda: all(call.slot.is_settled for call in mine.calls.unsettled()))
            found = await walked(browser, f"{MOUNT}/") | await walked(browser, where)
            assert "<planted onx=1" in found[tool]
            assert "<planted onx=1" in found[where]
            assert "<planted onx=1" in found[f"{MOUNT}/servers/sly"]
