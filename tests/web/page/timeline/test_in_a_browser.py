"""The timeline of a session in a real browser: live, by keyboard, by pointer, on a phone."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import attrs
import pytest
from playwright.sync_api import Page, expect

from browsing import DESK, PHONE, Chromium, HttpClient, Window, chromium, link, obstacles, window
from fake_backends import raw
from served import serve

pytestmark = pytest.mark.once
TOKEN = "token-of-the-page"


@attrs.frozen
class Watched:
    """A session at which somebody looks."""

    client: HttpClient
    browser: Chromium
    url: str
    name: str

    @property
    def path(self) -> str:
        return f"{self.url}/sessions/{self.name}"

    def open(self, person: Window, query: str = "") -> Page:
        page = person.open(link(f"{self.url}/mcp", TOKEN))
        page.wait_for_url(f"{self.url}/")
        page.goto(f"{self.path}{query}")
        return page

    @contextmanager
    def seen(self, query: str = "", **options: Any) -> Iterator[Page]:
        with window(self.browser, **options) as person:
            yield self.open(person, query)


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    """With a few calls that are over, one that goes on, and one that asks."""
    folder = tmp_path_factory.mktemp("served")
    config = folder / "config.json"
    config.write_text(json.dumps({"mcpServers": {"raw": raw()}}), "utf-8")
    with (
        chromium() as browser,
        serve(folder, "--config", str(config), EMCEEPEE_TOKEN=TOKEN) as daemon,
    ):
        url = daemon.url.removesuffix("/mcp")
        client = HttpClient(daemon.url, TOKEN)
        for tool in ("echo", "unicode", "echo", "rpc_error"):
            execute(client, tool)
        client.begin("raw", "never")
        client.begin("raw", "string_id_question")
        asked = Request(f"{url}/api/sessions", headers={"Authorization": f"Bearer {TOKEN}"})
        with urlopen(asked) as answer:
            (found,) = json.load(answer)["sessions"]
        yield Watched(client, browser, url, found["name"])
        client.end()


def execute(client: HttpClient, tool: str, args: Mapping[str, Any] | None = None) -> None:
    asked = {"server": "raw", "tool": tool, "args": args or {}}
    client.request("tools/call", {"name": "execute_tool", "arguments": asked})


def test_what_begins_while_one_looks_is_there(watched: Watched) -> None:
    with watched.seen() as page:
        rows = page.locator(".rows tbody.call")
        expect(rows.filter(has_text="never")).to_contain_text("waits for its server")
        expect(rows.filter(has_text="string_id_question")).to_contain_text("waits for an answer")
        expect(rows.filter(has_text="split")).to_have_count(0)
        execute(watched.client, "split")
        expect(rows.filter(has_text="split")).to_contain_text("completed")


def test_each_row_opens_its_facts_by_keyboard_and_they_stay_open(watched: Watched) -> None:
    with watched.seen() as page:
        sent = page.get_by_text("sent to its server").first
        expect(page.locator(".rows tbody.call").first).to_contain_text("echo")
        expect(sent).to_be_hidden()
        page.keyboard.press("j")
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
        expect(sent).to_be_visible()
        with page.expect_response(lambda answer: answer.url == watched.path):
            execute(watched.client, "echo")
        expect(sent).to_be_visible()


def test_a_piece_of_time_is_chosen_by_keyboard_and_by_pointer(watched: Watched) -> None:
    with watched.seen() as page:
        page.keyboard.press("+")
        page.wait_for_url("**from=*")
        page.keyboard.press("0")
        page.wait_for_url(lambda url: "from=" not in url)
        overview = page.locator("#overview").bounding_box()
        assert overview is not None
        middle = overview["y"] + overview["height"] / 2
        page.mouse.move(overview["x"] + overview["width"] * 0.25, middle)
        page.mouse.down()
        page.mouse.move(overview["x"] + overview["width"] * 0.5, middle)
        page.mouse.up()
        page.wait_for_url("**from=*to=*")


def test_rows_are_chosen_without_scripts(watched: Watched) -> None:
    with window(watched.browser, java_script_enabled=False) as person:
        page = person.open(f"{watched.path}")
        page.get_by_label("Token of the daemon").fill(TOKEN)
        page.get_by_role("button", name="Log in").click()
        page.get_by_label("Outcome").select_option("failed")
        page.get_by_role("button", name="Show").click()
        expect(page.locator(".rows tbody")).to_have_count(1)
        page.locator(".rows summary").click()
        expect(page.get_by_text("with code")).to_be_visible()
        page.get_by_role("link", name="Clear").click()
        expect(page.locator(".rows tbody.connection")).to_have_count(1)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
def test_everybody_can_use_it(
    watched: Watched, size: dict[str, int], scheme: str, tmp_path: Path
) -> None:
    with watched.seen(viewport=size, color_scheme=scheme) as page:
        page.locator(".rows summary").nth(1).click()
        page.screenshot(path=tmp_path / "session.png", full_page=True)
        wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert page.evaluate(wide) <= 0
        assert obstacles(page) == []
        page.goto(f"{watched.url}/sessions")
        assert page.evaluate(wide) <= 0
        assert obstacles(page) == []
